"""Comparison of a call with the valid asks of an interpretation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from phylactery_understanding.calls.proposal import NOTHING, Call, Level, Understanding
from phylactery_understanding.calls.understanding import used_up
from phylactery_understanding.interpretation.agreement import (
    denied,
    described_name,
    heard_otherwise,
    is_asked_now,
    left_of_heard,
    unbound,
)
from phylactery_understanding.interpretation.check import CheckedAsk
from phylactery_understanding.interpretation.comparison import InterpretedComparison
from phylactery_understanding.interpretation.model import INTERPRETER
from phylactery_understanding.interpretation.texts import is_content
from phylactery_understanding.language.numbers import readings
from phylactery_understanding.requests.model import Fault, Request

_UNHEARD: Final = frozenset({"unasked", "effect"})
"""Faults of a claim that no word asks for: the words that it quotes ask for nothing now, or for something else."""


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
        if one.ask.tool == call.tool and is_content(one, request, call):
            found = replace(_by(one, request, call), index=place)
            best = max(best, used_up(found, used, done), key=lambda other: other.level)
    return best


def _by(one: CheckedAsk, request: Request, call: Call) -> Understanding:
    said = tuple(span.text for span in one.ask.spans)[:12]
    asked = not one.newest or is_asked_now(one, request, call)
    fault = (
        (None if asked else Fault("unasked", ""))
        or unbound(one.ask, call)
        or denied(request, call)
        or heard_otherwise(one.ask, request, call)
        or left_of_heard(one.ask, request, call)
        or described_name(one.ask, request, call)
        or InterpretedComparison(request, one, call).fault()
    )
    if fault is None and one.half:
        fault = Fault("pasted", "")
    if fault is None:
        return Understanding(Level.CLEAR, one.ask.tool, said, None, _quota(one), INTERPRETER)
    if fault.kind in _UNHEARD or not one.ask.spans:
        return NOTHING  # half understood would be more than its words say: anything can be claimed of them
    return Understanding(Level.HALF, one.ask.tool, said, fault, 1, INTERPRETER)


def _quota(one: CheckedAsk) -> int:
    """Return the number of calls an ask allows: as claimed, limited by what the words contain."""
    if one.ask.quantity == 0:
        words = one.parsed.lexicon
        return 0 if any(words.holds("universal", token.text) for token in one.parsed.tokens) else 1
    counts = [sum(other.argument == slot.argument for other in one.ask.slots) for slot in one.ask.slots]
    numbers = {int(value) for token in one.parsed.tokens for value in readings(token.text) if value == int(value)}
    return one.ask.quantity if one.ask.quantity in numbers else min(one.ask.quantity, max(counts, default=1))
