"""Static mode in natural conversations: what a person gets who has no model behind the agent.

Each turn is labelled by hand with the intents that a reasonable person would accept as answered. Three outcomes count:
understood; not understood, where the agent says so, asks or offers something else; and something else, where it did or
said with confidence what nobody wanted, which is the costly one. BENCH_TRANSCRIPT names a file for the turns with their
replies and outcomes, BENCH_TURNS another file of turns.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from phylactery_agent.rules.planner import read_request
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_chassis.util.messages import read_messages

from benchmarks.dialog.served import Served, served
from benchmarks.measure import emit

Outcome = Literal["understood", "not_understood", "something_else"]
Row = Mapping[str, Any]
DATA: Final = Path(__file__).parents[1] / "data" / "dialog" / "static_turns.jsonl"
_TOOLS: Final[Mapping[str, frozenset[str]]] = {
    "list_files": frozenset({"list_dir"}),
    "read_file": frozenset({"read_file"}),
    "search_files": frozenset({"search_files", "recall"}),
    "write_file": frozenset({"write_file"}),
    "append_file": frozenset({"write_file"}),
    "delete_file": frozenset({"delete_file"}),
    "copy_file": frozenset({"copy_file"}),
    "rename_file": frozenset({"move_file", "rename_file"}),
    "file_info": frozenset({"file_info"}),
    "undo": frozenset({"undo_write"}),
    "add_note": frozenset({"remember", "write_file"}),
    "read_notes": frozenset({"recall"}),
    "set_reminder": frozenset({"create_reminder"}),
    "list_reminders": frozenset({"list_reminders"}),
    "move_reminder": frozenset({"cancel_reminder", "create_reminder"}),
    "cancel_reminder": frozenset({"cancel_reminder"}),
    "send_mail": frozenset({"send_email"}),
    "remember_fact": frozenset({"remember"}),
    "recall_fact": frozenset({"recall"}),
    "forget_fact": frozenset({"forget"}),
}
_ASKED: Final[Mapping[str, str]] = {
    "write_file": "ask_write", "append_file": "ask_append", "set_reminder": "ask_when", "move_reminder": "ask_move",
    "cancel_reminder": "ask_reminder", "send_mail": "ask_mail", "add_note": "ask_note", "search_files": "ask_topic",
}  # fmt: skip
"""What the agent asks back where something is missing."""
_FILES: Final = frozenset({"read_file", "file_info", "delete_file", "copy_file", "rename_file", "undo"})
_TELLS: Final[Mapping[str, frozenset[str]]] = {
    "time": frozenset({"time"}),
    "date": frozenset({"time"}),
    "history": frozenset({"history_none", "history_done"}),
    "pending": frozenset({"pending_some", "nothing_waits_at_all", "waits"}),
    "help": frozenset({"help", "program"}),
    "help_how": frozenset({"help"}),
    "handoff": frozenset({"handoff_asked", "handoff_nobody", "handoff_say"}),
    "form_list": frozenset({"form_list", "form_list_none"}),
    "repeat": frozenset({"repeat", "repeat_nothing"}),
    "more": frozenset({"more_how"}),
    "cancel": frozenset({"dropped"}),
    "edit_mail": frozenset({"mail_again"}),
    "language_en": frozenset({"language"}),
    "language_es": frozenset({"language"}),
    "who_are_you": frozenset({"program"}),
    "yes": frozenset({"nothing_waits_at_all", "fine"}),
    "no": frozenset({"dropped", "rejected", "nothing_waits_at_all"}),
    "forget_fact": frozenset({"cannot_forget"}),
    "remember_fact": frozenset({"told_of_oneself"}),
    **dict.fromkeys(("delete_file", "copy_file", "rename_file"), frozenset({"cannot_files", "doubt_copy"})),
}
"""The replies that answer an intent, by their messages."""
_CHAT: Final = frozenset(
    {
        *(
            "greeting",
            "farewell",
            "how_are_you",
            "who_are_you",
            "thanks",
            "praise",
            "complaint_bot",
            "apology",
            "laugh",
        ),
        *("ack", "wait", "feeling", "smalltalk", "mention", "unclear"),
    }
)
_CHATS: Final = frozenset(
    {
        *("greeting", "greeting_by_name", "farewell", "how_are_you", "thanks", "praised", "displeased", "no_harm"),
        *("laughs", "fine", "dropped", "listening", "sympathy", "smalltalk", "mention", "program", "told_of_oneself"),
        *("rejected", "doubt_past", "doubt_report", "doubt_negation", "doubt_hypothetical"),
    }
)
_BEYOND: Final = frozenset(
    {
        *("weather", "web", "news", "call", "message", "read_mail", "calendar", "payment", "purchase", "music"),
        *("picture", "translate", "calculate", "compose", "summarize", "knowledge", "advice", "navigation", "device"),
        "joke",
    }
)
_SPECS: Final = tuple(spec.name for spec in ToolRegistry().offered())
_HELPS: Final = re.compile(r"- .+: .+")
"""The lines of help with one topic."""
_HONEST: Final = re.compile(r"unknown|doubt_|ask_|offer|perhaps|answer_to_nothing|ask_help")
"""Messages that say or show that the words were not understood."""


def run() -> None:
    """Print the lines."""
    named = os.environ.get("BENCH_TURNS", "")
    lines = Path(named or DATA).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line]
    with (
        resources.as_file(resources.files("phylactery_forms") / "samples") as forms,
        served(forms) as running,
    ):
        told = say_all(running, rows)
    for name, of_set in groupby(told, key=lambda one: str(one.row.get("set", "")) or "?"):
        found = list(of_set)
        counted = Counter(one.outcome for one in found)
        emit(
            "dialog/static_not_understood",
            100 * counted["not_understood"] / len(found),
            "of 100 turns",
            set=name,
            cases=len(found),
            wanted="<= 10",
        )
        emit(
            "dialog/static_something_else",
            100 * counted["something_else"] / len(found),
            "of 100 turns",
            set=name,
            cases=len(found),
            wanted="0",
        )
    if path := os.environ.get("BENCH_TRANSCRIPT", ""):
        Path(path).write_text("".join(map(_shown, told)), encoding="utf-8")
        sys.stderr.write(f"dialog: the turns with their replies are in {path}\n")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as it was answered."""

    row: Row
    reply: str
    tools: Sequence[str]
    keys: frozenset[str]
    outcome: Outcome


def say_all(running: Served, rows: Sequence[Row]) -> list[Turn]:
    """Say the turns, each conversation as another tenant's person, who has a folder of their own."""
    messages = {language: _Messages(language) for language in ("en", "es")}
    told: list[Turn] = []
    for name, of_conversation in groupby(rows, key=lambda row: f"{row.get('set', '')}-{row['conversation']}"):
        turns = list(of_conversation)
        speaker = running.speaker(f"t{name}", turns[0].get("files", {}))
        for row in turns:
            reply = speaker.say(row["text"])
            keys = messages[row["language"]].in_text(reply.text)
            told.append(Turn(row, reply.text, reply.tools, keys, _outcome(row, reply.tools, keys, reply.text)))
    return told


class _Messages:
    """The agent's messages of a language, found again in a reply."""

    def __init__(self, language: str) -> None:
        messages = read_messages("phylactery_agent.i18n", language)
        self._patterns = [(key, re.compile(_pattern(template), re.DOTALL)) for key, template in _templates(messages)]

    def in_text(self, reply: str) -> frozenset[str]:
        """Return the messages that a reply holds, by paragraphs and as a whole."""
        parts = [reply, *reply.split("\n\n"), *reply.split("\n")]
        return frozenset(
            key for key, pattern in self._patterns if any(pattern.fullmatch(part.strip()) for part in parts)
        )


def _templates(messages: Any) -> Iterator[tuple[str, str]]:
    for key in messages:
        if (
            key.startswith(("error_", *(f"tool_{name}" for name in _SPECS), "topic_", "weekday", "repeats_", "near_"))
            or key == "result_cut"
        ):
            continue
        with suppress(KeyError):
            yield key, messages.template(key)


def _pattern(template: str) -> str:
    """Return the expression for a message with any values; one that is nothing but values is none."""
    parts = re.split(r"\{\w+\}", template.strip().replace("{{", "{").replace("}}", "}"))
    return ".*?".join(map(re.escape, parts)) if any(part.strip() for part in parts) else r"(?!)"


def _outcome(row: Row, tools: Sequence[str], keys: frozenset[str], reply: str) -> Outcome:
    """Return what came of a turn."""
    wants = list(row["want"])
    answers = {"yes", "no"} & set(wants)  # what then goes on is what waited
    asked = [] if answers else [one for one in tools if one != "echo"]
    wanted = frozenset[str]().union(*(_TOOLS.get(want, frozenset()) for want in wants))
    if any(one not in wanted for one in asked) or row.get("says", "") not in reply:
        return "something_else"
    answered = [want for want in wants if _is_answered(want, asked, keys, reply)]
    if len(answered) == len(wants) if row.get("all") else answered:
        return "understood"
    honest = any(_HONEST.match(key) for key in keys) or bool(answered)
    return "not_understood" if honest or not keys - {"waits", "waits_other"} else "something_else"


def _is_answered(want: str, tools: Sequence[str], keys: frozenset[str], reply: str) -> bool:
    """Return True if what was done or said is what was wanted, or asks for what is missing of it."""
    if _TOOLS.get(want, frozenset()) & set(tools) or keys & _TELLS.get(want, frozenset()):
        return True
    if want in {"help", "help_how"}:
        return _HELPS.search(reply) is not None
    if want in {"yes", "no"}:
        return not any(_HONEST.match(key) for key in keys)
    told = (
        want in _CHAT and bool(keys & _CHATS),
        want in _BEYOND and bool(keys & {f"cannot_{want}", "beyond"}),
        want == "send_mail" and "tool_off" in keys,
        _ASKED.get(want, "ask_file" if want in _FILES else "?") in keys,
        want == "set_reminder" and any(key.startswith("ask_time_") for key in keys),
        want.startswith("form_") and any(text in reply for text in _form_texts(want)),
        "offer" in keys and _offers(want, reply),
    )
    return any(told)


@cache
def _form_texts(want: str) -> Sequence[str]:
    """Return what a form says when it begins or ends."""
    forms = {form: yaml.safe_load(file.read_text(encoding="utf-8")) for form, file in _form_files()}
    started = want.removeprefix("form_")
    if started in forms:
        return list(forms[started].get("prompts", {}).get("start", {}).values())
    return ["cancel"] if want == "form_leave" else []


def _form_files() -> Iterator[tuple[str, Any]]:
    for file in (resources.files("phylactery_forms") / "samples").iterdir():
        if file.name.endswith(".yaml"):
            yield file.name.removesuffix(".yaml"), file


def _offers(want: str, reply: str) -> bool:
    """Return True if the request that a reply offers is the wanted one."""
    found = re.search(r"[“«](.*)[”»]", reply, re.DOTALL)
    if found is None:
        return False
    calls = [one[0].tool for one in read_request(found.group(1), ToolRegistry()).clauses]
    return bool(_TOOLS.get(want, frozenset()) & set(calls))


def _shown(turn: Turn) -> str:
    """Return a turn as lines of the transcript."""
    mark = {"understood": " ", "not_understood": "?", "something_else": "!"}[turn.outcome]
    reply = turn.reply.replace("\n", "\n      ")
    row = turn.row
    heading = f"{mark} [{row.get('set', '')}-{row['conversation']}] {row['text']}   ({', '.join(row['want'])})"
    return f"{heading}\n    → {reply}\n      {', '.join((*turn.tools, *sorted(turn.keys)))}\n\n"
