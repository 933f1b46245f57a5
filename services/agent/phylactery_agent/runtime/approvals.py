"""Approvals decided at RiskGate instead of in the chat: seen by asking, and the run goes on as if told here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from phylactery_chassis.crashpoints import reach
from phylactery_chassis.errors import Unavailable
from phylactery_chassis.logs import get_logger

from phylactery_agent.ports import GateRefusedError, GateUnavailableError
from phylactery_agent.runtime.inbox import InboxStore
from phylactery_agent.runtime.model import StoredRun
from phylactery_agent.runtime.runs import RunStore
from phylactery_agent.runtime.services import Services

_log = get_logger("approvals")
_AT_ONCE = 8


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

    async def poll_once(self) -> int:
        """Asks once about each; answers how many runs were woken. RiskGate being down wakes nothing."""
        suspended = await self._runs.awaiting_approval()
        return sum(await asyncio.gather(*(self._look(run) for run in suspended)))

    async def run(self) -> None:
        """Polls until cancelled."""
        while True:
            await asyncio.sleep(self._interval_seconds)
            try:
                await self.poll_once()
            except Unavailable as error:
                _log.warning("approvals not polled", reason=error.reason)

    async def _look(self, run: StoredRun) -> bool:
        async with self._slots:
            try:
                state = (await self._services.gate(run.owner).get_approval(run.approval_id)).state
            except GateUnavailableError:
                return False
            except GateRefusedError as error:
                state = error.reason
        if state == "PENDING":
            return False
        turn = await self._inbox.note_approval_decided(run, state)
        if turn is None:
            return False
        reach("agent.5")
        _log.info("approval decided elsewhere", run_id=run.run_id, approval_id=run.approval_id, state=state)
        self._wake(run.thread_id)
        return True
