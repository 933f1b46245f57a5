"""The facts of a task about one call, and the evidence behind them.

A verdict holds them, so nothing here knows the words of a decision (domain/model.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

NAMED: Final = 0
"""The user's words, made in this task, or a system field of what the user named."""
LISTED: Final = 1
"""What a registry or the system knows and the user did not name."""
POINTED: Final = 2
"""Text of a place the user pointed to."""
FOREIGN: Final = 3
"""Other text, from nowhere, or against a literal the user gave."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where one argument comes from: its JSON Pointer, ``origin`` 0 to 3 and, in a few words, the place."""

    path: str
    origin: int
    place: str


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What a task says about one call.

    ``shown`` says whether RiskGate was shown a task at all. ``intent`` is 0 not asked, 1 half asked, 2 clearly asked,
    by ``intent_words``. ``delegated`` says that the user pointed at a place that tells what to do. ``arguments`` stand
    worst first; ``worst`` is over the control arguments. ``signals`` is 0 nothing, 1 worth a question, 2 worth a stop,
    each with its reason.
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
        """Writes the facts as JSON."""
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

    @staticmethod
    def from_json(value: Any) -> TaskFacts:
        """Reads what ``to_json`` wrote."""
        return TaskFacts(
            shown=value["shown"],
            intent=value["intent"],
            intent_words=tuple(value["intent_words"]),
            delegated=value["delegated"],
            arguments=tuple(Evidence(path, origin, place) for path, origin, place in value["arguments"]),
            worst=value["worst"],
            signals=value["signals"],
            signal_reasons=tuple(value["signal_reasons"]),
        )


UNSHOWN: Final = TaskFacts(
    shown=False,
    intent=0,
    intent_words=(),
    delegated=False,
    arguments=(),
    worst=FOREIGN,
    signals=0,
    signal_reasons=(),
)
"""The facts of a call that names no task."""
