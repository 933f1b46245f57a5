"""Serves phylactery.memory.v1.MemoryService: one servicer of the parts beside it."""

from __future__ import annotations

from phylactery_memory.context import Contexts
from phylactery_memory.memories import Memories
from phylactery_memory.profiles import Profiles
from phylactery_memory.servicers.context import ContextRpcs
from phylactery_memory.servicers.memories import MemoryRpcs
from phylactery_memory.servicers.profile import ProfileRpcs
from phylactery_memory.servicers.threads import ThreadRpcs
from phylactery_memory.servicers.transcript import TranscriptRpcs
from phylactery_memory.threads import Threads
from phylactery_memory.transcript import Transcript


class MemoryServicer(TranscriptRpcs, ThreadRpcs, MemoryRpcs, ProfileRpcs, ContextRpcs):
    """Every RPC of MemoryService."""

    def __init__(
        self, transcript: Transcript, threads: Threads, memories: Memories, profiles: Profiles, contexts: Contexts
    ) -> None:
        TranscriptRpcs.__init__(self, transcript)
        ThreadRpcs.__init__(self, threads)
        MemoryRpcs.__init__(self, memories)
        ProfileRpcs.__init__(self, profiles)
        ContextRpcs.__init__(self, contexts)
