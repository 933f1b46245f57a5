"""The agent's sentences: messages that may name tools, and lists made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from phylactery_agent.i18n.messages import in_each_language, is_message, message
from phylactery_agent.ports import ApprovalRequest, Language
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import CANCEL_REMINDER, CREATE_REMINDER, REMEMBER, WRITE_FILE

NAMED_EFFECTS: Final = (WRITE_FILE.name, CREATE_REMINDER.name, CANCEL_REMINDER.name)
"""Tools whose effect is told with what it was done to."""
_LONGEST_NAME: Final = 60


def say(key: str, language: Language, **params: object) -> str:
    """Return a message; a tool in it is what tool_title says of it, never its name."""
    return message(key, language, **params).strip()


def tool_title(name: str, language: Language, tools: ToolRegistry) -> str:
    """Return what a tool does, phrased to follow "may I" and "¿puedo"; for an MCP tool, that it is used."""
    spec, (kind, _, source) = tools.get(name), tools.source_of(name).partition(":")
    if spec is None or kind == "mcp":
        own = name.removeprefix(f"mcp_{source}_")
        return message("use_tool", language, name=own, source=source) if source else message("use", language, name=own)
    title = spec.descriptions[language].partition(":")[0].strip().removesuffix(".")
    return title[:1].lower() + title[1:]


def named(names: Iterable[str], language: Language, tools: ToolRegistry) -> str:
    """Return what the tools of these names do, each once with its count, in order."""
    return _counted(tool_title(name, language, tools) if name else message("waits_unnamed", language) for name in names)


def _counted(titles: Iterable[str]) -> str:
    counted = Counter(titles)
    return "; ".join(title if count == 1 else f"{title} (×{count})" for title, count in counted.items())


def listed(parts: Sequence[str], language: Language) -> str:
    """Return parts of a sentence as one list: a, b and c."""
    *before, last = parts
    return say("listed", language, before=", ".join(before), last=last) if before else last


def what_was_done(tool: str, name: str, language: Language, tools: ToolRegistry) -> str:
    """Return an effect in words of the past, with what it was done to if that is known."""
    spec = tools.get(tool)
    if spec is None or not spec.contract.reversible:
        return say("done_tool", language, tool=tool_title(tool, language, tools))
    key = f"done_{tool}" if tool in (*NAMED_EFFECTS, REMEMBER.name) else "done_something"
    return say(
        key if name or tool not in NAMED_EFFECTS else f"{key}_unnamed", language, name=shortened(name, _LONGEST_NAME)
    )


def step_text(description: str, tool: str, language: Language, tools: ToolRegistry) -> str:
    """Return a step in the person's words, in quotation marks; one described by no words of theirs, in its tool's."""
    if description and not tools.get(description):
        return say("quoted", language, text=shortened(description))
    return named([description or tool], language, tools)


def waiting_line(waiting: Iterable[ApprovalRequest], language: Language, tools: ToolRegistry) -> str:
    """Return one line with the approvals pending from this or another person, by what they are for."""
    still = [one for one in waiting if one.open]
    parts = []
    for key, own in (("waits", True), ("waits_other", False)):
        asked = [one for one in still if (one.approval_class == "self") is own]
        told = _counted(step_text(one.step, one.tool, language, tools) for one in asked)
        parts += [say(key, language, count=len(asked), actions=told)] if asked else []
    return " ".join(parts)


def is_unknown(note: str, language: Language) -> bool:
    """Return True if a note says that a person's words were not understood."""
    return note.startswith(in_each_language("unknown")[language].partition("{")[0])


def shortened(text: str, limit: int = 200) -> str:
    """Return a text of at most limit characters, for references to a person's own words."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def error_text(code: str, language: Language) -> str:
    """Return the meaning of a stable error code, or the code itself if there is no sentence for it."""
    key = f"error_{code}"
    return message(key, language) if is_message(key) else code


def tool_list(specs: Iterable[ToolSpec], language: Language) -> str:
    """Return one line per tool: what it does and how to request it."""
    return "\n".join(f"- {spec.descriptions[language]}" for spec in specs)
