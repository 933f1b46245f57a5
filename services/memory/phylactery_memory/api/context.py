"""The context part of phylactery.memory.v1.MemoryService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc, user_memory_pb2
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import from_message

from phylactery_memory.api.memories import memory_message
from phylactery_memory.api.profile import field_message
from phylactery_memory.api.transcript import message_message
from phylactery_memory.context.model import BuildContextItem
from phylactery_memory.context.service import Contexts

Context = aio.ServicerContext[Any, Any]


class ContextRpcs(memory_pb2_grpc.MemoryServiceServicer):
    """BuildContext."""

    def __init__(self, contexts: Contexts) -> None:
        self._contexts = contexts

    async def BuildContext(
        self, request: memory_pb2.BuildContextRequest, _context: Context
    ) -> memory_pb2.BuildContextResponse:
        """Return the context of a turn."""
        built = await self._contexts.build(current_principal(), from_message(BuildContextItem, request))
        return memory_pb2.BuildContextResponse(
            messages=[message_message(message) for message in built.messages],
            memories=[
                user_memory_pb2.MemoryMatch(memory=memory_message(match.memory), score=match.score)
                for match in built.memories
            ],
            profile=[field_message(field) for field in built.profile],
            older_messages=built.older_messages,
            searched=built.searched,
            embedding_skipped=built.embedding_skipped,
        )
