"""A loop that looks for work: at once when told to, and every so often, because another process may have made it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import pause

_log = get_logger("loops")


class Loop:
    """Runs a function again and again, until stopped. Nothing it raises ends the loop."""

    def __init__(self, name: str, work: Callable[[], Awaitable[None]], every: float) -> None:
        """``every`` is the longest pause between two runs in seconds."""
        self._name, self._work, self._every = name, work, every
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Run soon."""
        self._wake.set()

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        """End, in the middle of a run too."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._work()
            except DomainError as error:
                _log.warning("background work failed; it is tried again", loop=self._name, reason=error.reason)
            except Exception as error:  # noqa: BLE001 - nothing may end the loop; an exception's text can hold a value
                _log.error("background work failed", loop=self._name, error=type(error).__name__)
            await pause(self._wake, self._every)
