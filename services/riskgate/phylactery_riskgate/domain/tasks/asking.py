"""How clearly the user's words ask for what a tool does, by the phrases and examples of its catalog entry.

What stands in quotes is a value: it fills a place in a phrase and asks for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from phylactery_riskgate.domain.model import Asks, CatalogTool
from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.delegating import announces
from phylactery_riskgate.domain.tasks.languages import (
    ARTICLES,
    LEFT_OUT,
    OWNING,
    REFERRING,
    SMALL,
)
from phylactery_riskgate.domain.tasks.mood import (
    clause_of,
    is_for_later,
    is_only_spoken_of,
    leaves_out,
    takes_back,
    wants_to_see,
)
from phylactery_riskgate.domain.tasks.placing import is_only_read
from phylactery_riskgate.domain.tasks.sentences import Phrase, Sentence, sentences, stem
from phylactery_riskgate.domain.tasks.words import Words

NOT_ASKED: Final = 0
HALF_ASKED: Final = 1
CLEARLY_ASKED: Final = 2

_GAP, _NEXT = 9, 1
"""Words a * may stand for, and how many may stand between two words of a phrase without it; small ones not counted."""
_REACH: Final = 30
"""Words of any kind between two words of a phrase."""
_ANY: Final = "*"
_THAT: Final = "that"
_LO_QUE: Final = ("lo", "que")
"""What, and no "that": haz lo que digo is no haz que diga."""
_ANSWER: Final = 5
"""Words of an answer to a question."""
_SHOWN: Final = 12
_LEAST_EXAMPLE: Final = 2
_LEAST_LIKE, _LIKE = 3, 0.6
"""Words in common with an example, and how much of it they are."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Asked:
    """How clearly something is asked for, the words that say so, and the tokens at which it is asked for."""

    level: int
    words: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()


@lru_cache(maxsize=4_096)
def _phrases(asks: Asks) -> tuple[Phrase, ...]:
    return tuple(phrase for text in (*asks.phrases_en, *asks.phrases_es) if (phrase := _phrase(text)).stems)


@lru_cache(maxsize=4_096)
def _examples(asks: Asks) -> tuple[frozenset[str], ...]:
    read = (
        frozenset(stem(atom) for atom in folding.atoms_of(folding.fold(text)) if atom not in SMALL)
        for text in (*asks.examples_en, *asks.examples_es)
    )
    return tuple(example for example in read if len(example) >= _LEAST_EXAMPLE)


def _phrase(text: str) -> Phrase:
    first = ""
    stems: list[str] = []
    gaps: list[int] = []
    gap = _NEXT
    for word in text.split():
        if word == _ANY:
            gap = _GAP
            continue
        for atom in folding.atoms_of(folding.fold(word)):
            # What somebody is told stands behind "that"; no article does behind a gap.
            if atom not in ARTICLES or (atom == _THAT and gap == _GAP):
                first = first or atom
                stems.append(stem(atom))
                gaps.append(gap)
                gap = _NEXT
    return Phrase(first, tuple(stems), tuple(gaps))


@lru_cache(maxsize=1_024)
def _by_name(name: str) -> tuple[Phrase, ...]:
    """What a tool is called asks for it half, where the catalog says nothing better: delete_file is delete * file."""
    phrase = _phrase(" * ".join(_CAMEL.sub("_", name).replace("_", " ").replace(".", " ").replace("-", " ").split()))
    return (phrase,) if len(phrase.stems) > 1 else ()


def asked(
    words: Words,
    tool: CatalogTool,
    targets: Sequence[Sequence[str]] = (),
    *,
    named: bool = False,
    goals: Sequence[Sequence[str]] | None = None,
) -> Asked:
    """Says how clearly the words ask for a tool's effect.

    ``targets`` are the atoms of what it would be done to; ``named`` says whether the user named a thing it would be
    done to by something else: the file's name, where a call has its id. ``goals`` are those of the targets it goes to,
    all of them where nothing else is said.
    """
    said = sentences(words)
    phrases = _phrases(tool.asks) or _by_name(tool.name)
    found = _clearly(words, said, tool)
    if found is not None and found.level == CLEARLY_ASKED:
        reached = targets if goals is None else goals
        if any(_is_left_out(said, tool, one, goal=one in reached) for one in targets):
            found = replace(found, level=HALF_ASKED)
    found = found or _half(said, phrases, targets, named=named) or _like(said, tool.asks)
    if found is None and words.doubted is not None:
        # What may be somebody else's asks a person whether it is the user's.
        doubted = asked(words.doubted, tool, targets, named=named, goals=goals)
        return replace(doubted, level=min(doubted.level, HALF_ASKED), starts=())
    return found or Asked(NOT_ASKED)


