"""People who work the queue of escalations, as clients of the agent see it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpc import aio
from phylactery.agent.v1 import escalation_pb2, escalation_pb2_grpc, event_pb2
from phylactery_agent.runtime.handoff.lists import EscalationLists
from phylactery_agent.runtime.handoff.records import Handler, StoredEscalation
from phylactery_agent.runtime.handoff.store import EscalationStore
from phylactery_chassis.util import crashpoints
from phylactery_chassis.util.ids import new_id

from tests.support.agent.stores import ANA, Stores
from tests.support.agent.system import Person, System

MARTA, PABLO = Handler("acme", "marta"), Handler("acme", "pablo")
ENDS_SECONDS = 60
CLAIM_SECONDS = 300.0


def queue_of(stores: Stores) -> EscalationStore:
    """Return the queue over the stores."""
    return EscalationStore(stores.database, stores.clock, stores.news, claim_seconds=CLAIM_SECONDS)


def lists_of(stores: Stores) -> EscalationLists:
    """Return the reader of the queue over the stores."""
    return EscalationLists(stores.database)


async def called(stores: Stores, thread_id: str = "t1", owner: Any = ANA) -> StoredEscalation:
    """Return an open escalation of a thread in which one message was answered."""
    await stores.accepted(f"first-{thread_id}-{owner.user_id}", thread_id=thread_id, owner=owner)
    await stores.end(await stores.claimed(thread_id, owner=owner))
    return await queue_of(stores).open(owner, thread_id, f"request-{thread_id}", "wants a person")


@contextmanager
def dying_at(point: str) -> Iterator[None]:
    """Die, as far as a caller can tell, where the code reaches a crash point."""

    def dies(name: str) -> None:
        if name == point:
            raise RuntimeError(point)

    crashpoints.install(dies)
    try:
        yield
    finally:
        crashpoints.install(None)


class Worker:
    """A person who works the queue through the service."""

    def __init__(self, system: System, token: str) -> None:
        self.metadata = (("authorization", f"Bearer {token}"),)
        self.stub = escalation_pb2_grpc.EscalationServiceStub(system.agent_channel)

    async def _call(self, method: Any, request: Any) -> Any:
        return await method(request, metadata=self.metadata, timeout=ENDS_SECONDS)

    async def queue(self, **fields: Any) -> escalation_pb2.ListEscalationsResponse:
        return await self._call(self.stub.ListEscalations, escalation_pb2.ListEscalationsRequest(**fields))

    async def get(self, escalation_id: str) -> escalation_pb2.GetEscalationResponse:
        return await self._call(
            self.stub.GetEscalation, escalation_pb2.GetEscalationRequest(escalation_id=escalation_id)
        )

    async def claim(self, escalation_id: str, name: str = "Marta") -> escalation_pb2.Escalation:
        request = escalation_pb2.ClaimEscalationRequest(escalation_id=escalation_id, display_name=name)
        return (await self._call(self.stub.ClaimEscalation, request)).escalation

    async def reply(self, escalation_id: str, text: str, request_id: str = "") -> escalation_pb2.EscalationEntry:
        request = escalation_pb2.ReplyAsHumanRequest(
            request_id=request_id or new_id("reply"), escalation_id=escalation_id, text=text
        )
        return (await self._call(self.stub.ReplyAsHuman, request)).entry

    async def note(self, escalation_id: str, text: str) -> escalation_pb2.EscalationEntry:
        request = escalation_pb2.AddNoteRequest(request_id=new_id("note"), escalation_id=escalation_id, text=text)
        return (await self._call(self.stub.AddNote, request)).entry

    async def release(self, escalation_id: str, summary: str = "", to: str = "AGENT") -> escalation_pb2.Escalation:
        request = escalation_pb2.ReleaseEscalationRequest(
            escalation_id=escalation_id, summary=summary, to=escalation_pb2.ReleaseTo.Value(f"RELEASE_TO_{to}")
        )
        return (await self._call(self.stub.ReleaseEscalation, request)).escalation

    async def watched(self, count: int, after: int = 0) -> list[escalation_pb2.EscalationEntry]:
        """Return so many entries of the queue after a sequence."""
        request = escalation_pb2.WatchEscalationsRequest(after_sequence=after)
        call = self.stub.WatchEscalations(request, metadata=self.metadata, timeout=ENDS_SECONDS)
        entries: list[escalation_pb2.EscalationEntry] = []
        try:
            while len(entries) < count:
                answer = await asyncio.wait_for(call.read(), ENDS_SECONDS)
                assert answer is not aio.EOF, "the stream ended"
                entries.append(answer.entry)
        finally:
            call.cancel()
        return entries


async def events_of(person: Person, thread_id: str = "t1") -> list[event_pb2.Event]:
    """Return every event of a thread so far."""
    from tests.support.agent.threads import watched

    last = (await person.thread(thread_id)).last_sequence
    async with watched(person, thread_id) as watch:
        return await watch.until(last)


def spoken(events: list[event_pb2.Event]) -> list[str]:
    """Return the kinds of what was said and of who has the thread, in order."""
    kinds = ("message", "message_delta", "approval_required", "human_message", "handoff")
    return [
        f"handoff {event.handoff.state}" if event.HasField("handoff") else event.WhichOneof("kind") or ""
        for event in events
        if event.WhichOneof("kind") in kinds
    ]


def tokens_file(folder: Path, *people: tuple[str, str, tuple[str, ...]]) -> tuple[Path, dict[str, str]]:
    """Write a tokens file for (subject, tenant, roles), and return it with each subject's token."""
    import yaml
    from phylactery_chassis.auth.identity import token_hash

    tokens = {f"{subject}@{tenant}": f"token-of-{subject}-{tenant}" for subject, tenant, _ in people}
    entries = [
        {
            "hash": token_hash(tokens[f"{subject}@{tenant}"]),
            "subject": subject,
            "tenant": tenant,
            "roles": list(roles),
        }
        for subject, tenant, roles in people
    ]
    path = folder / "tokens.yaml"
    path.write_text(yaml.safe_dump({"tokens": entries}))
    path.chmod(0o600)
    return path, tokens
