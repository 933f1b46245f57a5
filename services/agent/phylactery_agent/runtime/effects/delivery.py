"""Delivers the outbox: each thread's messages for one destination in order, again and again until they are taken."""

from __future__ import annotations

import asyncio
from typing import get_args
from weakref import WeakValueDictionary

from phylactery_chassis.errors import STORE_FAILED
from phylactery_chassis.telemetry import semconv, telemetry
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import pause
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.ports import ExecutionReport, GateRefusedError, MemoryRefusedError, Reversal
from phylactery_agent.ports.services import Services
from phylactery_agent.runtime.dispatch.named_leases import LeaseTakenError, NamedLeases
from phylactery_agent.runtime.effects.outbox import PAGE, OutboxKind, OutboxMessage, OutboxStore

_log = get_logger("outbox")
_NEVER_SEEN = "EXECUTION_NOT_FOUND"
_WITHDRAWN = "the run was cancelled"


class Delivery:
    """Delivers on demand (flush) and in the background (run), each lane by one process at a time."""

    def __init__(
        self,
        store: OutboxStore,
        services: Services,
        named_leases: NamedLeases,
        *,
        retry_seconds: float,
        look_seconds: float | None = None,
    ) -> None:
        """look_seconds is how often to look for what another process left; None where there is no other."""
        self._store, self._services, self._named_leases = store, services, named_leases
        self._retry_seconds, self._look_seconds = retry_seconds, look_seconds
        self._lanes: WeakValueDictionary[tuple[OutboxKind, str], asyncio.Lock] = WeakValueDictionary()
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Say that something new waits."""
        self._news.set()

    async def flush(self, kind: OutboxKind, thread_key: str, run_id: str = "", *, patient: bool = True) -> None:
        """Deliver all that waits for one thread and destination, in order; of one run where it is named.

        Raise GateUnavailableError or MemoryUnavailableError; what was delivered until then stay delivered. Where
        another process delivers it waits for that one, or raises LeaseTakenError if not patient.
        """
        lane = self._lanes.setdefault((kind, thread_key), asyncio.Lock())
        async with lane:
            messages = await self._store.waiting(kind, thread_key, run_id)
            if not messages:
                return
            async with self._named_leases.doing(_lease_name(kind, thread_key), patient=patient):
                if not self._named_leases.alone:  # another process may have delivered some meanwhile
                    messages = await self._store.waiting(kind, thread_key, run_id)
                while messages:
                    for message in messages:
                        await self._deliver(message)
                    full = len(messages) == PAGE
                    messages = await self._store.waiting(kind, thread_key, run_id) if full else ()

    async def waiting(self, kind: OutboxKind) -> frozenset[str]:
        """Return the threads for which something waits to be told to one destination."""
        return frozenset(key for lane, key in await self._store.lanes() if lane == kind)

    async def refused(self, kind: OutboxKind, thread_key: str, run_id: str) -> bool:
        """Return whether one destination refused something of a run for good."""
        return await self._store.refused(kind, thread_key, run_id)

    async def quiet(self, thread_key: str) -> None:
        """Wait until nothing of a thread is on its way; what was taken from the outbox before may still be."""
        for kind in get_args(OutboxKind):
            lane = self._lanes.setdefault((kind, thread_key), asyncio.Lock())
            async with lane, self._named_leases.doing(_lease_name(kind, thread_key)):
                continue

    async def flush_all(self) -> bool:
        """Try every lane once; return whether nothing waits any more. A lane that fails does not hold up others."""
        complete = True
        for kind, thread_key in await self._store.lanes():
            try:
                await self.flush(kind, thread_key, patient=False)
            except LeaseTakenError:  # another process is at it, and may die over it
                complete = False
            except Exception as error:  # noqa: BLE001 - one lane's fault, ours included, must not end delivery
                complete = False
                _log.info("delivery failed; will retry", kind=kind, error=type(error).__name__)
        return complete

    async def run(self) -> None:
        """Deliver whenever there is news, and retry what was not taken, until cancelled."""
        while True:
            self._news.clear()
            try:
                complete = await self.flush_all()
            except STORE_FAILED:
                complete = False
            await pause(self._news, self._look_seconds if complete else self._retry_seconds)

    async def _deliver(self, message: OutboxMessage) -> None:
        reach("agent.outbox.before")
        refusal = ""
        parent = telemetry.extract({"traceparent": message.traceparent}) if message.traceparent else None
        with telemetry.span(f"deliver {message.kind}", parent=parent, attributes={semconv.RUN_ID: message.run_id}):
            try:
                await self._send(message)
            except (GateRefusedError, MemoryRefusedError) as error:
                refusal = error.reason
                _log.error("delivery refused for good", kind=message.kind, run_id=message.run_id, reason=error.reason)
        await self._store.settle(message, refusal=refusal)
        reach("agent.outbox.settled")

    async def _send(self, message: OutboxMessage) -> None:
        if message.kind == "transcript":
            transcript = self._services.transcript(message.owner)
            if request_id := message.payload.get("delete"):
                await transcript.delete(message.thread_id, request_id)
                return
            await transcript.append(message.thread_id, message.run_id, message.payload["messages"])
            return
        if message.kind == "memory":
            await self._remember(message)
            return
        await self._tell_riskgate(message)

    async def _tell_riskgate(self, message: OutboxMessage) -> None:
        gate = self._services.gate(message.owner)
        if message.kind == "withdrawal":
            await self._services.approvals(message.owner).withdraw([message.run_id], reason=_WITHDRAWN)
            return
        if message.kind == "observation":
            await gate.observe(message.payload)
            reach("agent.11.observe")
            return
        if message.kind == "task_end":
            for first in ("outcome", "observation"):  # nothing of the task comes after its end
                await self.flush(first, message.thread_key)
            await gate.end_task(message.payload["task_id"], keep_seconds=message.payload.get("keep_seconds", 0))
            return
        if told := message.payload.get("told"):
            await gate.report_told(told)
            return
        reversals = tuple(Reversal(**one) for one in message.payload.get("reversals", ()))
        try:
            await gate.report_outcome(ExecutionReport(**{**message.payload, "reversals": reversals}))
        except GateRefusedError as error:
            if error.reason != _NEVER_SEEN or not await self._store.note_not_redeemed(message):
                raise
        reach("agent.11")

    async def _remember(self, message: OutboxMessage) -> None:
        """Give the write policy the person's words: after the transcript, whose message it looks them up in.

        Their time goes along, so that words delivered twice do not retire what was said since.
        """
        await self.flush("transcript", message.thread_key)
        said = message.payload
        await self._services.memories(message.owner).write(
            said["text"],
            thread_id=message.thread_id,
            message_ids=[said["id"]],
            valid_us=said["create_us"],
            keep=False,
        )


def _lease_name(kind: OutboxKind, thread_key: str) -> str:
    """Return the name of the lease to deliver one lane."""
    return f"outbox:{kind}:{thread_key}"
