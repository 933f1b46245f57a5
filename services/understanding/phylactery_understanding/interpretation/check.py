"""Validation of a model's interpretation of a message.

A model is given a person's words and the names of tools, nothing else, and returns which words have which role.
Everything it returns must occur in the words: a literal counts only at its own place, outside of pasted text, and
operators that the grammar recognizes keep their meaning. The valid rest is converted to the grammar's terms, so that
one matcher compares every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from phylactery_understanding.interpretation.conversion import to_grammar
from phylactery_understanding.interpretation.model import (
    MAX_ASKS,
    MAX_LITERAL,
    MAX_QUANTITY,
    MAX_SLOTS,
    Interpretation,
    InterpretedAsk,
    Slot,
    Span,
)
from phylactery_understanding.interpretation.pasting import pasted
from phylactery_understanding.interpretation.scope import Scope, operators_in
from phylactery_understanding.interpretation.vetoes import may_be_content, veto_of, vetoes_of
from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.text import STOPS, Kind, Token, tokenize
from phylactery_understanding.requests.model import Ask, Fault, Request

MAX_WORDS: Final = 8_000
"""The maximum length of an interpreted message, in characters; a longer one is a document."""
_LABEL: Final = 4
"""The maximum number of words of a quotation that can be a name rather than a text."""
_BETWEEN: Final = "\n\n"
"""The separator between messages that are read as one text."""
_UNREADABLE: Final = frozenset({"length", "disguise"})


@dataclass(frozen=True, slots=True)
class CheckedAsk:
    """A valid ask in the grammar's terms; ``half`` says that there is pasted text near it.

    If it quotes earlier messages, ``newest`` is where the newest one begins. ``within`` are the operators among the
    words that a composed content may be about, by their positions and sizes: those of a call's content are its own.
    """

    ask: InterpretedAsk
    parsed: Ask
    half: bool
    newest: int = 0
    within: tuple[tuple[int, int, Fault], ...] = ()


def joined(messages: Sequence[str], back: int) -> tuple[str, tuple[int, ...]]:
    """Return the newest messages as one text, and the start of each by how many before the newest it is."""
    some = messages[-1 - back :]
    starts = [sum(len(one) + len(_BETWEEN) for one in some[:place]) for place in range(len(some))]
    return _BETWEEN.join(some), tuple(reversed(starts))


def within(ask: InterpretedAsk, starts: Sequence[int]) -> InterpretedAsk:
    """Return an ask with its positions converted to those of a text built by ``joined``."""

    def moved(span: Span) -> Span:
        return replace(span, start=span.start + starts[span.back] if span.back < len(starts) else -1)

    return replace(
        ask,
        slots=tuple(Slot(one.argument, moved(one.span)) for one in ask.slots),
        content=moved(ask.content) if ask.content is not None else None,
        time=moved(ask.time) if ask.time is not None else None,
        also_time=tuple(map(moved, ask.also_time)),
    )


def check(
    interpretation: Interpretation, request: Request, *, half: bool = False, newest: int = 0
) -> tuple[CheckedAsk, ...]:
    """Return the valid asks of an interpretation. ``half`` says that the caller detected pasted text.

    Of several messages as one text, the last begins at ``newest``: all of it belongs to the ask, whatever was quoted.
    """
    if len(request.text) > MAX_WORDS or (request.fault is not None and request.fault.kind in _UNREADABLE):
        return ()
    strange = pasted(request.text)
    asks = interpretation.asks[:MAX_ASKS]
    taken = [span for one in asks for span in one.spans]
    found: list[CheckedAsk] = []
    for one in asks:
        if not _stands(one, request, strange):
            continue
        scope = Scope(one, request, strange, newest)
        vetoes = list(vetoes_of(scope, one))
        within = tuple(veto for veto in vetoes if one.composed and may_be_content(scope, *veto))
        if len(within) == len(vetoes) and veto_of(scope, one, request) is None:
            near = half or bool(strange) or _quotes_something(request, taken)
            found.append(CheckedAsk(one, to_grammar(one, request, taken, newest), near, newest, within))
    return tuple(found)


def _stands(ask: InterpretedAsk, request: Request, strange: Sequence[tuple[int, int]]) -> bool:
    """Return True if every literal is at its place, does not overlap others, and is the person's own statement."""
    text = request.text
    spans = sorted(ask.spans, key=lambda one: one.start)
    if not ask.tool or len(spans) > MAX_SLOTS or not 0 <= ask.quantity <= MAX_QUANTITY:
        return False
    if any(len(one.text) > MAX_LITERAL or not one.stands_in(text) for one in spans):
        return False
    if any(first.stop > second.start for first, second in pairwise(spans)):
        return False
    if any(start < one.stop and one.start < stop for one in spans for start, stop in strange):
        return False
    return not any(_is_cut(one, request.tokens) or _is_inside(one, request.tokens, ask) for one in spans)


def _is_cut(span: Span, tokens: Sequence[Token]) -> bool:
    """Return True if a literal is a part of a longer one: bob@x.example of notbob@x.example."""
    return any(
        one.kind not in {Kind.QUOTE, Kind.BREAK, Kind.MARK}
        and (one.start < span.start < one.stop or one.start < span.stop < one.stop)
        and one.text.lstrip("#@") != span.text.lower().lstrip("#@")
        for one in tokens
    )


def _is_inside(span: Span, tokens: Sequence[Token], ask: InterpretedAsk) -> bool:
    """Return True if a slot or a time is within a quotation that it does not fill."""
    if span is ask.content:
        return False
    return any(
        one.kind is Kind.QUOTE
        and one.start < span.stop
        and span.start < one.stop
        and span.text.strip("\"'“”«»„`‘’") != one.raw
        for one in tokens
    )


def _quotes_something(request: Request, taken: Sequence[Span]) -> bool:
    """Return True if the words quote a text that is neither a value nor content. A short name asks for nothing."""
    return any(
        one.kind is Kind.QUOTE
        and not any(span.start < one.stop and one.start < span.stop for span in taken)
        and not _is_label(one, request.lexicon)
        for one in request.tokens
    )


def _is_label(quote: Token, words: Lexicon) -> bool:
    """Return True if a quotation is a name of a few words: 'budget analysis'; but not 'no way', 'delete it'."""
    said = [one for one in tokenize(quote.raw) if one.kind not in STOPS]
    verbs = any(words.verb(one.text) for one in said)
    return len(said) <= _LABEL and not verbs and not any(operators_in(said, words))
