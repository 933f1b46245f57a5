"""Routing: which messages are served with tools, and how long the choice takes.

Serving a request without tools is the costly error, since the person gets words instead of what they asked for; tools
beside small talk cost time alone. Two answers of the rules are measured: ``pathway``, on which tools are enabled, and
``request``, what was understood as one. The floor is a list of verbs, on the same cases.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from phylactery_agent.rules.intents import TOOL_PATHWAY, Intent, classify
from phylactery_agent.tools.registry import ToolRegistry

from benchmarks.dialog.figures import line
from benchmarks.measure import emit

_ASKS: Final = re.compile(r"(?:reminder|todo_list|shopping_list)(?:_update)?|alarm|timer")
"""The classes of CLINC150 for which the agent has a tool."""
_TALKS: Final = re.compile(
    r"greeting|goodbye|thank_you|are_you_a_bot|how_old_are_you|what_is_your_name|where_are_you_from|who_made_you|"
    r"who_do_you_work_for|do_you_have_pets|what_are_your_hobbies|what_can_i_ask_you|meaning_of_life|tell_joke|fun_fact"
)
"""The classes of CLINC150 that are conversation."""
_VERBS: Final = re.compile(
    r"(?i)\b(?:set|add|create|make|remind|put|delete|remove|cancel|erase|clear|show|list|read|"
    r"pon|añade|crea|recu[eé]rda(?:me)?|quita|borra|cancela|elimina|muestra|lee|programa|configura)\b"
)
_MS: Final = 1_000.0


def run(home: Path) -> None:
    """Print the lines."""
    tools = ToolRegistry()
    clinc, spanish = _rows(home / "clinc150_valtest.jsonl"), _rows(home / "fb_multilingual_es_evaltest.jsonl")
    cases = [
        (row["text"], _ASKS.fullmatch(row["intent"]) is not None)
        for row in clinc
        if _ASKS.fullmatch(row["intent"]) or _TALKS.fullmatch(row["intent"])
    ]
    spanish_cases = [(row["text"], True) for row in spanish if row["intent"].startswith(("reminder/", "alarm/"))]
    taken: list[float] = []

    def timed(text: str) -> Intent:
        begun = time.perf_counter()
        found = classify(text, tools)
        taken.append((time.perf_counter() - begun) * _MS)
        return found

    for language, of_it in (("en", cases), ("es", spanish_cases)):
        heard = [timed(text) for text, _ in of_it]
        wanted = [asks for _, asks in of_it]
        floor = _scores([_VERBS.search(text) is not None for text, _ in of_it], wanted)
        readings: Mapping[str, Callable[[Intent], bool]] = {
            "pathway": lambda one: one.pathway == TOOL_PATHWAY,
            "request": lambda one: one.reasons == ("REQUEST",),
        }
        for name, reading in readings.items():
            precision, recall = _scores([reading(one) for one in heard], wanted)
            label = f"dialog/routing_{name}"
            if language == "en":  # the Spanish set has requests alone
                emit(f"{label}_precision_en", precision, "share", cases=len(of_it), floor=floor[0], wanted=">= 0.95")
            emit(f"{label}_recall_{language}", recall, "share", cases=len(of_it), floor=floor[1], wanted=">= 0.75")
        if language == "en":
            for name, kind in (("small_talk_fast_path", False), ("tool_requests_off_fast_path", True)):
                own = [
                    (one.pathway == TOOL_PATHWAY) is kind
                    for one, asks in zip(heard, wanted, strict=True)
                    if asks is kind
                ]
                line(
                    f"{name}_share",
                    sum(own) / len(own),
                    "share",
                    cases=len(own),
                    wanted=">= 0.95" if kind else ">= 0.6",
                )
    taken.sort()
    half, most = taken[len(taken) // 2], taken[int(len(taken) * 0.99)]
    emit("dialog/routing_decision_p99", most, "ms", p50=half, cases=len(taken), wanted="< 5")


def _scores(found: Sequence[bool], wanted: Sequence[bool]) -> tuple[float, float]:
    """Return precision and recall."""
    hits = sum(one and other for one, other in zip(found, wanted, strict=True))
    return hits / max(1, sum(found)), hits / max(1, sum(wanted))


def _rows(file: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
