"""EvaluateAccess: decisions for external enforcement points, in AuthZEN terms (docs/authzen.md, ADR 16).

The subject of a question is the user it is about. It is not the caller and never becomes an identity. The answer holds
no permit, and no approval is created or counted, so the answer cannot lead to an effect.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from phylactery_chassis.auth.identity import Principal, Role, level_of
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.commitments import argument_values, hash_values
from phylactery_riskgate.audit.entries import SENSITIVE, sensitive_values
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.bundles.shadow import Shown
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.decisions.log import tell_access
from phylactery_riskgate.decisions.proposals import frozen_body, is_frozen, verdict_body
from phylactery_riskgate.decisions.requests import AccessInput, QuestionInput
from phylactery_riskgate.decisions.stops import stopped_verdict
from phylactery_riskgate.decisions.usage import usage_values
from phylactery_riskgate.domain.model import CallSite, Decision, RawCall, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.reasons import freeze_reason, reason
from phylactery_riskgate.store import stops

USER = "user"
"""The only subject type that decisions are about."""

_ENDS = {"deny_on_first_deny": False, "permit_on_first_permit": True}


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """A recorded decision; requestable_until_us is when the hint to request an approval expires."""

    id: str
    verdict: Verdict
    time_us: int
    requestable_until_us: int

    @property
    def allowed(self) -> bool:
        """Return True if the action is allowed without an approval."""
        return self.verdict.decision is Decision.ALLOW


@dataclass(frozen=True, slots=True)
class _Decided:
    """One question, its subject as records name it, and its answer."""

    who: Principal
    question: QuestionInput
    call: RawCall
    site: CallSite
    answer: AccessAnswer


class AccessEvaluations:
    """The EvaluateAccess use case."""

    def __init__(self, core: DecisionContext) -> None:
        self._core = core

    async def evaluate(self, who: Principal, asked: AccessInput) -> list[AccessAnswer]:
        """Return the answers in the order of the questions, once all are durable in the audit log.

        Raise PermissionDenied ROLE_REQUIRED (for all questions if for one), and Unavailable.
        """
        began = time.perf_counter()
        engine = await self._core.live.at_least(0)
        subjects = [_subject(who, question) for question in asked.evaluations]
        ends = _ENDS.get(asked.evaluations_semantic)
        decided: list[_Decided] = []
        for subject, question in zip(subjects, asked.evaluations, strict=True):
            decided.append(await self._decide(engine, subject, question))
            if decided[-1].answer.allowed is ends:
                break
        await self._core.write(lambda connection: self._record(connection, engine, decided))
        self._show_shadow(decided)
        for one in decided:
            tell_access(who, engine, one.answer, one.question.action.name, began)
        return [one.answer for one in decided]

    async def _decide(self, engine: DecisionEngine, who: Principal, question: QuestionInput) -> _Decided:
        evaluation_id, now_us = new_id("ev"), self._core.clock.now_us()
        call = RawCall(question.action.name, evaluation_id, arguments_struct=arguments_of(question))
        site = CallSite(evaluation_id, evaluation_id)
        if question.subject.type == USER:
            verdict = await self._core.decide(engine, who, call, site, frozenset())
            freeze = await self._core.database.read(lambda connection: stops.find_freeze(connection, who, call.tool))
            verdict = verdict if freeze is None else stopped_verdict(verdict, freeze_reason(freeze.scope))
        else:
            verdict = _no_user(engine)
        until_us = now_us + engine.bundle.approval_ttl_seconds * MICROSECONDS
        return _Decided(who, question, call, site, AccessAnswer(evaluation_id, verdict, now_us, until_us))

    def _record(self, connection: Connection, engine: DecisionEngine, decided: list[_Decided]) -> None:
        for one in decided:
            verdict, tool = one.answer.verdict, one.question.action.name
            hidden = sensitive_values(engine.bundle.tools.get(tool))
            body = (
                verdict_body(verdict)
                | frozen_body(verdict)
                | {
                    "evaluation_id": one.answer.id,
                    "subject_type": one.question.subject.type,
                    "tool": tool,
                    **({} if hidden is None else {SENSITIVE: hidden}),
                }
            )
            values = argument_values(verdict.bound) | hash_values(verdict) | usage_values(verdict.usage)
            self._core.note(connection, Kind.ACCESS_EVALUATED, one.who, one.answer.time_us, body, values=values)

    def _show_shadow(self, decided: list[_Decided]) -> None:
        """Offer the same questions to the shadow bundle, if there is one; skip those that no policy decided."""
        for one in decided:
            if one.question.subject.type != USER or is_frozen(one.answer.verdict.reasons):
                continue
            verdict = one.answer.verdict
            outlook = (str(verdict.decision), verdict.approval_class or "")
            shown = Shown(
                one.who,
                one.call,
                one.site,
                frozenset(),
                one.answer.id,
                verdict.bundle_revision,
                outlook,
                named="evaluation_id",
            )
            self._core.live.shadow.offer(shown)


def arguments_of(question: QuestionInput) -> dict[str, Any]:
    """Return the tool arguments of a question: its parts, without empty ones.

    Properties of the subject are included, as unverified claims. Its id is not, because it is the principal.
    """
    resource, arguments = question.resource, {}
    described: dict[str, Any] = {"type": resource.type, "id": resource.id}
    if resource.properties:
        described["properties"] = resource.properties
    for name, properties in (("subject", question.subject.properties), ("action", question.action.properties)):
        if properties:
            arguments[name] = {"properties": properties}
    if question.context:
        arguments["context"] = question.context
    return {"resource": described, **arguments}


def _subject(who: Principal, question: QuestionInput) -> Principal:
    """Return the subject of a question: the caller, or for a delegate any user of its tenant, without roles.

    The action of the question is a tool: the token must be valid for it.
    """
    who.require_tool(question.action.name)
    if (question.subject.type, question.subject.id) == (USER, who.subject) and Role.CALLER in who.roles:
        return who
    who.require(Role.DELEGATE)
    return Principal(
        subject=question.subject.id,
        tenant=who.tenant,
        roles=frozenset(),
        level=level_of(who, question.subject.id),
        actor=who.subject,
        credential_hash=who.credential_hash,
    )


def _no_user(engine: DecisionEngine) -> Verdict:
    return Verdict(
        decision=Decision.BLOCKED,
        reasons=(reason("SUBJECT_NOT_A_USER"),),
        bound=None,
        approval_class=None,
        policy_ids=(),
        bundle_revision=engine.bundle.revision,
        bundle_hash=engine.bundle.hash,
        risk=None,
        raw_args_hash="",
        facts={},
        usage={},
    )
