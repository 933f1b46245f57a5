"""Runs of a thread that wait for a person's answer, and the choice of the run that a message is for.

A run that waits keeps its checkpoints under its own id, and its thread is free: a message that is not an answer opens
another run alongside it. Still, only one run of a thread is executed at a time.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query
from sqlalchemy.engine import Connection

from phylactery_agent.graph.core.state import StepStatus
from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.i18n.texts import is_unknown, shortened
from phylactery_agent.ports import ApprovalRequest, EffectState, Language
from phylactery_agent.rules.commands import Command, read_command
from phylactery_agent.rules.intents import WHICH, is_answer, parse_reply, without_store_phrase
from phylactery_agent.rules.plain_replies import asks_about_card, asks_only_why
from phylactery_agent.runtime.guests.shares import OVER_SHARE
from phylactery_agent.runtime.intake.redaction import without_masks_told
from phylactery_agent.runtime.runs.status import SERVED, RunStatus
from phylactery_agent.runtime.storage.records import StoredTurn
from phylactery_agent.runtime.storage.schema import EVENTS, INBOX, IS_ACTIVE, RUNS, TOOL_CALLS, to_text

CLOSING: Final = ("APPROVAL_CANCELLED", "APPROVAL_EXPIRED", "NOTHING_WAITS")
"""Reasons of turns whose reply says that something waits no more: it does not go on with what else still does."""
MAX_WAITING: Final = 8
"""Maximum number of a thread's runs that wait for an approval; at that number a request opens no other one."""

SPOKE_AT: Final = sa.select(INBOX.c.position).where(INBOX.c.turn_id == RUNS.c.turn_id).correlate(RUNS).scalar_subquery()
"""The position in its thread of a run's last turn; the run with the greatest one spoke last."""
LAST_REPLY: Final = (
    sa.select(INBOX.c.reply_text).where(INBOX.c.turn_id == RUNS.c.turn_id).correlate(RUNS).scalar_subquery()
)
"""What a run said last."""
_since = INBOX.alias()
_REMINDED: Final = sa.exists().where(
    _since.c.thread_key == RUNS.c.thread_key,
    _since.c.position > INBOX.c.position,
    _since.c.state == sa.literal_column("'handled'"),
    sa.func.length(_since.c.reply_text) > sa.literal_column("0"),
    _since.c.run_reason.not_in([sa.literal_column(f"'{reason}'") for reason in (OVER_SHARE, *CLOSING)]),
)
"""Whether a turn after the last one of a run was answered, with what else waits at the end of its reply."""
_BESIDE: Final = Query(
    sa.select(
        *(RUNS, SPOKE_AT.label("spoke_at"), INBOX.c.kind, INBOX.c.text, INBOX.c.reply_text),
        _REMINDED.label("reminded"),
    )
    .outerjoin(INBOX, INBOX.c.turn_id == RUNS.c.turn_id)
    .where(
        RUNS.c.thread_key == sa.bindparam("of_thread"),
        IS_ACTIVE,
        RUNS.c.status == sa.literal_column(f"'{RunStatus.SUSPENDED}'"),
        RUNS.c.run_id != sa.bindparam("but_run"),
    )
)
"""The other runs of a thread that wait, each with its last turn's message and reply."""
_SERVED_NEXT: Final = Query(
    sa.select(INBOX.c.text).where(
        INBOX.c.thread_key == sa.bindparam("of_thread"), INBOX.c.state == sa.literal_column("'waiting'")
    )
)
_stopping, _last = INBOX.alias(), INBOX.alias()
_CUT: Final = Query(
    sa.select(RUNS, _last.c.kind, _last.c.text)
    .select_from(
        RUNS.join(_stopping, _stopping.c.thread_key == RUNS.c.thread_key).outerjoin(
            _last, _last.c.turn_id == RUNS.c.turn_id
        )
    )
    .where(
        _stopping.c.turn_id == sa.bindparam("of_turn"),
        RUNS.c.cancel_us == _stopping.c.created_us,  # both are written by the same commit
        RUNS.c.status == sa.literal_column(f"'{RunStatus.CANCELLED}'"),
    )
)
"""The run that a message cut short, with its last turn's message."""
_EFFECTS: Final = Query(
    sa.select(TOOL_CALLS.c.plan_step, TOOL_CALLS.c.state, TOOL_CALLS.c.status).where(
        TOOL_CALLS.c.run_id == sa.bindparam("of_run")
    )
)
_STEPS_TOLD: Final = Query(
    sa.select(EVENTS.c.payload)
    .where(EVENTS.c.run_id == sa.bindparam("of_run"), EVENTS.c.kind == sa.literal_column("'step'"))
    .order_by(EVENTS.c.sequence)
)
_STATUSES: Final = get_args(StepStatus)
_WORKED: Final = frozenset({"success", "evicted"})


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits for its person, as the end of another turn of its thread finds it."""

    run_id: str
    card: tuple[ApprovalRequest, ...]
    """What it asks them to approve; without a card it waits for words."""
    steps: tuple[str, ...]
    """What it has not done and may still go on with, in the person's words."""
    done: tuple[str, ...]
    asks: bool
    """Whether it waits for words and said more than that it did not understand."""
    question: str
    """What it asked if it waits for words, empty if that was no question."""
    words: str
    """What the person said in its last turn, empty if that is not kept."""
    unknown: tuple[str, ...] = ()
    """What nobody knows of whether it was done."""
    reminded: bool = False
    """Whether a reply since it began to wait has told what it waits for."""

    @property
    def asks_nothing(self) -> bool:
        """Return True if nothing is lost when it ends: it waits for any words at all."""
        return not (self.card or self.steps or self.asks)


