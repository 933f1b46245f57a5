"""Serves phylactery.riskgate.v1.RiskGateService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import access_pb2, explain_pb2, riskgate_pb2, riskgate_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.errors import DomainError
from phylactery_chassis.rpc.validation import parse

from phylactery_riskgate.encoding import access
from phylactery_riskgate.encoding import decisions as encoding
from phylactery_riskgate.encoding import explain as explain_encoding
from phylactery_riskgate.encoding.types import call_fields, pathway_field
from phylactery_riskgate.requests.access import read_access
from phylactery_riskgate.requests.decisions import BatchInput, EvaluateInput, OutcomeInput, RedeemInput
from phylactery_riskgate.requests.explain import ExplainInput
from phylactery_riskgate.service import RiskGate

Context = aio.ServicerContext[Any, Any]


class RiskGateServicer(riskgate_pb2_grpc.RiskGateServiceServicer):
    """Serves phylactery.riskgate.v1.RiskGateService."""

    def __init__(self, riskgate: RiskGate) -> None:
        self._riskgate = riskgate

    async def Evaluate(self, request: riskgate_pb2.EvaluateRequest, _context: Context) -> riskgate_pb2.EvaluateResponse:
        """Decides about one proposed tool call."""
        return encoding.evaluated(await self._riskgate.evaluate(current_principal(), _asked(request)))

    async def EvaluateBatch(
        self, request: riskgate_pb2.EvaluateBatchRequest, _context: Context
    ) -> riskgate_pb2.EvaluateBatchResponse:
        """Decides about several proposed calls."""
        parse(BatchInput, {"requests": len(request.requests)})
        questions = [_asked_or_error(one) for one in request.requests]
        answers = await self._riskgate.batches.evaluate(current_principal(), questions)
        return encoding.batch(answers)

    async def Explain(self, request: explain_pb2.ExplainRequest, _context: Context) -> explain_pb2.ExplainResponse:
        """Tells why a call is decided as it is."""
        asked = parse(ExplainInput, explain_encoding.explain_fields(request))
        return explain_encoding.explained(await self._riskgate.explaining.explain(current_principal(), asked))

    async def Redeem(self, request: riskgate_pb2.RedeemRequest, _context: Context) -> riskgate_pb2.RedeemResponse:
        """Consumes a permit for one execution and answers its receipt."""
        asked = parse(
            RedeemInput,
            {
                "permit": request.permit,
                "call": call_fields(request.call),
                "execution_id": request.execution_id,
                "thread_id": request.thread_id,
                "run_id": request.run_id,
                "min_bundle_revision": request.min_bundle_revision,
            },
        )
        return encoding.redeemed(await self._riskgate.redeem(current_principal(), asked))

    async def EvaluateAccess(
        self, request: access_pb2.EvaluateAccessRequest, _context: Context
    ) -> access_pb2.EvaluateAccessResponse:
        """Answers whether a user may do something, or several such questions."""
        asked = read_access(access.access_fields(request))
        answers = await self._riskgate.access.evaluate(current_principal(), asked)
        return access.access_evaluated(answers, several=bool(request.evaluations))

    async def ReportOutcome(
        self, request: riskgate_pb2.ReportOutcomeRequest, _context: Context
    ) -> riskgate_pb2.ReportOutcomeResponse:
        """Records how an execution ended."""
        asked = parse(
            OutcomeInput,
            {
                "execution_id": request.execution_id,
                "outcome": encoding.outcome_field(request.outcome),
                "result_hash": request.result_hash,
                "result_size": request.result_size,
                "error_code": request.error_code,
            },
        )
        place = await self._riskgate.report_outcome(current_principal(), asked)
        return riskgate_pb2.ReportOutcomeResponse(audit_log=place.log, audit_index=place.index)


def _asked(request: riskgate_pb2.EvaluateRequest) -> EvaluateInput:
    return parse(
        EvaluateInput,
        {
            "call": call_fields(request.call),
            "thread_id": request.thread_id,
            "run_id": request.run_id,
            "plan_step": request.plan_step,
            "approval_id": request.approval_id,
            "pathway": pathway_field(request.pathway),
            "task_id": request.task_id,
            "min_bundle_revision": request.min_bundle_revision,
        },
    )


def _asked_or_error(request: riskgate_pb2.EvaluateRequest) -> EvaluateInput | DomainError:
    try:
        return _asked(request)
    except DomainError as error:
        return error
