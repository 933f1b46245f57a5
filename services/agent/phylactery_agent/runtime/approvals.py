"""Approvals decided at RiskGate instead of in the chat: seen by asking, and the run goes on as if told here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from phylactery_chassis.crashpoints import reach
from phylactery_chassis.logs import get_logger

from phylactery_agent.ports import GateRefusedError, GateUnavailableError
from phylactery_agent.runtime.inbox import InboxStore
from phylactery_agent.runtime.model import StoredRun
from phylactery_agent.runtime.runs import RunStore
from phylactery_agent.runtime.services import Services

_log = get_logger("approvals")
_AT_ONCE = 8
_LONGEST_PAUSE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Woken:
    """How often a run was woken for its approval, and until when it is left alone."""

    times: int
    not_before: float


class ApprovalWatcher:
    """Asks RiskGate about every suspended run's approval, and wakes the runs whose approval left PENDING."""

    def __init__(
        self,
        runs: RunStore,
        inbox: InboxStore,
        services: Services,
        wake: Callable[[str], None],
        *,
        interval_seconds: float,
    ) -> None:
        self._runs, self._inbox, self._services, self._wake = runs, inbox, services, wake
        self._interval_seconds = interval_seconds
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._woken: dict[str, _Woken] = {}

    async def poll_once(self) -> int:
        """Asks once about each; answers how many runs were woken. RiskGate being down wakes nothing."""
        suspended = await self._runs.awaiting_approval()
        waiting = {run.run_id for run in suspended}
        self._woken = {run_id: woken for run_id, woken in self._woken.items() if run_id in waiting}
        return sum(await asyncio.gather(*(self._look(run) for run in suspended if self._due(run))))

    async def run(self) -> None:
        """Polls until cancelled."""
        while True:
            await asyncio.sleep(self._interval_seconds)
            try:
                await self.poll_once()
            except Exception as error:  # noqa: BLE001 - the next poll may work; without one no run would wake again
                _log.warning("approvals not polled", error=type(error).__name__)

    def _due(self, run: StoredRun) -> bool:
        """Says whether a run may be asked about: one that was woken and suspended itself again waits ever longer."""
        woken = self._woken.get(run.run_id)
        return woken is None or time.monotonic() >= woken.not_before

    def _note_woken(self, run: StoredRun) -> None:
        before = self._woken.get(run.run_id)
        times = 0 if before is None else before.times + 1
        pause = min(_LONGEST_PAUSE_SECONDS, self._interval_seconds * 2**times)
        self._woken[run.run_id] = _Woken(times, time.monotonic() + pause)

    async def _look(self, run: StoredRun) -> bool:
        async with self._slots:
            try:
                state = (await self._services.gate(run.owner).get_approval(run.approval_id)).state
            except GateUnavailableError:
                return False
            except GateRefusedError as error:
                if error.reason != "APPROVAL_NOT_FOUND":
                    _log.error("RiskGate does not show an approval", run_id=run.run_id, reason=error.reason)
                    return False
                state = error.reason
        if state == "PENDING":
            return False
        turn = await self._inbox.note_approval_decided(run, state)
        if turn is None:
            return False
        reach("agent.5")
        _log.info("approval decided elsewhere", run_id=run.run_id, approval_id=run.approval_id, state=state)
        self._note_woken(run)
        self._wake(run.thread_key)
        return True
