"""ControlService: servicer and message mapping."""

from __future__ import annotations

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio
from phylactery.riskgate.v1 import control_pb2, control_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import from_message
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_riskgate.decisions.requests import ClearInput, RevokeInput, SinkInput, TargetInput, TenantInput
from phylactery_riskgate.decisions.stops import Control, Frozen, Lifted, Revoked
from phylactery_riskgate.notices.status import SinkStatus
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.stops import FreezeRow, Scope

SCOPES = {
    Scope.ALL: control_pb2.FREEZE_SCOPE_ALL,
    Scope.TENANT: control_pb2.FREEZE_SCOPE_TENANT,
    Scope.USER: control_pb2.FREEZE_SCOPE_USER,
    Scope.TOOL: control_pb2.FREEZE_SCOPE_TOOL,
    Scope.ACTOR: control_pb2.FREEZE_SCOPE_ACTOR,
}
_BY_NUMBER = {number: scope for scope, number in SCOPES.items()}


def target(request: control_pb2.FreezeRequest | control_pb2.UnfreezeRequest) -> TargetInput:
    """Return the validated target; an unknown scope number becomes text, which is refused."""
    scope = _BY_NUMBER.get(request.target.scope, str(request.target.scope))
    return from_message(TargetInput, request.target, scope=scope, reason=request.reason)


def freeze(row: FreezeRow) -> control_pb2.Freeze:
    """Encode one freeze."""
    return control_pb2.Freeze(
        target=control_pb2.FreezeTarget(scope=SCOPES[row.scope], tenant=row.tenant, name=row.name),
        freeze_time=to_timestamp(row.freeze_us),
        frozen_by=row.frozen_by,
        frozen_by_tenant=row.frozen_by_tenant,
        by_installation=row.by_installation,
        reason=row.reason,
    )


def frozen(done: Frozen) -> control_pb2.FreezeResponse:
    """Encode the result of Freeze."""
    return control_pb2.FreezeResponse(
        freeze=freeze(done.row),
        already_frozen=done.place is None,
        known=done.known,
        running=done.running,
        **_place(done.place),
    )


def lifted(done: Lifted) -> control_pb2.UnfreezeResponse:
    """Encode the result of Unfreeze."""
    return control_pb2.UnfreezeResponse(still_frozen=done.still_frozen, **_place(done.place))


def revoked(done: Revoked) -> control_pb2.RevokeDecisionResponse:
    """Encode the result of RevokeDecision."""
    return control_pb2.RevokeDecisionResponse(
        already_revoked=done.place is None, approval_id=done.approval_id, **_place(done.place)
    )


def sink(one: SinkStatus) -> control_pb2.NoticeSink:
    """Encode how one sink does."""
    state = f"SINK_STATE_{one.state.upper().replace(' ', '_')}"
    return control_pb2.NoticeSink(
        name=one.name,
        kind=one.kind,
        place=one.place,
        state=control_pb2.SinkState.Value(state),
        waiting=one.counts.waiting,
        oldest_time=_time(one.counts.oldest_us),
        sent=one.counts.sent,
        given_up=one.counts.failed,
        dropped=one.counts.dropped,
        taken_time=_time(one.taken_us),
        failing_since=_time(one.failing_us),
        error_code=one.code,
        message=one.message,
    )


def _time(time_us: int) -> Timestamp | None:
    return to_timestamp(time_us) if time_us else None


def _place(place: Place | None) -> dict[str, Any]:
    return {} if place is None else {"audit_log": place.log, "audit_index": place.index}


Context = aio.ServicerContext[Any, Any]


class ControlServicer(control_pb2_grpc.ControlServiceServicer):
    """gRPC servicer of phylactery.riskgate.v1.ControlService."""

    def __init__(self, control: Control) -> None:
        self._control = control

    async def Freeze(self, request: control_pb2.FreezeRequest, _context: Context) -> control_pb2.FreezeResponse:
        """Freeze the target."""
        return frozen(await self._control.freeze(current_principal(), target(request)))

    async def Unfreeze(self, request: control_pb2.UnfreezeRequest, _context: Context) -> control_pb2.UnfreezeResponse:
        """Lift the freeze of the target."""
        return lifted(await self._control.unfreeze(current_principal(), target(request)))

    async def ListFreezes(
        self, request: control_pb2.ListFreezesRequest, _context: Context
    ) -> control_pb2.ListFreezesResponse:
        """List the freezes."""
        found = await self._control.list_freezes(current_principal())
        return control_pb2.ListFreezesResponse(freezes=[freeze(one) for one in found])

    async def RevokeDecision(
        self, request: control_pb2.RevokeDecisionRequest, _context: Context
    ) -> control_pb2.RevokeDecisionResponse:
        """Void a decision."""
        asked = from_message(RevokeInput, request)
        return revoked(await self._control.revoke(current_principal(), asked))

    async def ListUndoFailures(
        self, request: control_pb2.ListUndoFailuresRequest, _context: Context
    ) -> control_pb2.ListUndoFailuresResponse:
        """List the tools whose undo failed."""
        found = await self._control.undo_failures(current_principal(), from_message(TenantInput, request))
        return control_pb2.ListUndoFailuresResponse(
            failures=[
                control_pb2.UndoFailure(
                    tool=one.tool,
                    tenant=one.tenant,
                    subject=one.subject,
                    fail_time=to_timestamp(one.fail_us),
                    execution_id=one.execution_id,
                    error_code=one.error_code,
                )
                for one in found
            ]
        )

    async def ListSinks(
        self, _request: control_pb2.ListSinksRequest, _context: Context
    ) -> control_pb2.ListSinksResponse:
        """List the sinks of notices."""
        found = await self._control.sinks(current_principal())
        return control_pb2.ListSinksResponse(sinks=[sink(one) for one in found])

    async def ResumeSink(
        self, request: control_pb2.ResumeSinkRequest, _context: Context
    ) -> control_pb2.ResumeSinkResponse:
        """Enable a sink of notices again."""
        await self._control.resume_sink(current_principal(), from_message(SinkInput, request))
        return control_pb2.ResumeSinkResponse()

    async def ClearUndoFailure(
        self, request: control_pb2.ClearUndoFailureRequest, _context: Context
    ) -> control_pb2.ClearUndoFailureResponse:
        """Trust the undo of a tool again."""
        place = await self._control.clear_undo_failure(current_principal(), from_message(ClearInput, request))
        return control_pb2.ClearUndoFailureResponse(cleared=place is not None, **_place(place))
