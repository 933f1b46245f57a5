"""What the service does by itself: admit its master key at the start, then tidy, again and again.

A round removes what has expired and what nobody needs, wraps users' keys by the master key in use, and embeds memories
that were written while the embeddings endpoint did not answer.
"""

from __future__ import annotations

import asyncio
import contextlib

from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock

from phylactery_memory.keys.ring import MasterKeys
from phylactery_memory.keys.store import KeyStore
from phylactery_memory.memories.embeddings import LateVectors
from phylactery_memory.outputs.garbage import Garbage

SWEEP_US = 3_600 * MICROSECONDS
"""How long to wait between two looks for objects without an output: each lists the whole folder."""

_log = get_logger("housekeeping")


class Housekeeping:
    """The loop; see the module."""

    def __init__(
        self, garbage: Garbage, keys: KeyStore, masters: MasterKeys, late: LateVectors, *, clock: Clock, every: float
    ) -> None:
        """Take what it removes and embeds with, the keys, the time, and how many seconds lie between two rounds."""
        self._garbage, self._keys, self._masters, self._late = garbage, keys, masters, late
        self._clock, self._every = clock, every
        self._task: asyncio.Task[None] | None = None
        self._sweep_us = 0

    async def start(self) -> None:
        """Admit the master key and begin. Raise StartError where another one belongs to the database."""
        await self._keys.admit(self._masters.active_id, self._masters.ids, self._clock.now_us())
        self._task = asyncio.create_task(self._loop())

    async def stop(self) -> None:
        """End the loop."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def tidy(self) -> int:
        """Remove what has expired and return how many outputs that were. Raise Unavailable."""
        removed = await self._garbage.remove_expired(self._clock.now_us())
        orphans = await self._garbage.remove_orphans()
        if removed or orphans:
            await self._garbage.forget()
            _log.info("removed outputs", expired=removed, orphaned_chunks=orphans)
        await self._rewrap()
        if embedded := await self._late.embed_due():
            _log.info("embedded memories later", memories=embedded)
        await self._remove_objects()  # last, for the object store may not answer
        return removed

    async def _rewrap(self) -> None:
        """Wrap users' keys by the master key in use, so that the one before it can be taken away."""
        wrapped = await self._keys.rewrap(self._masters.active_id, self._masters.rewrap)
        if wrapped:
            await self._garbage.forget()
            _log.info("wrapped keys of users again", keys=wrapped, master_key_id=self._masters.active_id)

    async def _remove_objects(self) -> None:
        now_us = self._clock.now_us()
        sweep = now_us >= self._sweep_us
        removed = await self._garbage.remove_objects(sweep=sweep)
        if sweep:
            self._sweep_us = now_us + SWEEP_US
        if removed:
            await self._garbage.forget()
            _log.info("removed objects", objects=removed)

    async def _loop(self) -> None:
        while True:
            try:
                await self.tidy()
            except DomainError as error:  # the store fails; the next round finds the same again
                _log.warning("outputs were not tidied", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - nothing may end the tidying; a fault's text can hold a value
                _log.error("outputs were not tidied", error=type(error).__name__)
            await asyncio.sleep(self._every)
