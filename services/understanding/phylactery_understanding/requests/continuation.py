"""Sentences that continue the request before them: its text, a quotation, a part of it, a signature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.text import STOPS, Kind, Token
from phylactery_understanding.language.times import Times, read_times
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.model import Ask, Label
from phylactery_understanding.requests.operators import SPEAKER_WORDS, operator_in

_OF_PARTS: Final = word_set("part_articles")
_THIS: Final = word_set("following")
_THANKS: Final = word_set("thanks")
_PARTS: Final = word_set("parts")
TELLING_MORE: Final = word_set("specifying")


def awaits(ask: Ask, later: Sequence[list[Token]]) -> bool:
    """Return True if the text that an ask calls "this" follows it, on separate lines."""
    if ask.fault is not None or ask.verbatim or ask.before or not later or any(ask.of(Label.CONTENT, Label.QUOTE)):
        return False
    named = not _THIS.isdisjoint(one.text for one in ask.tokens)
    return named and any(one.kind is Kind.BREAK for one in later[0][:1])


def takes_quote(ask: Ask, later: Sequence[list[Token]]) -> bool:
    """Use a quotation that begins the next sentence as the text that an ask announces as following."""
    first = [one for one in (later[0] if later else ()) if one.kind is not Kind.BREAK][:1]
    if ask.fault is not None or not first or first[0].kind is not Kind.QUOTE or any(ask.of(Label.QUOTE)):
        return False
    if _THIS.isdisjoint(one.text for one in ask.tokens):
        return False
    if any(one.kind not in STOPS and one.text not in _THANKS for one in later[0] if one is not first[0]):
        return False
    ask.tokens.extend(later[0])
    ask.labels.extend(
        Label.QUOTE if one is first[0] else Label.FILLER if one.kind is Kind.WORD else Label.MARK for one in later[0]
    )
    return True


def take_rest(ask: Ask, later: Sequence[list[Token]], *, at_line: bool) -> int:
    """Use the text after a colon as content, up to the end of the line, or of the message if it begins a line."""
    count = 0
    for sentence in later:
        if any(one.kind is Kind.BREAK for one in sentence[:1]) and not at_line:
            break
        ask.tokens.extend(sentence)
        ask.labels.extend(Label.CONTENT if one.kind is not Kind.BREAK else Label.MARK for one in sentence)
        count += 1
    return count


def is_told(words: Lexicon, clause: Sequence[Token], verb: int) -> bool:
    """Return True if a line names its speaker: Bob (manager): denied."""
    colon = next((at for at, one in enumerate(clause[:verb]) if one.text == ":"), 0)
    texts = [one.text for one in clause]
    at = 0
    while at < colon and (size := words.longest(("please", "greet", "article"), texts, at)):
        at += size
    return at < colon and verb > SPEAKER_WORDS


def is_meant(words: Lexicon, ask: Ask, clause: Sequence[Token]) -> bool:
    """Return True if a clause after an ask is what it calls "these": only names and things."""
    named = not _THIS.isdisjoint(one.text for one in ask.tokens) and not any(ask.of(Label.CONTENT, Label.QUOTE))
    return (
        named
        and any(one.text == "," for one in clause)
        and ask.fault is None
        and operator_in(words, clause, 0) is None
        and not any(one.kind is Kind.WORD and words.verb(one.text) for one in clause)
    )


def is_signature(words: Lexicon, clause: Sequence[Token], sentence: Sequence[Token]) -> bool:
    """Return True if a line after a request is only a name, an address or a number."""
    return all(
        one.kind in {Kind.LITERAL, Kind.NUMBER, Kind.MARK, Kind.BREAK}
        or (one.raw[:1].isupper() and not words.verb(one.text) and not words.holds("negation", one.text))
        for one in clause
    ) and any(one.kind is Kind.BREAK for one in sentence[:1])


def tells_more(texts: Sequence[str]) -> bool:
    """Return True if a sentence specifies the request before it: its title should be …, it is 20 euros."""
    if texts[0] in _PARTS and texts[1:2] in (["is"], ["are"], ["es"], ["son"], [":"]):
        return True
    return texts[0] in TELLING_MORE or (texts[0] in _OF_PARTS and not _PARTS.isdisjoint(texts[1:5]))


def extend(words: Lexicon, ask: Ask, clause: list[Token]) -> None:
    """Add to a request what a sentence after it specifies: it is 20 euros."""
    labels = [Label.FILLER, *[Label.OBJECT] * (len(clause) - 1)]
    ask.fault = operator_in(words, [one for one in clause if one.text not in {"should", "deberia"}], 1)
    size, more = len(ask.tokens), read_times(clause)
    ask.times = Times(ask.times.features | more.features, ask.times.places | {size + at for at in more.places})
    ask.tokens.extend(clause)
    ask.labels.extend(Label.MARK if one.kind is Kind.MARK else label for one, label in zip(clause, labels, strict=True))
