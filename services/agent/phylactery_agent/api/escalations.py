"""EscalationService: the queue of conversations that wait for a person."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from phylactery.agent.v1 import escalation_pb2, escalation_pb2_grpc
from phylactery_chassis.auth.identity import Principal, Role, current_principal
from phylactery_chassis.errors import FailedPrecondition, OutOfRange, ResourceExhausted
from phylactery_chassis.rpc.validation import EdgeModel, Identifier, LongIdentifier, from_message
from phylactery_chassis.util.clock import pause
from phylactery_chassis.util.timestamps import to_timestamp
from pydantic import AfterValidator, Field, StringConstraints

from phylactery_agent.api.mapping import Context, owner_of, word_of
from phylactery_agent.ports import MemoryRefusedError, MemoryUnavailableError
from phylactery_agent.ports.handoff import MAX_REASON
from phylactery_agent.ports.services import Services, TranscriptMessage
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.handoff.lists import EscalationLists
from phylactery_agent.runtime.handoff.queue import queue_key
from phylactery_agent.runtime.handoff.records import Handler, QueueEntry, StoredEscalation
from phylactery_agent.runtime.handoff.status import ACTIVE, EscalationStatus
from phylactery_agent.runtime.handoff.store import EscalationStore
from phylactery_agent.runtime.storage.records import Page

MAX_TEXT: Final = 4_000
DEFAULT_PAGE: Final = 20
MAX_CONVERSATION: Final = 30
MAX_CONVERSATION_CHARACTERS: Final = 20_000
MAX_WATCHES: Final = 20
"""Maximum number of concurrent watches by one handler."""
_LOOK_SECONDS: Final = 10.0
"""Polling interval of a watch, because notifications from another process may be lost."""
_STATE, _POLICY, _KIND, _TO = "ESCALATION_STATE_", "ESCALATION_POLICY_", "ESCALATION_ENTRY_KIND_", "RELEASE_TO_"


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("has characters that cannot be shown in one line")
    return value.strip()


StateWord = Literal["open", "claimed", "released", "closed"]
Said = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT, pattern=r"\S")]


class ListRequest(EdgeModel):
    """ListEscalations; no states means those that have not ended."""

    states: Annotated[tuple[StateWord, ...], Field(max_length=8)]
    mine_only: bool
    policy: Literal["", "keyword", "timeout", "sentiment", "llm_intent", "completion", "request"]
    page_size: Annotated[int, Field(ge=0, le=100)]
    page_token: Annotated[str, StringConstraints(max_length=1_000)]


class EscalationRef(EdgeModel):
    """GetEscalation and RenewClaim."""

    escalation_id: Identifier


class ClaimRequest(EdgeModel):
    """ClaimEscalation."""

    escalation_id: Identifier
    display_name: Annotated[str, StringConstraints(max_length=64), AfterValidator(_one_line)]


class SayRequest(EdgeModel):
    """ReplyAsHuman and AddNote."""

    request_id: LongIdentifier
    escalation_id: Identifier
    text: Said


class ReleaseRequest(EdgeModel):
    """ReleaseEscalation."""

    escalation_id: Identifier
    to: Literal["", "agent", "queue"]
    summary: Annotated[str, StringConstraints(max_length=2_000)]


class WatchRequest(EdgeModel):
    """WatchEscalations."""

    after_sequence: Annotated[int, Field(ge=0)]


class OpenRequest(EdgeModel):
    """OpenEscalation."""

    request_id: LongIdentifier
    thread_id: Identifier
    reason: Annotated[str, StringConstraints(max_length=MAX_REASON)]


@dataclass(frozen=True, slots=True)
class ShownEscalation:
    """An escalation with its entries and the recent conversation; None if memory did not respond.

    While somebody else has it, nobody but they read the conversation; once it has ended, it is the user's own again.
    """

    escalation: StoredEscalation
    entries: Sequence[QueueEntry]
    conversation: Sequence[TranscriptMessage] | None


def _reads(handler: Handler, escalation: StoredEscalation) -> bool:
    if escalation.status is EscalationStatus.CLAIMED:
        return escalation.handler == handler.subject
    return escalation.status in ACTIVE


def handler_of(principal: Principal) -> Handler:
    """Return the caller as a handler of their tenant. Raise PermissionDenied without the role handler."""
    principal.require(Role.HANDLER)
    return Handler(principal.tenant, principal.subject)


@dataclass(eq=False)
class EscalationEdge:
    """The implementation of EscalationService, without gRPC."""

    store: EscalationStore
    lists: EscalationLists
    services: Services
    delivery: Delivery
    news: ThreadNotifier
    on_duty: bool
    _open: Counter[Handler] = field(default_factory=Counter, init=False)
    _ending: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def list(self, principal: Principal, request: ListRequest) -> tuple[Page[StoredEscalation], int]:
        """Return a page of the tenant's escalations and the sequence of the queue's last entry."""
        return await self.lists.page(
            handler_of(principal),
            statuses=[EscalationStatus(word) for word in request.states] or ACTIVE,
            mine=request.mine_only,
            policy=request.policy,
            size=request.page_size or DEFAULT_PAGE,
            token=request.page_token,
        )

    async def get(self, principal: Principal, escalation_id: str) -> ShownEscalation:
        """Return an escalation with the recent conversation. Raise NotFound ESCALATION_NOT_FOUND."""
        handler = handler_of(principal)
        escalation, entries = await self.lists.get(handler, escalation_id)
        if not _reads(handler, escalation):
            return ShownEscalation(escalation, entries, ())
        try:
            await self.delivery.flush("transcript", escalation.thread_key)
            page = await self.services.transcript(escalation.owner).page(
                escalation.thread_id, page_size=MAX_CONVERSATION, max_characters=MAX_CONVERSATION_CHARACTERS
            )
        except (MemoryUnavailableError, MemoryRefusedError):
            return ShownEscalation(escalation, entries, None)
        escalation, entries = await self.lists.get(handler, escalation_id)  # it may have changed meanwhile
        return ShownEscalation(escalation, entries, page.messages[::-1] if _reads(handler, escalation) else ())

    async def claim(self, principal: Principal, request: ClaimRequest) -> StoredEscalation:
        """Claim an escalation for the caller. Raise as EscalationStore.claim, FailedPrecondition HANDOFF_OFF."""
        handler = handler_of(principal)
        self._require_duty()
        return await self.store.claim(handler, request.escalation_id, principal.shown_as(request.display_name))

    async def renew(self, principal: Principal, escalation_id: str) -> StoredEscalation:
        """Extend the caller's claim."""
        return await self.store.renew(handler_of(principal), escalation_id)

    async def reply(self, principal: Principal, request: SayRequest) -> QueueEntry:
        """Say something to the person under the caller's claim."""
        return await self.store.reply(handler_of(principal), request.escalation_id, request.request_id, request.text)

    async def add_note(self, principal: Principal, request: SayRequest) -> QueueEntry:
        """Add a note that only handlers see, under the caller's claim."""
        return await self.store.add_note(handler_of(principal), request.escalation_id, request.request_id, request.text)

    async def release(self, principal: Principal, request: ReleaseRequest) -> StoredEscalation:
        """End the caller's claim."""
        return await self.store.release(
            handler_of(principal), request.escalation_id, request.to or "agent", request.summary
        )

    async def open(self, principal: Principal, request: OpenRequest) -> StoredEscalation:
        """Call a person to one of the caller's threads. Raise FailedPrecondition HANDOFF_OFF, NotFound."""
        owner = owner_of(principal)
        self._require_duty()
        return await self.store.open(
            owner, request.thread_id, request.request_id, request.reason, level=principal.level
        )

    async def watch(self, principal: Principal, after: int) -> AsyncGenerator[QueueEntry]:
        """Yield the queue's entries after a sequence, then each as it is stored, until the agent stops.

        Raise OutOfRange CURSOR_AHEAD, ResourceExhausted TOO_MANY_WATCHES.
        """
        handler, sequence = handler_of(principal), after
        with self._counted(handler), self.news.listen(queue_key(handler.tenant)) as news:
            while not self._ending.is_set():
                news.clear()
                tail = await self.lists.after(handler, sequence)
                if sequence > tail.last_sequence:
                    raise OutOfRange(
                        "CURSOR_AHEAD",
                        f"the last entry of this queue is {tail.last_sequence}; begin again with after_sequence 0",
                        metadata={"last_sequence": str(tail.last_sequence)},
                    )
                for entry in tail.entries:
                    yield entry
                    sequence = entry.sequence
                if not tail.entries and not self._ending.is_set():
                    await pause(news, _LOOK_SECONDS)

    async def end(self) -> None:
        """End every watch, so that a stopping server need not wait for them."""
        self._ending.set()
        self.news.tell_all_here()

    def _require_duty(self) -> None:
        if not self.on_duty:
            raise FailedPrecondition("HANDOFF_OFF", "nobody is on duty here; the operator can set AGENT_HANDOFF=on")

    @contextmanager
    def _counted(self, handler: Handler) -> Iterator[None]:
        if self._open[handler] >= MAX_WATCHES:
            raise ResourceExhausted(
                "TOO_MANY_WATCHES",
                f"this handler watches {MAX_WATCHES} times already; end one of those streams first",
                metadata={"limit": str(MAX_WATCHES)},
            )
        self._open[handler] += 1
        try:
            yield
        finally:
            self._open[handler] -= 1
            if not self._open[handler]:
                del self._open[handler]


