"""Comparison of a call with the valid asks of an interpretation."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from phylactery_understanding.calls import DEFERRING, Match, used_up
from phylactery_understanding.content import free_content, stated
from phylactery_understanding.interpretation.agreement import (
    contents_of,
    described_name,
    heard_otherwise,
    is_asked_now,
    is_computed,
    left_of_heard,
    unbound,
)
from phylactery_understanding.interpretation.check import CheckedAsk
from phylactery_understanding.interpretation.dates import EARLIER, day_of, due_day, is_of_date, shifted, without_day
from phylactery_understanding.interpretation.model import INTERPRETER, InterpretedAsk, Span, covers, is_covered
from phylactery_understanding.interpretation.scope import KEEPING, STOPS, sentence_numbers
from phylactery_understanding.language.numbers import readings
from phylactery_understanding.language.text import STEM, Kind, Token, fold, is_file_name, tokenize
from phylactery_understanding.language.times import read_times, times_of
from phylactery_understanding.proposal import NOTHING, Argument, Call, Level, Understanding, plain_values
from phylactery_understanding.request import Fault, Label, Request

_AROUND: Final = (Label.VERB, Label.GOAL, Label.ARTICLE, Label.FILLER, Label.TIME)
_QUOTES: Final = tuple("\"'“«„`‘")
_TOLD_SHARE: Final = 0.35
_SEVERAL: Final = 3
"""The number, as _TOLD is the share, of a sentence's words by which a text tells what it says."""


def understand_interpreted(
    asks: Sequence[CheckedAsk],
    request: Request,
    call: Call,
    used: Mapping[int, int] = MappingProxyType({}),
    done: Collection[int] = (),
) -> Understanding:
    """Return how far the valid asks of an interpretation yield a call; ``used`` and ``done`` as in understand."""
    best = NOTHING
    for place, one in enumerate(asks):
        if one.ask.tool == call.tool and _is_content(one, request, call):
            found = replace(_by(one, request, call), index=place)
            best = max(best, used_up(found, used, done), key=lambda other: other.level)
    return best


def _by(one: CheckedAsk, request: Request, call: Call) -> Understanding:
    said = tuple(span.text for span in one.ask.spans)[:12]
    asked = not one.newest or is_asked_now(one, request, call)
    fault = (
        (None if asked else Fault("unasked", ""))
        or unbound(one.ask, call)
        or heard_otherwise(one.ask, request, call)
        or left_of_heard(one.ask, request, call)
        or described_name(one.ask, request, call)
        or _Interpreted(request, one, call).fault()
    )
    if fault is None and one.half:
        fault = Fault("pasted", "")
    if fault is None:
        return Understanding(Level.CLEAR, one.ask.tool, said, None, _quota(one), INTERPRETER)
    return Understanding(Level.HALF, one.ask.tool, said, fault, 1, INTERPRETER)


