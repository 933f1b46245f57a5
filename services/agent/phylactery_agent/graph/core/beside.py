"""Replies to messages that were served with a request and are no part of it."""

from __future__ import annotations

from datetime import UTC, datetime

from phylactery_chassis.util.clock import MICROSECONDS

from phylactery_agent.graph.core.disabled_tools import off_told
from phylactery_agent.graph.core.state import Incoming
from phylactery_agent.i18n.help import talk_text
from phylactery_agent.i18n.texts import say, shortened
from phylactery_agent.ports import Language, TurnContext
from phylactery_agent.rules.apart import tells_of_oneself
from phylactery_agent.rules.intents import talk_kind
from phylactery_agent.rules.plain_replies import asks_time
from phylactery_agent.timeparse.recurrence import zone


async def beside_told(incoming: Incoming, context: TurnContext, language: Language) -> list[str]:
    """Return the reply to each message beside the request: small talk, the time, or that it was not understood.

    What the person tells of themselves has its answer in what memory keeps of it.
    """
    likely = incoming.get("likely")
    left = likely.get("left", []) if likely else []
    return [await _told(one, context, language) for one in left if not tells_of_oneself(one)]


async def _told(text: str, context: TurnContext, language: Language) -> str:
    if kind := talk_kind(text):
        return talk_text(kind, text, language, context.tools, context.begins)
    if told := await time_told(text, context, language):
        return told
    return off_told(text, language, context.tools) or say("unknown", language, clause=shortened(text))


async def time_told(text: str, context: TurnContext, language: Language) -> str:
    """Return the time, if a text asks only for it and the person's time zone is known, or an empty string."""
    if context.reminders is None or not asks_time(text):
        return ""
    name = context.reminders.time_zone
    now = datetime.fromtimestamp(await context.reminders.asked_us() / MICROSECONDS, UTC).astimezone(zone(name))
    weekday = say("weekday", language, day=now.weekday())
    return say("time", language, weekday=weekday, date=f"{now:%Y-%m-%d}", clock=f"{now:%H:%M}", zone=name)
