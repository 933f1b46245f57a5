"""In what mood the user speaks of doing something: they ask for it, ask about it, tell of it, or take it back.

What is only spoken of is half asked for at most: it asks a person, and never runs unasked.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Protocol

from phylactery_riskgate.domain.tasks.languages import (
    ADVISING,
    ASKING_HOW,
    BEFOREHAND,
    CONDITIONS,
    CONFIRMING,
    EXCEPTING,
    EXCEPTIONS,
    FORGETTING,
    NEGATIONS,
    OBLIGED_THEN,
    POLITE,
    PREPOSITIONS,
    REMINDING,
    RETRACTIONS,
    RETRACTS,
    SMALL,
    STATING,
    TELLING,
    THEN,
    TRANSLATING,
    WHO_KNOWS,
    WONDERING,
)

_NEAR: Final = 4
_OPENING: Final = 3
_SHORT: Final = 12
_PAIR: Final = 2
_ANYBODY: Final = frozenset({"i", "we", "you", "one", "yo"})
_TOPICS: Final = frozenset({"about", "sobre", "how"})


class Said(Protocol):
    """A sentence: its words, and where what follows a pause begins."""

    @property
    def atoms(self) -> tuple[str, ...]:
        """The words."""

    @property
    def clauses(self) -> tuple[int, ...]:
        """Where a clause begins."""


def clause_of(said: Said, place: int) -> int:
    """Answers where the clause of a word begins."""
    return max((start for start in said.clauses if start <= place), default=0)


def is_only_spoken_of(said: Said, start: int, stop: int) -> bool:
    """Says whether a phrase is no request where it stands: a question about it, a condition, a tale, a topic."""
    first = clause_of(said, start)
    before = said.atoms[first:start]
    translated = first > 0 and not TRANSLATING.isdisjoint(said.atoms[: min(_OPENING, first)])
    return (
        (translated and not _is_next(before))
        or _is_question(before)
        or _is_told(before)
        or is_for_later(before)
        or _is_topic(said.atoms[start + 1 : stop])
    )


def _is_next(before: Sequence[str]) -> bool:
    """Says whether what follows goes on with something else: and, then, y luego."""
    return not THEN.isdisjoint(before[-_PAIR:])


def _is_question(before: Sequence[str]) -> bool:
    opening = list(before)
    while opening and opening[0] in POLITE:
        del opening[0]
    if not opening:
        return False
    if opening[0] in WONDERING or tuple(opening[:_PAIR]) in ADVISING:
        return True
    own = not _ANYBODY.isdisjoint(opening[1:_OPENING])
    if opening[0] in ASKING_HOW | WHO_KNOWS and (own or not _is_next(before)):
        return True
    return any(
        (atom in WHO_KNOWS or (atom in ASKING_HOW and not TELLING.isdisjoint(opening[max(at - _PAIR, 0) : at])))
        and not _is_next(opening[at + 1 :])
        for at, atom in enumerate(opening)
    )


def _is_told(before: Sequence[str]) -> bool:
    """Says whether somebody does, did or is to remember doing it: we send, I had to delete, if I delete."""
    if not before:
        return False
    if before[-1] in STATING | CONDITIONS or tuple(before[-_PAIR:]) in OBLIGED_THEN:
        return True
    return (before[-1] in _ANYBODY and before[-2:-1] and before[-2] in CONDITIONS) or not REMINDING.isdisjoint(
        before[-_OPENING:]
    )


def is_for_later(before: Sequence[str]) -> bool:
    """Says whether the words before a verb put something else before it: before you send it, antes de enviarlo."""
    return not BEFOREHAND.isdisjoint(before[-_NEAR:])


def _is_topic(inside: Sequence[str]) -> bool:
    """Says whether a phrase ends in what somebody is to write about: a poem about how we send email."""
    if len(inside) < _PAIR or inside[-1] in SMALL or inside[-2] in PREPOSITIONS:
        return False
    return not _TOPICS.isdisjoint(inside[:-1])


def wants_to_see(said: Said) -> bool:
    """Says whether the user wants to be asked first."""
    text = f" {' '.join(said.atoms)} "
    return any(f" {wish} " in text for wish in CONFIRMING)


def takes_back(said: Said) -> bool:
    """Says whether a sentence takes back what was said before it, and says nothing else: actually, don't."""
    if len(said.atoms) > _SHORT or not RETRACTIONS.issuperset(said.atoms):
        return False
    denied = not (NEGATIONS | {"don", "no"}).isdisjoint(said.atoms)
    return not RETRACTS.isdisjoint(said.atoms) and not (denied and not FORGETTING.isdisjoint(said.atoms))


def leaves_out(said: Said, place: int) -> bool:
    """Says whether what stands at a place is what the user leaves out: all but this, not that."""
    before = said.atoms[clause_of(said, place) : place]
    if not EXCEPTING.isdisjoint(before):
        return True
    if any(pair in EXCEPTIONS for pair in pairwise(before)):
        return True
    near = [atom for atom in before[-_NEAR:] if atom not in SMALL or atom == "no"]
    return near[-1:] != [] and near[-1] in NEGATIONS | {"no", "ni", "nor"}
