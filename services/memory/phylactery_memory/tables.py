"""The tables, as of the newest migration.

Times are microseconds since the epoch; texts that may contain NUL are stored as bytes.
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
    sa.Column("size_lines", sa.BigInteger, nullable=False),
    sa.Column("expire_us", sa.BigInteger, nullable=False),
    sa.Column("stored", sa.Boolean, nullable=False),
    sa.Column("key_id", sa.String(64), nullable=False),
    sa.Column("seal", sa.LargeBinary, nullable=True),
    sa.UniqueConstraint("tenant", "subject", "run_id", "tool_call_id", name="uq_outputs_call"),
    sa.Index("ix_outputs_newest", "tenant", "subject", "create_us", "pointer"),
    sa.Index("ix_outputs_expiry", "expire_us"),
)

output_chunks = sa.Table(
    "output_chunks",
    metadata,
    sa.Column("pointer", sa.String(64), sa.ForeignKey("outputs.pointer", ondelete="CASCADE"), primary_key=True),
    sa.Column("first_char", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("chars", sa.Integer, nullable=False),
    sa.Column("digest", sa.LargeBinary(32), nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("first_break", sa.BigInteger, nullable=False),
    sa.Column("breaks", sa.BigInteger, nullable=False),
    sa.Column("line_start", sa.BigInteger, nullable=False),
    sa.Column("object_start", sa.BigInteger, nullable=False),
    sa.Column("object_bytes", sa.BigInteger, nullable=False),
)
"""A chunk's body is in this row or, if object_bytes is not 0, in the output's object."""

object_stores = sa.Table(
    "object_stores",
    metadata,
    sa.Column("slot", sa.SmallInteger, primary_key=True, autoincrement=False),
    sa.Column("folder", sa.String(64), nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
)
"""At most one row, in slot 1: the database's folder in the bucket."""

output_objects = sa.Table(
    "output_objects",
    metadata,
    sa.Column("pointer", sa.String(64), primary_key=True),
    sa.Column("doomed", sa.Boolean, nullable=False),
    sa.Column("key_id", sa.String(64), nullable=False, server_default=""),
    sa.Column("erasure_id", sa.String(64), nullable=False, server_default=""),
    sa.Index("ix_output_objects_doomed", "doomed"),
)
"""One row per object. A doomed object is to be removed, and its row outlives the output until then. It holds the key
its text was sealed under, empty if no output recorded it, and the erasure it belongs to. So an erasure finds what its
user removed earlier, and waits only for its own objects."""

