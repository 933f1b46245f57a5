"""gRPC servicer of phylactery.memory.v1.MemoryService, composed of the partial servicers of this package."""

from __future__ import annotations

from phylactery_memory.api.context import ContextRpcs
from phylactery_memory.api.memories import MemoryRpcs
from phylactery_memory.api.profile import ProfileRpcs
from phylactery_memory.api.transcript import ThreadRpcs, TranscriptRpcs
from phylactery_memory.context.service import Contexts
from phylactery_memory.memories.service import Memories
from phylactery_memory.profile.service import Profiles
from phylactery_memory.transcript.service import Threads, Transcript


class MemoryServicer(TranscriptRpcs, ThreadRpcs, MemoryRpcs, ProfileRpcs, ContextRpcs):
    """All RPCs of MemoryService."""

    def __init__(
        self, transcript: Transcript, threads: Threads, memories: Memories, profiles: Profiles, contexts: Contexts
    ) -> None:
        TranscriptRpcs.__init__(self, transcript)
        ThreadRpcs.__init__(self, threads)
        MemoryRpcs.__init__(self, memories)
        ProfileRpcs.__init__(self, profiles)
        ContextRpcs.__init__(self, contexts)
