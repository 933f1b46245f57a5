"""What the service does with outputs, whoever speaks to it: take one in, tell about it, read a range."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from phylactery_chassis.clock import Clock
from phylactery_chassis.identity import Principal, Role
from phylactery_chassis.ids import new_id

from phylactery_memory.domain.outputs import (
    MAX_READ_CHARS,
    Intake,
    OutputRange,
    OutputRecord,
    OutputRules,
    OutputSpec,
    assemble,
    checked_offset,
    not_found,
    placeholder,
)
from phylactery_memory.store.outputs import OutputStore


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of an output: its pointer and placeholder are empty where it was not evicted."""

    record: OutputRecord
    placeholder: str
    preview_head: str
    preview_tail: str


class Outputs:
    """Keeps and reads outputs for the principal each call names."""

    def __init__(self, store: OutputStore, rules: OutputRules, clock: Clock) -> None:
        """Takes the store, the thresholds and the time."""
        self.rules = rules
        self._store = store
        self._clock = clock

    async def store(self, owner: Principal, spec: OutputSpec, pieces: AsyncIterator[bytes]) -> Stored:
        """Takes an output's UTF-8 bytes until they end; an evicted one is durable before this answers.

        Whatever pieces raises leaves nothing behind. Raises PermissionDenied, InvalidArgument, ResourceExhausted
        OUTPUT_TOO_LARGE, AlreadyExists OUTPUT_CONFLICT, Unavailable.
        """
        owner.require(Role.CALLER)
        intake = Intake(new_id("out"), self.rules.max_bytes)
        async for piece in pieces:
            intake.feed(piece)
        record = intake.finish(spec)
        if not self.rules.evicts(record.size_chars):
            return Stored(record, "", intake.preview_head, intake.preview_tail)
        record = replace(record, pointer=intake.pointer, create_us=self._clock.now_us())
        record = await self._store.put(owner, record, intake.chunks)
        return Stored(record, placeholder(record), intake.preview_head, intake.preview_tail)

    async def get(self, owner: Principal, pointer: str) -> OutputRecord:
        """Answers what is known about the owner's output. Raises PermissionDenied, NotFound, Unavailable."""
        owner.require(Role.CALLER)
        record = await self._store.get(owner, pointer)
        if record is None:
            raise not_found(pointer)
        return record

    async def read(self, owner: Principal, pointer: str, offset: int, limit: int) -> OutputRange:
        """Answers the characters from offset, at most limit; limit 0 means 10,000.

        Raises PermissionDenied, NotFound, OutOfRange RANGE_PAST_END, DataLoss OUTPUT_CORRUPT, Unavailable.
        """
        owner.require(Role.CALLER)
        limit = limit or MAX_READ_CHARS
        found = await self._store.read(owner, pointer, offset, limit)
        if found is None:
            raise not_found(pointer)
        record, chunks = found
        return assemble(record, chunks, checked_offset(record, offset), limit)
