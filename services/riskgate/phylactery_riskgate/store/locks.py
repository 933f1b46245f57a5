"""Locks that never wait, but for one: groups of writes that wait inside the database could wait for each other.

Whoever finds a lock taken raises BusyError, is rolled back alone, and is tried again a moment later.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from sqlalchemy.engine import Connection

# Built once: building a statement costs several times what the database takes to run it.
_BY_NUMBER = sa.bindparam("number", type_=sa.BigInteger)
_TRY_LOCK = sa.select(sa.func.pg_try_advisory_xact_lock(_BY_NUMBER))
_TRY_SHARED = sa.select(sa.func.pg_try_advisory_xact_lock_shared(_BY_NUMBER))
_LOCK = sa.select(sa.func.pg_advisory_xact_lock(_BY_NUMBER))


class BusyError(Exception):
    """Another replica is writing the same thing: nothing was done, and trying again is right."""


def take(connection: Connection, name: str) -> None:
    """Take a name until the commit. SQLite has one writer, who has every name. Raise BusyError."""
    if not try_take(connection, name):
        raise BusyError


def try_take(connection: Connection, name: str) -> bool:
    """Take a name until the commit unless another replica has it; say whether it did."""
    if connection.dialect.name != "postgresql":
        return True
    return bool(connection.execute(_TRY_LOCK, {"number": _number(name)}).scalar_one())


def share(connection: Connection, name: str) -> None:
    """Take a name until the commit together with others who share it. Raise BusyError where one has it alone."""
    if connection.dialect.name != "postgresql":
        return
    if not connection.execute(_TRY_SHARED, {"number": _number(name)}).scalar_one():
        raise BusyError


def wait_for(connection: Connection, name: str) -> None:
    """Take a name until the commit as soon as those who share it have committed.

    It waits inside the database, so its caller makes sure that no two wait: see ``take``. Whoever wants to share the
    name meanwhile finds it taken, so that the wait is as long as one group of writes.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK, {"number": _number(name)})


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
