"""Which field of a tool's answer is what, by the longest pointer of the catalog that fits its place.

A pointer is believed of the plain value it names, or of a list of such. What stands below it in an object is free text
unless a pointer of its own names it; but below what is private everything is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from phylactery_riskgate.domain.pointers import parse

_CODES: Final = {"system": "s", "naming": "n", "free": "f", "private": "p", "orderable": "o"}
_ANY: Final = "*"
_KEYS: Final = frozenset({"id", "sku", "uuid", "code", "key", "slug"})
"""Names of fields that hold a key of the thing."""
_TRUSTED: Final = frozenset({"system", "naming", "orderable"})
_NOT_OF_KEYS: Final = frozenset({"orderable", "private"})
_LONGEST_FIELD: Final = 64
"""Characters of a field's name."""

_Tokens = tuple[str, ...]
_Kinds = tuple[tuple[_Tokens, str], ...]


class Place:
    """A place of a tool's answer: what stands there, and what the pointers say of the places below it.

    There are as many as the catalog tells apart, whatever keys an answer has: all keys that no pointer names share one.
    """

    __slots__ = (
        *("_below", "_fields", "_kinds", "_names", "_of_key", "_registry"),
        *("code", "fields", "free", "holds_fields", "holds_items", "kind", "registry"),
    )

    def __init__(self, kinds: _Kinds, registry: Sequence[_Tokens], kind: str) -> None:
        """Take what is left of the pointers that fit so far, and what stands here where none of them ends here."""
        here = [one for tokens, one in kinds if not tokens]
        self.kind = here[0] if here else kind
        self.registry = () in registry
        self.code = _CODES[self.kind] + ("r" if self.registry else "")
        self.free = self.code == "f"
        self._kinds = tuple((tokens, one) for tokens, one in kinds if tokens)
        self._registry = tuple(filter(None, registry))
        self._fields = frozenset(tokens[0] for tokens, _ in self._kinds)
        self._names = self._fields.union(tokens[0] for tokens in self._registry)
        trusted = self._registry or self.registry or not _TRUSTED.isdisjoint({self.kind, *(k for _, k in self._kinds)})
        self.holds_items = bool(trusted and _ANY in self._names)
        """Whether items or fields must stand here for anything of it to be believed."""
        self.holds_fields = bool(trusted and self._names and not self.holds_items)
        """Whether fields must."""
        self._below: dict[str, Place] = {}
        self.fields: dict[str, Place] = {}
        self._of_key: Place | None = None

    @property
    def of_key(self) -> Place:
        """Return what the key is that leads here, where it is a value: what can be ordered or is private is below."""
        if self.kind not in _NOT_OF_KEYS:
            return self
        if self._of_key is None:
            self._of_key = Place((), ((),) if self.registry else (), "naming")
        return self._of_key

    @property
    def items(self) -> Place:
        """The place of everything in a list: where no pointer tells the items from the list, the list's own."""
        return self.below(_ANY) if self._names else self

    def below(self, key: str) -> Place:
        """Return the place of a key."""
        if not self._names:
            return PRIVATE if self.kind == "private" else FREE
        name = key if key in self._names else _ANY
        found = self._below.get(name)
        if found is None:
            fits = {name, _ANY}
            kinds = tuple((tokens[1:], kind) for tokens, kind in self._kinds if tokens[0] in fits)
            registry = [tokens[1:] for tokens in self._registry if tokens[0] in fits]
            kind = self.kind if self.kind == "private" else "free"
            found = self._below[name] = Place(kinds, registry, kind)
            if name in self._fields:
                self.fields[name] = _keyed(found, key) if name == key else found
        return _keyed(found, key) if key in self._fields else found

    def knows(self, key: str) -> bool:
        """Return whether a key is a field's name: a pointer names it, or none says that any key may stand here.

        A key that is no field's name is a value itself, such as the name a map is keyed by; and an address or a name
        with a space is no field's.
        """
        if key in self._fields:
            return True
        plain = key.isascii() and key.isidentifier() and len(key) <= _LONGEST_FIELD
        return plain and _ANY not in self._fields


FREE: Final = Place((), (), "free")
PRIVATE: Final = Place((), (), "private")
_KEY: Final = Place((), (), "naming")


def _keyed(place: Place, key: str) -> Place:
    """Return the place of a field that by its name is a key of the thing: a name of it, where nothing else is said.

    A key is no prose: whoever can choose one can have the person asked about it, and no more.
    """
    return _KEY if place.free and not place.registry and (key in _KEYS or key.endswith("_id")) else place


@lru_cache(maxsize=256)
def outputs(kinds: tuple[tuple[str, str], ...], registry: tuple[str, ...]) -> Place:
    """Return the whole answer of a tool by the catalog's pointers into it; what none fits is free."""
    return Place(tuple((parse(text), kind) for text, kind in kinds), list(map(parse, registry)), "free")
