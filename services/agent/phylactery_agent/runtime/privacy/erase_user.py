"""Erasure of a user: removes everything the agent holds about them, and keeps it removed.

An erasure is first recorded in a log file. Then the user's threads are held, so that nothing is served in them; what is
open at RiskGate is closed there; the states of their runs are removed; and everything else is removed in one
transaction, together with the record of the erasure. Before that transaction nothing in the database is gone, and an
interrupted erasure is repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.erasure.erasures import request_hash, subject_hash, whom
from phylactery_chassis.erasure.service import Erasures
from phylactery_chassis.errors import STORE_FAILED, DomainError, Unavailable
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util import crashpoints
from phylactery_chassis.util.clock import pause

from phylactery_agent.ports import GateRefusedError, GateUnavailableError
from phylactery_agent.ports.services import Services
from phylactery_agent.runtime.dispatch.dispatcher import Dispatcher
from phylactery_agent.runtime.dispatch.named_leases import NamedLeases
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_agent.runtime.privacy.erasure_store import (
    Erasure,
    ErasureCounts,
    ErasureStore,
    Removed,
    forget_noted,
    remove_files,
)
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.tools.executor import Executor

_REASON: Final = "the user was erased"
_LEASE: Final = "erasures"
_NEW_THREADS: Final = 100
"""Maximum number of restarts of an erasure because its user opened another thread meanwhile."""

_log = get_logger("privacy")


@dataclass(eq=False)
class Privacy(Erasures[Erasure]):
    """Erasure of users, one at a time across all processes that share the database."""

    store: ErasureStore
    runner: Dispatcher
    inbox: InboxStore
    delivery: Delivery
    services: Services
    news: ThreadNotifier
    executor: Executor
    retry_seconds: float
    named_leases: NamedLeases
    look_seconds: float | None = None
    """Interval, in seconds, of the search for erasures another process left unfinished; None if there is no other."""
    _at_once: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _outstanding: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _forgotten: bool = field(default=True, init=False)
    """Whether the files hold no removed data any more, as far as this process knows."""

    async def erase(self, caller: Principal, subject: str, request_id: str) -> Erasure:
        """Remove everything about the caller, or about a user of their tenant named by an operator.

        Return once nothing of it is left in the files. Raise PermissionDenied, Unavailable RISKGATE_UNAVAILABLE or
        STORE_UNAVAILABLE; after the latter two the service continues by itself, and the same request_id returns the
        result.
        """
        user = whom(caller, subject)
        owner = Owner(user.tenant, user.subject)
        key = request_hash(owner.tenant, owner.user_id, request_id)
        async with self._at_once, self.named_leases.doing(_LEASE):
            erasure = await self.store.find(key)
            if erasure is None:
                intent = await self._written_down(user, key, by_operator=user.subject != caller.subject)
                try:
                    erasure = await self._erase(owner, intent)
                except DomainError:
                    self._outstanding.set()
                    raise
        try:
            await self._forget()
        finally:
            if not self._forgotten:
                self._outstanding.set()
        return erasure

    async def replay(self) -> None:
        """Erase, before any turn is served, users listed as erased in the log whom this database still holds.

        It may have been restored, or the erasure interrupted. A user who cannot be erased yet because RiskGate is
        unavailable is not served; run() tries again. Raise StartError if the log is damaged, Unavailable.
        """
        await self.finish(keep_held=True)
        try:
            await self._forget()
        except STORE_FAILED as error:  # a backup may be reading, or the disk is full; run() tries again
            _log.warning("old database pages are still in use", reason=error.reason)

    async def run(self) -> None:
        """Finish outstanding erasures, retrying as needed, until cancelled."""
        while True:
            self._outstanding.clear()
            try:
                complete = await self.finish()
            except Exception as error:  # noqa: BLE001 - the next round may work; without one nothing would be finished
                complete = False
                _log.warning("erasure failed; will retry", error=type(error).__name__)
            await pause(self._outstanding, self.look_seconds if complete else self.retry_seconds)

    async def finish(self, *, keep_held: bool = False) -> bool:
        """Carry out the erasures that are in the log but not in the database; return True if none is left.

        keep_held leaves the threads of the remaining users unserved, and the data left in the files to the caller.
        """
        if not await self.missing():
            if not self._forgotten:
                await self._forget()
            return True
        async with self._at_once, self.named_leases.doing(_LEASE):
            missing = await self.missing()
            users = await self._users() if missing else ()
            by_hash = {subject_hash(self.log.salt, user.tenant, user.user_id): user for user in users}
            failures = 0
            for intent in missing:
                owner = by_hash.get(intent.subject_hash, Owner(intent.tenant, ""))
                try:
                    await self._erase(owner, replace(intent, replayed=True), keep_held=keep_held)
                except STORE_FAILED as error:
                    failures += 1
                    _log.warning("erasure failed; will retry", erasure_id=intent.erasure_id, reason=error.reason)
                    continue
                _log.warning("an erasure was carried out again", erasure_id=intent.erasure_id)
        if missing and not failures and not keep_held:
            await self._forget()
        return not failures

    async def _forget(self) -> None:
        """Leave nothing of erased users in the files; after a failure run() tries again. Raise Unavailable."""
        self._forgotten = False
        await self.store.scrub_removed()
        self._forgotten = True

    async def _users(self) -> Sequence[Owner]:
        """Return all users about whom anything is stored, in the database or in files."""
        kept = await asyncio.to_thread(self.executor.kept_users)
        return [*await self.store.users(), *(Owner(tenant, user_id) for tenant, user_id in kept)]

    async def _written_down(self, user: Principal, key: str, *, by_operator: bool) -> Erasure:
        """Return the erasure that a request asks for, taken from the log if it was begun before."""
        begun = next((one for one in await self.missing() if one.request_hash == key), None)
        if begun is not None:
            return begun
        intent = await self.begin(user, key, by_operator=by_operator)
        crashpoints.reach("agent.erase.logged")
        return intent

    async def _erase(self, owner: Owner, intent: Erasure, *, keep_held: bool = False) -> Erasure:
        """Carry an erasure out. Raise Unavailable, after which its threads are served again unless keep_held."""
        held: set[str] = set()
        fresh: set[str] = set()
        removed: Removed | None = None
        try:
            for _ in range(_NEW_THREADS):
                held |= await self.store.threads(owner)
                fresh |= await self.runner.hold(held, by=_LEASE, keep=keep_held)
                removed = await self._attempt(owner, intent, held)
                if removed is not None:
                    break
        finally:
            if removed is not None:
                await self._release(held)
            elif not keep_held:
                await self._release(fresh)
        if removed is None:
            raise Unavailable(
                "STORE_UNAVAILABLE", "the user opens threads faster than they can be held; try again in a moment"
            )
        crashpoints.reach("agent.erase.removed")
        for key in held:
            await self.delivery.quiet(key)
        for key in (*held, *removed.unhandled):
            self.news.tell(key)
        erasure = removed.erasure
        _log.info("a user was erased", erasure_id=erasure.erasure_id, receipt_hash=erasure.receipt_hash)
        return erasure

    async def _attempt(self, owner: Owner, intent: Erasure, held: Collection[str]) -> Removed | None:
        """Close what is open and remove the user's threads; return None if a new thread was opened meanwhile."""
        await self._close(owner, held)
        await forget_noted(self.executor.forget, await self.store.effects(owner), of="user")
        files = 0
        if owner.user_id:  # a replayed erasure may name a user unknown here
            files = await remove_files(lambda: self.executor.forget_user(owner.tenant, owner.user_id), of="user")
        crashpoints.reach("agent.erase.forgotten")

        def done(counts: ErasureCounts) -> Erasure:
            return self.completed(intent, replace(counts, files=files))

        return await self.store.erase(owner, held, done)

    async def _close(self, owner: Owner, held: Collection[str]) -> None:
        """Withdraw approvals, and report every effect to RiskGate, including unknown outcomes. Raise Unavailable."""
        try:
            for key in await self.delivery.waiting("withdrawal"):
                if key in held:
                    await self.delivery.flush("withdrawal", key)
            if runs := await self.store.open_runs(owner):
                await self.services.approvals(owner).withdraw(runs, reason=_REASON)
            await self.store.give_up(owner)
            crashpoints.reach("agent.erase.closed")
            for key in await self.delivery.waiting("outcome"):
                if key in held:
                    await self.delivery.flush("outcome", key)
        except (GateUnavailableError, GateRefusedError) as error:
            _log.warning("open approvals were not withdrawn at RiskGate", error=type(error).__name__)
            raise Unavailable(
                "RISKGATE_UNAVAILABLE",
                "RiskGate has to be told what was open and does not take it, so nothing was removed yet; this goes on "
                "by itself, and the same request_id answers what came of it",
                metadata={"service": "riskgate"},
            ) from None

    async def _release(self, held: Collection[str]) -> None:
        """Serve the threads again; if the user was erased there is nothing to serve."""
        await self.runner.release(held, by=_LEASE)
        for key in await self.inbox.threads_with_work():
            if key in held:
                self.runner.wake(key)
