"""Client of the queue of escalations, for people who answer in place of the agent, and for those who call them."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from phylactery.agent.v1 import escalation_pb2, escalation_pb2_grpc

from phylactery_client.channel import ServiceClient, new_request_id
from phylactery_client.decode import decode, enum_number
from phylactery_client.transport import closing


@dataclass(frozen=True, slots=True)
class Escalation:
    """A conversation that waits for a person, is with one, or was; state is OPEN, CLAIMED, RELEASED or CLOSED."""

    escalation_id: str
    state: str
    policy: str
    reason: str
    subject: str
    thread_id: str
    language: str
    form_id: str
    handler: str
    display_name: str
    claim_expire_time: datetime | None
    create_time: datetime | None
    first_claim_time: datetime | None
    end_time: datetime | None
    end_reason: str
    summary: str


@dataclass(frozen=True, slots=True)
class EscalationEntry:
    """A stored entry of the queue; kind is e.g. OPENED, CLAIMED, MESSAGE, REPLY, NOTE or RELEASED."""

    sequence: int
    escalation_id: str
    kind: str
    state: str
    actor: str
    text: str
    create_time: datetime | None


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """A message of the conversation; role is user, assistant or tool."""

    role: str
    text: str
    create_time: datetime | None


@dataclass(frozen=True, slots=True)
class EscalationPage:
    """A page of escalations, the oldest first; watch_escalations continues from last_sequence."""

    escalations: tuple[Escalation, ...]
    next_page_token: str
    last_sequence: int


@dataclass(frozen=True, slots=True)
class EscalationDetail:
    """An escalation with its entries and the most recent part of the conversation, both in order."""

    escalation: Escalation
    entries: tuple[EscalationEntry, ...]
    conversation: tuple[ConversationMessage, ...]
    conversation_unavailable: bool
    form_state: str


class EscalationClient(ServiceClient):
    """A client of the agent's queue. Every method raises the PhylacteryError of its code; timeout is in seconds.

    All methods except open need the role handler.
    """

    def __init__(self, target: str, **options: Any) -> None:
        """Options are those of ServiceClient."""
        super().__init__(target, **options)
        self._queue = escalation_pb2_grpc.EscalationServiceStub(self._channel)

    async def list(
        self,
        *,
        states: Sequence[str] = (),
        mine_only: bool = False,
        policy: str = "",
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> EscalationPage:
        """Return a page of the queue; no states means OPEN and CLAIMED. Raise ValueError for an unknown word."""
        state_enum, policy_enum = escalation_pb2.EscalationState, escalation_pb2.EscalationPolicy
        request = escalation_pb2.ListEscalationsRequest(
            states=[
                cast("escalation_pb2.EscalationState.ValueType", enum_number(state_enum.DESCRIPTOR, state))
                for state in states
            ],
            mine_only=mine_only,
            policy=cast("escalation_pb2.EscalationPolicy.ValueType", enum_number(policy_enum.DESCRIPTOR, policy)),
            page_size=page_size,
            page_token=page_token,
        )
        return decode(EscalationPage, await self._call(self._queue.ListEscalations, request, timeout))

    async def get(self, escalation_id: str, *, timeout: float | None = None) -> EscalationDetail:
        """Return an escalation with the recent conversation."""
        request = escalation_pb2.GetEscalationRequest(escalation_id=escalation_id)
        return decode(EscalationDetail, await self._call(self._queue.GetEscalation, request, timeout))

    async def claim(self, escalation_id: str, *, display_name: str = "", timeout: float | None = None) -> Escalation:
        """Claim an escalation: from then on the agent says nothing in the conversation."""
        request = escalation_pb2.ClaimEscalationRequest(escalation_id=escalation_id, display_name=display_name)
        return decode(Escalation, (await self._call(self._queue.ClaimEscalation, request, timeout)).escalation)

    async def renew(self, escalation_id: str, *, timeout: float | None = None) -> Escalation:
        """Extend the caller's claim."""
        request = escalation_pb2.RenewClaimRequest(escalation_id=escalation_id)
        return decode(Escalation, (await self._call(self._queue.RenewClaim, request, timeout)).escalation)

    async def reply(
        self, escalation_id: str, text: str, *, request_id: str | None = None, timeout: float | None = None
    ) -> EscalationEntry:
        """Send a message to the person, once per request_id, under the caller's claim."""
        request = escalation_pb2.ReplyAsHumanRequest(
            request_id=request_id or new_request_id(), escalation_id=escalation_id, text=text
        )
        return decode(EscalationEntry, (await self._call(self._queue.ReplyAsHuman, request, timeout)).entry)

    async def add_note(
        self, escalation_id: str, text: str, *, request_id: str | None = None, timeout: float | None = None
    ) -> EscalationEntry:
        """Add a note that only handlers see, once per request_id."""
        request = escalation_pb2.AddNoteRequest(
            request_id=request_id or new_request_id(), escalation_id=escalation_id, text=text
        )
        return decode(EscalationEntry, (await self._call(self._queue.AddNote, request, timeout)).entry)

    async def release(
        self, escalation_id: str, *, summary: str = "", to: str = "AGENT", timeout: float | None = None
    ) -> Escalation:
        """End the caller's claim; to is AGENT or QUEUE. Raise ValueError for another word."""
        number = enum_number(escalation_pb2.ReleaseTo.DESCRIPTOR, to)
        request = escalation_pb2.ReleaseEscalationRequest(
            escalation_id=escalation_id, to=cast("escalation_pb2.ReleaseTo.ValueType", number), summary=summary
        )
        return decode(Escalation, (await self._call(self._queue.ReleaseEscalation, request, timeout)).escalation)

    async def open(
        self, thread_id: str, *, reason: str = "", request_id: str | None = None, timeout: float | None = None
    ) -> Escalation:
        """Call a person to one of the caller's threads; if one was called already, return that escalation."""
        request = escalation_pb2.OpenEscalationRequest(
            request_id=request_id or new_request_id(), thread_id=thread_id, reason=reason
        )
        return decode(Escalation, (await self._call(self._queue.OpenEscalation, request, timeout)).escalation)

    async def watch(
        self, *, after_sequence: int = 0, reconnect: bool = True, timeout: float = math.inf
    ) -> AsyncGenerator[EscalationEntry]:
        """Yield the queue's entries after a sequence, then each new one, until the caller stops reading.

        If the agent stops or the connection breaks, the stream resumes after the last entry once the agent is back;
        with reconnect=False it ends or raises instead.
        """
        place = after_sequence

        def stream(seconds: float) -> AsyncGenerator[escalation_pb2.WatchEscalationsResponse]:
            request = escalation_pb2.WatchEscalationsRequest(after_sequence=place)
            return self._stream(self._queue.WatchEscalations, request, seconds)

        async with closing(self._outliving(stream, timeout, lambda: reconnect)) as responses:
            async for response in responses:
                place = response.entry.sequence
                yield decode(EscalationEntry, response.entry)
