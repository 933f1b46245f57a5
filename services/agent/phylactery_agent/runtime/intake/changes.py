"""Changes that a message makes to earlier requests in its thread.

Examples are "no, I meant b.txt", "and c.txt too", "do it again" and "never mind". Only the agent's own inbox determines
what came before, and a thread belongs to one user, so it contains no other user's words. The result is used for
planning only: RiskGate receives the task that the new words continue, and combines them itself with the words it
recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_understanding.replies.amendment import amended, may_amend, repeats
from phylactery_understanding.replies.retraction import read_retraction
from phylactery_understanding.replies.stops import read_stop
from phylactery_understanding.requests.model import Request
from phylactery_understanding.requests.parser import parse

from phylactery_agent.ports import EffectState, LikelyMeaning
from phylactery_agent.rules.intents import is_answer, parse_reply, talk_kind
from phylactery_agent.rules.likely import completed
from phylactery_agent.rules.plain_replies import asks_last_request, plain_reply, wants_retry
from phylactery_agent.rules.planner import PlannedCall, read_aside, read_request
from phylactery_agent.rules.references import (
    cancels,
    is_another_time,
    is_one_more,
    may_refer,
    referred,
    repeats_with,
    restated,
    reversal,
    time_alone,
)
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.storage.schema import INBOX, SCHEDULES, TOOL_CALLS, to_bytes, to_text
from phylactery_agent.timeparse.recurrence import zone
from phylactery_agent.timeparse.shifts import exact_time, shift_in
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import CANCEL_REMINDER, CREATE_REMINDER, UNDO_WRITE, WRITE_FILE

MAX_CHANGE_US: Final = 3_600 * MICROSECONDS
"""The longest time after its answer at which a request can be changed, in microseconds."""
_LONGEST: Final = 400
"""Maximum length, in characters, of a message that may change another."""
_LONGEST_EARLIER: Final = 4_000
_MOST: Final = 8
"""Maximum number of messages in a chain in which each may change the one before it."""
_LOOKED_AT: Final = 16
"""Maximum number of messages searched for that chain: small talk and approval replies come in between."""

_BEFORE = Query(
    sa.select(
        INBOX.c.turn_id,
        INBOX.c.run_id,
        INBOX.c.task_id,
        INBOX.c.kind,
        INBOX.c.text,
        INBOX.c.lead_turn,
        INBOX.c.do_not_store,
        INBOX.c.handled_us,
    )
    .where(
        INBOX.c.thread_key == sa.bindparam("of_thread"),
        INBOX.c.position < sa.bindparam("before"),
        INBOX.c.state == "handled",
        INBOX.c.message_starts.is_not(None),  # nobody knows who wrote the text of an older row
    )
    .order_by(INBOX.c.position.desc())
    .limit(_LOOKED_AT)
)


@dataclass(frozen=True, slots=True)
class ThreadChange:
    """The change that a message makes.

    meant is the resulting request, or empty if there is none; takes_back means that the message retracts the earlier
    request. task_id is the RiskGate task that its words continue, and run_id is that task's run.
    """

    meant: str = ""
    takes_back: bool = False
    task_id: str = ""
    run_id: str = ""
    stays: tuple[str, str] | None = None
    """What stays as it is although this message corrects it or takes it back: a tool, and what it was done to."""
    said_before: str = ""
    """The user's last request, if this message asks for it."""
    told: LikelyMeaning | None = None
    """The reply to words that take back something else than what was done last."""


NO_CHANGE: Final = ThreadChange()


@dataclass(frozen=True, slots=True)
class _Said:
    """One earlier message."""

    text: str
    task_id: str
    run_id: str


