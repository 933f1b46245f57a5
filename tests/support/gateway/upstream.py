"""A gRPC server that shows what reaches it: metadata, deadlines and cancellations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from grpc import aio
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, event_pb2


@dataclass
class Upstream(chat_pb2_grpc.ChatServiceServicer):
    """ChatService, as far as it is asked here. A thread called "hang" is never answered."""

    metadata: list[dict[str, str]] = field(default_factory=list)
    deadlines: list[float | None] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    sent: int = 0
    events: Callable[[int], str] = str
    count: int = 0
    target: str = ""

    async def GetThread(self, request: chat_pb2.GetThreadRequest, context: Any) -> chat_pb2.GetThreadResponse:
        self._note(context)
        if request.thread_id == "hang":
            await self._hang()
        return chat_pb2.GetThreadResponse(thread=chat_pb2.Thread(id=request.thread_id))

    async def WatchThread(
        self, request: chat_pb2.WatchThreadRequest, context: Any
    ) -> AsyncIterator[chat_pb2.WatchThreadResponse]:
        self._note(context)
        try:
            for number in range(request.after_sequence + 1, request.after_sequence + 1 + self.count):
                message = event_pb2.AssistantMessage(text=self.events(number))
                yield chat_pb2.WatchThreadResponse(event=event_pb2.Event(sequence=number, message=message))
                self.sent = number
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.set()
            raise
        if request.thread_id == "hang":
            await self._hang()

    async def _hang(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    def _note(self, context: Any) -> None:
        self.metadata.append(dict(context.invocation_metadata()))
        self.deadlines.append(context.time_remaining())
        self.asked.set()


@asynccontextmanager
async def open_upstream(*, calls_of_a_connection: int = 512, **options: Any) -> AsyncIterator[Upstream]:
    """Run the server for the block; it lets more calls of a connection wait."""
    upstream = Upstream(**options)
    server = aio.server(options=[("grpc.max_concurrent_streams", calls_of_a_connection)])
    chat_pb2_grpc.add_ChatServiceServicer_to_server(upstream, server)
    upstream.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield upstream
    finally:
        await server.stop(None)