class EscalationServicer(escalation_pb2_grpc.EscalationServiceServicer):
    """phylactery.agent.v1.EscalationService."""

    def __init__(self, edge: EscalationEdge) -> None:
        self._edge = edge

    async def ListEscalations(
        self, request: escalation_pb2.ListEscalationsRequest, _context: Context
    ) -> escalation_pb2.ListEscalationsResponse:
        """Return a page of escalations."""
        states = tuple(word_of(escalation_pb2.EscalationState, state, _STATE) for state in request.states)
        policy = word_of(escalation_pb2.EscalationPolicy, request.policy, _POLICY)
        wanted = from_message(ListRequest, request, states=states, policy=policy)
        page, last = await self._edge.list(current_principal(), wanted)
        return escalation_pb2.ListEscalationsResponse(
            escalations=[escalation_message(one) for one in page.rows],
            next_page_token=page.next_page_token,
            last_sequence=last,
        )

    async def GetEscalation(
        self, request: escalation_pb2.GetEscalationRequest, _context: Context
    ) -> escalation_pb2.GetEscalationResponse:
        """Return an escalation with its conversation."""
        escalation_id = from_message(EscalationRef, request).escalation_id
        shown = await self._edge.get(current_principal(), escalation_id)
        said = shown.conversation
        return escalation_pb2.GetEscalationResponse(
            escalation=escalation_message(shown.escalation),
            entries=[entry_message(entry) for entry in shown.entries],
            conversation=[
                escalation_pb2.ConversationMessage(
                    role=one.role, text=one.text, create_time=to_timestamp(one.created_us)
                )
                for one in said or ()
            ],
            conversation_unavailable=said is None,
            form_state=shown.escalation.form_state,
        )

    async def ClaimEscalation(
        self, request: escalation_pb2.ClaimEscalationRequest, _context: Context
    ) -> escalation_pb2.ClaimEscalationResponse:
        """Claim an escalation."""
        claimed = await self._edge.claim(current_principal(), from_message(ClaimRequest, request))
        return escalation_pb2.ClaimEscalationResponse(escalation=escalation_message(claimed))

    async def RenewClaim(
        self, request: escalation_pb2.RenewClaimRequest, _context: Context
    ) -> escalation_pb2.RenewClaimResponse:
        """Extend a claim."""
        renewed = await self._edge.renew(current_principal(), from_message(EscalationRef, request).escalation_id)
        return escalation_pb2.RenewClaimResponse(escalation=escalation_message(renewed))

    async def ReplyAsHuman(
        self, request: escalation_pb2.ReplyAsHumanRequest, _context: Context
    ) -> escalation_pb2.ReplyAsHumanResponse:
        """Say something to the person."""
        entry = await self._edge.reply(current_principal(), from_message(SayRequest, request))
        return escalation_pb2.ReplyAsHumanResponse(entry=entry_message(entry))

    async def AddNote(
        self, request: escalation_pb2.AddNoteRequest, _context: Context
    ) -> escalation_pb2.AddNoteResponse:
        """Add a note."""
        entry = await self._edge.add_note(current_principal(), from_message(SayRequest, request))
        return escalation_pb2.AddNoteResponse(entry=entry_message(entry))

    async def ReleaseEscalation(
        self, request: escalation_pb2.ReleaseEscalationRequest, _context: Context
    ) -> escalation_pb2.ReleaseEscalationResponse:
        """End a claim."""
        to = word_of(escalation_pb2.ReleaseTo, request.to, _TO)
        released = await self._edge.release(current_principal(), from_message(ReleaseRequest, request, to=to))
        return escalation_pb2.ReleaseEscalationResponse(escalation=escalation_message(released))

    async def WatchEscalations(
        self, request: escalation_pb2.WatchEscalationsRequest, _context: Context
    ) -> AsyncIterator[escalation_pb2.WatchEscalationsResponse]:
        """Stream a queue's entries."""
        after = from_message(WatchRequest, request).after_sequence
        async with aclosing(self._edge.watch(current_principal(), after)) as entries:
            async for entry in entries:
                yield escalation_pb2.WatchEscalationsResponse(entry=entry_message(entry))

    async def OpenEscalation(
        self, request: escalation_pb2.OpenEscalationRequest, _context: Context
    ) -> escalation_pb2.OpenEscalationResponse:
        """Call a person to a thread."""
        opened = await self._edge.open(current_principal(), from_message(OpenRequest, request))
        message = escalation_message(opened)
        message.ClearField("handler")  # the person sees the display name only
        return escalation_pb2.OpenEscalationResponse(escalation=message)


