"""Several agents over one database: what one of them does alone, whose folder it is, and when a run is tried again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_runs", sa.Column("due_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("agent_runs", sa.Column("active_us", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "agent_duties",
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("holder", sa.String(128), nullable=False),
        sa.Column("until_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "agent_marks",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.String(128), nullable=False),
    )
