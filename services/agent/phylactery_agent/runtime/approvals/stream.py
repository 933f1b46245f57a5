"""Listening to what becomes of one user's approvals at RiskGate, so that nobody has to ask again and again.

A stream tells what changes from the moment it stands. So whatever waits is asked about once after that, and once more
for every change that is told; what a stream loses without ending is found by asking now and then all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import time

from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.ports import GateRefusedError, GateUnavailableError
from phylactery_agent.ports.services import Approvals

ASK_ANYWAY_SECONDS = 60.0
"""How long a stream is believed about an approval it said nothing of."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 30.0
_log = get_logger("approvals")


class Listener:
    """Listens until it is ended; a stream that ends is opened again, at first soon and then ever later."""

    def __init__(self, approvals: Approvals, news: asyncio.Event) -> None:
        """Begin at once; news is set whenever something is to be asked about."""
        self._approvals, self._news = approvals, news
        self._asked: dict[str, float] = {}
        self._stands = False
        self._task = asyncio.create_task(self._run())

    def to_be_asked(self, approval_id: str) -> bool:
        """Return whether an approval may have changed since it was asked about."""
        at = self._asked.get(approval_id)
        return not self._stands or at is None or time.monotonic() - at >= ASK_ANYWAY_SECONDS

    def begin_asking(self, approval_id: str) -> None:
        """Note that RiskGate is about to be asked: what is told from now on is newer than its answer."""
        self._asked[approval_id] = time.monotonic()

    def not_answered(self, approval_id: str) -> None:
        """Note that there was no answer."""
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
                _log.info("approvals are asked about, not listened to", error=type(error).__name__)
            except Exception as error:  # noqa: BLE001 - whatever fails, they are asked about, and the next stream may stand
                _log.warning("approvals are asked about, not listened to", error=type(error).__name__)
            self._stands = False
            self._news.set()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _hear(self, approval_id: str) -> None:
        """Take a change in; an empty name says that the stream stands, and that what changed before was not told."""
        if approval_id:
            self._asked.pop(approval_id, None)
        else:
            self._stands = True
            self._asked.clear()
        self._news.set()
