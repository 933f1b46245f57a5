"""Values of Evaluate's questions and answers, and their fields in records."""

from __future__ import annotations

from typing import Any, NamedTuple

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import AlreadyExists, NotFound

from phylactery_riskgate.audit.commitments import CLAIMED_HASH, RAW_ARGUMENTS
from phylactery_riskgate.audit.entries import SENSITIVE, sensitive_values
from phylactery_riskgate.decisions.context import ApprovalSeen, Basis
from phylactery_riskgate.decisions.proposals import bundle_body
from phylactery_riskgate.decisions.redeem import Consumed, Redeemed
from phylactery_riskgate.decisions.requests import EvaluateInput
from phylactery_riskgate.decisions.task_ref import TaskRef
from phylactery_riskgate.domain.model import BoundCall, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.store.decisions import DecisionRecord
from phylactery_riskgate.tasks.snapshot import told_body


class Evaluated(NamedTuple):
    """A recorded decision and what comes with it; permit is empty without ALLOW, and where the call is redeemed."""

    record: DecisionRecord
    bound: BoundCall | None
    approval: ApprovalSeen | None
    permit: str
    permit_expire_us: int
    replayed: bool
    redeemed: Redeemed | None = None


class Stored(NamedTuple):
    """What one transaction made durable: the whole answer except the permit or the receipt."""

    record: DecisionRecord
    bound: BoundCall | None
    approval: ApprovalSeen | None
    replayed: bool
    consumed: Consumed | None = None


class Question(NamedTuple):
    """One Evaluate request with its engine, inputs and verdict.

    ``began`` is when it came, by the performance counter.
    """

    who: Principal
    asked: EvaluateInput
    engine: DecisionEngine
    basis: Basis
    naming: TaskRef
    verdict: Verdict
    fingerprint: str
    now_us: int
    began: float = 0.0

    @property
    def place(self) -> dict[str, Any]:
        """Return the fields that every record about the question has."""
        return told_body(self.naming.task_id) | {
            "thread_id": self.asked.thread_id,
            "run_id": self.asked.run_id,
            "tool_call_id": self.asked.call.tool_call_id,
            "tool": self.asked.call.tool,
        }

    @property
    def bundle(self) -> dict[str, Any]:
        """Return the fields of a refusal that name the bundle by which it was refused; a verdict names its own."""
        return bundle_body(self.verdict)


def approval_not_found(approval_id: str) -> NotFound:
    """Return the error for an approval that does not exist, is another tenant's, or is not the caller's."""
    return NotFound(
        "APPROVAL_NOT_FOUND",
        f"approval '{approval_id}' not found",
        metadata={"approval_id": approval_id},
    )


def conflict(record: DecisionRecord) -> AlreadyExists:
    """Return the error for a place used by another call, or by one whose record is past its retention."""
    by = (
        "requested with a different call" if record.fingerprint else "used by a call whose record is past its retention"
    )
    return AlreadyExists(
        "CALL_CONFLICT",
        f"tool_call_id '{record.tool_call_id}' of this run was {by}; give this one its own",
        metadata={"tool_call_id": record.tool_call_id},
    )


def basis_body(question: Question) -> dict[str, Any]:
    """Return the inputs of the decision besides call and facts, so that it can be repeated from its record.

    They include which of its values are sensitive by the current catalog, because a later one may not know the tool.
    """
    who, site, call = question.who, question.basis.site, question.asked.call
    return {
        "caller": {"level": who.level, "groups": sorted(who.groups), "direct": not who.delegated},
        "thread_tenant": site.thread_tenant,
        "pathway": site.pathway,
        "approved": sorted(question.basis.approved),
        "claimed": {"tool_schema_hash": call.tool_schema_hash} if call.tool_schema_hash else {},
        **sensitive_body(question),
    }


def sensitive_body(question: Question) -> dict[str, Any]:
    """Return which of a call's values are sensitive by the current catalog; empty if none is."""
    hidden = sensitive_values(question.engine.bundle.tools.get(question.asked.call.tool))
    return {} if hidden is None else {SENSITIVE: hidden}


def unbound_values(question: Question) -> dict[str, Any]:
    """Return raw arguments that are JSON but fit no tool: another catalog may bind them."""
    call, verdict = question.asked.call, question.verdict
    if verdict.bound is not None or not verdict.raw_args_hash:
        return {}
    raw = call.arguments_struct if call.arguments_json is None else call.arguments_json
    return {RAW_ARGUMENTS: raw} | ({CLAIMED_HASH: call.raw_args_hash} if call.raw_args_hash else {})
