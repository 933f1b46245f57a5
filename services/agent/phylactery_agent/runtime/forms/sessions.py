"""Form sessions: one open per thread, started once, changed in the transaction that ends a turn, sealed at rest."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, Record, RowUpdate
from phylactery_chassis.errors import FailedPrecondition, NotFound
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection, Row
from sqlalchemy.exc import IntegrityError

from phylactery_agent.ports import EffectState
from phylactery_agent.runtime.forms.metrics import BEGUN, Answer, answered, session_changed
from phylactery_agent.runtime.guests.shares import NO_LIMITS, Shares, spent_error
from phylactery_agent.runtime.runs.queries import before, page_of
from phylactery_agent.runtime.runs.status import RunStatus
from phylactery_agent.runtime.storage.records import Lease, OfThread, Owner, Page
from phylactery_agent.runtime.storage.schema import FORM_SESSIONS, RUNS, THREADS, TOOL_CALLS
from phylactery_agent.runtime.storage.sealing import Sealer

ENDED: Final = frozenset({"submitted", "cancelled", "escalated", EffectState.IN_DOUBT.value})
"""Statuses of a session in which nothing more is asked."""

_OPEN = Query(
    sa.select(FORM_SESSIONS).where(
        FORM_SESSIONS.c.thread_key == sa.bindparam("of_thread"), FORM_SESSIONS.c.ended_us == sa.literal_column("0")
    )
)
_NEWEST = Query(
    sa.select(FORM_SESSIONS)
    .where(FORM_SESSIONS.c.thread_key == sa.bindparam("of_thread"))
    .order_by(FORM_SESSIONS.c.started_us.desc(), FORM_SESSIONS.c.session_id.desc())
    .limit(1)
)
_KNOWN = Query(
    sa.select(FORM_SESSIONS.c.session_id, FORM_SESSIONS.c.state)
    .where(
        FORM_SESSIONS.c.tenant == sa.bindparam("of_tenant"),
        FORM_SESSIONS.c.user_id == sa.bindparam("of_user"),
        FORM_SESSIONS.c.status == "submitted",
        FORM_SESSIONS.c.state.is_not(None),
    )
    .order_by(FORM_SESSIONS.c.started_us.desc(), FORM_SESSIONS.c.session_id.desc())
    .limit(5)
)
"""What is known of a person by their last submissions, the newest first."""
_RUN = Query(sa.select(RUNS).where(RUNS.c.run_id == sa.bindparam("of_run")).with_for_update())
_CALL = Query(
    sa.select(TOOL_CALLS.c.state, TOOL_CALLS.c.status).where(
        TOOL_CALLS.c.run_id == sa.bindparam("of_run"), TOOL_CALLS.c.tool_call_id == sa.bindparam("of_call")
    )
)
_SET = RowUpdate(FORM_SESSIONS, "session_id")


@dataclass(frozen=True, slots=True)
class StoredSession(OfThread):
    """One row; run_id and tool_call_id are those of its submission, empty before there is one."""

    session_id: str
    owner: Owner
    thread_id: str
    form: str
    version: str
    status: str
    run_id: str
    tool_call_id: str
    started_us: int
    updated_us: int
    ended_us: int
    state: Mapping[str, Any] | None = None
    """The conversation's state; None once the form has ended."""


@dataclass(frozen=True, slots=True)
class SessionChange:
    """How a turn leaves a session: written in the transaction that ends the turn.

    supersedes is a run that waits for the approval of an earlier submission, which this turn replaced.
    """

    session_id: str
    form: str
    version: str
    status: str
    sealed: bytes | None
    opens: bool = False
    known: bytes | None = None
    """Who the person is, sealed: kept of a submitted session for "same as before"."""
    run_id: str = ""
    tool_call_id: str = ""
    supersedes: str = ""
    answer: Answer = ""
    """What the turn's message came to."""

    @property
    def ended(self) -> bool:
        """Return True if nothing more is asked in the session."""
        return self.status in ENDED

    def count(self) -> None:
        """Count the turn in the metrics; call it once, after the change is durable."""
        if self.opens:
            session_changed(self.form, BEGUN)
        if self.ended:
            session_changed(self.form, self.status)
        answered(self.form, self.answer)


