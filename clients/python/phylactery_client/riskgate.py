"""Clients of RiskGate: RiskGateClient (evaluate, redeem, report, approve) and AuditClient."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from phylactery.riskgate.v1 import (
    access_pb2,
    approval_pb2,
    approval_pb2_grpc,
    audit_pb2,
    audit_pb2_grpc,
    key_pb2,
    key_pb2_grpc,
    riskgate_pb2,
    riskgate_pb2_grpc,
    task_pb2,
    task_pb2_grpc,
    types_pb2,
)

from phylactery_client.access import AccessAnswer, AccessQuestion, access_answer
from phylactery_client.channel import ServiceClient, new_request_id
from phylactery_client.decode import decode, enum_number
from phylactery_client.memory_results import ErasedValues
from phylactery_client.results import (
    Approval,
    ApprovalChange,
    ApprovalPage,
    Evaluation,
    Keys,
    Observation,
    Redemption,
    Task,
)
from phylactery_client.transport import closing

_STATES = types_pb2.DESCRIPTOR.enum_types_by_name["ApprovalState"]
_OUTCOMES = riskgate_pb2.DESCRIPTOR.enum_types_by_name["Outcome"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A proposed call; arguments_json is one JSON object as text. Non-empty hashes are checked by RiskGate."""

    tool: str
    tool_call_id: str
    arguments_json: str = field(default="{}", repr=False)
    raw_args_hash: str = ""
    tool_schema_hash: str = ""

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, Any], *, tool_call_id: str) -> Self:
        """Return a call with arguments given as Python values. Raise ValueError or TypeError."""
        return cls(tool, tool_call_id, json.dumps(dict(arguments), allow_nan=False))

    def message(self) -> types_pb2.ToolCall:
        """Return the call as the contract's message."""
        return types_pb2.ToolCall(
            tool=self.tool,
            tool_call_id=self.tool_call_id,
            arguments_json=self.arguments_json,
            raw_args_hash=self.raw_args_hash,
            tool_schema_hash=self.tool_schema_hash,
        )


