"""Which field of a tool's answer is what, by the longest pointer of the catalog that fits its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from phylactery_riskgate.domain.pointers import parse

KINDS: Final = {"system": "s", "naming": "n", "free": "f", "private": "p", "orderable": "o"}
_ANY: Final = "*"
_MAX_PLACES: Final = 1_024
_MAX_LENGTH: Final = 128
"""How many places of a tool's answers are remembered, and how many letters a place may take for that."""
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""What a field may be called; an address or a name with a space is no field's name."""


@dataclass(slots=True)
class _Pointers:
    """The pointers of one tool, and what was found out about places of its answers: a tool answers much alike."""

    kinds: list[tuple[tuple[str, ...], str]]
    registry: list[tuple[str, ...]]
    kind_at: dict[tuple[str, ...], tuple[str, bool]] = field(default_factory=dict)
    known_at: dict[tuple[tuple[str, ...], str], bool] = field(default_factory=dict)

    def forget(self) -> None:
        """Makes room: the keys of an answer are somebody else's, and may be new ones each time."""
        if len(self.kind_at) == _MAX_PLACES or len(self.known_at) == _MAX_PLACES:
            self.kind_at, self.known_at = {}, {}


@lru_cache(maxsize=256)
def _pointers(kinds: tuple[tuple[str, str], ...], registry: tuple[str, ...]) -> _Pointers:
    return _Pointers([(parse(text), kind) for text, kind in kinds], [parse(text) for text in registry])


class Outputs:
    """The catalog's pointers into one tool's answers, as a tree; what none fits is free."""

    def __init__(self, kinds: Sequence[tuple[str, str]], registry: Sequence[str]) -> None:
        pointers = _pointers(tuple(kinds), tuple(registry))
        pointers.forget()
        self._kinds, self._registry = pointers.kinds, pointers.registry
        self._kind_at, self._known_at = pointers.kind_at, pointers.known_at

    def kind(self, place: tuple[str, ...]) -> tuple[str, bool]:
        """Answers the kind of what stands at a place, and whether it is a registry."""
        found = self._kind_at.get(place)
        if found is None:
            fitting = [(len(tokens), kind) for tokens, kind in self._kinds if _fits(tokens, place)]
            kind = max(fitting, key=lambda one: one[0])[1] if fitting else "free"
            found = kind, any(_fits(tokens, place) for tokens in self._registry)
            if len(self._kind_at) < _MAX_PLACES and sum(map(len, place)) <= _MAX_LENGTH:
                self._kind_at[place] = found
        return found

    def knows(self, place: tuple[str, ...], key: str) -> bool:
        """Says whether a key is a field's name: a pointer names it, or none says that any key may stand here.

        A key that is no field's name is a value itself, such as the name a map is keyed by.
        """
        known = self._known_at.get((place, key))
        if known is None:
            depth = len(place)
            here = [tokens[depth] for tokens, _ in self._kinds if len(tokens) > depth and _fits(tokens[:depth], place)]
            known = key in here or (_ANY not in here and _FIELD.fullmatch(key) is not None)
            if len(self._known_at) < _MAX_PLACES and sum(map(len, place), len(key)) <= _MAX_LENGTH:
                self._known_at[place, key] = known
        return known


def _fits(tokens: tuple[str, ...], place: tuple[str, ...]) -> bool:
    return len(tokens) <= len(place) and all(
        token in {_ANY, there} for token, there in zip(tokens, place, strict=False)
    )
