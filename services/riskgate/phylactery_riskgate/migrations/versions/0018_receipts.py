"""Entries say which decision they are about, so that its receipt is found without reading the log."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_AT_ONCE = 1_000
_ENTRIES = sa.table(
    "audit_entries", sa.column("log"), sa.column("position"), sa.column("record"), sa.column("decision_id")
)
_APPROVALS = sa.table("approvals", sa.column("id"), sa.column("decision_id"))


def upgrade() -> None:
    """Add the column, and copy it from the records that are there; those of an approval did not name its decision."""
    op.add_column("audit_entries", sa.Column("decision_id", sa.String(128), nullable=False, server_default=""))
    connection, columns = op.get_bind(), _ENTRIES.c
    by_approval = {row.id: row.decision_id for row in connection.execute(sa.select(_APPROVALS))}
    change = (
        sa.update(_ENTRIES)
        .where(columns.log == sa.bindparam("at_log"), columns.position == sa.bindparam("at"))
        .values(decision_id=sa.bindparam("about"))
    )
    for log in list(connection.execute(sa.select(columns.log).distinct()).scalars()):
        first = 0
        while True:
            query = sa.select(columns.position, columns.record).where(columns.log == log, columns.position >= first)
            found = connection.execute(query.order_by(columns.position).limit(_AT_ONCE)).all()
            if not found:
                break
            first = found[-1].position + 1
            read = ((row.position, _about(row.record, by_approval)) for row in found)
            changes = [{"at_log": log, "at": at, "about": about} for at, about in read if about]
            if changes:
                connection.execute(change, changes)
    some = sa.text("decision_id != ''")
    op.create_index(
        "audit_entries_by_decision",
        "audit_entries",
        ["tenant", "decision_id"],
        sqlite_where=some,
        postgresql_where=some,
    )


def _about(data: Any, by_approval: dict[str, str]) -> str:
    """Return the decision a record is about; empty for none, and for one that was emptied or altered."""
    try:
        record = json.loads(data if isinstance(data, str) else bytes(data))
    except (ValueError, RecursionError):
        return ""
    if not isinstance(record, dict) or record.get("kind") == "shadow_difference":
        return ""
    named = record.get("decision_id") or record.get("evaluation_id")
    about = named or by_approval.get(str(record.get("approval_id")), "")
    return about if isinstance(about, str) else ""
