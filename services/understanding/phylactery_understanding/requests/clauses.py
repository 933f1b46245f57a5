"""Sentences of a message, and the clauses in which another request may begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.text import Kind, Token
from phylactery_understanding.language.times import read_times
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.operators import PAUSES
from phylactery_understanding.requests.verbs import verb_at

SENTENCE_ENDS: Final = frozenset(".!?…;¡¿")
_THEN: Final = word_set("then")
_CONNECTORS: Final = word_set("connectors")
_LONGEST_TIME: Final = 12
"""The number of words of a time that is said before the verb."""


@dataclass(frozen=True, slots=True)
class _Joint:
    """A run of pauses and connectors between two clauses: where it ends, and what it holds."""

    end: int
    pause: bool = False
    then: bool = False


def sentences_of(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Split tokens into sentences; a line break begins one."""
    sentence: list[Token] = []
    for token in tokens:
        if token.kind is Kind.BREAK and sentence:
            yield sentence
            sentence = []
        sentence.append(token)
        if token.kind is Kind.MARK and token.text in SENTENCE_ENDS - {"¡", "¿"}:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def clauses_of(words: Lexicon, said: Sequence[Token]) -> list[list[Token]]:
    """Split a sentence where another request may begin."""
    clauses: list[list[Token]] = [[]]
    place = 0
    asked = False
    verbatim = False
    begins = 0
    joints = _joints(words, said)
    while place < len(said):
        token = said[place]
        joint = joints[place]
        cut = joint.end
        lone = len(clauses[-1]) == 1 and bool(words.verb(clauses[-1][0].text))
        if (
            cut > place
            and not verbatim
            and clauses[-1]
            and not lone
            and not (place - begins <= _LONGEST_TIME and _is_time(said[begins:place]))
            and _begins(words, said, joint, asked=asked)
        ):
            clauses.append([])
            place = begins = cut
            asked = True
            continue
        if not clauses[-1] and verb_at(words, said, place) is not None:
            asked = True
        verbatim = verbatim or (token.text == ":" and asked)
        clauses[-1].append(token)
        place += 1
    return [clause for clause in clauses if clause]


def _is_time(said: Sequence[Token]) -> bool:
    """Return True if words are only a time, so that the words after them belong to the same clause."""
    return read_times(said).places.issuperset(range(len(said)))


def _connects(words: Lexicon, word: str) -> bool:
    """Return True if a word joins two clauses; "i" does in Catalan, unless it is the English pronoun."""
    return word in _CONNECTORS and not (word == "i" and words.holds("article", word))


def _joints(words: Lexicon, said: Sequence[Token]) -> list[_Joint]:
    """Return for each place the joint that begins there; read from the end, so that a long one costs no more."""
    joints: list[_Joint] = []
    after = _Joint(len(said))
    for place in range(len(said) - 1, -1, -1):
        text = said[place].text
        pause = text in PAUSES
        if pause or _connects(words, text):
            after = _Joint(after.end, after.pause or pause, after.then or text in _THEN)
        else:
            after = _Joint(place)
        joints.append(after)
    return joints[::-1]


def _begins(words: Lexicon, said: Sequence[Token], joint: _Joint, *, asked: bool) -> bool:
    found = verb_at(words, said, joint.end, near=True)
    if found is None:
        return False
    verb = words.verb(said[found].text)
    if any(one.joined for one in verb) or (joint.pause and found > joint.end):
        return True
    if asked:
        return True
    return (joint.pause and any(one.language == "en" for one in verb)) or (joint.then and joint.pause)
