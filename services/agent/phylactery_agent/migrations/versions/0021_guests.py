"""Guests: who of them an operator lifted, what each used of a day, and which messages came after that was used up."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent_lifts",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("user_id", sa.String(128), primary_key=True),
        sa.Column("lifted_us", sa.BigInteger, nullable=False),
        sa.Column("lifted_by", sa.String(128), nullable=False),
        sa.Column("until_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "agent_shares",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("user_id", sa.String(128), primary_key=True),
        sa.Column("kind", sa.String(64), primary_key=True),
        sa.Column("day", sa.BigInteger, nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.Column("told", sa.Boolean, nullable=False),
    )
    op.add_column("agent_inbox", sa.Column("over_share", sa.String(64), nullable=False, server_default=""))
