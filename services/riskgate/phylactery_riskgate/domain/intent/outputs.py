"""Output kinds of the fields of a tool's result, by the longest matching pointer of the catalog.

A pointer is trusted for the scalar value it names, or a list of such values. Anything below that in an object is free
text unless another pointer names it. Everything below a private value is private.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from phylactery_riskgate.domain.pointers import parse

_CODES: Final = {"system": "s", "naming": "n", "free": "f", "private": "p", "orderable": "o"}
_ANY: Final = "*"
_KEYS: Final = frozenset({"id", "sku", "uuid", "code", "key", "slug"})
"""Names of fields that hold an object's key."""
_TRUSTED: Final = frozenset({"system", "naming", "orderable"})
_NOT_OF_KEYS: Final = frozenset({"orderable", "private"})
_LONGEST_FIELD: Final = 64
"""The maximum length of a field's name, in characters."""

_Tokens = tuple[str, ...]
_Kinds = tuple[tuple[_Tokens, str], ...]


class Place:
    """A place in a tool's result: its kind, and the pointers that apply to the places below it.

    There are as many places as the catalog distinguishes, whatever keys a result has: all keys that no pointer names
    share one.
    """

    __slots__ = (
        *("_below", "_fields", "_kinds", "_names", "_of_key", "_registry"),
        *("code", "fields", "free", "holds_fields", "holds_items", "kind", "registry"),
    )

    def __init__(self, kinds: _Kinds, registry: Sequence[_Tokens], kind: str) -> None:
        """Store the remaining parts of the pointers that match so far, and the kind if none of them ends here."""
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
        """True if the value must be a list or an object to be trusted."""
        self.holds_fields = bool(trusted and self._names and not self.holds_items)
        """True if it must be an object."""
        self._below: dict[str, Place] = {}
        self.fields: dict[str, Place] = {}
        self._of_key: Place | None = None

    @property
    def of_key(self) -> Place:
        """Return the kind of a scalar at this key; orderable and private apply to what is below."""
        if self.kind not in _NOT_OF_KEYS:
            return self
        if self._of_key is None:
            self._of_key = Place((), ((),) if self.registry else (), "naming")
        return self._of_key

    @property
    def items(self) -> Place:
        """The place of all list items: the list's own place if no pointer distinguishes them."""
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
        """Return True if a key is a field name: a pointer names it, or it is an identifier and no pointer has * here.

        A key that is not a field name is a value itself, such as the name by which a map is keyed. An address or a name
        with a space is never a field name.
        """
        if key in self._fields:
            return True
        plain = key.isascii() and key.isidentifier() and len(key) <= _LONGEST_FIELD
        return plain and _ANY not in self._fields


FREE: Final = Place((), (), "free")
PRIVATE: Final = Place((), (), "private")
_KEY: Final = Place((), (), "naming")


def _keyed(place: Place, key: str) -> Place:
    """Return the place of a field that is an object's key by its name: kind naming, unless specified otherwise.

    A key is not prose. An attacker who chooses one can only cause a question to the person.
    """
    return _KEY if place.free and not place.registry and (key in _KEYS or key.endswith("_id")) else place


@lru_cache(maxsize=256)
def outputs(kinds: tuple[tuple[str, str], ...], registry: tuple[str, ...]) -> Place:
    """Return the root place of a tool's result, by the catalog's pointers; unmatched places are free text."""
    return Place(tuple((parse(text), kind) for text, kind in kinds), list(map(parse, registry)), "free")
