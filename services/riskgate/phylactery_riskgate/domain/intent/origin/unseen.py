"""Signals that a call would write over what the model was not shown: a masked value, or a part that was left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from phylactery_chassis.inspection import holds_mask, left_out
from phylactery_understanding.calls.match import MODE_FLAGS

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CUT_SHORT, MASKED
from phylactery_riskgate.domain.intent.origin.signals import Signal
from phylactery_riskgate.domain.model import BoundCall, CatalogTool


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
    if over or any(mark not in said for mark in marks):
        yield 1, CUT_SHORT


def _are_said(index: TaskIndex, texts: Collection[str]) -> bool:
    """Return True if the user wrote all of the texts: what they spell out may replace a file that was not read."""
    return all(index.words.hold_tokens(said) for said in map(folding.tokens, map(folding.fold, texts)) if said)


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
