"""Background work at a fixed interval: signs the head of the log, records key changes and drops expired data.

If the store refuses a step, the next round does it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_riskgate.approvals.watch import Watches
from phylactery_riskgate.audit.reader import AuditReader
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.keys.journal import KeyRecords
from phylactery_riskgate.keys.ring import KeyRing
from phylactery_riskgate.notices.config import NO_NOTICES
from phylactery_riskgate.privacy.retention import Retention
from phylactery_riskgate.store import notices
from phylactery_riskgate.tasks.service import Tasks

_log = get_logger("riskgate")


class Housekeeping:
    """The housekeeping loop and its steps."""

    def __init__(
        self, core: DecisionContext, tasks: Tasks, watches: Watches, auditing: AuditReader, retention: Retention
    ) -> None:
        self._core, self._tasks, self._watches = core, tasks, watches
        self._auditing, self._retention = auditing, retention
        self._key_records = KeyRecords(core.audit, "service")
        self._keys_on_record: KeyRing | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, seconds: float) -> None:
        """Start the loop, whose first round is after that many seconds."""
        self._task = asyncio.create_task(self._loop(seconds))

    async def stop(self) -> None:
        """Stop the loop."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def sign(self) -> None:
        """Sign the head and precompute subtrees for proofs; if the store refuses, a later start signs."""
        await self._try(self._sign, "the audit head was not signed")

    async def sign_head(self) -> bool:
        """Sign the audit log's head if the log has grown; return True if it has."""
        now_us = self._core.clock.now_us()
        return await self._core.write(lambda connection: self._core.audit.sign_head(connection, now_us))

    async def record_keys(self) -> int:
        """Record changes of the signing keys, whatever made them; return the number of entries written."""
        ring = self._core.keys.ring
        if ring is self._keys_on_record:
            # compared by identity: a reload that restores earlier keys follows other keys, which are on record
            return 0
        now_us = self._core.clock.now_us()
        count = await self._core.write(lambda connection: self._key_records.record(connection, ring.public, now_us))
        self._keys_on_record = ring
        return count

    async def prune_usage(self) -> int:
        """Drop budget counts of windows that ended long ago; return how many were dropped."""
        now_us = self._core.clock.now_us()
        return await self._core.write(lambda connection: self._core.usage.prune(connection, now_us))

    async def _loop(self, seconds: float) -> None:
        """Record changes of the keys before the head is signed, so that the head covers them."""
        while True:
            await asyncio.sleep(seconds)
            await self._try(self.record_keys, "a change of the signing keys is not on record yet")
            await self.sign()
            await self._try(self._prune, "old counts of budgets, changes of approvals and tasks were not dropped")
            await self._try(self._retention.run, "records past their retention were not emptied")

    async def _try(self, step: Callable[[], Awaitable[object]], failed: str) -> None:
        try:
            await step()
        except DomainError as error:
            _log.warning(failed, reason=error.reason)

    async def _sign(self) -> None:
        await self.sign_head()
        await self._auditing.keep_subtrees()

    async def _prune(self) -> None:
        await self.prune_usage()
        await self._watches.prune()
        await self._tasks.prune()
        now_us = self._core.clock.now_us()
        while await self._core.write(partial(notices.prune, now_us=now_us)):
            pass
        sinks = self._core.notices.notices
        if sinks is NO_NOTICES:
            return  # nobody says that there shall be no sinks: the file may be missing by mistake
        names = [one.name for one in sinks.sinks]
        dropped = await self._core.write(partial(notices.drop_others, names=names, now_us=now_us))
        for name, count in dropped.items():
            _log.warning("notices were dropped: no sink of the file has this name", sink=name, notices=count)
