"""A hundred natural turns to the agent without a model, and the time that a form adds to a turn, both live.

A turn that is not understood is answered with a pointer to what is possible: help, or a request in quotes.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib import resources
from statistics import quantiles
from typing import Final

from benchmarks.dialog.figures import failed, line, own_rows, percent
from benchmarks.dialog.served import Served, served
from benchmarks.dialog.static_turns import say_all

_POINTER: Final = re.compile(r"(?i)\bhelp\b|\bayuda\b|\?")
_ANSWERS: Final = ("Ana García", "ana@example.org", "612 345 678", "first visit", "next monday", "10:00")
_ROUNDS: Final = 10


def run() -> None:
    """Print the lines."""
    with resources.as_file(resources.files("phylactery_forms") / "samples") as forms, served(forms) as running:
        _turns(running)
        _added(running)


def _turns(running: Served) -> None:
    told = say_all(running, own_rows("chat_turns"))
    count = Counter(one.outcome for one in told)
    lost = [one for one in told if one.outcome == "not_understood"]
    bare = sum(_POINTER.search(one.reply) is None for one in lost)
    percent("chat_not_understood_pct", len(lost), len(told), wanted="<= 20", without_pointer=bare)
    percent("chat_something_else_pct", count["something_else"], len(told), wanted="0")
    for one in told:
        if one.outcome != "understood":
            row = one.row
            failed("chat", one.outcome, row["language"], said=row["text"], wanted=row["want"], reply=one.reply)


def _added(running: Served) -> None:
    """Print how much longer a turn in a form takes than one of small talk, said in turn."""
    talking = running.speaker("plain")
    talking.say("hello")
    plain: list[float] = []
    asked: list[float] = []
    for number in range(_ROUNDS):
        filling = running.speaker(f"form{number}")
        filling.say("i want an appointment")
        for answer in _ANSWERS:
            plain.append(talking.say("how are you?").seconds)
            asked.append(filling.say(answer).seconds)
    of_plain, of_asked = (1_000 * quantiles(some, n=20, method="inclusive")[-1] for some in (plain, asked))
    line("form_turn_added_p95_ms", of_asked - of_plain, "ms", form=of_asked, plain=of_plain, wanted="<= 25")
