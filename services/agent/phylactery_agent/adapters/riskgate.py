"""RiskGate over gRPC as the graph's Gate: a delegate that names its end user on every call."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import grpc
from grpc import aio
from phylactery.riskgate.v1 import (
    approval_pb2,
    approval_pb2_grpc,
    inspection_pb2,
    inspection_pb2_grpc,
    key_pb2,
    key_pb2_grpc,
    policy_pb2,
    policy_pb2_grpc,
    riskgate_pb2,
    riskgate_pb2_grpc,
    task_pb2,
    task_pb2_grpc,
    types_pb2,
)
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.rpc.channel import call_metadata
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.timestamps import from_timestamp
from phylactery_understanding.interpretation.model import Interpretation, InterpretedAsk, Mode, Span

from phylactery_agent.adapters.errors import refusal_of
from phylactery_agent.ports import (
    ApprovalInfo,
    BoundCall,
    CallContext,
    CatalogEntry,
    CatalogView,
    ExecutionReport,
    GateArgument,
    GateDecision,
    GateReason,
    GateRefusedError,
    GateUnavailableError,
    Inspected,
    ProposedCall,
    Redeemed,
)
from phylactery_agent.ports.services import Level
from phylactery_agent.runtime.storage.records import Owner

_MODES: Final = {
    Mode.NONE: task_pb2.INTERPRETED_MODE_UNSPECIFIED,
    Mode.ADD: task_pb2.INTERPRETED_MODE_ADD,
    Mode.REPLACE: task_pb2.INTERPRETED_MODE_REPLACE,
    Mode.CREATE: task_pb2.INTERPRETED_MODE_CREATE,
    Mode.REMOVE: task_pb2.INTERPRETED_MODE_REMOVE,
}


def interpretation_message(interpretation: Interpretation) -> task_pb2.Interpretation:
    """Encode an interpretation."""
    asks = [_ask(one) for one in interpretation.asks]
    return task_pb2.Interpretation(version=interpretation.version, model=interpretation.model, asks=asks)


def _ask(ask: InterpretedAsk) -> task_pb2.InterpretedAsk:
    message = task_pb2.InterpretedAsk(
        tool=ask.tool,
        slots=[task_pb2.InterpretedSlot(argument=one.argument, value=_span(one.span)) for one in ask.slots],
        mode=_MODES[ask.mode],
        quantity=ask.quantity,
        time=None if ask.time is None else _span(ask.time),
        also_time=[_span(one) for one in ask.also_time],
    )
    if ask.content is not None:
        message.literal.CopyFrom(_span(ask.content))
    elif ask.composed:
        message.composed = True
    return message


def _span(span: Span) -> task_pb2.Span:
    return task_pb2.Span(text=span.text, start=span.start, length=len(span.text), back=span.back)


T = TypeVar("T")
_log = get_logger("riskgate-adapter")
_TRUSTED_STATES = frozenset({key_pb2.KEY_STATE_ACTIVE, key_pb2.KEY_STATE_RETIRING})  # an unknown state is not trusted
_CLOSED = frozenset({"APPROVAL_NOT_FOUND", "APPROVAL_NOT_PENDING", "APPROVAL_EXPIRED", "ALREADY_REDEEMED"})
_PAGE = 100
_DECISIONS = {
    types_pb2.DECISION_ALLOW: "ALLOW",
    types_pb2.DECISION_AUTH_REQUIRED: "AUTH_REQUIRED",
    types_pb2.DECISION_BLOCKED: "BLOCKED",
}


class RiskGateConnection:
    """The stubs over one channel, and the shared public keys."""

    def __init__(self, channel: aio.Channel) -> None:
        self.decisions = riskgate_pb2_grpc.RiskGateServiceStub(channel)
        self.approvals = approval_pb2_grpc.ApprovalServiceStub(channel)
        self.tasks = task_pb2_grpc.TaskServiceStub(channel)
        self.inspections = inspection_pb2_grpc.InspectionServiceStub(channel)
        self._keys = key_pb2_grpc.KeyServiceStub(channel)
        self._known: tuple[str, Mapping[str, Mapping[str, str]]] = ("", {})
        self._known_until = 0.0
        self._etag = ""

    async def keys(self, metadata: aio.Metadata, *, fresh: bool) -> tuple[str, Mapping[str, Mapping[str, str]]]:
        """Return issuer and keys by kid, without revoked ones, from the cache unless fresh.

        RiskGate sets the cache lifetime: a revoked key stops verifying within that time.
        """
        now = time.monotonic()
        if fresh or now >= self._known_until:
            request = key_pb2.ListKeysRequest(etag=self._etag)
            answer = await answered(self._keys.ListKeys(request, metadata=metadata))
            if not answer.not_modified:
                usable = {key.kid: json.loads(key.jwk) for key in answer.keys if key.state in _TRUSTED_STATES}
                self._known, self._etag = (answer.issuer, usable), answer.etag
            self._known_until = now + answer.max_age.ToTimedelta().total_seconds()
        return self._known


async def answered(call: Awaitable[T]) -> T:
    """Await a call. Raise GateUnavailableError or GateRefusedError."""
    try:
        return await call
    except aio.AioRpcError as error:
        raise failure_of(error) from error


def failure_of(error: aio.AioRpcError) -> GateUnavailableError | GateRefusedError:
    """Return a failed call as a port error."""
    refusal = refusal_of(error)
    if refusal is None:
        _log.warning("RiskGate did not answer", status=error.code().name)
        return GateUnavailableError(f"RiskGate did not answer ({error.code().name})")
    return GateRefusedError(refusal.reason, refusal.message, refusal.metadata)


class RiskGateAdapter:
    """Implementation of ports.services.TaskGate and Approvals for one end user.

    Evaluate may also refuse: CALL_CONFLICT, TOO_MANY_PENDING, INVALID_REQUEST.
    """

    def __init__(self, connection: RiskGateConnection, owner: Owner, level: Level | None = None) -> None:
        """``level`` returns the user's level for a decision; without it RiskGate goes by the subject alone."""
        self._connection, self._level = connection, level
        self._principal = Principal(owner.user_id, owner.tenant, frozenset())
        self._metadata = aio.Metadata(*call_metadata(self._principal))

    async def begin_task(
        self,
        request_id: str,
        *,
        thread_id: str,
        words: str,
        continues: str,
        own_spans: Sequence[tuple[int, int]] | None = None,
        message_starts: Sequence[int] = (),
        interpretation: Interpretation | None = None,
    ) -> str:
        """Open a task with the user's own words and a model's interpretation of them, and return its id."""
        request = task_pb2.BeginTaskRequest(
            request_id=request_id,
            thread_id=thread_id,
            words=words,
            continues_task_id=continues,
            interpretation=None if interpretation is None else interpretation_message(interpretation),
            own_spans=[
                task_pb2.OwnSpan(start=start, stop=stop)  # an empty one says that no word is the user's own
                for start, stop in (((0, len(words)),) if own_spans is None else own_spans or ((0, 0),))
            ],
            message_starts=message_starts,
        )
        task_id: str = (await self._answer(self._connection.tasks.BeginTask, request)).task_id
        return task_id

    async def observe(self, shown: Mapping[str, Any]) -> None:
        """Submit the result of a tool call, in the form of tasks.observation.

        JSON that RiskGate cannot read, such as deeply nested JSON, is submitted as text.
        """
        request = task_pb2.ObserveRequest(**shown)
        try:
            await self._answer(self._connection.tasks.Observe, request)
        except GateRefusedError as error:
            if error.reason != "INVALID_REQUEST" or request.WhichOneof("result") != "result_json":
                raise
            request.result_text = request.result_json
            await self._answer(self._connection.tasks.Observe, request)

    async def end_task(self, task_id: str, *, keep_seconds: int = 0) -> None:
        """End a task; one that is already over is not an error. Others may continue it for keep_seconds."""
        request = task_pb2.EndTaskRequest(task_id=task_id)
        if keep_seconds:
            request.keep.FromSeconds(keep_seconds)
        try:
            await self._answer(self._connection.tasks.EndTask, request)
        except GateRefusedError as error:
            if error.reason != "TASK_NOT_FOUND":
                raise

    async def evaluate(self, call: ProposedCall, where: CallContext, *, task_id: str = "") -> GateDecision:
        """Request a decision about a call of a task; idempotent by run, tool_call_id and arguments."""
        request = riskgate_pb2.EvaluateRequest(
            call=_call(call),
            thread_id=where.thread_id,
            run_id=where.run_id,
            plan_step=where.plan_step,
            approval_id=where.approval_id,
            pathway=types_pb2.Pathway.Value(f"PATHWAY_{where.pathway.upper()}"),
            task_id=task_id,
            form_run=None
            if (run := where.form_run) is None
            else riskgate_pb2.FormRun(form=run.form, version=run.version, peer=run.peer),
        )
        answer = await self._decided(self._connection.decisions.Evaluate, request)
        decision = _DECISIONS.get(answer.decision)
        if decision is None:
            raise GateUnavailableError("RiskGate answered a decision this agent does not know")
        return GateDecision(
            decision_id=answer.decision_id,
            decision=cast('Literal["ALLOW", "AUTH_REQUIRED", "BLOCKED"]', decision),
            reasons=tuple(GateReason(r.code, r.message, r.message_es, r.path, r.policy_id) for r in answer.reasons),
            policy_ids=tuple(answer.policy_ids),
            risk=_risk(answer.risk),
            bound=_bound(answer.bound_call) if answer.HasField("bound_call") else None,
            permit=answer.permit,
            approval=approval_info(answer.approval) if answer.HasField("approval") else None,
            stakes=_stakes(answer.stakes),
        )

    async def redeem(self, permit: str, call: ProposedCall, where: CallContext, *, execution_id: str) -> Redeemed:
        """Consume the permit. Raise GateRefusedError."""
        request = riskgate_pb2.RedeemRequest(
            permit=permit,
            call=_call(call),
            execution_id=execution_id,
            thread_id=where.thread_id,
            run_id=where.run_id,
        )
        answer = await self._decided(self._connection.decisions.Redeem, request)
        stakes, low_stakes = _stakes(answer.stakes), answer.low_stakes
        return Redeemed(answer.receipt, _bound(answer.bound_call), answer.repeated_redeem, stakes, low_stakes)

    async def report_outcome(self, report: ExecutionReport) -> None:
        """Record how an execution ended; idempotent. Raise GateRefusedError."""
        request = riskgate_pb2.ReportOutcomeRequest(
            execution_id=report.execution_id,
            outcome=riskgate_pb2.Outcome.Value(f"OUTCOME_{report.outcome}"),
            result_hash=report.result_hash,
            result_size=report.result_size,
            error_code=report.error_code,
            reversals=[
                riskgate_pb2.Reversal(
                    execution_id=one.execution_id,
                    result=riskgate_pb2.ReversalResult.Value(f"REVERSAL_RESULT_{one.result}"),
                    error_code=one.error_code,
                )
                for one in report.reversals
            ],
            not_done=report.not_done,
        )
        await self._answer(self._connection.decisions.ReportOutcome, request)

    async def report_told(self, execution_ids: Sequence[str]) -> None:
        """Record that the person was told of effects that ran without a question; idempotent."""
        request = riskgate_pb2.ReportToldRequest(execution_ids=execution_ids)
        await self._answer(self._connection.decisions.ReportTold, request)

    async def get_approval(self, approval_id: str, *, full: bool = False) -> ApprovalInfo:
        """Return the approval, with long values whole if ``full``. Raise GateRefusedError with APPROVAL_NOT_FOUND."""
        request = approval_pb2.GetApprovalRequest(approval_id=approval_id, full=full)
        return approval_info((await self._answer(self._connection.approvals.GetApproval, request)).approval)

    async def approve(self, approval_id: str, *, args_hash: str, code: str, thread_id: str) -> ApprovalInfo:
        """Forward a person's yes. Raise GateRefusedError."""
        request = approval_pb2.ApproveRequest(
            approval_id=approval_id, args_hash=args_hash, code=code, thread_id=thread_id
        )
        return approval_info((await self._answer(self._connection.approvals.Approve, request)).approval)

    async def reject(self, approval_id: str, *, reason: str, thread_id: str) -> ApprovalInfo:
        """Forward a person's no. Raise GateRefusedError."""
        request = approval_pb2.RejectRequest(approval_id=approval_id, reason=reason, thread_id=thread_id)
        return approval_info((await self._answer(self._connection.approvals.Reject, request)).approval)

    async def cancel(self, approval_id: str, *, reason: str, thread_id: str) -> ApprovalInfo:
        """Withdraw a question of the user's own. Raise GateRefusedError."""
        request = approval_pb2.CancelRequest(approval_id=approval_id, reason=reason, thread_id=thread_id)
        return approval_info((await self._answer(self._connection.approvals.Cancel, request)).approval)

    async def withdraw(self, run_ids: Collection[str], *, reason: str) -> None:
        """Withdraw every open approval requested by these runs; one that closes meanwhile is not an error."""
        for state in (types_pb2.APPROVAL_STATE_PENDING, types_pb2.APPROVAL_STATE_APPROVED):
            for approval in await self._asked(state):
                if approval.run_id in run_ids:
                    await self._cancel(approval, reason)

    async def watch(self) -> AsyncIterator[str]:
        """Yield the id of each of the user's approvals that changes; an empty id means that the stream is connected.

        The stream starts with a snapshot instead of resuming from a cursor: a user has few open approvals, and no
        cursor can then be unknown to a restored RiskGate. End when RiskGate stops.
        """
        request = approval_pb2.WatchApprovalsRequest(snapshot=True)
        call = self._connection.approvals.WatchApprovals(request, metadata=self._metadata)
        try:
            async for told in call:
                yield "" if told.snapshot_end else told.approval.id
        except aio.AioRpcError as error:
            raise failure_of(error) from error
        finally:
            call.cancel()

    async def public_keys(self, *, fresh: bool = False) -> Mapping[str, Mapping[str, str]]:
        """Return the public keys that verify receipts, JWK by kid; fresh bypasses the cache."""
        return (await self._connection.keys(self._metadata, fresh=fresh))[1]

    async def issuer(self) -> str:
        """Return the iss required in every receipt."""
        return (await self._connection.keys(self._metadata, fresh=False))[0]

    async def _asked(self, state: types_pb2.ApprovalState.ValueType) -> Sequence[types_pb2.Approval]:
        """Return all the end user's approvals in a state, before any of them is changed."""
        found: list[types_pb2.Approval] = []
        request = approval_pb2.ListApprovalsRequest(state=state, page_size=_PAGE)
        while True:
            page = await self._answer(self._connection.approvals.ListApprovals, request)
            found += page.approvals
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    async def _cancel(self, approval: types_pb2.Approval, reason: str) -> None:
        request = approval_pb2.CancelRequest(approval_id=approval.id, thread_id=approval.thread_id, reason=reason)
        try:
            await self._answer(self._connection.approvals.Cancel, request)
        except GateRefusedError as error:
            if error.reason not in _CLOSED:
                raise
            _log.info("an approval was closed before it was withdrawn", approval_id=approval.id, reason=error.reason)

    async def _decided(self, method: Any, request: Any) -> Any:
        """Send what RiskGate decides by the user's level, which an operator may have changed since the last call."""
        level = "" if self._level is None else await self._level()
        return await answered(method(request, metadata=aio.Metadata(*call_metadata(self._principal, level))))

    async def _answer(self, method: Any, request: Any) -> Any:
        return await answered(method(request, metadata=self._metadata))