class RiskGateClient(ServiceClient):
    """A client of RiskGate. Every method raises the PhylacteryError of its code; timeout is in seconds."""

    def __init__(self, target: str, **options: Any) -> None:
        """Options are those of ServiceClient."""
        super().__init__(target, **options)
        self._gate = riskgate_pb2_grpc.RiskGateServiceStub(self._channel)
        self._approvals = approval_pb2_grpc.ApprovalServiceStub(self._channel)
        self._keys = key_pb2_grpc.KeyServiceStub(self._channel)
        self._tasks = task_pb2_grpc.TaskServiceStub(self._channel)

    async def evaluate(
        self,
        call: ToolCall,
        *,
        thread_id: str,
        run_id: str,
        plan_step: str = "",
        approval_id: str = "",
        task_id: str = "",
        min_bundle_revision: int = 0,
        execution_id: str = "",
        timeout: float | None = None,
    ) -> Evaluation:
        """Return RiskGate's decision about a call, using the named approval if there is one.

        With task_id, RiskGate knows what the user requested and where each argument comes from: see begin_task. With
        min_bundle_revision, no replica decides by an earlier bundle, not even right after another replica's activation.
        With execution_id, a new ALLOW without an approval is redeemed for that execution at once; any other has a
        permit for redeem.
        """
        request = riskgate_pb2.EvaluateRequest(
            call=call.message(),
            thread_id=thread_id,
            run_id=run_id,
            plan_step=plan_step,
            approval_id=approval_id,
            task_id=task_id,
            min_bundle_revision=min_bundle_revision,
            execution_id=execution_id,
        )
        return decode(Evaluation, await self._call(self._gate.Evaluate, request, timeout))

    async def redeem(
        self,
        permit: str,
        call: ToolCall,
        *,
        execution_id: str,
        thread_id: str,
        run_id: str,
        min_bundle_revision: int = 0,
        timeout: float | None = None,
    ) -> Redemption:
        """Redeem a permit for one execution; reuse the execution_id only to retry the same execution.

        min_bundle_revision is the lowest bundle revision that may re-evaluate the call, 0 for any.
        """
        request = riskgate_pb2.RedeemRequest(
            permit=permit,
            call=call.message(),
            execution_id=execution_id,
            thread_id=thread_id,
            run_id=run_id,
            min_bundle_revision=min_bundle_revision,
        )
        return decode(Redemption, await self._call(self._gate.Redeem, request, timeout))

    async def begin_task(
        self,
        words: str,
        *,
        thread_id: str,
        request_id: str = "",
        continues_task_id: str = "",
        interpretation: task_pb2.Interpretation | None = None,
        own_spans: Sequence[tuple[int, int]] | None = None,
        message_starts: Sequence[int] = (),
        timeout: float | None = None,
    ) -> Task:
        """Begin a task with the user's own words, complete and unchanged, taken from the input and never from a model.

        own_spans are the half-open parts of the words, in code points, that the user wrote: what they only forwarded or
        quoted requests nothing. None means all of them. message_starts are the offsets at which a further message
        begins, where the words are several.

        The same request_id with the same words returns the same task; an id is generated if none is given. If
        continues_task_id has ended, the error is TASK_NOT_FOUND: begin without it. interpretation is a model's reading
        of the words, of a model that is given the words and the catalog only: never a result, a memory or a file.
        """
        request = task_pb2.BeginTaskRequest(
            request_id=request_id or new_request_id(),
            thread_id=thread_id,
            words=words,
            continues_task_id=continues_task_id,
            interpretation=interpretation,
            own_spans=[
                task_pb2.OwnSpan(start=start, stop=stop)
                for start, stop in (((0, len(words)),) if own_spans is None else own_spans or ((0, 0),))
            ],
            message_starts=message_starts,
        )
        return decode(Task, await self._call(self._tasks.BeginTask, request, timeout))

    async def observe(
        self,
        task_id: str,
        *,
        tool_call_id: str,
        tool: str,
        arguments_json: str = "",
        result_json: str | None = None,
        result_text: str | None = None,
        failed: bool = False,
        run_id: str = "",
        partial: bool = False,
        timeout: float | None = None,
    ) -> Observation:
        """Report a tool's result, as JSON or as text, before anything else of the task is evaluated.

        The executor of the tool calls it, with the bound arguments that were run; with neither result, the tool
        returned nothing. run_id is that of evaluate and redeem. The result is as it came, without redaction; partial
        says that the model was shown only a part of it. Raise ValueError if both results are given.
        """
        if result_json is not None and result_text is not None:
            raise ValueError("a tool answers result_json or result_text, not both")
        request = task_pb2.ObserveRequest(
            task_id=task_id,
            tool_call_id=tool_call_id,
            tool=tool,
            arguments_json=arguments_json,
            failed=failed,
            run_id=run_id,
            partial=partial,
        )
        if result_json is not None:
            request.result_json = result_json
        if result_text is not None:
            request.result_text = result_text
        return decode(Observation, await self._call(self._tasks.Observe, request, timeout))

    async def end_task(self, task_id: str, *, keep_seconds: int = 0, timeout: float | None = None) -> None:
        """End a task and erase its data. Idempotent.

        With keep_seconds (an hour at most) the data is erased after that time, and until then another task may continue
        it.
        """
        request = task_pb2.EndTaskRequest(task_id=task_id)
        if keep_seconds:
            request.keep.FromSeconds(keep_seconds)
        await self._call(self._tasks.EndTask, request, timeout)

    async def evaluate_access(self, question: AccessQuestion, *, timeout: float | None = None) -> AccessAnswer:
        """Return whether a user may do something: True only if RiskGate would ALLOW it without an approval.

        It is for an external policy enforcement point; it does not permit a call that RiskGate guards.
        """
        request = access_pb2.EvaluateAccessRequest(**question.parts())
        return access_answer(await self._call(self._gate.EvaluateAccess, request, timeout))

    async def evaluate_access_batch(
        self, questions: Sequence[AccessQuestion], *, semantic: str = "execute_all", timeout: float | None = None
    ) -> tuple[AccessAnswer, ...]:
        """Return the answers to at most 100 questions, in order.

        semantic is "execute_all", "deny_on_first_deny" or "permit_on_first_permit"; the last two stop after the first
        denial or the first permission.
        """
        request = access_pb2.EvaluateAccessRequest(
            evaluations=[access_pb2.AccessEvaluation(**one.parts()) for one in questions],
            options=access_pb2.AccessOptions(evaluations_semantic=semantic),
        )
        answer = await self._call(self._gate.EvaluateAccess, request, timeout)
        return tuple(access_answer(one) for one in answer.evaluations)

    async def report_outcome(
        self,
        execution_id: str,
        *,
        outcome: str,
        result_hash: str = "",
        result_size: int = 0,
        error_code: str = "",
        timeout: float | None = None,
    ) -> int:
        """Record the outcome of an execution: SUCCEEDED, FAILED or IN_DOUBT. Return its index in the audit log."""
        request = riskgate_pb2.ReportOutcomeRequest(
            execution_id=execution_id, result_hash=result_hash, result_size=result_size, error_code=error_code
        )
        request.outcome = riskgate_pb2.Outcome.ValueType(enum_number(_OUTCOMES, outcome))
        return (await self._call(self._gate.ReportOutcome, request, timeout)).audit_index

    async def get_approval(self, approval_id: str, *, full: bool = False, timeout: float | None = None) -> Approval:
        """Return an approval as the caller may see it; with ``full``, long arguments are not abridged."""
        request = approval_pb2.GetApprovalRequest(approval_id=approval_id, full=full)
        return decode(Approval, (await self._call(self._approvals.GetApproval, request, timeout)).approval)

    async def list_approvals(
        self,
        *,
        state: str = "",
        thread_id: str = "",
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> ApprovalPage:
        """Return a page of approvals, newest first; state is, for example, PENDING, or empty for all."""
        request = approval_pb2.ListApprovalsRequest(thread_id=thread_id, page_size=page_size, page_token=page_token)
        request.state = types_pb2.ApprovalState.ValueType(enum_number(_STATES, state))
        return decode(ApprovalPage, await self._call(self._approvals.ListApprovals, request, timeout))

    async def approve(
        self, approval_id: str, *, args_hash: str, code: str = "", thread_id: str = "", timeout: float | None = None
    ) -> Approval:
        """Approve what args_hash identifies and return the approval with its new state."""
        request = approval_pb2.ApproveRequest(
            approval_id=approval_id, args_hash=args_hash, code=code, thread_id=thread_id
        )
        return decode(Approval, (await self._call(self._approvals.Approve, request, timeout)).approval)

    async def reject(
        self, approval_id: str, *, reason: str = "", thread_id: str = "", timeout: float | None = None
    ) -> Approval:
        """Reject an approval and return it with its new state."""
        request = approval_pb2.RejectRequest(approval_id=approval_id, reason=reason, thread_id=thread_id)
        return decode(Approval, (await self._call(self._approvals.Reject, request, timeout)).approval)

    async def cancel(
        self, approval_id: str, *, reason: str = "", thread_id: str = "", timeout: float | None = None
    ) -> Approval:
        """Withdraw the caller's own request, even after it was approved, and return it with its new state."""
        request = approval_pb2.CancelRequest(approval_id=approval_id, reason=reason, thread_id=thread_id)
        return decode(Approval, (await self._call(self._approvals.Cancel, request, timeout)).approval)

    async def watch_approvals(
        self,
        *,
        state: str = "",
        thread_id: str = "",
        approval_id: str = "",
        resume_token: str = "",
        snapshot: bool = False,
        reconnect: bool = True,
        timeout: float = math.inf,
    ) -> AsyncGenerator[ApprovalChange]:
        """Yield every change of the approvals visible to the caller, each once, in order per approval.

        With snapshot, open approvals come first; with the resume_token of a change, those after it. If RiskGate stops
        or the connection breaks, the stream resumes after the last change once RiskGate is back, without a gap. Before
        the first change, if neither snapshot nor resume_token defines a position, and with reconnect=False, it ends or
        raises instead. timeout bounds the whole stream; there is none by default.
        """
        place, number = resume_token, types_pb2.ApprovalState.ValueType(enum_number(_STATES, state))

        def stream(seconds: float) -> AsyncGenerator[approval_pb2.WatchApprovalsResponse]:
            request = approval_pb2.WatchApprovalsRequest(
                thread_id=thread_id,
                approval_id=approval_id,
                resume_token=place,
                snapshot=snapshot and place == resume_token,
                state=number,
            )
            return self._stream(self._approvals.WatchApprovals, request, seconds)

        def resumable() -> bool:
            return reconnect and bool(place or snapshot)

        async with closing(self._outliving(stream, timeout, resumable)) as changes:
            async for change in changes:
                place = change.resume_token or place
                yield decode(ApprovalChange, change)

    async def list_keys(self, *, etag: str = "", timeout: float | None = None) -> Keys:
        """Return RiskGate's public signing keys, the active one first; none if etag is current."""
        return decode(Keys, await self._call(self._keys.ListKeys, key_pb2.ListKeysRequest(etag=etag), timeout))


class AuditClient(ServiceClient):
    """A client of RiskGate's AuditService. Every method raises the PhylacteryError of its code; timeout in seconds."""

    def __init__(self, target: str, **options: Any) -> None:
        """Options are those of ServiceClient."""
        super().__init__(target, **options)
        self._audit = audit_pb2_grpc.AuditServiceStub(self._channel)

    async def erase_values(self, *, subject: str, reason: str, timeout: float | None = None) -> ErasedValues:
        """Erase the argument values of all of a user's calls permanently; for operators.

        The audit records and their commitments remain.
        """
        request = audit_pb2.EraseValuesRequest(filter=audit_pb2.EntryFilter(subject=subject), reason=reason)
        return decode(ErasedValues, await self._call(self._audit.EraseValues, request, timeout, repeat=False))
