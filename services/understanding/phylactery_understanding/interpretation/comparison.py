"""Comparison of one interpreted ask with one call."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final

from phylactery_understanding.calls.comparison import Comparison
from phylactery_understanding.calls.framing import DEFERRING, framed, is_courtesy
from phylactery_understanding.calls.proposal import Argument, Call, plain_values
from phylactery_understanding.calls.schedule import time_fault
from phylactery_understanding.interpretation.agreement import (
    contents_of,
    is_computed,
)
from phylactery_understanding.interpretation.check import CheckedAsk
from phylactery_understanding.interpretation.dates import EARLIER, shifted
from phylactery_understanding.interpretation.model import Span, covers, is_covered
from phylactery_understanding.interpretation.scope import KEEPING, sentence_numbers
from phylactery_understanding.interpretation.texts import interpreted_contents_fault, opened
from phylactery_understanding.language.text import STOPS, Token, fold, tokenize
from phylactery_understanding.language.times import read_times
from phylactery_understanding.requests.model import Fault, Label, Request

_AROUND: Final = (Label.VERB, Label.GOAL, Label.ARTICLE, Label.FILLER, Label.TIME)
_TOLD_SHARE: Final = 0.35
_SEVERAL: Final = 3
"""The share and the number of a sentence's words by which a text tells what it says."""


class InterpretedComparison(Comparison):
    """The comparison of an interpreted ask with a call: content left open must not come from an untrusted text."""

    def __init__(self, request: Request, one: CheckedAsk, call: Call) -> None:
        super().__init__(request, one.parsed, call)
        self._one = one.ask
        if one.ask.quantity != 1:  # slot words belong to the other calls
            spans = [slot.span for slot in one.ask.slots]
            self.match.used.update(
                at for at, token in enumerate(one.parsed.tokens) if any(covers(span, token) for span in spans)
            )

    def _contents(self, texts: Sequence[Argument]) -> Fault | None:
        return interpreted_contents_fault(self.match, self._one, texts)

    def _time(self, dates: Sequence[Argument], repeats: Sequence[Argument]) -> Fault | None:
        match, fault = self.match, super()._time(dates, repeats)
        if fault is None or match.call.day is None:
            return fault
        said = [one for one in match.ask.tokens if any(covers(span, one) for span in self._one.times)]
        outside = [one for one in opened(match.request.tokens) if one not in said]
        features = shifted(said, match.ask.times.features, read_times(outside).features, match.call.day)
        if not features:
            return fault
        plain, match.ask = match.ask, copy(match.ask)
        match.ask.times = replace(plain.times, features=features)
        match.used.update(
            at for at, one in enumerate(plain.tokens) if any(covers(span, one) for span in self._one.times)
        )
        # the day before at 18:00 is not a time until 18:00
        return time_fault(match, dates, repeats, ignored=EARLIER)

    def _framed(self) -> str:
        """Return words outside the ask that qualify it and are not part of the content.

        For a language without a list of such words, the verb that the grammar recognized and its object count as the
        ask's own.
        """
        match = self.match
        framing = framed(match, self._is_frame)
        if not framing:
            return ""
        if match.ask.lexicon.phrases["frame"]:
            texts = [str(one) for other in match.call.arguments for one in plain_values(other.value)]
            said = {one.stem for text in texts for one in tokenize(text)}
            idle = match.call.effects & KEEPING and f"{framing} forget" in fold(match.request.text)
            return "" if idle or all(one.stem in said for one in tokenize(framing)) else framing
        own = {id(token) for ask in match.request.asks for token in ask.of(*_AROUND)}
        spans = self._one.spans
        left = (
            one
            for one in match.request.tokens
            if one.kind not in STOPS
            and not any(covers(span, one) for span in spans)
            and id(one) not in own
            and one.stem not in match.call.nouns
            and not is_courtesy(match, one)
            and not any(self._leads(one, span) for span in spans)
        )
        return next((one.raw for one in left), "")

    def _is_frame(self, words: Sequence[Token]) -> bool:
        """Return True if words qualify the request: neither its own verb, nor part of what a text tells."""
        match = self.match
        verbs = {
            id(ask.tokens[ask.labels.index(Label.VERB)]) for ask in match.request.asks if ask.form not in DEFERRING
        }
        if len(words) == 1 and id(words[0]) in verbs:
            return False
        tokens = match.request.tokens
        sentences = sentence_numbers(tokens)
        asked = replace(self._one, content=None) if self._one.slots or self._one.times else self._one
        mine = {of for one, of in zip(tokens, sentences, strict=True) if is_covered(asked, one)}
        own = sentences[next(at for at, one in enumerate(tokens) if one is words[0])]
        if own in mine:
            return True
        if len(words) == 1 and match.ask.lexicon.holds("report", words[0].text):
            return False  # what others say qualifies a request only where it is one sentence with it
        told = {one.stem for text in contents_of(match.call) for one in tokenize(text)}
        lexicon = match.ask.lexicon
        said = [
            one
            for one, of in zip(tokens, sentences, strict=True)
            if of == own and one.kind not in STOPS and not lexicon.holds("stop", one.text)
        ]
        hits = sum(one.stem in told for one in said)
        return hits < _SEVERAL or hits < _TOLD_SHARE * len(said)

    def _leads(self, token: Token, span: Span) -> bool:
        """Return True if a word right before a value says what it is: um arquivo a.txt."""
        between = self.match.request.text[token.stop : span.start]
        return token.stop <= span.start and not between.strip(" :\"'“„«")

    def _accounts_for(self, value: Any, argument: Argument) -> bool:
        if super()._accounts_for(value, argument):
            return True
        match = self.match
        if not is_computed(self._one, argument, value, exists=match.call.exists):
            return False
        spans = [one.span for one in self._one.slots if one.argument == argument.name]
        match.used.update(at for at, token in enumerate(match.ask.tokens) if any(covers(one, token) for one in spans))
        return True