def _call(call: ProposedCall) -> types_pb2.ToolCall:
    return types_pb2.ToolCall(
        tool=call.tool,
        tool_call_id=call.tool_call_id,
        arguments_json=call.canonical_args,
        raw_args_hash=call.args_hash,
        tool_schema_hash=call.schema_hash,
    )


def _bound(call: types_pb2.BoundCall) -> BoundCall:
    return BoundCall(call.tool, call.tool_version, call.arguments_json, call.args_hash)


def _risk(risk: types_pb2.RiskLevel.ValueType) -> str:
    if risk == types_pb2.RISK_LEVEL_UNSPECIFIED:
        return ""
    return types_pb2.RiskLevel.Name(risk).removeprefix("RISK_LEVEL_").lower()


def _stakes(stakes: types_pb2.Stakes.ValueType) -> str:
    """Return the name of stakes that this agent knows; any other counts as not said, and is not low."""
    if stakes == types_pb2.STAKES_UNSPECIFIED or stakes not in types_pb2.Stakes.values():
        return ""
    return types_pb2.Stakes.Name(stakes).removeprefix("STAKES_").lower()


def approval_info(approval: types_pb2.Approval) -> ApprovalInfo:
    """Return an approval as RiskGate shows it; where it shows a part of the arguments, the last one says so."""
    arguments = [
        GateArgument(view.path, view.display, view.control, view.characters_left_out) for view in approval.arguments
    ]
    if approval.arguments_left_out:
        arguments.append(GateArgument("/…", f"…«{approval.arguments_left_out:,} arguments left out»…", control=True))
    return ApprovalInfo(
        id=approval.id,
        state=types_pb2.ApprovalState.Name(approval.state).removeprefix("APPROVAL_STATE_"),
        approval_class=approval.approval_class,
        tool=approval.tool,
        risk=_risk(approval.risk),
        args_hash=approval.args_hash,
        thread_id=approval.thread_id,
        run_id=approval.run_id,
        tool_call_id=approval.tool_call_id,
        expire_us=from_timestamp(approval.expire_time),
        closed_reason=approval.closed_reason,
        attempts_left=approval.attempts_left,
        code=approval.code,
        arguments=tuple(arguments),
        why=tuple({"en": one.message, "es": one.message_es} for one in approval.why),
        stakes=_stakes(approval.stakes),
    )


