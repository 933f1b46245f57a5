"""Replies to requests that were not planned: partly understood, or served by a tool that is switched off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_understanding.replies.stops import read_stop

from phylactery_agent.graph.core.state import LikelyState
from phylactery_agent.i18n.help import help_text
from phylactery_agent.i18n.texts import listed, named, say, shortened, tool_title, what_was_done
from phylactery_agent.ports import Language
from phylactery_agent.rules.forgetting import FORGET_KEYS
from phylactery_agent.rules.likely import HEDGED, Said, likely
from phylactery_agent.rules.plain_replies import CANNOT, is_beyond, plain_reply, told_of
from phylactery_agent.rules.planner import Reading, off_tool
from phylactery_agent.rules.undoing import UNDO_EXCEPT, UNDO_NONE, UNDO_WHICH
from phylactery_agent.tools.network_policy import SWITCHES
from phylactery_agent.tools.registry import NOT_FOR_GUESTS, ToolRegistry
from phylactery_agent.tools.specs import (
    FILE_INFO,
    LIST_DIR,
    READ_FILE,
    SEARCH_FILES,
    SEND_EMAIL,
    UNDO_WRITE,
    WRITE_FILE,
)

_SERVES: Final[Mapping[str, str]] = {
    "list_files": LIST_DIR.name,
    "read_file": READ_FILE.name,
    "search_files": SEARCH_FILES.name,
    "file_info": FILE_INFO.name,
    **dict.fromkeys(
        ("write_file", "append_file", "edit_file", "delete_file", "copy_file", "rename_file"), WRITE_FILE.name
    ),
    "undo": UNDO_WRITE.name,
    "send_mail": SEND_EMAIL.name,
}
"""The tools that guests may lack behind what words may have meant."""


def plainly_told(reading: Reading, language: Language, text: str, tools: ToolRegistry) -> str:
    """Return the whole reply to words that no tool handles and that ask for nothing, or an empty string."""
    key = plain_reply(text) or ("dropped" if read_stop(text) == "stop" else "")
    if not key or (key == CANNOT and reading.doubt):
        return ""
    if key == CANNOT and _is_withheld(UNDO_WRITE.name, tools):
        return say("guest_cannot", language)
    return say(key, language, clause=shortened(told_of(text)))


def left_told(reading: Reading, language: Language, tools: ToolRegistry) -> list[str]:
    """Return the reply to each part of a request that was not understood, where the others are planned."""
    return [_told_of_part(one, language, tools) for one in reading.left]


def _told_of_part(clause: str, language: Language, tools: ToolRegistry) -> str:
    meant = likely(clause, Said(), tools, language)
    if CANNOT in {meant.key, plain_reply(clause)}:  # its whole reply says that nothing was done
        return say("cannot_the_rest", language, clause=shortened(clause))
    asks = meant.key.startswith(("ask_", "cannot_"))
    told = off_told(clause, language, tools) or plainly_told(Reading(()), language, clause, tools)
    return told or say(meant.key if asks else "not_the_rest", language, clause=shortened(clause))


def undo_told(likely: LikelyState | None, language: Language, tools: ToolRegistry) -> str:
    """Return the reply to words that take back something else than what was done last, or an empty string.

    Or to words that want something forgotten of which there is none, or several.
    """
    known = likely is not None and likely["key"] in {UNDO_WHICH, UNDO_NONE, UNDO_EXCEPT, *FORGET_KEYS}
    return _told_by_key(likely, language, "", tools) if likely is not None and known else ""


def likely_told(
    likely: LikelyState | None, language: Language, request: str, tools: ToolRegistry, *, model_away: bool
) -> str:
    """Return the reply to words that no pattern reads but that most likely mean something, or an empty string.

    What no tool does, a model that is away might have done, so that it is not refused for good.
    """
    if likely is None or (model_away and likely["key"].startswith(("cannot_", "beyond", "unknown"))):
        return ""
    if likely["offered"]:
        if told := withheld_told(likely["request"], language, tools):  # no yes to what is refused then
            return told
        return say("offer", language, request=likely["request"])
    told = _told_by_key(likely, language, request, tools) if likely["key"] else ""
    return f"{say('perhaps', language)}\n{told}" if HEDGED in likely["values"] else told


def _told_by_key(likely: LikelyState, language: Language, request: str, tools: ToolRegistry) -> str:
    """Return a reply with what it lists."""
    key, values = likely["key"], likely["values"]
    if key == CANNOT and _is_withheld(UNDO_WRITE.name, tools):
        return say("guest_cannot", language)
    if key in {"help", "help_how"}:
        return help_text(values.get("topic", ""), language, tools)
    if key == UNDO_WHICH:
        parts = dict.fromkeys(what_was_done(tool, "", language, tools) for tool in values["done"].split(","))
        return say(key, language, what=listed(list(parts), language))
    if key == "history":
        done = named(filter(None, values["done"].split(",")), language, tools)
        return say("history_done", language, done=done) if done else say("history_none", language)
    if key == "unknown_near":
        hints = [one for one in values["near"].split(",") if not _is_withheld(_SERVES.get(one, ""), tools)]
        if not hints:
            return say("unknown", language, clause=shortened(request))
        near = [say(f"near_{one}", language) for one in hints]
        told = near[0] if len(near) == 1 else say("near_or", language, one=near[0], other=near[1])
        values = {"unknown": say("unknown", language, clause=shortened(request)), "near": told}
    return say(key, language, **values)


def not_planned(reading: Reading, language: Language, text: str, tools: ToolRegistry) -> str:
    """Return the reply to a request that was only partly understood, has no tool, or whose tool is switched off.

    Return an empty string if nothing is known about the request.
    """
    if plain := plainly_told(reading, language, text, tools):
        return plain
    if reading.doubt:
        return say(f"doubt_{reading.doubt}", language, clause=shortened(reading.unknown))
    return off_told(reading.unknown, language, tools)


def withheld_told(clause: str, language: Language, tools: ToolRegistry) -> str:
    """Return the whole reply to a clause that only a tool would serve that is not for guests, or an empty string."""
    tool = off_tool(clause, tools)
    return say("guest_cannot", language) if tool is not None and _is_withheld(tool, tools) else ""


def _is_withheld(tool: str, tools: ToolRegistry) -> bool:
    """Return True if a tool is switched off because the person is a guest."""
    return tools.disabled_reason(tool) == NOT_FOR_GUESTS


def off_told(clause: str, language: Language, tools: ToolRegistry) -> str:
    """Return which tool would serve a clause and why it is switched off, or an empty string if there is none."""
    if told := withheld_told(clause, language, tools):
        return told
    tool = off_tool(clause, tools)
    if tool is None:
        return ""
    why = say(f"off_{tools.disabled_reason(tool)}", language, setting=SWITCHES.get(tool, "?"))
    return say("tool_off", language, tool=tool_title(tool, language, tools), why=why)


def not_understood(reading: Reading, language: Language, request: str, *, model_away: bool = False) -> str:
    """Return the reply to words that were not understood; what no tool does, a model that is away might have."""
    if is_beyond(request) and not model_away:
        return say("beyond", language)
    opening = f"¿{reading.unknown}"
    return say("unknown", language, clause=shortened(opening if opening in request else reading.unknown))
