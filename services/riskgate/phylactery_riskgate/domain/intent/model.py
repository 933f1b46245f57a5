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


CLEAR: Final = 2
"""The intent of a call that one ask yields."""

RULES, INTERPRETER, CONFIRMED, NOBODY = "rules", "interpreter", "confirmed", "nobody"
"""Who understood a request."""
FROM_TEXT: Final = "a content that stands in a text, and not in the user's words"
"""A reason without a signal of its own: for many calls it is what the user wants, as in an answer that quotes."""


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
    by ``intent_words``. ``arguments`` stand worst first; ``worst`` is over the control arguments. ``signals`` is 0
    nothing, 1 worth a question, 2 worth a stop, each with its reason.

    ``refused`` says that the user took it back or forbade it. ``foreign`` says that a control argument stands only in a
    text the user neither wrote nor pointed to. ``understood_by`` is who understood the request, ``missing`` the kind of
    what is not understood and the word, ``ask`` the request the call uses up, empty where none yields it: the task
    whose words hold it, and its number among them. ``quota`` is how many calls it allows, 0 for as many as its set
    holds, and ``used`` how many it has had already. ``retracted`` is the later task whose words took the call back.
    """

    shown: bool
    intent: int
    intent_words: tuple[str, ...]
    arguments: tuple[Evidence, ...]
    worst: int
    signals: int
    signal_reasons: tuple[str, ...]
    refused: bool = False
    foreign: bool = False
    understood_by: str = NOBODY
    missing: tuple[str, str] = ("", "")
    ask: str = ""
    quota: int = 1
    used: int = 0
    retracted: str = ""

    @property
    def left(self) -> int | None:
        """How many more calls the ask allows, None for as many as its set holds."""
        return max(0, self.quota - self.used) if self.quota else None

    @property
    def from_text(self) -> bool:
        """Return True if some content stands in what a tool answered and not in the user's words, or nobody knows."""
        return not self.shown or FROM_TEXT in self.signal_reasons

    def to_json(self) -> dict[str, Any]:
        """Write the facts as JSON."""
        return {
            "shown": self.shown,
            "intent": self.intent,
            "intent_words": list(self.intent_words),
            "arguments": [[one.path, one.origin, one.place] for one in self.arguments],
            "worst": self.worst,
            "signals": self.signals,
            "signal_reasons": list(self.signal_reasons),
            "refused": self.refused,
            "foreign": self.foreign,
            "understood_by": self.understood_by,
            "missing": list(self.missing),
            "ask": self.ask,
            "quota": self.quota,
            "used": self.used,
            "retracted": self.retracted,
        }

    @staticmethod
    def from_json(value: Any) -> TaskFacts:
        """Read what ``to_json`` wrote."""
        return TaskFacts(
            shown=value["shown"],
            intent=value["intent"],
            intent_words=tuple(value["intent_words"]),
            arguments=tuple(Evidence(path, origin, place) for path, origin, place in value["arguments"]),
            worst=value["worst"],
            signals=value["signals"],
            signal_reasons=tuple(value["signal_reasons"]),
            refused=value.get("refused", False),
            foreign=value.get("foreign", value["worst"] == FOREIGN),
            understood_by=value.get("understood_by", RULES if value["intent"] == CLEAR else NOBODY),
            missing=tuple(value.get("missing", ("", ""))),
            ask=value.get("ask", ""),
            quota=value.get("quota", 0),
            used=value.get("used", 0),
            retracted=value.get("retracted", ""),
        )


UNSHOWN: Final = TaskFacts(
    shown=False,
    intent=0,
    intent_words=(),
    arguments=(),
    worst=FOREIGN,
    signals=0,
    signal_reasons=(),
)
"""The facts of a call that names no task."""
