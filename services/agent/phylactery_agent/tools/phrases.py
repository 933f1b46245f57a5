"""The phrases that a tool's patterns stand for, in the form of RiskGate's catalog: words in order, * for what is said.

Reads the part of RE2 that patterns are written in. What it cannot read stands for no phrase.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

MAX_FORMS: Final = 400
"""How many forms of one pattern are looked at."""
ANY: Final = "*"

_REPEATS: Final = frozenset("?*+{")
_SPECIAL: Final = frozenset("^$")


class _UnreadableError(Exception):
    """A pattern in a form nobody here reads, or with too many readings."""


class _Pattern:
    """One expression, read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def forms(self) -> list[str]:
        """Answers every text the whole expression may stand for."""
        found = self._choice()
        if self._place < len(self._text):
            raise _UnreadableError
        return found

    def _next(self) -> str:
        if self._place >= len(self._text):
            raise _UnreadableError
        self._place += 1
        return self._text[self._place - 1]

    def _seen(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._place):
            return False
        self._place += len(mark)
        return True

    def _choice(self) -> list[str]:
        found = self._sequence()
        while self._seen("|"):
            found = [*found, *self._sequence()]
        return list(dict.fromkeys(found))

    def _sequence(self) -> list[str]:
        found = [""]
        while self._place < len(self._text) and self._text[self._place] not in "|)":
            pieces = self._repeated()
            found = [f"{before}{piece}" for before in found for piece in pieces]
            if len(found) > MAX_FORMS:
                raise _UnreadableError
        return found

    def _repeated(self) -> list[str]:
        group = self._text[self._place] == "("
        pieces = self._atom()
        optional = False
        while self._place < len(self._text) and self._text[self._place] in _REPEATS:
            mark = self._next()
            if mark == "{":
                while self._next() != "}":
                    pass
            optional = optional or mark in "?*"
        return [""] if optional and group else pieces

    def _atom(self) -> list[str]:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return [self._class()]
        if char == "\\":
            char = self._next()
            return [" " if char == "s" else f" {ANY} " if char.isalnum() else char]
        if char in _SPECIAL | _REPEATS:
            raise _UnreadableError
        return [f" {ANY} " if char == "." else char]

    def _group(self) -> list[str]:
        named = self._seen("?P<")
        if not named and not self._seen("?:"):
            raise _UnreadableError
        if named:
            self._pass_over()
            return [f" {ANY} "]
        inside = self._choice()
        if not self._seen(")"):
            raise _UnreadableError
        return inside

    def _pass_over(self) -> None:
        """Reads to the end of a group whose inside is an argument."""
        open_groups = 1
        while open_groups:
            char = self._next()
            if char == "\\":
                self._next()
            elif char == "[":
                self._class()
            else:
                open_groups += (char == "(") - (char == ")")

    def _class(self) -> str:
        """Answers the one letter of a choice of spellings, or that anything may stand there."""
        chars = [self._next()]
        while chars[-1] != "]" or len(chars) == 1:
            chars.append(self._next())
        spellings = chars[:-1]
        if spellings[0] == "^" or "-" in spellings or "\\" in spellings:
            return f" {ANY} "
        return next((char for char in spellings if char.isalpha() and not char.isascii()), spellings[0])


def phrases_of(expression: str) -> tuple[str, ...]:
    """Answers the phrases a pattern stands for, what may be left out left out; none where it cannot be read."""
    try:
        forms = _Pattern(expression).forms()
    except _UnreadableError:
        return ()
    return tuple(dict.fromkeys(filter(None, (" ".join(_words(form)) for form in forms))))


def _words(form: str) -> Iterator[str]:
    words = ["".join(char for char in word if char.isalnum() or char in "*'’-") for word in form.split()]
    words = [word for word in words if word]
    while words and words[0] == ANY:
        del words[0]
    while words and words[-1] == ANY:
        del words[-1]
    for place, word in enumerate(words):
        if word != ANY or words[place - 1] != ANY:
            yield word
