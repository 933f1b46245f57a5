"""Client of memory: outputs, messages, memories, the profile, contexts and privacy."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from phylactery.memory.v1 import (
    memory_pb2,
    memory_pb2_grpc,
    output_pb2,
    output_pb2_grpc,
    privacy_pb2,
    privacy_pb2_grpc,
    profile_pb2,
    user_memory_pb2,
)

from phylactery_client.channel import ServiceClient, new_request_id
from phylactery_client.decode import decode, enum_number
from phylactery_client.memory_results import (
    Context,
    Erasure,
    MemoryMatch,
    MemoryPage,
    OutputPage,
    Profile,
    ProfileField,
    WrittenMemory,
)
from phylactery_client.results import Appended, Output, OutputRange, StoredMessage, StoredOutput, Window
from phylactery_client.transport import closing

CHUNK_BYTES = 256 * 1024
_ROLES = memory_pb2.DESCRIPTOR.enum_types_by_name["Role"]
_SOURCES = user_memory_pb2.DESCRIPTOR.enum_types_by_name["MemorySource"]
_PATHWAYS = memory_pb2.DESCRIPTOR.enum_types_by_name["Pathway"]


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to add; role is USER, ASSISTANT or TOOL; create_time None means the server's clock."""

    message_id: str
    role: str
    content: str
    run_id: str = ""
    create_time: datetime | None = None

    def message(self) -> memory_pb2.Message:
        """Return the contract's message. Raise ValueError for an unknown role or a naive create_time."""
        message = memory_pb2.Message(message_id=self.message_id, content=self.content, run_id=self.run_id)
        message.role = memory_pb2.Role.ValueType(enum_number(_ROLES, self.role))
        if self.create_time is not None:
            if self.create_time.tzinfo is None:
                raise ValueError("create_time needs a time zone")
            message.create_time.FromDatetime(self.create_time.astimezone(UTC))
        return message