def command_of(turn: StoredTurn) -> Command | None:
    """Return the command that a message gives to the conversation, or None for any other and for what is no message."""
    if turn.kind != "message" or turn.attachments:
        return None
    return read_command(without_store_phrase(turn.text) if turn.do_not_store else turn.text)


def passes_by(turn: StoredTurn) -> bool:
    """Return True if a message answers no question, whatever waits: it gives a command, or begins a form."""
    return turn.kind == "message" and (turn.form != "" or command_of(turn) is not None)


def run_for(
    turn: StoredTurn, runs: Sequence[Any], *, handed_off: bool = False, form_open: bool = False, form_run: str = ""
) -> Any | None:
    """Return the active run of its thread in which a turn is served, or None if it opens a new run.

    An answer is for the run it names, and one that names none is for the run that spoke last, unless that only said
    that it had not understood: then for the newest that asked something, which shows its question again. A command to
    the conversation and the words that begin a form are for no run that waits. Other words are for a run that asked the
    person something, unless a form is open, which asks in its place; otherwise for a new run, unless too many wait
    already. A question about what waits is for the run that asks it. While a person has the thread, only an answer that
    names its approval is for a run that waits: everything else is said to that person. A yes or no that names no
    approval, where the run of the open form's review (``form_run``) is the one that waits and something else was said
    since, is for the form, which shows what it submits once more.
    """
    served = next((run for run in runs if run.status in SERVED), None)
    if served is not None or turn.over_share:  # that is told in a run of its own; what waits goes on waiting
        return served
    if turn.kind == "approval_decided":
        return next((run for run in runs if run.run_id == turn.run_id), None)
    spoke = sorted(runs, key=lambda run: run.spoke_at or 0, reverse=True)
    waiting = [run for run in spoke if run.approval_id]
    reply = parse_reply(turn.text) if waiting else None
    if reply is not None or handed_off or (waiting and turn.text == WHICH):
        named = next((run for run in waiting if reply and reply.approval_id in _ids(run)), None)
        return named if named or handed_off else waiting[0]
    if not spoke or passes_by(turn):
        return None
    if waiting and is_answer(turn.text):
        since = spoke[0].run_id == form_run and turn.position > (spoke[0].spoke_at or 0) + 1
        return None if since else next((run for run in spoke if run.approval_id or _asks_yes_or_no(run)), spoke[0])
    about = waiting if waiting and not form_open and _asks_about(turn, waiting[0]) else []
    asks = [] if form_open else [run for run in spoke if not run.approval_id]
    takes = about or asks or (waiting if len(waiting) >= MAX_WAITING else [])
    return takes[0] if takes else None


def _asks_about(turn: StoredTurn, run: Any) -> bool:
    """Return True if a message is a question about what a run asks; a bare why is, if nothing was said since."""
    next_to_it = asks_only_why(turn.text) and turn.position == (run.spoke_at or 0) + 1
    return next_to_it or asks_about_card(turn.text)


def waiting_beside(connection: Connection, thread_key: str, run_id: str) -> list[WaitingRun]:
    """Return the other runs of a thread that wait for its person, the oldest first."""
    rows = _BESIDE.all(connection, {"of_thread": thread_key, "but_run": run_id})
    return [_waiting(row) for row in sorted(rows, key=lambda row: row.spoke_at or 0)]


