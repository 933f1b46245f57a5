"""The end of a run, or of a turn that leaves it waiting: everything that goes with it, in the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query, Record, RowUpdate
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_agent.checkpoints import rows as checkpoints
from phylactery_agent.i18n.messages import message
from phylactery_agent.i18n.texts import named, say, step_text, waiting_line
from phylactery_agent.ports import Language, as_shown
from phylactery_agent.runtime.effects import undoing
from phylactery_agent.runtime.effects.ledger import close_open_effects, deny_proposals, forget_outputs
from phylactery_agent.runtime.effects.outbox import queue_memory, queue_task_end, queue_transcript, queue_withdrawal
from phylactery_agent.runtime.guests.lifts import level_in, told_level
from phylactery_agent.runtime.guests.shares import NO_LIMITS, OVER_SHARE, Shares
from phylactery_agent.runtime.handoff.queue import HANDED_OFF, STOPPED_FOR_PERSON, open_in, pass_on, shown
from phylactery_agent.runtime.intake.redaction import HIDDEN, masks_told
from phylactery_agent.runtime.intake.waiting import (
    CLOSING,
    WaitingRun,
    answered_next,
    card_json,
    cut_short,
    waiting_beside,
)
from phylactery_agent.runtime.runs.status import ACTIVE, RunStatus, advance
from phylactery_agent.runtime.storage.events import SILENT, append_event
from phylactery_agent.runtime.storage.records import Ending, Lease, StoredTurn
from phylactery_agent.runtime.storage.schema import INBOX, RUNS, to_bytes
from phylactery_agent.runtime.turn.canned_replies import CANCELLED
from phylactery_agent.runtime.turn.model_calls import forget_replies
from phylactery_agent.runtime.turn.tasks import tasks_of
from phylactery_agent.tools.registry import ToolRegistry

SUPERSEDED: Final = "SUPERSEDED"
"""The reason of a run that waited and is not needed any more: another turn of its thread took its place."""
_MAX_TRANSCRIPT = 100_000
"""Characters memory takes in one message."""

_SET_RUN = RowUpdate(RUNS, "run_id")
_SET_TURN = RowUpdate(INBOX, "turn_id")
_LOCKED = Query(sa.select(RUNS).where(RUNS.c.run_id == sa.bindparam("of_run")).with_for_update())
_STEPS = Query(sa.select(RUNS.c.steps).where(RUNS.c.run_id == sa.bindparam("of_run")))
_LANGUAGE = Query(sa.select(RUNS.c.language).where(RUNS.c.run_id == sa.bindparam("of_run")))
_KEEPING_NOTHING = Query(
    sa.select(INBOX.c.turn_id).where(INBOX.c.run_id == sa.bindparam("of_run"), INBOX.c.do_not_store).limit(1)
)


def end(
    connection: Connection,
    lease: Lease,
    status: RunStatus,
    ending: Ending,
    now: int,
    *,
    tools: ToolRegistry,
    shares: Shares = NO_LIMITS,
    turn: StoredTurn | None = None,
    keep_seconds: int = 0,
    tells: bool = True,
    **noted: Any,
) -> Ending:
    """End or suspend a run, and return the outcome with the final reply.

    The reply ends with what ran in the thread without a question and the person was not told of yet, in the transaction
    that ends the turn: killed before it, it is told once the turn is served again. Without ``tells`` another reply
    does.

    status is that of the row, locked by the caller; turn is the one being served, or None if the run is not being
    served. Then lease is that of the run's last turn, whose message and end are already recorded. noted is written into
    the row. Other runs of the thread keep waiting: see ADR 41. Raise RunTransitionError.
    """
    advance(status, ending.status)
    private = ending.do_not_store or (turn is not None and turn.do_not_store)
    private = private or ((turn is None or turn.resumed) and _keeps_nothing(connection, lease.run_id))
    names = undoing.names_of(connection, lease) if tells and ending.reason != OVER_SHARE else None
    if ending.status not in ACTIVE:
        _close(connection, lease, ending, now, keep_seconds=0 if private else keep_seconds)
    if ending.tells_others:
        ending = _pass_by(connection, lease, ending, now, tools=tools, served=turn is not None)
    if ending.escalation is not None:
        ending = _called_person(connection, lease, ending, shares, now)
    if turn is not None:
        ending = _own_up(connection, lease, ending, turn)
    ending, heard = _say_all(connection, lease, ending, now, names=names, served=turn is not None, tools=tools)
    unanswered = not heard or ending.reason in (HANDED_OFF, STOPPED_FOR_PERSON)
    if turn is not None and turn.kind == "message" and unanswered:
        text = "" if private else with_others(turn, _language_of(connection, lease.run_id))
        pass_on(connection, lease, text, now=now)
        ending = replace(ending, passed_on=True)
    finished = {"status": f"RUN_STATUS_{ending.status.upper()}", "reason": ending.reason}
    over = "run_cancelled" if turn is None else "run_finished"
    sequence = append_event(connection, lease, "run_finished", finished, once=over, now_us=now)
    values = {
        "status": ending.status,
        "reason": ending.reason,
        "approval_id": ending.approval_id,
        "card": card_json(ending.card),
        "fence": lease.fence,
        "lease_owner": "",
        "lease_until_us": 0,
        "updated_us": now,
        **noted,
    }
    if ending.steps is not None:
        values["steps"] = json.dumps([dict(step) for step in ending.steps])
    _SET_RUN.later(connection, lease.run_id, **values)
    if turn is not None:
        _handle(connection, (lease.turn_id, *turn.joined), ending, sequence, now, private=private)
    if private:
        return ending
    messages = list(_transcript(turn, ending, now, _language_of(connection, lease.run_id)))
    if messages:
        once = lease.turn_id if turn is not None else ending.reply_id
        queue_transcript(connection, lease, messages, once=once, now_us=now)
    if turn is not None and ending.worth_remembering and (said := said_in(turn)):
        queue_memory(connection, lease, said, now_us=now)
    return ending


def _close(connection: Connection, lease: Lease, ending: Ending, now: int, *, keep_seconds: int) -> None:
    """Settle what a run leaves open that has ended: effects, questions, its state, its tasks and its steps."""
    close_open_effects(connection, lease, now)
    cancelled = ending.status == RunStatus.CANCELLED
    if deny_proposals(connection, lease, CANCELLED if cancelled else ending.reason, now) or cancelled:
        queue_withdrawal(connection, lease, now_us=now)
    checkpoints.forget_thread(connection, lease.run_id)
    forget_replies(connection, lease.run_id)
    forget_outputs(connection, lease.run_id)
    for opened in tasks_of(connection, lease.run_id):
        queue_task_end(connection, lease, opened.task_id, now_us=now, keep_seconds=keep_seconds)
    if ending.steps is None:
        _close_steps(connection, lease, now)


def _close_steps(connection: Connection, lease: Lease, now: int) -> None:
    """Mark as failed every step of a run that ended while they were under way, and tell the thread.

    What was never begun stays pending.
    """
    kept = _STEPS.one(connection, {"of_run": lease.run_id})
    steps: Sequence[Mapping[str, Any]] = [] if kept is None else json.loads(kept.steps)
    closed = [{**step, "status": "failed"} if step["status"] == "running" else step for step in steps]
    if closed == list(steps):
        return
    _SET_RUN.later(connection, lease.run_id, steps=json.dumps(closed))
    for before, after in zip(steps, closed, strict=True):
        if before is not after:
            append_event(connection, lease, "step", after, once=f"step_closed:{after['step_id']}", now_us=now)


def _called_person(connection: Connection, lease: Lease, ending: Ending, shares: Shares, now: int) -> Ending:
    """Open the escalation that a turn ends with, and tell the thread; return the ending.

    Each wish counts, also one for a person who is called already. Above the person's share nobody is called, and that
    is what the turn says, once a day.
    """
    wanted = ending.escalation
    assert wanted is not None, "only such an ending calls a person"
    language = _language_of(connection, lease.run_id)
    if not shares.take_for_turn(connection, lease, "escalations", now):
        first = shares.tells(connection, lease.owner, "escalations")
        return replace(ending, escalation=None, reply_text=message("share_escalations", language) if first else "")
    once = f"turn:{lease.turn_id}"
    opened, _ = open_in(connection, lease, wanted, run_id=lease.run_id, once=once, language=language, now=now)
    append_event(connection, lease, "handoff", shown(opened), once="handoff", now_us=now)
    return ending


def _own_up(connection: Connection, lease: Lease, ending: Ending, turn: StoredTurn) -> Ending:
    """Return an ending whose reply begins with what was masked in the person's message, if anything was.

    Every channel shows the reply, and what it says of the message is true only with this. A form gets the words as they
    are, and says of its own fields which are sensitive.
    """
    if not ending.reply_text or turn.text == HIDDEN or turn.kind != "message":
        return ending
    told = masks_told(turn.findings, _language_of(connection, lease.run_id), in_form=ending.form is not None)
    return replace(ending, reply_text=f"{told}\n\n{ending.reply_text}") if told else ending


def _say_all(
    connection: Connection,
    lease: Lease,
    ending: Ending,
    now: int,
    *,
    names: Mapping[str, str] | None,
    served: bool,
    tools: ToolRegistry,
) -> tuple[Ending, bool]:
    """Tell the thread the reply with the line of what ran without a question; return the ending, and whether it heard.

    names are those of what the line tells, None for no line. While a person has the thread nothing is told, and the
    line comes with the next reply.
    """
    line, owed = "", list[Record]()
    if names is not None:
        language, told = _language_of(connection, lease.run_id), told_level(connection, lease)
        level = level_in(connection, lease.owner, told, now)
        line, owed = undoing.line_of(connection, lease, names, language, tools, level=level)
    if line:
        ending = replace(ending, reply_text=f"{ending.reply_text}\n\n{line}" if ending.reply_text else line)
    if not _say(connection, lease, ending, now, served=served):
        return replace(ending, reply_text=""), False
    undoing.mark_told(connection, lease, owed, now_us=now)
    return ending, True


def _say(connection: Connection, lease: Lease, ending: Ending, now: int, *, served: bool) -> bool:
    """Tell the thread the reply, if any; return False if it was withheld, because a person has the thread."""
    if not ending.reply_text:
        return True
    said: dict[str, Any] = {"message_id": ending.reply_id, "text": ending.reply_text}
    said |= {"choices": list(ending.choices)} if ending.choices else {}
    once = "message" if served else "message_cancelled"
    return append_event(connection, lease, "message", said, once=once, now_us=now) != SILENT


def _handle(
    connection: Connection, turn_ids: Sequence[str], ending: Ending, sequence: int, now: int, *, private: bool
) -> None:
    """Mark turns as handled, with their answer, and drop their sealed code.

    What a person said who wants nothing of it kept is dropped too: the keyed hash of the request stays.
    """
    handled = {
        "state": "handled",
        "sealed_code": None,
        "sealed_words": None,
        "sender_phone": None,
        "handled_us": now,
        "run_status": ending.status,
        "run_reason": ending.reason,
        "approval_id": ending.approval_id,
        "reply_id": ending.reply_id,
        "reply_text": to_bytes(ending.reply_text),
        "last_sequence": sequence,
    }
    for turn_id in turn_ids:
        _SET_TURN.later(connection, turn_id, **handled)
    if private:
        for turn_id in turn_ids:
            _SET_TURN.later(connection, turn_id, text=b"", others=b"")


def _pass_by(
    connection: Connection, lease: Lease, ending: Ending, now: int, *, tools: ToolRegistry, served: bool
) -> Ending:
    """End the runs beside a turn that nobody waits for any more, and return its ending with what its reply says of all.

    A message that stops ends every run, which its reply names, and any other served message those that ask nothing.
    What is left is named at the end of the reply: approvals of the first after they began to wait, and of one that is
    asked for them, unless a message that is served next answers it; what waits for words not while a form asks, because
    an answer to the form could be taken for one.

    In the transaction of the turn's end: killed before it, nothing was ended.
    """
    language = _language_of(connection, lease.run_id)
    beside = waiting_beside(connection, lease.thread_key, lease.run_id)
    heard = served and ending.reason != OVER_SHARE  # after the day's share, what was under way goes on
    over = [one for one in beside if heard and (ending.stops or one.asks_nothing)]
    reason = CANCELLED if ending.stops else SUPERSEDED
    stopped = [one for one in over if end_beside(connection, lease, one.run_id, reason, now, tools=tools)]
    if stopped:
        reach("agent.passed.before")
    stopped += cut_short(connection, lease.turn_id) if ending.cuts else []
    reply = _stopped(stopped, language, tools) if ending.stops or (ending.cuts and stopped) else ending.reply_text
    form = ending.form
    in_form, replaced = form is not None and not form.ended, "" if form is None else form.supersedes
    gone = {replaced, ending.takes_back}
    left = [one for one in beside if one not in over and one.run_id not in gone and (one.card or not in_form)]
    asked = any(reply.startswith(say(key, language)) for key in ("pending_some", "answer_to_nothing"))
    told = [one for one in left if asked or not one.card or not (one.reminded or ending.reason in CLOSING)]
    if any(one.card for one in told):
        answered = answered_next(connection, lease.thread_key)
        told = [one for one in told if answered.isdisjoint(asked_for.approval_id for asked_for in one.card)]
    waits = _still_waits(told, language, tools) if reply else ""
    if reply == say("pending_some", language):  # the person asked for exactly this
        return replace(ending, reply_text=waits or say("nothing_waits_at_all", language))
    return replace(ending, reply_text=f"{reply}\n\n{waits}" if waits else reply)


def _stopped(stopped: Sequence[WaitingRun], language: Language, tools: ToolRegistry) -> str:
    """Return the reply to a message that stopped runs: what is not done now, and what was done before."""
    told = [say("dropped", language)]
    left = [text for one in stopped for text in _left_of(one, language, tools)]
    if left:
        told = [say("stopped", language, steps=", ".join(left))]
    if done := [text for one in stopped for text in _quoted(one.done, language, tools)]:
        told.append(say("stopped_done", language, steps=", ".join(done)))
    if unknown := [text for one in stopped for text in _quoted(one.unknown, language, tools)]:
        told.append(say("stopped_unknown", language, steps=", ".join(unknown)))
    return " ".join(told)


def _left_of(one: WaitingRun, language: Language, tools: ToolRegistry) -> Sequence[str]:
    """Return what a run that was stopped has not done, as the person said it, or else what it asked to do."""
    if one.steps or one.asks:
        return _quoted(one.steps or ((one.words,) if one.words else ()), language, tools)
    return [named([one.tool for one in one.card], language, tools)] if one.card else []


def _quoted(steps: Sequence[str], language: Language, tools: ToolRegistry) -> Sequence[str]:
    """Return steps in quotation marks; one that is described by its tool's name alone is described in words."""
    return [step_text(step, "", language, tools) for step in steps]


