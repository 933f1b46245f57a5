"""Escalations: conversations that wait for a person or are with one, and the replayable log of each tenant's queue."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_threads", sa.Column("handed_off", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("agent_runs", sa.Column("cancel_reason", sa.String(64), nullable=False, server_default=""))
    op.create_table(
        "agent_escalations",
        sa.Column("escalation_id", sa.String(128), primary_key=True),
        sa.Column("once", sa.String(256), nullable=False),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("thread_key", sa.String(64), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("status", sa.String(64), nullable=False),
        sa.Column("policy", sa.String(64), nullable=False),
        sa.Column("reason", sa.LargeBinary, nullable=False),
        sa.Column("form_id", sa.String(128), nullable=False),
        sa.Column("form_state", sa.LargeBinary, nullable=False),
        sa.Column("language", sa.String(2), nullable=False),
        sa.Column("handler", sa.String(128), nullable=False),
        sa.Column("display_name", sa.String(128), nullable=False),
        sa.Column("claim_until_us", sa.BigInteger, nullable=False),
        sa.Column("opened_us", sa.BigInteger, nullable=False),
        sa.Column("queued_us", sa.BigInteger, nullable=False),
        sa.Column("claimed_us", sa.BigInteger, nullable=False),
        sa.Column("ended_us", sa.BigInteger, nullable=False),
        sa.Column("end_reason", sa.String(64), nullable=False),
        sa.Column("summary", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("tenant", "user_id", "once", name="agent_escalations_once"),
    )
    unended = sa.text("status IN ('open', 'claimed')")
    op.create_index(
        "agent_escalations_one_active",
        "agent_escalations",
        ["thread_key"],
        unique=True,
        sqlite_where=unended,
        postgresql_where=unended,
    )
    op.create_index("agent_escalations_by_thread", "agent_escalations", ["thread_key"])
    op.create_index(
        "agent_escalations_by_queue", "agent_escalations", ["tenant", "status", "opened_us", "escalation_id"]
    )
    op.create_table(
        "agent_escalation_entries",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("escalation_id", sa.String(128), nullable=False),
        sa.Column("once", sa.String(300), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("status", sa.String(64), nullable=False),
        sa.Column("actor", sa.String(128), nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("tenant", "once", name="agent_escalation_entries_once"),
    )
    op.create_index("agent_escalation_entries_of", "agent_escalation_entries", ["escalation_id", "sequence"])
    op.create_table(
        "agent_escalation_queues",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
    )
