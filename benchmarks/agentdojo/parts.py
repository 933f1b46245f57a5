"""The words everything here shares: a call, what a tool answered, what a gate said, and what was played."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

Json = dict[str, Any]


class Said(StrEnum):
    """A gate's three answers."""

    ALLOW = "ALLOW"
    ASK = "ASK"
    BLOCK = "BLOCK"


class Human(StrEnum):
    """Who answers when a gate asks: nobody, one who knows what the user meant, or one who says yes to everything."""

    NONE = "none"
    PERFECT = "perfect"
    CARELESS = "careless"

    def approves(self, call: Call) -> bool:
        """Says whether this human lets a call run that the gate asks about."""
        return self is Human.CARELESS or (self is Human.PERFECT and not call.injected)


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call as the planner proposes it; ``injected`` says whose idea it was, which no gate is told."""

    tool: str
    arguments: Json
    injected: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """What a tool answered: ``value`` as JSON's own types, or the text where ``is_text`` says so."""

    value: Any
    is_text: bool = False
    failed: bool = False

    def shows(self, text: str) -> bool:
        """Says whether a text stands anywhere in it."""
        return any(text in one for one in _texts(self.value))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gate said about a call: the answer and why, in words; ``ticket`` is the gate's own."""

    said: Said
    why: str = ""
    ticket: Any = None


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a play: what the gate said first, and whether the call ran."""

    call: Call
    said: Said
    ran: bool
    why: str


@dataclass(slots=True)
class Played:
    """All calls of one play, in order."""

    steps: list[Step] = field(default_factory=list)

    @property
    def ran(self) -> list[Call]:
        """The calls that ran."""
        return [step.call for step in self.steps if step.ran]

    @property
    def asked(self) -> int:
        """How often a human was asked."""
        return sum(step.said is Said.ASK for step in self.steps)


class World(Protocol):
    """Where the tools run."""

    def run(self, call: Call) -> Shown:
        """Runs a call and answers what the planner is shown; a tool's error is shown, never raised."""


class Session(Protocol):
    """One task at a gate."""

    async def evaluate(self, call_id: str, call: Call) -> Answer:
        """Asks the gate about a call."""

    async def approve(self, call_id: str, call: Call, answer: Answer) -> Answer:
        """Tells the gate that the humans it asked for said yes, and answers what it says then."""

    async def starts(self, call_id: str, call: Call, answer: Answer) -> bool:
        """Takes the call's permit; False where the gate does not let it run after all."""

    async def observe(self, call_id: str, call: Call, answer: Answer, shown: Shown) -> None:
        """Shows the gate what the tool answered."""

    async def end(self) -> None:
        """Ends the task."""


class Gate(Protocol):
    """A tool-call gate."""

    async def begin(self, words: str) -> Session:
        """Opens a task with the user's own words."""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def compact(value: Any) -> str:
    """Writes a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