def escalation_message(one: StoredEscalation) -> escalation_pb2.Escalation:
    """Return an escalation in wire form."""
    message = escalation_pb2.Escalation(
        escalation_id=one.escalation_id,
        state=_value(escalation_pb2.EscalationState, _STATE, one.status),
        policy=_value(escalation_pb2.EscalationPolicy, _POLICY, one.policy),
        reason=one.reason,
        subject=one.owner.user_id,
        thread_id=one.thread_id,
        language=one.language,
        form_id=one.form_id,
        handler=one.handler,
        display_name=one.display_name,
        create_time=to_timestamp(one.opened_us),
        end_reason=one.end_reason,
        summary=one.summary,
    )
    if one.status is EscalationStatus.CLAIMED:
        message.claim_expire_time.CopyFrom(to_timestamp(one.claim_until_us))
    if one.claimed_us:
        message.first_claim_time.CopyFrom(to_timestamp(one.claimed_us))
    if one.ended_us:
        message.end_time.CopyFrom(to_timestamp(one.ended_us))
    return message


def entry_message(entry: QueueEntry) -> escalation_pb2.EscalationEntry:
    """Return an entry in wire form."""
    return escalation_pb2.EscalationEntry(
        sequence=entry.sequence,
        escalation_id=entry.escalation_id,
        kind=_value(escalation_pb2.EscalationEntryKind, _KIND, entry.kind),
        state=_value(escalation_pb2.EscalationState, _STATE, entry.status),
        actor=entry.actor,
        text=entry.text,
        create_time=to_timestamp(entry.created_us),
    )


def _value(enum: Any, prefix: str, word: str) -> Any:
    return enum.Value(f"{prefix}{word.upper()}")
