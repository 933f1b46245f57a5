"""Messages between the wire and the domain."""

from __future__ import annotations

from phylactery.memory.v1 import memory_pb2
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_memory.domain.messages import Message

ROLE_OF_ENUM = {
    memory_pb2.ROLE_USER: "user",
    memory_pb2.ROLE_ASSISTANT: "assistant",
    memory_pb2.ROLE_TOOL: "tool",
}
_ENUM_OF_ROLE = {name: number for number, name in ROLE_OF_ENUM.items()}


def message_message(message: Message) -> memory_pb2.Message:
    """Answers a message as the wire carries it."""
    return memory_pb2.Message(
        message_id=message.message_id,
        role=_ENUM_OF_ROLE[message.role],
        content=message.content,
        run_id=message.run_id,
        create_time=to_timestamp(message.create_us),
        sequence=message.sequence,
    )