_SYSTEM_PRINCIPAL: Final = Principal("phylactery-agent", "phylactery-agent", frozenset())
"""The principal of a delegate of every tenant, which must name one although no user is served here."""


class CatalogAdapter:
    """Implementation of ports.ToolCatalog."""

    def __init__(self, channel: aio.Channel) -> None:
        self._policies = policy_pb2_grpc.PolicyServiceStub(channel)
        self._named = False

    async def catalog(self, known_hash: str) -> CatalogView | None:
        """Return the catalog, or None while the bundle of known_hash is active."""
        answer = await self._asked(policy_pb2.ListCatalogToolsRequest(known_hash=known_hash))
        if answer.not_modified:
            return None
        tools = {tool.name: CatalogEntry(tool.version, tool.schema_hash, tool.level) for tool in answer.tools}
        return CatalogView(answer.bundle_revision, answer.bundle_hash, tools)

    async def _asked(self, request: policy_pb2.ListCatalogToolsRequest) -> policy_pb2.ListCatalogToolsResponse:
        """Send the request as the token's principal; a token for all tenants names the agent."""
        try:
            return await self._policies.ListCatalogTools(request, metadata=self._metadata())
        except aio.AioRpcError as error:
            if self._named or error.code() is not grpc.StatusCode.UNAUTHENTICATED:
                raise failure_of(error) from error
        self._named = True
        try:
            return await self._policies.ListCatalogTools(request, metadata=self._metadata())
        except aio.AioRpcError as error:
            self._named = False
            raise failure_of(error) from error

    def _metadata(self) -> aio.Metadata:
        return aio.Metadata(*call_metadata(_SYSTEM_PRINCIPAL)) if self._named else aio.Metadata()


