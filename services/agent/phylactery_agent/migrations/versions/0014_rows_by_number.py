"""In a file the values of checkpoints, and what tasks wrote, lie one behind the other; what finds them is beside them.

Laid out by their keys each had a page of its own, most of it empty, and another where it was longer than a quarter of
one: of the pages of a group commit two in three.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":  # a server keeps rows so in any case
        return
    _lay_out(
        "agent_checkpoint_blobs",
        sa.Column("thread_id", sa.String(128), primary_key=True),
        sa.Column("checkpoint_ns", sa.Text, primary_key=True),
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("version", sa.String(64), primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    _lay_out(
        "agent_checkpoint_writes",
        sa.Column("thread_id", sa.String(128), primary_key=True),
        sa.Column("checkpoint_ns", sa.Text, primary_key=True),
        sa.Column("checkpoint_id", sa.String(64), primary_key=True),
        sa.Column("task_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("task_path", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )


def _lay_out(name: str, *columns: sa.Column[object]) -> None:
    """Make a table anew with what it holds."""
    before = f"{name}_before"
    op.rename_table(name, before)
    op.create_table(name, *columns)
    names = ", ".join(column.name for column in columns)
    op.execute(f"INSERT INTO {name} ({names}) SELECT {names} FROM {before}")  # noqa: S608 - names of our own
    op.drop_table(before)
