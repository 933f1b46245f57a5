"""The queue's operations, each in one transaction and idempotent: opening, claiming, replying, noting, releasing.

Two people who claim at once lock the same row, so one of them wins. A claim that expired is no claim, whether or not a
job has noticed it yet. Over PostgreSQL the database's clock decides when that is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import AlreadyExists, FailedPrecondition, NotFound, Unavailable
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_agent.i18n.messages import message
from phylactery_agent.ports.handoff import EscalationRequest
from phylactery_agent.runtime.dispatch.leases import lease_now
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects.outbox import queue_transcript
from phylactery_agent.runtime.guests.shares import NO_LIMITS, Shares, spent_error
from phylactery_agent.runtime.handoff.queue import (
    ENTRY,
    IS_ACTIVE_ESCALATION,
    RELEASED,
    STOPPED_FOR_PERSON,
    TIMEOUT,
    close,
    escalation_of,
    language_of,
    lock_thread,
    locked,
    move,
    note,
    open_in,
    place,
    queue_key,
    requeue,
    tell,
)
from phylactery_agent.runtime.handoff.records import Handler, QueueEntry, ReleaseTo, StoredEscalation
from phylactery_agent.runtime.handoff.status import ACTIVE, EntryKind, EscalationStatus
from phylactery_agent.runtime.handoff.texts import is_same
from phylactery_agent.runtime.runs.queries import no_thread
from phylactery_agent.runtime.runs.status import RunStatus
from phylactery_agent.runtime.storage import metrics
from phylactery_agent.runtime.storage.events import append_event
from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.schema import ESCALATION_ENTRIES, ESCALATIONS, IS_ACTIVE, RUNS

T = TypeVar("T")
_TRIES: Final = 5
_PAGE: Final = 100
_CLAIM_KINDS: Final = (EntryKind.CLAIMED, EntryKind.REQUEUED, EntryKind.EXPIRED, EntryKind.RELEASED)
"""Entries by which a claim begins or ends; their actor is the handler."""
_log = get_logger("handoff")


class _RunsChangedError(Exception):
    """A run began in the thread while it was being claimed: the claim starts over, so that it stops that run too."""


class EscalationStore:
    """Store of the queue. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        news: ThreadNotifier,
        *,
        claim_seconds: float,
        wake: Callable[[], None] = lambda: None,
        shares: Shares = NO_LIMITS,
    ) -> None:
        """claim_seconds is how long a claim lasts unless it is renewed; wake starts the delivery of the outbox.

        shares limits how often a day each person may ask for a person.
        """
        self._shares = shares
        self._database, self._clock, self._news, self._wake = database, clock, news, wake
        self._claim_us = round(claim_seconds * MICROSECONDS)

    async def open(
        self, owner: Owner, thread_id: str, request_id: str, reason: str, *, level: str = ""
    ) -> StoredEscalation:
        """Open an escalation of one of the owner's threads, or add the request to the one that has not ended.

        A request that is repeated returns the escalation it opened or was added to, ended or not. Raise NotFound
        THREAD_NOT_FOUND, AlreadyExists REQUEST_CONFLICT, and ResourceExhausted DAILY_LIMIT, by the level of the caller.
        """
        once, key = f"request:{request_id}", owner.thread_key(thread_id)
        added = f"request:{owner.user_id}:{request_id}"

        def work(connection: Connection, now: int) -> tuple[StoredEscalation, bool]:
            if lock_thread(connection, key) is None:
                raise no_thread(thread_id)
            mine = (ESCALATIONS.c.tenant == owner.tenant, ESCALATIONS.c.user_id == owner.user_id)
            to = sa.select(ESCALATION_ENTRIES.c.escalation_id).where(
                ESCALATION_ENTRIES.c.tenant == owner.tenant, ESCALATION_ENTRIES.c.once == added
            )
            same = sa.or_(ESCALATIONS.c.once == once, ESCALATIONS.c.escalation_id.in_(to))
            before = connection.execute(sa.select(ESCALATIONS).where(*mine, same)).one_or_none()
            if before is not None:
                if before.thread_key != key:
                    raise _conflict(request_id)
                return escalation_of(before), False
            newest = sa.select(RUNS.c.language).where(RUNS.c.thread_key == key).order_by(RUNS.c.created_us.desc())
            language = connection.execute(newest.limit(1)).scalar() or "es"
            of = Lease("", request_id, thread_id, owner, holder="", fence=0)
            wanted = EscalationRequest("request", reason)
            if not self._shares.take(connection, owner, "escalations", now, told=level):
                raise spent_error("escalations")
            opened, new = open_in(connection, of, wanted, run_id="", once=once, language=language, now=now)
            if new:
                _tell_state(connection, opened, now)
            else:
                note(connection, opened, EntryKind.REQUESTED, actor=owner.user_id, text=reason, once=added, now=now)
            return opened, new

        opened, new = await self._write(work)
        if new:
            metrics.escalation_opened(opened.policy)
        self._announce(opened)
        return opened

    async def claim(self, handler: Handler, escalation_id: str, display_name: str) -> StoredEscalation:
        """Claim an escalation, or renew the handler's own claim; from then on the agent says nothing in its thread.

        Raise NotFound ESCALATION_NOT_FOUND, FailedPrecondition CLAIM_TAKEN and ESCALATION_ENDED.
        """

        def work(connection: Connection, now: int) -> tuple[StoredEscalation, bool]:
            before = _of_tenant(connection, handler, escalation_id)
            runs = _active_runs(connection, before.thread_key)
            escalation = _lock(connection, handler, before)
            if _active_runs(connection, before.thread_key) != runs:
                raise _RunsChangedError
            if escalation.status not in ACTIVE:
                raise _ended(escalation)
            until = now + self._claim_us
            if escalation.status is EscalationStatus.CLAIMED:
                if escalation.claim_until_us > now:
                    if escalation.handler != handler.subject:
                        raise _taken(escalation)
                    return _renewed(connection, escalation, until), False
                escalation = requeue(connection, escalation, EntryKind.EXPIRED, now=now)
            first = escalation.claimed_us == 0
            moved = move(
                connection,
                escalation,
                EscalationStatus.CLAIMED,
                handler=handler.subject,
                display_name=display_name,
                claim_until_us=until,
                claimed_us=now if first else escalation.claimed_us,
            )
            running = (RUNS.c.thread_key == moved.thread_key, RUNS.c.status == RunStatus.RUNNING, RUNS.c.cancel_us == 0)
            connection.execute(sa.update(RUNS).where(*running).values(cancel_us=now, cancel_reason=STOPPED_FOR_PERSON))
            entry = note(connection, moved, EntryKind.CLAIMED, actor=handler.subject, now=now)
            tell(connection, moved, entry, now=now)
            return moved, first

        reach("agent.handoff.claim.before")
        for _ in range(_TRIES):
            try:
                claimed, first = await self._write(work)
                break
            except _RunsChangedError:
                continue
        else:
            raise Unavailable("STORE_UNAVAILABLE", "this thread is busy; try to claim it again in a moment")
        reach("agent.handoff.claim")
        if first:
            metrics.escalation_claimed(claimed.policy, (claimed.claimed_us - claimed.opened_us) / MICROSECONDS)
        self._announce(claimed)
        return claimed

    async def renew(self, handler: Handler, escalation_id: str) -> StoredEscalation:
        """Extend the handler's claim. Raise as reply."""

        def work(connection: Connection, now: int) -> StoredEscalation:
            escalation = _lock(connection, handler, _of_tenant(connection, handler, escalation_id))
            _require_claim(escalation, handler, now)
            return _renewed(connection, escalation, now + self._claim_us)

        return await self._write(work)

    async def reply(self, handler: Handler, escalation_id: str, request_id: str, text: str) -> QueueEntry:
        """Say something to the person under the handler's claim, once per request_id, and renew the claim.

        It goes into the thread's events, to the transcript and into the queue in one transaction. Raise NotFound
        ESCALATION_NOT_FOUND, AlreadyExists REQUEST_CONFLICT, FailedPrecondition CLAIM_REQUIRED, CLAIM_TAKEN,
        CLAIM_EXPIRED and ESCALATION_ENDED; nothing was said then.
        """
        once = f"reply:{handler.subject}:{request_id}"

        def work(connection: Connection, now: int) -> tuple[StoredEscalation, QueueEntry]:
            escalation = _lock(connection, handler, _of_tenant(connection, handler, escalation_id))
            if (said := _before(connection, escalation, once, request_id, text)) is not None:
                return escalation, said
            _require_claim(escalation, handler, now)
            _renewed(connection, escalation, now + self._claim_us)
            entry = note(connection, escalation, EntryKind.REPLY, actor=handler.subject, text=text, once=once, now=now)
            lease, message_id = place(escalation), f"{escalation_id}.{entry.sequence}"
            told = {
                "message_id": message_id,
                "text": text,
                "display_name": escalation.display_name,
                "escalation_id": escalation_id,
            }
            append_event(connection, lease, "human_message", told, once=f"reply:{entry.sequence}", now_us=now)
            _keep(connection, escalation, message_id, "human_said", text, now=now)
            return escalation, entry

        reach("agent.handoff.reply.before")
        escalation, entry = await self._write(work)
        reach("agent.handoff.reply")
        self._announce(escalation)
        return entry

    async def add_note(self, handler: Handler, escalation_id: str, request_id: str, text: str) -> QueueEntry:
        """Add a note that only handlers see, under the handler's claim, once per request_id. Raise as reply."""
        once = f"note:{handler.subject}:{request_id}"

        def work(connection: Connection, now: int) -> tuple[StoredEscalation, QueueEntry]:
            escalation = _lock(connection, handler, _of_tenant(connection, handler, escalation_id))
            if (there := _before(connection, escalation, once, request_id, text)) is not None:
                return escalation, there
            _require_claim(escalation, handler, now)
            return escalation, note(
                connection, escalation, EntryKind.NOTE, actor=handler.subject, text=text, once=once, now=now
            )

        escalation, entry = await self._write(work)
        self._announce(escalation)
        return entry

    async def release(self, handler: Handler, escalation_id: str, to: ReleaseTo, summary: str) -> StoredEscalation:
        """End the handler's claim: the agent goes on, or the escalation waits in the queue again. Raise as reply.

        One that this handler released before in the same way is returned as it is.
        """

        def work(connection: Connection, now: int) -> StoredEscalation:
            escalation = _lock(connection, handler, _of_tenant(connection, handler, escalation_id))
            if escalation.status is EscalationStatus.RELEASED and escalation.handler == handler.subject:
                return replace(escalation, summary=summary)
            if to == "queue" and _requeued(connection, escalation, handler, summary):
                return escalation
            _require_claim(escalation, handler, now)
            if to == "queue":
                return requeue(connection, escalation, EntryKind.REQUEUED, text=summary, now=now)
            moved = move(
                connection,
                escalation,
                EscalationStatus.RELEASED,
                claim_until_us=0,
                ended_us=now,
                end_reason=RELEASED,
            )
            entry = note(connection, moved, EntryKind.RELEASED, actor=handler.subject, now=now)
            tell(connection, moved, entry, now=now)
            key = "human_summary" if summary else "human_left"
            _keep(connection, moved, f"{escalation_id}.{entry.sequence}", key, summary, now=now)
            return replace(moved, summary=summary)  # which the transcript has, and this store no longer

        reach("agent.handoff.release.before")
        released = await self._write(work)
        reach("agent.handoff.release")
        self._announce(released)
        return released

    async def expire(self, *, wait_seconds: float) -> int:
        """Put escalations with an expired claim back into the queue, and close those that waited too long.

        wait_seconds 0 lets them wait for ever. One that fails is logged and tried again by the next call; the others
        go on. Return how many were changed.
        """
        wait_us, changed = round(wait_seconds * MICROSECONDS), 0
        for escalation_id in await self._due(wait_us):
            try:
                moved = await self._write(partial(_expire, escalation_id, wait_us))
            except Exception as error:  # noqa: BLE001 - one row that cannot be changed must not keep the others
                _log.warning(
                    "expiry of an escalation failed; will retry",
                    escalation_id=escalation_id,
                    error=type(error).__name__,
                )
                continue
            reach("agent.handoff.expired")
            if moved is not None:
                changed += 1
                self._announce(moved)
        return changed

    async def _due(self, wait_us: int) -> Sequence[str]:
        def work(connection: Connection) -> Sequence[str]:
            now = lease_now(connection, self._clock.now_us())
            late = sa.and_(ESCALATIONS.c.status == EscalationStatus.CLAIMED, ESCALATIONS.c.claim_until_us <= now)
            stale = sa.and_(ESCALATIONS.c.status == EscalationStatus.OPEN, ESCALATIONS.c.queued_us <= now - wait_us)
            due = sa.or_(late, stale) if wait_us else late
            query = (
                sa.select(ESCALATIONS.c.escalation_id)
                .where(IS_ACTIVE_ESCALATION, due)  # as the partial index has it, so that nothing that ended is read
                .order_by(ESCALATIONS.c.queued_us)
                .limit(_PAGE)
            )
            return list(connection.scalars(query))

        return await self._database.read(work)

    async def _write(self, work: Callable[[Connection, int], T]) -> T:
        """Do work in one transaction, given the time by which claims are judged."""
        for _ in range(_TRIES):
            try:
                return await self._database.write(lambda connection: work(connection, self._now(connection)))
            except IntegrityError:  # another process wrote the same at this moment; a retry sees it
                await asyncio.sleep(0)
        raise Unavailable("STORE_UNAVAILABLE", "write conflict in this queue; retry in a moment")

    def _now(self, connection: Connection) -> int:
        return int(connection.execute(sa.select(lease_now(connection, self._clock.now_us()))).scalar_one())

    def _announce(self, escalation: StoredEscalation) -> None:
        """Notify those who follow the thread and the queue, and start the delivery to the transcript."""
        self._news.tell(escalation.thread_key)
        self._news.tell(queue_key(escalation.owner.tenant))
        self._wake()


