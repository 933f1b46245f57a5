"""An interpretation on its way to RiskGate."""

from __future__ import annotations

from typing import Final

from phylactery.riskgate.v1 import task_pb2
from phylactery_understanding.interpretation import Interpretation, InterpretedAsk, Mode, Span

_MODES: Final = {
    Mode.NONE: task_pb2.INTERPRETED_MODE_UNSPECIFIED,
    Mode.ADD: task_pb2.INTERPRETED_MODE_ADD,
    Mode.REPLACE: task_pb2.INTERPRETED_MODE_REPLACE,
    Mode.CREATE: task_pb2.INTERPRETED_MODE_CREATE,
    Mode.REMOVE: task_pb2.INTERPRETED_MODE_REMOVE,
}


def interpretation_message(interpretation: Interpretation) -> task_pb2.Interpretation:
    """Encode an interpretation."""
    asks = [_ask(one) for one in interpretation.asks]
    return task_pb2.Interpretation(version=interpretation.version, model=interpretation.model, asks=asks)


def _ask(ask: InterpretedAsk) -> task_pb2.InterpretedAsk:
    message = task_pb2.InterpretedAsk(
        tool=ask.tool,
        slots=[task_pb2.InterpretedSlot(argument=one.argument, value=_span(one.span)) for one in ask.slots],
        mode=_MODES[ask.mode],
        quantity=ask.quantity,
        time=None if ask.time is None else _span(ask.time),
        also_time=[_span(one) for one in ask.also_time],
    )
    if ask.content is not None:
        message.literal.CopyFrom(_span(ask.content))
    elif ask.composed:
        message.composed = True
    return message


def _span(span: Span) -> task_pb2.Span:
    return task_pb2.Span(text=span.text, start=span.start, length=len(span.text), back=span.back)
