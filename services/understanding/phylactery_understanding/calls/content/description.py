"""Described content: it may be rephrased, but must not add or omit a number, an address or a negation."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from phylactery_understanding.calls.content.model import FEW, is_plain
from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.numbers import readings, value_of
from phylactery_understanding.language.text import STEM, STOPS, Kind, Token, is_file_name, tokenize
from phylactery_understanding.language.times import read_times
from phylactery_understanding.language.vocabulary import word_map, word_set
from phylactery_understanding.requests.model import Ask, Fault, Label

_NEGATIONS: Final = word_set("denials")
_BRIEF: Final = 4
_SHORT: Final = 8
"""The length in words of a dictated text of which no word may be omitted."""
_INDIRECT: Final = word_set("indirect")
_SPOKEN: Final = word_map("contractions")
_BEARING: Final = word_set("bearing")
_OPENINGS: Final = tuple(sorted(word_set("question_openings"), key=len, reverse=True))
_PERSONS: Final = word_map("asked_persons")
_ASKED: Final = word_map("asked_verbs")
_SHORT_WORD: Final = 6
_PREFIX: Final = 3
_LIMITING: Final = word_set("limiting")
_ONE: Final = Decimal(1)
_SAID_SHARE: Final = 0.6
_OTHER_SHARE: Final = 0.35


class _Description:
    """A described content, and the words that describe it; ``inner`` are those that were dictated."""

    def __init__(self, said: Sequence[Token], called: Sequence[Token], ask: Ask, *, refers: bool, makes: bool) -> None:
        timely = {id(ask.tokens[at]) for at in ask.times.places}
        previous = ask.previous.tokens if ask.previous is not None else ()
        self._ask, self._said, self._makes, self._refers = ask, said, makes, refers
        self.wanted = [one for one in content_words(said, ask.lexicon) if id(one) not in timely]
        self.found = [one for one in called if one.kind is not Kind.MARK]
        self.told = [one for one in self.found if not is_plain(one.text, ask.lexicon)]
        self._inner = {id(one) for one in ask.of(Label.CONTENT)}
        self.dictated = not refers and bool(self._inner)
        said = [*ask.tokens, *ask.before, *previous]
        if makes and (self.dictated or ask.labels.count(Label.VERB) > 1):  # and write it in a.txt: no text
            said = [one for one, label in zip(ask.tokens, ask.labels, strict=True) if _may_be_said(one, label)]
            said.extend([*ask.before, *previous])
        self._everything = {one.text.lstrip("#") for one in said}

    def changes_number(self) -> bool:
        """Return True if the content has a number that was not said, or lacks a dictated one."""
        said = {one for word in self._everything for one in readings(word)}
        found = {one for token in self.found for one in readings(token.text)}
        added = (one for one in self.found if _is_figure(one) and not readings(one.text) & said)
        lost = (
            one
            for one in self.wanted
            if one.kind is Kind.NUMBER and id(one) in self._inner and _is_figure(one) and not readings(one.text) & found
        )
        if any(not _told_by_time(one, self._ask) for one in added) or (not self._refers and any(True for _ in lost)):
            return True
        # Of words, only one in the place of another: "the rent is due" and "un café" count nothing.
        gone = (one for one in self._ask.of(Label.CONTENT, Label.TIME) if readings(one.text) - {_ONE} - found)
        new = (one for one in self.found if _counts(one) and not readings(one.text) & said)
        return any(True for _ in new) and any(True for _ in gone)

    def denies_otherwise(self) -> bool:
        """Return True if the content denies what was said, or the reverse."""
        return _denials(self._said) % 2 != _denials(self.found) % 2

    def adds(self) -> bool:
        """Return True if the content has more words of its own than a writer needs."""
        fresh = self._fresh()
        brief = self._makes and len(self.told) <= _BRIEF
        return len(fresh) > (0 if self.dictated or brief else _few(self.told)) or any(
            one.kind is Kind.LITERAL and any(char.isdigit() for char in one.text) for one in fresh
        )

    def _fresh(self) -> list[Token]:
        """Return the words of the content that were not said."""
        ask, stems = self._ask, {one[:STEM] for one in self._everything}
        fresh = [
            one
            for one in self.told
            if one.kind is not Kind.NUMBER
            and (one.text.lstrip("#") not in self._everything if one.kind is Kind.LITERAL else one.stem not in stems)
            and value_of(one.text) is None
            and not _is_addressed(one, ask)
        ]
        if inquires(ask):
            fresh = [one for one in fresh if not ask.lexicon.holds("inquiry", one.text)]
        return self._unlike(fresh, self._everything)

    def plain(self, nouns: frozenset[str]) -> list[Token]:
        """Return the words that the content should have."""
        return [
            one
            for one in self.wanted
            if not is_plain(one.text, self._ask.lexicon)
            and one.kind in {Kind.WORD, Kind.LITERAL}
            and one.stem not in nouns
            and (not self.dictated or id(one) in self._inner)
        ]

    def missing(self, plain: Sequence[Token]) -> list[Token]:
        """Return those of some words that the content lacks."""
        have, named = {one.stem for one in self.found}, {one.text for one in self.found}
        gone = [one for one in plain if one.text not in named and (one.kind is Kind.LITERAL or one.stem not in have)]
        return self._unlike(gone, [one.text for one in self.found])

    def _unlike(self, tokens: list[Token], others: Iterable[str]) -> list[Token]:
        """Return the words that are no form of others, where short words are told by their beginning: a reminder."""
        if self._makes:
            return tokens
        begins = {word[:_PREFIX] for word in others if _is_short(word)}
        return [one for one in tokens if not (_is_short(one.text) and one.text[:_PREFIX] in begins)]

    def says_otherwise(self, plain: Sequence[Token], contents: Sequence[str]) -> bool:
        """Return True if a dictated text is turned: another person, direction or order."""
        if not self.dictated:
            return False
        if self._makes:
            ask = self._ask
            if not (_asks_the_same(ask, contents) if inquires(ask) else _turns(self._said, self.found, ask)):
                return True
        ordered = len(plain) > _SHORT or _in_order(plain, self.told)
        return _limits(self._said) != _limits(self.found) or not ordered


def described_fault(
    said: Sequence[Token],
    called: Sequence[Token],
    contents: Sequence[str],
    ask: Ask,
    *,
    refers: bool,
    makes: bool,
    nouns: frozenset[str],
    masked: int,
) -> Fault | None:
    """Compare described content: the same numbers, the same negations, nearly the same words."""
    it = _Description(said, called, ask, refers=refers, makes=makes)
    if it.changes_number():
        return Fault("content", "number")
    if it.denies_otherwise():
        return Fault("content", "negation")
    if it.adds():
        return Fault("content", "more")
    plain = it.plain(nouns)
    missing = it.missing(plain)
    if it.says_otherwise(plain, contents):
        return Fault("content", "other")
    if refers:
        return None if len(missing) < len(plain) else Fault("content", "other")
    exact = (it.dictated and len(plain) <= _SHORT) or (makes and len(plain) <= _BRIEF)
    if len(missing) - masked > max(0 if exact else 1, int(len(plain) * (1 - _SAID_SHARE))):
        return Fault("content", "less")
    if plain and len(missing) == len(plain):
        return Fault("content", "other")
    if not makes and {one.stem for one in it.told} <= {ask.tokens[ask.labels.index(Label.VERB)].stem}:
        return None  # wake me at ten to seven: wake up
    greets = any(is_plain(one.text, ask.lexicon) for one in it.wanted)
    return Fault("content", "unsaid") if it.found and not plain and not greets else None


def _may_be_said(token: Token, label: Label) -> bool:
    """Return True if a dictated text may have a word: not the verb of the ask, nor a file it names beside the text."""
    return label is Label.CONTENT or (label is not Label.VERB and not is_file_name(token.text))


def _is_figure(token: Token) -> bool:
    return token.text[:1].isdigit() and bool(readings(token.text))


def _counts(token: Token) -> bool:
    """Return True for a number in a word, other than one: that may be an article, or stand for a thing."""
    return token.kind is Kind.WORD and value_of(token.text) not in {None, 1}


def stated(values: Sequence[str], said: Sequence[Token], words: Lexicon) -> bool:
    """Return True if contents say nothing beyond what was stated."""
    called = [one for value in values for one in tokenize(value) if one.kind not in STOPS]
    stems = {one.stem for one in said}
    fresh = [one for one in called if one.stem not in stems and not is_plain(one.text, words)]
    digits = {one.text for one in said}
    if any(one.raw[:1].isupper() and one is not called[0] for one in fresh):
        return False  # another name
    if any(any(char.isdigit() for char in one.text) and one.text not in digits for one in called):
        return False
    return len(fresh) <= len(called) // 4 and _denials(said) % 2 == _denials(called) % 2


def inquires(ask: Ask) -> bool:
    """Return True if a question is to be put to a person, in the writer's own words: ask Mina if she has them."""
    asked = {one.text for one in (*ask.of(Label.FILLER), *itertools.islice(ask.of(Label.CONTENT), 1))}
    return "ask" in ask.verb.meanings or not _INDIRECT.isdisjoint(asked)


