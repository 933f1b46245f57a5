"""What the database's own faults mean here: a full disk is said to be one."""

from __future__ import annotations

import sqlite3

import sqlalchemy as sa
from phylactery_chassis.database import Database
from phylactery_chassis.errors import ResourceExhausted
from sqlalchemy.engine import ExceptionContext

_PRIMARY = 0xFF
_DISK_FULL = "53100"
"""PostgreSQL's SQLSTATE of a full disk."""


def watch(database: Database) -> None:
    """Makes a full disk ResourceExhausted STORE_FULL."""

    @sa.event.listens_for(database.engine, "handle_error")
    def _on_error(context: ExceptionContext) -> None:
        code = getattr(context.original_exception, "sqlite_errorcode", 0)
        full = code & _PRIMARY == sqlite3.SQLITE_FULL
        if full or getattr(context.original_exception, "sqlstate", "") == _DISK_FULL:
            raise ResourceExhausted(
                "STORE_FULL", "the disk below the database is full, so nothing changed; make room and try again"
            )
