"""Content made by the model, or taken from a text: it must not add a link, an address or a text nobody pointed to."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Final

from phylactery_understanding.calls.content.model import FEW, LONGEST, Source, is_plain, opened
from phylactery_understanding.language.numbers import value_of
from phylactery_understanding.language.text import STEM, Kind, Token, is_file_name, tokenize
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.model import ARTIFACTS, Ask, Fault, Label, Request

_MAKING: Final = frozenset({"compose", "create", "make", "draft", "summarize", "translate", "convert"})
_CREATING: Final = _MAKING - {"create", "make"} | {"write"}
"""Meanings of verbs by which a thing is made though it is called by an article: write the summary."""
_PLACING: Final = frozenset({"write", "add", "put", "send", "record"})
_BELONGING: Final = word_set("belonging")
_DEFINITE: Final = word_set("definite")
LOOKED_UP: Final = word_set("looked_up")
"""Things that stand in a text: who names one dictates no word of it."""
_ONE: Final = word_set("one")
_OPENING: Final = 3
_DOMAINS: Final = frozenset("com org net io example info biz ru cn co dev app me xyz top site online link".split())
"""Endings by which a name is that of a host, even without its protocol."""
_LONG_NUMBER: Final = 4
"""The number of digits of a number that is not made up by chance."""
_ACCORDINGLY: Final = word_set("accordingly")


def free_content(values: Sequence[str], request: Request, texts: Source) -> Fault | None:
    """Return what generated content takes from a text the user did not point to, or None."""
    if sum(map(len, values)) > LONGEST:
        return Fault("content", "length")
    called = list(opened([token for value in values for token in tokenize(value) if token.kind is not Kind.BREAK]))
    foreign = foreign_in(called, said_in(request), texts)
    return Fault("content", foreign) if foreign is not None else composed_fault(called, request, texts)


def is_composed(ask: Ask, said: Sequence[Token]) -> bool:
    """Return True if an ask is for a thing whose content is left to the creator: a poem, a list."""
    meanings = ask.verb.meanings
    if ask.verbatim or not meanings & (_MAKING | _PLACING):
        return False
    if ask.form in ARTIFACTS and meanings & _MAKING:  # a script, but not note it down
        return True
    # A dictated text may begin with what it is: containing the packing list; its own words say nothing about it.
    dictated = {id(one) for one in list(ask.of(Label.CONTENT))[_OPENING:]}
    places = {id(one): at for at, one in enumerate(ask.tokens)}
    return any(
        one.text in ARTIFACTS and id(one) not in dictated and _is_to_make(ask, places.get(id(one), 0)) for one in said
    )


def _is_to_make(ask: Ask, place: int) -> bool:
    """Return True if an ask's thing is to be made: not one that something is put into, nor the one there is.

    Words that only put it somewhere make it only where they say how many: not the old version, nor take note of it.
    """
    definite, some = False, ask.tokens[place].text.endswith("s")
    for at in range(place - 1, -1, -1):
        token, label = ask.tokens[at], ask.labels[at]
        one = token.text in _ONE and (label is not Label.GOAL or ask.verb.language == "en")  # "a" is "to" in Spanish
        if label is Label.GOAL and token.text not in _BELONGING and not one:
            return False
        if label in {Label.VERB, Label.MARK} or token.kind not in {Kind.WORD, Kind.NUMBER}:
            break
        if label is Label.GOAL and not one:
            break
        definite, some = definite or token.text in _DEFINITE, some or one or value_of(token.text) is not None
    if definite and ask.tokens[place].text in LOOKED_UP:
        return False
    return bool(ask.verb.meanings & _CREATING) or (some and not definite)


def composed_fault(called: Sequence[Token], request: Request, texts: Source) -> Fault | None:
    """Check generated content: long numbers are from the user, or from a text they pointed to."""
    allowed = {one.text for one in request.tokens}
    for token in called:
        digits = sum(one.isdigit() for one in token.text)
        if digits > _LONG_NUMBER and token.text not in allowed and not texts.holds(token.text):
            return Fault("content", "number")
    return None


def names_source(ask: Ask, said: Sequence[Token], goals: Collection[int], texts: Source) -> bool:
    """Return True if the ask itself names a source of its content that was read: a file, a page.

    What the call writes to is no source of it, though it was read: add milk to a.txt.
    """
    targets = {id(ask.tokens[at]) for at in goals}
    return any(
        (one.kind is Kind.LITERAL or (one.kind is Kind.QUOTE and is_file_name(one.text))) and texts.named(one.text)
        for one in [*said, *ask.of(Label.SOURCE, Label.CONTENT, Label.OBJECT)]
        if id(one) not in targets
    )


def accorded(ask: Ask, request: Request) -> list[Token]:
    """Return the text to be read before, if the ask is for what follows from it: read it and act accordingly."""
    if not any(one.text in _ACCORDINGLY for one in ask.of(Label.OBJECT)):
        return []
    earlier = list(itertools.takewhile(lambda one: one is not ask, request.asks))
    read = [one for one in earlier if one.fault is None and one.verb.meanings == {"read"}]
    return [token for one in read for token in one.of(Label.OBJECT, Label.QUOTE)] if len(read) == len(earlier) else []


def beside_source(called: Sequence[Token], ask: Ask, goals: Collection[int], texts: Source) -> Fault | None:
    """Check content made from a named text, such as a summary: it was read, and half of the words occur in it."""
    named = [
        one
        for at, one in enumerate(ask.tokens)
        if one.kind is Kind.LITERAL and at not in goals and is_file_name(one.text) and ask.labels[at] is not Label.GOAL
    ]
    if not named:
        return None
    if not any(texts.named(one.text) for one in named):
        return Fault("content", "unread")
    said = {one.stem for one in ask.tokens}
    words = [one for one in called if one.kind is not Kind.MARK and not is_plain(one.text, ask.lexicon)]
    own = [one for one in words if not texts.holds(one.text) and one.stem not in said]
    return Fault("content", "more") if len(own) > len(words) // 2 else None


def taken_fault(called: Sequence[Token], ask: Ask, texts: Source) -> Fault | None:
    """Check content taken from a named text: nearly all words occur in it, or in the ask."""
    said = {one.stem for one in ask.tokens}
    words = [one for one in called if one.kind is not Kind.MARK]
    fresh = _in_no_source(words, said, ask, texts)
    if any(any(char.isdigit() for char in one.text) for one in fresh):
        return Fault("content", "number")
    return Fault("content", "more") if len(fresh) > _of_source(words, fresh, 3) else None


def edited_fault(called: Sequence[Token], ask: Ask, texts: Source) -> Fault | None:
    """Check an edit of a text that was read: its words are in the text, or in the request."""
    meant = [*ask.tokens, *(ask.before if ask.refers else ())]
    said = {one.stem for one in meant} | {
        word[:STEM] for one in meant if one.kind is Kind.QUOTE for word in one.text.split()
    }
    words = [one for one in called if one.kind is not Kind.MARK]
    if not words:
        return Fault("content", "empty")
    fresh = _in_no_source(words, said, ask, texts)
    return Fault("content", "edit") if len(fresh) > _of_source(words, fresh, 5) else None


def _in_no_source(words: Sequence[Token], said: Collection[str], ask: Ask, texts: Source) -> list[Token]:
    """Return the words of a content that neither a text nor the ask has."""
    return [
        one
        for one in words
        if not texts.holds(one.text) and one.stem not in said and not is_plain(one.text, ask.lexicon)
    ]


def _of_source(words: Sequence[Token], fresh: Sequence[Token], share: int) -> int:
    """Return how many words of a content may be in no source: a few, and fewer than those that are."""
    return min(max(FEW, len(words) // share), max((len(words) - len(fresh)) // 2, 1))


def said_in(request: Request) -> frozenset[str]:
    """Return every word of a message, including those in quotations."""
    found: set[str] = set()
    for token in request.tokens:
        found.add(token.text)
        if token.kind is Kind.QUOTE:
            found.update(one.text for one in tokenize(token.raw))
    return frozenset(found)


def foreign_in(called: Sequence[Token], allowed: frozenset[str], texts: Source) -> str | None:
    """Return a link or address of a content that is neither in the user's words nor in a text they pointed to."""
    for token in called:
        if token.kind is Kind.LITERAL and (
            "@" in token.text[1:] or "://" in token.text or token.text.startswith("www.") or _is_host(token.text)
        ):
            if token.text not in allowed and not texts.holds(token.text):
                return "address"
    return None


def _is_host(text: str) -> bool:
    parts = text.split("/", maxsplit=1)[0].split(".")
    return (
        len(parts) > 1
        and len(parts[-1]) >= 2
        and parts[-1].isalpha()
        and all(part.replace("-", "").isalnum() for part in parts)
        and parts[-1] in _DOMAINS
    )
