"""Loading of a turn's context from memory in one call; with a single process it begins during intake."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from phylactery_chassis.telemetry import telemetry
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.graph.core.state import WINDOW_MESSAGES
from phylactery_agent.ports import (
    Hydration,
    MemoryRefusedError,
    MemoryUnavailableError,
    ProfileValue,
    Recalled,
    Remembered,
)
from phylactery_agent.ports.services import Services
from phylactery_agent.rules.intents import APPROVAL_DECIDED, APPROVAL_REPLY, FAST_PATHWAY
from phylactery_agent.rules.planner import SHORT_CHARACTERS, read_aside
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.intake.classification import Classification, classify_incoming, in_language, listen
from phylactery_agent.runtime.runs.lifecycle import message_id, said_in
from phylactery_agent.runtime.storage.records import Claim, Incoming, Lease, OfThread, StoredTurn
from phylactery_agent.runtime.turn import canned_replies
from phylactery_agent.tools.registry import ToolRegistry


def drop(aside: asyncio.Task[Any]) -> None:
    """Cancel a background task whose result is no longer needed, and discard its exception."""
    if not aside.cancel() and not aside.cancelled():
        aside.exception()


_ANSWERS_TO_APPROVALS: Final = frozenset({APPROVAL_DECIDED, APPROVAL_REPLY})
_MOST_PREPARED: Final = 64
_MOST_STATEMENTS: Final = 20
"""Statements of one message that are told to be kept, and taken back together."""

_log = get_logger("hydrating")


@dataclass(frozen=True, slots=True)
class _Begun:
    """A context read that was started for a message, and the message's classification."""

    heard: Classification
    reading: asyncio.Task[Hydration]


class Hydrating:
    """Loader of turn contexts from memory."""

    def __init__(self, services: Services, delivery: Delivery, tools: ToolRegistry) -> None:
        """Take the services, and the delivery that must inform memory of earlier turns first."""
        self._services, self._delivery, self._tools = services, delivery, tools
        self._begun: dict[str, _Begun] = {}
        self._prepared: dict[str, Classification] = {}
        self._context = contextvars.copy_context()
        """The context at construction: a caller's deadline and identity must not leak into a turn."""

    async def prepare(self, incoming: Incoming) -> None:
        """Classify a long message off the event loop, before begin() needs the result."""
        if len(incoming.text) <= SHORT_CHARACTERS:
            return
        owner = incoming.owner
        work = partial(classify_incoming, incoming, self._tools)
        heard = await read_aside((owner.tenant, owner.user_id), incoming.text, work)
        while len(self._prepared) >= _MOST_PREPARED:  # left by messages that opened no run
            del self._prepared[next(iter(self._prepared))]
        self._prepared[incoming.turn_id] = heard

    def begin(self, incoming: Incoming) -> None:
        """Start reading for a message that is on its way into the inbox and opens a run there.

        The thread must have no turn in progress, and no other process may serve it: the read must see everything that
        earlier turns said.
        """
        heard = self._prepared.pop(incoming.turn_id, None) or classify_incoming(incoming, self._tools)
        if heard.intent not in _ANSWERS_TO_APPROVALS:
            reading = asyncio.get_running_loop().create_task(
                self._traced(incoming, heard), context=self._context.copy()
            )
            self._begun[incoming.turn_id] = _Begun(heard, reading)

    def forget(self, turn_id: str) -> None:
        """Drop the read started for a message that opened no run, or whose turn was given back."""
        begun = self._begun.pop(turn_id, None)
        if begun is not None:
            drop(begun.reading)

    async def heard(self, claim: Claim) -> Classification:
        """Return the classification of a claimed message."""
        begun = self._begun.get(claim.lease.turn_id)
        if begun is not None:
            return in_language(begun.heard, claim)
        owner = claim.run.owner
        return await read_aside((owner.tenant, owner.user_id), claim.turn.text, partial(listen, claim, self._tools))

    async def of(self, claim: Claim, heard: Classification) -> Hydration | None:
        """Return the context the pathway needs, after memory has received every earlier turn of the thread.

        Return None where nothing is read: an answer to an approval continues with the run's state. If memory is
        unavailable the turn continues degraded: no effect depends on memory, and what memory must receive waits in the
        outbox.
        """
        begun = self._begun.pop(claim.lease.turn_id, None)
        if begun is not None:
            return await begun.reading
        if heard.intent in _ANSWERS_TO_APPROVALS:
            return None
        return await self._read(claim.lease, claim.turn.text, heard)

    async def _traced(self, incoming: Incoming, heard: Classification) -> Hydration:
        """Read within the message's trace, because its turn has no span yet."""
        parent = telemetry.extract({"traceparent": incoming.traceparent}) if incoming.traceparent else None
        with telemetry.span("hydrate", parent=parent):
            return await self._read(incoming, incoming.text, heard)

    async def _read(self, of: OfThread, text: str, heard: Classification) -> Hydration:
        thread_key = of.thread_key
        try:
            await self._delivery.flush("transcript", thread_key)
            await self._delivery.flush("memory", thread_key)
            return await self._services.memories(of.owner).hydrate(
                of.thread_id, pathway=heard.pathway, query=text, max_messages=WINDOW_MESSAGES
            )
        except (MemoryUnavailableError, MemoryRefusedError) as error:
            _log.warning("a turn goes on without memory", thread=thread_key, error=str(error))
            refusal = error.reason if isinstance(error, MemoryRefusedError) else canned_replies.MEMORY_UNAVAILABLE
            return Hydration(degraded=refusal)


