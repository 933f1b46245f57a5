"""Whether the user's words leave it to a place, or to somebody else, what is to be done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from phylactery_riskgate.domain.tasks.languages import (
    BEFORE_SAYING,
    DELEGATING,
    FIRST_PERSON,
    FROM,
    IN,
    OWN,
    PRONOUNS,
    SMALL,
    WE_SAY,
    WHAT,
    WITH,
)
from phylactery_riskgate.domain.tasks.sentences import Sentence, sentences, stem
from phylactery_riskgate.domain.tasks.words import Words

_GAP: Final = 10
"""Words between a verb and what it points at."""
_NO_PLACE: Final = (SMALL | WHAT) - (FROM | IN | WITH | {"on", "por"})
"""Words that name no place from which something is told."""


def delegated(words: Words) -> bool:
    """Says whether the user pointed at a place that tells what to do."""
    return any(
        _delegates(sentence, place, objects)
        for sentence in sentences(words)
        for verbs, objects in _DELEGATING
        for verb in verbs
        for place in sentence.places.get(verb, ())
    )


def _delegates(sentence: Sentence, place: int, objects: frozenset[str]) -> bool:
    """Says whether a verb has an object near it; "do not forget" and "the following tasks" point nowhere."""
    told = _told(sentence, place, objects)
    if told < 0 or sentence.denies(place) or _is_told_here(sentence, place, told):
        return False
    near = sentence.atoms[place : place + 1 + _GAP]
    return OWN.isdisjoint(near) and PRONOUNS.isdisjoint(near[1:2])


def _told(sentence: Sentence, place: int, objects: frozenset[str]) -> int:
    near = sentence.stems[place + 1 : place + 1 + _GAP]
    return next((at for at, one in enumerate(near, place + 1) if one in objects), -1)


def announces(sentence: Sentence, place: int) -> bool:
    """Says whether a verb only says that the user is about to say what to do: do what I tell you."""
    return any(
        sentence.stems[place] in verbs and _is_told_here(sentence, place, _told(sentence, place, objects))
        for verbs, objects in _DELEGATING
    )


def _is_told_here(sentence: Sentence, place: int, told: int) -> bool:
    """Says whether the user tells it themselves and names no place: what I tell you, but not what I said in notes."""
    if told < 0:
        return False
    teller = told - 1
    while teller > place and sentence.atoms[teller] in BEFORE_SAYING:
        teller -= 1
    ours = sentence.atoms[told] in WE_SAY and sentence.atoms[teller] == "que"
    # Right behind the verb it asks: what do I have to do?
    if not ours and (sentence.atoms[teller] not in FIRST_PERSON or teller == place + 1):
        return False
    end = min((clause for clause in sentence.clauses if clause > told), default=len(sentence.atoms))
    return _NO_PLACE.issuperset((*sentence.atoms[place + 1 : teller], *sentence.atoms[told + 1 : end]))


def _stems(written: str) -> frozenset[str]:
    return frozenset(stem(word) for word in written.split("|"))


def _delegating() -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    for pattern in DELEGATING:
        verbs, _, objects = pattern.partition(" * ")
        yield tuple(sorted(_stems(verbs))), _stems(objects)


_DELEGATING: Final = tuple(_delegating())
