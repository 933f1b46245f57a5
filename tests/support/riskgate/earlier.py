"""Databases of earlier versions: what turns one of this version back, for tests of its migrations."""

from __future__ import annotations

import sqlalchemy as sa
from phylactery_chassis.db.database import Database

_UNDO_FAILURES = """
CREATE TABLE undo_failures (
    tenant VARCHAR(128) NOT NULL, tool VARCHAR(128) NOT NULL, fail_us BIGINT NOT NULL,
    execution_id VARCHAR(128) NOT NULL, error_code VARCHAR(64) NOT NULL, PRIMARY KEY (tenant, tool)
)
"""
_BACK = {
    "0019": ("DROP TABLE notices", "DROP TABLE notice_sinks"),
    "0018": ("DROP TABLE undo_failures", _UNDO_FAILURES),
    "0017": ("DROP INDEX audit_entries_by_decision", "ALTER TABLE audit_entries DROP COLUMN decision_id"),
}
"""What leads to each revision from the one after it, the newest first."""


def turn_back(database: Database, revision: str, *more: str) -> None:
    """Turn the schema back to a revision, and run more statements there."""
    steps = [step for to, step in _BACK.items() if to >= revision]
    version = f"UPDATE phylactery_riskgate_version SET version_num = '{revision}'"
    with database.engine.begin() as connection:
        for statement in (*(one for step in steps for one in step), version, *more):
            connection.execute(sa.text(statement))
