"""Comparison of a call's content with the content that was asked for.

Literal content must be present, word by word. Described content may be rephrased, but must not add or omit a number, an
address or a negation. Content that was left to the model is free, but must not add a link, an address or anything from
a text the user did not point to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from phylactery_understanding.calls.content.description import content_words, described_fault
from phylactery_understanding.calls.content.model import LONGEST, MASK, Fidelity, Source, opened
from phylactery_understanding.calls.content.quotation import quoted_content
from phylactery_understanding.calls.content.sources import (
    accorded,
    beside_source,
    composed_fault,
    edited_fault,
    foreign_in,
    is_composed,
    names_source,
    said_in,
    taken_fault,
)
from phylactery_understanding.language.text import Kind, tokenize
from phylactery_understanding.requests.model import Ask, Fault, Label, Request

_CONTENT: Final = frozenset(Label) - {Label.VERB, Label.OPERATOR, Label.STATEMENT, Label.MARK}
"""Labels of words that may be content."""


def fidelity(
    ask: Ask,
    goals: Collection[int],
    values: Sequence[str],
    request: Request,
    texts: Source,
    *,
    edits: bool,
    makes: bool,
    nouns: frozenset[str] = frozenset(),
) -> Fidelity:
    """Compare a call's contents with an ask's content; ``goals`` are the tokens that other arguments used."""
    if sum(map(len, values)) > LONGEST:
        return Fidelity(Fault("content", "length"), frozenset())
    masked = sum(len(MASK.findall(value)) for value in values)
    called = [token for value in values for token in tokenize(MASK.sub(" ", value)) if token.kind is not Kind.BREAK]
    called = list(opened(called))
    allowed = said_in(request)
    foreign = foreign_in(called, allowed, texts)
    if foreign is not None:
        return Fidelity(Fault("content", foreign), frozenset())
    places = frozenset(
        at
        for at, (token, label) in enumerate(zip(ask.tokens, ask.labels, strict=True))
        if at not in goals and label in _CONTENT
    )
    quotes = [ask.tokens[at] for at in places if ask.tokens[at].kind is Kind.QUOTE]
    if quotes and not edits:
        return quoted_content(quotes, values, ask, places)
    said = [ask.tokens[at] for at in sorted(places) if ask.tokens[at].kind is not Kind.QUOTE]
    if edits:
        return Fidelity(edited_fault(called, ask, texts), places)
    previous = ask.previous
    if makes and (is_composed(ask, said) or (previous is not None and is_composed(previous, previous.tokens))):
        beside = beside_source(called, ask, goals, texts)
        return Fidelity(beside or composed_fault(called, request, texts), places)
    if makes and texts.some and names_source(ask, [*said, *accorded(ask, request)], goals, texts):
        return Fidelity(taken_fault(called, ask, texts), places)
    refers = ask.refers or (ask.before and not list(ask.of(Label.CONTENT)) and not content_words(said, ask.lexicon))
    if refers:
        said = [*ask.before, *(previous.tokens if previous is not None else ()), *said]
    fault = described_fault(said, called, values, ask, refers=bool(refers), makes=makes, nouns=nouns, masked=masked)
    return Fidelity(fault, places)
