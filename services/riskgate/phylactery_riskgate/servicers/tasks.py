"""Serves phylactery.riskgate.v1.TaskService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import task_pb2, task_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_riskgate.encoding import tasks as encoding
from phylactery_riskgate.requests.tasks import BeginInput, EndInput, ObserveInput
from phylactery_riskgate.tasks import Tasks

Context = aio.ServicerContext[Any, Any]


class TaskServicer(task_pb2_grpc.TaskServiceServicer):
    """Serves phylactery.riskgate.v1.TaskService."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def BeginTask(self, request: task_pb2.BeginTaskRequest, _context: Context) -> task_pb2.BeginTaskResponse:
        """Answers the task of a request."""
        asked = parse(BeginInput, encoding.begin_fields(request))
        return encoding.begun(await self._tasks.begin(current_principal(), asked))

    async def Observe(self, request: task_pb2.ObserveRequest, _context: Context) -> task_pb2.ObserveResponse:
        """Answers what was kept of a result, once it is durable."""
        asked = parse(ObserveInput, encoding.observe_fields(request))
        return encoding.observed(await self._tasks.observe(current_principal(), asked))

    async def EndTask(self, request: task_pb2.EndTaskRequest, _context: Context) -> task_pb2.EndTaskResponse:
        """Ends a task."""
        await self._tasks.end(current_principal(), parse(EndInput, encoding.end_fields(request)))
        return task_pb2.EndTaskResponse()
