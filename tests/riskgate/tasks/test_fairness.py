"""Reading what callers show takes turns: long messages of one make no other wait for all of them."""

from __future__ import annotations

import asyncio
from typing import Any

from phylactery.riskgate.v1 import task_pb2, task_pb2_grpc

LONG = ("pay 41 to a@b.co and " * 5_000)[:99_000]


async def test_long_messages_of_one_caller_make_no_other_wait_for_all_of_them(gate):
    stub = task_pb2_grpc.TaskServiceStub(gate.channel)

    async def begin(name: str, request: str, words: str) -> Any:
        asked = task_pb2.BeginTaskRequest(request_id=request, thread_id=f"{name}-1", words=words)
        return await stub.BeginTask(asked, metadata=gate.person(name).metadata, timeout=60)

    theirs = [asyncio.create_task(begin("ana", f"theirs-{number:04}", LONG)) for number in range(16)]
    await asyncio.wait(theirs, return_when=asyncio.FIRST_COMPLETED)
    assert (await begin("ben", "request-0001", "please read welcome.txt " * 100)).task_id
    assert sum(task.done() for task in theirs) <= 4
    for task in theirs:
        task.cancel()
