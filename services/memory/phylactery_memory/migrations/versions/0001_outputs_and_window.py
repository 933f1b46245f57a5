"""Outputs with their chunks, and threads with their messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "outputs",
        sa.Column("pointer", sa.String(64), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("subject", sa.String(128), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("tool_call_id", sa.String(128), nullable=False),
        sa.Column("tool_name", sa.String(128), nullable=False),
        sa.Column("size_chars", sa.BigInteger, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("tenant", "subject", "run_id", "tool_call_id", name="uq_outputs_call"),
    )
    op.create_table(
        "output_chunks",
        sa.Column("pointer", sa.String(64), sa.ForeignKey("outputs.pointer", ondelete="CASCADE"), primary_key=True),
        sa.Column("first_char", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("chars", sa.Integer, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "threads",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("thread_id", sa.String(128), primary_key=True),
        sa.Column("last_sequence", sa.BigInteger, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.Column("update_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "messages_v2",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("thread_id", sa.String(128), primary_key=True),
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("message_id", sa.String(128), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.Column("chars", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "subject", "thread_id"],
            ["threads.tenant", "threads.subject", "threads.thread_id"],
            name="fk_messages_v2_thread",
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint("tenant", "subject", "thread_id", "message_id", name="uq_messages_v2_message"),
    )