class _Interpreted(Match):
    """The comparison of an interpreted ask with a call: content left open must not come from an untrusted text."""

    def __init__(self, request: Request, one: CheckedAsk, call: Call) -> None:
        super().__init__(request, one.parsed, call)
        self._one = one.ask
        self._shifts = False
        if one.ask.quantity != 1:  # slot words belong to the other calls
            spans = [slot.span for slot in one.ask.slots]
            self._used.update(
                at for at, token in enumerate(one.parsed.tokens) if any(covers(span, token) for span in spans)
            )

    def _contents(self, texts: Sequence[Argument]) -> Fault | None:
        said = [one for one in self._call.arguments if one.role == "content" and not one.default]
        wanted = self._one.composed or self._one.content is not None
        if said and wanted and not any(str(value).strip() for one in said for value in plain_values(one.value)):
            return Fault("content", "empty")
        values = [str(value) for one in texts for value in plain_values(one.value) if str(value).strip()]
        if not values:
            return None
        if self._one.composed:
            return self._open(values) or free_content(self._undated(values), self._request, self._call.texts)
        if self._one.content is None:
            return Fault("content", texts[0].name)
        if _is_file(self._one.content, self._request.tokens) and not self._one.content.text.startswith(_QUOTES):
            return Fault("content", "file")  # a file name next to the written one is more likely its source
        fault = super()._contents(texts)
        return self._retold(texts, fault) if fault is not None and "remind" in self._call.effects else fault

    def _retold(self, texts: Sequence[Argument], fault: Fault) -> Fault | None:
        """Return the fault of a reminder's text, unless it says what was said as of its own day: tomorrow, at 5."""
        rest = [replace(one, value=without_day(str(one.value), self._ahead())) for one in texts]
        if rest != list(texts):
            dated = [at for at, one in enumerate(self._ask.tokens) if is_of_date(one)]
            self._used.update(dated)
            fault = super()._contents(rest) or Fault("", "")
        if fault.kind and self._one.content is not None and self._one.content.text.startswith(_QUOTES):
            said = tokenize(self._one.content.text[1:-1])
            if stated([str(one.value) for one in rest], said, self._request.lexicon):
                return None
        return fault if fault.kind else None

    def _ahead(self) -> int:
        """Return how many days after the reminder the day is that the words name, -1 if it is not clear."""
        if self._call.day is None:
            return -1
        due = [one.value for one in self._call.arguments if one.role == "date" and isinstance(one.value, str)]
        days = {found for one in due if (found := due_day(times_of(one).features, self._call.day)) is not None}
        outside = [
            one for one in _opened(self._request.tokens) if not any(covers(span, one) for span in self._one.times)
        ]
        event = day_of(read_times(outside).features, self._call.day)
        return (event - next(iter(days))).days if event is not None and len(days) == 1 else -1

    def _undated(self, values: Sequence[str]) -> list[str]:
        """Return contents without the date of the message, or its month: a log entry usually has its date."""
        day = self._call.day.isoformat() if self._call.day is not None else ""
        dated = re.compile(rf"\b{day[:7]}(?:{day[7:]})?(?![-\w])") if day else None
        return [dated.sub(" ", one) if dated is not None else one for one in values]

    def _time(self, dates: Sequence[Argument], repeats: Sequence[Argument]) -> Fault | None:
        fault = super()._time(dates, repeats)
        if fault is None or self._call.day is None:
            return fault
        said = [one for one in self._ask.tokens if any(covers(span, one) for span in self._one.times)]
        outside = [one for one in _opened(self._request.tokens) if one not in said]
        features = shifted(said, self._ask.times.features, read_times(outside).features, self._call.day)
        if not features:
            return fault
        plain, self._ask = self._ask, copy(self._ask)
        self._ask.times = replace(plain.times, features=features)
        self._used.update(
            at for at, one in enumerate(plain.tokens) if any(covers(span, one) for span in self._one.times)
        )
        self._shifts = True
        return super()._time(dates, repeats)

    def _spoken_of(self, dates: Sequence[Argument]) -> str:
        found = super()._spoken_of(dates)
        return "" if self._shifts and found in EARLIER else found  # the day before at 18:00 is not a time until 18:00

    def _framed(self) -> str:
        """Return words outside the ask that qualify it and are not part of the content.

        For a language without a list of such words, the verb that the grammar recognized and its object count as the
        ask's own.
        """
        framed = super()._framed()
        if not framed:
            return ""
        if self._ask.lexicon.phrases["frame"]:
            texts = [str(one) for other in self._call.arguments for one in plain_values(other.value)]
            said = {one.stem for text in texts for one in tokenize(text)}
            idle = self._call.effects & KEEPING and f"{framed} forget" in fold(self._request.text)
            return "" if idle or all(one.stem in said for one in tokenize(framed)) else framed
        own = {id(token) for ask in self._request.asks for token in ask.of(*_AROUND)}
        spans = self._one.spans
        left = (
            one
            for one in self._request.tokens
            if one.kind not in STOPS
            and not any(covers(span, one) for span in spans)
            and id(one) not in own
            and one.stem not in self._call.nouns
            and not self._is_courtesy(one)
            and not any(self._leads(one, span) for span in spans)
        )
        return next((one.raw for one in left), "")

    def _is_frame(self, words: Sequence[Token]) -> bool:
        """Return True if words qualify the request: neither its own verb, nor part of what a text tells."""
        verbs = {
            id(ask.tokens[ask.labels.index(Label.VERB)]) for ask in self._request.asks if ask.form not in DEFERRING
        }
        if len(words) == 1 and id(words[0]) in verbs:
            return False
        tokens = self._request.tokens
        sentences = sentence_numbers(tokens)
        asked = replace(self._one, content=None) if self._one.slots or self._one.times else self._one
        mine = {of for one, of in zip(tokens, sentences, strict=True) if is_covered(asked, one)}
        own = sentences[next(at for at, one in enumerate(tokens) if one is words[0])]
        if own in mine:
            return True
        if len(words) == 1 and self._ask.lexicon.holds("report", words[0].text):
            return False  # what others say qualifies a request only where it is one sentence with it
        told = {one.stem for text in contents_of(self._call) for one in tokenize(text)}
        lexicon = self._ask.lexicon
        said = [
            one
            for one, of in zip(tokens, sentences, strict=True)
            if of == own and one.kind not in STOPS and not lexicon.holds("stop", one.text)
        ]
        hits = sum(one.stem in told for one in said)
        return hits < _SEVERAL or hits < _TOLD_SHARE * len(said)

    def _leads(self, token: Token, span: Span) -> bool:
        """Return True if a word right before a value says what it is: um arquivo a.txt."""
        between = self._request.text[token.stop : span.start]
        return token.stop <= span.start and not between.strip(" :\"'“„«")

    def _accounts_for(self, value: Any, argument: Argument) -> bool:
        if super()._accounts_for(value, argument):
            return True
        if not is_computed(self._one, argument, value, exists=self._call.exists):
            return False
        spans = [one.span for one in self._one.slots if one.argument == argument.name]
        self._used.update(at for at, token in enumerate(self._ask.tokens) if any(covers(one, token) for one in spans))
        return True

    def _open(self, values: Sequence[str]) -> Fault | None:
        """Return why content cannot be left to the model: a memory must not be invented, a text must have been read."""
        request = self._request
        if not self._makes():
            said = [one for one in request.tokens if one.kind is not Kind.BREAK]
            if "remind" in self._call.effects:
                values = [without_day(one, self._ahead()) for one in values]
                if time := self._other_time(values):
                    return Fault("content", time)
            return None if stated(values, said, request.lexicon) else Fault("content", "more")
        if not any(one.control and is_file_name(str(one.value)) for one in self._call.arguments):
            return None
        for one in self._ask.tokens:
            covered = any(covers(span, one) for span in self._one.spans)
            if one.kind is Kind.LITERAL and is_file_name(one.text) and not covered:
                if not self._call.texts.named(one.text):
                    return Fault("content", "unread")
        return None


