"""Threads as a client sees them: watching, listing, deleting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from grpc import aio
from phylactery.agent.v1 import chat_pb2, event_pb2

from tests.support.agent.system import Person, refused

ENDS_SECONDS = 60


class Watch:
    """An open stream of a thread's events."""

    def __init__(self, person: Person, thread_id: str = "t1", after: int = 0) -> None:
        request = chat_pb2.WatchThreadRequest(thread_id=thread_id, after_sequence=after)
        self.call = person.chat.WatchThread(request, metadata=person.metadata, timeout=120)

    async def next(self) -> event_pb2.Event:
        answer = await asyncio.wait_for(self.call.read(), ENDS_SECONDS)
        assert isinstance(answer, chat_pb2.WatchThreadResponse), "the stream ended"
        return answer.event

    async def until(self, sequence: int) -> list[event_pb2.Event]:
        events = [await self.next()]
        while events[-1].sequence < sequence:
            events.append(await self.next())
        return events

    async def refusal(self) -> Any:
        """Return the refusal of the stream, after any events it still had."""
        with pytest.raises(aio.AioRpcError) as caught:
            await self._to_the_end()
        return refused(caught.value)

    async def _to_the_end(self) -> None:
        while await asyncio.wait_for(self.call.read(), ENDS_SECONDS) is not aio.EOF:
            pass


@asynccontextmanager
async def watched(person: Person, thread_id: str = "t1", after: int = 0) -> AsyncIterator[Watch]:
    """Watch a thread during the block."""
    watch = Watch(person, thread_id, after)
    try:
        yield watch
    finally:
        watch.call.cancel()


async def delete(person: Person, thread_id: str = "t1") -> None:
    """Delete a thread."""
    request = chat_pb2.DeleteThreadRequest(thread_id=thread_id)
    await person.chat.DeleteThread(request, metadata=person.metadata, timeout=60)


async def listed(person: Person, **fields: Any) -> chat_pb2.ListThreadsResponse:
    """Return a page of the person's threads."""
    return await person.chat.ListThreads(chat_pb2.ListThreadsRequest(**fields), metadata=person.metadata, timeout=60)
