"""TaskService: servicer and message mapping."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import task_pb2, task_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import fields, from_message
from phylactery_chassis.util.timestamps import to_timestamp
from phylactery_understanding.interpretation.model import Mode

from phylactery_riskgate.tasks.requests import (
    AskInput,
    BeginInput,
    EndInput,
    InterpretationInput,
    ObserveInput,
    OwnSpanInput,
    SlotInput,
    SpanInput,
)
from phylactery_riskgate.tasks.service import Begun, Observed, Tasks

_MODES = {
    task_pb2.INTERPRETED_MODE_UNSPECIFIED: Mode.NONE,
    task_pb2.INTERPRETED_MODE_ADD: Mode.ADD,
    task_pb2.INTERPRETED_MODE_REPLACE: Mode.REPLACE,
    task_pb2.INTERPRETED_MODE_CREATE: Mode.CREATE,
    task_pb2.INTERPRETED_MODE_REMOVE: Mode.REMOVE,
}
"""An unknown mode number becomes text, which validation refuses."""


def interpretation_fields(shown: task_pb2.Interpretation) -> dict[str, Any]:
    """Return the fields of an interpretation for validation."""
    return fields(InterpretationInput, shown, asks=[_ask(one) for one in shown.asks])


def _ask(shown: task_pb2.InterpretedAsk) -> dict[str, Any]:
    return fields(
        AskInput,
        shown,
        slots=[fields(SlotInput, one, value=_span(one.value)) for one in shown.slots],
        mode=_MODES.get(shown.mode, str(shown.mode)),
        literal=_span(shown.literal) if shown.HasField("literal") else None,
        time=_span(shown.time) if shown.HasField("time") else None,
        also_time=[_span(one) for one in shown.also_time],
    )


def _span(shown: task_pb2.Span) -> dict[str, Any]:
    return fields(SpanInput, shown)


def begun(task: Begun) -> task_pb2.BeginTaskResponse:
    """Encode a task."""
    return task_pb2.BeginTaskResponse(task_id=task.task_id, expire_time=to_timestamp(task.expire_us))


def observed(kept: Observed) -> task_pb2.ObserveResponse:
    """Encode what was stored of a result."""
    return task_pb2.ObserveResponse(values=kept.held, cut=kept.cut, replayed=kept.replayed, unproven=kept.unproven)


Context = aio.ServicerContext[Any, Any]


class TaskServicer(task_pb2_grpc.TaskServiceServicer):
    """gRPC servicer of phylactery.riskgate.v1.TaskService."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def BeginTask(self, request: task_pb2.BeginTaskRequest, _context: Context) -> task_pb2.BeginTaskResponse:
        """Begin a task, or return the one of the request."""
        shown = interpretation_fields(request.interpretation) if request.HasField("interpretation") else None
        asked = from_message(
            BeginInput,
            request,
            interpretation=shown,
            own_spans=tuple(fields(OwnSpanInput, one) for one in request.own_spans),
            message_starts=tuple(request.message_starts),
        )
        return begun(await self._tasks.begin(current_principal(), asked))

    async def Observe(self, request: task_pb2.ObserveRequest, _context: Context) -> task_pb2.ObserveResponse:
        """Store a result, and return once it is durable."""
        asked = from_message(ObserveInput, request, form=request.WhichOneof("result"))
        return observed(await self._tasks.observe(current_principal(), asked))

    async def EndTask(self, request: task_pb2.EndTaskRequest, _context: Context) -> task_pb2.EndTaskResponse:
        """End a task."""
        asked = from_message(EndInput, request, keep=request.keep.ToMicroseconds())
        await self._tasks.end(current_principal(), asked)
        return task_pb2.EndTaskResponse()
