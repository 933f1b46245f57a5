"""What a fault of the database means to whoever waited for it: a race lost, a full disk, or a store that is away."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator

import sqlalchemy as sa

from phylactery_chassis.errors import AnswerLost, StoreFull, Unavailable

STORE_FAULTS = (sa.exc.OperationalError, sa.exc.InternalError, sa.exc.DisconnectionError)
"""What the driver raises where the store itself fails, and not the statement."""

_PRIMARY = 0xFF
_SQLITE_FULL = sqlite3.SQLITE_FULL
_SQLITE_NO_INDEX = sqlite3.SQLITE_IOERR_SHMSIZE
"""SQLite could not lengthen the index of its log: it says so of a full disk, and calls it an I/O error."""
_POSTGRES_FULL = "53100"
_LOST_A_RACE = ("40001", "40P01")
"""SQLSTATE of a serialization failure and of a deadlock: nothing is wrong with the store."""
_GONE = ("08", "57P")
"""Classes of SQLSTATE of a connection that broke and of a server that ends its sessions."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def why(error: sa.exc.SQLAlchemyError) -> str:
    """Return the driver's own first line; the statement and its values stay out of it."""
    text = str(getattr(error, "orig", None) or type(error).__name__).strip()
    return text.splitlines()[0] if text else type(error).__name__


def lost_a_race(error: sa.exc.DBAPIError) -> bool:
    """Return whether another process was faster, so that the same may work again at once."""
    return getattr(error.orig, "sqlstate", "") in _LOST_A_RACE


def is_full(error: BaseException) -> bool:
    """Return whether a disk had no room left: SQLAlchemy's error, the driver's own, or the system's."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, OSError):
        return cause.errno in _NO_ROOM
    code = getattr(cause, "sqlite_errorcode", 0)
    full = code & _PRIMARY == _SQLITE_FULL or code == _SQLITE_NO_INDEX
    return full or getattr(cause, "sqlstate", "") == _POSTGRES_FULL


def unavailable(reason: str) -> Unavailable:
    """Return the error of a store that did not take it."""
    return Unavailable(
        "STORE_UNAVAILABLE", f"the database did not take it ({reason}), so nothing changed; try again in a moment"
    )


def may_be_kept(error: sa.exc.DBAPIError) -> bool:
    """Return whether a commit that ended so may stand all the same: its answer was lost, or a sync of it failed.

    What the server refused it has undone, and say why; a connection that broke, or a server that goes down, do not.
    """
    if is_full(error):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return bool(code & _PRIMARY == sqlite3.SQLITE_IOERR)
    state = getattr(error.orig, "sqlstate", None) or ""
    return not state or state.startswith(_GONE)


def unknown(error: sa.exc.DBAPIError) -> AnswerLost:
    """Return the error of a commit that may be kept."""
    return AnswerLost(
        "STORE_UNAVAILABLE",
        f"the database went away at the commit ({type(error).__name__}), so it is not known whether this was recorded; "
        "ask again with the same ids: what was recorded is answered, and nothing is done twice",
    )


@contextlib.contextmanager
def faults_told() -> Iterator[None]:
    """Raise what the block's store did as what services know it as; see fault_of."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        raise fault_of(error) from error


def fault_of(error: BaseException) -> BaseException:
    """Return what a caller is told of a fault in a transaction, none of which is kept."""
    if not isinstance(error, sa.exc.SQLAlchemyError):
        return error
    return StoreFull() if is_full(error) else unavailable(type(error).__name__)
