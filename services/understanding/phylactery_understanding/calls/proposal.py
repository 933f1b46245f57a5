"""Types of a proposed call and its understanding, and everyday names of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from phylactery_understanding.calls.content.model import Source
from phylactery_understanding.language.text import (
    STEM,
    Kind,
    Token,
    fold,
    is_disguised,
    is_file_name,
    tokenize,
    written,
)
from phylactery_understanding.language.times import Feature
from phylactery_understanding.language.vocabulary import word_groups, word_map, word_set
from phylactery_understanding.requests.model import Fault

ENDING: Final = frozenset({"cancel", "delete", "remove", "stop", "disable", "forget"})
_TO_DO: Final = word_set("obsolete_stems")
_PESOS: Final = "ars mxn clp cop uyu dop cup php"
CURRENCIES: Final[Mapping[str, str]] = word_map("currencies")
_SAME_NAMES: Final[Mapping[str, str]] = word_map("same_names")
_SHORT: Final = 3
_CALLED: Final[Mapping[str, tuple[str, ...]]] = word_groups("argument_names")


class Level(IntEnum):
    """How far a call is understood."""

    REFUSED = -1
    """The newest message retracts, forbids or excludes it."""
    NONE = 0
    HALF = 1
    CLEAR = 2


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a tool listed: the words of its fields, the times among them, and its values.

    ``holds`` returns whether a value is a whole field of the item; ``says`` whether a word occurs in a short text of
    it. ``picked`` is True if the item is at an end of an order the user mentioned: the largest, the cheapest. It is at
    ``place`` of the ``count`` items of its list. ``keys`` are the values that name it, which excludes amounts.
    """

    words: frozenset[str]
    times: frozenset[Feature]
    holds: Callable[[Any], bool]
    says: Callable[[str], bool] = field(default=lambda _: False)
    picked: bool = False
    place: int = 0
    count: int = 1
    keys: frozenset[str] = frozenset()
    made: bool = False
    """A call of this task created it: only its name distinguishes it from others of its kind."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One value of a call.

    ``role`` is the catalog's. ``items`` are the listed things whose id a text in the value is, each with that text and
    the others of its list: the user may have named it by another field. ``default`` says that the value is the schema's
    default; ``choices`` are the values allowed. ``shared`` are the listed things that have exactly the same list in a
    field of the argument's name, each with the others: the user may have named one of them.
    """

    name: str
    value: Any
    role: str
    control: bool = False
    items: tuple[tuple[str, Item, tuple[Item, ...]], ...] = ()
    default: bool = False
    choices: tuple[str, ...] = ()
    shared: tuple[tuple[Item, tuple[Item, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A proposed call in the grammar's terms.

    ``effects`` are the tool's effects by its name, ``phrases`` the verbs of its phrases, each with the stems of words
    one of which must accompany it, and ``nouns`` the stems of its object; all from the catalog. ``exists`` says that
    the target was seen to exist before, ``read`` that the target's text was read in this task, and ``texts`` have the
    stems of texts that the user pointed to and that were read.
    """

    tool: str
    effects: frozenset[str]
    phrases: tuple[tuple[str, frozenset[str]], ...]
    nouns: frozenset[str]
    arguments: tuple[Argument, ...]
    reads: bool = False
    exists: bool = False
    read: bool = False
    texts: Source = field(default_factory=Source)
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Understanding:
    """How far a call is understood, by which ask, why no further, and the ask's number of effects (0: a set).

    ``index`` is the position of the ask in its message, -1 if no ask is about the call.
    """

    level: Level
    ask: str = ""
    words: tuple[str, ...] = ()
    fault: Fault | None = None
    quota: int = 1
    by: str = "rules"
    index: int = -1


NOTHING: Final = Understanding(Level.NONE)


def plain_values(value: Any) -> Iterator[Any]:
    """Return the scalars in a value."""
    if isinstance(value, dict):
        for one in value.values():
            yield from plain_values(one)
    elif isinstance(value, list):
        for one in value:
            yield from plain_values(one)
    elif value is not None:
        yield value


def in_item(token: Token, item: Item) -> bool:
    """Return True if a word, or every word of a quotation, belongs to a listed item."""
    if token.kind is Kind.QUOTE:
        return all(one.text in item.words for one in tokenize(token.raw) if one.kind is not Kind.MARK)
    word = token.text.removesuffix("'s")
    return (
        word in item.words
        or item.says(word)
        or (
            token.kind is Kind.WORD and len(token.text) > _SHORT and any(one[:STEM] == token.stem for one in item.words)
        )
    )


def names_of(name: str) -> Iterator[str]:
    """Return the stems of an argument's everyday names: labels, etiqueta."""
    for part in fold(name).replace("-", "_").split("_"):
        yield part[:STEM]
        yield from (one[:STEM] for one in _CALLED.get(part, ()))


@lru_cache(maxsize=16)
def is_exact(text: str) -> bool:
    """Return True if a text is an exact name, in which every letter counts."""
    return any(one in text for one in "@/\\:.") or any(one.isdigit() for one in text)


@lru_cache(maxsize=16)  # a call's few values are compared with every word
def plain_name(text: str) -> str:
    """Return a name's normal form: folded, without a channel mark, and prod as production."""
    folded = fold(text).strip().lstrip("#@")
    return _SAME_NAMES.get(folded, folded)


def same_name(said: str, value: str) -> bool:
    """Return True if words name a value: literally if every letter counts, otherwise ignoring case and accents."""
    words = tokenize(said)
    if len(words) == 1:
        return not is_disguised(value) and is_named(words[0], value)
    if is_exact(value):
        return written(said.strip()) == written(value.strip())
    wanted = [one.text for one in tokenize(value) if one.kind is not Kind.MARK]
    return bool(wanted) and [one.text for one in words if one.kind is not Kind.MARK] == wanted


def is_named(token: Token, text: str, *, exact: bool | None = None) -> bool:
    """Return True if a token names a value: literally if it is exact, otherwise ignoring case and accents."""
    plain = plain_name(text)
    if token.kind is Kind.QUOTE:
        return fold(token.raw.strip()) == plain
    if (is_exact(text) if exact is None else exact) or token.kind is Kind.LITERAL:
        mark = token.raw.lstrip("#@") if not text.startswith(("#", "@")) else token.raw
        value = text if token.raw.startswith(("#", "@")) or not text.startswith(("#", "@")) else text.lstrip("#@")
        if is_file_name(text) and "://" not in text:
            return token.raw == text  # Notes.txt is not notes.txt
        return written(mark.strip()) == written(value.strip()) or written(token.raw) == written(text.strip())
    return _SAME_NAMES.get(token.text, token.text) == plain


def ends_reminders(call: Call) -> bool:
    """Return True if a call ends a reminder."""
    return bool(call.effects & ENDING) and not call.nouns.isdisjoint(_TO_DO)
