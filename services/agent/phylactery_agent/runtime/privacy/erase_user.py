"""What the agent does for a person's privacy: erase everything held about them, so that it stays erased.

An erasure is written down in a file first. Then the user's threads are held, so that nothing is served in them; what is
open at RiskGate is closed there; the states of their runs go; and everything else goes in one transaction, with the
record of it. Until that transaction nothing of the database is gone, and whatever interrupts it, it is done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.erasure.erasures import may_see, not_found, request_hash, subject_hash, unfinished, whom
from phylactery_chassis.erasure.log import ErasureLog
from phylactery_chassis.errors import STORE_FAILED, DomainError, Unavailable
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util import crashpoints
from phylactery_chassis.util.clock import Clock, pause
from phylactery_chassis.util.ids import new_id

from phylactery_agent.ports import GateRefusedError, GateUnavailableError
from phylactery_agent.ports.services import Services
from phylactery_agent.runtime.dispatch.dispatcher import Runner
from phylactery_agent.runtime.dispatch.named_leases import Duties
from phylactery_agent.runtime.dispatch.notifier import ThreadNews
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

_REASON: Final = "the user was erased"
_DUTY: Final = "erasures"
_NEW_THREADS: Final = 100
"""How often an erasure begins again because its user opened another thread meanwhile."""

_log = get_logger("privacy")


@dataclass(frozen=True, slots=True)
class PrivacyTools:
    """What erasing a user needs, made once per process."""

    store: ErasureStore
    log: ErasureLog[Erasure]
    clock: Clock
    runner: Runner
    inbox: InboxStore
    delivery: Delivery
    services: Services
    news: ThreadNews
    forget_effects: Callable[[Iterable[str]], None]
    """Drops what tools noted of effects, by their keys. May raise OSError."""
    forget_files: Callable[[str, str], None]
    """Removes the earlier versions of files kept of a tenant's user. May raise OSError."""
    kept_files: Callable[[], Sequence[tuple[str, str]]]
    """Returns the tenants and users of whom there are such versions."""
    retry_seconds: float
    duties: Duties
    look_seconds: float | None = None
    """How often to look for what another process began and did not finish; None where there is no other."""


