"""Erasure of users: permanent removal of everything stored about them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.erasure.erasures import may_see, not_found, request_hash, subject_hash, unfinished, whom
from phylactery_chassis.errors import STORE_FAILED
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util import crashpoints
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.ids import new_id

from phylactery_memory.privacy.model import Erasure, ErasureCounts, ErasureLog
from phylactery_memory.privacy.store import PrivacyStore

_log = get_logger("privacy")


@dataclass(frozen=True, slots=True)
class _Done:
    """Completes a record with the removed counts."""

    intent: Erasure
    clock: Clock
    replayed: bool = False

    def __call__(self, counts: ErasureCounts) -> Erasure:
        return replace(self.intent, counts=counts, erase_us=self.clock.now_us(), replayed=self.replayed)


class Privacy:
    """Erases users: logged first, then removed in one transaction, then scrubbed from every file."""

    def __init__(self, store: PrivacyStore, log: ErasureLog, clock: Clock) -> None:
        self._store = store
        self._log = log
        self._clock = clock
        self._at_once = asyncio.Lock()

    async def erase(self, caller: Principal, subject: str, request_id: str) -> Erasure:
        """Erase the caller, or a user of their tenant named by an operator.

        Return once nothing is left in the database's files or in the object store. Raise PermissionDenied, Unavailable;
        after the latter, the same request_id resumes the erasure.
        """
        owner = whom(caller, subject)
        key = request_hash(owner.tenant, owner.subject, request_id)
        async with self._at_once:
            erasure = await self._store.find(key)
            if erasure is None:
                erasure = await self._erase(owner, key, by_operator=owner.subject != caller.subject)
        try:
            await self._store.forget_objects(erasure.erasure_id)
        finally:
            await self._store.scrub_removed()
        return erasure

    async def get(self, caller: Principal, erasure_id: str) -> Erasure:
        """Return an erasure of the caller, or of their tenant for an operator.

        Raise PermissionDenied, NotFound ERASURE_NOT_FOUND, Unavailable.
        """
        caller.require(Role.CALLER)
        erasure = await self._store.get(erasure_id, caller.tenant)
        if erasure is None or not may_see(caller, erasure):
            raise not_found(erasure_id)
        return erasure

    async def replay(self) -> int:
        """At start, repeat logged erasures of users whom this (restored or interrupted) database still holds.

        Return the number of repeated erasures. Traces in free space of the files are removed too if possible; serving
        does not wait for that. Raise StartError if the log is damaged, Unavailable.
        """
        written = await asyncio.to_thread(self._log.read)  # before known(), which then includes replicas' work
        missing = unfinished(written, await self._store.known())
        users = await self._store.users() if missing else frozenset()
        by_hash = {subject_hash(self._log.salt, tenant, subject): (tenant, subject) for tenant, subject in users}
        for erasure in missing:
            tenant, subject = by_hash.get(erasure.subject_hash, (erasure.tenant, ""))
            owner = Principal(subject, tenant, frozenset())
            done = await self._store.erase(owner, erasure.erasure_id, _Done(erasure, self._clock, replayed=True))
            _log.warning("an erasure was carried out again", erasure_id=done.erasure_id, receipt_hash=done.receipt_hash)
        try:
            await self._store.scrub_removed()
        except STORE_FAILED as error:  # a backup reads, or no space; recorded for later
            _log.warning("removed data may still be in the files", reason=error.reason)
        return len(missing)

    async def _erase(self, owner: Principal, key: str, *, by_operator: bool) -> Erasure:
        intent = Erasure(
            erasure_id=new_id("era"),
            subject_hash=subject_hash(self._log.salt, owner.tenant, owner.subject),
            salt=self._log.salt,
            tenant=owner.tenant,
            requested_by_operator=by_operator,
            request_us=self._clock.now_us(),
            request_hash=key,
        )
        await asyncio.to_thread(self._log.append, intent)
        crashpoints.reach("memory.erase.logged")
        erasure = await self._store.erase(owner, intent.erasure_id, _Done(intent, self._clock))
        crashpoints.reach("memory.erase.removed")
        _log.info("a user was erased", erasure_id=erasure.erasure_id, receipt_hash=erasure.receipt_hash)
        return erasure
