"""Locks that never wait: a group of writes that waited inside the database could wait for one that waits for it.

Whoever finds a lock taken raises BusyError, is rolled back alone, and is tried again a moment later.
"""

from __future__ import annotations

import hashlib

import sqlalchemy as sa
from sqlalchemy.engine import Connection

# Built once: building a statement costs several times what the database takes to run it.
_TRY_LOCK = sa.select(sa.func.pg_try_advisory_xact_lock(sa.bindparam("number", type_=sa.BigInteger)))


class BusyError(Exception):
    """Another replica is writing the same thing: nothing was done, and trying again is right."""


def take(connection: Connection, name: str) -> None:
    """Takes a name until the commit. SQLite has one writer, who has every name. Raises BusyError."""
    if not try_take(connection, name):
        raise BusyError


def try_take(connection: Connection, name: str) -> bool:
    """Takes a name until the commit unless another replica has it; says whether it did."""
    if connection.dialect.name != "postgresql":
        return True
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    return bool(connection.execute(_TRY_LOCK, {"number": number}).scalar_one())
