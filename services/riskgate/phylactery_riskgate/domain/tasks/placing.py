"""What a value stands in a sentence for: to be read from, or as the place where something goes.

Who asks for a summary of a file names the file, and asks for nothing to be written to it. What can be read both ways is
taken for the reading: the user is asked then, and nothing is blocked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phylactery_riskgate.domain.tasks.languages import (
    ADDING,
    ARTICLES,
    BACK_TO,
    CHANGING,
    FROM,
    GENITIVE,
    HELPING,
    HERE,
    IN,
    INTO,
    MAKING,
    READING,
    SAYING,
    SMALL,
    STANDING,
    THEM,
    THEN,
    WHAT,
    WITH,
)
from phylactery_riskgate.domain.tasks.mood import clause_of
from phylactery_riskgate.domain.tasks.sentences import QUOTE, Sentence, stem

_TO_THEM: Final = ("le", "les")
_DESCRIBING: Final = 2
"""Words of a thing between its article and its name: the first line of."""


def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(stem, words))


_READING, _HELPING, _MAKING = _stems(READING), _stems(HELPING), _stems(MAKING)
_CHANGING, _ADDING = _stems(CHANGING), _stems(ADDING)
_OF_MATTER: Final = FROM | WHAT | {"which", "that", "que", *WITH}


def is_only_read(said: Sequence[Sentence], at: int, place: int, verbs: frozenset[str], things: frozenset[str]) -> bool:
    """Says whether a sentence names a value only to have it read.

    ``at`` is the number of the sentence, ``verbs`` and ``things`` are stems of how a tool is asked for: of its verbs,
    and of all words of its phrases.
    """
    sentence = said[at]
    # Plain words and quotes tell which thing is meant: the reminder of paying the rent.
    plain = not any(one.place == place and not one.quoted for one in sentence.values)
    link = _link(sentence, place, things)
    if plain or link < 0 or _is_meant_again(said[at:], place, verbs):
        return False
    atom = sentence.atoms[link]
    if atom in FROM:
        return _is_of(sentence, link, verbs, things)
    if atom in IN:
        return _is_in(sentence, link, place, verbs, things)
    if _is_what(sentence, link) or atom in INTO:
        return atom not in INTO
    return _has_goal(sentence, place, things, beyond=True) or not _comes_back(said[at:], place)


def _is_meant_again(said: Sequence[Sentence], place: int, verbs: frozenset[str]) -> bool:
    """Says whether a verb of the tool goes to whom a value is of: a mail came from Ann; send them the plan."""
    for number, sentence in enumerate(said):
        for at in range(place + 1 if number == 0 else 0, len(sentence.atoms)):
            if not _is_verb(sentence, at, verbs):
                continue
            if sentence.atoms[at].endswith(_TO_THEM) or not THEM.isdisjoint(sentence.atoms[at + 1 : at + 2]):
                return True
    return False


def _link(said: Sentence, place: int, things: frozenset[str]) -> int:
    """Answers the word that ties a value to the sentence, -1 where none does: of the file notes, a mi amiga Ana."""
    described = 0
    named = False
    for at in range(place - 1, clause_of(said, place) - 1, -1):
        atom = said.atoms[at]
        if atom in ARTICLES and not _is_to(said, at):
            named = True
            continue
        if atom in FROM | IN | INTO or _is_what(said, at) or _reads(said, at):
            return at
        if named or (said.stems[at] not in things and described >= _DESCRIBING):
            return -1
        described += said.stems[at] not in things
    return -1


def _is_to(said: Sentence, at: int) -> bool:
    """Says whether "a" is Spanish: a Ana, a la lista; not a list."""
    after = said.atoms[at + 1 : at + 2]
    return said.atoms[at] == "a" and (after == (QUOTE,) or not ARTICLES.isdisjoint(after))


def _reads(said: Sentence, at: int) -> bool:
    return _is_verb(said, at, _READING) and not said.is_thing(at)


def _is_verb(said: Sentence, at: int, verbs: frozenset[str]) -> bool:
    """Says whether a word is one of some; "del" has the stem of "delete", and is none."""
    return said.stems[at] in verbs and said.atoms[at] not in SMALL


def _is_what(said: Sentence, at: int) -> bool:
    atom = said.atoms[at]
    return atom in WHAT or (atom == "que" and said.atoms[at - 1 : at] == ("lo",))


def _is_of(said: Sentence, at: int, verbs: frozenset[str], things: frozenset[str]) -> bool:
    """Says whether "of" takes from what stands behind it: not in "at the end of", nor in "change the title of"."""
    outer = _link(said, at, things) if said.atoms[at] in GENITIVE else -1
    if outer >= 0 and said.atoms[outer] in INTO:
        return False
    if outer >= 0 and said.atoms[outer] in IN:
        return _is_in(said, outer, at, verbs, things)
    before = range(clause_of(said, at), at)
    changed = max((one for one in before if _is_verb(said, one, _CHANGING)), default=-1)
    return changed < 0 or not (WITH | INTO).isdisjoint(said.atoms[changed + 1 : at])


def _is_in(said: Sentence, at: int, place: int, verbs: frozenset[str], things: frozenset[str]) -> bool:
    """Says whether "in" tells where something stands already: what is in, the words in, look in."""
    if _stands(said, at) or _has_goal(said, place, things, beyond=False):
        return True
    verb = max((one for one in range(at) if _is_verb(said, one, verbs)), default=-1)
    if verb < 0 or _says_what(said, verb, place):
        return False
    if _is_verb(said, verb, _HELPING):
        return True
    return _is_verb(said, verb, _MAKING) and not _OF_MATTER.isdisjoint(said.atoms[verb + 1 : at])


def _says_what(said: Sentence, verb: int, place: int) -> bool:
    """Says whether the user says what is to stand there: in quotes, or behind "saying"."""
    return not SAYING.isdisjoint(said.atoms[verb:]) or any(
        one.place > verb and one.place != place and one.quoted for one in said.values
    )


def _has_goal(said: Sentence, place: int, things: frozenset[str], *, beyond: bool) -> bool:
    """Says whether another value is where it goes; ``beyond`` says whether it may be in what is asked for next."""
    for one in said.values:
        if one.place == place or (not beyond and _goes_on(said, place, one.place)):
            continue
        link = _link(said, one.place, things)
        if link < 0:
            continue
        atom = said.atoms[link]
        if atom in INTO or (atom in IN and link > place and not _stands(said, link)):
            return True
    return False


def _stands(said: Sentence, at: int) -> bool:
    return not STANDING.isdisjoint(said.atoms[max(at - 1, 0) : at])


def _goes_on(said: Sentence, one: int, other: int) -> bool:
    return not THEN.isdisjoint(said.atoms[min(one, other) : max(one, other)])


def _comes_back(said: Sequence[Sentence], place: int) -> bool:
    """Says whether what follows asks for something with what was read: add a line, write it there."""
    for number, sentence in enumerate(said):
        first = place + 1 if number == 0 else 0
        for at in range(first, len(sentence.atoms)):
            back = sentence.atoms[at] in BACK_TO and sentence.atoms[at - 1] in INTO | IN
            if back or sentence.atoms[at] in HERE or _is_verb(sentence, at, _CHANGING | _ADDING):
                return True
    return False
