"""The words everything here shares: a call, what a tool answered, what a gate said, and what was played."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, Protocol

Json = dict[str, Any]
_REQUESTER = "self"
_CARD = 5
"""Calls on one card, as the agent shows them."""


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
        """Return whether this human lets a call run that the gate asks about."""
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
        """Return whether a text stands anywhere in it."""
        return any(text in one for one in _texts(self.value))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a gate said about a call: the answer, and why, in words.

    ``ticket`` is the gate's own, and ``by`` who is asked.
    """

    said: Said
    why: str = ""
    ticket: Any = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a play: what the gate said first, whether the call ran, and who was asked.

    ``waits`` says that it needs nothing of what the call before it answered, so that one turn may propose both.
    """

    call: Call
    said: Said
    ran: bool
    why: str
    by: str = ""
    waits: bool = False


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
        """How many cards a human answered: up to five calls of one turn that wait for the requester stand on one."""
        cards = on_card = 0
        for last, step in pairwise([None, *self.steps]):
            if step is None or step.said is not Said.ASK:
                continue
            shared = last is not None and last.said is Said.ASK and last.by == step.by == _REQUESTER and step.waits
            on_card = on_card + 1 if shared and on_card < _CARD else 1
            cards += on_card == 1
        return cards


class World(Protocol):
    """Where the tools run."""

    def run(self, call: Call) -> Shown:
        """Run a call and return what the planner is shown; a tool's error is shown, never raised."""


class Session(Protocol):
    """One task at a gate."""

    async def evaluate(self, call_id: str, call: Call) -> Answer:
        """Ask the gate about a call."""

    async def approve(self, call_id: str, call: Call, answer: Answer) -> Answer:
        """Tell the gate that the humans it asked for said yes, and return what it says then."""

    async def starts(self, call_id: str, call: Call, answer: Answer) -> bool:
        """Take the call's permit; False where the gate does not let it run after all."""

    async def observe(self, call_id: str, call: Call, answer: Answer, shown: Shown) -> None:
        """Show the gate what the tool answered."""

    async def end(self) -> None:
        """End the task."""


class Gate(Protocol):
    """A tool-call gate."""

    async def begin(self, words: str) -> Session:
        """Open a task with the user's own words."""


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
    """Write a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