user_keys = sa.Table(
    "user_keys",
    metadata,
    sa.Column("tenant", _ID, primary_key=True),
    sa.Column("subject", _ID, primary_key=True),
    sa.Column("key_id", sa.String(64), nullable=False),
    sa.Column("master_id", sa.String(16), nullable=False),
    sa.Column("wrapped", sa.LargeBinary, nullable=False),
    sa.Column("used_bytes", sa.BigInteger, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
)
"""One row per user with outputs: the wrapped key of their texts, and their use of the quota."""

master_keys = sa.Table(
    "master_keys",
    metadata,
    sa.Column("master_id", sa.String(16), primary_key=True),
    sa.Column("create_us", sa.BigInteger, nullable=False),
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

thread_deletions = sa.Table(
    "thread_deletions",
    metadata,
    sa.Column("tenant", _ID, primary_key=True),
    sa.Column("subject", _ID, primary_key=True),
    sa.Column("request_id", _ID, primary_key=True),
    sa.Column("messages", sa.BigInteger, nullable=False),
    sa.Column("outputs", sa.BigInteger, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("thread_hash", sa.String(71), nullable=False, server_default=""),
)
"""Deletion requests, so that each runs once. They name no thread; thread_hash identifies it."""

memory_owners = sa.Table(
    "memory_owners",
    metadata,
    sa.Column("owner_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
    sa.Column("tenant", _ID, nullable=False),
    sa.Column("subject", _ID, nullable=False),
    sa.Column("last_number", sa.BigInteger, nullable=False),
    sa.Column("memories", sa.BigInteger, nullable=False),
    sa.Column("index_version", sa.String(64), nullable=False),
    sa.UniqueConstraint("tenant", "subject", name="uq_memory_owners"),
)
"""One row per user with memories; deleting it deletes everything below it."""

_OWNER = "memory_owners.owner_id"

user_memory = sa.Table(
    "user_memory",
    metadata,
    sa.Column("owner_id", sa.BigInteger, sa.ForeignKey(_OWNER, ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("memory_id", sa.String(64), nullable=False),
    sa.Column("text", sa.LargeBinary, nullable=False),
    sa.Column("layer", sa.SmallInteger, nullable=False),
    sa.Column("kind", sa.SmallInteger, nullable=False),
    sa.Column("source", sa.SmallInteger, nullable=False),
    sa.Column("trust", sa.SmallInteger, nullable=False),
    sa.Column("lineage", sa.Text, nullable=False),
    sa.Column("importance", sa.Float, nullable=False),
    sa.Column("thread_id", _ID, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("about", _ID, nullable=False),
    sa.Column("attribute", _ID, nullable=False),
    sa.Column("valid_us", sa.BigInteger, nullable=False),
    sa.Column("invalid_us", sa.BigInteger, nullable=False),
    sa.Column("supersedes", sa.Text, nullable=False),
    sa.Column("superseded_by", sa.String(64), nullable=False),
    sa.Column("content_hash", sa.String(71), nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("update_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("memory_id", name="uq_user_memory_id"),
    sa.Index("ix_user_memory_content", "owner_id", "content_hash"),
    sa.Index("ix_user_memory_attribute", "owner_id", "about", "attribute"),
)

memory_records = sa.Table(
    "memory_records",
    metadata,
    sa.Column("owner_id", sa.BigInteger, sa.ForeignKey(_OWNER, ondelete="CASCADE"), primary_key=True),
    sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

memory_postings = sa.Table(
    "memory_postings",
    metadata,
    sa.Column("owner_id", sa.BigInteger, sa.ForeignKey(_OWNER, ondelete="CASCADE"), primary_key=True),
    sa.Column("term", sa.String(64), primary_key=True),
    sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

memory_vectors = sa.Table(
    "memory_vectors",
    metadata,
    sa.Column("owner_id", sa.BigInteger, sa.ForeignKey(_OWNER, ondelete="CASCADE"), primary_key=True),
    sa.Column("model", sa.String(128), primary_key=True),
    sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

pending_vectors = sa.Table(
    "pending_vectors",
    metadata,
    sa.Column("owner_id", sa.BigInteger, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("due_us", sa.BigInteger, nullable=False),
    sa.ForeignKeyConstraint(
        ["owner_id", "number"],
        ["user_memory.owner_id", "user_memory.number"],
        name="fk_pending_vectors_memory",
        ondelete="CASCADE",
    ),
    sa.Index("ix_pending_vectors_due", "due_us"),
)
"""Memories written while the embeddings endpoint was unavailable; a row is removed with its memory or once it is
embedded."""

profile_owners = sa.Table(
    "profile_owners",
    metadata,
    sa.Column("tenant", _ID, primary_key=True),
    sa.Column("subject", _ID, primary_key=True),
    sa.Column("revision", sa.BigInteger, nullable=False),
)
"""One row per user with a profile, locked by every change to it."""

memory_profile = sa.Table(
    "memory_profile",
    metadata,
    sa.Column("tenant", _ID, primary_key=True),
    sa.Column("subject", _ID, primary_key=True),
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("value", sa.LargeBinary, nullable=False),
    sa.Column("source", sa.SmallInteger, nullable=False),
    sa.Column("trust", sa.SmallInteger, nullable=False),
    sa.Column("lineage", sa.Text, nullable=False),
    sa.Column("memory_id", sa.String(64), nullable=False),
    sa.Column("valid_us", sa.BigInteger, nullable=False),
    sa.Column("invalid_us", sa.BigInteger, nullable=False),
    sa.ForeignKeyConstraint(
        ["tenant", "subject"],
        ["profile_owners.tenant", "profile_owners.subject"],
        name="fk_memory_profile_owner",
        ondelete="CASCADE",
    ),
)

erasures = sa.Table(
    "erasures",
    metadata,
    sa.Column("erasure_id", sa.String(64), primary_key=True),
    sa.Column("tenant", _ID, nullable=False),
    sa.Column("subject_hash", sa.String(71), nullable=False),
    sa.Column("salt", sa.String(32), nullable=False),
    sa.Column("request_hash", sa.String(71), nullable=False),
    sa.Column("record", sa.Text, nullable=False),
    sa.Index("ix_erasures_request", "request_hash"),
)
"""Completed erasures, without names: these rows outlive the user's data."""
