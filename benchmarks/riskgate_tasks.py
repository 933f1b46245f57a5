"""The cost of tasks over the wire: reporting a result, and deciding with facts from reported results."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from phylactery.riskgate.v1 import riskgate_pb2, task_pb2, types_pb2

from benchmarks.agentdojo.gates import bundle_of
from benchmarks.measure import emit
from benchmarks.pinned import apart, riskgate
from benchmarks.riskgate_wire import Wire, wired

_CATALOG = Path(__file__).parent / "agentdojo" / "catalogs" / "workspace"
_CALLS, _RESULTS, _SIZE = 300, 50, 10_000
_LISTS, _ITEMS = 20, 200
_THREAD, _RUN = "bench-tasks", "run-tasks"
_WORDS = "Please share the file 'budget-7.docx' with ana@example.org so that she can read it."
_SHARE = json.dumps({"file_id": "7-3", "email": "ana@example.org", "permission": "r"})
_UNASKED = (
    '@id("bench.share") @title("Sharing runs without a task too, so that both are the same decision")\n'
    'permit (principal, action == Action::"share_file", resource);\n'
)


@contextmanager
def _bundle() -> Iterator[Path]:
    with bundle_of(_CATALOG) as bundle:
        (bundle / "policies" / "bench.cedar").write_text(_UNASKED)
        yield bundle


def _result(number: int, items: int = 12) -> str:
    """Return a list of files as JSON, of 10 KB or more: ids, names, owners, dates, sizes and text."""
    files = [
        {
            "id_": f"{number}-{at}",
            "filename": f"budget-{number + at - 3}.docx",
            "owner": f"owner-{at}@example.org",
            "last_modified": f"2026-05-{at % 28 + 1:02}T10:00:00",
            "shared_with": {f"reader-{at}@example.org": "r"},
            "size": 100 * number + at,
            "content": f"Notes number {at} of {number}, about rent, {at}.50 euros and the week after. " * 8,
        }
        for at in range(items)
    ]
    text = json.dumps(files)
    return text[:-1] + " " * max(0, _SIZE - len(text)) + "]"


async def _task(wire: Wire, request: str) -> str:
    begun = await wire.tasks.BeginTask(task_pb2.BeginTaskRequest(request_id=request, thread_id=_THREAD, words=_WORDS))
    return str(begun.task_id)


async def _observe(wire: Wire, task: str, number: int, result: str) -> task_pb2.ObserveResponse:
    return await wire.tasks.Observe(
        task_pb2.ObserveRequest(task_id=task, tool_call_id=f"call-{number}", tool="list_files", result_json=result)
    )


async def _observing(wire: Wire, echo_ms: float) -> None:
    task = await _task(wire, "observing")
    results = [_result(number) for number in range(_CALLS)]  # creating one takes a tenth of a millisecond
    measured, cpu = await wire.measure(lambda at: _observe(wire, task, at, results[abs(at)]), _CALLS, 1)
    emit(
        "observe_10k_ms",
        measured.percentile_ms(50),
        "ms",
        bar="<= 2",
        p95_ms=measured.percentile_ms(95),
        cpu_us=cpu,
        bytes=len(results[7]),
        floor_echo_ms=echo_ms,
    )


async def _evaluating(wire: Wire, echo_ms: float) -> None:
    async def evaluate(task: str, named: str, number: int) -> riskgate_pb2.EvaluateResponse:
        call = types_pb2.ToolCall(tool="share_file", tool_call_id=f"{named}-{number}", arguments_json=_SHARE)
        asked = riskgate_pb2.EvaluateRequest(call=call, thread_id=_THREAD, run_id=_RUN, task_id=task)
        return await wire.gate.Evaluate(asked)

    answer = await evaluate("", "share", -100)
    without, without_cpu = await wire.measure(lambda number: evaluate("", "share", number), _CALLS, 1)
    for name, results, items in (("evaluate_facts_ms", _RESULTS, 12), ("evaluate_lists_ms", _LISTS, _ITEMS)):
        task = await _task(wire, name)
        began, first = time.perf_counter(), 0.0
        for number in range(results):  # a call before each, as an agent makes
            began = time.perf_counter()
            answer = await evaluate(task, f"before-{name}", number)
            first = max(first, time.perf_counter() - began)
            await _observe(wire, task, number, _result(number, items))
        began = time.perf_counter()
        answer = await evaluate(task, name, -100)
        first = max(first, time.perf_counter() - began)
        if answer.decision != types_pb2.DECISION_ALLOW:
            raise RuntimeError(f"the measured call is to be allowed with a task and without: {answer}")
        told, told_cpu = await wire.measure(lambda at, task=task, name=name: evaluate(task, name, at), _CALLS, 1)  # type: ignore[misc]
        emit(
            name,
            told.percentile_ms(50) - without.percentile_ms(50),
            "ms",
            bar="<= 3",
            with_task_ms=told.percentile_ms(50),
            without_task_ms=without.percentile_ms(50),
            longest_while_growing_ms=1_000 * first,
            with_task_cpu_us=told_cpu,
            without_task_cpu_us=without_cpu,
            results=results,
            items=items,
            floor_echo_ms=echo_ms,
        )


async def run() -> None:
    """Print the lines."""
    with _bundle() as bundle, apart() as cores, riskgate(cores=cores, bundle=bundle) as server:
        async with wired(server) as wire:
            echo, _ = await wire.measure(wire.echo, _CALLS, 1)
            await _observing(wire, echo.percentile_ms(50))
            await _evaluating(wire, echo.percentile_ms(50))