def _clearly(words: Words, said: Sequence[Sentence], tool: CatalogTool) -> Asked | None:
    asks = [
        _Ask(at, start, stop, _level(words, sentence, tool, start, stop))
        for at, sentence in enumerate(said)
        for start, stop in sorted(_matches(sentence, tool.asks))
    ]
    if not asks:
        return None
    level = max(ask.level for ask in asks)
    if tool.effect != "read":
        level = min(level, _withdrawn(said, tool, asks[-1]))
    counted = [ask for ask in asks if ask.level >= level]
    starts: list[int] = []
    ended = (-1, -1)
    for ask in counted:
        if (ask.at, ask.start) >= ended:
            starts.append(said[ask.at].tokens[ask.start])
        ended = max(ended, (ask.at, ask.stop))
    shown = said[counted[0].at].atoms[counted[0].start : counted[0].stop]
    return Asked(level, shown[:_SHOWN], tuple(starts) if level == CLEARLY_ASKED else ())


class _Ask(NamedTuple):
    """Where a sentence asks, and how clearly."""

    at: int
    start: int
    stop: int
    level: int


def _level(words: Words, sentence: Sentence, tool: CatalogTool, start: int, stop: int) -> int:
    if tool.effect == "read":
        return CLEARLY_ASKED
    earlier = sentence.tokens[start] < words.begins and not _refers_back(words)
    spoken_of = sentence.is_thing(start) or is_only_spoken_of(sentence, start, stop)
    return HALF_ASKED if earlier or spoken_of else CLEARLY_ASKED


def _refers_back(words: Words) -> bool:
    """Says whether the newest words may mean what was asked before: they say so, or are but an answer."""
    newest = words.tokens[words.begins :]
    return len(newest) <= _ANSWER or not REFERRING.isdisjoint(newest)


def _withdrawn(said: Sequence[Sentence], tool: CatalogTool, last: _Ask) -> int:
    """Answers what is left of what was asked for: what is taken back asks a person, what is forbidden nobody."""
    left = CLEARLY_ASKED
    firsts = _verbs(tool.asks)
    named = {one for phrase in _phrases(tool.asks) for one in phrase.stems}
    for at, sentence in enumerate(said):
        later = at > last.at
        if (later and takes_back(sentence)) or wants_to_see(sentence):
            left = min(left, HALF_ASKED)
        for place, one in enumerate(sentence.stems):
            if one not in firsts:
                continue
            if is_for_later(sentence.atoms[clause_of(sentence, place) : place]):
                left = min(left, HALF_ASKED)
            if (later or (at == last.at and place > last.start)) and sentence.denies(place):
                end = min((clause for clause in sentence.clauses if clause > place), default=len(sentence.atoms))
                tail = zip(sentence.atoms[place + 1 : end], sentence.stems[place + 1 : end], strict=True)
                if all(atom in LEFT_OUT or kind in named for atom, kind in tail):
                    return NOT_ASKED
    return left


def _is_left_out(said: Sequence[Sentence], tool: CatalogTool, target: Sequence[str], *, goal: bool) -> bool:
    """Says whether the words name a target only to leave it out, as whose something is, or, a goal, to have it read."""
    found = [(at, place) for at, sentence in enumerate(said) for place in _places_of(sentence, tuple(target))]
    whom = "principal" in tool.roles.values()
    verbs, things = _verbs(tool.asks), nouns(tool)
    # A number is no name of a thing: a payment of 50.
    read = goal and tool.effect != "read" and not all(map(str.isdigit, target))
    return bool(found) and all(
        leaves_out(said[at], place)
        or said[at].denies(place)
        or (whom and _is_owner(said[at], place))
        or (read and is_only_read(said, at, place, verbs, things))
        for at, place in found
    )


@lru_cache(maxsize=1_024)
def _verbs(asks: Asks) -> frozenset[str]:
    return frozenset(phrase.stems[0] for phrase in _phrases(asks))


def _places_of(sentence: Sentence, target: tuple[str, ...]) -> Iterator[int]:
    if not target:
        return
    yield from (one.place for one in sentence.values if set(target) <= set(one.atoms))
    size = len(target)
    yield from (
        place for place in sentence.places.get(stem(target[0]), ()) if sentence.atoms[place : place + size] == target
    )


