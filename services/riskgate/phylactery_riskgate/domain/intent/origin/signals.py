"""Signals in a call's contents: an address the user did not write, private values, or dictation by another text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.languages import DETAILS
from phylactery_riskgate.domain.intent.model import FROM_TEXT, NAMED
from phylactery_riskgate.domain.intent.origin.naming import telling
from phylactery_riskgate.domain.intent.origin.prints import prints, triples
from phylactery_riskgate.domain.intent.words import follow, looks_literal

Signal = tuple[int, str]
"""0 is for information, 1 worth a question, 2 worth a stop; with the reason."""

MAX_CONTENT: Final = 200_000
_LINK = re.compile(r"(?:https?://|www\.)[^\s<>\"'()]{3,2000}+", re.IGNORECASE)
_MAX_LINKS: Final = 50
_MAX_ENCODED: Final = 8
_DICTATED: Final = 6
"""The number of consecutive tokens that do not coincide by chance."""
_SHARE: Final = 0.4
"""The share of a content's triples. With every fifth word replaced, 3 in 5 pairs and 2 in 5 triples remain."""
_LONG, _LONG_SHARE = 30_000, 0.5
"""The triples of a text so long that it shares many with any other by chance, and the share required there."""
_FEW, _SHORT = 3, 6
"""The number of triples beyond any common phrase in a short content, and how many triples a short content has."""
_SEVERAL: Final = 2
_SHORTEST_PRIVATE: Final = 4
_NO_ITEMS: Final[frozenset[int]] = frozenset()
_GRAM: Final = 8
"""The number of consecutive letters and digits that do not coincide by chance."""
_APART: Final = 3
"""The number of words allowed between the parts of a private value."""
_MAX_RAREST: Final = 16


def content_signals(
    index: TaskIndex, contents: Iterable[str], reached: int, kept: Collection[str] = ()
) -> Iterator[Signal]:
    """Return the signals in the contents of a call; ``reached`` is the origin of its recipient.

    ``kept`` are the files it writes: what they already contain may stay there.
    """
    for content in contents:
        text = content[:MAX_CONTENT]
        if len(content) > MAX_CONTENT:
            yield 1, "more text than is looked at"
        folded = folding.fold(text)
        tokens = folding.tokens(folded)
        if any(not index.words.hold_tokens(folding.tokens(link)) for link in _links(folded)):
            yield 1, "a link the user did not write"
        found = list(islice(folding.decoded_in(text), _MAX_ENCODED + 1))
        if len(found) > _MAX_ENCODED:
            yield 1, "more text in an encoding than is looked at"
        decoded = [folding.tokens(folding.fold(one)) for one in found[:_MAX_ENCODED]]
        if decoded and not index.words.hold_tokens(tokens):
            yield 1, "text in an encoding"
        for said in (tokens, *decoded):
            yield from _private(index, said)
            if reached > NAMED and _gives_away(index, said):
                yield min(reached, 2), "values the user did not name, for somebody they did not name"
        if any(_is_from_text(index, said) for said in (tokens, *decoded)):
            yield 0, FROM_TEXT
        if len(tokens) >= _DICTATED and _is_dictated(index, tokens, kept=kept):
            yield 1, "text somebody else wrote, word by word or nearly"


def _links(folded: str) -> Iterator[str]:
    for count, match in enumerate(_LINK.finditer(folded)):
        if count >= _MAX_LINKS:
            return
        yield match.group().removeprefix("https://").removeprefix("http://").rstrip(".,;:!?")


def _private(index: TaskIndex, tokens: list[str]) -> Iterator[Signal]:
    """Return the private values in a content, and whether the user asked for them by their field name."""
    content: _Content | None = None
    details = bool(DETAILS & index.words.atom_places.keys())
    for result in index.results:
        for value in result.private:
            if len(value.norm) < _SHORTEST_PRIVATE:
                continue
            content = content or _Content(tokens)
            wanted = value.norm.split(" ")
            level = content.holds(wanted)
            if level and not _asked_for(index, wanted, value.field):
                yield (1 if details else level), f"something private: {value.field}"


