"""Profiles: read, set fields, and accept stable preferences from the write policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_memory.memories import lineage
from phylactery_memory.memories.model import Memory, Origin, Source
from phylactery_memory.memories.write_policy import aside
from phylactery_memory.memories.write_rules import Slot
from phylactery_memory.profile import store as profiles
from phylactery_memory.profile.model import MAX_FIELDS, Profile, ProfileField, Value, check_etag, fits, judged
from phylactery_memory.profile.store import ProfileStore


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """Fields to set and remove, and their source; an empty etag skips the version check."""

    values: Mapping[str, Value] = field(default_factory=dict)
    remove: Sequence[str] = ()
    source: Source = Source.USER
    lineage: tuple[Origin, ...] = ()
    etag: str = ""


class Profiles:
    """Reads and changes the profile of each call's principal."""

    def __init__(self, store: ProfileStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def get(self, owner: Principal, *, superseded: int = 0) -> Profile:
        """Return the owner's profile with up to ``superseded`` former values per name.

        Raise PermissionDenied, Unavailable.
        """
        owner.require(Role.CALLER)
        return await self._store.read(owner, superseded=superseded)

    async def set(self, owner: Principal, change: ProfileChange) -> Profile:
        """Set and remove values, all or none, and return the profile once it is durable.

        Raise PermissionDenied, FailedPrecondition LINEAGE_NOT_FOUND, PROFILE_UNTRUSTED or PROFILE_TRUSTED_MORE,
        InvalidArgument PROFILE_SECRET, Aborted PROFILE_CHANGED, ResourceExhausted PROFILE_LIMIT, Unavailable.
        """
        owner.require(Role.CALLER)
        if change.source is Source.SYSTEM and change.values:
            owner.require(Role.OPERATOR)
        now_us = self._clock.now_us()
        evidence = (await self._store.ask(lambda connection: lineage.find(connection, owner, change.lineage))).evidence

        def fields() -> list[ProfileField]:
            return [
                ProfileField(
                    name=name,
                    value=value,
                    source=change.source,
                    trust=judged(name, value, change.source, evidence, delegated=owner.delegated),
                    lineage=change.lineage,
                    memory_id="",
                    valid_us=now_us,
                )
                for name, value in change.values.items()
            ]

        texts = (*(found.words for found in evidence), *map(str, change.values.values()))
        new = await aside(sum(map(len, texts)), fields)

        def work(connection: Connection) -> Profile:
            lineage.find(connection, owner, change.lineage)  # it may have been erased in the meantime
            profile = profiles.locked(connection, owner)
            check_etag(profile, change.etag)
            profiles.change(connection, owner, profile, new, change.remove)
            return profiles.load(connection, owner)

        return await self._store.write(work)

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
        """Set a field from a memory, unless the current value is trusted more or the new one does not fit.

        With ``only_held`` a field without a value stays so: what is no stable preference only replaces what was set.
        """
        if not fits(field, value) or memory.untrusted:
            return
        profile = profiles.locked(connection, owner)
        standing = profile.get(field)
        if only_held and standing is None:
            return
        new = ProfileField(
            name=field,
            value=value,
            source=memory.source,
            trust=memory.trust,
            lineage=memory.lineage,
            memory_id=memory.memory_id,
            valid_us=memory.valid_us,
        )
        room = standing is not None or len(profile.fields) < MAX_FIELDS
        if room and (standing is None or standing.trust <= new.trust):
            profiles.change(connection, owner, profile, [new])

    def finish(self, connection: Connection, owner: Principal, ends: Slot, field: str, memory: Memory) -> None:
        """End a field whose value a memory says is over, unless the value is trusted more."""
        standing = profiles.load(connection, owner).get(field)
        if standing is not None and standing.trust <= memory.trust and ends.concerns(Slot(field, str(standing.value))):
            profiles.end_field(connection, owner, field, max(memory.valid_us, standing.valid_us))

    def drop(self, connection: Connection, owner: Principal, memory_id: str) -> None:
        """Remove what was taken from a memory that was forgotten or changed."""
        profiles.drop(connection, owner, memory_id)

    def end(self, connection: Connection, owner: Principal, memory: Memory) -> None:
        """End what was taken from a retired memory, unless it was superseded."""
        profiles.end(connection, owner, memory.memory_id, memory.invalid_us)

    def restore(self, connection: Connection, owner: Principal, memory_id: str) -> None:
        """Make current again what was taken from a memory that is valid again, where nothing else is current."""
        profiles.restore(connection, owner, memory_id)
