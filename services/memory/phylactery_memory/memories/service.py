"""Memories: decide and write, search, list, change, forget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import Aborted, FailedPrecondition, InvalidArgument, ResourceExhausted, Violation
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crypto import sha256
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from phylactery_memory.memories import index, lineage, pending_vectors
from phylactery_memory.memories.embeddings import Embedded, Embedder
from phylactery_memory.memories.model import (
    NEVER,
    THE_USER,
    Kind,
    Layer,
    Memory,
    Origin,
    Source,
    Trust,
    check_etag,
    not_found,
    repeated,
    succeed,
    supersede,
    superseded,
)
from phylactery_memory.memories.store import Filter, MemoryRepository, MemoryStore
from phylactery_memory.memories.write_policy import Decision, Proposal, Reason, aside, decide, find_secret
from phylactery_memory.memories.write_rules import Slot, slot_in, statements
from phylactery_memory.metrics import Metrics
from phylactery_memory.retrieval.index import Mask, Records, label
from phylactery_memory.retrieval.ranking import Hits, best_first, bm25, fused, hits_of, in_conversation
from phylactery_memory.retrieval.vectors import cosines
from phylactery_memory.retrieval.words import terms_of_query


@dataclass(frozen=True, slots=True)
class Change:
    """Changes to a memory; None leaves a field unchanged. invalid_us NEVER makes it current again."""

    text: str | None = None
    kind: Kind | None = None
    importance: float | None = None
    invalid_us: int | None = None


def standing_memory(shelf: MemoryRepository, memory_id: str) -> Memory:
    """Return a memory of the user. Raise NotFound."""
    memory = shelf.get(memory_id)
    if memory is None:
        raise not_found(memory_id)
    return memory


def known(shelf: MemoryRepository, new: Memory) -> Memory | None:
    """Return the existing memory that a new text repeats: one current when the new one begins, or never retired."""
    for memory in shelf.same_text(new.content_hash):
        holds = memory.valid_us <= new.valid_us < memory.invalid_us
        if (holds or (memory.invalid_us == NEVER and not new.attribute)) and not _is_less(memory, new):
            return memory
    return None


def _is_less(standing: Memory, new: Memory) -> bool:
    """Return True if an untrusted text was kept without the attribute that the new memory now sets."""
    return bool(new.attribute) and standing.attribute != new.attribute and repeated(standing, new) is not standing


def outdone(shelf: MemoryRepository, new: Memory) -> list[Memory]:
    """Return, retired, the memories of the same text that the new one makes redundant."""
    twins = shelf.same_text(new.content_hash) if new.attribute else []
    return [
        retired
        for twin in twins
        if _is_less(twin, new) and twin.valid_us <= new.valid_us < twin.invalid_us
        for retired in supersede(new, twin)[1]
    ]


def check_current(facts: Sequence[Memory], wanted: str, at_us: int) -> None:
    """Raise Aborted MEMORY_CHANGED unless the current fact has the hash the caller last saw."""
    holding = [fact for fact in facts if fact.valid_us <= at_us < fact.invalid_us]
    if not any(fact.content_hash == wanted for fact in holding):
        raise Aborted(
            "MEMORY_CHANGED",
            "the fact that holds now is another than if_content_hash names; look at it again before replacing it",
            metadata={"etag": holding[0].etag if holding else ""},
        )


def changed(shelf: MemoryRepository, standing: Memory, change: Change, now_us: int) -> Memory:
    """Return the memory with its changes except the text. Raise InvalidArgument, FailedPrecondition."""
    changes: dict[str, object] = {}
    if change.kind is not None:
        changes["kind"] = change.kind
    if change.importance is not None:
        changes["importance"] = change.importance
    if change.invalid_us is not None and change.invalid_us != standing.invalid_us:
        changes["invalid_us"] = _ending(shelf, standing, change.invalid_us)
    if change.text is not None and (standing.superseded_by or standing.invalid_us <= now_us):
        raise superseded(standing)
    return standing.changed(now_us, **changes)


def _ending(shelf: MemoryRepository, standing: Memory, invalid_us: int) -> int:
    if standing.superseded_by:
        raise superseded(standing)
    if invalid_us <= standing.valid_us:
        raise InvalidArgument(
            "INVALID_REQUEST",
            "invalid_at must be after valid_at",
            violations=[Violation("invalid_at", "must be after valid_at")],
        )
    others = shelf.same_text(standing.content_hash)
    if standing.attribute:
        others += shelf.facts(standing.about, standing.attribute)
    for other in others:
        meets = other.valid_us < invalid_us and other.invalid_us > max(standing.valid_us, standing.invalid_us)
        if other.memory_id != standing.memory_id and meets and invalid_us > standing.invalid_us:
            raise FailedPrecondition(
                "MEMORY_SUPERSEDED",
                f"memory '{other.memory_id}' superseded it; write the current fact as a new memory",
                metadata={"superseded_by": other.memory_id},
            )
    return invalid_us


DEFAULT_LIMIT = 10
MOST_ASKED_FOR = 4
"""Statements of a text kept on request that are kept apart: who asked takes them back together, by their ids."""
LEAST_SHARE = 0.5
"""The share of the best match that another must have to be as good an answer."""
_SOME = 1e-9
"""More than no match."""
DEFAULT_PAGE_SIZE = 50
MAX_PAGE_CHARACTERS = 500_000


class Profile(Protocol):
    """Accepts a stable preference in the transaction that writes its memory."""

    def take(
        self,
        connection: Connection,
        owner: Principal,
        field: str,
        value: str,
        memory: Memory,
        *,
        only_held: bool = False,
    ) -> None:
        """Set the field from a memory; with ``only_held`` only a field that has a value."""
        ...

    def finish(self, connection: Connection, owner: Principal, ends: Slot, field: str, memory: Memory) -> None:
        """End a field that holds what a memory says is over."""
        ...

    def drop(self, connection: Connection, owner: Principal, memory_id: str) -> None:
        """Remove what was taken from a memory that was forgotten or changed."""
        ...

    def end(self, connection: Connection, owner: Principal, memory: Memory) -> None:
        """End what was taken from a memory, if it is still current, when the memory ends."""
        ...

    def restore(self, connection: Connection, owner: Principal, memory_id: str) -> None:
        """Make current again what was taken from a memory that is valid again."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to be remembered. valid_us None means now; empty and 0 leave a field to the policy."""

    text: str
    source: Source
    lineage: tuple[Origin, ...] = ()
    kind: Kind | None = None
    keep: bool = False
    importance: float = 0.0
    thread_id: str = ""
    sequence: int = 0
    about: str = ""
    attribute: str = ""
    valid_us: int | None = None
    supersedes: str = ""
    if_content_hash: str = ""
    unconfirmed: Source = Source.ASSISTANT


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a draft; memory is None if nothing was kept."""

    decision: Decision
    memory: Memory | None = None
    created: bool = False
    embedding_skipped: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A found memory and its score."""

    memory: Memory
    score: float