def _is_owner(sentence: Sentence, place: int) -> bool:
    """Says whether an address tells whose something is, beside another that tells to whom it goes."""
    literals = [one.place for one in sentence.values if one.literal]
    owners = [one for one in literals if one > 0 and sentence.atoms[one - 1] in OWNING]
    return place in owners and len(owners) < len(literals)


def _matches(sentence: Sentence, asks: Asks) -> Iterator[tuple[int, int]]:
    verbs = _verbs(asks)
    for phrase in _phrases(asks):
        yield from _places(phrase, sentence, verbs)
    for example in _examples(asks):
        if example <= sentence.places.keys() and not sentence.forbids():
            yield 0, len(sentence.atoms)


def _like(said: Sequence[Sentence], asks: Asks) -> Asked | None:
    """Half asked is also what has most of an example in it."""
    for sentence in said:
        for example in _examples(asks):
            common = example & sentence.places.keys()
            if len(common) >= _LEAST_LIKE and len(common) >= _LIKE * len(example):
                return Asked(HALF_ASKED, _shown(sentence, common))
    return None


def _shown(sentence: Sentence, stems: frozenset[str]) -> tuple[str, ...]:
    shown = (atom for atom, one in zip(sentence.atoms, sentence.stems, strict=True) if one in stems)
    return tuple(islice(shown, _SHOWN))


def _half(
    said: Sequence[Sentence], phrases: Sequence[Phrase], targets: Sequence[Sequence[str]], *, named: bool
) -> Asked | None:
    """Half asked is a phrase out of order, or its verb with what it would be done to."""
    verbs = frozenset(phrase.stems[0] for phrase in phrases)
    for sentence in said:
        for phrase in phrases:
            places = sentence.places.get(phrase.stems[0], ())
            starts = [one for one in places if _is_asked(sentence, one, phrase, verbs) and not sentence.is_thing(one)]
            if not starts:
                continue
            whole = all(one in sentence.places for one in phrase.stems)
            if whole or named or any(target and sentence.said.issuperset(target) for target in targets):
                return Asked(HALF_ASKED, (sentence.atoms[starts[0]],))
    return None


def _is_asked(sentence: Sentence, start: int, phrase: Phrase, verbs: frozenset[str]) -> bool:
    """Says whether a phrase asks from where it starts; of "never send email" the verb before the thing is denied."""
    denied = start > 0 and sentence.stems[start - 1] in verbs and sentence.denies(start - 1)
    return sentence.asks(start, phrase) and not denied and not announces(sentence, start)


def _places(phrase: Phrase, sentence: Sentence, verbs: frozenset[str]) -> Iterator[tuple[int, int]]:
    if any(one not in sentence.places for one in phrase.stems):
        return
    for start in sentence.places[phrase.stems[0]]:
        stop = _follow(phrase, sentence, start)
        if stop is not None and _is_asked(sentence, start, phrase, verbs):
            yield start, stop + 1


def _follow(phrase: Phrase, sentence: Sentence, start: int) -> int | None:
    place = start
    for wanted, gap in zip(phrase.stems[1:], phrase.gaps[1:], strict=True):
        passed = 0
        place += 1
        end = min(place + _REACH, len(sentence.stems))
        while place < end and (sentence.stems[place] != wanted or sentence.atoms[place - 1 : place + 1] == _LO_QUE):
            passed += sentence.atoms[place] not in SMALL
            if passed > gap:
                return None
            place += 1
        if place >= end:
            return None
    return place


def picks(words: Words, tool: CatalogTool) -> bool:
    """Says whether the user picks what the tool works on by an order, as its phrases or its name call it."""
    if not words.picked:
        return False
    named = (one for phrase in (*_phrases(tool.asks), *_by_name(tool.name)) for one in phrase.stems[1:])
    return not {stem(atom) for atom in words.picked if atom not in SMALL}.isdisjoint(named)


def nouns(tool: CatalogTool) -> frozenset[str]:
    """Answers the stems of what a tool's phrases and its name call what it works on."""
    return _nouns(tool.asks, tool.name)


@lru_cache(maxsize=1_024)
def _nouns(asks: Asks, name: str) -> frozenset[str]:
    return frozenset(one for phrase in (*_phrases(asks), *_by_name(name)) for one in phrase.stems)