def _of_tenant(connection: Connection, handler: Handler, escalation_id: str) -> StoredEscalation:
    """Return an escalation of the handler's tenant. Raise NotFound ESCALATION_NOT_FOUND."""
    query = sa.select(ESCALATIONS).where(
        ESCALATIONS.c.escalation_id == escalation_id, ESCALATIONS.c.tenant == handler.tenant
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise no_escalation(escalation_id)
    return escalation_of(row)


def no_escalation(escalation_id: str) -> NotFound:
    """Return what is wrong with an escalation that is not there, or is another tenant's."""
    return NotFound(
        "ESCALATION_NOT_FOUND",
        f"escalation '{escalation_id}' not found",
        metadata={"escalation_id": escalation_id},
    )


def _lock(connection: Connection, handler: Handler, before: StoredEscalation) -> StoredEscalation:
    """Lock the thread and the escalation, in that order, and return it as it is now."""
    there = lock_thread(connection, before.thread_key)
    now = None if there is None else locked(connection, before.escalation_id)
    if now is None or now.owner.tenant != handler.tenant:  # deleted at this moment
        raise no_escalation(before.escalation_id)
    return now


def _active_runs(connection: Connection, thread_key: str) -> Sequence[str]:
    """Return the thread's unfinished runs, locked until the commit."""
    runs = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key == thread_key, IS_ACTIVE).order_by(RUNS.c.run_id)
    return list(connection.scalars(runs.with_for_update()))