@dataclass(frozen=True, slots=True)
class Matches:
    """The results of a search, best first."""

    matches: Sequence[Match] = ()
    embedding_skipped: str = ""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """A page of memories; next_before is the number to continue before, 0 at the end."""

    memories: Sequence[Memory] = ()
    next_before: int = 0


class Memories:
    """Stores and searches the memories of each call's principal."""

    def __init__(
        self,
        store: MemoryStore,
        embedder: Embedder,
        clock: Clock,
        *,
        limit: int,
        profile: Profile | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """``limit`` is the maximum number of memories per user; profile and metrics are optional."""
        self.clock = clock
        self._store = store
        self._embedder = embedder
        self._limit = limit
        self._profile = profile
        self._metrics = metrics

    async def write(self, owner: Principal, draft: Draft) -> Written:
        """Apply the write policy to a text and store it; return once it is durable.

        What states several attributes is kept as several memories, so that each can end alone, and the first is
        returned; written again after a crash between them, the first ones are known.

        Raise PermissionDenied, FailedPrecondition LINEAGE_NOT_FOUND, MEMORY_SUPERSEDED, MEMORY_TRUSTED_MORE, NotFound,
        Aborted MEMORY_CHANGED, ResourceExhausted MEMORY_LIMIT, Unavailable.
        """
        whole = draft.source is not Source.USER or draft.kind or draft.attribute or draft.supersedes
        parts = [] if whole else statements(draft.text)
        if len(parts) == 1 and not draft.keep:
            draft = replace(draft, text=parts[0])
        if len(parts) < 2 or (draft.keep and len(parts) > MOST_ASKED_FOR):  # noqa: PLR2004 - one statement
            return await self._write_one(owner, draft)
        found = await self._store.ask(lambda connection: lineage.find(connection, owner, draft.lineage))
        if any(one.trust is Trust.UNTRUSTED for one in found.evidence):  # only a person's own words are kept apart
            return await self._write_one(owner, draft)
        written = [await self._write_one(owner, replace(draft, text=part)) for part in parts]
        return next((one for one in written if one.memory is not None), written[0])

    async def _write_one(self, owner: Principal, draft: Draft) -> Written:
        owner.require(Role.CALLER)
        if draft.source is Source.SYSTEM:
            owner.require(Role.OPERATOR)
        found = await self._store.ask(lambda connection: lineage.find(connection, owner, draft.lineage))
        proposal = Proposal(
            draft.text,
            draft.source,
            found.evidence,
            owner.delegated,
            draft.unconfirmed,
            draft.kind,
            draft.keep,
            draft.attribute,
        )
        characters = len(draft.text) + sum(len(behind.words) for behind in found.evidence)
        decision = await aside(characters, lambda: decide(proposal))
        if decision.layer is None:
            self._count("none")
            return Written(decision)
        if decision.profile is not None and self._profile is None:
            decision = replace(decision, layer=Layer.SEMANTIC, profile=None)
        memory = self._drafted(draft, decision, found)
        embedded = await self._embedder.embed([draft.text])

        def work(shelf: MemoryRepository) -> Written:
            lineage.find(shelf.connection, owner, draft.lineage)  # it may have been erased while vectors were computed
            return self._write(shelf, draft, decision, memory, embedded)

        written = await self._store.write(owner, work)
        self._count((written.decision.layer or Layer.SEMANTIC).name.lower())
        return written

    async def search(
        self, owner: Principal, query: str, limit: int, wanted: Filter, *, only_matching: bool = False
    ) -> Matches:
        """Return the owner's memories for a query, best first; limit 0 means 10.

        With ``only_matching`` without what stands only beside a match, and what matches much less than the best.

        Raise PermissionDenied, Unavailable.
        """
        owner.require(Role.CALLER)
        embedded = await self._embedder.embed([query])
        found = await self._store.read(
            owner,
            lambda shelf: self._find(
                shelf, query, limit or DEFAULT_LIMIT, wanted, embedded, only_matching=only_matching
            ),
        )
        return Matches(found or (), embedded.skipped)

    async def page(self, owner: Principal, wanted: Filter, *, before: int | None, page_size: int) -> MemoryPage:
        """Return memories numbered below ``before`` (None: from the newest), newest first; page_size 0 means 50.

        Raise PermissionDenied, Unavailable.
        """
        owner.require(Role.CALLER)
        size = page_size or DEFAULT_PAGE_SIZE
        found = await self._store.read(owner, lambda shelf: shelf.page(wanted, before=before, limit=size + 1)) or []
        count, characters = 0, 0
        for memory in found[:size]:
            characters += len(memory.text)
            if count and characters > MAX_PAGE_CHARACTERS:
                break
            count += 1
        page = found[:count]
        return MemoryPage(page, page[-1].number if len(found) > count else 0)

    async def told(self, owner: Principal, attribute: str) -> tuple[Memory, str] | None:
        """Return the memory in which the person said what an attribute of theirs holds now, and its value.

        Raise PermissionDenied, Unavailable.
        """
        owner.require(Role.CALLER)
        now_us = self.clock.now_us()
        facts = await self._store.read(owner, lambda shelf: shelf.facts(THE_USER, attribute)) or []
        holding = [one for one in facts if one.valid_us <= now_us < one.invalid_us and one.trust >= Trust.USER]
        if not holding:
            return None
        fact = holding[-1]
        slot = await aside(len(fact.text), lambda: slot_in(fact.text, attribute))
        return None if slot is None or slot.ends else (fact, slot.value)

    async def update(self, owner: Principal, memory_id: str, etag: str, change: Change) -> Memory:
        """Change a memory if it is unchanged since the caller read it; a new text supersedes it as a new memory.

        Only an operator changes what the operator said. Raise PermissionDenied, NotFound, Aborted MEMORY_CHANGED,
        InvalidArgument MEMORY_SECRET or INVALID_REQUEST, FailedPrecondition MEMORY_SUPERSEDED, ResourceExhausted
        MEMORY_LIMIT, Unavailable.
        """
        owner.require(Role.CALLER)
        if change.text is not None and (secret := find_secret(change.text)):
            raise InvalidArgument(
                "MEMORY_SECRET",
                "the new text holds a password, a card's number or a key, which is never stored; remove it",
                metadata={"secret": secret.value},
                violations=[Violation("text", "contains a secret")],
            )
        embedded = await self._embedder.embed([change.text]) if change.text is not None else Embedded()
        now_us = self.clock.now_us()

        def work(shelf: MemoryRepository) -> Memory:
            standing = standing_memory(shelf, memory_id)
            if standing.trust is Trust.SYSTEM:
                owner.require(Role.OPERATOR)
            check_etag(standing, etag)
            after = changed(shelf, standing, change, now_us)
            if change.text is None or sha256(change.text) == standing.content_hash:
                shelf.put(after)
                if after.invalid_us != NEVER:
                    self._drop(shelf, memory_id)
                return after
            self._drop(shelf, memory_id)
            return self._rewritten(shelf, after, change.text, embedded)

        return await self._store.write(owner, work)

    async def forget(
        self, owner: Principal, memory_id: str, etag: str, *, restore_superseded: bool = False
    ) -> Sequence[str]:
        """Remove a memory, its words and its vectors; etag may be empty. Return the memories that are valid again.

        With ``restore_superseded`` these are the ones that it had superseded, unless somebody changed them since. Raise
        PermissionDenied, NotFound, Aborted MEMORY_CHANGED, FailedPrecondition MEMORY_SUPERSEDED if the memory was
        itself superseded, Unavailable.
        """
        owner.require(Role.CALLER)
        now_us = self.clock.now_us()

        def work(shelf: MemoryRepository) -> Sequence[str]:
            standing = standing_memory(shelf, memory_id)
            if etag:
                check_etag(standing, etag)
            if restore_superseded and standing.superseded_by:
                raise superseded(standing)
            shelf.remove(standing)
            self._drop(shelf, memory_id)
            return self._restored(shelf, standing, now_us) if restore_superseded else ()

        return await self._store.write(owner, work)

    def _restored(self, shelf: MemoryRepository, gone: Memory, now_us: int) -> list[str]:
        """Make valid again what a memory that is gone had superseded, and return which.

        What was removed since, or given another end, stays as it is: that was somebody's later word.
        """
        restored = []
        for name in gone.supersedes:
            old = shelf.get(name)
            if old is None or old.superseded_by != gone.memory_id:
                continue
            shelf.put(old.changed(now_us, invalid_us=gone.invalid_us, superseded_by=""))
            if self._profile is not None:
                self._profile.restore(shelf.connection, shelf.owner, name)
            restored.append(name)
        return restored

    def _count(self, layer: str) -> None:
        if self._metrics is not None:
            self._metrics.wrote(layer)

    def _drop(self, shelf: MemoryRepository, memory_id: str) -> None:
        """Remove what the profile took from a memory."""
        if self._profile is not None:
            self._profile.drop(shelf.connection, shelf.owner, memory_id)

    def _drafted(self, draft: Draft, decision: Decision, found: lineage.Found) -> Memory:
        now_us = self.clock.now_us()
        attribute = draft.attribute or (decision.attribute if draft.about in ("", THE_USER) else "")
        return Memory(
            memory_id=new_id("mem"),
            text=draft.text,
            layer=decision.layer or Layer.SEMANTIC,
            kind=decision.kind,
            source=decision.source,
            trust=decision.trust,
            lineage=draft.lineage,
            importance=draft.importance,
            thread_id=draft.thread_id or found.thread_id,
            sequence=draft.sequence or (found.sequence if draft.thread_id in ("", found.thread_id) else 0),
            about=(draft.about or THE_USER) if attribute else "",
            attribute=attribute,
            valid_us=now_us if draft.valid_us is None else draft.valid_us,
            create_us=now_us,
            update_us=now_us,
        )

    def _write(
        self, shelf: MemoryRepository, draft: Draft, decision: Decision, memory: Memory, embedded: Embedded
    ) -> Written:
        if decision.ends is not None:
            memory = self._ending(shelf, decision.ends, memory)
        facts = shelf.facts(memory.about, memory.attribute) if memory.attribute else []
        if draft.valid_us is None:  # said now, so after everything said before, even if the clock was set back
            memory = replace(memory, valid_us=max(memory.valid_us, *(fact.create_us for fact in facts), 0))
        if draft.if_content_hash:
            check_current(facts, draft.if_content_hash, memory.valid_us)
        same = known(shelf, memory)
        if same is not None and not draft.supersedes:
            after = repeated(same, memory)
            if after is not same:
                shelf.put(after)
                self._hand_over(shelf, decision, after)
            return Written(replace(decision, layer=after.layer, reasons=(Reason.KNOWN, *decision.reasons)), after)
        memory, retired = succeed(memory, facts)
        retired += outdone(shelf, memory)
        if draft.supersedes and draft.supersedes not in {old.memory_id for old in retired}:
            memory, also = supersede(memory, standing_memory(shelf, draft.supersedes))
            retired += also
        for old in retired:
            shelf.put(old)
        kept = self._add(shelf, memory, embedded)
        self._hand_over(shelf, decision, kept)
        if self._profile is not None:
            for old in retired:
                self._profile.end(shelf.connection, shelf.owner, old)
        return Written(decision, kept, created=True, embedding_skipped=embedded.skipped)

    def _ending(self, shelf: MemoryRepository, ends: Slot, memory: Memory) -> Memory:
        """Return a memory that says that something is over as the fact that takes its place, if it holds.

        "I don't live in Lima" takes the place of "I live in Lima" and of nothing else. A value that was set in the
        profile directly ends too.
        """
        for attribute in ends.attribute.split():
            if self._profile is not None:
                self._profile.finish(shelf.connection, shelf.owner, ends, attribute, memory)
            holding = [
                one for one in shelf.facts(THE_USER, attribute) if one.valid_us <= memory.valid_us < one.invalid_us
            ]
            if any(ends.concerns(slot_in(one.text, attribute)) for one in holding):
                return replace(memory, about=THE_USER, attribute=attribute)
        return memory

    def _add(self, shelf: MemoryRepository, memory: Memory, embedded: Embedded) -> Memory:
        if shelf.count >= self._limit:
            raise ResourceExhausted(
                "MEMORY_LIMIT",
                f"this user has {shelf.count} memories, as many as one may have; forget some first",
                metadata={"limit": str(self._limit)},
            )
        (kept,) = shelf.add([memory])
        if embedded.vectors:
            vectors = {kept.number: embedded.vectors[0]}
            index.add_vectors(shelf.connection, shelf.owner_id, self._embedder.model, vectors)
        elif embedded.skipped:
            pending_vectors.add(shelf.connection, shelf.owner_id, kept)
        return kept

    def _hand_over(self, shelf: MemoryRepository, decision: Decision, memory: Memory) -> None:
        """Pass a memory to the profile, unless it is in the past or was kept without its attribute."""
        current = memory.invalid_us == NEVER and memory.attribute and memory.about == THE_USER
        slot = decision.profile or (slot_in(memory.text, memory.attribute) if current else None)
        if self._profile is not None and slot is not None and not slot.ends and current:
            self._profile.take(
                shelf.connection,
                shelf.owner,
                slot.attribute,
                slot.value,
                memory,
                only_held=decision.profile is None,
            )

    def _rewritten(self, shelf: MemoryRepository, old: Memory, text: str, embedded: Embedded) -> Memory:
        now_us = old.update_us
        new = replace(
            old,
            memory_id=new_id("mem"),
            text=text,
            layer=Layer.SEMANTIC,
            trust=min(old.trust, Trust.ASSISTANT) if shelf.owner.delegated else old.trust,
            valid_us=max(now_us, old.valid_us),
            create_us=now_us,
            supersedes=(old.memory_id,),
            revision=1,
        )
        kept = known(shelf, new) or self._add(shelf, new, embedded)
        shelf.put(replace(old, invalid_us=new.valid_us, superseded_by=kept.memory_id))
        return kept

    def _find(
        self,
        shelf: MemoryRepository,
        query: str,
        limit: int,
        wanted: Filter,
        embedded: Embedded,
        *,
        only_matching: bool,
    ) -> list[Match]:
        records = index.records(shelf.connection, shelf.owner_id)
        eligible = _eligible(records, wanted)
        hits: Hits = ()
        scores = np.zeros(len(records), dtype=np.float64)
        for subjects in (False, True):  # words about the same subject only where the words themselves are not found
            if not scores[eligible].any():
                found = terms_of_query(query, subjects=subjects).counts
                hits = hits_of(records, index.postings(shelf.connection, shelf.owner_id, found))
                scores = bm25(records["length"], hits)
        if embedded.vectors:
            blocks = index.vectors(shelf.connection, shelf.owner_id, self._embedder.model)
            scores = fused(scores, cosines(records, blocks, embedded.vectors[0]))
        if only_matching and eligible.any():
            eligible &= scores >= max(LEAST_SHARE * float(scores[eligible].max()), _SOME)
        scores = in_conversation(records, scores, hits)
        places = best_first(records, scores, eligible, limit)
        by_number = shelf.by_number([int(number) for number in records["number"][places]])
        return [Match(by_number[int(records["number"][place])], float(scores[place])) for place in places]


def _eligible(records: Records, wanted: Filter) -> Mask:
    eligible: Mask = np.ones(len(records), dtype=bool)
    if wanted.at_us is not None:
        eligible &= (records["valid_us"] <= wanted.at_us) & (records["invalid_us"] > wanted.at_us)
    if wanted.thread_id:
        eligible &= records["thread"] == np.uint64(label(wanted.thread_id))
    if wanted.kind:
        eligible &= records["kind"] == wanted.kind
    if wanted.layer:
        eligible &= records["layer"] == wanted.layer
    if wanted.min_trust:
        eligible &= records["trust"] >= wanted.min_trust
    return eligible
