"""RE2, the only engine that meets what a person typed: linear in the text, whatever the text is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, cast

import re2


class Match(Protocol):
    """One place where an expression matches."""

    def group(self, number: int = 0) -> str:
        """Answers a group's text."""
        ...

    def groupdict(self) -> dict[str, str | None]:
        """Answers the named groups; None where one took no part."""
        ...

    def start(self) -> int:
        """Answers where it begins."""
        ...

    def end(self) -> int:
        """Answers where it ends."""
        ...


class Expression(Protocol):
    """A compiled expression."""

    def match(self, text: str) -> Match | None:
        """Matches from the beginning."""
        ...

    def finditer(self, text: str) -> Iterator[Match]:
        """Answers every match, left to right."""
        ...

    def sub(self, replacement: str, text: str) -> str:
        """Replaces every match."""
        ...


def expression(pattern: str) -> Expression:
    """Compiles an RE2 expression. Raises re2.error for a pattern that is none."""
    # The binding has no annotations of its own; the protocols above are what is used of it.
    return cast("Expression", cast("Any", re2).compile(pattern))
