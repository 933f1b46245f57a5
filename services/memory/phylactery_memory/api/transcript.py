"""The transcript part of phylactery.memory.v1.MemoryService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.paging import decode_token, encode_token
from phylactery_chassis.rpc.validation import fields, from_message
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_memory.transcript.model import Message
from phylactery_memory.transcript.requests import (
    MAX_SEQUENCE,
    AppendRequest,
    DeleteRequest,
    ListRequest,
    MessageItem,
    TimeItem,
)
from phylactery_memory.transcript.service import Threads, Transcript

ROLE_OF_ENUM = {
    memory_pb2.ROLE_USER: "user",
    memory_pb2.ROLE_ASSISTANT: "assistant",
    memory_pb2.ROLE_TOOL: "tool",
}
_ENUM_OF_ROLE = {name: number for number, name in ROLE_OF_ENUM.items()}


def message_message(message: Message) -> memory_pb2.Message:
    """Return a message as its protobuf message."""
    return memory_pb2.Message(
        message_id=message.message_id,
        role=_ENUM_OF_ROLE[message.role],
        content=message.content,
        run_id=message.run_id,
        create_time=to_timestamp(message.create_us),
        sequence=message.sequence,
    )


Context = aio.ServicerContext[Any, Any]


class TranscriptRpcs(memory_pb2_grpc.MemoryServiceServicer):
    """AppendMessages, ListMessages and DeleteThread."""

    def __init__(self, transcript: Transcript, threads: Threads) -> None:
        self._transcript, self._threads = transcript, threads

    async def AppendMessages(
        self, request: memory_pb2.AppendMessagesRequest, _context: Context
    ) -> memory_pb2.AppendMessagesResponse:
        """Append messages to a thread."""
        asked = from_message(AppendRequest, request, messages=[_message_data(one) for one in request.messages])
        now_us = self._transcript.clock.now_us()
        messages = [_message(item, now_us) for item in asked.messages]
        last, appended = await self._transcript.append(current_principal(), asked.thread_id, messages)
        return memory_pb2.AppendMessagesResponse(last_sequence=last, appended=appended)

    async def ListMessages(
        self, request: memory_pb2.ListMessagesRequest, _context: Context
    ) -> memory_pb2.ListMessagesResponse:
        """List a window of a thread."""
        asked = from_message(ListRequest, request)
        page = await self._transcript.page(
            current_principal(),
            asked.thread_id,
            before=_before(asked.page_token),
            page_size=asked.page_size,
            max_characters=asked.max_characters,
        )
        return memory_pb2.ListMessagesResponse(
            messages=[message_message(message) for message in page.messages],
            next_page_token=encode_token(page.next_before) if page.next_before else "",
        )

    async def DeleteThread(
        self, request: memory_pb2.DeleteThreadRequest, _context: Context
    ) -> memory_pb2.DeleteThreadResponse:
        """Delete a thread."""
        asked = from_message(DeleteRequest, request)
        deleted = await self._threads.delete(current_principal(), asked.thread_id, asked.request_id)
        return memory_pb2.DeleteThreadResponse(messages=deleted.messages, outputs=deleted.outputs)


def _message_data(message: memory_pb2.Message) -> dict[str, Any]:
    return fields(
        MessageItem,
        message,
        role=ROLE_OF_ENUM.get(message.role, ""),
        create_time=fields(TimeItem, message.create_time) if message.HasField("create_time") else None,
    )


def _message(item: MessageItem, now_us: int) -> Message:
    create_us = now_us if item.create_time is None else item.create_time.us
    return Message(item.message_id, item.role, item.content, item.run_id, create_us)


def _before(page_token: str) -> int | None:
    """Return the sequence that the page ends before, None for the first page. Raise InvalidArgument."""
    if not page_token:
        return None
    (sequence,) = decode_token(page_token, int)
    return max(0, min(int(sequence), MAX_SEQUENCE))
