"""Approvals decided at RiskGate instead of in the chat: their runs resume as if the decision had been given here.

RiskGate's stream is used for users whose runs wait, and polling for those it is not available for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from phylactery_chassis.errors import CommitUnknown
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import pause
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.ports import GateRefusedError, GateUnavailableError, LeaseLostError
from phylactery_agent.ports.services import Services
from phylactery_agent.runtime.approvals.stream import Listener
from phylactery_agent.runtime.dispatch.named_leases import NamedLeases
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.records import Owner, StoredRun

_log = get_logger("approvals")
_AT_ONCE = 8
_LISTENERS = 64
"""Maximum number of users streamed at once; runs of other users are polled in every round."""
_LONGEST_PAUSE_SECONDS = 60.0
_LEASE = "approvals"


@dataclass(frozen=True, slots=True)
class _Woken:
    """How often a run was woken for its approval, and until when it is not polled."""

    times: int
    not_before: float


class ApprovalWatcher:
    """A watcher of suspended runs that wakes those whose approval is no longer PENDING."""

    def __init__(
        self,
        runs: RunStore,
        inbox: InboxStore,
        services: Services,
        wake: Callable[[str], None],
        named_leases: NamedLeases,
        *,
        interval_seconds: float,
        held: Callable[[str], bool] = lambda _thread_key: False,
    ) -> None:
        """``held`` returns whether this process keeps a thread from being served.

        Such a thread is left alone: an erasure withdraws its approvals itself, and a turn that noted this would be
        counted among what the person said.
        """
        self._held = held
        self._runs, self._inbox, self._services, self._wake = runs, inbox, services, wake
        self._named_leases = named_leases
        self._interval_seconds = interval_seconds
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._woken: dict[str, _Woken] = {}
        self._news = asyncio.Event()
        self._listeners: dict[Owner, Listener] = {}

    async def poll_once(self) -> int:
        """Poll each approval once; return the number of runs woken, which is 0 if RiskGate is unavailable."""
        return await self._ask_about(await self._runs.awaiting_approval())

    async def run(self) -> None:
        """Watch until cancelled: at once on a reported change, and at intervals for changes that are not reported.

        Of several processes that share a database one watches, and another takes over once it is gone.
        """
        try:
            while True:
                await pause(self._news, self._interval_seconds)
                self._news.clear()
                try:
                    if not self._named_leases.has(_LEASE) and not await self._named_leases.take(_LEASE):
                        await self._listen(())
                        continue
                    suspended = await self._runs.awaiting_approval()
                    await self._listen({run.owner for run in suspended})
                    await self._ask_about(suspended)
                except Exception as error:  # noqa: BLE001 - the next round may work; else no run would wake again
                    _log.warning("approval polling failed", error=type(error).__name__)
        finally:
            await self._listen(())
            await self._named_leases.drop(_LEASE)

    async def _ask_about(self, suspended: Sequence[StoredRun]) -> int:
        waiting = {run.run_id for run in suspended}
        self._woken = {run_id: woken for run_id, woken in self._woken.items() if run_id in waiting}
        return sum(await asyncio.gather(*(self._look(run) for run in suspended if self._due(run))))

    async def _listen(self, owners: Collection[Owner]) -> None:
        """Listen for exactly these owners, ending all other listeners."""
        for owner in self._listeners.keys() - set(owners):
            await self._listeners.pop(owner).end()
        for owner in set(owners) - self._listeners.keys():
            if len(self._listeners) < _LISTENERS:
                self._listeners[owner] = Listener(self._services.approvals(owner), self._news)

    def _due(self, run: StoredRun) -> bool:
        """Return True if a run is due to be polled; one that was woken and suspended again backs off."""
        woken, listener = self._woken.get(run.run_id), self._listeners.get(run.owner)
        if woken is not None and time.monotonic() < woken.not_before:
            return False
        return listener is None or listener.to_be_asked(run.approval_id)

    def _note_woken(self, run: StoredRun) -> None:
        before = self._woken.get(run.run_id)
        times = 0 if before is None else before.times + 1
        pause = min(_LONGEST_PAUSE_SECONDS, self._interval_seconds * 2**times)
        self._woken[run.run_id] = _Woken(times, time.monotonic() + pause)

    async def _look(self, run: StoredRun) -> bool:
        async with self._slots:
            state = await self._state_of(run)
        if state in {"", "PENDING"}:
            return False
        listener = self._listeners.get(run.owner)
        if listener is not None:  # poll it again, unless the run stops waiting for it
            listener.not_answered(run.approval_id)
        # only now: what an erasure withdraws is withdrawn after its threads are held, so it cannot be missed here
        if self._held(run.thread_key):
            return False
        try:
            turn = await self._inbox.note_approval_decided(run, state)
        except LeaseLostError:  # another process keeps it from being served
            return False
        except CommitUnknown:  # the turn may be committed, and no later round would add it again
            self._wake(run.thread_key)
            raise
        if turn is None:
            return False
        reach("agent.5")
        _log.info("approval decided elsewhere", run_id=run.run_id, approval_id=run.approval_id, state=state)
        self._note_woken(run)
        self._wake(run.thread_key)
        return True

    async def _state_of(self, run: StoredRun) -> str:
        """Return the state of a run's approval, or APPROVAL_NOT_FOUND; empty if RiskGate did not return a state."""
        listener, state = self._listeners.get(run.owner), ""
        if listener is not None:
            listener.begin_asking(run.approval_id)
        try:
            state = (await self._services.gate(run.owner).get_approval(run.approval_id)).state
        except GateUnavailableError:
            return ""
        except GateRefusedError as error:
            if error.reason != "APPROVAL_NOT_FOUND":
                _log.error("approval cannot be read from RiskGate", run_id=run.run_id, reason=error.reason)
                return ""
            state = error.reason
        finally:
            if listener is not None and not state:
                listener.not_answered(run.approval_id)
        return state
