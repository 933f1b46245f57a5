"""Export of everything stored about a user, one record at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TypeAlias

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import DataLoss, NotFound

from phylactery_memory.memories.model import Memory
from phylactery_memory.memories.service import Memories
from phylactery_memory.memories.store import Filter
from phylactery_memory.outputs.model import OutputRecord
from phylactery_memory.outputs.ranges import OutputRange
from phylactery_memory.outputs.service import Outputs
from phylactery_memory.outputs.store import Page
from phylactery_memory.privacy.store import PrivacyStore
from phylactery_memory.profile.model import MAX_SUPERSEDED, ProfileField
from phylactery_memory.profile.service import Profiles
from phylactery_memory.transcript.model import Message
from phylactery_memory.transcript.service import Transcript

_MEMORIES, _OUTPUTS, _MESSAGES = 200, 50, 500
"""Records fetched at once: the memory an export needs does not depend on its size."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first record: the user, and the time of the export in microseconds since the epoch."""

    tenant: str
    subject: str
    time_us: int


@dataclass(frozen=True, slots=True)
class ThreadMessage:
    """A message and its thread."""

    thread_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class OutputText:
    """The next characters of an output."""

    pointer: str
    part: OutputRange


@dataclass(frozen=True, slots=True)
class OutputBroken:
    """An output that does not match its seal, so that the rest of it cannot be read."""

    pointer: str


@dataclass(frozen=True, slots=True)
class End:
    """The last record: the number of records by kind."""

    counts: dict[str, int]


Record: TypeAlias = Header | ThreadMessage | Memory | ProfileField | OutputRecord | OutputText | OutputBroken | End


class Exports:
    """Exports the data of each call's principal, layer by layer."""

    def __init__(
        self, store: PrivacyStore, transcript: Transcript, memories: Memories, profiles: Profiles, outputs: Outputs
    ) -> None:
        self._store = store
        self._transcript = transcript
        self._memories = memories
        self._profiles = profiles
        self._outputs = outputs

    async def export(self, owner: Principal) -> AsyncIterator[Record]:
        """Yield every record; what is removed meanwhile is left out. Raise PermissionDenied, Unavailable."""
        owner.require(Role.CALLER)
        yield Header(owner.tenant, owner.subject, self._memories.clock.now_us())
        counts: Counter[str] = Counter()
        for records in (self._messages, self._all_memories, self._profile, self._all_outputs):
            async for record in records(owner):
                counts[type(record).__name__] += 1
                yield record
        yield End(dict(counts))

    async def _messages(self, owner: Principal) -> AsyncIterator[Record]:
        for thread_id in await self._store.threads(owner):
            before: int | None = None
            while before != 0:
                page = await self._transcript.page(
                    owner, thread_id, before=before, page_size=_MESSAGES, max_characters=0
                )
                for message in page.messages:
                    yield ThreadMessage(thread_id, message)
                before = page.next_before

    async def _all_memories(self, owner: Principal) -> AsyncIterator[Record]:
        before: int | None = None
        while before != 0:
            page = await self._memories.page(owner, Filter(), before=before, page_size=_MEMORIES)
            for memory in page.memories:
                yield memory
            before = page.next_before

    async def _profile(self, owner: Principal) -> AsyncIterator[Record]:
        profile = await self._profiles.get(owner, superseded=MAX_SUPERSEDED)
        for field in (*profile.fields, *profile.superseded):
            yield field

    async def _all_outputs(self, owner: Principal) -> AsyncIterator[Record]:
        before: tuple[int, str] | None = None
        while True:
            page = await self._outputs.page(owner, Page("", "", _OUTPUTS, before))
            for record in page.records:
                yield record
                if record.stored:
                    async for text in self._text(owner, record):
                        yield text
            for pointer in page.broken:
                yield OutputBroken(pointer)
            before = page.next_before
            if before is None:
                return

    async def _text(self, owner: Principal, record: OutputRecord) -> AsyncIterator[Record]:
        offset = 0
        while offset < record.size_chars:
            try:
                part = await self._outputs.read(owner, record.pointer, offset, 0)
            except NotFound:  # it has just expired
                return
            except DataLoss:
                yield OutputBroken(record.pointer)
                return
            yield OutputText(record.pointer, part)
            offset = part.next_offset
