"""Classification of database errors: a lost race, a full disk, or an unavailable store."""

from __future__ import annotations

import contextlib
import errno
import re
import sqlite3
from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from phylactery_chassis.errors import CommitUnknown, StoreFull, Unavailable

STORE_FAULTS = (sa.exc.OperationalError, sa.exc.InternalError, sa.exc.DisconnectionError)
"""What the driver raises if the store itself fails, not the statement."""

_PRIMARY = 0xFF
"""The bits of SQLite's extended error code that hold the primary code."""
_SQLITE_FULL = sqlite3.SQLITE_FULL
_SQLITE_NO_INDEX = sqlite3.SQLITE_IOERR_SHMSIZE
"""SQLite could not extend the index of its log. This happens on a full disk, but is reported as an I/O error."""
_POSTGRES_FULL = "53100"
_LOST_A_RACE = ("40001", "40P01")
"""SQLSTATE of a serialization failure and of a deadlock: the store itself works."""
_GONE = ("08", "57P")
"""SQLSTATE classes of a broken connection and of a server that ends its sessions."""
_TOO_MANY = "53300"
"""SQLSTATE of a server that has no connection left."""
_STAYS = re.compile(
    r"does not exist|authentication|pg_hba|not permitted to log in|permission denied|encryption|certificate|SSL",
    re.IGNORECASE,
)
"""What a server, or libpq, says of a connection that will not be made later either."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def why(error: sa.exc.SQLAlchemyError) -> str:
    """Return the first line of the driver's error, without the statement and its values."""
    text = str(getattr(error, "orig", None) or type(error).__name__).strip()
    return text.splitlines()[0] if text else type(error).__name__


def as_sqlalchemy(connection: Connection, error: Exception) -> Exception:
    """Return SQLAlchemy's error for one of the driver, any other as it is. A lost connection is marked as such."""
    dialect = connection.dialect
    base = dialect.loaded_dbapi.Error
    if not isinstance(error, base):
        return error
    lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)
    if lost:
        connection.invalidate(error)
    wrapped = sa.exc.DBAPIError.instance(
        "", None, error, base, hide_parameters=True, connection_invalidated=lost, dialect=dialect
    )
    return wrapped if isinstance(wrapped, Exception) else error


def is_busy(error: Exception) -> bool:
    """Return True if SQLite's driver waited in vain for another process's lock."""
    return bool(getattr(error, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_BUSY)


def lost_a_race(error: sa.exc.DBAPIError) -> bool:
    """Return True if a concurrent transaction won, so that a retry may succeed at once."""
    return getattr(error.orig, "sqlstate", "") in _LOST_A_RACE


def comes_back(error: sa.exc.SQLAlchemyError) -> bool:
    """Return True if a server that failed this way may work a moment later: not up yet, recovering, or full.

    libpq has no SQLSTATE for a connection that was not made, and the server writes in a language of its own. So what is
    known to stay is listed, and anything else may pass.
    """
    if isinstance(error, sa.exc.DBAPIError) and error.connection_invalidated:
        return True
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    if state:
        return bool(state.startswith(_GONE) or state == _TOO_MANY)
    return isinstance(error, sa.exc.OperationalError) and _STAYS.search(str(error.orig)) is None


def is_full(error: BaseException) -> bool:
    """Return True if a disk was full, by an error of SQLAlchemy, of the driver or of the system."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, OSError):
        return cause.errno in _NO_ROOM
    code = getattr(cause, "sqlite_errorcode", 0)
    full = code & _PRIMARY == _SQLITE_FULL or code == _SQLITE_NO_INDEX
    return full or getattr(cause, "sqlstate", "") == _POSTGRES_FULL


def unavailable(reason: str) -> Unavailable:
    """Return the error for a store that did not accept the request."""
    return Unavailable(
        "STORE_UNAVAILABLE", f"the database did not take it ({reason}), so nothing changed; try again in a moment"
    )


def may_be_kept(error: sa.exc.DBAPIError) -> bool:
    """Return True if a commit that failed this way may have been kept: its response was lost, or a sync failed.

    A commit that the server rejects with an error is rolled back. A broken connection or a server that shuts down says
    nothing about the outcome.
    """
    if is_full(error):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return bool(code & _PRIMARY == sqlite3.SQLITE_IOERR)
    state = getattr(error.orig, "sqlstate", None) or ""
    return not state or state.startswith(_GONE)


def unknown(error: sa.exc.DBAPIError) -> CommitUnknown:
    """Return the error for a commit with unknown outcome."""
    return CommitUnknown(
        "STORE_UNAVAILABLE",
        f"the database connection was lost during the commit ({type(error).__name__}), so the outcome is unknown; "
        f"retry with the same ids: the call is idempotent",
    )


@contextlib.contextmanager
def faults_told() -> Iterator[None]:
    """Convert the store errors raised in the block into domain errors; see fault_of."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        raise fault_of(error) from error


def fault_of(error: BaseException) -> BaseException:
    """Return the domain error for an error in a transaction that was not kept."""
    if not isinstance(error, sa.exc.SQLAlchemyError):
        return error
    return StoreFull() if is_full(error) else unavailable(type(error).__name__)
