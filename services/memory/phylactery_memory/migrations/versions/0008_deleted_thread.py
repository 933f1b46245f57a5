"""The hash of a deletion's thread: the same request for another thread is refused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("thread_deletions", sa.Column("thread_hash", sa.String(71), nullable=False, server_default=""))
