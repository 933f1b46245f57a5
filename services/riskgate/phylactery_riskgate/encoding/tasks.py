"""TaskService's messages."""

from __future__ import annotations

from typing import Any

from phylactery.riskgate.v1 import task_pb2
from phylactery_chassis.timestamps import to_timestamp

from phylactery_riskgate.tasks import Begun, Observed


def begin_fields(request: task_pb2.BeginTaskRequest) -> dict[str, Any]:
    """Answers a request as the edge reads it."""
    return {
        "request_id": request.request_id,
        "thread_id": request.thread_id,
        "words": request.words,
        "continues_task_id": request.continues_task_id,
    }


def observe_fields(request: task_pb2.ObserveRequest) -> dict[str, Any]:
    """Answers a result as the edge reads it."""
    return {
        "task_id": request.task_id,
        "tool_call_id": request.tool_call_id,
        "tool": request.tool,
        "arguments_json": request.arguments_json,
        "form": request.WhichOneof("result"),
        "result_json": request.result_json,
        "result_text": request.result_text,
        "failed": request.failed,
    }


def begun(task: Begun) -> task_pb2.BeginTaskResponse:
    """Encodes a task."""
    return task_pb2.BeginTaskResponse(task_id=task.task_id, expire_time=to_timestamp(task.expire_us))


def observed(kept: Observed) -> task_pb2.ObserveResponse:
    """Encodes what was kept of a result."""
    return task_pb2.ObserveResponse(values=kept.held, cut=kept.cut, replayed=kept.replayed)
