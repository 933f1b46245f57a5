"""RE2 over folded text, one byte per character: linear in the text, whatever the text is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, cast

import re2


class Match(Protocol):
    """One place where an expression matches."""

    def group(self, number: int = 0) -> bytes | None:
        """Return a group's text, None where it took no part."""
        ...

    def span(self, number: int = 0) -> tuple[int, int]:
        """Return where a group begins and ends, (-1, -1) where it took no part."""
        ...

    def start(self, number: int = 0) -> int:
        """Return where a group begins."""
        ...

    def end(self, number: int = 0) -> int:
        """Return where a group ends."""
        ...


class Expression(Protocol):
    """A compiled expression."""

    def search(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Match | None:
        """Find the first match from a place on.

        What stands outside pos and endpos still counts as surroundings: ``$`` does not match at endpos.
        """
        ...

    def match(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Match | None:
        """Match exactly at a place."""
        ...

    def finditer(self, text: bytes, pos: int = 0, endpos: int | None = None) -> Iterator[Match]:
        """Return every match, left to right, none over another."""
        ...


def expression(pattern: str) -> Expression:
    """Compile an expression over Latin-1 bytes."""
    # The binding has no annotations of its own; the protocols above are what is used of it.
    options = cast("Any", re2).Options()
    options.encoding = cast("Any", re2).Options.Encoding.LATIN1
    options.log_errors = False
    return cast("Expression", cast("Any", re2).compile(pattern.encode("latin-1"), options))


def overlapping(pattern: Expression, text: bytes) -> Iterator[Match]:
    """Return every match, also those that begin inside the one before: a wrong candidate must not hide a right one."""
    found = pattern.search(text)
    while found is not None:
        yield found
        found = pattern.search(text, found.start() + 1)
