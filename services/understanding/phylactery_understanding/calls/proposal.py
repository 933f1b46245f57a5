"""Types of a proposed call and its understanding, and everyday names of its values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, Protocol

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


class Item(Protocol):
    """One thing that a tool listed; two are the same only if they are one object."""

    @property
    def within(self) -> tuple[int, ...]:
        """Its number in the result, and those of what it is a part of."""

    @property
    def words(self) -> frozenset[str]:
        """The words of its fields and of its parts'."""

    @property
    def stems(self) -> frozenset[str]:
        """The stems of these."""

    @property
    def times(self) -> frozenset[Feature]:
        """The times in its fields."""

    @property
    def keys(self) -> frozenset[str]:
        """The values that name it, which excludes amounts."""

    @property
    def owners(self) -> frozenset[str]:
        """The words of the fields that say whose it is: its author, its organizer."""

    @property
    def picked(self) -> bool:
        """True if it is at an end of an order the user mentioned: the largest, the cheapest."""

    @property
    def place(self) -> int:
        """Its place among the ``count`` items of its list."""

    @property
    def count(self) -> int:
        """The number of items of its list."""

    @property
    def made(self) -> bool:
        """True if a call of this task created it: only its name distinguishes it from others of its kind."""

    def holds(self, value: Any) -> bool:
        """Return True if a value is a whole field of it."""

    def says(self, word: str) -> bool:
        """Return True if a word occurs in a short text of it."""


def are_apart(one: Item, other: Item) -> bool:
    """Return True if neither item is the other or a part of it."""
    return one.within[0] not in other.within and other.within[0] not in one.within


class Listing:
    """The items of one result, by their words.

    It is built once per result and serves every value of every call: whoever writes a result decides how many of its
    items match a value, so nothing here compares each item with each.
    """

    def __init__(self, items: Sequence[Item], saying: Callable[[str], Collection[Item]], *, whole: bool = True) -> None:
        """Take the items in order, and a function that returns those of which ``says`` is true for a word.

        ``whole`` is false if there may be more than was listed: then none of the items is the last or the largest.
        """
        self.items, self._saying, self.whole = items, saying, whole
        self._at = {one.within[0]: one for one in items}
        self._words: dict[str, list[Item]] = {}
        self._stems: dict[str, list[Item]] = {}
        for item in items:
            for word in item.words:
                self._words.setdefault(word, []).append(item)
            for stem in item.stems:
                self._stems.setdefault(stem, []).append(item)

    def at(self, number: int) -> Item | None:
        """Return the item of a number in the result."""
        return self._at.get(number)

    def named_by(self, token: Token) -> Collection[Item]:
        """Return the items that have a word, or every word of a quotation, in their fields."""
        if token.kind is Kind.QUOTE:
            said = [one.text for one in tokenize(token.raw) if one.kind is not Kind.MARK]
            having = [self._words.get(one, ()) for one in said]
            return set(self.items if not having else having[0]).intersection(*having[1:])
        found = self._words.get(token.text.removesuffix("'s"), ())
        if token.kind is not Kind.WORD or len(token.text) <= _SHORT:
            return found
        return {*found, *self._stems.get(token.stem, ())}

    def with_word(self, token: Token) -> Collection[Item]:
        """Return the items of which ``in_item`` is true."""
        named = self.named_by(token)
        return named if token.kind is Kind.QUOTE else {*named, *self._saying(token.text.removesuffix("'s"))}


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A text in a value that is one of an item's own, and the listing that the item is in.

    ``beside`` are the newest listings that the same tool gave for other arguments, as of another page. ``shown`` says
    that the person may have seen the listing before they asked, so that a place may be meant by "the last one".
    """

    text: str
    item: Item
    listing: Listing
    beside: tuple[Listing, ...] = ()
    shown: bool = False


@dataclass(frozen=True, slots=True)
class Argument:
    """One value of a call.

    ``role`` is the catalog's. ``items`` are the listed things whose id a text in the value is: the user may have named
    it by another field. ``default`` says that the value is the schema's default; ``choices`` are the values allowed.
    ``file`` says that it names a file that the call changes. ``shared`` are the listed things that have exactly the
    same list in a field of the argument's name, each with its listing: the user may have named one of them.
    """

    name: str
    value: Any
    role: str
    control: bool = False
    items: tuple[Found, ...] = ()
    default: bool = False
    choices: tuple[str, ...] = ()
    file: bool = False
    shared: tuple[tuple[Item, Listing], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A proposed call in the grammar's terms.

    ``effects`` are the tool's effects by its name, ``phrases`` the verbs of its phrases, each with the stems of words
    one of which must accompany it, and ``nouns`` the stems of its object; all from the catalog. ``exists`` says that
    the target was seen to exist before, ``read`` that the target's text was read in this task, ``keeps`` that the
    content has all of that text, and ``texts`` have the stems of texts that the user pointed to and that were read.
    """

    tool: str
    effects: frozenset[str]
    phrases: tuple[tuple[str, frozenset[str]], ...]
    nouns: frozenset[str]
    arguments: tuple[Argument, ...]
    reads: bool = False
    exists: bool = False
    read: bool = False
    keeps: bool = False
    texts: Source = field(default_factory=Source)
    day: date | None = None
    spoken: Mapping[str, Sequence[frozenset[str]]] = field(init=False, repr=False, compare=False)
    """The stems of the ``phrases``, by verb."""

    def __post_init__(self) -> None:
        """Set what follows from the phrases."""
        object.__setattr__(self, "spoken", _by_verb(self.phrases))


@lru_cache(maxsize=1_024)
def _by_verb(phrases: tuple[tuple[str, frozenset[str]], ...]) -> Mapping[str, Sequence[frozenset[str]]]:
    found: dict[str, list[frozenset[str]]] = {}
    for verb, beside in phrases:
        found.setdefault(verb, []).append(beside)
    return found


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
        or (token.kind is Kind.WORD and len(token.text) > _SHORT and token.stem in item.stems)
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
