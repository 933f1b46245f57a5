"""Outputs: store, describe, read, search, remove."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import DataLoss
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.ids import new_id
from phylactery_chassis.util.limits import Lanes, Places

from phylactery_memory.keys.ring import HeldKey, UserKeys
from phylactery_memory.outputs import grep
from phylactery_memory.outputs.chunks import Chunk, Intake
from phylactery_memory.outputs.model import (
    MAX_READ_CHARS,
    Keeping,
    OutputRecord,
    OutputRules,
    OutputSpec,
    check_rehydration,
    checked_line,
    checked_offset,
    corrupt,
    not_found,
    not_stored,
    over_quota,
    placeholder,
)
from phylactery_memory.outputs.ranges import OutputRange, Passage, characters, line_offset, lines
from phylactery_memory.outputs.rows import SealedOutput
from phylactery_memory.outputs.sealing import Opener, SealedChunk
from phylactery_memory.outputs.store import OutputStore, Page

DEFAULT_PAGE_SIZE = 50
_SEARCH_SECONDS = 1.0
_SEARCH_CHUNKS = 32
"""Chunks that a search fetches at once: about 2 MB of text."""
_SEARCHES = 2
_SEARCHES_OF_USER, _SEARCHES_OF_ALL = 4, 256
"""Waiting searches per user and in total. A user's searches run one at a time, for a few seconds at most, so that one
behind three others is still answered in time."""
_MAX_CHAR_BYTES = 4
"""The maximum size of a UTF-8 character."""
_SMALL = 16 * 1024
"""Inputs up to this size are cut and sealed faster than they are handed to a thread."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stored:
    """The outcome of storing an output; its placeholder is empty if it was not evicted."""

    record: OutputRecord
    placeholder: str
    preview_head: str
    preview_tail: str


@dataclass(frozen=True, slots=True)
class Found:
    """Some of a search's matches, and where to continue."""

    matches: Sequence[grep.Match]
    next_offset: int
    total_chars: int


@dataclass(frozen=True, slots=True)
class OutputPage:
    """A page of outputs; next_before is the position to continue before, None at the end.

    broken holds the pointers of outputs whose record does not match its seal.
    """

    records: Sequence[OutputRecord]
    next_before: tuple[int, str] | None
    broken: Sequence[str] = ()


class _Incoming:
    """An output being received: cut into chunks, and sealed once it is certain that it will be stored."""

    def __init__(self, owner: Principal, keys: UserKeys, rules: OutputRules, keeping: Keeping) -> None:
        self.pointer = new_id("out")
        self.intake = Intake(rules.max_bytes)
        self.sealed: list[SealedChunk] = []
        self.key: HeldKey | None = None
        self._owner, self._keys, self._rules, self._keeping = owner, keys, rules, keeping
        self._plain: list[Chunk] = []

    @property
    def stores(self) -> bool:
        """True if the text so far is to be stored."""
        return not self._keeping.do_not_store and (self._keeping.keep or self._rules.evicts(self.intake.size_chars))

    async def feed(self, piece: bytes) -> None:
        """Add the next bytes."""
        if len(piece) <= _SMALL:
            await self._keep(self.intake.feed(piece))
        elif self._will_store(len(piece)):
            key = await self.held()
            self.sealed += await asyncio.to_thread(self._cut_and_seal, key, piece)
        else:
            await self._keep(await asyncio.to_thread(self.intake.feed, piece))

    async def finish(self) -> None:
        """Signal the end of the stream."""
        await self._keep(self.intake.finish())

    async def held(self) -> HeldKey:
        """Return the owner's key."""
        if self.key is None:
            self.key = await self._keys.hold(self._owner)
        return self.key

    async def _keep(self, chunks: list[Chunk]) -> None:
        if self._keeping.do_not_store:
            return
        self._plain += chunks
        if not self._plain or not self.stores:
            return
        self._check_quota()
        key = await self.held()
        self.sealed += await asyncio.to_thread(key.vault.seal, self.pointer, self._plain)
        self._plain.clear()

    def _will_store(self, more_bytes: int) -> bool:
        """Return True if the text will be stored after this many more bytes, whatever characters they are."""
        least_chars = (self.intake.size_bytes + more_bytes) // _MAX_CHAR_BYTES
        return not self._keeping.do_not_store and (self._keeping.keep or self._rules.evicts(least_chars))

    def _cut_and_seal(self, key: HeldKey, piece: bytes) -> list[SealedChunk]:
        """Process a large piece in one go, in a thread."""
        chunks = [*self._plain, *self.intake.feed(piece)]
        self._plain.clear()
        self._check_quota()
        return key.vault.seal(self.pointer, chunks)

    def _check_quota(self) -> None:
        """Raise ResourceExhausted if this text alone exceeds the quota; existing outputs count when it is stored."""
        if self.intake.size_bytes > self._rules.quota_bytes:
            raise over_quota(self._rules.quota_bytes)


