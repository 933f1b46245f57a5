"""Background work: admits the master key at start, then tidies in a loop.

A round removes expired and unreferenced data, rewraps users' keys with the current master key, and embeds memories that
were written while the embeddings endpoint was unavailable.
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
"""The interval between sweeps for objects without an output; each lists the whole folder."""

_log = get_logger("housekeeping")


class Housekeeping:
    """The housekeeping loop."""

    def __init__(
        self, garbage: Garbage, keys: KeyStore, masters: MasterKeys, late: LateVectors, *, clock: Clock, every: float
    ) -> None:
        """``every`` is the number of seconds between two rounds."""
        self._garbage, self._keys, self._masters, self._late = garbage, keys, masters, late
        self._clock, self._every = clock, every
        self._task: asyncio.Task[None] | None = None
        self._sweep_us = 0

    async def start(self) -> None:
        """Admit the master key and start the loop. Raise StartError if the database belongs to another key."""
        await self._keys.admit(self._masters.active_id, self._masters.ids, self._clock.now_us())
        self._task = asyncio.create_task(self._loop())

    async def stop(self) -> None:
        """Stop the loop."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def tidy(self) -> int:
        """Remove expired outputs and return their number. Raise Unavailable."""
        removed = await self._garbage.remove_expired(self._clock.now_us())
        orphans = await self._garbage.remove_orphans()
        if removed or orphans:
            await self._garbage.forget()
            _log.info("removed outputs", expired=removed, orphaned_chunks=orphans)
        await self._rewrap()
        if embedded := await self._late.embed_due():
            _log.info("pending memories embedded", memories=embedded)
        await self._remove_objects()  # last, because the object store may be unavailable
        return removed

    async def _rewrap(self) -> None:
        """Rewrap users' keys with the current master key, so that the previous one can be retired."""
        wrapped = await self._keys.rewrap(self._masters.active_id, self._masters.rewrap)
        if wrapped:
            await self._garbage.forget()
            _log.info("user keys rewrapped", keys=wrapped, master_key_id=self._masters.active_id)

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
            except DomainError as error:  # the store failed; the next round retries
                _log.warning("output housekeeping failed", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - nothing may end the loop; an exception's text can contain a value
                _log.error("output housekeeping failed", error=type(error).__name__)
            await asyncio.sleep(self._every)
