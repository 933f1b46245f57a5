"""Retractions: what a message takes back of earlier requests: everything, some effects on some targets, or nothing.

Only plain statements count: a clause that is nothing but a refusal, one that forbids a verb, one that cancels what it
names, and a message that replaces a value. A question, small talk and the content of a new request do not retract
anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon, lexicon
from phylactery_understanding.language.text import STEM, STOPS, Kind, Token, tokenize, written
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.replies.amendment import corrects
from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.stops import read_stop
from phylactery_understanding.requests.model import Ask, Label, Request
from phylactery_understanding.requests.operators import told_why
from phylactery_understanding.requests.parser import parse


@dataclass(frozen=True, slots=True)
class Forbidden:
    """What one clause retracts: calls with one of the effects, or that act on one of the nouns.

    ``effects`` are the everyday meanings and ``nouns`` are stems. If ``targets`` are named, only calls with these
    targets are meant.
    """

    effects: frozenset[str] = frozenset()
    nouns: frozenset[str] = frozenset()
    targets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Retraction:
    """What a message retracts; ``everything`` means all open requests."""

    everything: bool
    forbidden: tuple[Forbidden, ...] = ()


WEAK: Final = word_set("weak_refusals")
_STRENGTH: Final = word_set("emphasis")
_HARMLESS: Final = tuple(sorted(word_set("harmless")))
_CANCELLING: Final = frozenset({"cancel", "forget", "stop"})
_ANYHOW: Final = frozenset({"make", "put", "record"})
"""Meanings of verbs without an effect: don't do it."""
_CUTS: Final = word_set("cuts")
_ENDS: Final = frozenset(".!?…;")
_PLAIN: Final = ("please", "greet", "article", "stop", "phatic")
_REFUSING: Final = ("retraction", "negation")


def read_retraction(text: str) -> Retraction | None:
    """Return what a message retracts, or None."""
    return retraction_of(parse(text))


def retraction_of(request: Request) -> Retraction | None:
    """Return what a parsed message retracts, or None."""
    words, text = request.lexicon, request.text
    questions = _questions(request.tokens)
    why = {id(request.tokens[at]) for at in told_why(words, request.texts)}
    asked = {id(token) for ask in request.asks for token in ask.tokens}
    alone = not request.asks and sum(one.kind is not Kind.MARK for one in request.tokens) == 1
    everything, forbidden = corrects(request) or (alone and read_answer(text) == "no"), list[Forbidden]()
    for clause in _clauses([one for one in request.tokens if id(one) not in questions], asked):
        everything = everything or _refuses(clause, words)
        found = None if any(id(one) in why for one in clause) else _forbids(clause, words)
        if found is not None:
            everything = everything or not (found.effects or found.nouns)
            forbidden.append(found)
    for ask in request.asks:
        if not ask.tokens or id(ask.tokens[0]) in questions:
            continue
        found = _cancels(ask)
        everything = everything or _refuses(ask.tokens, words) or (found is not None and not found.nouns)
        if found is not None and found.nouns:
            forbidden.append(found)
    everything = everything and read_stop(text) != "denied"  # don't stop
    return Retraction(everything, tuple(dict.fromkeys(forbidden))) if everything or forbidden else None


def forbids(one: Forbidden, effects: frozenset[str], nouns: frozenset[str]) -> bool:
    """Return True if a clause is about a tool's effect, for any target."""
    words = lexicon()
    return not one.nouns.isdisjoint(nouns) or any(
        not one.effects.isdisjoint(words.yields(effect)) for effect in effects
    )


def targets_in(text: str) -> frozenset[str]:
    """Return the names of a value in the form of targets: the whole, and every name and number in it."""
    found = {written(one.raw.strip()) for one in tokenize(text) if one.kind in {Kind.LITERAL, Kind.NUMBER, Kind.QUOTE}}
    return frozenset(found | {written(text.strip())})


def _questions(tokens: Sequence[Token]) -> set[int]:
    """Return the tokens of interrogative sentences."""
    found, sentence = set[int](), list[Token]()
    for token in tokens:
        sentence.append(token)
        if token.text in _ENDS or token.kind is Kind.BREAK:
            if token.text == "?":
                found.update(map(id, sentence))
            sentence = []
    return found


def _clauses(tokens: Sequence[Token], asked: set[int]) -> Iterator[list[Token]]:
    """Split the tokens outside of asks where a clause may end."""
    clause: list[Token] = []
    for token in tokens:
        cuts = token.kind in STOPS or token.text in _CUTS
        if not cuts and id(token) not in asked:
            clause.append(token)
        elif clause:
            yield clause
            clause = []
    if clause:
        yield clause


def _refuses(clause: Sequence[Token], words: Lexicon) -> bool:
    """Return True if a clause is nothing but a refusal."""
    texts = [one.text for one in clause if one.kind not in STOPS]
    if " ".join(texts) in _HARMLESS:
        return False
    place, refusals = 0, 0
    while place < len(texts):
        refusal = words.longest(_REFUSING, texts, place)
        plain = words.longest(_PLAIN, texts, place)
        if refusal and refusal >= plain:
            refusals += " ".join(texts[place : place + refusal]) not in WEAK
            place += refusal
        elif plain or texts[place] in _STRENGTH:
            place += max(plain, 1)
        else:
            return False
    return bool(refusals)


def _forbids(clause: Sequence[Token], words: Lexicon) -> Forbidden | None:
    """Return what a clause forbids that consists of a negation and a verb."""
    texts = [one.text for one in clause]
    if " ".join(texts).startswith(_HARMLESS):
        return None
    place, negated = 0, False
    while place < len(texts):
        polite = words.match("polite", texts, place)
        refusal = words.longest(_REFUSING, texts, place)
        if refusal and refusal >= polite:
            negated = negated or " ".join(texts[place : place + refusal]) not in WEAK
            place += refusal
            continue
        if polite and not negated and refusal:
            return None  # don't forget to …
        verbs = words.verb(texts[place]) if negated else ()
        if verbs:
            meanings = frozenset(meaning for verb in verbs for meaning in verb.meanings)
            return _forbidden(meanings, clause[place + 1 :], words)
        plain = max(polite, words.longest(_PLAIN, texts, place))
        if not plain and texts[place] not in _STRENGTH:
            return None
        place += max(plain, 1)
    return None


def _forbidden(meanings: frozenset[str], rest: Sequence[Token], words: Lexicon) -> Forbidden | None:
    targets = _targets(rest)
    if meanings <= _CANCELLING:
        return None  # don't cancel it
    if not meanings.isdisjoint(_ANYHOW) and not targets and all(words.holds_any(_PLAIN, one.text) for one in rest):
        return Forbidden()
    return Forbidden(effects=meanings, targets=targets)


def _cancels(ask: Ask) -> Forbidden | None:
    """Return what an ask to cancel, forget or stop retracts; without a noun it is everything."""
    if ask.verb.meanings.isdisjoint(_CANCELLING):
        return None
    named = [one for one in ask.of(Label.OBJECT, Label.CONTENT, Label.SOURCE, Label.QUOTE) if one.kind is not Kind.MARK]
    nouns = frozenset(one.text[:STEM] for one in named if one.kind is Kind.WORD)
    return Forbidden(nouns=nouns, targets=_targets(named)) if nouns or not named else None


def _targets(tokens: Sequence[Token]) -> frozenset[str]:
    named = (one for one in tokens if one.kind in {Kind.LITERAL, Kind.NUMBER, Kind.QUOTE})
    return frozenset(written(one.raw.strip()) for one in named)