class _Content:
    """A content to search for private values, including values written joined or split."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._places = _positions(tokens)
        atoms = [atom for token in tokens for atom in folding.atoms(token)]
        self._atom_places = _positions(atoms)
        self._squeezed = "".join(atoms)
        self._grams = frozenset(self._squeezed[at : at + _GRAM] for at in range(len(self._squeezed) - _GRAM + 1))

    def holds(self, wanted: Sequence[str]) -> int:
        """Return 2 if a value is contained, 1 if its parts occur near one another, 0 otherwise."""
        if wanted[0] in self._places and follow(wanted, self._tokens, self._places):
            return 2
        atoms = [atom for token in wanted for atom in folding.atoms(token)]
        squeezed = "".join(atoms)
        if squeezed[:_GRAM] in self._grams and squeezed in self._squeezed:
            return 2
        return 1 if len(squeezed) >= _GRAM and len(set(atoms)) > 1 and self._hold_near(atoms) else 0

    def _hold_near(self, atoms: Sequence[str]) -> bool:
        if not all(atom in self._atom_places for atom in atoms):
            return False
        rarest = min((self._atom_places[atom] for atom in atoms), key=len)
        reach = len(atoms) + _APART
        return any(
            all(_any_within(self._atom_places[atom], place - reach, place + reach) for atom in atoms)
            for place in rarest[:_MAX_RAREST]
        )


def _any_within(places: Sequence[int], first: int, last: int) -> bool:
    at = bisect_left(places, first)
    return at < len(places) and places[at] <= last


def _gives_away(index: TaskIndex, tokens: Sequence[str]) -> bool:
    """Return True if a content has several addresses or accounts from items the user did not name."""
    unsaid = {token for token in tokens if looks_literal(token) and token not in index.words.token_places}
    return sum(_is_listed(index, token) for token in unsaid) >= _SEVERAL


def _is_listed(index: TaskIndex, token: str) -> bool:
    found = [
        index.is_bound(place, value, picks=True)
        for place, result in enumerate(index.results)
        for value in result.sources.get(token, ())
        if value.kind != "f"
    ]
    return bool(found) and not any(found)


def _positions(tokens: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        places.setdefault(token, []).append(place)
    return places


def _asked_for(index: TaskIndex, wanted: list[str], field: str) -> bool:
    if index.words.hold_tokens(wanted):
        return True
    names = telling(folding.atoms_of(folding.fold(field)))
    return bool(names) and all(name in index.words.atom_places for name in names)


def _is_dictated(index: TaskIndex, tokens: list[str], *, pointed: bool = False, kept: Collection[str] = ()) -> bool:
    """Return True if a content occurs in free text, verbatim or with words changed.

    Unless ``pointed``, only text that the user did not point to counts.
    """
    wanted = set(triples(tokens))
    least = _FEW if len(wanted) <= _SHORT else _FEW + 1
    return any(
        held >= max(least, (_SHARE if size <= _LONG else _LONG_SHARE) * len(wanted))
        for held, size in index.held_elsewhere(wanted, pointed=pointed, kept=kept)
    )


def _is_from_text(index: TaskIndex, tokens: list[str]) -> bool:
    """Return True if a content, single words excepted, is from a tool's output and not from the user's words."""
    tells = len(tokens) > 1 or any(map(str.isdigit, "".join(tokens)))
    if not tells or index.words.hold_tokens(tokens):
        return False
    norm, wanted = " ".join(tokens), prints(tokens)
    if any(norm in result.by_norm or result.first_with(wanted, _NO_ITEMS) is not None for result in index.results):
        return True
    return len(tokens) >= _DICTATED and _is_dictated(index, tokens, pointed=True)
