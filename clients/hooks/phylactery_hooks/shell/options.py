"""Options: which options a listed program may be given, and what each takes.

A grammar is written as text, one word an option: ``-x`` takes nothing, ``-x=`` takes a value, ``-x?`` takes one only if
it is attached, ``-x<`` takes a file that it reads and ``-x>`` one that it writes. Names are compared whole: programs
accept abbreviations of long options, a grammar does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from phylactery_hooks.shell.syntax import Word


class NotListedError(Exception):
    """An option or operand is not of the listed ones; the text says which."""


class Operands(Enum):
    """What the words are that are no options."""

    NONE = "none"
    TEXT = "text"
    READ = "files to read"
    LISTED = "files whose names are shown"
    SEARCHED = "a pattern, then files to read"
    WRITTEN = "files to write"


MANY: Final = 10_000
_OPTION: Final = re.compile(r"-(?!\d*$)")
_ENDS: Final = {"=": "value", "?": "attached", "<": "read", ">": "write"}


@dataclass(frozen=True, slots=True)
class Grammar:
    """The options of a program, and its operands."""

    options: dict[str, str]
    operands: Operands
    at_most: int
    digits: bool
    """``-5`` is an option."""
    bundles: bool
    """``-ab`` is ``-a -b``; otherwise it is an option of its own, or ``-a`` with a value where it takes one."""


@dataclass(slots=True)
class Arguments:
    """The words of a call, told apart."""

    options: dict[str, list[str]] = field(default_factory=dict)
    reads: list[Word] = field(default_factory=list)
    writes: list[Word] = field(default_factory=list)
    operands: list[Word] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        """Return True if one of these options is given."""
        return any(name in self.options for name in names)


def grammar(
    options: str,
    operands: Operands = Operands.READ,
    *,
    at_most: int = MANY,
    digits: bool = False,
    bundles: bool = True,
) -> Grammar:
    """Return the grammar that the text describes."""
    kinds: dict[str, str] = {}
    for word in options.split():
        if word[-1] in _ENDS and len(word) > 2:  # noqa: PLR2004 - a dash and a letter
            kinds[word[:-1]] = _ENDS[word[-1]]
        else:
            kinds[word] = "flag"
    return Grammar(kinds, operands, at_most, digits, bundles)


def read(rules: Grammar, words: tuple[Word, ...]) -> Arguments:
    """Return the options and operands of a call, without the program's name. Raise NotListedError."""
    found = Arguments()
    rest = iter(words)
    for word in rest:
        if word.text == "--":
            found.operands.extend(rest)
        elif word.text.startswith("--"):
            _long(rules, word, rest, found)
        elif word.text.startswith("-") and word.text != "-":
            _short(rules, word, rest, found)
        else:
            found.operands.append(word)
    if rules.at_most < MANY and any(one.glob for one in found.operands):
        raise NotListedError("a pattern may stand for more operands than listed")
    if len(found.operands) > rules.at_most or (rules.operands is Operands.NONE and found.operands):
        raise NotListedError("it has more operands than listed")
    return found


def _long(rules: Grammar, word: Word, rest: Iterator[Word], found: Arguments) -> None:
    name, attached, value = word.text.partition("=")
    kind = rules.options.get(name)
    if kind is None or word.glob or (attached and kind == "flag"):
        raise NotListedError(f"its option {_shown(name)} is not listed")
    if kind in {"flag", "attached"} or attached:
        _take(found, name, kind, Word(value))
    else:
        _take(found, name, kind, _next(name, rest))


def _short(rules: Grammar, word: Word, rest: Iterator[Word], found: Arguments) -> None:
    text = word.text
    if word.glob:
        raise NotListedError("an option is a pattern")
    if rules.digits and text[1:].isascii() and text[1:].isdigit():
        return
    if text in rules.options and len(text) > 2:  # noqa: PLR2004 - an option of one dash and several letters
        kind = rules.options[text]
        _take(found, text, kind, Word("") if kind == "flag" else _next(text, rest))
        return
    for index, letter in enumerate(text[1:], start=2):
        name = f"-{letter}"
        if name not in rules.options:
            raise NotListedError(f"its option {_shown(name)} is not listed")
        kind = rules.options[name]
        if not rules.bundles and len(text) > 2 and (index > 2 or kind == "flag"):  # noqa: PLR2004 - a dash and a letter
            raise NotListedError("options are written together")
        if kind == "flag":
            _take(found, name, kind, Word(""))
            continue
        attached = text[index:]
        needs = not attached and kind != "attached"
        _take(found, name, kind, _next(name, rest) if needs else Word(attached))
        return


def _next(name: str, rest: Iterator[Word]) -> Word:
    value = next(rest, None)
    if value is None or value.glob:
        raise NotListedError(f"the value of its option {_shown(name)} is missing or a pattern")
    if _OPTION.match(value.text):
        raise NotListedError(f"the value of its option {_shown(name)} looks like an option")
    return value


def _take(found: Arguments, name: str, kind: str, value: Word) -> None:
    found.options.setdefault(name, []).append(value.text)
    if kind == "read":
        found.reads.append(value)
    elif kind == "write":
        found.writes.append(value)


def _shown(name: str) -> str:
    """Return an option's name, without what could be a value."""
    return name if len(name) <= 30 and name.replace("-", "").isalnum() else "…"  # noqa: PLR2004 - as long as names are
