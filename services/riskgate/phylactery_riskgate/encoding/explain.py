"""The messages of RiskGateService.Explain."""

from __future__ import annotations

from typing import Any

from phylactery.riskgate.v1 import explain_pb2, types_pb2

from phylactery_riskgate.domain.explanation import Explanation, Step
from phylactery_riskgate.domain.pointers import MAX_POINTER
from phylactery_riskgate.domain.visible import make_visible
from phylactery_riskgate.encoding.approvals import argument, origin
from phylactery_riskgate.encoding.types import call_fields, pathway_field, reason, risk
from phylactery_riskgate.explaining import Explained

_MAX_LISTED, _MAX_TEXT = 10, 200


def explain_fields(request: explain_pb2.ExplainRequest) -> dict[str, Any]:
    """Answers the request as the edge reads it."""
    fields: dict[str, Any] = {
        "question": request.WhichOneof("question") or "",
        "pathway": pathway_field(request.pathway),
        "thread_id": request.thread_id,
        "plan_step": request.plan_step,
        "approved": list(request.approved),
        "subject": request.subject,
        "task_id": request.task_id,
    }
    if request.HasField("call"):
        fields["call"] = call_fields(request.call)
    if request.HasField("decision_id"):
        fields["decision_id"] = request.decision_id
    return fields


def explained(answer: Explained) -> explain_pb2.ExplainResponse:
    """Encodes an explanation."""
    explanation, verdict = answer.explanation, answer.explanation.verdict
    return explain_pb2.ExplainResponse(
        decision=types_pb2.Decision.Value(f"DECISION_{verdict.decision}"),
        approval_class=verdict.approval_class or "",
        reasons=[reason(one) for one in verdict.reasons],
        policy_ids=verdict.policy_ids,
        risk=risk(verdict.risk or ""),
        bundle_revision=verdict.bundle_revision,
        bundle_hash=verdict.bundle_hash,
        arguments=[argument(view) for view in explanation.arguments],
        facts=[
            explain_pb2.ExplainFact(name=fact.name, value=fact.value, source=fact.source) for fact in explanation.facts
        ],
        steps=[_step(step) for step in explanation.steps],
        decision_id=answer.decision_id,
        task=None if verdict.bound is None else _task(explanation),
    )


def _task(explanation: Explanation) -> explain_pb2.TaskExplanation:
    """Encodes what the task told; what came from texts is made safe to print."""
    facts = explanation.verdict.task
    return explain_pb2.TaskExplanation(
        shown=facts.shown,
        intent=facts.intent,
        intent_words=[_safe(one) for one in facts.intent_words[:_MAX_LISTED]],
        arguments=[
            explain_pb2.ArgumentEvidence(
                path=make_visible(one.path, MAX_POINTER).text, origin=origin(one.origin), place=_safe(one.place)
            )
            for one in facts.arguments
        ],
        signals=facts.signals,
        signal_reasons=[_safe(one) for one in facts.signal_reasons[:_MAX_LISTED]],
        changes=[
            explain_pb2.FactChange(
                fact=_safe(one.fact),
                to=one.would_be,
                decision=types_pb2.Decision.Value(f"DECISION_{one.decision}"),
                **{"from": one.was},
            )
            for one in explanation.changes
        ],
        understood_by=facts.understood_by,
        missing=explain_pb2.Missing(kind=facts.missing[0], words=_safe(facts.missing[1])) if facts.missing[0] else None,
        refused=facts.refused,
    )


def _safe(text: str) -> str:
    return make_visible(text, _MAX_TEXT).text


def _step(step: Step) -> explain_pb2.ExplainStep:
    return explain_pb2.ExplainStep(
        approved=step.approved,
        imagined=step.imagined,
        allowed=step.allowed,
        failed=step.failed,
        policies=[
            explain_pb2.ExplainPolicy(
                id=policy.id,
                title=policy.title,
                title_es=policy.title_es,
                forbids=policy.forbids,
                file=policy.file,
                line=policy.line,
            )
            for policy in step.policies
        ],
    )