class MemoryClient(ServiceClient):
    """A client of memory. Every method raises the PhylacteryError of its code; timeout is in seconds."""

    def __init__(self, target: str, **options: Any) -> None:
        """Options are those of ServiceClient."""
        super().__init__(target, **options)
        self._outputs = output_pb2_grpc.OutputServiceStub(self._channel)
        self._memory = memory_pb2_grpc.MemoryServiceStub(self._channel)
        self._privacy = privacy_pb2_grpc.PrivacyServiceStub(self._channel)

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
        """Store an output; memory keeps it if it is too large for a context.

        Idempotent by run_id, tool_call_id and text; timeout bounds all attempts together. Raise UnicodeEncodeError for
        text with lone surrogates.
        """
        spec = output_pb2.OutputSpec(thread_id=thread_id, run_id=run_id, tool_call_id=tool_call_id, tool_name=tool_name)
        data = text.encode()
        stored = await self._call(self._outputs.StoreOutput, lambda: _parts(spec, data), timeout)
        return decode(StoredOutput, stored)

    async def get_output(self, pointer: str, *, timeout: float | None = None) -> Output:
        """Return a stored output's metadata, without its text."""
        request = output_pb2.GetOutputRequest(pointer=pointer)
        return decode(Output, (await self._call(self._outputs.GetOutput, request, timeout)).output)

    async def read_output(
        self, pointer: str, *, offset: int = 0, limit: int = 0, timeout: float | None = None
    ) -> OutputRange:
        """Return a range of characters; limit 0 means 10,000, the maximum."""
        request = output_pb2.ReadOutputRequest(pointer=pointer, offset=offset, limit=limit)
        return decode(OutputRange, await self._call(self._outputs.ReadOutput, request, timeout))

    async def iterate_output(
        self, pointer: str, *, offset: int = 0, limit: int = 0, timeout: float | None = None
    ) -> AsyncGenerator[str]:
        """Yield the whole output from offset, range by range; limit and timeout apply to each range."""
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
        """Append messages to a thread in order, all or none; existing messages are skipped."""
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
        """Return a page of a thread, newest first, bounded by messages (0: 50) and characters (0: 1,000,000)."""
        request = memory_pb2.ListMessagesRequest(
            thread_id=thread_id, page_size=page_size, page_token=page_token, max_characters=max_characters
        )
        return decode(Window, await self._call(self._memory.ListMessages, request, timeout))

    async def list_outputs(
        self, *, thread_id: str = "", page_size: int = 0, page_token: str = "", timeout: float | None = None
    ) -> OutputPage:
        """Return a page of stored outputs, newest first; page_size 0 means 50."""
        request = output_pb2.ListOutputsRequest(thread_id=thread_id, page_size=page_size, page_token=page_token)
        return decode(OutputPage, await self._call(self._outputs.ListOutputs, request, timeout))

    async def write_memory(
        self,
        text: str,
        source: str,
        *,
        lineage: Sequence[tuple[str, str]] = (),
        keep: bool = False,
        timeout: float | None = None,
    ) -> WrittenMemory:
        """Submit a text to the write policy, which decides whether to keep it and gives the reasons.

        source is USER, ASSISTANT, TOOL, WEB or SYSTEM; lineage names the messages it was made from, each by thread_id
        and message_id. Raise ValueError for another source.
        """
        request = user_memory_pb2.WriteMemoryRequest(
            text=text, source=user_memory_pb2.MemorySource.ValueType(enum_number(_SOURCES, source)), keep=keep
        )
        for thread_id, message_id in lineage:
            request.lineage.add(message=user_memory_pb2.MessageRef(thread_id=thread_id, message_id=message_id))
        return decode(WrittenMemory, await self._call(self._memory.WriteMemory, request, timeout))

    async def search_memories(
        self, query: str, *, limit: int = 0, timeout: float | None = None
    ) -> tuple[MemoryMatch, ...]:
        """Return the memories for a query, best first; limit 0 means 10."""
        request = user_memory_pb2.SearchMemoriesRequest(query=query, limit=limit)
        response = await self._call(self._memory.SearchMemories, request, timeout)
        return tuple(decode(MemoryMatch, match) for match in response.matches)

    async def list_memories(
        self,
        *,
        include_invalid: bool = False,
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> MemoryPage:
        """Return a page of memories, most recently written first; page_size 0 means 50."""
        request = user_memory_pb2.ListMemoriesRequest(
            include_invalid=include_invalid, page_size=page_size, page_token=page_token
        )
        return decode(MemoryPage, await self._call(self._memory.ListMemories, request, timeout))

    async def forget_memory(self, memory_id: str, *, etag: str = "", timeout: float | None = None) -> None:
        """Remove a memory permanently, and what the profile took from it."""
        request = user_memory_pb2.ForgetMemoryRequest(memory_id=memory_id, etag=etag)
        await self._call(self._memory.ForgetMemory, request, timeout, repeat=False)

    async def get_profile(self, *, max_superseded: int = 0, timeout: float | None = None) -> Profile:
        """Return the profile, with up to max_superseded (at most 20) former values per name."""
        request = profile_pb2.GetProfileRequest(max_superseded=max_superseded)
        return _profile((await self._call(self._memory.GetProfile, request, timeout)).profile)

    async def set_profile_fields(
        self,
        values: Mapping[str, str | float | bool],
        *,
        remove: Sequence[str] = (),
        etag: str = "",
        timeout: float | None = None,
    ) -> Profile:
        """Set and remove profile values as the person states them, all or none; return the resulting profile."""
        request = profile_pb2.SetProfileFieldsRequest(
            remove=remove, etag=etag, source=user_memory_pb2.MEMORY_SOURCE_USER
        )
        for name, value in values.items():
            kind = {bool: "bool_value", str: "text_value"}.get(type(value), "number_value")
            setattr(request.values.add(name=name), kind, value)
        set_now = await self._call(self._memory.SetProfileFields, request, timeout, repeat=False)
        return _profile(set_now.profile)

    async def build_context(
        self,
        thread_id: str,
        pathway: str,
        *,
        query: str = "",
        max_messages: int = 0,
        max_characters: int = 0,
        max_memories: int = 0,
        timeout: float | None = None,
    ) -> Context:
        """Return the context of a turn; pathway is TEXT_FAST_PATH, TOOL_INTENT, RICH_INPUT or STANDBY.

        Raise ValueError for another pathway.
        """
        request = memory_pb2.BuildContextRequest(
            thread_id=thread_id,
            pathway=memory_pb2.Pathway.ValueType(enum_number(_PATHWAYS, pathway)),
            query=query,
            max_messages=max_messages,
            max_characters=max_characters,
            max_memories=max_memories,
        )
        response = await self._call(self._memory.BuildContext, request, timeout)
        return Context(
            messages=tuple(decode(StoredMessage, message) for message in response.messages),
            memories=tuple(decode(MemoryMatch, match) for match in response.memories),
            profile=tuple(_profile_field(field) for field in response.profile),
            older_messages=response.older_messages,
            searched=response.searched,
        )

    async def erase_user(self, *, subject: str = "", request_id: str = "", timeout: float | None = None) -> Erasure:
        """Erase the caller at memory, or a user named by an operator; return the proof."""
        request = privacy_pb2.EraseUserRequest(subject=subject, request_id=request_id or new_request_id())
        return decode(Erasure, (await self._call(self._privacy.EraseUser, request, timeout)).erasure)

    async def get_erasure(self, erasure_id: str, *, timeout: float | None = None) -> Erasure:
        """Return the record of an erasure."""
        request = privacy_pb2.GetErasureRequest(erasure_id=erasure_id)
        return decode(Erasure, (await self._call(self._privacy.GetErasure, request, timeout)).erasure)

    async def export_user(self, *, timeout: float = math.inf) -> AsyncGenerator[str]:
        """Yield everything stored about the caller as JSON lines; the last one's type is "end"."""
        request = privacy_pb2.ExportUserRequest()
        async with closing(self._stream(self._privacy.ExportUser, request, timeout)) as records:
            async for record in records:
                yield record.json


def _profile(message: profile_pb2.Profile) -> Profile:
    return Profile(
        tuple(_profile_field(field) for field in message.fields),
        message.etag,
        tuple(_profile_field(field) for field in message.superseded),
    )


def _profile_field(message: profile_pb2.ProfileField) -> ProfileField:
    told = decode(_Told, message)
    kind = message.WhichOneof("value")
    value = getattr(message, kind) if kind else ""
    return ProfileField(told.name, value, told.source, told.trust, told.memory_id, told.valid_at, told.invalid_at)


@dataclass(frozen=True, slots=True)
class _Told:
    """A profile field without its value, whose type differs."""

    name: str
    source: str
    trust: str
    memory_id: str
    valid_at: datetime | None
    invalid_at: datetime | None


def _parts(spec: output_pb2.OutputSpec, data: bytes) -> Iterator[output_pb2.StoreOutputRequest]:
    yield output_pb2.StoreOutputRequest(spec=spec)
    for start in range(0, len(data), CHUNK_BYTES):
        yield output_pb2.StoreOutputRequest(chunk=data[start : start + CHUNK_BYTES])
