"""A model's interpretation of a message: which of its words have which role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from phylactery_understanding.language.text import Token

INTERPRETER: Final = "interpreter"
MAX_ASKS: Final = 8
MAX_SLOTS: Final = 24
MAX_LITERAL: Final = 4_000
"""The maximum length of one literal, in characters."""
MAX_QUANTITY: Final = 100
MAX_BACK: Final = 3
"""The number of messages before the newest one that an ask may quote."""
MAX_ALSO: Final = 4
"""The number of further time expressions."""
ADDING: Final = frozenset({"add", "append"})
WRITING: Final = frozenset({"write", "compose", "create", "replace", "edit", "put", "set"})


class Mode(StrEnum):
    """How something is done to its target."""

    NONE = ""
    ADD = "add"
    REPLACE = "replace"
    CREATE = "create"
    REMOVE = "remove"


MEANINGS: Final[Mapping[Mode, frozenset[str]]] = {
    Mode.NONE: frozenset(),
    Mode.ADD: frozenset({"add", "append"}),
    Mode.REPLACE: frozenset({"replace", "edit", "change"}),
    Mode.CREATE: frozenset({"write", "create", "compose"}),
    Mode.REMOVE: frozenset({"remove", "delete", "clear"}),
}


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters and its text; ``back`` is how many messages before the newest it is in."""

    text: str
    start: int
    back: int = 0

    @property
    def stop(self) -> int:
        """The end of the range."""
        return self.start + len(self.text)

    def stands_in(self, text: str) -> bool:
        """Return True if a text contains the span at its place."""
        return bool(self.text.strip()) and self.start >= 0 and text[self.start : self.stop] == self.text


@dataclass(frozen=True, slots=True)
class Slot:
    """The words that are the value of an argument, or one of its values."""

    argument: str
    span: Span


@dataclass(frozen=True, slots=True)
class InterpretedAsk:
    """One ask in a model's interpretation of a message.

    ``content`` are the words to be written or said; ``composed`` says that the person left the words to the model. If
    neither is set, there is no content. ``quantity`` is how many calls are requested, 0 for all of a set.
    """

    tool: str
    slots: tuple[Slot, ...] = ()
    mode: Mode = Mode.NONE
    content: Span | None = None
    composed: bool = False
    quantity: int = 1
    time: Span | None = None
    also_time: tuple[Span, ...] = ()

    @property
    def times(self) -> tuple[Span, ...]:
        """Return the time expressions, which may be apart: every month, and the hour after it."""
        return (self.time, *self.also_time) if self.time is not None else self.also_time

    @property
    def spans(self) -> tuple[Span, ...]:
        """Return every literal."""
        return (*(one.span for one in self.slots), *((self.content,) if self.content is not None else ()), *self.times)

    @property
    def back(self) -> int:
        """Return how many messages before the newest its first words are."""
        return max((one.back for one in self.spans), default=0)


@dataclass(frozen=True, slots=True)
class Interpretation:
    """A model's interpretation of a message: the prompt's version, the model's name, and the asks."""

    version: str
    model: str
    asks: tuple[InterpretedAsk, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"version": self.version, "model": self.model, "asks": [_ask_to_json(one) for one in self.asks]}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Interpretation:
        """Return the interpretation encoded by ``to_json``."""
        return Interpretation(value["version"], value["model"], tuple(map(_ask_from_json, value["asks"])))


def covers(span: Span, token: Token) -> bool:
    """Return True if a token is at least partly in a literal."""
    return span.start < token.stop and token.start < span.stop


def is_covered(ask: InterpretedAsk, token: Token) -> bool:
    """Return True if a token is in a literal of an ask."""
    return any(covers(span, token) for span in ask.spans)


def _ask_to_json(ask: InterpretedAsk) -> dict[str, Any]:
    return {
        "tool": ask.tool,
        "slots": [[one.argument, *_span_to_json(one.span)] for one in ask.slots],
        "mode": str(ask.mode),
        "content": None if ask.content is None else _span_to_json(ask.content),
        "composed": ask.composed,
        "quantity": ask.quantity,
        "time": None if ask.time is None else _span_to_json(ask.time),
        **({"also_time": [_span_to_json(one) for one in ask.also_time]} if ask.also_time else {}),
    }


def _ask_from_json(value: Mapping[str, Any]) -> InterpretedAsk:
    return InterpretedAsk(
        tool=value["tool"],
        slots=tuple(Slot(name, Span(*span)) for name, *span in value["slots"]),
        mode=Mode(value["mode"]),
        content=_span_from_json(value["content"]),
        composed=value["composed"],
        quantity=value["quantity"],
        time=_span_from_json(value["time"]),
        also_time=tuple(Span(*one) for one in value.get("also_time", ())),
    )


def _span_to_json(span: Span) -> list[Any]:
    return [span.text, span.start, span.back] if span.back else [span.text, span.start]


def _span_from_json(value: Sequence[Any] | None) -> Span | None:
    return None if value is None else Span(*value)