class Outputs:
    """Stores and reads outputs of each call's principal."""

    def __init__(self, store: OutputStore, keys: UserKeys, rules: OutputRules, clock: Clock) -> None:
        """``keys`` are the users' data keys, ``rules`` the limits."""
        self.rules = rules
        self.clock = clock
        self._store = store
        self._keys = keys
        self._lanes = Lanes(_SEARCHES, "output-search")
        self._places = Places("searches", total=_SEARCHES_OF_ALL, each=_SEARCHES_OF_USER)

    def close(self) -> None:
        """Stop the search threads."""
        self._lanes.close()

    async def store(
        self, owner: Principal, spec: OutputSpec, pieces: AsyncIterator[bytes], keeping: Keeping | None = None
    ) -> Stored:
        """Store an output from its UTF-8 bytes; an evicted one is durable on return.

        If ``pieces`` raises, nothing is stored. Raise PermissionDenied, InvalidArgument, ResourceExhausted
        OUTPUT_TOO_LARGE, OUTPUT_QUOTA or STORE_FULL, AlreadyExists OUTPUT_CONFLICT, Aborted OUTPUT_KEY_CHANGED,
        Unavailable.
        """
        owner.require(Role.CALLER)
        keeping = keeping or Keeping()
        incoming = _Incoming(owner, self._keys, self.rules, keeping)
        async for piece in pieces:
            await incoming.feed(piece)
        await incoming.finish()
        intake = incoming.intake
        record = intake.record(spec)
        if incoming.stores or keeping.do_not_store:
            record = await self._put(owner, incoming, record, keeping)
        return Stored(record, placeholder(record) if record.stored else "", intake.preview_head, intake.preview_tail)

    async def get(self, owner: Principal, pointer: str) -> OutputRecord:
        """Return the record of the owner's output. Raise PermissionDenied, NotFound, DataLoss, Unavailable."""
        owner.require(Role.CALLER)
        return self._checked(owner, await self._store.get(owner, pointer, self.clock.now_us()), pointer)[0]

    async def read(self, owner: Principal, pointer: str, offset: int, limit: int) -> OutputRange:
        """Return at most ``limit`` characters from offset; limit 0 means 10,000.

        Raise PermissionDenied, NotFound, FailedPrecondition OUTPUT_NOT_STORED, OutOfRange RANGE_PAST_END, DataLoss
        OUTPUT_CORRUPT, Unavailable.
        """
        record, chunks = await self._range(owner, pointer, offset, limit or MAX_READ_CHARS)
        return characters(record, chunks, offset, limit or MAX_READ_CHARS)

    async def read_lines(
        self, owner: Principal, pointer: str, first: int, count: int, *, skip: int, limit: int
    ) -> OutputRange:
        """Return ``count`` lines from ``first``, without its first ``skip`` characters; 0 means as many as fit limit.

        Raise as read does.
        """
        owner.require(Role.CALLER)
        found = await self._store.before_line(owner, pointer, self.clock.now_us(), first)
        record, opener = self._text_of(owner, None if found is None else found[0], pointer)
        chunk = None if found is None else found[1]
        if checked_line(record, first) > record.size_lines:
            start = record.size_chars
        elif first == 1:
            start = 0
        elif chunk is None:
            raise corrupt(pointer)
        else:
            start = line_offset(opener.open(pointer, chunk), first)
        limit = limit or MAX_READ_CHARS
        record, chunks = await self._range(owner, pointer, start + skip, limit)
        return lines(record, chunks, start + skip, limit, count)

    async def rehydrate(self, owner: Principal, pointer: str) -> tuple[OutputRecord, str]:
        """Return the whole text of an output that may return to a context.

        Raise as read does, and FailedPrecondition OUTPUT_NOT_REHYDRATABLE.
        """
        record = await self.get(owner, pointer)
        check_rehydration(self.rules, record)
        record, chunks = await self._range(owner, pointer, 0, record.size_chars)
        text = Passage(record, chunks).text(0, record.size_chars)
        if hashlib.sha256(text.encode("utf-8")).hexdigest() != record.sha256:
            raise corrupt(pointer)
        return record, text

    async def whole(self, owner: Principal, pointer: str) -> AsyncGenerator[OutputRecord | str]:
        """Yield the record of an output and then its text in parts; the end means that the text was complete.

        Raise as read does.
        """
        record = await self.get(owner, pointer)
        if not record.stored:
            raise not_stored(record)
        yield record
        digest, position = hashlib.sha256(), 0
        while position < record.size_chars:
            found = await self._store.chunks_from(pointer, position, _SEARCH_CHUNKS)
            row = await self._store.get(owner, pointer, self.clock.now_us())  # deleted or erased meanwhile: NOT_FOUND
            _, opener = self._text_of(owner, row, pointer)
            if not found or found[0].place.first_char != position:
                raise corrupt(pointer)
            for sealed in found:
                chunk = opener.open(pointer, sealed)
                digest.update(chunk.body)
                position += chunk.place.chars
                yield chunk.text
        if digest.hexdigest() != record.sha256:
            raise corrupt(pointer)

    async def search(self, owner: Principal, pointer: str, query: grep.Query) -> Found:
        """Return the matches of a pattern from query.offset on, until the answer is full or a second has passed.

        Raise as read does, InvalidArgument INVALID_REQUEST for a pattern that is invalid or takes too long, and
        ResourceExhausted TOO_MANY_CALLS if several of the owner's searches are already waiting.
        """
        owner.require(Role.CALLER)
        give_back = self._places.take((owner.tenant, owner.subject))
        try:
            return await self._searched(owner, pointer, query)
        finally:
            give_back()

    async def _searched(self, owner: Principal, pointer: str, query: grep.Query) -> Found:
        found = await self._store.range(owner, pointer, self.clock.now_us(), query.offset, 1)
        record, opener = self._text_of(owner, None if found is None else found[0], pointer)
        scanner = await self._lanes.run((owner.tenant, owner.subject), partial(grep.Scanner, query))
        if checked_offset(record, query.offset) == record.size_chars or found is None:
            return Found((), record.size_chars, record.size_chars)
        first = Passage(record, [opener.open(pointer, chunk) for chunk in found[1]])
        _, skip = first.position(query.offset)
        at = max(0, query.offset - skip - bool(query.context_lines))
        await self._scan(owner, scanner, opener, record, at)
        return Found(scanner.matches, scanner.next_offset, record.size_chars)

    async def page(self, owner: Principal, page: Page) -> OutputPage:
        """Return the owner's outputs, newest first; size 0 means 50. Raise PermissionDenied, Unavailable."""
        owner.require(Role.CALLER)
        size = page.size or DEFAULT_PAGE_SIZE
        rows = await self._store.page(owner, self.clock.now_us(), replace(page, size=size + 1))
        records, broken = [], []
        for row in rows[:size]:
            try:
                records.append(self._checked(owner, row, row.record.pointer)[0])
            except DataLoss:
                broken.append(row.record.pointer)
        last = rows[size - 1].record if len(rows) > size else None
        return OutputPage(records, None if last is None else (last.create_us, last.pointer), broken)

    async def delete(self, owner: Principal, pointer: str) -> bool:
        """Remove the owner's output and return True if it existed. Raise PermissionDenied, Unavailable."""
        owner.require(Role.CALLER)
        return await self._store.delete(owner, pointer)

    async def _put(self, owner: Principal, incoming: _Incoming, record: OutputRecord, keeping: Keeping) -> OutputRecord:
        key, now_us = await incoming.held(), self.clock.now_us()
        record = replace(
            record,
            pointer=incoming.pointer,
            create_us=now_us,
            expire_us=self.rules.expire_us(now_us, keeping.ttl_us),
            stored=incoming.stores,
        )
        output = SealedOutput(record, key.vault.seal_record(owner, record), key.key_id)
        return (await self._store.put(owner, output, incoming.sealed, self.rules.quota_bytes)).record

    async def _range(
        self, owner: Principal, pointer: str, offset: int, limit: int
    ) -> tuple[OutputRecord, Sequence[Chunk]]:
        owner.require(Role.CALLER)
        found = await self._store.range(owner, pointer, self.clock.now_us(), offset, limit)
        record, opener = self._text_of(owner, None if found is None else found[0], pointer)
        return record, [opener.open(pointer, chunk) for chunk in (() if found is None else found[1])]

    async def _scan(
        self, owner: Principal, scanner: grep.Scanner, opener: Opener, record: OutputRecord, at: int
    ) -> None:
        until = time.monotonic() + _SEARCH_SECONDS
        position, first, lane = at, True, (owner.tenant, owner.subject)
        while not scanner.done and (first or position < record.size_chars):
            chunks = await self._store.chunks_from(record.pointer, position, _SEARCH_CHUNKS)
            if not chunks or (not first and chunks[0].place.first_char != position):
                await self.get(owner, record.pointer)  # deleted, expired or erased in the meantime: NOT_FOUND
                raise corrupt(record.pointer)
            if first:
                scanner.begin(chunks[0].place)
            position = await self._lanes.run(
                (owner.tenant, owner.subject), partial(_feed, scanner, opener, record, chunks, until)
            )
            first = False
            if time.monotonic() > until and scanner.may_stop and position < record.size_chars:
                return
        if not scanner.done:
            await self._lanes.run(lane, scanner.finish)

    def _text_of(self, owner: Principal, found: SealedOutput | None, pointer: str) -> tuple[OutputRecord, Opener]:
        record, opener = self._checked(owner, found, pointer)
        if not record.stored:
            raise not_stored(record)
        return record, opener

    def _checked(self, owner: Principal, found: SealedOutput | None, pointer: str) -> tuple[OutputRecord, Opener]:
        if found is None:
            raise not_found(pointer)
        opener = self._keys.opener(owner, found.key_id, found.key)
        opener.check(owner, found.record, found.seal)
        return found.record, opener


def _feed(
    scanner: grep.Scanner, opener: Opener, record: OutputRecord, chunks: Sequence[SealedChunk], until: float
) -> int:
    """Feed consecutive chunks until time is up, and return where the next one must begin."""
    position = chunks[0].place.first_char
    for chunk in chunks:
        if chunk.place.first_char != position:
            raise corrupt(record.pointer)
        scanner.feed([opener.open(record.pointer, chunk)])
        position += chunk.place.chars
        if time.monotonic() > until and scanner.may_stop:
            break
    return position