def _asks_the_same(ask: Ask, values: Sequence[str]) -> bool:
    """Return True if a question is put to the person it is about: whether she has it, do you have it.

    Text around the question, such as a subject, must not mention another person.
    """
    meant = _PERSONS | _ASKED
    wanted = [meant[part] for one in ask.of(Label.CONTENT) for part in one.text.split("'") if part in meant]
    asked = False
    for value in values:
        found = tokenize(value)
        texts = " ".join(_SPOKEN.get(part, part) for one in found for part in one.text.split("'"))
        for opening in _OPENINGS:
            texts = texts.replace(opening, " ")
        have = [_ASKED.get(one, one) for one in texts.split() if one in _ASKED or one in _PERSONS.values()]
        if any(one.text in {"?", "whether", "know", "saber"} for one in found):
            if asked or have != wanted:
                return False
            asked = True
        elif not set(have) <= set(wanted):
            return False
    return asked


def content_words(tokens: Sequence[Token], words: Lexicon) -> list[Token]:
    """Return the words that say something: no times, marks or small words."""
    times = read_times(tokens).places if tokens else frozenset()
    return [
        one
        for at, one in enumerate(tokens)
        if at not in times
        and one.kind is not Kind.MARK
        and not words.holds("stop", one.text)
        and one.kind is not Kind.BREAK
    ]


