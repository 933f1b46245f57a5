"""Serves phylactery.memory.v1.MemoryService: one servicer of the parts beside it."""

from __future__ import annotations

from phylactery_memory.servicers.transcript import TranscriptRpcs


class MemoryServicer(TranscriptRpcs):
    """Every RPC of MemoryService."""