def _require_claim(escalation: StoredEscalation, handler: Handler, now: int) -> None:
    """Raise FailedPrecondition unless the handler holds a claim that has not expired."""
    if escalation.status not in ACTIVE:
        raise _ended(escalation)
    if escalation.status is not EscalationStatus.CLAIMED:
        raise FailedPrecondition(
            "CLAIM_REQUIRED",
            f"you hold no claim on escalation '{escalation.escalation_id}', so nothing was done; claim it first",
            metadata={"state": escalation.status},
        )
    if escalation.handler != handler.subject:
        raise _taken(escalation)
    if escalation.claim_until_us <= now:
        raise FailedPrecondition(
            "CLAIM_EXPIRED",
            f"your claim on escalation '{escalation.escalation_id}' has expired, so nothing was done; claim it again",
        )


def _taken(escalation: StoredEscalation) -> FailedPrecondition:
    return FailedPrecondition(
        "CLAIM_TAKEN",
        f"'{escalation.handler}' has claimed escalation '{escalation.escalation_id}'",
        metadata={"handler": escalation.handler},
    )


def _ended(escalation: StoredEscalation) -> FailedPrecondition:
    return FailedPrecondition(
        "ESCALATION_ENDED",
        f"escalation '{escalation.escalation_id}' is {escalation.status} already",
        metadata={"state": escalation.status},
    )


