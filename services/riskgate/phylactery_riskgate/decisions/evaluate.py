"""Evaluate: decide, record, then answer (docs/effects.md, 2 and 6)."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.auth.jws import SKEW_SECONDS, Claims, TokenType
from phylactery_chassis.db.jobs import Work
from phylactery_chassis.errors import DomainError, ResourceExhausted
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.telemetry import annotate
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import (
    Approval,
    ApprovalState,
    Factor,
    Use,
    approvers_lost,
    refusal,
    unusable_factors,
    without_hash,
)
from phylactery_riskgate.approvals.request import Asking, new_approval
from phylactery_riskgate.approvals.validity import lost_approvers, satisfied_by
from phylactery_riskgate.audit.commitments import ARGS_COMMITMENT, ARGS_HASH, PLAN_STEP, argument_values, hash_values
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.audit.sealing import committed
from phylactery_riskgate.bundles.live import demand
from phylactery_riskgate.bundles.shadow import Shown
from phylactery_riskgate.decisions.context import Basis, DecisionContext, Refused, about
from phylactery_riskgate.decisions.log import tell_decision, tell_doubt, tell_doubtful_votes
from phylactery_riskgate.decisions.proposals import (
    BY_OPERATOR,
    fingerprint,
    frozen_body,
    is_frozen,
    key_of,
    raw_call,
    verdict_body,
)
from phylactery_riskgate.decisions.questions import (
    Evaluated,
    Question,
    Stored,
    approval_not_found,
    basis_body,
    conflict,
    sensitive_body,
    unbound_values,
)
from phylactery_riskgate.decisions.redeem import Attempt, Redemptions
from phylactery_riskgate.decisions.requests import EvaluateInput
from phylactery_riskgate.decisions.stops import stopped_verdict
from phylactery_riskgate.decisions.task_ref import TaskRef, TaskResolver, TaskSource
from phylactery_riskgate.decisions.usage import usage_values
from phylactery_riskgate.domain.intent.facts import uses_ask
from phylactery_riskgate.domain.intent.understood import task_of
from phylactery_riskgate.domain.model import BoundCall, CallSite, Decision
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.reasons import MAX_REASONS, freeze_reason, reason
from phylactery_riskgate.notices.config import Called
from phylactery_riskgate.notices.outbox import called_by
from phylactery_riskgate.store import approvals as approval_rows
from phylactery_riskgate.store import asks as ask_rows
from phylactery_riskgate.store import decisions as decision_rows
from phylactery_riskgate.store import stops
from phylactery_riskgate.store import tasks as task_rows
from phylactery_riskgate.store.asks import AskUse
from phylactery_riskgate.store.decisions import DecisionRecord
from phylactery_riskgate.store.redemptions import find_redemption
from phylactery_riskgate.store.stops import FreezeRow
from phylactery_riskgate.tasks.retractions import TakenBack
from phylactery_riskgate.tasks.snapshot import TaskSnapshot, ask_body, told_values

_STORMS = frozenset({"TOO_MANY_PENDING", "TOO_MANY_ASKED"})


def permit_claims(record: DecisionRecord, bound: BoundCall, issuer: str, end_us: int) -> dict[str, Any]:
    """Return the permit claims for a recorded decision about a bound call, redeemable until end_us."""
    issued = record.permit_us // MICROSECONDS
    return {
        "iss": issuer,
        "aud": issuer,
        "jti": record.permit_id,
        "iat": issued,
        "nbf": issued,
        "exp": end_us // MICROSECONDS,
        "sub": record.subject,
        "tenant": record.tenant,
        "thread": record.thread_id,
        "run": record.run_id,
        "tool_call_id": record.tool_call_id,
        "tool": record.tool,
        "tool_version": record.tool_version,
        "args_hash": bound.args_hash,
        "decision_id": record.id,
        "approval_id": record.counted_approval_id,
        "bundle_revision": record.bundle_revision,
    }


class Evaluation:
    """The Evaluate use case."""

    def __init__(self, core: DecisionContext, tasks: TaskSource, redemptions: Redemptions) -> None:
        self._core, self._namings, self._redemptions = core, TaskResolver(core, tasks), redemptions

    async def evaluate(self, who: Principal, asked: EvaluateInput, engine: DecisionEngine | None = None) -> Evaluated:
        """Return the decision about one call, by the given engine or the current one.

        A new ALLOW without an approval is redeemed with it for the execution that the request names, if any; that
        raises what Redeem raises, too.

        Raise PermissionDenied TOOL_NOT_GRANTED, AlreadyExists CALL_CONFLICT, NotFound APPROVAL_NOT_FOUND and
        TASK_NOT_FOUND, the refusals of an approval request, Unavailable STORE_UNAVAILABLE, and FailedPrecondition if
        the approval does not count for the call.
        """
        who.require(Role.CALLER)
        question = await self.decide(who, asked, engine)
        work = self.work_of(question)
        stored = await self._core.write(work if not asked.execution_id else self._redeeming(question, work))
        reach("riskgate.2")
        answer = self.answer(question, stored)
        annotate({semconv.GEN_AI_TOOL: asked.call.tool, semconv.DECISION: str(answer.record.decision)})
        return answer

    async def decide(self, who: Principal, asked: EvaluateInput, engine: DecisionEngine | None) -> Question:
        """Return a question with its verdict, not yet recorded. Raise as evaluate does."""
        began = time.perf_counter()
        who.require_tool(asked.call.tool)
        if engine is None or engine.bundle.revision < asked.min_bundle_revision:
            engine = await self._core.live.at_least(asked.min_bundle_revision)
        approved: frozenset[str] = frozenset()
        if asked.approval_id:
            naming, approval = await self._namings.of_approval(who, asked)
            if approval is not None:
                approved = satisfied_by(engine.bundle, approval)
        else:
            naming = await self._namings.of_task(who, asked)
        return (await self._decide(engine, who, asked, approved, naming))._replace(began=began)

    def work_of(self, question: Question) -> Work[Stored | Refused]:
        """Return the work for the writer that records a question and determines its answer."""
        work = self._with_approval if question.asked.approval_id else self._without_approval
        return lambda connection: work(connection, question)

    def answer(self, question: Question, stored: Stored) -> Evaluated:
        """Return the durable answer; its permit, if it has one, is signed only now."""
        self._show_shadow(question, stored)
        record, permit, end, redeemed = stored.record, "", 0, None
        if stored.consumed is not None:
            redeemed = self._redemptions.answer(stored.consumed)
        elif record.decision is Decision.ALLOW and stored.bound is not None:
            end = self._permit_end(record)
            permit = self._core.keys.sign(permit_claims(record, stored.bound, self._core.issuer, end), TokenType.PERMIT)
        tell_decision(question.who, question.engine, record, question.began, replayed=stored.replayed)
        return Evaluated(record, stored.bound, stored.approval, permit, end, stored.replayed, redeemed)

    def _redeeming(self, question: Question, work: Work[Stored | Refused]) -> Work[Stored | Refused]:
        """Return the work that also redeems a call that it decides as ALLOW, by the permit that is never sent.

        A decision made before may be older than what stops it, and one that an approval counted for has its own checks:
        both are redeemed by their permit.
        """

        def record(connection: Connection) -> Stored | Refused:
            stored = work(connection)
            if isinstance(stored, Refused) or stored.replayed or question.asked.approval_id:
                return stored
            decided, bound = stored.record, stored.bound
            if decided.decision is not Decision.ALLOW or bound is None:
                return stored
            claims = Claims(permit_claims(decided, bound, self._core.issuer, self._permit_end(decided)))
            attempt = Attempt(
                who=question.who,
                asked=question.asked,
                claims=claims,
                decision=decided,
                basis=question.basis,
                verdict=question.verdict,
                fingerprint=question.fingerprint,
                now_us=question.now_us,
                task_id=question.naming.task_id,
            )
            consumed = self._redemptions.consume(connection, attempt)
            return consumed if isinstance(consumed, Refused) else stored._replace(consumed=consumed)

        return record

    async def _decide(
        self,
        engine: DecisionEngine,
        who: Principal,
        asked: EvaluateInput,
        approved: frozenset[str],
        naming: TaskRef,
    ) -> Question:
        call = raw_call(asked.call)
        site = CallSite(asked.thread_id, asked.run_id, asked.plan_step, pathway=asked.pathway)
        verdict = await self._core.decide(engine, who, call, site, approved, task=naming.reader, counted_later=True)
        basis, now_us = Basis(engine, who, site, approved), self._core.clock.now_us()
        return Question(who, asked, engine, basis, naming, verdict, fingerprint(call, verdict), now_us)

    def _without_approval(self, connection: Connection, question: Question) -> Stored | Refused:
        key = key_of(question.who, question.asked.run_id, question.asked.call.tool_call_id)
        record = decision_rows.find_call(connection, key, "")
        if record is None:
            return self._record(connection, self._decided(connection, question))
        return self._replay(connection, question, record)

    def _with_approval(self, connection: Connection, question: Question) -> Stored | Refused:
        """Count the named approval if every factor of it holds for this call."""
        who, asked, now_us = question.who, question.asked, question.now_us
        approval = self._core.find_approval(connection, who.tenant, asked.approval_id, lock=True)
        if approval is None or approval.requester != who.subject:
            factor = Factor.ID if approval is None else Factor.USER
            self._note_refused(connection, question, (factor,), {"approval_id": asked.approval_id})
            return Refused(approval_not_found(asked.approval_id))
        approval = self._core.current(connection, approval, who, now_us)
        origin = decision_rows.find_decision(connection, who.tenant, approval.decision_id)
        failed = unusable_factors(approval, self._use(question, approval, origin), now_us)
        key = key_of(who, asked.run_id, asked.call.tool_call_id)
        record = decision_rows.find_call(connection, key, asked.approval_id)
        used_here = record is not None and approval.state is ApprovalState.REDEEMED
        failed = tuple(factor for factor in failed if not (used_here and factor is Factor.ONE_TIME))
        if failed:
            told = failed if approval.open or used_here else without_hash(failed)
            self._note_refused(connection, question, told, about(approval))
            return Refused(refusal(approval, failed[0]))
        if approval.state is ApprovalState.APPROVED and record is None:
            question = self._decided(connection, question, approval)
            lost = question.verdict.decision is Decision.AUTH_REQUIRED and lost_approvers(
                question.engine.bundle, approval
            )
            if lost:
                self._note_refused(connection, question, (Factor.APPROVER,), about(approval))
                return Refused(approvers_lost(approval))
            if question.verdict.decision is Decision.AUTH_REQUIRED and approval.doubtful_votes:
                self._note_refused(connection, question, (Factor.VOTE,), about(approval))
                tell_doubtful_votes(approval)
                return Refused(refusal(approval, Factor.VOTE))
            return self._record(connection, question)
        # while the approval is pending, the answer is the one that requested it
        earlier = origin if approval.state is ApprovalState.PENDING else record
        assert earlier is not None, "an approval is made together with its decision"
        return self._replay(connection, question, earlier)

    def _decided(self, connection: Connection, question: Question, approval: Approval | None = None) -> Question:
        """Return the question as decided by the current state: the approval's last yes may have come in the meantime.

        A call that an operator stopped is blocked, whatever the policies decide.
        """
        basis = question.basis
        approved = satisfied_by(question.engine.bundle, approval)
        if approved == basis.approved:
            verdict = self._core.decide_counted(connection, basis, question.verdict)
        else:
            basis = basis._replace(approved=approved)
            verdict = self._core.decide_again(connection, basis, question.verdict)
        freeze = self._freeze(connection, question)
        if freeze is not None:
            verdict = stopped_verdict(verdict, freeze_reason(freeze.scope))
        elif verdict.bound is not None and verdict.decision is not Decision.BLOCKED:
            told = TaskSnapshot(question.naming.task_id, verdict.task)
            thread_id = question.asked.thread_id
            if self._core.revoked_alike(connection, question.who, thread_id, verdict.bound, told):
                verdict = stopped_verdict(verdict, reason("DECISION_REVOKED"))
        return question._replace(basis=basis, verdict=verdict)

    def _freeze(self, connection: Connection, question: Question) -> FreezeRow | None:
        return stops.find_freeze(connection, question.who, question.asked.call.tool)

    def _replay(self, connection: Connection, question: Question, record: DecisionRecord) -> Stored | Refused:
        """Return the recorded answer, with a new permit if the old one is void; refuse and record another call.

        The answer comes without a permit if the values were erased and the current catalog binds the call differently,
        if the decision was revoked, frozen or taken back or is too old, if other calls have used up its ask, or if its
        permit and its task have both expired. The task does not make it a different call: it is decided once, by what
        was known then.
        """
        who, now_us = question.who, question.now_us
        same = self._core.same_hash(record, record.fingerprint, question.fingerprint)
        if not same or record.thread_id != question.asked.thread_id:
            refused = conflict(record)
            self._note_asked(connection, question, {"reason": refused.reason, "decision_id": record.id})
            return Refused(refused)
        demand(question.asked.min_bundle_revision, record.bundle_revision)
        if record.decision is Decision.ALLOW and not self._core.on_record(connection, record):
            return self._altered(connection, question, record)
        bound = self._core.bound_of(connection, record) or self._same(question.verdict.bound, record)
        why = ""
        if record.decision is Decision.AUTH_REQUIRED and record.revoke_us:
            record = _without_permit(record, why := "DECISION_REVOKED")
        elif record.decision is Decision.ALLOW:
            why = self._withheld(connection, question, record, bound)
            bound = None if why else bound
            if why == "DECISION_TOO_OLD":  # permanent, whatever a clock says later
                decision_rows.renew_permit(connection, who.tenant, record.id, "", decision_rows.PERMITS_OVER)
            record = _without_permit(record, why) if why else self._with_permit(connection, question, record)
        if why in BY_OPERATOR:  # the answer is another than the recorded one, so it is recorded
            self._note_asked(connection, question, {"reason": why, "decision_id": record.id})
        approval = record.approval_id and self._core.find_approval(
            connection, who.tenant, record.approval_id, lock=True
        )
        if not approval:
            return Stored(record, bound, None, replayed=True)
        approval = self._core.current(connection, approval, who, now_us)
        return Stored(record, bound, self._core.seen(connection, approval, who), replayed=True)

    def _altered(self, connection: Connection, question: Question, record: DecisionRecord) -> Stored:
        """Return a BLOCKED answer for a stored decision that differs from the log, and record the finding."""
        ids = {"decision_id": record.id, "log": record.audit_log, "index": record.audit_index}
        self._note_refused(connection, question, (Factor.RECORD,), ids)
        tell_doubt("a stored decision does not match the audit log", Factor.RECORD, **ids)
        blocked = record._replace(
            decision=Decision.BLOCKED, reasons=(reason("RECORD_ALTERED"),), policy_ids=(), permit_id="", permit_us=0
        )
        return Stored(blocked, None, None, replayed=True)

    def _withheld(
        self, connection: Connection, question: Question, record: DecisionRecord, bound: BoundCall | None
    ) -> str:
        """Return why an allowed call comes without a permit now, or an empty string.

        A call that is already redeemed keeps its permit: it permits nothing further, and a process that died in between
        gets its receipt with it.
        """
        if bound is None:
            return "CALL_NOT_KEPT"
        if find_redemption(connection, key_of(question.who, record.run_id, record.tool_call_id)) is not None:
            return ""
        why = self._stopped(connection, question, record, bound) or self._used_up(connection, question, record, bound)
        return why or ("DECISION_TOO_OLD" if self._too_old(record, question.now_us) else "")

    def _stopped(self, connection: Connection, question: Question, record: DecisionRecord, bound: BoundCall) -> str:
        """Return why an operator has stopped an allowed decision (revoked or frozen), or an empty string."""
        if record.revoke_us:
            return "DECISION_REVOKED"
        if self._freeze(connection, question) is not None:
            return "FROZEN"
        told = self._core.snapshot_of(connection, record)
        alike = self._core.revoked_alike(connection, question.who, record.thread_id, bound, told)
        return "DECISION_REVOKED" if alike else ""

    def _used_up(self, connection: Connection, question: Question, record: DecisionRecord, bound: BoundCall) -> str:
        """Return why the task of a call denies a further permit, or an empty string."""
        who, tool = question.who, question.engine.bundle.tools.get(record.tool)
        told = self._core.snapshot_of(connection, record)
        if not told.task_id:
            return ""
        facts, tasks = told.facts, {told.task_id, task_of(told.facts.ask)} - {""}
        found = ask_rows.find_retractions(connection, who.tenant, who.subject, tasks)
        if TakenBack(self._core.hashes, who, found).by(tool, bound, tasks) not in ("", facts.retracted):
            return "PERMIT_RETRACTED"
        by_ask = tool is not None and uses_ask(facts, tool) and not record.counted_approval_id
        if by_ask and question.verdict.decision is not Decision.ALLOW:
            use = AskUse(task_of(facts.ask), facts.ask, record.args_hash)
            known = ask_rows.uses_of(connection, who.tenant, who.subject, [use.task_id])
            if use in known or 0 < facts.quota <= sum(one.ask == use.ask for one in known):
                return "ASK_USED_UP"
        if question.now_us < self._permit_end(record):
            return ""
        lives = (task_rows.find_task(connection, who.tenant, who.subject, one) for one in tasks)
        return "" if all(one is not None and one.open(question.now_us) for one in lives) else "TASK_ENDED"

    def _with_permit(self, connection: Connection, question: Question, record: DecisionRecord) -> DecisionRecord:
        """Return the record with a permit that has not expired; a renewal is recorded."""
        who, now_us = question.who, question.now_us
        # if a clock was set back, a permit issued in the future would be rejected everywhere
        ahead_us = record.permit_us - now_us
        void = stops.frozen_since(connection, who, record.tool, record.permit_freeze)
        lasts = now_us < self._permit_end(record) and ahead_us <= SKEW_SECONDS * MICROSECONDS
        if record.permit_id and lasts and not void:
            return record
        known = stops.newest(connection)
        record = record._replace(permit_id=new_id("pm"), permit_us=now_us, permit_freeze=known)
        decision_rows.renew_permit(connection, who.tenant, record.id, record.permit_id, now_us, known)
        told = {"decision_id": record.id, "permit_id": record.permit_id, ARGS_COMMITMENT: record.args_commitment}
        self._core.note(connection, Kind.PERMIT_RENEWED, who, now_us, question.place | told)
        return record

    def _record(self, connection: Connection, question: Question) -> Stored | Refused:
        """Make the decision durable, with its approval if it requires one."""
        who, asked, verdict, now_us = question.who, question.asked, question.verdict, question.now_us
        bound, tool = verdict.bound, asked.call.tool
        made = {ARGS_HASH: committed(bound.args_hash)} if bound else {}
        args_commitment = made[ARGS_HASH][1] if made else ""
        kept = self._core.hashes.keep(who.tenant, who.subject, tool, bound.args_hash) if bound else ""
        approval = (
            self._asked(connection, question, kept, args_commitment)
            if verdict.decision is Decision.AUTH_REQUIRED
            else None
        )
        if isinstance(approval, Refused):
            return approval
        allowed = verdict.decision is Decision.ALLOW
        told = {
            "decision_id": approval.decision_id if approval else new_id("de"),
            "approval_id": approval.id if approval else "",
            "counted_approval_id": asked.approval_id,
            "permit_id": new_id("pm") if allowed else "",
        }
        values = argument_values(bound) | ({PLAN_STEP: asked.plan_step} if asked.plan_step else {})
        values |= hash_values(verdict) | usage_values(verdict.usage) | unbound_values(question)
        values |= told_values(TaskSnapshot(question.naming.task_id, verdict.task))
        body = question.place | verdict_body(verdict) | told | basis_body(question) | frozen_body(verdict)
        body |= {} if asked.approval_id else ask_body(verdict.task)
        place = self._core.note(connection, Kind.DECISION, who, now_us, body, values=values, made=made)
        record = DecisionRecord(
            id=told["decision_id"],
            tenant=who.tenant,
            subject=who.subject,
            run_id=asked.run_id,
            tool_call_id=asked.call.tool_call_id,
            counted_approval_id=told["counted_approval_id"],
            thread_id=asked.thread_id,
            fingerprint=self._core.hashes.keep(who.tenant, who.subject, tool, question.fingerprint),
            decision=verdict.decision,
            reasons=verdict.reasons,
            tool=tool,
            tool_version=bound.tool_version if bound else "",
            args_hash=kept,
            policy_ids=verdict.policy_ids,
            bundle_revision=verdict.bundle_revision,
            risk=verdict.risk or "",
            approval_id=told["approval_id"],
            permit_id=told["permit_id"],
            permit_us=now_us if allowed else 0,
            create_us=now_us,
            audit_log=place.log,
            audit_index=place.index,
            pathway=asked.pathway,
            args_commitment=args_commitment,
            stakes=verdict.stakes,
            permit_freeze=stops.newest(connection) if allowed else 0,
            actor=who.actor,
        )
        decision_rows.insert_decision(connection, record)
        if verdict.exceeded:
            limit = verdict.exceeded[0]
            self._core.notices.limited(connection, called_by(record), record.subject, tool, limit, now_us)
        if approval is None:
            return Stored(record, bound, None, replayed=False)
        approval = self._core.add_approval(connection, approval)
        return Stored(record, bound, self._core.seen(connection, approval, who), replayed=False)

    def _asked(self, connection: Connection, question: Question, kept: str, args_commitment: str) -> Approval | Refused:
        """Return the approval a decision requires; if none may be requested, record and return the refusal."""
        who, asked, verdict = question.who, question.asked, question.verdict
        assert verdict.bound is not None, "only a bound call can ask for an approval"
        asking = Asking(
            tenant=who.tenant,
            requester=who.subject,
            thread_id=asked.thread_id,
            run_id=asked.run_id,
            tool_call_id=asked.call.tool_call_id,
            verdict=verdict,
            bound=verdict.bound,
            kept_hash=kept,
            args_commitment=args_commitment,
            now_us=question.now_us,
        )
        bundle = question.engine.bundle
        wanted = next(known for known in bundle.classes if known.name == verdict.approval_class)
        seconds = self._core.notices.lifetime_seconds(bundle, wanted, who.tenant)
        over = self._over_with_waiting(connection, question)
        made = over or new_approval(connection, asking, bundle, wanted, seconds)
        if isinstance(made, Approval):
            return made
        self._note_asked(connection, question, {"reason": made.reason} | made.metadata)
        if over is None and made.reason in _STORMS:
            called = Called(who.tenant, verdict.approval_class or "", risk=verdict.risk or "")
            self._core.notices.limited(connection, called, who.subject, asked.call.tool, made.reason, question.now_us)
        return Refused(made)

    def _over_with_waiting(self, connection: Connection, question: Question) -> DomainError | None:
        """Return the error if a budget would refuse the call once what waits in its run has run, or None.

        Nobody is asked about what their yes to another call of the same plan would make impossible. It is decided when
        it is reached: until then, what waits may be refused.
        """
        who, verdict, bundle = question.who, question.verdict, question.engine.bundle
        bound = verdict.bound
        if bound is None or not bundle.tools[bound.tool].budgets:
            return None
        open_ones = (
            self._core.find_approval(connection, who.tenant, name)
            for name in approval_rows.find_open(connection, who.tenant, who.subject)
        )
        waiting = [
            call
            for one in open_ones
            if one is not None and one.run_id == question.asked.run_id
            if (call := self._core.call_of(connection, one)) is not None and call.tool in bundle.tools
        ]
        if not waiting or not self._core.is_over(connection, question.basis, bound, waiting):
            return None
        return ResourceExhausted(
            "TOO_MANY_PENDING",
            "a budget does not cover this call beside those of its run that are pending; answer those first",
            metadata={"limit": str(len(waiting)), "per": "run"},
        )

    def _use(self, question: Question, approval: Approval, origin: DecisionRecord | None) -> Use:
        bound, asked = question.verdict.bound, question.asked
        return Use(
            subject=question.who.subject,
            thread_id=asked.thread_id,
            run_id=asked.run_id,
            tool_call_id=asked.call.tool_call_id,
            tool=asked.call.tool,
            args_hash=self._core.bound_as_kept(approval, bound) if bound else "",
            same_version=bound is None or (origin is not None and origin.tool_version == bound.tool_version),
        )

    def _same(self, bound: BoundCall | None, record: DecisionRecord) -> BoundCall | None:
        """Return the call as bound now if it is the recorded one, otherwise None."""
        forms = () if bound is None or bound.tool_version != record.tool_version else (bound, bound.former)
        return next((one for one in forms if self._core.same_call(record, one)), None)

    def _show_shadow(self, question: Question, stored: Stored) -> None:
        """Offer the same call to the shadow bundle, if there is one, with its own catalog's view of the task.

        Replayed answers are not offered. Nor are decisions by recorded facts: those belong to the live catalog, and the
        shadow was offered the call when they were computed.
        """
        naming = question.naming
        if self._core.live.shadow.engine is None or stored.replayed or (naming.recorded and naming.task_id):
            return
        if is_frozen(stored.record.reasons):
            return  # no policy decided it
        record, approval, basis = stored.record, stored.approval, question.basis
        outlook = (str(record.decision), approval.approval.approval_class if approval else "")
        call = raw_call(question.asked.call)
        shown = Shown(basis.who, call, basis.site, basis.approved, record.id, record.bundle_revision, outlook)
        shown = replace(shown, task=naming.reader)
        self._core.live.shadow.offer(shown)

    def _note_asked(self, connection: Connection, question: Question, body: dict[str, Any]) -> None:
        """Record the refusal of a call that has no decision record, with the hash of its arguments."""
        bound = question.verdict.bound
        values = {ARGS_HASH: bound.args_hash} if bound else {}
        told = question.place | body | question.bundle | (sensitive_body(question) if values else {})
        self._core.note(connection, Kind.EVALUATE_REFUSED, question.who, question.now_us, told, values=values)

    def _note_refused(
        self, connection: Connection, question: Question, failed: tuple[Factor, ...], body: dict[str, Any]
    ) -> None:
        told = body | question.place | question.bundle | {"failed": [str(factor) for factor in failed]}
        self._core.note(connection, Kind.EVALUATE_REFUSED, question.who, question.now_us, told)

    def _too_old(self, record: DecisionRecord, now_us: int) -> bool:
        """Return True if a decision is too old for a further permit; once it is, it stays so."""
        if record.permit_us == decision_rows.PERMITS_OVER:
            return True
        return now_us >= record.create_us + self._core.decision_ttl_seconds * MICROSECONDS

    def _permit_end(self, record: DecisionRecord) -> int:
        return (record.permit_us // MICROSECONDS + self._core.permit_ttl_seconds) * MICROSECONDS


def _without_permit(record: DecisionRecord, why: str) -> DecisionRecord:
    """Return the record with the reason why it comes without a permit before its other reasons.

    What an operator stopped is answered as BLOCKED; its record, and the decision it tells, stay as they were.
    """
    decision = Decision.BLOCKED if why in BY_OPERATOR else record.decision
    return record._replace(decision=decision, reasons=(reason(why), *record.reasons)[:MAX_REASONS])
