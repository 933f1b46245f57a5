"""The client of memory: keep and read outputs, add and list messages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc, output_pb2, output_pb2_grpc

from phylactery_client.channel import FIRST_BACKOFF, MAX_ATTEMPTS, ServiceClient
from phylactery_client.decode import decode, enum_number
from phylactery_client.errors import UnavailableError
from phylactery_client.results import Appended, Output, OutputRange, StoredOutput, Window

CHUNK_BYTES = 256 * 1024
_ROLES = memory_pb2.DESCRIPTOR.enum_types_by_name["Role"]


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to add; role is USER, ASSISTANT or TOOL, and create_time the server's clock where None."""

    message_id: str
    role: str
    content: str
    run_id: str = ""
    create_time: datetime | None = None

    def message(self) -> memory_pb2.Message:
        """Answers it as the contract's message. Raises ValueError for an unknown role or a naive create_time."""
        message = memory_pb2.Message(message_id=self.message_id, content=self.content, run_id=self.run_id)
        message.role = memory_pb2.Role.ValueType(enum_number(_ROLES, self.role))
        if self.create_time is not None:
            if self.create_time.tzinfo is None:
                raise ValueError("create_time needs a time zone")
            message.create_time.FromDatetime(self.create_time.astimezone(UTC))
        return message


class MemoryClient(ServiceClient):
    """Calls memory. Every method raises the PhylacteryError of its code; timeout is in seconds."""

    def __init__(self, target: str, **options: Any) -> None:
        """Takes what ServiceClient takes."""
        super().__init__(target, **options)
        self._outputs = output_pb2_grpc.OutputServiceStub(self._channel)
        self._memory = memory_pb2_grpc.MemoryServiceStub(self._channel)

    async def store_output(
        self,
        text: str,
        *,
        thread_id: str,
        run_id: str,
        tool_call_id: str,
        tool_name: str,
        timeout: float | None = None,
    ) -> StoredOutput:
        """Gives an output to memory, which keeps it where it is too large for a context.

        Idempotent by run_id, tool_call_id and text, so it is sent again while the service is UNAVAILABLE; timeout
        bounds all attempts together. Raises UnicodeEncodeError for text with lone surrogates.
        """
        spec = output_pb2.OutputSpec(thread_id=thread_id, run_id=run_id, tool_call_id=tool_call_id, tool_name=tool_name)
        data = text.encode()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds(timeout)
        attempt = 1
        while True:
            try:
                call = self._call(self._outputs.StoreOutput, _parts(spec, data), max(0.0, end - loop.time()))
                return decode(StoredOutput, await call)
            except UnavailableError:
                pause = FIRST_BACKOFF * 2**attempt * random.uniform(0.5, 1)  # noqa: S311 - spreads retries, no secret
                if attempt == MAX_ATTEMPTS or loop.time() + pause >= end:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    async def get_output(self, pointer: str, *, timeout: float | None = None) -> Output:
        """Answers what is known about a stored output, without its text."""
        request = output_pb2.GetOutputRequest(pointer=pointer)
        return decode(Output, (await self._call(self._outputs.GetOutput, request, timeout)).output)

    async def read_output(
        self, pointer: str, *, offset: int = 0, limit: int = 0, timeout: float | None = None
    ) -> OutputRange:
        """Answers a range of characters; limit 0 means 10,000, the most there is."""
        request = output_pb2.ReadOutputRequest(pointer=pointer, offset=offset, limit=limit)
        return decode(OutputRange, await self._call(self._outputs.ReadOutput, request, timeout))

    async def iterate_output(
        self, pointer: str, *, offset: int = 0, limit: int = 0, timeout: float | None = None
    ) -> AsyncGenerator[str]:
        """Answers the whole output from offset, range by range; limit and timeout are each range's."""
        while True:
            part = await self.read_output(pointer, offset=offset, limit=limit, timeout=timeout)
            if part.text:
                yield part.text
            if part.next_offset >= part.total_chars:
                return
            offset = part.next_offset

    async def append_messages(
        self, thread_id: str, messages: Sequence[NewMessage], *, timeout: float | None = None
    ) -> Appended:
        """Adds messages to a thread in order, all or none; a message that stands already is skipped."""
        request = memory_pb2.AppendMessagesRequest(
            thread_id=thread_id, messages=[message.message() for message in messages]
        )
        return decode(Appended, await self._call(self._memory.AppendMessages, request, timeout))

    async def list_messages(
        self,
        thread_id: str,
        *,
        page_size: int = 0,
        page_token: str = "",
        max_characters: int = 0,
        timeout: float | None = None,
    ) -> Window:
        """Answers a page of a thread, newest first, bounded by messages (0: 50) and characters (0: 1,000,000)."""
        request = memory_pb2.ListMessagesRequest(
            thread_id=thread_id, page_size=page_size, page_token=page_token, max_characters=max_characters
        )
        return decode(Window, await self._call(self._memory.ListMessages, request, timeout))


def _parts(spec: output_pb2.OutputSpec, data: bytes) -> Iterator[output_pb2.StoreOutputRequest]:
    yield output_pb2.StoreOutputRequest(spec=spec)
    for start in range(0, len(data), CHUNK_BYTES):
        yield output_pb2.StoreOutputRequest(chunk=data[start : start + CHUNK_BYTES])
