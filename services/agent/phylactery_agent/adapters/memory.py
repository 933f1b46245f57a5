"""Memory over gRPC: the graph's Outputs and the runtime's Transcript and UserMemory, each for one end user."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode, aio
from phylactery.memory.v1 import (
    memory_pb2,
    memory_pb2_grpc,
    output_pb2,
    output_pb2_grpc,
    profile_pb2,
    user_memory_pb2,
)
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.rpc.channel import call_metadata
from phylactery_chassis.util.timestamps import from_timestamp, to_timestamp

from phylactery_agent.adapters.errors import refusal_of
from phylactery_agent.ports import (
    Hydration,
    MemoryRefusedError,
    MemoryUnavailableError,
    OutputLine,
    OutputMatches,
    OutputRange,
    ProfileValue,
    Recalled,
    Remembered,
    StoredOutput,
)
from phylactery_agent.ports.services import TranscriptMessage, TranscriptPage
from phylactery_agent.runtime.storage.records import Owner

T = TypeVar("T")
_NO_CONNECTION = "failed to connect to all addresses"
_CHUNK_BYTES = 512 * 1024
_FETCH_SECONDS = 30.0
_MAX_FETCHED = 12 * 1024 * 1024
"""Characters of an attachment of the greatest size, as it is kept."""
_MAX_QUERY = 2_000
"""Maximum number of characters in a search query to memory."""


class MemoryConnection:
    """The stubs over one channel."""

    def __init__(self, channel: aio.Channel) -> None:
        self.outputs = output_pb2_grpc.OutputServiceStub(channel)
        self.messages = memory_pb2_grpc.MemoryServiceStub(channel)


async def _answered(call: Awaitable[T]) -> T:
    try:
        return await call
    except aio.AioRpcError as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise MemoryUnavailableError(
                f"memory did not answer ({error.code().name})", sent=not _never_sent(error)
            ) from error
        raise MemoryRefusedError(refusal.reason, refusal.message) from error


def _never_sent(error: aio.AioRpcError) -> bool:
    """Return True if no connection was made for a call. gRPC has no code for this; other words count as sent."""
    return error.code() is StatusCode.UNAVAILABLE and (error.details() or "").startswith(_NO_CONNECTION)


def _metadata(owner: Owner) -> aio.Metadata:
    return aio.Metadata(*call_metadata(Principal(owner.user_id, owner.tenant, frozenset())))


class OutputsAdapter:
    """Implementation of ports.Outputs for one end user."""

    def __init__(self, connection: MemoryConnection, owner: Owner) -> None:
        self._stub, self._metadata = connection.outputs, _metadata(owner)

    async def store_output(
        self, text: str, *, thread_id: str, run_id: str, tool_call_id: str, tool_name: str
    ) -> StoredOutput:
        """Store an output; idempotent by tool_call_id and text."""
        spec = output_pb2.OutputSpec(thread_id=thread_id, run_id=run_id, tool_call_id=tool_call_id, tool_name=tool_name)
        answer = await _answered(self._stub.StoreOutput(_parts(spec, text), metadata=self._metadata))
        return StoredOutput(
            evicted=answer.output.evicted,
            pointer=answer.output.pointer,
            placeholder=answer.placeholder,
            size_chars=answer.output.size_chars,
            sha256=answer.output.sha256,
            rehydration_allowed=answer.output.rehydration_allowed,
            preview_head=answer.preview_head,
            preview_tail=answer.preview_tail,
        )

    async def keep_output(
        self, text: str, *, thread_id: str, run_id: str, tool_call_id: str, tool_name: str, seconds: int = 0
    ) -> str:
        """Store a text of any length and return its pointer; idempotent by tool_call_id and text."""
        spec = output_pb2.OutputSpec(
            thread_id=thread_id,
            run_id=run_id,
            tool_call_id=tool_call_id,
            tool_name=tool_name,
            ttl=Duration(seconds=seconds) if seconds else None,
            keep=True,
        )
        answer = await _answered(self._stub.StoreOutput(_parts(spec, text), metadata=self._metadata))
        return answer.output.pointer

    async def fetch_output(self, pointer: str) -> str:
        """Return the whole text of one of the user's outputs."""
        return await _answered(self._fetched(pointer))

    async def _fetched(self, pointer: str) -> str:
        request = output_pb2.FetchOutputRequest(pointer=pointer)
        found: list[str] = []
        size = 0
        call = self._stub.FetchOutput(request, metadata=self._metadata, timeout=_FETCH_SECONDS)
        async for answer in call:
            found.append(answer.text)
            size += len(answer.text)
            if size > _MAX_FETCHED:
                call.cancel()
                raise MemoryRefusedError("OUTPUT_TOO_LARGE", "the output is longer than an attachment may be")
        return "".join(found)

    async def read_output(self, pointer: str, *, offset: int, limit: int) -> OutputRange:
        """Read a range of characters of one of the user's outputs."""
        request = output_pb2.ReadOutputRequest(pointer=pointer, offset=offset, limit=limit)
        answer = await _answered(self._stub.ReadOutput(request, metadata=self._metadata))
        return OutputRange(answer.text, answer.offset, answer.next_offset, answer.total_chars)

    async def rehydrate_output(self, pointer: str) -> str:
        """Return the whole text of one of the user's outputs."""
        request = output_pb2.RehydrateOutputRequest(pointer=pointer)
        return (await _answered(self._stub.RehydrateOutput(request, metadata=self._metadata))).text

    async def search_output(
        self, pointer: str, pattern: str, *, literal: bool, ignore_case: bool, context_lines: int, offset: int
    ) -> OutputMatches:
        """Find the lines of a user's output that match an RE2 expression or, with literal, contain a text."""
        request = output_pb2.SearchOutputRequest(
            pointer=pointer,
            pattern=pattern,
            literal=literal,
            ignore_case=ignore_case,
            context_lines=context_lines,
            offset=offset,
        )
        answer = await _answered(self._stub.SearchOutput(request, metadata=self._metadata))
        return OutputMatches(_lines(answer.matches), offset, answer.next_offset, answer.total_chars)


