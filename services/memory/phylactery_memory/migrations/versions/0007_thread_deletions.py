"""Thread deletions, for idempotency."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "thread_deletions",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("request_id", sa.String(128), primary_key=True),
        sa.Column("messages", sa.BigInteger, nullable=False),
        sa.Column("outputs", sa.BigInteger, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )
