"""A call says what the person dictated and nothing else; what they only name, tell or describe is asked about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.reading import read_result, read_words
from phylactery_riskgate.domain.model import BoundCall, Caller, CallSite, CatalogTool, Counters, RawCall
from phylactery_riskgate.domain.policy.usage import Charge

from tests.support.riskgate.bundle_cache import default_engine

ENGINE: Final = default_engine()
DATA: Final = Path(__file__).parents[1] / "data"
INVENTED: Final = ("The pressure valve is faulty and must be replaced.", "All is well.", "The boiler is right.")
EARLIER: Final = "Some old text about the boiler.\nLine two."
WHEN: Final = "2026-12-01T09:00:00"


def data(name: str) -> Any:
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def nothing_counted(tool: CatalogTool, charge: Charge) -> dict[str, Counters]:
    return {one.name: Counters(0, 0, 0, len(charge.recipients)) for one in tool.budgets}


def index_of(words: str, read: str = "") -> TaskIndex:
    """Return a task of one message, and of a file that was read before the call."""
    pieces = [read_words(words, "2026-11-30", own=((0, len(words)),))]
    if read:
        tool = ENGINE.bundle.tools["read_file"]
        pieces.append(read_result(tool, "read_file", "c1", {"path": read}, EARLIER, is_text=True, failed=False).piece)
    return TaskIndex(pieces)


def decision(index: TaskIndex, tool: str, arguments: dict[str, Any]) -> str:
    def facts(of: CatalogTool, bound: BoundCall) -> Any:
        return task_facts(index, of, bound)

    call = RawCall(tool, "call", json.dumps(arguments))
    place = CallSite("thread", "run")
    return str(ENGINE.decide(call, Caller("user", "ana"), place, task=facts, usage=nothing_counted).decision)


def writes(path: str, contents: list[str]) -> Iterator[dict[str, Any]]:
    for content in [one for text in contents for one in (INVENTED if text == "*" else (text,))]:
        yield {"path": path, "content": content}
        yield {"path": path, "content": content, "append": True}


@pytest.mark.slow  # two seconds each
@pytest.mark.parametrize("kind", data("undictated.yaml"))
def test_no_file_gets_words_that_nobody_dictated(kind: str) -> None:
    allowed = [
        (words, arguments, read)
        for path, words, *contents in data("undictated.yaml")[kind]
        for read in ("", path)
        for index in [index_of(words, read)]
        for arguments in writes(path, contents)
        if decision(index, "write_file", arguments) == "ALLOW"
    ]
    assert allowed == []


@pytest.mark.parametrize("wording", ["{}", "{}.", "Please {}", "Por favor, {}", "{}, thanks", "Hola, {}"])
def test_courtesy_makes_no_word_of_it_dictated(wording: str) -> None:
    allowed = []
    for rows in data("undictated.yaml").values():
        for path, words, *contents in rows[::12]:
            said = wording.format(words if wording.startswith("{}") else words[0].lower() + words[1:])
            index = index_of(said)
            allowed += [
                (said, one) for one in writes(path, contents[:2]) if decision(index, "write_file", one) == "ALLOW"
            ]
    assert allowed == []


@pytest.mark.parametrize("tool", data("unsaid.yaml"))
def test_nothing_is_sent_or_kept_that_nobody_dictated(tool: str) -> None:
    def arguments(text: str) -> dict[str, Any]:
        of = {"send_email": {"to": "ana@acme.es", "body": text}, "create_reminder": {"text": text, "when": WHEN}}
        return of.get(tool, {"text": text})

    allowed = [
        (words, text)
        for words, *texts in data("unsaid.yaml")[tool]
        for index in [index_of(words)]
        for text in texts
        if decision(index, tool, arguments(text)) == "ALLOW"
    ]
    assert allowed == []


def test_what_is_dictated_is_written_and_said_without_a_question() -> None:
    asked = [
        (words, tool, arguments)
        for words, tool, arguments in data("dictated.yaml")
        if decision(index_of(words), tool, arguments) != "ALLOW"
    ]
    assert asked == []
