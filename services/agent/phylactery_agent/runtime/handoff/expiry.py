"""The job that ends claims whose handler went away, and escalations that nobody took."""

from __future__ import annotations

import asyncio
from typing import Final

from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.runtime.handoff.store import EscalationStore

_MOST_SECONDS: Final = 5.0
_log = get_logger("handoff")


class HandoffExpiry:
    """Expiry of claims and of waiting; several processes may run it at once."""

    def __init__(self, store: EscalationStore, *, claim_seconds: float, wait_seconds: float) -> None:
        self._store, self._wait_seconds = store, wait_seconds
        self._look_seconds = min(_MOST_SECONDS, claim_seconds / 4)

    async def run(self) -> None:
        """Look repeatedly until cancelled; the next round makes up for one that fails."""
        while True:
            try:
                await self._store.expire(wait_seconds=self._wait_seconds)
            except Exception as error:  # noqa: BLE001 - the next round may work; else a thread would stay silent
                _log.warning("expiry of claims failed; will retry", error=type(error).__name__)
            await asyncio.sleep(self._look_seconds)
