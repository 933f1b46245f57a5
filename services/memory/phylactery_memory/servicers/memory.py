"""Serves phylactery.memory.v1.MemoryService: one servicer of the parts beside it."""

from __future__ import annotations

from phylactery_memory.memories import Memories
from phylactery_memory.servicers.memories import MemoryRpcs
from phylactery_memory.servicers.transcript import TranscriptRpcs
from phylactery_memory.transcript import Transcript


class MemoryServicer(TranscriptRpcs, MemoryRpcs):
    """Every RPC of MemoryService."""

    def __init__(self, transcript: Transcript, memories: Memories) -> None:
        TranscriptRpcs.__init__(self, transcript)
        MemoryRpcs.__init__(self, memories)
