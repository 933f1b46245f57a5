"""One log per writing process: rows name the log of their record, and entries are found by time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BATCH = 500
_ENTRIES = sa.table("audit_entries", *(sa.column(name) for name in ("log", "position", "record")))


def upgrade() -> None:
    """Add the columns and fill them from the records, which contain the same data."""
    for table in ("decisions", "redemptions", "outcomes"):
        op.add_column(table, sa.Column("audit_log", sa.String(128), nullable=False, server_default=""))
    for name, kind in (
        ("tenant", sa.String(128)),
        ("subject", sa.String(128)),
        ("kind", sa.String(32)),
    ):
        op.add_column("audit_entries", sa.Column(name, kind, nullable=False, server_default=""))
    op.add_column("audit_entries", sa.Column("time_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("audit_logs", sa.Column("last_us", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "audit_subtrees",
        sa.Column("log", sa.String(128), sa.ForeignKey("audit_logs.name"), primary_key=True),
        sa.Column("tier", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("head", sa.LargeBinary, nullable=False),
    )
    _fill(op.get_bind())
    op.create_index("audit_entries_by_time", "audit_entries", ["tenant", "time_us", "log", "position"])


def _fill(connection: sa.Connection) -> None:
    latest: dict[str, int] = {}
    for log, position, record in _records(connection):
        place = {"log": log, "position": position}
        words = {name: _word(record.get(name)) for name in _WORDS}
        time_us = record.get("time_us")
        when = time_us if isinstance(time_us, int) and 0 <= time_us < 2**63 else 0
        latest[log] = max(when, latest.get(log, 0))  # a clock that was set back does not change the order
        connection.execute(_FILL_ENTRY, place | words | {"time_us": latest[log]})
        if words["kind"] in _FILL_ROW:
            connection.execute(_FILL_ROW[words["kind"]], place | words)
    for log, last_us in latest.items():
        connection.execute(_FILL_HEAD, {"log": log, "last_us": last_us})


def _word(value: object) -> str:
    """Return a name that fits its column; empty if the record was altered."""
    return value if isinstance(value, str) and len(value) <= _MAX_WORD else ""


_MAX_WORD = 128
_WORDS = ("tenant", "subject", "kind", "decision_id", "execution_id")
_FILL_ENTRY = sa.text(
    "UPDATE audit_entries SET tenant = :tenant, subject = :subject, kind = :kind, time_us = :time_us "
    "WHERE log = :log AND position = :position"
)
_FILL_HEAD = sa.text("UPDATE audit_logs SET last_us = :last_us WHERE name = :log")
_FILL_ROW = {
    "decision": sa.text("UPDATE decisions SET audit_log = :log WHERE id = :decision_id"),
    "redeemed": sa.text(
        "UPDATE redemptions SET audit_log = :log "
        "WHERE tenant = :tenant AND subject = :subject AND execution_id = :execution_id"
    ),
    "outcome": sa.text(
        "UPDATE outcomes SET audit_log = :log WHERE tenant = :tenant AND subject = :subject "
        "AND execution_id = :execution_id AND audit_index = :position"
    ),
}


def _records(connection: sa.Connection) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield every record, in batches; one that is not a JSON object any more is left for the verifier."""
    logs = connection.execute(sa.select(_ENTRIES.c.log).distinct().order_by(_ENTRIES.c.log)).scalars().all()
    for log in logs:
        last = -1
        while rows := connection.execute(
            sa.select(_ENTRIES.c.position, _ENTRIES.c.record)
            .where(_ENTRIES.c.log == log, _ENTRIES.c.position > last)
            .order_by(_ENTRIES.c.position)
            .limit(_BATCH)
        ).all():
            for position, data in rows:
                try:
                    record = json.loads(data)
                except (ValueError, RecursionError):
                    continue
                if isinstance(record, dict):
                    yield log, position, record
            last = rows[-1].position
