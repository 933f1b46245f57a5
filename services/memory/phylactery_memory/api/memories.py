"""The memories part of phylactery.memory.v1.MemoryService."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grpc import aio
from phylactery.memory.v1 import memory_pb2_grpc, profile_pb2, user_memory_pb2
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.paging import decode_token, encode_token
from phylactery_chassis.rpc.validation import fields, from_message
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_memory.memories.model import NEVER, Kind, Memory, Origin, Source
from phylactery_memory.memories.requests import (
    ForgetMemoryItem,
    ListMemoriesItem,
    OriginItem,
    SearchMemoriesItem,
    UpdateMemoryItem,
    WriteMemoryItem,
)
from phylactery_memory.memories.service import Change, Draft, Memories, Written
from phylactery_memory.memories.store import Filter
from phylactery_memory.memories.write_policy import Decision
from phylactery_memory.transcript.requests import MAX_SEQUENCE, TimeItem


def time_data(message: Any, field: str) -> dict[str, int] | None:
    """Return a timestamp field as validation input, None if it is unset."""
    if not message.HasField(field):
        return None
    return fields(TimeItem, getattr(message, field))


def lineage_data(
    message: user_memory_pb2.WriteMemoryRequest | profile_pb2.SetProfileFieldsRequest,
) -> list[dict[str, str]]:
    """Return a request's lineage as validation input."""
    return [fields(OriginItem, item.message, pointer=item.pointer) for item in message.lineage]


def memory_message(memory: Memory) -> user_memory_pb2.Memory:
    """Return a memory as its message: text of a tool or the web is only in untrusted_text."""
    message = user_memory_pb2.Memory(
        memory_id=memory.memory_id,
        layer=user_memory_pb2.MemoryLayer.ValueType(memory.layer),
        kind=user_memory_pb2.MemoryKind.ValueType(memory.kind),
        source=user_memory_pb2.MemorySource.ValueType(memory.source),
        trust=user_memory_pb2.Trust.ValueType(memory.trust),
        lineage=[lineage_message(origin) for origin in memory.lineage],
        importance=memory.importance,
        thread_id=memory.thread_id,
        sequence=memory.sequence,
        about=memory.about,
        attribute=memory.attribute,
        valid_at=to_timestamp(memory.valid_us),
        invalid_at=None if memory.invalid_us == NEVER else to_timestamp(memory.invalid_us),
        supersedes=memory.supersedes,
        superseded_by=memory.superseded_by,
        content_hash=memory.content_hash,
        etag=memory.etag,
        create_time=to_timestamp(memory.create_us),
        update_time=to_timestamp(memory.update_us),
    )
    if memory.untrusted:
        message.untrusted_text = memory.text
    else:
        message.text = memory.text
    return message


def decision_message(decision: Decision) -> user_memory_pb2.WriteDecision:
    """Return a decision as its message."""
    return user_memory_pb2.WriteDecision(
        layer=user_memory_pb2.MemoryLayer.ValueType(decision.layer or 0),
        reasons=[user_memory_pb2.WriteReason.Value(f"WRITE_REASON_{reason}") for reason in decision.reasons],
        explanation_en=decision.explain("en"),
        explanation_es=decision.explain("es"),
        profile_field=decision.profile.attribute if decision.profile else "",
        profile_value=decision.profile.value if decision.profile else "",
    )


def written_message(written: Written) -> user_memory_pb2.WriteMemoryResponse:
    """Return the outcome of a write as its message."""
    return user_memory_pb2.WriteMemoryResponse(
        decision=decision_message(written.decision),
        memory=memory_message(written.memory) if written.memory else None,
        created=written.created,
        embedding_skipped=written.embedding_skipped,
    )


def lineage_message(origin: Origin) -> user_memory_pb2.Lineage:
    """Return one origin of a memory as its message."""
    if origin.pointer:
        return user_memory_pb2.Lineage(pointer=origin.pointer)
    return user_memory_pb2.Lineage(
        message=user_memory_pb2.MessageRef(thread_id=origin.thread_id, message_id=origin.message_id)
    )


Context = aio.ServicerContext[Any, Any]