def answered_next(connection: Connection, thread_key: str) -> set[str]:
    """Return the approvals that messages of a thread answer which are stored and not served yet."""
    texts = (to_text(row.text) for row in _SERVED_NEXT.all(connection, {"of_thread": thread_key}))
    return {reply.approval_id for text in texts if (reply := parse_reply(text)) is not None}


def cut_short(connection: Connection, turn_id: str) -> list[WaitingRun]:
    """Return the runs that a turn's message cut short. What was done is what the ledger says, step by step."""
    return [_cut(connection, row) for row in _CUT.all(connection, {"of_turn": turn_id})]


def _cut(connection: Connection, row: Any) -> WaitingRun:
    of_run = {"of_run": row.run_id}
    effects = _EFFECTS.all(connection, of_run)
    worked = {one.plan_step for one in effects if one.state == EffectState.FINISHED and one.status in _WORKED}
    doubted = {one.plan_step for one in effects if one.state == EffectState.IN_DOUBT} - worked
    steps = {step["step_id"]: step for step in json.loads(row.steps)}
    told = [json.loads(event.payload) for event in _STEPS_TOLD.all(connection, of_run)]
    steps |= {step["step_id"]: step for step in told}  # the row has them as they were at the end of a turn
    done, unknown, left = list[str](), list[str](), list[str]()
    for name, step in steps.items():
        was_done = name in worked or step["status"] == "done"
        kind = done if was_done else unknown if name in doubted else left
        kind.append(step["description"])
    words = to_text(row.text or b"") if row.kind == "message" else ""
    return WaitingRun(
        row.run_id,
        card=(),
        steps=tuple(left),
        done=tuple(done),
        asks=not steps,
        question="",
        words=shortened(words),
        unknown=tuple(unknown),
    )


def _asks_yes_or_no(run: Any) -> bool:
    """Return True if a yes or no may be for a run that waits for words; one whose step failed asks what else to do."""
    over = any(step["status"] in {"failed", "blocked"} for step in json.loads(run.steps))
    return _asked(run.last_reply) and not over


def _asked(reply: bytes | None) -> bool:
    """Return True unless a run's last reply only said that the person's words, or their yes or no, were not clear."""
    said = _first_part(reply)
    unclear = tuple(in_each_language("answer_to_nothing").values())
    return not (said.startswith(unclear) or any(is_unknown(said, language) for language in get_args(Language)))


def _first_part(reply: bytes | None) -> str:
    """Return a stored reply without what it says of masks before, and of what else waits behind."""
    return without_masks_told(to_text(reply or b"")).partition("\n\n")[0]


def _waiting(row: Any) -> WaitingRun:
    steps = json.loads(row.steps)
    stand = {status: tuple(one["description"] for one in steps if one["status"] == status) for status in _STATUSES}
    card, reply = card_of(row), _first_part(row.reply_text)
    over = not card and (stand["failed"] or stand["blocked"])  # its reply said what is not done: it only goes on anew
    unknown = any(is_unknown(reply, language) for language in get_args(Language))
    words = to_text(row.text) if row.kind == "message" else ""
    return WaitingRun(
        row.run_id,
        card,
        steps=() if over else (*stand["running"], *stand["pending"]),
        done=stand["done"],
        asks=bool(reply) and not (card or over or unknown),
        question="" if card or over or unknown or "?" not in reply else shortened(reply),
        words=shortened(words) if parse_reply(words) is None else "",
        reminded=bool(row.reminded),
    )


def card_of(row: Any) -> tuple[ApprovalRequest, ...]:
    """Return a run's approval card; a run suspended before cards were stored has only its approval id.

    What each call does is not on the stored card, but among the run's steps.
    """
    steps = {step["step_id"]: step["description"] for step in json.loads(row.steps)}
    card = tuple(replace(one, step=steps.get(one.step_id, "")) for one in _stored_card(row))
    return card if card or not row.approval_id else (ApprovalRequest(row.approval_id, "", "self"),)


def _stored_card(row: Any) -> tuple[ApprovalRequest, ...]:
    return tuple(ApprovalRequest(*one) for one in json.loads(row.card))


def card_json(card: Sequence[ApprovalRequest]) -> str:
    """Return a card as stored in a run's row."""
    fields = ([one.approval_id, one.tool, one.approval_class, one.open, one.step_id] for one in card)
    # what is not high is stored as before, so that an agent of an earlier version reads it
    return json.dumps([[*each, "", True] if one.high else each for one, each in zip(card, fields, strict=True)])


def _ids(run: Any) -> set[str]:
    return {run.approval_id, *(one.approval_id for one in _stored_card(run))}
