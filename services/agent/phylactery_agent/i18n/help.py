"""Help: one line per topic with an example, and the tools of one topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from phylactery_forms.definitions.model import Form

from phylactery_agent.i18n.messages import message
from phylactery_agent.i18n.texts import say, tool_list
from phylactery_agent.ports import Language
from phylactery_agent.rules.intents import TalkKind, help_topic
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import ToolRegistry

_MORE: Final = "more"
_OUTPUTS: Final = "outputs"
_MOST_FORMS: Final = 6
_TOPICS: Final[Mapping[str, Sequence[str]]] = {
    "files": ("read_file", "write_file", "list_dir", "search_files", "undo_write", "file_info", "send_file"),
    "reminders": ("create_reminder", "list_reminders", "cancel_reminder"),
    "memory": ("remember", "recall", "forget"),
    "mail": ("send_email",),
    "web": ("http_get",),
    _OUTPUTS: ("read_output", "search_output", "rehydrate_output", "read_attachment"),
    _MORE: (),
}
"""The tools of each topic, in the order shown; every tool that is in none of them is in the last."""
TOPICS: Final = tuple(topic for topic in _TOPICS if topic != _OUTPUTS)
"""The topics that help names; the other one is told where it is asked about."""


def talk_text(kind: TalkKind, text: str, language: Language, tools: ToolRegistry, forms: Sequence[Form] = ()) -> str:
    """Return the reply to small talk."""
    return help_text(help_topic(text), language, tools, forms) if kind == "help" else say(kind, language)


def help_text(topic: str, language: Language, tools: ToolRegistry, forms: Sequence[Form] = ()) -> str:
    """Return the tools of a topic, or what there is, with the words that begin a form.

    A topic without a tool is answered as no topic.
    """
    by_topic = _offered(tools)
    if found := by_topic.get(topic):
        return tool_list(found, language)
    shown = [one for one in by_topic if one in TOPICS]
    lines = [f"- {say(f'help_{one}', language)}" for one in shown]
    begins = [(*one.triggers.get(language, ()), one.title[language])[0] for one in forms][:_MOST_FORMS]
    if begins:
        lines.append(f"- {say('help_forms', language, phrases=', '.join(begins))}")
    names = ", ".join(say("help_ask", language, topic=message(f"topic_{one}", language)) for one in shown)
    return say("help", language, lines="\n".join(lines), topics=names)


def _offered(tools: ToolRegistry) -> dict[str, list[ToolSpec]]:
    """Return the offered tools by topic; a topic without one is missing."""
    offered = {spec.name: spec for spec in tools.offered()}
    known = {name for names in _TOPICS.values() for name in names}
    found = {topic: [offered[name] for name in names if name in offered] for topic, names in _TOPICS.items()}
    found[_MORE] = [spec for name, spec in offered.items() if name not in known and name != "echo"]
    return {topic: specs for topic, specs in found.items() if specs}
