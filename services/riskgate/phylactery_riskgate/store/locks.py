"""Locks that never wait, with one exception: writes waiting inside the database could deadlock.

A writer that finds a lock taken raises BusyError, is rolled back alone, and is retried shortly afterwards.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from sqlalchemy.engine import Connection

# built once: building a statement costs several times what the database takes to run it
_BY_NUMBER = sa.bindparam("number", type_=sa.BigInteger)
_TRY_LOCK = sa.select(sa.func.pg_try_advisory_xact_lock(_BY_NUMBER))
_TRY_SHARED = sa.select(sa.func.pg_try_advisory_xact_lock_shared(_BY_NUMBER))
_LOCK = sa.select(sa.func.pg_advisory_xact_lock(_BY_NUMBER))


class BusyError(Exception):
    """Another replica is writing the same data: nothing was done, and the caller should retry."""


def take(connection: Connection, name: str) -> None:
    """Lock a name until the commit. SQLite has a single writer, which holds every name. Raise BusyError."""
    if not try_take(connection, name):
        raise BusyError


def try_take(connection: Connection, name: str) -> bool:
    """Lock a name until the commit unless another replica holds it; return True on success."""
    if connection.dialect.name != "postgresql":
        return True
    return bool(connection.execute(_TRY_LOCK, {"number": _number(name)}).scalar_one())


def share(connection: Connection, name: str) -> None:
    """Take a shared lock of a name until the commit. Raise BusyError if it is locked exclusively."""
    if connection.dialect.name != "postgresql":
        return
    if not connection.execute(_TRY_SHARED, {"number": _number(name)}).scalar_one():
        raise BusyError


def wait_for(connection: Connection, name: str) -> None:
    """Lock a name until the commit, once the holders of shared locks have committed.

    It waits inside the database, so the caller ensures that only one waits: see ``take``. New shared locks are refused
    meanwhile, so the wait lasts as long as one group of writes.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"number": _number(name)})


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
