"""Signals that a call would lose what the model was not shown: a masked value, or a part that was left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from phylactery_chassis.inspection import holds_mask, left_out
from phylactery_understanding.calls.match import MODE_FLAGS

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CUT_SHORT, MASKED
from phylactery_riskgate.domain.intent.origin.prints import token_prints, triples
from phylactery_riskgate.domain.intent.origin.signals import Signal
from phylactery_riskgate.domain.intent.reading import written_size
from phylactery_riskgate.domain.model import BoundCall, CatalogTool

_PASSAGE: Final = 100
"""The number of triples of a text that is a copy of a passage, and not a quotation of some lines."""
_MUCH, _ALL, _FEWEST = 0.5, 0.98, 6
"""The shares of a text's prints that are much of it and all of it, and the fewest prints that tell."""


def unseen_signals(
    index: TaskIndex,
    tool: CatalogTool,
    bound: BoundCall,
    replaced: Collection[str],
    contents: Collection[str],
    *,
    asked: bool,
) -> Iterator[Signal]:
    """Return the signals in all of the arguments of a call that changes something, names of fields included.

    ``replaced`` are the paths and objects that the ``contents`` of the call are written to; ``asked`` says that the
    user's words clearly ask for the call.
    """
    if tool.effect == "read":
        return
    texts = list(_texts(bound.arguments))
    if holds_mask(texts, index.hidden):
        yield 1, MASKED
    marks = left_out(texts)
    said = left_out(index.messages) if marks else ()
    adds = any(bound.arguments.get(flag) is True for flag in MODE_FLAGS)
    over = not adds and (
        not index.seen_in_part.isdisjoint(map(folding.last_token, replaced))
        or (any(map(index.is_unread, replaced)) and not (asked and _are_said(index, contents)))
    )
    if over or any(mark not in said for mark in marks) or (replaced and _is_part(index, contents)):
        yield 1, CUT_SHORT


def _are_said(index: TaskIndex, texts: Collection[str]) -> bool:
    """Return True if the user wrote all of the texts: what they spell out may replace a file that was not read."""
    return all(index.words.hold_tokens(said) for said in map(folding.tokens, map(folding.fold, texts)) if said)


def _is_part(index: TaskIndex, contents: Collection[str]) -> bool:
    """Return True if a text repeats much, but not all, of what the model was shown in part: the copy lacks the rest."""
    partial = [result for result in index.results if result.shown_in_part]
    if not partial:
        return False
    text = "\n".join(contents)
    words, size = folding.tokens(folding.fold(text)), written_size(text)
    held, threes = token_prints(words, len(words))[0], triples(words)
    for result in partial:
        shared, of = len(held & result.all_prints), len(result.all_prints)
        # A list of few words repeats their triples, and a part of it may hold all of its prints.
        same = sum(map(result.all_triples.__contains__, threes))
        passage = len(result.all_triples.intersection(threes)) >= _PASSAGE or same >= max(_PASSAGE, _MUCH * len(threes))
        if (passage or shared >= _MUCH * of) and of >= _FEWEST and shared < _ALL * of:
            return True
        if passage and size < _ALL * result.written:
            return True
    return False


def _texts(arguments: Any) -> Iterator[str]:
    waiting = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed([part for pair in value.items() for part in pair]))
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, str):
            yield value