_SESSION = Columns(StoredSession, FORM_SESSIONS, besides=("owner", "state"))


class FormSessions:
    """Store of form sessions. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database, clock: Clock, sealer: Sealer, shares: Shares = NO_LIMITS) -> None:
        """``shares`` limits how many forms each person may begin a day."""
        self._shares = shares
        self._database, self._clock, self._sealer = database, clock, sealer

    async def open_in(self, thread_key: str) -> StoredSession | None:
        """Return the open session of a thread, or None."""

        def work(connection: Connection) -> Record | None:
            return _OPEN.one(connection, {"of_thread": thread_key})

        return self._read(await self._database.read_quickly(work, one=True))

    async def newest_in(self, owner: Owner, thread_id: str) -> StoredSession:
        """Return the newest session of one of the owner's threads. Raise NotFound FORM_NOT_OPEN."""

        def work(connection: Connection) -> Record | None:
            return _NEWEST.one(connection, {"of_thread": owner.thread_key(thread_id)})

        found = self._read(await self._database.read_quickly(work, one=True))
        if found is None:
            raise NotFound(
                "FORM_NOT_OPEN", f"no form was started in thread '{thread_id}'", metadata={"thread_id": thread_id}
            )
        return found

    async def start(
        self,
        owner: Owner,
        thread_id: str,
        *,
        form: str,
        version: str,
        state: Mapping[str, Any],
        opens_graph: str,
        level: str = "",
    ) -> StoredSession:
        """Open a session, and its thread where there is none yet; the same form, already open, is returned as it is.

        ``level`` is the caller's. Raise FailedPrecondition FORM_OPEN if another form is open in the thread, and
        ResourceExhausted DAILY_LIMIT if the owner has begun as many forms today as they may.
        """
        key, session_id = owner.thread_key(thread_id), new_id("fs")
        sealed = self.seal(session_id, state)

        def work(connection: Connection) -> Record | None:
            now = self._clock.now_us()
            _require_thread(connection, owner, thread_id, opens_graph, now)
            there = _OPEN.one(connection, {"of_thread": key})
            if there is not None:
                return there
            if not self._shares.take(connection, owner, "forms", now, told=level):
                raise spent_error("forms")
            change = SessionChange(session_id, form, version, "collecting", sealed, opens=True)
            _insert(connection, owner, thread_id, change, now)
            return _OPEN.one(connection, {"of_thread": key})

        found: StoredSession | None = None
        for _ in range(2):
            with contextlib.suppress(IntegrityError):  # another start was faster; its session shows now
                found = self._read(await self._database.write(work))
                break
        assert found is not None, "what was just written or was there is there"
        if found.session_id == session_id:
            session_changed(form, BEGUN)
        if found.form != form:
            raise FailedPrecondition(
                "FORM_OPEN",
                f"the form '{found.form}' is open in thread '{thread_id}'; finish or cancel it first",
                metadata={"form": found.form},
            )
        return found

    async def page(self, owner: Owner, *, form: str, size: int, token: str) -> Page[StoredSession]:
        """Return some of the owner's sessions that came to a submission, the newest first.

        Raise InvalidArgument for a foreign token.
        """
        of_owner = FORM_SESSIONS.c.tenant == owner.tenant, FORM_SESSIONS.c.user_id == owner.user_id
        query = sa.select(FORM_SESSIONS).where(*of_owner, FORM_SESSIONS.c.tool_call_id != "")
        if form:
            query = query.where(FORM_SESSIONS.c.form == form)
        if token:
            query = query.where(before(token, FORM_SESSIONS.c.started_us, FORM_SESSIONS.c.session_id))
        order = FORM_SESSIONS.c.started_us.desc(), FORM_SESSIONS.c.session_id.desc()
        query = query.order_by(*order).limit(size + 1)

        def work(connection: Connection) -> Page[StoredSession]:
            found = [_session(row, None) for row in connection.execute(query)]
            return page_of(found, size, lambda one: (one.started_us, one.session_id))

        return await self._database.read(work)

    async def known(self, owner: Owner) -> Mapping[str, str]:
        """Return who the person is by their last submissions of any form: values by the type of their field."""

        def work(connection: Connection) -> Sequence[Record]:
            return _KNOWN.all(connection, {"of_tenant": owner.tenant, "of_user": owner.user_id})

        found: dict[str, str] = {}
        for row in await self._database.read_quickly(work):
            found = {**json.loads(self._sealer.uncover(row.state, of=row.session_id)), **found}
        return found

    async def submission(self, session: StoredSession) -> str:
        """Return where the call of a session's submission stands.

        "waiting" for an answer, "sent", "in_doubt", or "not_sent" where nothing was done and nothing will be.
        """
        if not session.tool_call_id:
            return "not_sent"
        of = {"of_run": session.run_id, "of_call": session.tool_call_id}

        def work(connection: Connection) -> str:
            return _submission(connection, of)

        return await self._database.read_quickly(work)

    def seal(self, session_id: str, state: Mapping[str, Any]) -> bytes:
        """Return a conversation's state as its row holds it."""
        return self._sealer.cover(json.dumps(state, ensure_ascii=False).encode(), of=session_id)

    def _read(self, row: Record | None) -> StoredSession | None:
        if row is None:
            return None
        shown = row.state is not None and not row.ended_us
        state = None if not shown else json.loads(self._sealer.uncover(row.state, of=row.session_id))
        return _session(row, state)