@dataclass(frozen=True, slots=True)
class TurnMemories:
    """Implementation of ports.Memories for one turn.

    request_turn is the turn that brought the request, if it was an earlier one. has_read returns whether a tool of the
    run has returned anything yet.
    """

    services: Services
    delivery: Delivery
    lease: Lease
    turn: StoredTurn
    request_turn: str
    has_read: Callable[[], Awaitable[bool]]

    async def remember(self, text: str) -> Remembered:
        """Store a text that the person asked to be remembered.

        The message is appended to the transcript first: memory attributes a text to the person only if a message of
        theirs contains its words, whatever a plan or a model makes of them. Once a tool has returned something, other
        words may come from its output.
        """
        lease = self.lease
        await self.delivery.flush("transcript", lease.thread_key)
        if said := said_in(self.turn):
            await self.services.transcript(lease.owner).append(lease.thread_id, lease.run_id, [said])
        turns = dict.fromkeys(name for name in (self.request_turn, self.turn.turn_id if said else "") if name)
        kept = await self.services.memories(lease.owner).write(
            text,
            thread_id=lease.thread_id,
            message_ids=[message_id(turn) for turn in turns],
            valid_us=self.turn.created_us,
            keep=True,
            read=await self.has_read(),
        )
        # by its time as well: an attempt that was killed before it was noted wrote it first
        is_new = kept.is_new or kept.created_us >= self.turn.created_us
        together = await self._together(self.turn.created_us) if is_new and not kept.refusal else ()
        name = " ".join(one.memory_id for one in together) or kept.memory_id
        return replace(kept, is_new=is_new, memory_id=name)

    async def _together(self, created_us: int) -> Sequence[Recalled]:
        """Return what one message made memory keep, oldest first: its statements are kept apart, with its time."""
        newest = await self.services.memories(self.lease.owner).recall("", limit=_MOST_STATEMENTS)
        return [one for one in reversed(newest) if one.valid_us == created_us]

    async def offer(self, said: Mapping[str, Any]) -> Sequence[str]:
        """Submit what the person said to memory's write policy, and return what is kept of it, oldest first.

        said is the message as the transcript has it. Raise MemoryUnavailableError, MemoryRefusedError.
        """
        lease, memories = self.lease, self.services.memories(self.lease.owner)
        await self.delivery.flush("transcript", lease.thread_key)
        await self.services.transcript(lease.owner).append(lease.thread_id, lease.run_id, [said])
        kept = await memories.write(
            said["text"],
            thread_id=lease.thread_id,
            message_ids=[said["id"]],
            valid_us=said["create_us"],
            keep=False,
        )
        if not kept.memory_id:
            return ()
        together = await self._together(said["create_us"]) if kept.is_new else ()
        return [one.text for one in together] or [kept.text]

    async def profile(self) -> Sequence[ProfileValue]:
        """Return what memory knows of the person by now. Raise MemoryUnavailableError, MemoryRefusedError."""
        memories = self.services.memories(self.lease.owner)
        read = await memories.hydrate(self.lease.thread_id, pathway=FAST_PATHWAY, query="", max_messages=1)
        return read.profile

    async def forget(self, memory_id: str, *, restore: bool = False) -> bool:
        """Forget a memory, and with restore make valid again what it had superseded; return False if there is none."""
        return await self.services.memories(self.lease.owner).forget(memory_id, restore=restore)

    async def recall(self, query: str, *, limit: int) -> Sequence[Recalled]:
        """Return the best matches for the query, best first; for an empty query, the most recent entries."""
        return await self.services.memories(self.lease.owner).recall(query, limit=limit)