_SECRET: Final = inspection_pb2.FINDING_CATEGORY_SECRET
_UNNAMED: Final = "unnamed"
_Kind: TypeAlias = "inspection_pb2.FindingKind.ValueType"
_SECRETS: Final = frozenset(range(inspection_pb2.FINDING_KIND_PRIVATE_KEY, inspection_pb2.FINDING_KIND_IBAN))
"""The kinds that count as secrets, by contract number; newer, unknown kinds are redacted as well."""


class InspectionAdapter:
    """Implementation of ports.Inspector for one end user."""

    def __init__(self, connection: RiskGateConnection, owner: Owner) -> None:
        self._inspections = connection.inspections
        self._metadata = aio.Metadata(*call_metadata(Principal(owner.user_id, owner.tenant, frozenset())))

    async def inspect(self, text: str) -> Inspected:
        """Inspect a text. Personal data is listed and kept; secrets are replaced by RiskGate's own placeholders."""
        text = text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be encoded for the wire
        if not text:
            return Inspected(text)
        looked = await self._inspect(text, inspection_pb2.InspectOptions())
        if looked.total_findings > len(looked.findings):
            raise GateRefusedError("TOO_MANY_FINDINGS", "the text holds more findings than one answer names")
        secret = {finding.kind for finding in looked.findings if finding.category == _SECRET}
        personal = {finding.kind for finding in looked.findings if finding.category != _SECRET}
        if not secret:
            return Inspected(text, personal=_names(personal))
        return Inspected(await self._redacted(text, secret), _names(secret), _names(personal))

    async def _redacted(self, text: str, found: Iterable[int]) -> str:
        """Return the text without secrets; RiskGate inspects the remainder again until it finds none."""
        kinds = [cast("_Kind", kind) for kind in sorted(_SECRETS | set(found))]
        options = inspection_pb2.InspectOptions(kinds=kinds, want_redacted=True)
        return (await self._inspect(text, options)).redacted_text

    async def _inspect(self, text: str, options: inspection_pb2.InspectOptions) -> inspection_pb2.Inspection:
        request = inspection_pb2.InspectRequest(text=text, options=options)
        answer = await answered(self._inspections.Inspect(request, metadata=self._metadata))
        return answer.inspection


def _names(kinds: Iterable[int]) -> tuple[str, ...]:
    """Return the names of the kinds; a kind unknown to this agent still counts."""
    known = inspection_pb2.FindingKind.values()
    return tuple(
        sorted(
            inspection_pb2.FindingKind.Name(cast("_Kind", kind)).removeprefix("FINDING_KIND_").lower()
            if kind in known
            else _UNNAMED
            for kind in kinds
        )
    )
