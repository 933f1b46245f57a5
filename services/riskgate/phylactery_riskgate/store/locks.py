"""Locks that never wait, with one exception: writes waiting inside the database could deadlock.

A writer that finds a lock taken raises BusyError, is rolled back alone, and is retried shortly afterwards.
"""

from __future__ import annotations

import hashlib

from phylactery_chassis.db.dialect import dialect_of
from sqlalchemy.engine import Connection


class BusyError(Exception):
    """Another replica is writing the same data: nothing was done, and the caller should retry."""


def take(connection: Connection, name: str) -> None:
    """Lock a name until the commit. SQLite has a single writer, which holds every name. Raise BusyError."""
    if not try_take(connection, name):
        raise BusyError


def try_take(connection: Connection, name: str) -> bool:
    """Lock a name until the commit unless another replica holds it; return True on success."""
    return dialect_of(connection).try_lock(connection, _number(name))


def share(connection: Connection, name: str) -> None:
    """Take a shared lock of a name until the commit. Raise BusyError if it is locked exclusively."""
    if not dialect_of(connection).try_lock(connection, _number(name), shared=True):
        raise BusyError


def wait_for(connection: Connection, name: str) -> None:
    """Lock a name until the commit, once the holders of shared locks have committed.

    It waits inside the database, so the caller ensures that only one waits: see ``take``. New shared locks are refused
    meanwhile, so the wait lasts as long as one group of writes.
    """
    dialect_of(connection).lock(connection, _number(name))


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