def _opened(tokens: Sequence[Token]) -> list[Token]:
    """Return words including those in quotations."""
    inner = ([one] if one.kind is not Kind.QUOTE else tokenize(one.raw.strip("\"'“”«»")) for one in tokens)
    return [one for some in inner for one in some if one.kind is not Kind.BREAK]


def _is_file(span: Span, tokens: Sequence[Token]) -> bool:
    """Return True if words are the name of a file and nothing else."""
    said = [one for one in tokens if covers(span, one) and one.kind is not Kind.MARK]
    return len(said) == 1 and said[0].kind is Kind.LITERAL and is_file_name(said[0].text)


def _quota(one: CheckedAsk) -> int:
    """Return the number of calls an ask allows: as claimed, limited by what the words contain."""
    if one.ask.quantity == 0:
        words = one.parsed.lexicon
        return 0 if any(words.holds("universal", token.text) for token in one.parsed.tokens) else 1
    counts = [sum(other.argument == slot.argument for other in one.ask.slots) for slot in one.ask.slots]
    numbers = {int(value) for token in one.parsed.tokens for value in readings(token.text) if value == int(value)}
    return one.ask.quantity if one.ask.quantity in numbers else min(one.ask.quantity, max(counts, default=1))


def _is_content(one: CheckedAsk, request: Request, call: Call) -> bool:
    """Return True if a call's content repeats every operator that may belong to it, with the words around it.

    An operator that a text does not repeat is the person's, and then there is no ask: write done to a.txt when it ends.
    """
    if not one.within:
        return True
    texts = [text for text in contents_of(call) if "remind" not in call.effects]
    said = [[word.text for word in tokenize(text) if word.kind not in STOPS] for text in texts]
    return all(any(_repeats(words, request, one.ask, at, size) for words in said) for at, size, _ in one.within)


def _repeats(words: Sequence[str], request: Request, ask: InterpretedAsk, at: int, size: int) -> bool:
    """Return True if a text has an operator, the content word before it, and those behind it in its clause."""
    tokens, lexicon = request.tokens, request.lexicon
    operator = [one.text for one in tokens[at : at + size]]
    if not any(list(words[place : place + size]) == operator for place in range(len(words))):
        return False
    stems = {one[:STEM] for one in words}
    behind: list[Token] = []
    for one in tokens[at + size :]:
        if one.kind in STOPS or is_covered(ask, one):
            break
        behind.append(one)
    before = next((one for one in reversed(tokens[:at]) if not lexicon.holds("stop", one.text)), None)
    told = [one for one in (before, *behind) if one is not None and not lexicon.holds("stop", one.text)]
    return before is not None and all(one.stem in stems for one in told)
