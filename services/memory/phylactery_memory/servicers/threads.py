"""Serves the threads' part of phylactery.memory.v1.MemoryService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_memory.requests.transcript import DeleteRequest
from phylactery_memory.threads import Threads

Context = aio.ServicerContext[Any, Any]


class ThreadRpcs(memory_pb2_grpc.MemoryServiceServicer):
    """DeleteThread."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def DeleteThread(
        self, request: memory_pb2.DeleteThreadRequest, _context: Context
    ) -> memory_pb2.DeleteThreadResponse:
        """Removes a thread."""
        asked = parse(DeleteRequest, {"thread_id": request.thread_id, "request_id": request.request_id})
        deleted = await self._threads.delete(current_principal(), asked.thread_id, asked.request_id)
        return memory_pb2.DeleteThreadResponse(messages=deleted.messages, outputs=deleted.outputs)
