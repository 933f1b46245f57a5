"""Changes of the queue within the caller's transaction.

The order of locks is that of the end of a turn: runs, thread, escalation, queue. While the thread is locked, nobody
else begins, ends or silences anything in it. Each entry of a queue is stored before anyone is told of it, under a
number that grows in the order of the commits.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns, Form
from phylactery_chassis.db.statements import Change, Query, Record
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection, Row

from phylactery_agent.i18n.messages import message
from phylactery_agent.ports import LeaseLostError
from phylactery_agent.ports.gate import Language
from phylactery_agent.ports.handoff import EscalationRequest
from phylactery_agent.runtime.effects.outbox import queue_transcript
from phylactery_agent.runtime.handoff import texts
from phylactery_agent.runtime.handoff.records import QueueEntry, StoredEscalation
from phylactery_agent.runtime.handoff.status import ACTIVE, EntryKind, EscalationStatus, advance
from phylactery_agent.runtime.storage.events import append_event
from phylactery_agent.runtime.storage.records import Lease, OfThread, Owner
from phylactery_agent.runtime.storage.schema import (
    ESCALATION_ENTRIES,
    ESCALATION_QUEUES,
    ESCALATIONS,
    TEXT,
    THREADS,
    to_bytes,
)

HANDED_OFF: Final = "HANDED_OFF"
"""The reason of a turn that the agent did not answer because a person has the thread."""
STOPPED_FOR_PERSON: Final = "STOPPED_FOR_PERSON"
"""The reason of a run that was stopped because a person claimed the thread."""
TIMEOUT: Final = "TIMEOUT"
"""The end reason of an escalation that nobody claimed in time."""
RELEASED: Final = "RELEASED"
"""The end reason of an escalation that its handler gave back to the agent."""

_ESCALATION = Columns(
    StoredEscalation,
    ESCALATIONS,
    forms={"status": Form(EscalationStatus), "reason": TEXT, "form_state": TEXT, "summary": TEXT},
    besides=("owner",),
)
ENTRY: Final = Columns(
    QueueEntry,
    ESCALATION_ENTRIES,
    forms={"kind": Form(EntryKind), "status": Form(EscalationStatus), "text": texts.ENTRY_TEXT},
)
IS_ACTIVE_ESCALATION = ESCALATIONS.c.status.in_([sa.literal_column(f"'{status}'") for status in ACTIVE])
"""Literals rather than parameters, as in the partial index that the planner is to choose."""
_ACTIVE_OF = Query(
    sa.select(ESCALATIONS)
    .where(ESCALATIONS.c.thread_key == sa.bindparam("of_thread"), IS_ACTIVE_ESCALATION)
    .with_for_update()
)
_BY_ID = Query(sa.select(ESCALATIONS).where(ESCALATIONS.c.escalation_id == sa.bindparam("of_it")).with_for_update())
_LOCK_THREAD = Query(
    sa.select(THREADS.c.thread_key, THREADS.c.handed_off)
    .where(THREADS.c.thread_key == sa.bindparam("of_thread"))
    .with_for_update()
)
_NEXT = Change(
    sa.text(
        "INSERT INTO agent_escalation_queues (tenant, last_sequence) VALUES (:tenant, 1)"
        " ON CONFLICT (tenant) DO UPDATE SET last_sequence = agent_escalation_queues.last_sequence + 1"
        " RETURNING last_sequence"
    ).columns(ESCALATION_QUEUES.c.last_sequence)
)


class HandoffOverError(LeaseLostError):
    """The conversation was handed back while a message was passed on: its turn must be claimed again and answered."""


def queue_key(tenant: str) -> str:
    """Return the key under which a tenant's queue is announced; a thread's key is a hash and never looks like it."""
    return f"escalations:{tenant}"


def escalation_of(row: Row[Any] | Record) -> StoredEscalation:
    """Return an escalation as its row says."""
    return _ESCALATION.read(row, owner=Owner(row.tenant, row.user_id))


def lock_thread(connection: Connection, thread_key: str) -> Record | None:
    """Lock a thread until the commit and return whether it is handed off; None if there is no such thread."""
    return _LOCK_THREAD.one(connection, {"of_thread": thread_key})


def active_of(connection: Connection, thread_key: str) -> StoredEscalation | None:
    """Return the thread's escalation that has not ended, locked until the commit."""
    row = _ACTIVE_OF.one(connection, {"of_thread": thread_key})
    return None if row is None else escalation_of(row)


def locked(connection: Connection, escalation_id: str) -> StoredEscalation | None:
    """Return an escalation, locked until the commit; its thread must be locked."""
    row = _BY_ID.one(connection, {"of_it": escalation_id})
    return None if row is None else escalation_of(row)


def open_in(
    connection: Connection, of: OfThread, wanted: EscalationRequest, *, run_id: str, once: str, language: str, now: int
) -> tuple[StoredEscalation, bool]:
    """Open an escalation of a thread, and return it and whether it is new.

    If the thread has one that has not ended, that one is returned: a person is called already. The thread must exist.
    """
    lock_thread(connection, of.thread_key)
    if (there := active_of(connection, of.thread_key)) is not None:
        return there, False
    escalation_id = new_id("esc")
    connection.execute(
        sa.insert(ESCALATIONS).values(
            escalation_id=escalation_id,
            once=once,
            tenant=of.owner.tenant,
            user_id=of.owner.user_id,
            thread_key=of.thread_key,
            thread_id=of.thread_id,
            run_id=run_id,
            status=EscalationStatus.OPEN,
            policy=wanted.policy,
            reason=to_bytes(wanted.reason),
            form_id=wanted.form_id,
            form_state=to_bytes(wanted.form_state),
            language=language,
            handler="",
            display_name="",
            claim_until_us=0,
            opened_us=now,
            queued_us=now,
            claimed_us=0,
            ended_us=0,
            end_reason="",
            summary=b"",
        )
    )
    opened = locked(connection, escalation_id)
    assert opened is not None, "what was just written is there"
    note(connection, opened, EntryKind.OPENED, actor=of.owner.user_id, text=wanted.reason, now=now)
    return opened, True


