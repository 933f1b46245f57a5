"""RE2 over folded text of one byte per character: linear in the length of any text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, cast

import re2


class Match(Protocol):
    """One match of an expression."""

    def group(self, number: int = 0) -> bytes | None:
        """Return a group's text, None if it did not participate."""
        ...

    def span(self, number: int = 0) -> tuple[int, int]:
        """Return the start and end of a group, (-1, -1) if it did not participate."""
        ...

    def start(self, number: int = 0) -> int:
        """Return the start of a group."""
        ...

    def end(self, number: int = 0) -> int:
        """Return the end of a group."""
        ...


class Expression(Protocol):
    """A compiled expression."""

    def search(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Match | None:
        """Return the first match from a position on.

        Text outside pos and endpos still counts as context: ``$`` does not match at endpos.
        """
        ...

    def match(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Match | None:
        """Match exactly at a position."""
        ...

    def finditer(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Iterator[Match]:
        """Yield all non-overlapping matches, left to right."""
        ...


def expression(pattern: str) -> Expression:
    """Compile an expression over Latin-1 bytes."""
    # The binding is untyped; the protocols above describe what is used of it.
    options = cast("Any", re2).Options()
    options.encoding = cast("Any", re2).Options.Encoding.LATIN1
    options.log_errors = False
    return cast("Expression", cast("Any", re2).compile(pattern.encode("latin-1"), options))


def overlapping(pattern: Expression, text: bytes) -> Iterator[Match]:
    """Yield all matches, including overlapping ones: a wrong candidate must not hide a right one."""
    found = pattern.search(text)
    while found is not None:
        yield found
        found = pattern.search(text, found.start() + 1)
