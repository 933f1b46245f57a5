"""Items of a tool's result as the grammar takes them, without a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from phylactery_understanding.calls.proposal import Found, Item, Listing
from phylactery_understanding.language.text import STEM
from phylactery_understanding.language.times import Feature

_numbers = count()


@dataclass(eq=False)
class Listed:
    """An item that is no part of another."""

    words: frozenset[str]
    times: frozenset[Feature]
    holds: Callable[[Any], bool]
    place: int = 0
    count: int = 1
    keys: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    made: bool = False
    picked: bool = False
    within: tuple[int, ...] = field(default_factory=lambda: (next(_numbers),))

    @property
    def stems(self) -> frozenset[str]:
        """Return the stems of its words."""
        return frozenset(one[:STEM] for one in self.words)

    def says(self, word: str) -> bool:
        """Return False: it has no free text."""
        return False


def found(text: str, item: Item, *others: Item) -> tuple[Found, ...]:
    """Return what an argument's text is found in: an item of a list with some others."""
    return (Found(text, item, Listing((item, *others), lambda _: ())),)
