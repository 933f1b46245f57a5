"""The words of a task: where an argument was found, and the facts about one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where one argument was found: ``path`` is its JSON Pointer, ``place`` is empty where it was found nowhere.

    ``origin`` is 0 for the user's own words, what was made in this task or what the system alone writes, 1 for a whole
    value of a registry, 2 for free text of a place the user pointed to, 3 for anything else.
    """

    path: str
    origin: int
    place: str


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What a task tells of one call; the same task, catalog and call always give the same.

    ``intent`` is how clearly the user asked for what the tool does, 0 to 2, ``intent_words`` their words that made it.
    ``delegated`` says that they pointed at a place that tells what to do. ``arguments`` are the worst first, ``worst``
    is over the control arguments. ``signals`` is how much the content looks like somebody else's, 0 to 2.
    """

    shown: bool
    intent: int
    intent_words: tuple[str, ...]
    delegated: bool
    arguments: tuple[Evidence, ...]
    worst: int
    signals: int
    signal_reasons: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Writes the facts for a record."""
        return {
            "shown": self.shown,
            "intent": self.intent,
            "intent_words": list(self.intent_words),
            "delegated": self.delegated,
            "arguments": [[one.path, one.origin, one.place] for one in self.arguments],
            "worst": self.worst,
            "signals": self.signals,
            "signal_reasons": list(self.signal_reasons),
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> TaskFacts:
        """Reads what to_json wrote."""
        return cls(
            shown=written["shown"],
            intent=written["intent"],
            intent_words=tuple(written["intent_words"]),
            delegated=written["delegated"],
            arguments=tuple(Evidence(*one) for one in written["arguments"]),
            worst=written["worst"],
            signals=written["signals"],
            signal_reasons=tuple(written["signal_reasons"]),
        )


UNSHOWN = TaskFacts(
    shown=False,
    intent=0,
    intent_words=(),
    delegated=False,
    arguments=(),
    worst=3,
    signals=0,
    signal_reasons=(),
)
"""What is told of a call without a task: nobody asked for it, and its arguments come from nowhere."""
