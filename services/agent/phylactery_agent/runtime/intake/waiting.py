"""Runs of a thread that wait for a person's answer, and the choice of the run that a message is for.

A run that waits for an approval keeps its checkpoints under its own id, and its thread is free: a message that is not
an answer opens another run alongside it. Still, only one run of a thread is executed at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query
from phylactery_understanding.replies.answers import read_answer
from sqlalchemy.engine import Connection

from phylactery_agent.ports import ApprovalRequest
from phylactery_agent.rules.intents import parse_reply
from phylactery_agent.runtime.runs.status import SERVED, RunStatus
from phylactery_agent.runtime.storage.records import StoredTurn
from phylactery_agent.runtime.storage.schema import INBOX, IS_ACTIVE, RUNS

MAX_WAITING: Final = 8
"""Maximum number of a thread's runs that wait for an approval; at that number a request opens no other one."""

SPOKE_AT: Final = sa.select(INBOX.c.position).where(INBOX.c.turn_id == RUNS.c.turn_id).correlate(RUNS).scalar_subquery()
"""The position in its thread of a run's last turn; the run with the greatest one spoke last."""
_BESIDE: Final = Query(
    sa.select(RUNS.c.approval_id, RUNS.c.card, SPOKE_AT.label("spoke_at")).where(
        RUNS.c.thread_key == sa.bindparam("of_thread"),
        IS_ACTIVE,
        RUNS.c.status == sa.literal_column(f"'{RunStatus.SUSPENDED}'"),
        RUNS.c.approval_id != "",
        RUNS.c.run_id != sa.bindparam("but_run"),
    )
)


def run_for(turn: StoredTurn, runs: Sequence[Any], *, handed_off: bool = False) -> Any | None:
    """Return the active run of its thread in which a turn is served, or None if it opens a new run.

    An answer is for the run it names, and one that names none is for the run that spoke last. Other words are for a run
    that asked the person something, otherwise for a new run, unless too many wait already. While a person has the
    thread, only an answer that names its approval is for a run that waits: everything else is said to that person.
    """
    served = next((run for run in runs if run.status in SERVED), None)
    if served is not None:
        return served
    if turn.kind == "approval_decided":
        return next((run for run in runs if run.run_id == turn.run_id), None)
    spoke = sorted(runs, key=lambda run: run.spoke_at or 0, reverse=True)
    waiting = [run for run in spoke if run.approval_id]
    reply = parse_reply(turn.text) if waiting else None
    if reply is not None and not handed_off:
        return next((run for run in waiting if reply.approval_id in _ids(run)), waiting[0])
    if handed_off:
        return next((run for run in waiting if reply and reply.approval_id in _ids(run)), None)
    if waiting and read_answer(turn.text) != "unclear":
        return spoke[0]
    # what others wrote answers no question of a run
    takes = [run for run in spoke if not run.approval_id and not turn.wordless] or (
        waiting if len(waiting) >= MAX_WAITING else []
    )
    return takes[0] if takes else None


def asked_beside(connection: Connection, thread_key: str, run_id: str) -> tuple[ApprovalRequest, ...]:
    """Return what the other runs of a thread ask a person to approve, the oldest first."""
    rows = _BESIDE.all(connection, {"of_thread": thread_key, "but_run": run_id})
    rows.sort(key=lambda row: row.spoke_at or 0)
    return tuple(one for row in rows for one in card_of(row) if one.open)


def card_of(row: Any) -> tuple[ApprovalRequest, ...]:
    """Return a run's approval card; a run suspended before cards were stored has only its approval id."""
    card = tuple(ApprovalRequest(*one) for one in json.loads(row.card))
    return card if card or not row.approval_id else (ApprovalRequest(row.approval_id, "", "self"),)


def card_json(card: Sequence[ApprovalRequest]) -> str:
    """Return a card as stored in a run's row."""
    return json.dumps([[one.approval_id, one.tool, one.approval_class, one.open] for one in card])


def _ids(run: Any) -> set[str]:
    return {run.approval_id, *(one.approval_id for one in card_of(run))}
