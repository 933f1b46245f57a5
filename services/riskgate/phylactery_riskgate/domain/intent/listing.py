"""The items of a result in the grammar's terms, and the fields by which a person may name them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from phylactery_understanding.calls.proposal import Listing
from phylactery_understanding.language.text import STEM
from phylactery_understanding.language.times import Feature, times_of

from phylactery_riskgate.domain.intent import folding, spelling
from phylactery_riskgate.domain.intent.computed import computed
from phylactery_riskgate.domain.intent.origin.literals import number
from phylactery_riskgate.domain.intent.origin.naming import Named, Value
from phylactery_riskgate.domain.intent.origin.prints import prints
from phylactery_riskgate.domain.intent.words import Words

_MOST_ITEMS: Final = 200
_SHORT_TEXT: Final = 30
"""The maximum number of prints of a text that is a name or label rather than prose."""
_CODE: Final = 3
_KEYS: Final = frozenset(
    {
        "id",
        "sku",
        "number",
        "key",
        "code",
        "uuid",
        "name",
        "handle",
        "email",
        "path",
        "account",
        "iban",
        "username",
        "user",
    }
)
"""Fields that name an object, whatever the catalog says of them."""
_OWNERS: Final = frozenset(
    {
        *("author", "owner", "creator", "created_by", "organizer", "organiser", "sender", "from", "user", "username"),
        *("posted_by", "uploaded_by", "shared_by", "autor", "autora", "propietario", "propietaria", "creador"),
        *("creadora", "organizador", "organizadora", "remitente"),
    }
)
"""Fields that say whose an object is. They can only set apart what somebody else called by that name."""


def is_key(field: str) -> bool:
    """Return True if a field names an object, whatever the catalog says of it."""
    return field in _KEYS or field.endswith(("_id", "_number"))


class Result(Protocol):
    """What a listing needs to know of the result of a call."""

    @property
    def words(self) -> Words:
        """The words of the task."""

    @property
    def made(self) -> bool:
        """Whether the call changed something."""

    @property
    def in_part(self) -> bool:
        """Whether there may be more items than it lists."""

    @property
    def arguments(self) -> Sequence[str]:
        """The normal forms of its arguments."""

    @property
    def values(self) -> Sequence[Value]:
        """Its values, each with the number of its item."""

    @property
    def prints(self) -> Mapping[int, frozenset[int]]:
        """The prints of free text, by item."""

    @property
    def named(self) -> Named:
        """The items the user named or picked."""

    def within(self, item: int) -> Iterable[int]:
        """Return an item and all its ancestors."""


class ListedItem:
    """An item of a result. What few items are asked for is computed then."""

    def __init__(self, result: Result, number_: int, values: Sequence[Value], words: Collection[str]) -> None:
        self._result, self._number, self._values = result, number_, values
        self.within = tuple(result.within(number_))
        self.words = frozenset(words)
        self.stems = frozenset(one[:STEM] for one in self.words)
        self.picked = number_ in result.named.picks
        self.place, self.count = 0, 1
        self.made = result.made

    @computed
    def times(self) -> frozenset[Feature]:
        """Return the times in its fields."""
        texts = {value.written or value.norm for value in self._values if value.kind[0] != "p"}
        return frozenset(feature for text in texts for feature in times_of(text).features)

    @computed
    def keys(self) -> frozenset[str]:
        """Return the values that name it."""
        return frozenset(value.norm for value in self._values if is_key(value.field))

    @computed
    def owners(self) -> frozenset[str]:
        """Return the words of the fields that say whose it is."""
        norms = (value.norm for value in self._values if value.field in _OWNERS and value.kind[0] != "p")
        return frozenset(atom for norm in norms for token in norm.split(" ") for atom in (token, *folding.atoms(token)))

    @computed
    def _forms(self) -> Mapping[str, Collection[str]]:
        """Return the spellings of its values, by their normal forms."""
        found: dict[str, set[str]] = {}
        for value in self._values:
            found.setdefault(value.norm, set()).add(value.written or value.norm)
        return found

    def holds(self, value: Any) -> bool:
        """Return True if it has a value in its exact spelling: report* is not report.

        The value by which the user had the items looked up, such as a repository, is a value of each item.
        """
        if isinstance(value, int | float):
            return number(value) in self._forms
        tokens = folding.tokens(folding.fold(str(value)))
        norm, form = " ".join(tokens), spelling.spelled(str(value))
        if any(spelling.same(one, form) for one in self._forms.get(norm, ())):
            return True
        if norm in self._result.arguments and spelling.said(self._result.words, str(value), "object") is not None:
            return True
        # A three-letter code, as of a currency, may be in a field that the catalog does not name.
        return len(str(value)) == _CODE and set(prints(tokens)) <= self._result.prints.get(self._number, frozenset())

    @computed
    def short_text(self) -> frozenset[int]:
        """Return the prints of its free text, if that is short as a name."""
        text = self._result.prints.get(self._number, frozenset())
        return text if len(text) <= _SHORT_TEXT else frozenset()

    def says(self, word: str) -> bool:
        """Return True if a word occurs in its short text."""
        return bool(self.short_text) and len(word) > _CODE and _print_of(word) in self.short_text


def _print_of(word: str) -> int:
    return prints(folding.tokens(folding.fold(word))[:1] or [word])[0]


def listing(result: Result) -> Listing:
    """Return the items of a result, with the words of the fields by which a person may name them.

    What has no value of its own only holds other items: nothing can name it, and nobody counts it.
    """
    values: dict[int, list[Value]] = {}
    for value in result.values:
        if len(values) <= _MOST_ITEMS or value.item in values:
            values.setdefault(value.item, []).append(value)
    words: dict[int, set[str]] = {item: set() for item in values}
    for item, of_item in values.items():
        norms = {value.norm for value in of_item if value.kind[0] != "p"}
        own = {atom for norm in norms for token in norm.split(" ") for atom in (token, *folding.atoms(token))}
        for holder in result.within(item):  # an order is named by what is in it
            if holder in words and (holder or not item):
                words[holder] |= own
    items = {
        item: ListedItem(result, item, values[item], words[item]) for item in sorted(values) if item or len(values) == 1
    }
    levels: dict[int, list[ListedItem]] = {}
    for one in items.values():
        levels.setdefault(len(one.within), []).append(one)
    ordered = [one for level in levels.values() for one in level]
    for level in levels.values():  # the second order is not the first line of the first one
        for place, one in enumerate(level):
            one.place, one.count = place, len(level)
    short: dict[int, list[ListedItem]] = {}
    for one in ordered:
        for print_ in one.short_text:
            short.setdefault(print_, []).append(one)

    def saying(word: str) -> Sequence[ListedItem]:
        return short.get(_print_of(word), ()) if len(word) > _CODE else ()

    return Listing(ordered, saying, whole=not result.in_part)
