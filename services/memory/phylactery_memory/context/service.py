"""The context of a turn in one call: window, relevant memories and profile, by pathway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from phylactery_chassis.auth.identity import Principal, Role

from phylactery_memory.context.model import (
    READ_POLICY,
    BuildContextItem,
    Pathway,
    ReadPolicy,
    query_of,
    shown_elsewhere,
    within,
)
from phylactery_memory.memories.service import Match, Matches, Memories
from phylactery_memory.memories.store import Filter
from phylactery_memory.metrics import Metrics
from phylactery_memory.profile.model import Profile, ProfileField, fits
from phylactery_memory.profile.service import Profiles
from phylactery_memory.transcript.model import Message, Page
from phylactery_memory.transcript.service import Transcript

_MOST_MATCHES = 100
"""The maximum number of matches of one search."""
_RESIDENCE = "city"
"""The attribute that is read on every turn though it stays a memory: the agent tells the person's time by it."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a turn: messages oldest first, memories best first, the profile by name."""

    messages: Sequence[Message] = ()
    memories: Sequence[Match] = ()
    profile: Sequence[ProfileField] = ()
    older_messages: bool = False
    searched: bool = False
    embedding_skipped: str = ""


class Contexts:
    """Builds contexts for each call's principal."""

    def __init__(self, transcript: Transcript, memories: Memories, profiles: Profiles, metrics: Metrics) -> None:
        """Read from the three layers and record to ``metrics``."""
        self._transcript = transcript
        self._memories = memories
        self._profiles = profiles
        self._metrics = metrics

    async def build(self, owner: Principal, asked: BuildContextItem) -> Context:
        """Return what the pathway reads. Raise PermissionDenied, Unavailable."""
        owner.require(Role.CALLER)
        began = time.perf_counter()
        pathway = Pathway(asked.pathway)
        policy = READ_POLICY[pathway].narrowed(asked.max_messages, asked.max_characters, asked.max_memories)
        context = await self._read(owner, asked, policy)
        self._metrics.read(pathway.name.lower(), (time.perf_counter() - began) * 1_000)
        if policy.profile:
            self._metrics.profile_hits.count(hit=bool(context.profile))
        if context.searched:
            self._metrics.hits.count(hit=bool(context.memories))
        return context

    async def _read(self, owner: Principal, asked: BuildContextItem, policy: ReadPolicy) -> Context:
        if not policy.messages:
            return Context()
        found: Matches | None
        if policy.memories and asked.query.strip():
            page, profile, residence, found = await asyncio.gather(
                self._window(owner, asked, policy),
                self._profile(owner, policy),
                self._residence(owner, policy),
                self._search(owner, asked.query, policy),
            )
        else:
            page, profile, residence = await asyncio.gather(
                self._window(owner, asked, policy), self._profile(owner, policy), self._residence(owner, policy)
            )
            query = query_of(page.messages) if policy.memories else ""
            found = await self._search(owner, query, policy) if query.strip() else None
        return Context(
            messages=page.messages[::-1],
            memories=_chosen(found.matches, asked.thread_id, page, profile, policy) if found else (),
            profile=_with(profile.fields, residence),
            older_messages=bool(page.next_before),
            searched=found is not None,
            embedding_skipped=found.embedding_skipped if found else "",
        )

    async def _window(self, owner: Principal, asked: BuildContextItem, policy: ReadPolicy) -> Page:
        return await self._transcript.page(
            owner, asked.thread_id, before=None, page_size=policy.messages, max_characters=policy.characters
        )

    async def _profile(self, owner: Principal, policy: ReadPolicy) -> Profile:
        return await self._profiles.get(owner) if policy.profile else Profile()

    async def _residence(self, owner: Principal, policy: ReadPolicy) -> ProfileField | None:
        """Return where the person said that they live, as a field; it is searched for and listed as their memory."""
        told = await self._memories.told(owner, _RESIDENCE) if policy.profile else None
        if told is None or not fits(_RESIDENCE, told[1]):
            return None
        memory, city = told
        return ProfileField(
            name=_RESIDENCE,
            value=city,
            source=memory.source,
            trust=memory.trust,
            lineage=memory.lineage,
            memory_id=memory.memory_id,
            valid_us=memory.valid_us,
        )

    async def _search(self, owner: Principal, query: str, policy: ReadPolicy) -> Matches:
        # More than are shown, because some may be in the window or the profile already.
        limit = min(policy.memories + policy.messages, _MOST_MATCHES)
        return await self._memories.search(owner, query, limit, Filter(at_us=self._memories.clock.now_us()))


def _with(fields: Sequence[ProfileField], other: ProfileField | None) -> Sequence[ProfileField]:
    """Return fields by name with another one, unless they have one of its name."""
    if other is None or any(field.name == other.name for field in fields):
        return fields
    return sorted((*fields, other), key=lambda field: field.name)


def _chosen(
    matches: Sequence[Match], thread_id: str, page: Page, profile: Profile, policy: ReadPolicy
) -> Sequence[Match]:
    """Return the matches to show, best first."""
    sequences = {message.sequence for message in page.messages}
    taken = {field.memory_id for field in profile.fields if field.memory_id}
    new = [match for match in matches if not shown_elsewhere(match.memory, thread_id, sequences, taken)]
    sizes = [len(match.memory.text) for match in new]
    return [new[place] for place in within(sizes, policy.memories, policy.memory_characters)]