def _session(row: Row[Any] | Record, state: Mapping[str, Any] | None) -> StoredSession:
    return _SESSION.read(row, owner=Owner(row.tenant, row.user_id), state=state)


def _submission(connection: Connection, of: Mapping[str, str]) -> str:
    call = _CALL.one(connection, of)
    if call is not None and call.state == EffectState.IN_DOUBT:
        return EffectState.IN_DOUBT
    if call is not None and call.state == EffectState.FINISHED:
        return "sent" if call.status == "success" else "not_sent"
    run = _RUN.one(connection, {"of_run": of["of_run"]})
    waits = run is not None and run.status in {RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.SUSPENDED}
    return "waiting" if waits and (call is None or call.state != EffectState.DENIED) else "not_sent"


def apply_change(connection: Connection, lease: Lease, change: SessionChange, now: int) -> str:
    """Write how a turn leaves a session, in the caller's transaction; return the run it supersedes, if that waits."""
    if change.opens and _OPEN.one(connection, {"of_thread": lease.thread_key}) is None:
        _insert(connection, lease.owner, lease.thread_id, change, now)
    else:
        values: dict[str, Any] = {"run_id": change.run_id, "tool_call_id": change.tool_call_id}
        ended = change.status in ENDED
        _SET.later(
            connection,
            change.session_id,
            form=change.form,
            version=change.version,
            status=change.status,
            state=_left(change),
            updated_us=now,
            ended_us=now if ended else 0,
            **values,
        )
    return change.supersedes


def _left(change: SessionChange) -> bytes | None:
    """Return what the row holds: the conversation while it is open, afterwards who the person is."""
    if change.status not in ENDED:
        return change.sealed
    return change.known if change.status == "submitted" else None


def _insert(connection: Connection, owner: Owner, thread_id: str, change: SessionChange, now: int) -> None:
    ended = change.status in ENDED
    connection.execute(
        sa.insert(FORM_SESSIONS).values(
            session_id=change.session_id,
            tenant=owner.tenant,
            user_id=owner.user_id,
            thread_key=owner.thread_key(thread_id),
            thread_id=thread_id,
            form=change.form,
            version=change.version,
            status=change.status,
            state=_left(change),
            run_id=change.run_id,
            tool_call_id=change.tool_call_id,
            started_us=now,
            updated_us=now,
            ended_us=now if ended else 0,
        )
    )


def _require_thread(connection: Connection, owner: Owner, thread_id: str, graph: str, now: int) -> None:
    """Lock the thread until the commit, or open it: what is stored of a person is found by their threads."""
    key = owner.thread_key(thread_id)
    there = sa.select(THREADS.c.thread_key).where(THREADS.c.thread_key == key).with_for_update()
    if connection.execute(there).one_or_none() is None:
        connection.execute(
            sa.insert(THREADS).values(
                thread_key=key,
                tenant=owner.tenant,
                user_id=owner.user_id,
                thread_id=thread_id,
                last_sequence=0,
                last_position=0,
                created_us=now,
                updated_us=now,
                graph=graph,
                first_sequence=1,
            )
        )