class ThreadChanges:
    """Detection of the changes that messages make."""

    def __init__(self, database: Database, clock: Clock, tools: ToolRegistry, *, seconds: int) -> None:
        """Take the database; seconds is how long after its answer a request can be changed, 0 for never."""
        self._database, self._clock, self._tools = database, clock, tools
        self._window_us = seconds * MICROSECONDS

    async def of(self, claim: Claim) -> ThreadChange:
        """Return what a claimed message changes. Only a message that may change another costs a database read."""
        turn = claim.turn
        if not self._window_us or turn.kind != "message" or turn.do_not_store or not _may_change(turn.text):
            return NO_CHANGE
        shift = shift_in(turn.text)
        return await (self._changed(claim) if shift is None else self._shifted(claim, shift))

    async def _changed(self, claim: Claim) -> ThreadChange:
        """Return what a message that may change another changes."""
        turn = claim.turn
        later = parse(turn.text)
        takes_back = read_retraction(turn.text) is not None
        if not takes_back and not may_amend(later) and not may_refer(turn.text, later):
            return NO_CHANGE
        earlier = await self._earlier(claim, past_answers=repeats(later))
        if not earlier:
            return NO_CHANGE
        if asks_last_request(turn.text):
            return ThreadChange(said_before=earlier[-1].text)
        lane = (turn.owner.tenant, turn.owner.user_id)
        texts = [one.text for one in earlier]
        read = await read_aside(lane, "\n".join(texts), lambda: _read(texts, turn.text, later, self._tools))
        newest = earlier[read.place]
        replaces = (takes_back or read.corrects) and not read.adds
        done = await self._done(claim, newest.run_id, read.before) if replaces else None
        meant, stays = read.meant, None
        if done is not None and read.cancels:
            meant = reversal(done, newest.text)
        elif done is not None and read.after is not None and done.tool == read.after.tool == CREATE_REMINDER.name:
            meant = f"{reversal(done, newest.text)}; {restated(read.after, newest.text)}"
        elif done is not None and not read.ends:
            name = str(done.args["text" if done.tool == CREATE_REMINDER.name else "path"])
            replaced = read.after is not None and read.after.args.get("path") == name
            stays = None if replaced else (done.tool, name)
        if not meant and not takes_back:
            return NO_CHANGE
        return ThreadChange(meant, takes_back and not meant, newest.task_id, newest.run_id, stays)

    async def _shifted(self, claim: Claim, shift: timedelta) -> ThreadChange:
        """Return the change that moves the thread's newest reminder, which is cancelled and set again.

        A repeated one is not moved: its rule would be lost. Nor is one of long ago, which nobody has just spoken of.
        """
        now_us = self._clock.now_us()
        query = (
            sa.select(SCHEDULES.c.text, SCHEDULES.c.due_us, SCHEDULES.c.time_zone, SCHEDULES.c.repeat)
            .where(
                SCHEDULES.c.thread_key == claim.lease.thread_key,
                SCHEDULES.c.state == "active",
                SCHEDULES.c.created_us >= now_us - self._window_us,
            )
            .order_by(SCHEDULES.c.created_us.desc(), SCHEDULES.c.schedule_id.desc())
            .limit(1)
        )
        earlier = await self._earlier(claim)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        if row is None or row.repeat or not earlier:
            return NO_CHANGE
        newest = earlier[-1]
        due = datetime.fromtimestamp(row.due_us / MICROSECONDS, UTC).astimezone(zone(row.time_zone)) + shift
        if due.timestamp() * MICROSECONDS <= now_us:
            return NO_CHANGE  # the new one would be refused after the old one was cancelled
        args = {"text": to_text(row.text), "when": exact_time(due)}
        call = PlannedCall(CREATE_REMINDER.name, args, claim.turn.text)
        said = f"{newest.text} {claim.turn.text}"
        meant = f"{reversal(call, said)}; {restated(call, said)}"
        return ThreadChange(meant, task_id=newest.task_id, run_id=newest.run_id)

    async def _done(self, claim: Claim, run_id: str, call: PlannedCall | None) -> PlannedCall | None:
        """Return a call if the effect that it asked for was done in a run and still stands, or None."""
        if call is None:
            return None
        if call.tool == CREATE_REMINDER.name:
            query = sa.select(SCHEDULES.c.text).where(
                SCHEDULES.c.thread_key == claim.lease.thread_key, SCHEDULES.c.state == "active"
            )
            wanted: Any = to_bytes(str(call.args["text"]))
        elif call.tool == WRITE_FILE.name:
            query = sa.select(TOOL_CALLS.c.tool).where(
                TOOL_CALLS.c.run_id == run_id,
                TOOL_CALLS.c.state == EffectState.FINISHED,
                TOOL_CALLS.c.status != "error",
            )
            wanted = call.tool
        else:
            return None
        done = await self._database.read(lambda connection: connection.scalars(query).all())
        return call if done.count(wanted) == 1 else None

    async def _earlier(self, claim: Claim, *, past_answers: bool = False) -> Sequence[_Said]:
        """Return the user's earlier requests, oldest first: a bounded number, back to the first that does not count.

        Words that stopped one, and a plain yes or no, are none that is asked for again, but nothing else goes back
        behind them.
        """
        values = {"of_thread": claim.lease.thread_key, "before": claim.turn.position}
        rows = await self._database.read_quickly(lambda connection: _BEFORE.all(connection, values), one=True)
        now_us, found, closed_us = self._clock.now_us(), list[_Said](), dict[str, int]()
        for row in rows:
            text = to_text(row.text)
            if row.kind != "message" or parse_reply(text) is not None:  # its request was answered only then
                closed_us.setdefault(row.run_id, row.handled_us)
            answered_us = closed_us.get(row.run_id, row.handled_us)
            if abs(now_us - answered_us) > self._window_us or row.do_not_store or row.lead_turn:
                break  # too old, not stored, or only a part of a request
            if row.kind != "message" or talk_kind(text) is not None or parse_reply(text) is not None:
                continue
            if past_answers and (read_stop(text) is not None or is_answer(text) or wants_retry(text)):
                continue
            if len(text) > _LONGEST_EARLIER or len(found) == _MOST:
                break
            found.append(_Said(text, row.task_id, row.run_id))
        return found[::-1]


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a message makes of earlier ones.

    before and after are the only call of the request before it and of the one that results; corrects means that the
    second is wanted instead of the first, and cancels that nothing is.
    """

    meant: str
    corrects: bool
    cancels: bool
    before: PlannedCall | None
    after: PlannedCall | None
    adds: bool
    """True if the message wants one more of what the request before it made, which therefore stays."""
    ends: bool
    """True if the message itself asks to cancel or undo something, so that it takes back nothing else."""
    place: int
    """Which of the earlier messages that is."""


def _may_change(text: str) -> bool:
    if len(text) > _LONGEST or parse_reply(text) is not None:
        return False
    return talk_kind(text) is None or bool(time_alone(text))  # "morning" answers which half of the day is meant


def _read(texts: Sequence[str], text: str, later: Request, tools: ToolRegistry) -> _Reading:
    known = _known(texts, tools)
    if meant := completed(known[-1], text, tools):
        made = _only_call(meant, tools)
        return _Reading(
            meant, corrects=False, cancels=False, before=None, after=made, adds=True, ends=False, place=len(known) - 1
        )
    meant, corrects = _meant(parse(known[-1]), later) if may_amend(later) else ("", False)
    if meant and (read_request(meant, tools).clauses or plain_reply(meant)):
        before, after = _only_call(known[-1], tools), _only_call(meant, tools)
        place = len(known) - 1
        return _Reading(meant, corrects, cancels=False, before=before, after=after, adds=False, ends=False, place=place)
    # A message that only refers back skips requests that were not understood: they were answered with a question.
    newest = len(known) - 1
    place = (
        newest
        if repeats_with(text)
        else next((at for at in range(newest, -1, -1) if read_request(known[at], tools).clauses), newest)
    )
    before = _only_call(known[place], tools)
    meant = referred(known[: place + 1], text, tools)
    taken = before is not None and cancels(later, before)
    after = _only_call(meant, tools) if meant else None
    corrects, adds = bool(meant) and is_another_time(text), is_one_more(text)
    return _Reading(meant, corrects, taken, before, after, adds=adds, ends=_ends(text, tools), place=place)


def _ends(text: str, tools: ToolRegistry) -> bool:
    clauses = read_request(text, tools).clauses
    return bool(clauses) and all(one[0].tool in {CANCEL_REMINDER.name, UNDO_WRITE.name} for one in clauses)


def _only_call(text: str, tools: ToolRegistry) -> PlannedCall | None:
    clauses = read_request(text, tools).clauses
    return clauses[0][0] if len(clauses) == 1 else None


def _known(texts: Sequence[str], tools: ToolRegistry) -> Sequence[str]:
    """Return requests with each that changes the one before it, or refers to one, as the request that it makes."""
    known: list[str] = []
    for text in texts:
        meant = completed(known[-1], text, tools) or _meant(parse(known[-1]), parse(text))[0] if known else ""
        known.append(meant or (referred(known, text, tools) if known else "") or text)
    return known


def _meant(known: Request, later: Request) -> tuple[str, bool]:
    """Return the request that results from applying a message to one, or an empty string, and whether it corrects."""
    amends = amended(known, later)
    if amends is not None:
        return amends.request.text, amends.corrects
    return known.text if repeats(later) and known.asks else "", False