def _few(told: Sequence[Token]) -> int:
    """Return how many words of a content may be the writer's own."""
    return max(FEW if len(told) > FEW + 2 else 1, int(len(told) * _OTHER_SHARE))


def _is_short(word: str) -> bool:
    """Return True if a word is so short that three letters identify its forms: bajar, baje, in a reminder."""
    return word.isalpha() and len(word) <= _SHORT_WORD


def _is_addressed(token: Token, ask: Ask) -> bool:
    """Return True if a word is the name that an address of the ask begins with: Hi Leo."""
    names = (one.text.lstrip("@") for one in ask.tokens if one.kind is Kind.LITERAL and "@" in one.text)
    return any(name.startswith(token.text) for name in names)


def _limits(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the small words of a text that limit how much of it holds, and when."""
    return frozenset(one.text for one in tokens if one.text in _LIMITING)


def _turns(said: Sequence[Token], found: Sequence[Token], ask: Ask) -> bool:
    """Return True if persons, directions and certainty are as dictated: not I pay you for you pay me, out for in."""
    inner = {id(one) for one in ask.of(Label.CONTENT)}
    wanted, have = _bearing([one for one in said if id(one) in inner]), _bearing(found)
    return any(have[at : at + len(wanted)] == wanted for at in range(len(have) - len(wanted) + 1))


def _bearing(tokens: Sequence[Token]) -> list[str]:
    """Return the small words of a text that can reverse its meaning, in order."""
    parts = (part for one in tokens for part in one.text.split("'"))
    return [_SPOKEN.get(one, one) for one in parts if _SPOKEN.get(one, one) in _BEARING]


def _in_order(said: Sequence[Token], told: Sequence[Token]) -> bool:
    """Return True if the words of a content are in the order in which they were said: who owes whom."""
    places = iter(one.stem for one in told)
    have = {one.stem for one in told}
    return all(one.stem in places for one in said if one.stem in have)


def _told_by_time(token: Token, ask: Ask) -> bool:
    """Return True if a number of a content is an hour in another notation: las 5, 17:00."""
    hours = {feature[1] for feature in ask.times.features if feature[0] in {"hour", "date"}}
    parts = token.text.replace(".", ":").split(":")
    return parts[0].isdigit() and (
        int(parts[0]) in hours or (int(parts[0]) + 12) in hours or (int(parts[0]) - 12) in hours
    )


def _denials(tokens: Sequence[Token]) -> int:
    return sum(one.text in _NEGATIONS for one in tokens)