def _conflict(request_id: str) -> AlreadyExists:
    return AlreadyExists(
        "REQUEST_CONFLICT",
        f"request_id '{request_id}' came with another body before; use a new one",
        metadata={"request_id": request_id},
    )


def _renewed(connection: Connection, escalation: StoredEscalation, until: int) -> StoredEscalation:
    """Extend a claim, never shorten it, and return the escalation."""
    this = ESCALATIONS.c.escalation_id == escalation.escalation_id
    later = max(until, escalation.claim_until_us)
    connection.execute(sa.update(ESCALATIONS).where(this).values(claim_until_us=later))
    renewed = locked(connection, escalation.escalation_id)
    assert renewed is not None, "what is locked is there"
    return renewed


def _before(
    connection: Connection, escalation: StoredEscalation, once: str, request_id: str, text: str
) -> QueueEntry | None:
    """Return the entry that an earlier, identical request made, or None. Raise AlreadyExists REQUEST_CONFLICT."""
    query = sa.select(ESCALATION_ENTRIES).where(
        ESCALATION_ENTRIES.c.tenant == escalation.owner.tenant, ESCALATION_ENTRIES.c.once == once
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    if row.escalation_id != escalation.escalation_id or not is_same(row.text, text):
        raise _conflict(request_id)
    return ENTRY.read(row)


def _requeued(connection: Connection, escalation: StoredEscalation, handler: Handler, summary: str) -> bool:
    """Return True if the handler's last claim of an escalation ended by putting it back with this summary."""
    query = (
        sa.select(ESCALATION_ENTRIES)
        .where(
            ESCALATION_ENTRIES.c.escalation_id == escalation.escalation_id,
            ESCALATION_ENTRIES.c.actor == handler.subject,
            ESCALATION_ENTRIES.c.kind.in_(_CLAIM_KINDS),
        )
        .order_by(ESCALATION_ENTRIES.c.sequence.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    last = None if row is None else ENTRY.read(row)
    return last is not None and (last.kind, last.text) == (EntryKind.REQUEUED, summary)


def _keep(
    connection: Connection, escalation: StoredEscalation, message_id: str, key: str, text: str, *, now: int
) -> None:
    """Queue what a handler said for the transcript, under their name: data for the agent, never the person's word."""
    language = language_of(escalation)
    name = escalation.display_name or message("human_somebody", language)
    values = {"name": name, "text": text} if text else {"name": name}
    said = {
        "id": message_id,
        "role": "assistant",
        "text": message(key, language, **values),
        "create_us": now,
    }
    queue_transcript(connection, place(escalation), [said], once=message_id, now_us=now)


def _tell_state(connection: Connection, escalation: StoredEscalation, now: int) -> None:
    opened = sa.select(sa.func.max(ESCALATION_ENTRIES.c.sequence)).where(
        ESCALATION_ENTRIES.c.escalation_id == escalation.escalation_id
    )
    sequence = connection.execute(opened).scalar_one()
    tell(
        connection,
        escalation,
        QueueEntry(sequence, escalation.escalation_id, EntryKind.OPENED, escalation.status, "", "", now),
        now=now,
    )


def _expire(escalation_id: str, wait_us: int, connection: Connection, now: int) -> StoredEscalation | None:
    """Do to one escalation what its time asks for; None if that is nothing any more."""
    row = connection.execute(sa.select(ESCALATIONS).where(ESCALATIONS.c.escalation_id == escalation_id)).one_or_none()
    if row is None or lock_thread(connection, row.thread_key) is None:
        return None
    one = locked(connection, escalation_id)
    if one is None:
        return None
    if one.status is EscalationStatus.CLAIMED and one.claim_until_us <= now:
        return requeue(connection, one, EntryKind.EXPIRED, now=now)
    if one.status is EscalationStatus.OPEN and wait_us and one.queued_us <= now - wait_us:
        return close(connection, one, TIMEOUT, now=now)
    return None
