"""gRPC servicer of phylactery.memory.v1.MemoryService: BuildContext, and the partial servicers of this package."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.memory.v1 import memory_pb2, user_memory_pb2
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import from_message

from phylactery_memory.api.memories import MemoryRpcs, memory_message
from phylactery_memory.api.profile import ProfileRpcs, field_message
from phylactery_memory.api.transcript import TranscriptRpcs, message_message
from phylactery_memory.context.model import BuildContextItem
from phylactery_memory.context.service import Contexts
from phylactery_memory.memories.service import Memories
from phylactery_memory.profile.service import Profiles
from phylactery_memory.transcript.service import Threads, Transcript

Context = aio.ServicerContext[Any, Any]


class MemoryServicer(TranscriptRpcs, MemoryRpcs, ProfileRpcs):
    """All RPCs of MemoryService."""

    def __init__(
        self, transcript: Transcript, threads: Threads, memories: Memories, profiles: Profiles, contexts: Contexts
    ) -> None:
        TranscriptRpcs.__init__(self, transcript, threads)
        MemoryRpcs.__init__(self, memories)
        ProfileRpcs.__init__(self, profiles)
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