def _still_waits(waiting: Sequence[WaitingRun], language: Language, tools: ToolRegistry) -> str:
    """Return the lines with what runs wait for: approvals first, then what they asked or may go on with."""
    cards = [one for run in waiting for one in as_shown(run.card) if one.open]
    lines = [waiting_line(cards, language, tools)] if cards else []
    for run in waiting:
        if not run.card and run.steps:
            lines.append(say("waits_steps", language, steps=", ".join(_quoted(run.steps, language, tools))))
        elif run.question:
            lines.append(say("waits_words", language, question=run.question))
    return "\n".join(lines)


def end_beside(
    connection: Connection, lease: Lease, run_id: str, reason: str, now: int, *, tools: ToolRegistry
) -> bool:
    """End a run of the lease's thread that waits, without a word of its own; return False if it had ended meanwhile."""
    row = _LOCKED.one(connection, {"of_run": run_id})
    if row is None or row.status != RunStatus.SUSPENDED:
        return False
    its = Lease(row.run_id, row.turn_id, row.thread_id, lease.owner, holder="", fence=row.fence + 1)
    over = Ending(RunStatus.CANCELLED, reason, f"{row.turn_id}.{reason.lower()}", "")
    end(connection, its, RunStatus.SUSPENDED, over, now, tools=tools, tells=False, cancel_us=now)
    return True


