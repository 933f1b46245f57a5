"""The gRPC face of memory: decode, call, encode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from grpc import aio
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc, output_pb2, output_pb2_grpc
from phylactery_chassis.edge import parse
from phylactery_chassis.errors import InvalidArgument, Violation
from phylactery_chassis.identity import current_principal
from phylactery_chassis.paging import decode_token, encode_token
from phylactery_chassis.timestamps import to_timestamp

from phylactery_memory.domain.messages import Message
from phylactery_memory.domain.outputs import OutputRecord, OutputRules, OutputSpec
from phylactery_memory.outputs import Outputs
from phylactery_memory.requests import (
    MAX_SEQUENCE,
    AppendRequest,
    ChunkRequest,
    ListRequest,
    MessageItem,
    PointerRequest,
    ReadRequest,
    SpecRequest,
)
from phylactery_memory.transcript import Transcript

Context = aio.ServicerContext[Any, Any]

_ROLE_OF_ENUM = {
    memory_pb2.ROLE_USER: "user",
    memory_pb2.ROLE_ASSISTANT: "assistant",
    memory_pb2.ROLE_TOOL: "tool",
}
_ENUM_OF_ROLE = {name: number for number, name in _ROLE_OF_ENUM.items()}


class OutputServicer(output_pb2_grpc.OutputServiceServicer):
    """Serves phylactery.memory.v1.OutputService."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs

    async def StoreOutput(
        self, request_iterator: AsyncIterator[output_pb2.StoreOutputRequest], context: Context
    ) -> output_pb2.StoreOutputResponse:
        """Keeps one output and answers its pointer once it is durable."""
        spec = await _spec(request_iterator)
        stored = await self._outputs.store(current_principal(), spec, _pieces(request_iterator, context))
        return output_pb2.StoreOutputResponse(
            output=_output(stored.record, self._outputs.rules),
            placeholder=stored.placeholder,
            preview_head=stored.preview_head,
            preview_tail=stored.preview_tail,
        )

    async def GetOutput(self, request: output_pb2.GetOutputRequest, _context: Context) -> output_pb2.GetOutputResponse:
        """Answers what is known about an output."""
        asked = parse(PointerRequest, {"pointer": request.pointer})
        record = await self._outputs.get(current_principal(), asked.pointer)
        return output_pb2.GetOutputResponse(output=_output(record, self._outputs.rules))

    async def ReadOutput(
        self, request: output_pb2.ReadOutputRequest, _context: Context
    ) -> output_pb2.ReadOutputResponse:
        """Answers a range of characters."""
        asked = parse(ReadRequest, {"pointer": request.pointer, "offset": request.offset, "limit": request.limit})
        part = await self._outputs.read(current_principal(), asked.pointer, asked.offset, asked.limit)
        return output_pb2.ReadOutputResponse(
            text=part.text, offset=part.offset, next_offset=part.next_offset, total_chars=part.total_chars
        )


