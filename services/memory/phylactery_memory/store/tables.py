"""The tables, as the newest migration leaves them.

Times are microseconds since the epoch; texts that may hold NUL are bytes.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

_ID = sa.String(128)

outputs = sa.Table(
    "outputs",
    metadata,
    sa.Column("pointer", sa.String(64), primary_key=True),
    sa.Column("tenant", _ID, nullable=False),
    sa.Column("subject", _ID, nullable=False),
    sa.Column("thread_id", _ID, nullable=False),
    sa.Column("run_id", _ID, nullable=False),
    sa.Column("tool_call_id", _ID, nullable=False),
    sa.Column("tool_name", _ID, nullable=False),
    sa.Column("size_chars", sa.BigInteger, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("sha256", sa.String(64), nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("tenant", "subject", "run_id", "tool_call_id", name="uq_outputs_call"),
)

output_chunks = sa.Table(
    "output_chunks",
    metadata,
    sa.Column("pointer", sa.String(64), sa.ForeignKey("outputs.pointer", ondelete="CASCADE"), primary_key=True),
    sa.Column("first_char", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("chars", sa.Integer, nullable=False),
    sa.Column("digest", sa.LargeBinary(32), nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

threads = sa.Table(
    "threads",
    metadata,
    sa.Column("tenant", _ID, primary_key=True),
    sa.Column("subject", _ID, primary_key=True),
    sa.Column("thread_id", _ID, primary_key=True),
    sa.Column("last_sequence", sa.BigInteger, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("update_us", sa.BigInteger, nullable=False),
)

messages = sa.Table(
    "messages_v2",
    metadata,
    sa.Column("tenant", _ID, primary_key=True),
    sa.Column("subject", _ID, primary_key=True),
    sa.Column("thread_id", _ID, primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("message_id", _ID, nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("run_id", _ID, nullable=False),
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