def _keeps_nothing(connection: Connection, run_id: str) -> bool:
    """Return whether the person wished, in any turn of a run, that nothing of it is kept.

    It also applies to later turns, and where the graph, which knows it as well, is unavailable.
    """
    return _KEEPING_NOTHING.one(connection, {"of_run": run_id}) is not None


def message_id(turn_id: str) -> str:
    """Return the id under which the transcript holds what the person said in a turn."""
    return f"{turn_id}.user"


def said_in(turn: StoredTurn) -> Mapping[str, Any] | None:
    """Return what the person said, as the transcript takes it; None where no words opened the turn."""
    if turn.kind != "message":
        return None
    return {"id": message_id(turn.turn_id), "role": "user", "text": turn.text, "create_us": turn.created_us}


def others_in(turn: StoredTurn | None, language: Language) -> Mapping[str, Any] | None:
    """Return what others wrote that came with a turn, as the transcript takes it: no words of the person's."""
    if turn is None or not turn.others:
        return None
    text = say("passed_on", language, text=turn.others)
    return {"id": f"{turn.turn_id}.others", "role": "tool", "text": text, "create_us": turn.created_us}


def with_others(turn: StoredTurn, language: Language) -> str:
    """Return what a turn says to the person who has the conversation, with what others wrote marked as such."""
    passed_on = others_in(turn, language)
    told = [] if turn.wordless else [turn.text]
    return "\n".join([*told, passed_on["text"]] if passed_on else [turn.text])


def _language_of(connection: Connection, run_id: str) -> Language:
    row = _LANGUAGE.one(connection, {"of_run": run_id})
    return "en" if row is not None and row.language == "en" else "es"


def _transcript(turn: StoredTurn | None, ending: Ending, now: int, language: Language) -> Sequence[Mapping[str, Any]]:
    reply = HIDDEN if ending.hides_reply and ending.reply_text else ending.reply_text
    if len(reply) > _MAX_TRANSCRIPT:
        reply = reply[: _MAX_TRANSCRIPT - 1] + "…"  # the events contain all of it
    said = None if turn is None else said_in(turn)
    passed_on = others_in(turn, language)
    answered = {"id": ending.reply_id, "role": "assistant", "text": reply, "create_us": now}
    return [
        *([said] if said else []),
        *([passed_on] if passed_on else []),
        *([answered] if reply else []),
    ]
