"""Invariants of an agent's database at rest, after any number of crashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from phylactery_agent.checkpoints.tables import CHECKPOINTS
from phylactery_agent.runtime.intake.waiting import MAX_WAITING
from phylactery_agent.runtime.runs.status import ACTIVE
from phylactery_agent.runtime.storage.schema import EVENTS, INBOX, OUTBOX, RUNS, THREADS, TOOL_CALLS
from sqlalchemy.engine import Connection

_OF_TURN = (INBOX.c.turn_id, INBOX.c.position, INBOX.c.state, INBOX.c.run_reason, INBOX.c.lead_turn)
_ENDED = ("done", "failed", "cancelled", "dead")


def at_rest(url: str) -> bool:
    """Return True if nothing waits to be served or delivered; runs may wait for a person."""
    with _opened(url) as connection:
        waiting = connection.scalar(sa.select(sa.func.count()).where(INBOX.c.state == "waiting"))
        begun = connection.scalar(sa.select(sa.func.count()).where(RUNS.c.status.in_(("queued", "running"))))
        told = connection.scalar(sa.select(sa.func.count()).where(OUTBOX.c.state == "waiting"))
    return not (waiting or begun or told)


def broken(url: str) -> list[str]:
    """Return a description of every broken invariant, empty if all hold. The database must be at rest."""
    with _opened(url) as connection:
        return [
            *_stuck(connection),
            *_effects(connection),
            *_sequences(connection),
            *_positions(connection),
            *_states(connection),
        ]


def _opened(url: str) -> Any:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    return engine.connect()


def _stuck(connection: Connection) -> Iterator[str]:
    """No run is in progress, at most one per thread has asked for a message, and few wait for an approval."""
    for run_id, status in connection.execute(
        sa.select(RUNS.c.run_id, RUNS.c.status).where(RUNS.c.status.in_(("queued", "running")))
    ):
        yield f"run {run_id} is stuck, {status}"
    owning = sa.select(RUNS.c.thread_key, sa.func.count()).where(RUNS.c.status.in_(ACTIVE)).group_by(RUNS.c.thread_key)
    asking = owning.where(RUNS.c.approval_id == "")
    for thread_key, count in connection.execute(asking.having(sa.func.count() > 1)):
        yield f"thread {thread_key} has {count} runs that take the next message"
    waiting = owning.where(RUNS.c.approval_id != "")
    for thread_key, count in connection.execute(waiting.having(sa.func.count() > MAX_WAITING)):
        yield f"thread {thread_key} has {count} runs that wait"
    for turn_id in connection.scalars(sa.select(INBOX.c.turn_id).where(INBOX.c.state == "waiting")):
        yield f"turn {turn_id} was never handled"
    for run_id in connection.scalars(sa.select(RUNS.c.run_id).where(RUNS.c.lease_owner != "")):
        yield f"run {run_id} is leased still"


def _effects(connection: Connection) -> Iterator[str]:
    """Every effect has one row per key, reported once; an ended run has no pending effect."""
    keyed = sa.select(TOOL_CALLS.c.effect_key, sa.func.count()).where(TOOL_CALLS.c.effect_key != "")
    for key, count in connection.execute(keyed.group_by(TOOL_CALLS.c.effect_key).having(sa.func.count() > 1)):
        yield f"effect {key} has {count} rows"
    hanging = sa.select(TOOL_CALLS.c.tool_call_id).join(RUNS, RUNS.c.run_id == TOOL_CALLS.c.run_id)
    for call in connection.scalars(
        hanging.where(RUNS.c.status.in_(_ENDED), TOOL_CALLS.c.state.in_(("proposed", "started")))
    ):
        yield f"call {call} hangs in a run that ended"
    for execution_id in connection.scalars(
        sa.select(TOOL_CALLS.c.execution_id).where(
            TOOL_CALLS.c.state.in_(("finished", "in_doubt")), TOOL_CALLS.c.execution_id != ""
        )
    ):
        reports = connection.scalar(
            sa.select(sa.func.count()).where(
                OUTBOX.c.kind == "outcome", OUTBOX.c.once.like(f"outcome:{execution_id}:%")
            )
        )
        if reports != 1:
            yield f"execution {execution_id} was reported {reports} times"


def _sequences(connection: Connection) -> Iterator[str]:
    """Events have neither gaps nor duplicates, and the thread's count matches the last one."""
    for thread in connection.execute(sa.select(THREADS)):
        found = list(
            connection.scalars(
                sa.select(EVENTS.c.sequence).where(EVENTS.c.thread_key == thread.thread_key).order_by(EVENTS.c.sequence)
            )
        )
        if found != list(range(thread.first_sequence, thread.last_sequence + 1)):
            said = f"{thread.first_sequence}-{thread.last_sequence}"
            yield f"thread {thread.thread_id} has events {found} and says {said}"


def _positions(connection: Connection) -> Iterator[str]:
    """Turn positions have no gaps either; each turn was answered once, and its end was reported once."""
    for thread in connection.execute(sa.select(THREADS)):
        turns = connection.execute(
            sa.select(*_OF_TURN).where(INBOX.c.thread_key == thread.thread_key).order_by(INBOX.c.position)
        ).all()
        positions = [turn.position for turn in turns]
        if positions != list(range(1, thread.last_position + 1)):
            yield f"thread {thread.thread_id} has turns {positions} and says {thread.last_position}"
        for turn in turns:
            # a run that waits may be ended later, without a turn of its own: that is told once, beside the turn's end
            ends = connection.scalar(
                sa.select(sa.func.count()).where(
                    EVENTS.c.turn_id == turn.turn_id,
                    EVENTS.c.kind == "run_finished",
                    EVENTS.c.once != "run_cancelled",
                )
            )
            led = turn.lead_turn not in ("", turn.turn_id) or turn.run_reason == "NOTHING_AWAITED"
            if turn.state == "handled" and ends != (0 if led else 1):
                yield f"turn {turn.turn_id} ended {ends} times"


def _states(connection: Connection) -> Iterator[str]:
    """A waiting run has a stored state; an ended one has none."""
    kept = set(connection.scalars(sa.select(CHECKPOINTS.c.thread_id).distinct()))
    waiting = set(connection.scalars(sa.select(RUNS.c.run_id).where(RUNS.c.status == "suspended")))
    yield from (f"run {key} has ended and has a state still" for key in sorted(kept - waiting))
    yield from (f"run {key} waits without a state" for key in sorted(waiting - kept))
