"""Forms that people fill in: where each one stands, sealed, and what became of its submission."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_inbox", sa.Column("form", sa.String(64), nullable=False, server_default=""))
    op.create_table(
        "agent_form_sessions",
        sa.Column("session_id", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("thread_key", sa.String(64), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("form", sa.String(64), nullable=False),
        sa.Column("version", sa.String(71), nullable=False),
        sa.Column("status", sa.String(64), nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=True),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("tool_call_id", sa.String(128), nullable=False),
        sa.Column("started_us", sa.BigInteger, nullable=False),
        sa.Column("updated_us", sa.BigInteger, nullable=False),
        sa.Column("ended_us", sa.BigInteger, nullable=False),
    )
    is_open = sa.text("ended_us = 0")
    op.create_index(
        "agent_form_sessions_one_open",
        "agent_form_sessions",
        ["thread_key"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_index(
        "agent_form_sessions_by_user", "agent_form_sessions", ["tenant", "user_id", "started_us", "session_id"]
    )