def note(
    connection: Connection,
    escalation: StoredEscalation,
    kind: EntryKind,
    *,
    actor: str,
    text: str = "",
    once: str = "",
    now: int,
) -> QueueEntry:
    """Append an entry to the queue of the escalation's tenant, whose row stays locked until the commit."""
    tenant = escalation.owner.tenant
    counted = _NEXT.one(connection, {"tenant": tenant})
    assert counted is not None, "the statement returns the row it writes"
    entry = QueueEntry(int(counted.last_sequence), escalation.escalation_id, kind, escalation.status, actor, text, now)
    connection.execute(
        sa.insert(ESCALATION_ENTRIES).values(
            tenant=tenant,
            once=once or f"entry:{entry.sequence}",
            **ENTRY.named(entry),
        )
    )
    return entry


def move(connection: Connection, escalation: StoredEscalation, to: EscalationStatus, **values: Any) -> StoredEscalation:
    """Set the state of a locked escalation whose thread is locked, and whether the agent is silent in the thread.

    The one that ends it empties its texts. Raise EscalationTransitionError.
    """
    status = advance(escalation.status, to)
    connection.execute(
        sa.update(ESCALATIONS)
        .where(ESCALATIONS.c.escalation_id == escalation.escalation_id)
        .values(status=status, **values)
    )
    if status not in ACTIVE:
        texts.empty(connection, escalation.escalation_id)
    silent = status is EscalationStatus.CLAIMED
    connection.execute(
        sa.update(THREADS).where(THREADS.c.thread_key == escalation.thread_key).values(handed_off=silent)
    )
    moved = locked(connection, escalation.escalation_id)
    assert moved is not None, "what is locked is there"
    return moved


def requeue(
    connection: Connection, escalation: StoredEscalation, kind: EntryKind, *, text: str = "", now: int
) -> StoredEscalation:
    """Put a claimed escalation back into the queue: its handler gave it back, or the claim expired."""
    before = escalation.handler
    moved = move(
        connection, escalation, EscalationStatus.OPEN, handler="", display_name="", claim_until_us=0, queued_us=now
    )
    entry = note(connection, moved, kind, actor=before, text=text, now=now)
    tell(connection, moved, entry, now=now)
    return moved


def close(connection: Connection, escalation: StoredEscalation, reason: str, *, now: int) -> StoredEscalation:
    """Close an escalation that nobody claimed, and say so to the person."""
    moved = move(connection, escalation, EscalationStatus.CLOSED, ended_us=now, end_reason=reason)
    entry = note(connection, moved, EntryKind.CLOSED, actor="", text=reason, now=now)
    tell(connection, moved, entry, now=now)
    lease = place(moved)
    text = message("handoff_timeout", language_of(moved))
    message_id = f"{moved.escalation_id}.{entry.sequence}"
    told = {"message_id": message_id, "text": text}
    append_event(connection, lease, "message", told, once=f"said:{entry.sequence}", now_us=now)
    said = {"id": message_id, "role": "assistant", "text": text, "create_us": now}
    queue_transcript(connection, lease, [said], once=message_id, now_us=now)
    return moved


def tell(connection: Connection, escalation: StoredEscalation, entry: QueueEntry, *, now: int) -> None:
    """Append the state of an escalation to the events of its thread."""
    append_event(
        connection, place(escalation), "handoff", shown(escalation), once=f"handoff:{entry.sequence}", now_us=now
    )


def shown(escalation: StoredEscalation) -> dict[str, str]:
    """Return an escalation as its user sees it: never the handler's subject."""
    return {
        "state": escalation.status.upper(),
        "escalation_id": escalation.escalation_id,
        "display_name": escalation.display_name,
    }


def place(escalation: StoredEscalation) -> Lease:
    """Return the place of events of an escalation, which belong to no run."""
    return Lease("", escalation.escalation_id, escalation.thread_id, escalation.owner, holder="", fence=0)


def pass_on(connection: Connection, lease: Lease, text: str, *, now: int) -> None:
    """Show the handler what the person said in a turn that the agent does not answer, and tell the person's client.

    Raise HandoffOverError if nobody handles the thread any more: then the agent has to answer after all.
    """
    thread = lock_thread(connection, lease.thread_key)
    escalation = None if thread is None else active_of(connection, lease.thread_key)
    if escalation is None or escalation.status is not EscalationStatus.CLAIMED:
        raise HandoffOverError(f"the thread of turn {lease.turn_id} was handed back to the agent")
    once = f"message:{lease.turn_id}"
    note(connection, escalation, EntryKind.MESSAGE, actor=escalation.owner.user_id, text=text, once=once, now=now)
    append_event(connection, lease, "handoff", shown(escalation), once="handoff", now_us=now)


def language_of(escalation: StoredEscalation) -> Language:
    """Return the language in which the person is told something."""
    return "en" if escalation.language == "en" else "es"
