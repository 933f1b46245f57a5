"""The agent's first schema: threads, runs, inbox, events, the ledger of effects, the outbox."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _events() -> None:
    op.create_table(
        "agent_events",
        sa.Column("thread_key", sa.String(64), primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("turn_id", sa.String(128), nullable=False),
        sa.Column("once", sa.String(256), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("run_id", "turn_id", "once", name="agent_events_once"),
    )
    op.create_index("agent_events_by_turn", "agent_events", ["turn_id", "sequence"])


def _inbox() -> None:
    op.create_table(
        "agent_inbox",
        sa.Column("turn_id", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("source", sa.String(128), nullable=False),
        sa.Column("message_id", sa.String(256), nullable=False),
        sa.Column("body_hash", sa.String(71), nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("thread_key", sa.String(64), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("language", sa.String(2), nullable=False),
        sa.Column("sealed_code", sa.LargeBinary, nullable=True),
        sa.Column("level", sa.String(64), nullable=False),
        sa.Column("credential_hash", sa.String(71), nullable=False),
        sa.Column("traceparent", sa.String(64), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("resumed", sa.Boolean, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("handled_us", sa.BigInteger, nullable=False),
        sa.Column("run_status", sa.String(64), nullable=False),
        sa.Column("run_reason", sa.String(64), nullable=False),
        sa.Column("approval_id", sa.String(128), nullable=False),
        sa.Column("reply_id", sa.String(128), nullable=False),
        sa.Column("reply_text", sa.LargeBinary, nullable=False),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("tenant", "source", "message_id", name="agent_inbox_once"),
        sa.UniqueConstraint("thread_key", "position", name="agent_inbox_order"),
    )
    op.create_index("agent_inbox_waiting", "agent_inbox", ["state", "thread_key"])


def _outbox() -> None:
    op.create_table(
        "agent_outbox",
        sa.Column(
            "outbox_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True
        ),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("once", sa.String(256), nullable=False, unique=True),
        sa.Column("thread_key", sa.String(64), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("traceparent", sa.String(64), nullable=False),
        sa.Column("state", sa.String(64), nullable=False),
        sa.Column("refusal", sa.String(64), nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("settled_us", sa.BigInteger, nullable=False),
    )
    op.create_index("agent_outbox_waiting", "agent_outbox", ["state", "kind", "thread_key"])


def _runs() -> None:
    op.create_table(
        "agent_runs",
        sa.Column("run_id", sa.String(128), primary_key=True),
        sa.Column("thread_key", sa.String(64), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("graph", sa.String(64), nullable=False),
        sa.Column("language", sa.String(2), nullable=False),
        sa.Column("status", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(64), nullable=False),
        sa.Column("approval_id", sa.String(128), nullable=False),
        sa.Column("turn_id", sa.String(128), nullable=False),
        sa.Column("trace_id", sa.String(32), nullable=False),
        sa.Column("steps", sa.Text, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("lease_owner", sa.String(128), nullable=False),
        sa.Column("lease_until_us", sa.BigInteger, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("updated_us", sa.BigInteger, nullable=False),
    )
    op.create_index("agent_runs_by_status", "agent_runs", ["status"])
    op.create_index("agent_runs_by_thread", "agent_runs", ["thread_key", "created_us"])
    active = sa.text("status IN ('queued', 'running', 'suspended')")
    op.create_index(
        "agent_runs_one_active", "agent_runs", ["thread_key"], unique=True, sqlite_where=active, postgresql_where=active
    )


def _threads() -> None:
    op.create_table(
        "agent_threads",
        sa.Column("thread_key", sa.String(64), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
        sa.Column("last_position", sa.BigInteger, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("updated_us", sa.BigInteger, nullable=False),
    )


def _tool_calls() -> None:
    op.create_table(
        "agent_tool_calls",
        sa.Column("run_id", sa.String(128), primary_key=True),
        sa.Column("tool_call_id", sa.String(128), primary_key=True),
        sa.Column("ordinal", sa.BigInteger, nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("plan_step", sa.String(128), nullable=False),
        sa.Column("state", sa.String(64), nullable=False),
        sa.Column("execution_id", sa.String(128), nullable=False),
        sa.Column("effect_key", sa.String(128), nullable=False),
        sa.Column("args_hash", sa.String(71), nullable=False),
        sa.Column("status", sa.String(64), nullable=False),
        sa.Column("error_code", sa.String(64), nullable=False),
        sa.Column("output", sa.LargeBinary, nullable=True),
        sa.Column("size_chars", sa.BigInteger, nullable=False),
        sa.Column("pointer", sa.String(128), nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("updated_us", sa.BigInteger, nullable=False),
    )


def upgrade() -> None:
    _events()
    _inbox()
    _outbox()
    _runs()
    _threads()
    _tool_calls()