class MemoryServicer(memory_pb2_grpc.MemoryServiceServicer):
    """Serves phylactery.memory.v1.MemoryService."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    async def AppendMessages(
        self, request: memory_pb2.AppendMessagesRequest, _context: Context
    ) -> memory_pb2.AppendMessagesResponse:
        """Adds messages to a thread."""
        asked = parse(
            AppendRequest,
            {"thread_id": request.thread_id, "messages": [_message_data(message) for message in request.messages]},
        )
        now_us = self._transcript.clock.now_us()
        messages = [_message(item, now_us) for item in asked.messages]
        last, appended = await self._transcript.append(current_principal(), asked.thread_id, messages)
        return memory_pb2.AppendMessagesResponse(last_sequence=last, appended=appended)

    async def ListMessages(
        self, request: memory_pb2.ListMessagesRequest, _context: Context
    ) -> memory_pb2.ListMessagesResponse:
        """Lists a window of a thread."""
        asked = parse(
            ListRequest,
            {
                "thread_id": request.thread_id,
                "page_size": request.page_size,
                "page_token": request.page_token,
                "max_characters": request.max_characters,
            },
        )
        page = await self._transcript.page(
            current_principal(),
            asked.thread_id,
            before=_before(asked.page_token),
            page_size=asked.page_size,
            max_characters=asked.max_characters,
        )
        return memory_pb2.ListMessagesResponse(
            messages=[
                memory_pb2.Message(
                    message_id=message.message_id,
                    role=_ENUM_OF_ROLE[message.role],
                    content=message.content,
                    run_id=message.run_id,
                    create_time=to_timestamp(message.create_us),
                    sequence=message.sequence,
                )
                for message in page.messages
            ],
            next_page_token=encode_token(page.next_before) if page.next_before else "",
        )


async def _spec(requests: AsyncIterator[output_pb2.StoreOutputRequest]) -> OutputSpec:
    """Answers the description, which must come first. Raises InvalidArgument."""
    request = await anext(requests, None)
    if request is None or request.WhichOneof("part") != "spec":
        raise _misplaced("spec", "send spec first, then the chunks")
    asked = parse(
        SpecRequest,
        {
            "thread_id": request.spec.thread_id,
            "run_id": request.spec.run_id,
            "tool_call_id": request.spec.tool_call_id,
            "tool_name": request.spec.tool_name,
        },
    )
    return OutputSpec(asked.thread_id, asked.run_id, asked.tool_call_id, asked.tool_name)


async def _pieces(requests: AsyncIterator[output_pb2.StoreOutputRequest], context: Context) -> AsyncIterator[bytes]:
    """Answers the chunks. Raises InvalidArgument, and CancelledError where the client hung up instead of finishing."""
    async for request in requests:
        if request.WhichOneof("part") != "chunk":
            raise _misplaced("part", "after spec, send chunks only")
        yield parse(ChunkRequest, {"chunk": request.chunk}).chunk
    # grpc.aio ends the stream alike when the client finished and when it is gone (7 of 10 hang-ups, measured). Only a
    # living call takes the initial metadata, so this tells them apart before anything is stored.
    try:
        await context.send_initial_metadata(())
    except aio.BaseError:
        raise asyncio.CancelledError from None


def _misplaced(field: str, what: str) -> InvalidArgument:
    return InvalidArgument(
        "INVALID_REQUEST", f"the stream is not in order: {what}", violations=[Violation(field, what)]
    )


def _output(record: OutputRecord, rules: OutputRules) -> output_pb2.Output:
    return output_pb2.Output(
        pointer=record.pointer,
        thread_id=record.spec.thread_id,
        run_id=record.spec.run_id,
        tool_call_id=record.spec.tool_call_id,
        tool_name=record.spec.tool_name,
        size_chars=record.size_chars,
        size_bytes=record.size_bytes,
        sha256=record.sha256,
        evicted=bool(record.pointer),
        rehydration_allowed=rules.may_rehydrate(record.size_chars),
        create_time=to_timestamp(record.create_us) if record.pointer else None,
    )


def _message_data(message: memory_pb2.Message) -> dict[str, Any]:
    time = message.create_time
    return {
        "message_id": message.message_id,
        "role": _ROLE_OF_ENUM.get(message.role, ""),
        "content": message.content,
        "run_id": message.run_id,
        "create_time": {"seconds": time.seconds, "nanos": time.nanos} if message.HasField("create_time") else None,
    }


def _message(item: MessageItem, now_us: int) -> Message:
    create_us = now_us if item.create_time is None else item.create_time.us
    return Message(item.message_id, item.role, item.content, item.run_id, create_us)


def _before(page_token: str) -> int | None:
    """Answers the sequence a page goes on before, None for the first page. Raises InvalidArgument."""
    if not page_token:
        return None
    (sequence,) = decode_token(page_token, int)
    return max(0, min(int(sequence), MAX_SEQUENCE))
