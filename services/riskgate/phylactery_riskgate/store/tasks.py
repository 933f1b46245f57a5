"""Store of tasks and their pieces: one row per task, and one sealed row for the words and for every result.

A task is looked up by its tenant and its user, never by its id alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns
from phylactery_chassis.db.statements import Query, RowInsert, Update
from sqlalchemy.engine import Connection

from phylactery_riskgate.store import asks, locks
from phylactery_riskgate.store.tables import task_pieces, tasks

_T, _P = tasks.c, task_pieces.c


@dataclass(frozen=True, slots=True)
class Task:
    """One request of a user; ``end_us`` is 0 until it is ended, and in the future while others may continue it.

    ``begun`` is a keyed hash of its initial input, ``pieces`` the number of its pieces, including the words, and
    ``size`` their unpacked bytes.
    """

    id: str
    tenant: str
    subject: str
    thread_id: str
    request_id: str
    begun: str
    continues_id: str
    create_us: int
    expire_us: int
    end_us: int
    pieces: int
    size: int

    def over(self, now_us: int) -> bool:
        """Return True if it has expired."""
        return now_us >= self.expire_us

    def open(self, now_us: int) -> bool:
        """Return True if it still accepts calls and results."""
        return not self.end_us and not self.over(now_us)

    def kept(self, now_us: int) -> bool:
        """Return True if it was ended, but another task may still continue it."""
        return now_us < self.end_us and not self.over(now_us)


@dataclass(frozen=True, slots=True)
class PieceRow:
    """The words (number 0, without a tool call), or one result; ``shown`` is a keyed hash of the input.

    ``held`` is the number of values kept, ``cut`` is True if there were more, and ``unproven`` if the tool writes and
    no redemption of its call was known.
    """

    task_id: str
    number: int
    tool_call_id: str
    shown: str
    held: int
    cut: bool
    unproven: bool
    sealed: bytes


_TASK, _PIECE_ROW = Columns(Task, tasks), Columns(PieceRow, task_pieces)
_OF_USER = sa.select(*_TASK.columns).where(_T.tenant == sa.bindparam("tenant"), _T.subject == sa.bindparam("subject"))
_BY_ID = _OF_USER.where(_T.id == sa.bindparam("id"))
_FIND, _FIND_LOCKED = Query(_BY_ID), Query(_BY_ID.with_for_update(skip_locked=True))
_BY_REQUEST = Query(_OF_USER.where(_T.request_id == sa.bindparam("request_id")))
_OPEN = Query(
    sa.select(sa.func.count()).where(
        _T.tenant == sa.bindparam("tenant"),
        _T.subject == sa.bindparam("subject"),
        _T.expire_us > sa.bindparam("now_us"),
        _T.end_us == 0,
    )
)
_KEPT = Query(
    sa.select(sa.func.count()).where(
        _T.tenant == sa.bindparam("tenant"), _T.subject == sa.bindparam("subject"), _T.end_us > sa.bindparam("now_us")
    )
)
_GOES_ON = Query(
    sa.select(sa.func.max(_T.expire_us)).where(
        _T.tenant == sa.bindparam("tenant"),
        _T.thread_id == sa.bindparam("thread_id"),
        _T.subject == sa.bindparam("subject"),
        _T.continues_id == sa.bindparam("id"),
        _T.end_us == 0,
    )
)
# cast, because SQLite returns text, or fails, if a row was altered by hand
_BYTES = sa.cast(_P.sealed, sa.LargeBinary)
_PIECE = Query(
    sa.select(*(_BYTES if column is _P.sealed else column for column in _PIECE_ROW.columns)).where(
        _P.task_id == sa.bindparam("task_id"), _P.tool_call_id == sa.bindparam("tool_call_id")
    )
)
_SEALED = Query(
    sa.select(_P.number, _BYTES)
    .where(_P.task_id == sa.bindparam("task_id"), _P.number >= sa.bindparam("since"))
    .order_by(_P.number)
)
_UNPROVEN = Query(sa.select(sa.func.count()).where(_P.task_id == sa.bindparam("task_id"), _P.unproven == sa.true()))
_ADD_TASK, _ADD_PIECE = RowInsert(tasks, *_TASK.names), RowInsert(task_pieces, *_PIECE_ROW.names)
_GROW = Update(
    sa.update(tasks)
    .where(_T.id == sa.bindparam("at_id"))
    .values(pieces=sa.bindparam("now_pieces"), size=sa.bindparam("now_size"))
)
_END = Update(sa.update(tasks).where(_T.id == sa.bindparam("at_id")).values(end_us=sa.bindparam("now_us"), begun=""))
_KEEP = Update(
    sa.update(tasks)
    .where(_T.id == sa.bindparam("at_id"))
    .values(end_us=sa.bindparam("until_us"), expire_us=sa.bindparam("last_us"))
)
_EMPTY = Update(sa.delete(task_pieces).where(_P.task_id == sa.bindparam("at_id")))
_DROP = Update(sa.delete(tasks).where(_T.id == sa.bindparam("at_id")))


def insert_task(connection: Connection, task: Task, words: PieceRow) -> None:
    """Insert a task and its words. Raise IntegrityError if another process began the same request first."""
    _ADD_TASK.run(connection, [_TASK.values(task)])
    _ADD_PIECE.run(connection, [_PIECE_ROW.values(words)])


def insert_piece(connection: Connection, task: Task, piece: PieceRow, size: int) -> None:
    """Insert a piece of ``size`` bytes into a task that find_task has locked."""
    _ADD_PIECE.run(connection, [_PIECE_ROW.values(piece)])
    _GROW.run(connection, {"at_id": task.id, "now_pieces": piece.number + 1, "now_size": task.size + size})


def find_task(connection: Connection, tenant: str, subject: str, task_id: str, *, lock: bool = False) -> Task | None:
    """Return a task of the user; with lock, other writers are excluded until the commit.

    Raise BusyError if another replica has it locked.
    """
    place = {"tenant": tenant, "subject": subject, "id": task_id}
    row = (_FIND_LOCKED if lock else _FIND).one(connection, place)
    if row is None:
        if lock and _FIND.one(connection, place) is not None:
            raise locks.BusyError
        return None
    return Task(*row)


def find_request(connection: Connection, tenant: str, subject: str, request_id: str) -> Task | None:
    """Return the task a request of the user began."""
    row = _BY_REQUEST.one(connection, {"tenant": tenant, "subject": subject, "request_id": request_id})
    return None if row is None else Task(*row)


def lock_user(connection: Connection, tenant: str, subject: str) -> None:
    """Exclude other replicas from beginning a task of the user until the commit. Raise BusyError."""
    locks.take(connection, f"tasks of {subject} in {tenant}")


def count_open(connection: Connection, tenant: str, subject: str, now_us: int) -> int:
    """Return the number of the user's open tasks."""
    row = _OPEN.one(connection, {"tenant": tenant, "subject": subject, "now_us": now_us})
    return 0 if row is None else int(row[0])


