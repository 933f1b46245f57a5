"""Erasures: the record of each, and how a user's threads are found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent_erasures",
        sa.Column("erasure_id", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("request_hash", sa.String(71), nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_index("agent_erasures_by_request", "agent_erasures", ["request_hash"])
    op.create_index("agent_threads_by_user", "agent_threads", ["tenant", "user_id"])
