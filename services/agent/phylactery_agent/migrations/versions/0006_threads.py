"""What a thread is served by, from where its events are kept, and which messages are answered together."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_threads", sa.Column("graph", sa.String(64), nullable=False, server_default="secured"))
    op.add_column("agent_threads", sa.Column("first_sequence", sa.BigInteger, nullable=False, server_default="1"))
    op.drop_index("agent_threads_by_user", "agent_threads")
    op.create_index("agent_threads_by_user", "agent_threads", ["tenant", "user_id", "created_us", "thread_key"])
    op.add_column("agent_inbox", sa.Column("on_busy", sa.String(64), nullable=False, server_default="enqueue"))
    op.add_column("agent_inbox", sa.Column("lead_turn", sa.String(128), nullable=False, server_default=""))
