"""A stream of changes to one user's approvals at RiskGate, which replaces frequent polling.

A stream reports only changes after it is connected. So each waiting approval is polled once after that, and once more
for every reported change. Changes that a stream loses without ending are found by occasional polling.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.ports import GateRefusedError, GateUnavailableError
from phylactery_agent.ports.services import Approvals

ASK_ANYWAY_SECONDS = 60.0
"""Maximum age of a poll, in seconds, while the stream reports nothing about the approval."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 30.0
_log = get_logger("approvals")


class Listener:
    """A listener on the approval stream that reopens it with exponential backoff until ended."""

    def __init__(self, approvals: Approvals, news: asyncio.Event) -> None:
        """Start at once; news is set whenever an approval should be polled."""
        self._approvals, self._news = approvals, news
        self._asked: dict[str, float] = {}
        self._stands = False
        self._task = asyncio.create_task(self._run())

    def to_be_asked(self, approval_id: str) -> bool:
        """Return True if an approval may have changed since it was last polled."""
        at = self._asked.get(approval_id)
        return not self._stands or at is None or time.monotonic() - at >= ASK_ANYWAY_SECONDS

    def begin_asking(self, approval_id: str) -> None:
        """Record that RiskGate is about to be polled: changes reported from now on are newer than its response."""
        self._asked[approval_id] = time.monotonic()

    def not_answered(self, approval_id: str) -> None:
        """Record that the poll failed or must be repeated."""
        self._asked.pop(approval_id, None)

    async def end(self) -> None:
        """End the stream."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                async for approval_id in self._approvals.watch():
                    self._hear(approval_id)
                    pause = _FIRST_PAUSE_SECONDS
            except (GateUnavailableError, GateRefusedError) as error:
                _log.info("approval stream unavailable; polling instead", error=type(error).__name__)
            except Exception as error:  # noqa: BLE001 - on any failure they are polled, and the next stream may succeed
                _log.warning("approval stream unavailable; polling instead", error=type(error).__name__)
            self._stands = False
            self._news.set()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _hear(self, approval_id: str) -> None:
        """Process a change; an empty id means that the stream is connected and earlier changes were not reported."""
        if approval_id:
            self._asked.pop(approval_id, None)
        else:
            self._stands = True
            self._asked.clear()
        self._news.set()
