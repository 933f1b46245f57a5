"""What a person is told whose request is not planned: it is understood in part, or its tool is switched off."""

from __future__ import annotations

from phylactery_agent.i18n.texts import say, shortened
from phylactery_agent.ports import Language
from phylactery_agent.rules.plain_replies import CANNOT, plain_reply
from phylactery_agent.rules.planner import Reading, off_tool
from phylactery_agent.tools.network_policy import SWITCHES
from phylactery_agent.tools.registry import disabled_reason


def not_planned(reading: Reading, language: Language, text: str) -> str:
    """Return what is said to a request that no tool is for or that is understood in part, or why its tool is off.

    Empty where nothing is known of it.
    """
    key = plain_reply(text)
    if key and not (key == CANNOT and reading.doubt):
        return say(key, language, clause=shortened(text.strip(" .!¡")))
    if reading.doubt:
        return say(f"doubt_{reading.doubt}", language, clause=shortened(reading.unknown))
    return off_told(reading.unknown, language)


def off_told(clause: str, language: Language) -> str:
    """Return which tool would do what a clause asks for and why it is off; empty where there is none."""
    tool = off_tool(clause)
    if tool is None:
        return ""
    reason = disabled_reason(tool)
    why = say(f"off_{reason}", language, setting=SWITCHES.get(tool, "?"))
    return say("tool_off", language, clause=shortened(clause), tool=tool, reason=reason, why=why)
