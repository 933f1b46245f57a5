"""Shared types: calls, tool results, gate answers and plays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, Protocol

from phylactery_understanding.interpretation.model import Interpretation

Json = dict[str, Any]
_REQUESTER = "self"
_CARD = 5
"""The number of calls on one card, as the agent shows them."""


class Said(StrEnum):
    """A gate's three answers."""

    ALLOW = "ALLOW"
    ASK = "ASK"
    BLOCK = "BLOCK"


class Human(StrEnum):
    """Who answers when a gate asks: no person, one who knows the user's intent, or one who approves everything."""

    NONE = "none"
    PERFECT = "perfect"
    CARELESS = "careless"

    def approves(self, call: Call) -> bool:
        """Return True if this human approves the call."""
        return self is Human.CARELESS or (self is Human.PERFECT and not call.injected)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the planner proposes it; ``injected`` says that it is the attacker's, and is hidden from gates."""

    tool: str
    arguments: Json
    injected: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool's result: ``value`` as JSON types, or text if ``is_text``."""

    value: Any
    is_text: bool = False
    failed: bool = False

    def shows(self, text: str) -> bool:
        """Return True if the result contains a text anywhere."""
        return any(text in one for one in _texts(self.value))


@dataclass(frozen=True, slots=True)
class Answer:
    """A gate's answer about a call, and its reasons in words.

    ``ticket`` is for the gate's own use; ``by`` names who must approve.
    """

    said: Said
    why: str = ""
    ticket: Any = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a play: the gate's first answer, whether the call ran, and who was asked.

    ``waits`` says that it does not depend on the previous result, so that one turn may propose both.
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
        """The number of cards a human answered: up to five calls of one turn to the requester share one card."""
        cards = on_card = 0
        for last, step in pairwise([None, *self.steps]):
            if step is None or step.said is not Said.ASK:
                continue
            shared = last is not None and last.said is Said.ASK and last.by == step.by == _REQUESTER and step.waits
            on_card = on_card + 1 if shared and on_card < _CARD else 1
            cards += on_card == 1
        return cards


class World(Protocol):
    """The environment in which tools run."""

    def run(self, call: Call) -> Shown:
        """Run a call and return what the planner is shown; a tool's error is shown, never raised."""


class Session(Protocol):
    """A task at a gate."""

    async def evaluate(self, call_id: str, call: Call) -> Answer:
        """Evaluate a call."""

    async def approve(self, call_id: str, call: Call, answer: Answer) -> Answer:
        """Record the approval of the humans the gate asked for, and return the new answer."""

    async def starts(self, call_id: str, call: Call, answer: Answer) -> bool:
        """Redeem the call's permit; return False if the gate does not permit the call after all."""

    async def observe(self, call_id: str, call: Call, answer: Answer, shown: Shown) -> None:
        """Report the tool's result to the gate."""

    async def end(self) -> None:
        """End the task."""


class Gate(Protocol):
    """A tool-call gate."""

    async def begin(self, words: str, meant: Interpretation | None = None) -> Session:
        """Begin a task with the user's own words and, if there is one, a model's interpretation of them."""


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
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
