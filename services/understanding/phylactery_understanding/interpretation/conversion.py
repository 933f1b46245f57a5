"""Conversion of an interpreted ask to the grammar's terms: a label for each token of its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from phylactery_understanding.interpretation.model import MEANINGS, InterpretedAsk, Span, covers
from phylactery_understanding.interpretation.scope import clause_numbers, sentence_numbers
from phylactery_understanding.language.lexicon import Verb
from phylactery_understanding.language.numbers import readings
from phylactery_understanding.language.text import STOPS, Kind, Token
from phylactery_understanding.language.times import Feature, Times, read_times, times_of
from phylactery_understanding.language.vocabulary import word_map, word_set
from phylactery_understanding.requests.model import Ask, Label, Request

_HOURS: Final = 25
_DAYS: Final = 31
_FIRSTS: Final = word_map("first_days")
_EVERY: Final = word_set("each")
_MONTHS: Final = word_set("month")
_ALL_DAY: Final = tuple(sorted(word_set("all_day")))
OWNING: Final = word_set("owning")


def to_grammar(ask: InterpretedAsk, request: Request, taken: Sequence[Span], newest: int = 0) -> Ask:
    """Convert an ask to the grammar's terms: a label for each token of its sentences."""
    tokens = [one for one in request.tokens if one.kind is not Kind.BREAK]
    sentences = sentence_numbers(request.tokens)
    by_token = {id(one): number for one, number in zip(request.tokens, sentences, strict=True)}
    late = {id(one) for one in tokens if newest and one.start >= newest}
    mine = {by_token[id(one)] for one in tokens if id(one) in late or any(covers(span, one) for span in ask.spans)}
    said = [one for one in tokens if not mine or by_token[id(one)] in mine]
    everywhere = read_times(said).places
    clauses = dict(zip(map(id, request.tokens), clause_numbers(request, sentences), strict=True))
    near = {clauses[id(one)] for one in said if id(one) in late or any(covers(span, one) for span in ask.spans)}
    labels = [
        _label(ask, one, taken, free=at in everywhere or clauses[id(one)] not in near) for at, one in enumerate(said)
    ]
    spoken = [at for at, label in enumerate(labels) if label is Label.TIME]
    told = read_times([said[at] for at in spoken]) if spoken else Times(frozenset(), frozenset())
    more = _also_said([said[at] for at in spoken], told)
    times = replace(told, features=told.features | more, places=frozenset(spoken[at] + 1 for at in told.places))
    verb = Verb(MEANINGS[ask.mode], "", "")
    # The whole text is the verb: it is represented by a token without characters before the text.
    doing = Token("", "", Kind.MARK, said[0].start if said else 0, said[0].start if said else 0)
    return Ask(
        verb, ask.tool, [doing, *said], [Label.VERB, *labels], times, request.lexicon, verbatim=ask.content is not None
    )


def _also_said(tokens: Sequence[Token], told: Times) -> frozenset[Feature]:
    """Return what a quoted time says beyond the usual reading of the words: sunday 9, the 1st of each month.

    A number alone after a day is its hour, and one before "of every month" is the day of it.
    """
    found: set[Feature] = set()
    texts = [one.text for one in tokens]
    for at, text in enumerate(texts):
        alone = at not in told.places and text.isdigit() and int(text) < _HOURS
        behind = texts[at + 1 : at + 4]
        monthly = (
            bool(behind) and behind[0] in OWNING and not _EVERY.isdisjoint(behind) and not _MONTHS.isdisjoint(behind)
        )
        day = _FIRSTS.get(text) or next((int(one) for one in readings(text) if 0 < one == int(one) <= _DAYS), 0)
        if monthly and day:
            found.add(("date", day))
        elif alone and at - 1 in told.places and not any(one[0] == "hour" for one in told.features):
            found.update(times_of(f"{text}:00").features)
    if " ".join(texts).endswith(_ALL_DAY):
        found.add(("hour", 0, 0, True))
    return frozenset(found)


def _label(ask: InterpretedAsk, token: Token, taken: Sequence[Span], *, free: bool) -> Label:
    """Return a token's label by the interpretation. A name or number near it that no slot claims is left over."""
    if any(covers(one.span, token) for one in ask.slots):
        return Label.OBJECT
    if ask.content is not None and covers(ask.content, token):
        return Label.QUOTE if token.kind is Kind.QUOTE else Label.CONTENT
    if any(covers(one, token) for one in ask.times):
        return Label.TIME
    if token.kind in STOPS:
        return Label.MARK
    if free or any(covers(span, token) for span in taken):
        return Label.REASON
    # Composed content has a source: a name that no slot claims may be where it is from.
    return Label.OBJECT if token.kind in {Kind.LITERAL, Kind.NUMBER} and not ask.composed else Label.REASON
