"""Tables of the saver.

``sequence`` counts a thread's checkpoints in the order they were stored, so that no clock determines the newest. The
tables of values and task writes are not WITHOUT ROWID tables: in a SQLite file their rows, often a page each, are then
appended sequentially, whatever thread they belong to.
"""

from __future__ import annotations

import sqlalchemy as sa

from phylactery_agent.runtime.storage.schema import METADATA

_KEY = sa.String(128)
_PLACE = sa.Text
_ID = sa.String(64)

CHECKPOINTS = sa.Table(
    "agent_checkpoints",
    METADATA,
    sa.Column("thread_id", _KEY, primary_key=True),
    sa.Column("checkpoint_ns", _PLACE, primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("checkpoint_id", _ID, nullable=False),
    sa.Column("parent_id", _ID, nullable=False),
    sa.Column("run_id", _KEY, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("metadata", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("thread_id", "checkpoint_ns", "checkpoint_id", name="agent_checkpoints_once"),
    sqlite_with_rowid=False,
)
sa.Index(
    "agent_checkpoints_by_run",
    CHECKPOINTS.c.run_id,
    sqlite_where=CHECKPOINTS.c.run_id != "",
    postgresql_where=CHECKPOINTS.c.run_id != "",
)

BLOBS = sa.Table(
    "agent_checkpoint_blobs",
    METADATA,
    sa.Column("thread_id", _KEY, primary_key=True),
    sa.Column("checkpoint_ns", _PLACE, primary_key=True),
    sa.Column("channel", _PLACE, primary_key=True),
    sa.Column("version", _ID, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

WRITES = sa.Table(
    "agent_checkpoint_writes",
    METADATA,
    sa.Column("thread_id", _KEY, primary_key=True),
    sa.Column("checkpoint_ns", _PLACE, primary_key=True),
    sa.Column("checkpoint_id", _ID, primary_key=True),
    sa.Column("task_id", _ID, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("task_path", sa.Text, nullable=False),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

TABLES = (CHECKPOINTS, BLOBS, WRITES)
