"""What is remembered about the user, as one turn uses it: a text is kept with the words of the person it rests on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from phylactery_agent.ports import Recalled, Remembered
from phylactery_agent.runtime.delivery import Delivery
from phylactery_agent.runtime.model import Lease, StoredTurn
from phylactery_agent.runtime.runs import message_id, said_in
from phylactery_agent.runtime.services import Services


@dataclass(frozen=True, slots=True)
class TurnMemories:
    """ports.Memories of one turn. request_turn is the turn that brought the request, where it was an earlier one.

    has_read tells whether a tool of the run answered anything yet.
    """

    services: Services
    delivery: Delivery
    lease: Lease
    turn: StoredTurn
    request_turn: str
    has_read: Callable[[], Awaitable[bool]]

    async def remember(self, text: str) -> Remembered:
        """Keeps a text because it was asked for.

        The transcript takes the message first: memory believes a text as the person's only where a message of theirs
        holds its words, whatever a plan or a model makes of them. Once a tool answered, other words count as a text's.
        """
        lease = self.lease
        await self.delivery.flush("transcript", lease.thread_key)
        if said := said_in(self.turn):
            await self.services.transcript(lease.owner).append(lease.thread_id, lease.run_id, [said])
        turns = dict.fromkeys(name for name in (self.request_turn, self.turn.turn_id if said else "") if name)
        return await self.services.memories(lease.owner).write(
            text,
            thread_id=lease.thread_id,
            message_ids=[message_id(turn) for turn in turns],
            valid_us=self.turn.created_us,
            keep=True,
            read=await self.has_read(),
        )

    async def recall(self, query: str, *, limit: int) -> Sequence[Recalled]:
        """Answers what fits the words, best first; without words what was said last."""
        return await self.services.memories(self.lease.owner).recall(query, limit=limit)
