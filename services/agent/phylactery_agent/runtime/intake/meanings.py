"""What words that no pattern reads most likely mean, with what the thread said before; and the yes to an offer of it.

An offer is kept nowhere but in the thread: it holds for the very next message, and only if the reply that made it is
the last one and the same words still mean the same request (ADR 53).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_understanding.interpretation.pasting import own_statements
from phylactery_understanding.replies.answers import read_answer

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.i18n.texts import say, shortened
from phylactery_agent.ports import EffectState, Language, LikelyMeaning
from phylactery_agent.rules.commands import denies_wish
from phylactery_agent.rules.intents import parse_reply, talk_kind
from phylactery_agent.rules.likely import NOTHING, Said, likely, said_in
from phylactery_agent.rules.planner import off_tool, read_request
from phylactery_agent.rules.recognition.features import MAX_CHARS
from phylactery_agent.runtime.intake.changes import NO_CHANGE, ThreadChange
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.storage.schema import INBOX, RUNS, TOOL_CALLS, to_text
from phylactery_agent.timeparse.places import zone_stated
from phylactery_agent.tools.registry import ToolRegistry

_LOOKED_AT: Final = 8
"""Maximum number of earlier messages whose files and reminders a message may point to."""
_LONGEST_REPLY: Final = 2_000
_BEFORE: Final = Query(
    sa.select(
        *(INBOX.c.run_id, INBOX.c.task_id, INBOX.c.kind, INBOX.c.text, INBOX.c.reply_text),
        *(INBOX.c.language, INBOX.c.do_not_store, INBOX.c.handled_us),
    )
    .where(
        INBOX.c.thread_key == sa.bindparam("of_thread"),
        INBOX.c.position < sa.bindparam("before"),
        INBOX.c.state == "handled",
    )
    .order_by(INBOX.c.position.desc())
    .limit(_LOOKED_AT)
)
_DONE: Final = Query(
    sa.select(TOOL_CALLS.c.tool)
    .join(RUNS, RUNS.c.run_id == TOOL_CALLS.c.run_id)
    .where(
        RUNS.c.thread_key == sa.bindparam("of_thread"),
        TOOL_CALLS.c.state == EffectState.FINISHED,
        TOOL_CALLS.c.status != "error",
    )
    .order_by(TOOL_CALLS.c.created_us)
    .limit(100)
)
_REDACTED: Final = '"secret:'
"""What the findings of a message hold in which a secret was found."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """One earlier message and its reply."""

    text: str
    reply: str
    run_id: str
    task_id: str


class LikelyMeanings:
    """Recognition of messages by what they resemble."""

    def __init__(
        self, database: Database, clock: Clock, tools: ToolRegistry, *, seconds: int, forms: Sequence[tuple[str, str]]
    ) -> None:
        """``seconds`` is how long an earlier message counts; ``forms`` are the titles in Spanish and English."""
        self._database, self._clock, self._tools, self._forms = database, clock, tools, forms
        self._window_us = seconds * MICROSECONDS

    async def of(self, claim: Claim, text: str, language: Language) -> LikelyMeaning | None:
        """Return what a message most likely means, or None if a pattern reads it or nothing is likely.

        Nothing is made of a message in which a secret was found, or of which nothing may be stored.
        """
        turn = claim.turn
        if turn.kind != "message" or turn.do_not_store or _REDACTED in turn.findings or len(text) > MAX_CHARS:
            return None
        if parse_reply(text) is not None or talk_kind(text) is not None or own_statements(text) != text:
            return None  # what somebody else said is not offered as the person's wish
        if read_request(text, self._tools).clauses or off_tool(text, self._tools) or zone_stated(text):
            return None  # what a person tells of themselves is kept in their words, and said with its zone
        earlier = await self._earlier(claim)
        meant = likely(text, self._said(earlier, language), self._tools, language)
        if meant.offered and _asks_approval(claim):
            return None  # a yes would be unclear while an approval waits
        return await self._told(meant, claim, earlier, language)

    async def accepted(self, claim: Claim, language: Language) -> ThreadChange:
        """Return the request that was offered in the reply just before a bare yes, or NO_CHANGE."""
        turn = claim.turn
        if turn.kind != "message" or turn.do_not_store or _asks_approval(claim) or read_answer(turn.text) != "yes":
            return NO_CHANGE
        if turn.others:
            return NO_CHANGE  # it may be a yes to those words
        earlier = await self._earlier(claim)
        if not earlier or talk_kind(earlier[0].text) is not None:
            return NO_CHANGE
        last = earlier[0]
        meant = likely(last.text, self._said(earlier[1:], language), self._tools, language)
        if not meant.offered or say("offer", language, request=meant.request) not in last.reply:
            return NO_CHANGE
        return ThreadChange(meant.request, task_id=last.task_id, run_id=last.run_id)

    def _said(self, earlier: Sequence[_Turn], language: Language) -> Said:
        """Return what earlier messages named; one that no pattern reads counts as the request it was taken for."""
        known: list[tuple[str, str]] = []
        for turn in reversed(earlier):
            text = turn.text
            if not read_request(text, self._tools).clauses:
                meant = likely(text, said_in(known, self._tools), self._tools, language)
                text = meant.request or text
            known.insert(0, (text, turn.reply))
        return said_in(known, self._tools)

    async def _earlier(self, claim: Claim) -> list[_Turn]:
        """Return the earlier messages of the thread, the newest first, back to the first that does not count."""
        if not self._window_us:
            return []
        values = {"of_thread": claim.lease.thread_key, "before": claim.turn.position}
        rows = await self._database.read_quickly(lambda connection: _BEFORE.all(connection, values), one=True)
        now_us, found = self._clock.now_us(), list[_Turn]()
        for row in rows:
            if abs(now_us - row.handled_us) > self._window_us or row.do_not_store:
                break
            text = to_text(row.text) if row.kind == "message" else ""
            text = text if len(text) <= MAX_CHARS else ""  # a longer one resembles nothing, and takes long to read
            found.append(_Turn(text, to_text(row.reply_text), row.run_id, row.task_id))
        return found

    async def _told(
        self, meant: LikelyMeaning, claim: Claim, earlier: Sequence[_Turn], language: Language
    ) -> LikelyMeaning | None:
        """Return a meaning with the values that its reply needs from the thread."""
        match meant.key:
            case "repeat":
                told = tuple(text.partition("{")[0] for text in in_each_language("repeat").values())
                last = next((one.reply for one in earlier if one.reply and not one.reply.startswith(told)), "")
                return (
                    replace(meant, values={"reply": shortened(last, _LONGEST_REPLY)})
                    if last
                    else _reply("repeat_nothing")
                )
            case "pending" | "nothing_waits_at_all" | "dropped" if meant.key != "dropped" or _asks_approval(claim):
                # nor was what waits dropped by words that only resemble a no
                return _reply("pending_some" if claim.beside else "nothing_waits_at_all")
            case "handoff_say" if denies_wish(claim.turn.text):
                return _reply("fine")
            case "form_list":
                titles = ", ".join(english if language == "en" else spanish for spanish, english in self._forms)
                return _with(meant, forms=titles) if titles else _reply("form_list_none")
            case "history":
                return _with(meant, done=",".join(await self._done(claim)))
            case _:
                return None if meant is NOTHING else meant

    async def _done(self, claim: Claim) -> list[str]:
        """Return the tools whose effects were done in the thread."""
        values: dict[str, Any] = {"of_thread": claim.lease.thread_key}
        rows = await self._database.read(lambda connection: _DONE.all(connection, values))
        effects = {spec.name for spec in self._tools.offered() if spec.contract.effect != "read"}
        return [row.tool for row in rows if row.tool in effects]


def _asks_approval(claim: Claim) -> bool:
    return any(run.approval_id for run in claim.beside)


def _with(meant: LikelyMeaning, **values: str) -> LikelyMeaning:
    return replace(meant, values={**meant.values, **values})


def _reply(key: str) -> LikelyMeaning:
    return LikelyMeaning(key=key)
