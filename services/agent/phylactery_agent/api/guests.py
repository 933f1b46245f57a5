"""GuestService: who of the people of channels an operator lifted."""

from __future__ import annotations

from typing import Annotated

from phylactery.agent.v1 import guest_pb2, guest_pb2_grpc
from phylactery_chassis.auth.identity import Principal, Role, current_principal
from phylactery_chassis.errors import InvalidArgument, NotFound, Violation
from phylactery_chassis.rpc.validation import EdgeModel, from_message
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.timestamps import from_timestamp, to_timestamp
from pydantic import StringConstraints

from phylactery_agent.api.mapping import Context
from phylactery_agent.runtime.guests.lifts import NO_END_US, Lift, Lifts
from phylactery_agent.runtime.storage.records import Owner


class LiftRequest(EdgeModel):
    """Lift; ``until_us`` is 0 if the lift has no end."""

    subject: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$")]
    until_us: int


class EndLiftRequest(EdgeModel):
    """EndLift; an empty subject means the caller."""

    subject: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]


class GuestEdge:
    """The implementation of GuestService, without gRPC."""

    def __init__(self, lifts: Lifts, clock: Clock) -> None:
        self._lifts, self._clock = lifts, clock

    async def lift(self, who: Principal, request: LiftRequest) -> Lift:
        """Lift a person. Raise PermissionDenied ROLE_REQUIRED, InvalidArgument for an end that is over."""
        who.require(Role.OPERATOR)
        if request.until_us and request.until_us <= self._clock.now_us():
            raise InvalidArgument(
                "INVALID_REQUEST",
                "the lift would be over already",
                violations=[Violation("end_time", "is not in the future")],
            )
        return await self._lifts.lift(
            Owner(who.tenant, request.subject), who.subject, until_us=request.until_us or NO_END_US
        )

    async def end(self, who: Principal, request: EndLiftRequest) -> None:
        """End a lift: an operator anybody's, the person and a delegate for them their own.

        Raise PermissionDenied ROLE_REQUIRED, NotFound LIFT_NOT_FOUND.
        """
        subject = request.subject or who.subject
        if subject != who.subject:
            who.require(Role.OPERATOR)
        if not await self._lifts.end(Owner(who.tenant, subject), who.actor or who.subject):
            raise NotFound("LIFT_NOT_FOUND", f"'{subject}' is not lifted", metadata={"subject": subject})

    async def list(self, who: Principal) -> list[Lift]:
        """Return the lifts in force. Raise PermissionDenied ROLE_REQUIRED."""
        who.require(Role.OPERATOR)
        return list(await self._lifts.in_force(who.tenant))


class GuestServicer(guest_pb2_grpc.GuestServiceServicer):
    """phylactery.agent.v1.GuestService."""

    def __init__(self, edge: GuestEdge) -> None:
        self._edge = edge

    async def Lift(self, request: guest_pb2.LiftRequest, _context: Context) -> guest_pb2.LiftResponse:
        """Lift a person."""
        until_us = from_timestamp(request.end_time) if request.HasField("end_time") else 0
        wanted = from_message(LiftRequest, request, until_us=until_us)
        return guest_pb2.LiftResponse(lift=lift_message(await self._edge.lift(current_principal(), wanted)))

    async def EndLift(self, request: guest_pb2.EndLiftRequest, _context: Context) -> guest_pb2.EndLiftResponse:
        """End a lift."""
        await self._edge.end(current_principal(), from_message(EndLiftRequest, request))
        return guest_pb2.EndLiftResponse()

    async def ListLifts(self, _request: guest_pb2.ListLiftsRequest, _context: Context) -> guest_pb2.ListLiftsResponse:
        """List the lifts in force."""
        return guest_pb2.ListLiftsResponse(
            lifts=[lift_message(one) for one in await self._edge.list(current_principal())]
        )


def lift_message(lift: Lift) -> guest_pb2.Lift:
    """Return a lift."""
    end = None if lift.until_us == NO_END_US else to_timestamp(lift.until_us)
    return guest_pb2.Lift(
        subject=lift.owner.user_id, lift_time=to_timestamp(lift.lifted_us), lifted_by=lift.lifted_by, end_time=end
    )
