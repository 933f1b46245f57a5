"""Memories between the wire and the domain."""

from __future__ import annotations

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from phylactery.memory.v1 import profile_pb2, user_memory_pb2
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_memory.domain.memories import NEVER, Memory, Origin
from phylactery_memory.domain.write_policy import Decision
from phylactery_memory.memories import Written


def time_data(message: Any, field: str) -> dict[str, int] | None:
    """Answers a timestamp field as the edge takes it, None where it is unset."""
    if not message.HasField(field):
        return None
    time: Timestamp = getattr(message, field)
    return {"seconds": time.seconds, "nanos": time.nanos}


def lineage_data(
    message: user_memory_pb2.WriteMemoryRequest | profile_pb2.SetProfileFieldsRequest,
) -> list[dict[str, str]]:
    """Answers a request's lineage as the edge takes it."""
    return [
        {"thread_id": item.message.thread_id, "message_id": item.message.message_id, "pointer": item.pointer}
        for item in message.lineage
    ]


def memory_message(memory: Memory) -> user_memory_pb2.Memory:
    """Answers a memory as the wire carries it: text of a tool or the web stands in untrusted_text alone."""
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
    """Answers a decision as the wire carries it."""
    return user_memory_pb2.WriteDecision(
        layer=user_memory_pb2.MemoryLayer.ValueType(decision.layer or 0),
        reasons=[user_memory_pb2.WriteReason.Value(f"WRITE_REASON_{reason}") for reason in decision.reasons],
        explanation_en=decision.explain("en"),
        explanation_es=decision.explain("es"),
        profile_field=decision.profile.attribute if decision.profile else "",
        profile_value=decision.profile.value if decision.profile else "",
    )


def written_message(written: Written) -> user_memory_pb2.WriteMemoryResponse:
    """Answers what became of a text as the wire carries it."""
    return user_memory_pb2.WriteMemoryResponse(
        decision=decision_message(written.decision),
        memory=memory_message(written.memory) if written.memory else None,
        created=written.created,
        embedding_skipped=written.embedding_skipped,
    )


def lineage_message(origin: Origin) -> user_memory_pb2.Lineage:
    """Answers one thing a memory was made from as the wire carries it."""
    if origin.pointer:
        return user_memory_pb2.Lineage(pointer=origin.pointer)
    return user_memory_pb2.Lineage(
        message=user_memory_pb2.MessageRef(thread_id=origin.thread_id, message_id=origin.message_id)
    )