def find_piece(connection: Connection, task: Task, tool_call_id: str) -> PieceRow | None:
    """Return the piece of a tool call."""
    row = _PIECE.one(connection, {"task_id": task.id, "tool_call_id": tool_call_id})
    return None if row is None else PieceRow(*row)


def count_unproven(connection: Connection, task: Task) -> int:
    """Return how many results of a task are unproven."""
    row = _UNPROVEN.one(connection, {"task_id": task.id})
    return 0 if row is None else int(row[0])


def sealed_pieces(connection: Connection, task: Task, since: int = 0) -> list[tuple[int, bytes]]:
    """Return number and sealed bytes of the pieces of a task from a number on, in order."""
    return [(number, bytes(sealed)) for number, sealed in _SEALED.all(connection, {"task_id": task.id, "since": since})]


def end_task(connection: Connection, task: Task, now_us: int) -> None:
    """End a task and erase its pieces."""
    _EMPTY.run(connection, {"at_id": task.id})
    _END.run(connection, {"at_id": task.id, "now_us": now_us})


def keep_task(connection: Connection, task: Task, until_us: int) -> None:
    """End a task, but keep its pieces until a time for tasks that continue it."""
    _KEEP.run(connection, {"at_id": task.id, "until_us": until_us, "last_us": max(task.expire_us, until_us)})


def count_kept(connection: Connection, tenant: str, subject: str, now_us: int) -> int:
    """Return the number of the user's ended tasks that can still be continued."""
    row = _KEPT.one(connection, {"tenant": tenant, "subject": subject, "now_us": now_us})
    return 0 if row is None else int(row[0])


def last_going_on(connection: Connection, task: Task) -> int:
    """Return the expiry of the open task that continues this one, or 0."""
    place = {"tenant": task.tenant, "thread_id": task.thread_id, "subject": task.subject, "id": task.id}
    row = _GOES_ON.one(connection, place)
    return 0 if row is None or row[0] is None else int(row[0])


def find_kept_over(connection: Connection, now_us: int, limit: int) -> list[Task]:
    """Return ended tasks of any tenant that still have pieces but cannot be continued any more."""
    query = (
        sa.select(*_TASK.columns)
        .select_from(task_pieces.join(tasks, _P.task_id == _T.id))
        .where(_P.number == 0, _T.end_us > 0, _T.end_us <= now_us)
        .limit(limit)
    )
    return [Task(*row) for row in connection.execute(query.with_for_update(skip_locked=True, of=tasks))]


def drop_task(connection: Connection, task_id: str) -> None:
    """Delete a task with its pieces, and the uses and retractions of its asks."""
    asks.drop(connection, task_id)
    _EMPTY.run(connection, {"at_id": task_id})
    _DROP.run(connection, {"at_id": task_id})


def find_over(connection: Connection, before_us: int, limit: int) -> list[str]:
    """Return tasks of any tenant that expired by a time, except those that another replica writes to."""
    query = sa.select(_T.id).where(_T.expire_us <= before_us).order_by(_T.expire_us).limit(limit)
    return list(connection.execute(query.with_for_update(skip_locked=True)).scalars())


def find_unended(
    connection: Connection,
    tenant: str,
    limit: int,
    *,
    subject: str,
    thread_id: str,
    start_us: int,
    end_us: int,
    now_us: int,
) -> list[tuple[str, str]]:
    """Return user and id of the tenant's tasks with pieces, begun from start_us on and before end_us.

    An empty subject or thread_id matches all, and an end_us of 0 means no end.
    """
    kept = sa.or_(_T.end_us == 0, _T.end_us > now_us)
    query = sa.select(_T.subject, _T.id).where(_T.tenant == tenant, kept, _T.create_us >= start_us)
    for column, value in ((_T.subject, subject), (_T.thread_id, thread_id)):
        query = query.where(column == value) if value else query
    query = query.where(_T.create_us < end_us) if end_us else query
    return [(row.subject, row.id) for row in connection.execute(query.limit(limit))]
