"""Times of reminders: which of a list of sentences are read as they are meant, asked about, or read wrongly.

The sentences were written before their author had read the rules. BENCH_TRANSCRIPT names a file for what came of each.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final

from phylactery_agent.rules.planner import read_request
from phylactery_agent.timeparse.phrases import WhenError, resolve
from phylactery_agent.timeparse.recurrence import occurrences, to_local, to_us, zone
from phylactery_agent.tools.registry import ToolRegistry

from benchmarks.measure import emit

DATA: Final = Path(__file__).parents[1] / "data" / "dialog" / "reminders.txt"
ASKS: Final = "asks"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, when and where it is said, and what is wanted of it."""

    said_at: datetime
    time_zone: str
    wanted: tuple[str, ...]
    text: str
    sentence: str


def sentences(lines: str) -> Iterator[Sentence]:
    """Yield the sentences of a file."""
    said_at, time_zone = datetime.fromisoformat("1970-01-01"), "UTC"
    for line in filter(None, lines.splitlines()):
        if line.startswith("@"):
            moment, time_zone = line.removeprefix("@").split()
            said_at = datetime.fromisoformat(moment)
        elif not line.startswith("#"):
            wanted, text, sentence = (part.strip() for part in line.split("|"))
            yield Sentence(said_at, time_zone, tuple(wanted.split(" or ")), text, sentence)


def read(one: Sentence) -> tuple[str, str]:
    """Return the times that are read, or "asks", and what is to be reminded."""
    calls = read_request(one.sentence, ToolRegistry()).clauses
    if len(calls) != 1 or calls[0][0].tool != "create_reminder":
        return ASKS, ""
    args, where = calls[0][0].args, zone(one.time_zone)
    try:
        when = resolve(args["when"], where=where, now_us=to_us(one.said_at, where))
    except WhenError:
        return ASKS, ""
    start = to_local(when.due_us, where)
    times = [start] if when.rule is None else list(islice(occurrences(when.rule, start), 4))
    return ",".join(f"{time:%Y-%m-%dT%H:%M}" for time in times), args["text"]


def outcome(one: Sentence) -> tuple[str, str]:
    """Return "read", "asks", "asks_needlessly" or "wrong", and what was read."""
    times, text = read(one)
    if times == ASKS:
        return ("asks" if ASKS in one.wanted and len(one.wanted) == 1 else "asks_needlessly"), ASKS
    right = any(times.startswith(wanted) for wanted in one.wanted) and text.casefold() == one.text.casefold()
    return ("read" if right else "wrong"), f"{times} | {text}"


def run() -> None:
    """Print the lines."""
    found = [(one, *outcome(one)) for one in sentences(DATA.read_text(encoding="utf-8"))]
    counted = Counter(came for _, came, _ in found)
    clear = sum(count for came, count in counted.items() if came != "asks") - sum(
        came == "wrong" and one.wanted == (ASKS,) for one, came, _ in found
    )
    emit("dialog/reminders_read_pct", 100 * counted["read"] / clear, "%", cases=clear, wanted=">= 85")
    emit("dialog/reminders_wrong_silently", counted["wrong"], "sentences", cases=len(found), wanted="0")
    if path := os.environ.get("BENCH_TRANSCRIPT", ""):
        shown = (f"{came:16} {one.sentence}\n    {read}   ({' or '.join(one.wanted)})\n" for one, came, read in found)
        Path(f"{path}.reminders").write_text("".join(shown), encoding="utf-8")