def _lines(matches: Sequence[output_pb2.OutputMatch]) -> Sequence[OutputLine]:
    """Return each line once; a line that is both context and match counts as matched."""
    found: dict[tuple[int, int], OutputLine] = {}
    for match in matches:
        for line in (*match.before, *match.after):
            key = (line.number, line.offset)
            found.setdefault(key, OutputLine(line.number, line.offset, line.text, matched=False))
    for match in matches:
        line = match.line
        found[line.number, line.offset] = OutputLine(line.number, line.offset, line.text, matched=True)
    return [found[key] for key in sorted(found)]


async def _parts(spec: output_pb2.OutputSpec, text: str) -> AsyncIterator[output_pb2.StoreOutputRequest]:
    yield output_pb2.StoreOutputRequest(spec=spec)
    data = text.encode("utf-8", "replace")
    for start in range(0, len(data), _CHUNK_BYTES):
        yield output_pb2.StoreOutputRequest(chunk=data[start : start + _CHUNK_BYTES])


class TranscriptAdapter:
    """Implementation of ports.services.Transcript for one end user."""

    def __init__(self, connection: MemoryConnection, owner: Owner) -> None:
        self._stub, self._metadata = connection.messages, _metadata(owner)

    async def append(self, thread_id: str, run_id: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Add messages with id, role, text and create_us; existing ones are skipped."""
        request = memory_pb2.AppendMessagesRequest(
            thread_id=thread_id,
            messages=[
                memory_pb2.Message(
                    message_id=message["id"],
                    role=memory_pb2.Role.Value(f"ROLE_{message['role'].upper()}"),
                    content=message["text"],
                    run_id=run_id,
                    create_time=to_timestamp(message["create_us"]),
                )
                for message in messages
            ],
        )
        await _answered(self._stub.AppendMessages(request, metadata=self._metadata))

    async def delete(self, thread_id: str, request_id: str) -> None:
        """Remove a thread's messages and outputs; idempotent by request_id."""
        request = memory_pb2.DeleteThreadRequest(thread_id=thread_id, request_id=request_id)
        await _answered(self._stub.DeleteThread(request, metadata=self._metadata))

    async def page(
        self, thread_id: str, *, page_size: int, page_token: str = "", max_characters: int = 0
    ) -> TranscriptPage:
        """Return one page, newest first; a thread without messages is empty."""
        request = memory_pb2.ListMessagesRequest(
            thread_id=thread_id, page_size=page_size, page_token=page_token, max_characters=max_characters
        )
        answer = await _answered(self._stub.ListMessages(request, metadata=self._metadata))
        return TranscriptPage([_message(message) for message in answer.messages], answer.next_page_token)


def _message(message: memory_pb2.Message) -> TranscriptMessage:
    return TranscriptMessage(
        id=message.message_id,
        role=memory_pb2.Role.Name(message.role).removeprefix("ROLE_").lower(),
        text=message.content,
        run_id=message.run_id,
        created_us=from_timestamp(message.create_time),
        sequence=message.sequence,
    )


class MemoriesAdapter:
    """Implementation of ports.services.UserMemory for one end user."""

    def __init__(self, connection: MemoryConnection, owner: Owner) -> None:
        self._stub, self._metadata = connection.messages, _metadata(owner)

    async def write(
        self, text: str, *, thread_id: str, message_ids: Sequence[str], valid_us: int, keep: bool, read: bool = False
    ) -> Remembered:
        """Submit a text of the person to the write policy; memory compares it with its source messages."""
        said_in = [user_memory_pb2.MessageRef(thread_id=thread_id, message_id=name) for name in message_ids]
        request = user_memory_pb2.WriteMemoryRequest(
            text=text,
            source=user_memory_pb2.MEMORY_SOURCE_USER,
            lineage=[user_memory_pb2.Lineage(message=message) for message in said_in],
            keep=keep,
            unconfirmed_source=user_memory_pb2.MEMORY_SOURCE_TEXT if read else user_memory_pb2.MEMORY_SOURCE_ASSISTANT,
            valid_at=to_timestamp(valid_us),
        )
        answer = await _answered(self._stub.WriteMemory(request, metadata=self._metadata))
        if answer.HasField("memory"):
            created_us = from_timestamp(answer.memory.create_time)
            kept = answer.memory.text or answer.memory.untrusted_text
            return Remembered(answer.memory.memory_id, created_us=created_us, is_new=answer.created, text=kept)
        reason = user_memory_pb2.WriteReason.Name(answer.decision.reasons[0])
        return Remembered("", reason.removeprefix("WRITE_REASON_"))

    async def recall(self, query: str, *, limit: int) -> Sequence[Recalled]:
        """Return the memories matching the query, best first; without a query, the newest."""
        if not query.strip():
            listing = user_memory_pb2.ListMemoriesRequest(page_size=limit)
            page = await _answered(self._stub.ListMemories(listing, metadata=self._metadata))
            return [_recalled(memory) for memory in page.memories]
        search = user_memory_pb2.SearchMemoriesRequest(query=query, limit=limit, only_matching=True)
        found = await _answered(self._stub.SearchMemories(search, metadata=self._metadata))
        return [_recalled(match.memory) for match in found.matches]

    async def forget(self, memory_id: str, *, restore: bool = False) -> bool:
        """Forget a memory, and with restore make valid again what it had superseded; return False if there is none."""
        request = user_memory_pb2.ForgetMemoryRequest(memory_id=memory_id, restore_superseded=restore)
        try:
            await _answered(self._stub.ForgetMemory(request, metadata=self._metadata))
        except MemoryRefusedError as error:
            if error.reason != "MEMORY_NOT_FOUND":
                raise
            return False
        return True

    async def hydrate(self, thread_id: str, *, pathway: str, query: str, max_messages: int) -> Hydration:
        """Return the context for a turn on this pathway, in one BuildContext."""
        request = memory_pb2.BuildContextRequest(
            thread_id=thread_id,
            pathway=memory_pb2.Pathway.Value(f"PATHWAY_{pathway.upper()}"),
            query=query[:_MAX_QUERY],
            max_messages=max_messages,
        )
        read = await _answered(self._stub.BuildContext(request, metadata=self._metadata))
        window = [_message(message) for message in read.messages]
        return Hydration(
            window=[{"id": message.id, "role": message.role, "content": message.text} for message in window],
            memories=[_recalled(match.memory) for match in read.memories],
            profile=[_profile_value(value) for value in read.profile],
        )


def _recalled(memory: user_memory_pb2.Memory) -> Recalled:
    return Recalled(
        text=memory.text or memory.untrusted_text,
        untrusted=memory.WhichOneof("content") == "untrusted_text",
        valid_us=from_timestamp(memory.valid_at),
        memory_id=memory.memory_id,
        source=_source(memory.source),
        trust=_trust(memory.trust),
    )


def _profile_value(field: profile_pb2.ProfileField) -> ProfileValue:
    value = getattr(field, field.WhichOneof("value") or "text_value")
    since_us = from_timestamp(field.valid_at)
    return ProfileValue(field.name, value, _source(field.source), _trust(field.trust), since_us)


def _source(source: user_memory_pb2.MemorySource.ValueType) -> str:
    return user_memory_pb2.MemorySource.Name(source).removeprefix("MEMORY_SOURCE_").lower()


def _trust(trust: user_memory_pb2.Trust.ValueType) -> str:
    return user_memory_pb2.Trust.Name(trust).removeprefix("TRUST_").lower()
