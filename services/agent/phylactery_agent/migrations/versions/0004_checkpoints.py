"""Where runs stand: checkpoints, their values, and what tasks wrote on top of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent_checkpoints",
        sa.Column("thread_id", sa.String(128), primary_key=True),
        sa.Column("checkpoint_ns", sa.Text, primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("checkpoint_id", sa.String(64), nullable=False),
        sa.Column("parent_id", sa.String(64), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("metadata", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("thread_id", "checkpoint_ns", "checkpoint_id", name="agent_checkpoints_once"),
        sqlite_with_rowid=False,
    )
    has_run = sa.text("run_id != ''")
    op.create_index(
        "agent_checkpoints_by_run",
        "agent_checkpoints",
        ["run_id"],
        sqlite_where=has_run,
        postgresql_where=has_run,
    )
    op.create_table(
        "agent_checkpoint_blobs",
        sa.Column("thread_id", sa.String(128), primary_key=True),
        sa.Column("checkpoint_ns", sa.Text, primary_key=True),
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("version", sa.String(64), primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "agent_checkpoint_writes",
        sa.Column("thread_id", sa.String(128), primary_key=True),
        sa.Column("checkpoint_ns", sa.Text, primary_key=True),
        sa.Column("checkpoint_id", sa.String(64), primary_key=True),
        sa.Column("task_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("task_path", sa.Text, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