class Privacy:
    """Erases users, one at a time, whichever process over the database does it."""

    def __init__(self, tools: PrivacyTools) -> None:
        self._t = tools
        self._at_once = asyncio.Lock()
        self._news = asyncio.Event()
        self._forgotten = True
        """Whether nothing that was removed still stands in the files, as far as this process knows."""

    async def erase(self, caller: Principal, subject: str, request_id: str) -> Erasure:
        """Remove everything about the caller, or about a user of their tenant whom an operator names.

        Return once nothing of it is left in the files. Raise PermissionDenied, Unavailable RISKGATE_UNAVAILABLE or
        STORE_UNAVAILABLE; after those the service goes on by itself, and the same request_id answers what came of it.
        """
        user = whom(caller, subject)
        owner = Owner(user.tenant, user.subject)
        key = request_hash(owner.tenant, owner.user_id, request_id)
        async with self._at_once, self._t.duties.doing(_DUTY):
            erasure = await self._t.store.find(key)
            if erasure is None:
                intent = await self._written_down(owner, key, by_operator=user.subject != caller.subject)
                try:
                    erasure = await self._erase(owner, intent)
                except DomainError:
                    self._news.set()
                    raise
        try:
            await self._forget()
        finally:
            if not self._forgotten:
                self._news.set()
        return erasure

    async def get(self, caller: Principal, erasure_id: str) -> Erasure:
        """Return an erasure of the caller, or of their tenant for an operator.

        Raise PermissionDenied, NotFound ERASURE_NOT_FOUND, Unavailable.
        """
        caller.require(Role.CALLER)
        erasure = await self._t.store.get(erasure_id)
        if erasure is None or not may_see(caller, erasure):
            raise not_found(erasure_id)
        return erasure

    async def replay(self) -> None:
        """Erase whoever the log says is gone and this database, restored or cut off, still holds; before any turn.

        Who cannot be erased yet, because RiskGate is away, is not served; run() tries again. Raise StartError where
        the log is damaged, Unavailable.
        """
        await self.finish(keep_held=True)
        try:
            await self._forget()
        except STORE_FAILED as error:  # a backup may be reading, or there is no room; run() tries again
            _log.warning("old pages are still held", reason=error.reason)

    async def run(self) -> None:
        """Finish what was begun, again and again until it is done, until cancelled."""
        while True:
            self._news.clear()
            try:
                complete = await self.finish()
            except Exception as error:  # noqa: BLE001 - the next round may work; without one nothing would be finished
                complete = False
                _log.warning("erasures wait", error=type(error).__name__)
            await pause(self._news, self._t.look_seconds if complete else self._t.retry_seconds)

    async def finish(self, *, keep_held: bool = False) -> bool:
        """Carry out what the log holds and the database does not; return whether nothing is left to do.

        keep_held leaves the threads of those who are left unserved, and what stands in the files to the caller.
        """
        if not await self._missing():
            if not self._forgotten:
                await self._forget()
            return True
        async with self._at_once, self._t.duties.doing(_DUTY):
            missing = await self._missing()
            users = await self._users() if missing else ()
            by_hash = {subject_hash(self._t.log.salt, user.tenant, user.user_id): user for user in users}
            failures = 0
            for intent in missing:
                owner = by_hash.get(intent.subject_hash, Owner(intent.tenant, ""))
                try:
                    await self._erase(owner, replace(intent, replayed=True), keep_held=keep_held)
                except STORE_FAILED as error:
                    failures += 1
                    _log.warning("an erasure waits", erasure_id=intent.erasure_id, reason=error.reason)
                    continue
                _log.warning("an erasure was carried out again", erasure_id=intent.erasure_id)
        if missing and not failures and not keep_held:
            await self._forget()
        return not failures

    async def _forget(self) -> None:
        """Leave nothing of who was erased in the files; after a failure run() tries again. Raise Unavailable."""
        self._forgotten = False
        await self._t.store.forget_removed()
        self._forgotten = True

    async def _missing(self) -> Sequence[Erasure]:
        written = await asyncio.to_thread(self._t.log.read)
        return unfinished(written, await self._t.store.known())

    async def _users(self) -> Sequence[Owner]:
        """Return everybody something is kept of, in the database or beside it."""
        kept = await asyncio.to_thread(self._t.kept_files)
        return [*await self._t.store.users(), *(Owner(tenant, user_id) for tenant, user_id in kept)]

    async def _written_down(self, owner: Owner, key: str, *, by_operator: bool) -> Erasure:
        """Return the erasure a request asks for, from the log where it was begun before."""
        begun = next((one for one in await self._missing() if one.request_hash == key), None)
        if begun is not None:
            return begun
        intent = Erasure(
            erasure_id=new_id("era"),
            subject_hash=subject_hash(self._t.log.salt, owner.tenant, owner.user_id),
            salt=self._t.log.salt,
            tenant=owner.tenant,
            requested_by_operator=by_operator,
            request_us=self._t.clock.now_us(),
            request_hash=key,
        )
        await asyncio.to_thread(self._t.log.append, intent)
        crashpoints.reach("agent.erase.logged")
        return intent

    async def _erase(self, owner: Owner, intent: Erasure, *, keep_held: bool = False) -> Erasure:
        """Carry an erasure out. Raise Unavailable; then the threads it held are served again, unless keep_held."""
        held: set[str] = set()
        fresh: set[str] = set()
        removed: Removed | None = None
        try:
            for _ in range(_NEW_THREADS):
                held |= await self._t.store.threads(owner)
                fresh |= await self._t.runner.hold(held, by=_DUTY, keep=keep_held)
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
            await self._t.delivery.quiet(key)
        for key in (*held, *removed.unhandled):
            self._t.news.tell(key)
        erasure = removed.erasure
        _log.info("a user was erased", erasure_id=erasure.erasure_id, receipt_hash=erasure.receipt_hash)
        return erasure

    async def _attempt(self, owner: Owner, intent: Erasure, held: Collection[str]) -> Removed | None:
        """Close what is open and remove the user's threads; None where a new thread came meanwhile."""
        await self._close(owner, held)
        await forget_noted(self._t.forget_effects, await self._t.store.effects(owner), of="user")
        if owner.user_id:  # an erasure that is replayed may name nobody who is here
            await remove_files(lambda: self._t.forget_files(owner.tenant, owner.user_id), of="user")
        crashpoints.reach("agent.erase.forgotten")

        def done(counts: ErasureCounts) -> Erasure:
            return replace(intent, counts=counts, erase_us=self._t.clock.now_us())

        return await self._t.store.erase(owner, held, done)

    async def _close(self, owner: Owner, held: Collection[str]) -> None:
        """Withdraw approvals, and tell RiskGate of every effect, those in doubt included. Raise Unavailable."""
        try:
            for key in await self._t.delivery.waiting("withdrawal"):
                if key in held:
                    await self._t.delivery.flush("withdrawal", key)
            if runs := await self._t.store.open_runs(owner):
                await self._t.services.approvals(owner).withdraw(runs, reason=_REASON)
            await self._t.store.give_up(owner)
            crashpoints.reach("agent.erase.closed")
            for key in await self._t.delivery.waiting("outcome"):
                if key in held:
                    await self._t.delivery.flush("outcome", key)
        except (GateUnavailableError, GateRefusedError) as error:
            _log.warning("RiskGate was not told what was open", error=type(error).__name__)
            raise Unavailable(
                "RISKGATE_UNAVAILABLE",
                "RiskGate has to be told what was open and does not take it, so nothing was removed yet; this goes on "
                "by itself, and the same request_id answers what came of it",
                metadata={"service": "riskgate"},
            ) from None

    async def _release(self, held: Collection[str]) -> None:
        """Serve the threads again; where the user is gone there is nothing to serve."""
        await self._t.runner.release(held, by=_DUTY)
        for key in await self._t.inbox.threads_with_work():
            if key in held:
                self._t.runner.wake(key)
