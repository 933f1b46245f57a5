"""Erasure of users: permanent removal of everything stored about them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.erasure.erasures import request_hash, subject_hash, whom
from phylactery_chassis.erasure.service import Erasures
from phylactery_chassis.errors import STORE_FAILED
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util import crashpoints

from phylactery_memory.privacy.model import Erasure
from phylactery_memory.privacy.store import PrivacyStore

_log = get_logger("privacy")


@dataclass(eq=False)
class Privacy(Erasures[Erasure]):
    """Erases users: logged first, then removed in one transaction, then scrubbed from every file."""

    store: PrivacyStore
    _at_once: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def erase(self, caller: Principal, subject: str, request_id: str) -> Erasure:
        """Erase the caller, or a user of their tenant named by an operator.

        Return once nothing is left in the database's files or in the object store. Raise PermissionDenied, Unavailable;
        after the latter, the same request_id resumes the erasure.
        """
        owner = whom(caller, subject)
        key = request_hash(owner.tenant, owner.subject, request_id)
        async with self._at_once:
            erasure = await self.store.find(key)
            if erasure is None:
                erasure = await self._erase(owner, key, by_operator=owner.subject != caller.subject)
        try:
            await self.store.forget_objects(erasure.erasure_id)
        finally:
            await self.store.scrub_removed()
        return erasure

    async def replay(self) -> int:
        """At start, repeat logged erasures of users whom this (restored or interrupted) database still holds.

        Return the number of repeated erasures. Traces in free space of the files are removed too if possible; serving
        does not wait for that. Raise StartError if the log is damaged, Unavailable.
        """
        missing = await self.missing()
        users = await self.store.users() if missing else frozenset()
        by_hash = {subject_hash(self.log.salt, tenant, subject): (tenant, subject) for tenant, subject in users}
        for erasure in missing:
            tenant, subject = by_hash.get(erasure.subject_hash, (erasure.tenant, ""))
            owner = Principal(subject, tenant, frozenset())
            done = await self._remove(owner, replace(erasure, replayed=True))
            _log.warning("an erasure was carried out again", erasure_id=done.erasure_id, receipt_hash=done.receipt_hash)
        try:
            await self.store.scrub_removed()
        except STORE_FAILED as error:  # a backup reads, or no space; recorded for later
            _log.warning("removed data may still be in the files", reason=error.reason)
        return len(missing)

    async def _erase(self, owner: Principal, key: str, *, by_operator: bool) -> Erasure:
        intent = await self.begin(owner, key, by_operator=by_operator)
        crashpoints.reach("memory.erase.logged")
        erasure = await self._remove(owner, intent)
        crashpoints.reach("memory.erase.removed")
        _log.info("a user was erased", erasure_id=erasure.erasure_id, receipt_hash=erasure.receipt_hash)
        return erasure

    async def _remove(self, owner: Principal, intent: Erasure) -> Erasure:
        return await self.store.erase(owner, intent.erasure_id, partial(self.completed, intent))