class MemoryRpcs(memory_pb2_grpc.MemoryServiceServicer):
    """WriteMemory, SearchMemories, ListMemories, UpdateMemory and ForgetMemory."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def WriteMemory(
        self, request: user_memory_pb2.WriteMemoryRequest, _context: Context
    ) -> user_memory_pb2.WriteMemoryResponse:
        """Apply the write policy to a text, store it if it is worth keeping, and return the reasons."""
        asked = from_message(
            WriteMemoryItem, request, lineage=lineage_data(request), valid_at=time_data(request, "valid_at")
        )
        draft = Draft(
            text=asked.text,
            source=Source(asked.source),
            unconfirmed=Source(asked.unconfirmed_source or Source.ASSISTANT),
            lineage=tuple(Origin(item.thread_id, item.message_id, item.pointer) for item in asked.lineage),
            kind=Kind(asked.kind) if asked.kind else None,
            keep=asked.keep,
            importance=asked.importance,
            thread_id=asked.thread_id,
            sequence=asked.sequence,
            about=asked.about,
            attribute=asked.attribute,
            valid_us=_us(asked.valid_at),
            supersedes=asked.supersedes,
            if_content_hash=asked.if_content_hash,
        )
        return written_message(await self._memories.write(current_principal(), draft))

    async def SearchMemories(
        self, request: user_memory_pb2.SearchMemoriesRequest, _context: Context
    ) -> user_memory_pb2.SearchMemoriesResponse:
        """Search memories by words."""
        asked = from_message(SearchMemoriesItem, request, as_of=time_data(request, "as_of"))
        wanted = replace(self._filter(asked), min_trust=asked.min_trust)
        found = await self._memories.search(
            current_principal(), asked.query, asked.limit, wanted, only_matching=asked.only_matching
        )
        return user_memory_pb2.SearchMemoriesResponse(
            matches=[
                user_memory_pb2.MemoryMatch(memory=memory_message(match.memory), score=match.score)
                for match in found.matches
            ],
            embedding_skipped=found.embedding_skipped,
        )

    async def ListMemories(
        self, request: user_memory_pb2.ListMemoriesRequest, _context: Context
    ) -> user_memory_pb2.ListMemoriesResponse:
        """List memories, most recently written first."""
        asked = from_message(ListMemoriesItem, request, as_of=time_data(request, "as_of"))
        wanted = replace(self._filter(asked), about=asked.about, attribute=asked.attribute)
        page = await self._memories.page(
            current_principal(), wanted, before=_before(asked.page_token), page_size=asked.page_size
        )
        return user_memory_pb2.ListMemoriesResponse(
            memories=[memory_message(memory) for memory in page.memories],
            next_page_token=encode_token(page.next_before) if page.next_before else "",
        )

    async def UpdateMemory(
        self, request: user_memory_pb2.UpdateMemoryRequest, _context: Context
    ) -> user_memory_pb2.UpdateMemoryResponse:
        """Change or retire a memory."""
        asked = from_message(
            UpdateMemoryItem,
            request,
            update_mask={"paths": list(request.update_mask.paths)},
            invalid_at=time_data(request, "invalid_at"),
        )
        ending = NEVER if asked.invalid_at is None else asked.invalid_at.us
        mask = asked.update_mask.paths
        change = Change(
            text=asked.text if "text" in mask else None,
            kind=Kind(asked.kind) if "kind" in mask else None,
            importance=asked.importance if "importance" in mask else None,
            invalid_us=ending if "invalid_at" in mask else None,
        )
        memory = await self._memories.update(current_principal(), asked.memory_id, asked.etag, change)
        return user_memory_pb2.UpdateMemoryResponse(memory=memory_message(memory))

    async def ForgetMemory(
        self, request: user_memory_pb2.ForgetMemoryRequest, _context: Context
    ) -> user_memory_pb2.ForgetMemoryResponse:
        """Remove a memory permanently."""
        asked = from_message(ForgetMemoryItem, request)
        restored = await self._memories.forget(
            current_principal(), asked.memory_id, asked.etag, restore_superseded=asked.restore_superseded
        )
        return user_memory_pb2.ForgetMemoryResponse(restored=restored)

    def _filter(self, asked: SearchMemoriesItem | ListMemoriesItem) -> Filter:
        """Return the filter fields that both searching and listing support."""
        return Filter(at_us=self._at_us(asked), thread_id=asked.thread_id, kind=asked.kind, layer=asked.layer)

    def _at_us(self, asked: SearchMemoriesItem | ListMemoriesItem) -> int | None:
        if asked.include_invalid:
            return None
        return self._memories.clock.now_us() if asked.as_of is None else asked.as_of.us


def _us(time: TimeItem | None) -> int | None:
    return None if time is None else time.us


def _before(page_token: str) -> int | None:
    """Return the number that the page ends before, None for the first page. Raise InvalidArgument."""
    if not page_token:
        return None
    (number,) = decode_token(page_token, int)
    return max(0, min(int(number), MAX_SEQUENCE))
