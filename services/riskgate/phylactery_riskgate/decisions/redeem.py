"""Redeem and ReportOutcome: a permit becomes at most one effect with one outcome (docs/effects.md, 8 and 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.auth.jws import SKEW_SECONDS, Claims, TokenError, TokenType, check_times
from phylactery_chassis.errors import DomainError, FailedPrecondition, NotFound
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import (
    Approval,
    ApprovalEvent,
    ApprovalState,
    Factor,
    Use,
    advance,
    approvers_lost,
    not_pending,
    refusal,
    unusable_factors,
)
from phylactery_riskgate.approvals.validity import lost_approvers, satisfied_by
from phylactery_riskgate.audit.commitments import ARGS_COMMITMENT
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.decisions.context import Basis, DecisionContext, Refused
from phylactery_riskgate.decisions.log import tell_doubtful_votes
from phylactery_riskgate.decisions.proposals import fingerprint, key_of, raw_call
from phylactery_riskgate.decisions.requests import EvaluateInput, OutcomeInput, RedeemInput, ToldInput
from phylactery_riskgate.decisions.usage import usage_values
from phylactery_riskgate.domain.intent.facts import uses_ask, without_ask
from phylactery_riskgate.domain.intent.understood import task_of
from phylactery_riskgate.domain.model import BoundCall, CallSite, CatalogTool, Decision, Stakes, Verdict
from phylactery_riskgate.notices.outbox import called_by
from phylactery_riskgate.store import asks as ask_rows
from phylactery_riskgate.store import redemptions as rows
from phylactery_riskgate.store import stops, undo
from phylactery_riskgate.store.asks import AskUse
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.decisions import CallKey, DecisionRecord, find_decision, renew_permit
from phylactery_riskgate.store.redemptions import OutcomeReport, Redemption, Reversal
from phylactery_riskgate.store.stops import Scope
from phylactery_riskgate.store.undo import UndoFailure
from phylactery_riskgate.tasks.retractions import TakenBack
from phylactery_riskgate.tasks.snapshot import TaskSnapshot, ask_body

RECEIPT_AUDIENCE = "executor"
IN_DOUBT, FAILED = "IN_DOUBT", "FAILED"
UNDO_NOT_KEPT = "UNDO_NOT_KEPT"
"""The code of a call that could not keep what it would have replaced, and did nothing."""


@dataclass(frozen=True, slots=True)
class Redeemed:
    """A consumed permit: the receipt, the call to run, and whether this execution had redeemed it before.

    ``low_stakes`` is True if nothing but its low stakes allowed the call.
    """

    receipt: str
    bound: BoundCall
    redeem_us: int
    repeated: bool
    stakes: Stakes = "unspecified"
    low_stakes: bool = False


@dataclass(frozen=True, slots=True)
class Consumed:
    """What one transaction made durable of a redemption: everything except the receipt."""

    redemption: Redemption
    bound: BoundCall
    repeated: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """One redemption: its request, the permit's claims, the decision that issued it, and the current decision."""

    who: Principal
    asked: RedeemInput | EvaluateInput
    claims: Claims
    decision: DecisionRecord
    basis: Basis
    verdict: Verdict
    fingerprint: str
    now_us: int
    task_id: str

    @property
    def tool(self) -> CatalogTool:
        """Return the tool, which is in the catalog once the call is bound."""
        return self.basis.engine.bundle.tools[self.asked.call.tool]


class _RefusalError(Exception):
    """A failed check: the factor and values to record, and the error for the caller."""

    def __init__(self, factor: str, error: DomainError, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(factor)
        self.factor = factor
        self.error = error
        self.values = values or {}


def _refuse(reason: str, factor: str, message: str, **metadata: str) -> _RefusalError:
    return _RefusalError(factor, FailedPrecondition(reason, message, metadata={"factor": factor, **metadata}))


def _revoked() -> _RefusalError:
    return _refuse("DECISION_REVOKED", "revocation", "an operator has revoked this call; nothing was redeemed")


class Redemptions:
    """The Redeem and ReportOutcome use cases."""

    def __init__(self, core: DecisionContext) -> None:
        self._core = core

    async def redeem(self, who: Principal, asked: RedeemInput) -> Redeemed:
        """Consume a permit for one execution, and sign the receipt once that is durable.

        The same execution gets the same receipt again, even after the permit has expired. Every refusal is recorded
        with the factor that failed. Raise PermissionDenied, FailedPrecondition, and Unavailable STORE_UNAVAILABLE.
        """
        who.require(Role.CALLER)
        who.require_tool(asked.call.tool)
        claims: Claims | None = None
        try:
            claims = self._verified(who, asked)
            _check_place(asked, claims)
            attempt = await self._prepare(who, asked, claims)
        except _RefusalError as refused:
            error, known = refused, claims
            await self._core.write(lambda connection: self._refused(connection, who, asked, known, error))
            raise refused.error from None
        return self.answer(await self._core.write(lambda connection: self.consume(connection, attempt)))

    def answer(self, consumed: Consumed) -> Redeemed:
        """Return the durable redemption with its receipt, which is signed only now."""
        reach("riskgate.8")
        # the row holds no hash, which would outlive the values; a repeated request brings the call itself
        claims = {**consumed.redemption.receipt_claims, "args_hash": consumed.bound.args_hash}
        now = self._core.clock.now_us() // MICROSECONDS
        if claims["iat"] > now + SKEW_SECONDS:
            # the clock was set back: an executor would reject a receipt from the future
            claims["iat"] = now
        receipt = self._core.keys.sign(claims, TokenType.RECEIPT)
        return Redeemed(
            receipt,
            consumed.bound,
            consumed.redemption.redeem_us,
            consumed.repeated,
            claims.get("stakes", "unspecified"),
            claims.get("low_stakes", False),
        )

    async def report_outcome(self, who: Principal, report: OutcomeInput) -> Place:
        """Record how an execution ended and return the record's place in the audit log.

        Raise NotFound EXECUTION_NOT_FOUND and FailedPrecondition OUTCOME_CONFLICT.
        """
        who.require(Role.CALLER)
        now_us = self._core.clock.now_us()
        return await self._core.write(lambda connection: self._report(connection, who, report, now_us))

    async def report_told(self, who: Principal, asked: ToldInput) -> None:
        """Record that the user was told of effects that ran without a question.

        Raise NotFound EXECUTION_NOT_FOUND.
        """
        who.require(Role.CALLER)
        now_us = self._core.clock.now_us()

        def work(connection: Connection) -> Refused | None:
            for execution_id in asked.execution_ids:
                if rows.find_execution(connection, who.tenant, who.subject, execution_id) is None:
                    return Refused(_unknown_execution(execution_id))
            for execution_id in asked.execution_ids:
                undo.mark_told(connection, who.tenant, who.subject, execution_id, now_us)
            return None

        await self._core.write(work)

    async def without_outcome(self, tenant: str, *, older_than_seconds: int, limit: int = 100) -> list[Redemption]:
        """Return a tenant's redeemed calls whose outcome is still missing after older_than_seconds, oldest first."""
        before_us = self._core.clock.now_us() - older_than_seconds * MICROSECONDS
        return await self._core.database.read(
            lambda connection: rows.without_outcome(connection, tenant, before_us=before_us, limit=limit)
        )

    def _verified(self, who: Principal, asked: RedeemInput) -> Claims:
        """Return the claims of a genuine permit of this caller; a refusal names what only such a permit was for."""
        try:
            claims = self._core.keys.verify(asked.permit, TokenType.PERMIT)
        except TokenError as error:
            raise _unusable(error) from None
        _check_claims(
            claims,
            {
                "iss": ("PERMIT_INVALID", "issuer", self._core.issuer),
                "aud": ("PERMIT_INVALID", "audience", self._core.issuer),
                "tenant": ("PERMIT_INVALID", "tenant", who.tenant),
                "sub": ("PERMIT_INVALID", "user", who.subject),
            },
        )
        return claims

    async def _prepare(self, who: Principal, asked: RedeemInput, claims: Claims) -> Attempt:
        """Decide about the call again, with the class of the approval the permit came from, if any.

        The task facts are those known when the call was first decided.
        """
        found = await self._core.database.read_quickly(lambda connection: self._origin(connection, who, claims))
        if found is None:
            raise _refuse("PERMIT_INVALID", "id", "the permit belongs to no decision that is known here")
        decision, plan_step, told, approval = found
        engine = await self._core.live.at_least(asked.min_bundle_revision)
        approved = satisfied_by(engine.bundle, approval)
        call = raw_call(asked.call)
        site = CallSite(asked.thread_id, asked.run_id, plan_step, pathway=decision.pathway)
        verdict = await self._core.decide(engine, who, call, site, approved, task=told.reader, counted_later=True)
        basis, now_us = Basis(engine, who, site, approved), self._core.clock.now_us()
        print_ = fingerprint(call, verdict)
        return Attempt(who, asked, claims, decision, basis, verdict, print_, now_us, told.task_id)

    def _origin(
        self, connection: Connection, who: Principal, claims: Claims
    ) -> tuple[DecisionRecord, str, TaskSnapshot, Approval | None] | None:
        decision = find_decision(connection, who.tenant, claims.text("decision_id"))
        if decision is None or decision.decision is not Decision.ALLOW:
            return None
        counted = decision.counted_approval_id
        approval = self._core.find_approval(connection, who.tenant, counted) if counted else None
        return decision, *self._core.rest_of(connection, decision), approval

    def consume(self, connection: Connection, attempt: Attempt) -> Consumed | Refused:
        """Redeem the call inside a transaction, or record why that is refused."""
        try:
            repeated = self._repeated(connection, attempt)
            if repeated is not None:
                return repeated
            attempt = self._check_stops(connection, attempt)
            self._check_time(connection, attempt)
            bound = _checked_call(attempt)
            self._check_retraction(connection, attempt, bound)
            approval = self._checked_approval(connection, attempt, bound)
            told = TaskSnapshot(attempt.task_id, attempt.verdict.task)
            if self._core.revoked_alike(connection, attempt.who, attempt.decision.thread_id, bound, told):
                raise _revoked()
            verdict = self._core.decide_counted(connection, attempt.basis, attempt.verdict, lock=True)
            attempt = replace(attempt, verdict=verdict)
            _check_approvers(attempt, approval)
            _check_policy(verdict)
            attempt = replace(attempt, verdict=self._with_ask_used(connection, attempt))
        except _RefusalError as refused:
            if refused.error.reason == "BUDGET_EXCEEDED":
                record, limit = attempt.decision, refused.error.metadata["budget"]
                called = called_by(record)
                self._core.notices.limited(connection, called, record.subject, record.tool, limit, attempt.now_us)
            return self._refused(connection, attempt.who, attempt.asked, attempt.claims, refused)
        return self._redeem(connection, attempt, bound, approval)

    def _repeated(self, connection: Connection, attempt: Attempt) -> Consumed | None:
        """Return this execution's earlier redemption, if any; raise a refusal if another one redeemed the call."""
        who, asked = attempt.who, attempt.asked
        execution = rows.find_execution(connection, who.tenant, who.subject, asked.execution_id)
        holder = rows.find_redemption(connection, key_of(who, asked.run_id, asked.call.tool_call_id))
        if holder is None and execution is None:
            return None
        if holder is None or execution != holder:
            raise _refuse(
                "ALREADY_REDEEMED",
                "one_time",
                "another execution has this call, or this execution has another call; it will not run twice",
            )
        origin = find_decision(connection, who.tenant, holder.decision_id)
        if origin is not None and not origin.fingerprint:
            told = "this execution had the call, whose record is past its retention; it will not run twice"
            raise _refuse("ALREADY_REDEEMED", "one_time", told)
        if origin is None or not self._core.same_hash(origin, origin.fingerprint, attempt.fingerprint):
            raise _refuse("ARGS_MISMATCH", "argument_hash", "this execution redeemed the call with other arguments")
        bound = self._core.bound_of(connection, origin) or attempt.verdict.bound
        if bound is None or not self._core.same_call(origin, bound):
            raise _refuse("ARGS_MISMATCH", "argument_hash", "the call that was redeemed cannot be bound again")
        return Consumed(holder, bound, repeated=True)

    def _check_stops(self, connection: Connection, attempt: Attempt) -> Attempt:
        """Return the attempt with the current decision; raise a refusal if an operator stopped the call.

        No freeze or revocation can happen until the commit. Raise BusyError if one is in progress.
        """
        who = attempt.who
        freeze = stops.find_freeze(connection, who, attempt.asked.call.tool, lock=True)
        if freeze is not None:
            what = "every call" if freeze.scope is Scope.ALL else f"this {freeze.scope}"
            raise _refuse(
                "FROZEN", "freeze", f"an operator has frozen {what}; nothing was redeemed", scope=str(freeze.scope)
            )
        decision = find_decision(connection, who.tenant, attempt.decision.id) or attempt.decision
        if decision.revoke_us:
            raise _revoked()
        if stops.frozen_since(connection, who, attempt.asked.call.tool, decision.permit_freeze):
            told = "a freeze, lifted since, has voided this permit; nothing was redeemed. Ask Evaluate again"
            raise _refuse("PERMIT_EXPIRED", "freeze", told)
        return replace(attempt, decision=decision)

    def _check_time(self, connection: Connection, attempt: Attempt) -> None:
        """Raise a refusal if the permit has expired, is not valid yet, or was superseded by a later one.

        A permit that was once found expired stays expired, whatever the clock says later.
        """
        decision, permit_id = attempt.decision, attempt.claims.text("jti")
        try:
            check_times(attempt.claims, attempt.now_us)
        except TokenError as error:
            if permit_id == decision.permit_id and decision.permit_us <= attempt.now_us:
                renew_permit(connection, attempt.who.tenant, decision.id, "", 0)
            raise _refuse("PERMIT_EXPIRED", error.factor, f"{error.message}; ask Evaluate again") from None
        if permit_id != decision.permit_id:
            told = "the permit was refused before, or a later one was issued; ask Evaluate again"
            raise _refuse("PERMIT_EXPIRED", "expiry", told)

    def _check_retraction(self, connection: Connection, attempt: Attempt, bound: BoundCall) -> None:
        """Raise a refusal if later words took the call back, unless the decision already accounted for them.

        Until the commit, nothing of its tasks can be taken back, and no other call can use up their asks.
        """
        who, facts = attempt.who, attempt.verdict.task
        tasks = sorted({attempt.task_id, task_of(facts.ask)} - {""})
        if not tasks:
            return
        ask_rows.lock(connection, who.tenant, who.subject, tasks)
        found = ask_rows.find_retractions(connection, who.tenant, who.subject, tasks)
        by = TakenBack(self._core.hashes, who, found).by(attempt.tool, bound, tasks) if found else ""
        if by and by != facts.retracted:
            raise _refuse(
                "PERMIT_RETRACTED", "retraction", "the person took this back since; do not run it", task_id=by
            )

    def _with_ask_used(self, connection: Connection, attempt: Attempt) -> Verdict:
        """Return the verdict of a call that an ask allowed, with that ask used once more.

        Raise a refusal if the ask is used up, unless the policies allow the call without it.
        """
        who, asked, verdict, facts = attempt.who, attempt.asked, attempt.verdict, attempt.verdict.task
        if not uses_ask(facts, attempt.tool) or attempt.decision.counted_approval_id:
            return verdict
        use = AskUse(task_of(facts.ask), facts.ask, attempt.decision.args_hash)
        known = ask_rows.uses_of(connection, who.tenant, who.subject, [use.task_id])
        used = sum(one.ask == use.ask for one in known)
        if use in known or (facts.quota and used >= facts.quota):
            unasked = verdict._replace(task=without_ask(facts))
            if self._core.decide_again(connection, attempt.basis, unasked).decision is not Decision.ALLOW:
                raise _refuse(
                    "ASK_USED_UP",
                    "ask",
                    "this request has already been carried out; ask the person again",
                    ask=facts.ask,
                    quota=str(facts.quota),
                )
        key = key_of(who, asked.run_id, asked.call.tool_call_id)
        ask_rows.insert_use(connection, key, use, attempt.now_us)
        return verdict._replace(task=replace(facts, used=used + 1))

    def _checked_approval(self, connection: Connection, attempt: Attempt, bound: BoundCall) -> Approval | None:
        """Return the approval the permit relies on, if it is still valid and for exactly this call."""
        counted, asked = attempt.decision.counted_approval_id, attempt.asked
        if not counted:
            return None
        found = self._core.find_approval(connection, attempt.who.tenant, counted, lock=True)
        if found is None:
            raise _refuse("PERMIT_INVALID", "id", "the permit's approval is not known here")
        approval = self._core.current(connection, found, attempt.who, attempt.now_us)
        if approval.state is ApprovalState.REDEEMED:
            raise _refuse("ALREADY_REDEEMED", "one_time", "the permit's approval is used")
        if approval.state is ApprovalState.EXPIRED:
            raise _refuse("APPROVAL_EXPIRED", "expiry", "the approval has expired; propose the call again")
        if approval.state is not ApprovalState.APPROVED:
            raise _RefusalError("one_time", not_pending(approval))
        use = Use(
            subject=attempt.who.subject,
            thread_id=asked.thread_id,
            run_id=asked.run_id,
            tool_call_id=asked.call.tool_call_id,
            tool=bound.tool,
            args_hash=self._core.bound_as_kept(approval, bound),
            same_version=True,  # the permit's own version, which was checked
        )
        failed = unusable_factors(approval, use, attempt.now_us)
        if failed:
            raise _RefusalError(str(failed[0]), refusal(approval, failed[0]))
        return approval

    def _redeem(
        self, connection: Connection, attempt: Attempt, bound: BoundCall, approval: Approval | None
    ) -> Consumed:
        who, asked, decision, now_us = attempt.who, attempt.asked, attempt.decision, attempt.now_us
        if approval is not None:
            redeemed = replace(approval, state=advance(approval.state, ApprovalEvent.REDEEM))
            self._core.change_approval(connection, redeemed, now_us)
        receipt_id = new_id("rc")
        receipt = {
            "iss": self._core.issuer,
            "aud": RECEIPT_AUDIENCE,
            "jti": receipt_id,
            "iat": now_us // MICROSECONDS,
            "sub": who.subject,
            "tenant": who.tenant,
            "thread": asked.thread_id,
            "run": asked.run_id,
            "tool_call_id": asked.call.tool_call_id,
            "tool": bound.tool,
            "tool_version": bound.tool_version,
            "execution_id": asked.execution_id,
            "decision_id": decision.id,
            "approval_id": decision.counted_approval_id,
            "bundle_revision": attempt.verdict.bundle_revision,
            "stakes": attempt.verdict.stakes,
            "low_stakes": attempt.verdict.by_low_stakes,
            "bundle_hash": attempt.verdict.bundle_hash,
            "actor": who.actor,
            "roles": sorted(who.roles),
        }
        body = _place(asked) | {
            "decision_id": decision.id,
            "approval_id": decision.counted_approval_id,
            "permit_id": attempt.claims.text("jti"),
            "receipt_id": receipt_id,
            "tool_version": bound.tool_version,
            ARGS_COMMITMENT: decision.args_commitment,
            "policy_ids": list(attempt.verdict.policy_ids),
            "bundle_revision": attempt.verdict.bundle_revision,
            "bundle_hash": attempt.verdict.bundle_hash,
            "stakes": attempt.verdict.stakes,
            "low_stakes": attempt.verdict.by_low_stakes,
        }
        if not decision.counted_approval_id:
            body |= ask_body(attempt.verdict.task)
        self._core.count(connection, attempt.basis, bound, receipt_id=receipt_id, now_us=now_us)
        place = self._core.note(
            connection, Kind.REDEEMED, who, now_us, body, values=usage_values(attempt.verdict.usage)
        )
        redemption = Redemption(
            who.tenant,
            who.subject,
            asked.run_id,
            asked.call.tool_call_id,
            asked.execution_id,
            decision.id,
            receipt,
            now_us,
            place.log,
            place.index,
            attempt.verdict.by_low_stakes,
        )
        rows.insert_redemption(connection, redemption)
        return Consumed(redemption, bound, repeated=False)

    def _refused(
        self,
        connection: Connection,
        who: Principal,
        asked: RedeemInput | EvaluateInput,
        claims: Claims | None,
        refused: _RefusalError,
    ) -> Refused:
        bundle = self._core.engine.bundle
        body = _place(asked) | {"failed": [refused.factor], "reason": refused.error.reason}
        body |= {"bundle_revision": bundle.revision, "bundle_hash": bundle.hash}
        if claims is not None:  # a genuine permit states what it was for
            named = {"decision_id": "decision_id", "approval_id": "approval_id", "permit_id": "jti"}
            body |= {name: str(claims.values.get(claim, "")) for name, claim in named.items()}
        now_us = self._core.clock.now_us()
        self._core.note(connection, Kind.REDEEM_REFUSED, who, now_us, body, values=refused.values)
        return Refused(refused.error)

    def _report(self, connection: Connection, who: Principal, asked: OutcomeInput, now_us: int) -> Place:
        redemption = rows.find_execution(connection, who.tenant, who.subject, asked.execution_id, lock=True)
        if redemption is None:
            raise _unknown_execution(asked.execution_id)
        reversals = tuple(Reversal(one.execution_id, one.result, one.error_code) for one in asked.reversals)
        report = OutcomeReport(asked.outcome, asked.result_hash, asked.result_size, asked.error_code, reversals)
        known = rows.outcome_reports(connection, who.tenant, who.subject, asked.execution_id)
        for earlier, place in known:
            if earlier == report:
                return place
        if known and known[-1][0].outcome != IN_DOUBT:
            raise FailedPrecondition(
                "OUTCOME_CONFLICT",
                f"the execution was reported {known[-1][0].outcome} already",
                metadata={"outcome": known[-1][0].outcome},
            )
        body = {
            "execution_id": redemption.execution_id,
            "decision_id": redemption.decision_id,
            "run_id": redemption.run_id,
            "tool_call_id": redemption.tool_call_id,
            "outcome": report.outcome,
            "result_hash": report.result_hash,
            "result_size": report.result_size,
            "error_code": report.error_code,
        }
        if reversals:
            body["reversals"] = [one._asdict() for one in reversals]
        # an attempt that did nothing uses up no ask (ADR 34); one in doubt does, as does a failure of unknown extent
        call = CallKey(who.tenant, who.subject, redemption.run_id, redemption.tool_call_id)
        if asked.not_done and ask_rows.delete_use(connection, call):
            body["ask_free"] = True
        place = self._core.note(connection, Kind.OUTCOME, who, now_us, body)
        rows.insert_outcome(connection, redemption, len(known), report, now_us=now_us, place=place)
        record = report.outcome == IN_DOUBT and find_decision(connection, who.tenant, redemption.decision_id)
        if record:
            self._core.notices.in_doubt(connection, record, redemption.execution_id, now_us)
        if report.outcome == FAILED:  # nothing happened, so there is nothing to tell
            undo.mark_told(connection, who.tenant, who.subject, redemption.execution_id, now_us)
        failed = [(one.execution_id, one.error_code) for one in reversals if one.result == FAILED]
        if report.error_code == UNDO_NOT_KEPT:
            failed.append((redemption.execution_id, UNDO_NOT_KEPT))
        for execution_id, code in failed:
            self._fail(connection, who, execution_id, code, now_us)
        return place

    def _fail(self, connection: Connection, who: Principal, execution_id: str, code: str, now_us: int) -> None:
        """Record that the undo of an effect's tool failed; an execution that is not known here changes nothing.

        A delegate reports what its executor has seen, of the tool, so it concerns the tenant. A user who reports for
        themselves could say anything: they are believed for their own calls.
        """
        of = rows.find_execution(connection, who.tenant, who.subject, execution_id)
        tool = "" if of is None else str(of.receipt_claims.get("tool", ""))  # retention empties the claims
        if not tool:
            return
        whose = "" if who.delegated else who.subject
        if undo.insert_failure(connection, UndoFailure(who.tenant, tool, whose, now_us, execution_id, code)):
            body = {"tool": tool, "execution_id": execution_id, "error_code": code}
            self._core.note(connection, Kind.UNDO_FAILED, who, now_us, body)


def _check_place(asked: RedeemInput, claims: Claims) -> None:
    """Raise a refusal unless a permit is for exactly this place."""
    _check_claims(
        claims,
        {
            "thread": ("THREAD_MISMATCH", "thread", asked.thread_id),
            "run": ("PERMIT_INVALID", "run", asked.run_id),
            "tool_call_id": ("PERMIT_INVALID", "tool_call_id", asked.call.tool_call_id),
            "tool": ("PERMIT_INVALID", "tool", asked.call.tool),
        },
    )


def _check_claims(claims: Claims, expected: Mapping[str, tuple[str, str, str]]) -> None:
    """Raise a refusal, with its reason and factor, at the first claim that is not as expected."""
    try:
        for claim, (reason, factor, value) in expected.items():
            if claims.text(claim) != value:
                raise _refuse(reason, factor, f"the permit is for another {factor}")
    except TokenError as error:
        raise _unusable(error) from None


def _unusable(error: TokenError) -> _RefusalError:
    factor = "claims" if error.factor == "claims" else "signature"  # one name for every forgery on record
    return _refuse("PERMIT_INVALID", factor, f"the permit cannot be used: {error.message}")


def _unknown_execution(execution_id: str) -> NotFound:
    return NotFound(
        "EXECUTION_NOT_FOUND",
        f"no call was redeemed as '{execution_id}' by this identity",
        metadata={"execution_id": execution_id},
    )


def _checked_call(attempt: Attempt) -> BoundCall:
    """Return the call as bound now, if it is the permitted one."""
    bound = attempt.verdict.bound and attempt.verdict.bound.hashed_as(attempt.claims.text("args_hash"))
    if bound is None:
        raise _refuse("ARGS_MISMATCH", "argument_hash", "the permit is for other arguments; nothing was redeemed")
    if bound.tool_version != attempt.claims.text("tool_version"):
        raise _refuse("PERMIT_INVALID", "tool_version", "the tool's contract has changed; propose the call again")
    return bound


def _check_approvers(attempt: Attempt, approval: Approval | None) -> None:
    """Raise a refusal if the call still needs its approval and one of its approvers lost eligibility."""
    asks = attempt.verdict.decision is Decision.AUTH_REQUIRED
    if approval is not None and asks and lost_approvers(attempt.basis.engine.bundle, approval):
        raise _RefusalError(str(Factor.APPROVER), approvers_lost(approval))
    if approval is not None and asks and approval.doubtful_votes:
        tell_doubtful_votes(approval)
        raise _RefusalError(str(Factor.VOTE), refusal(approval, Factor.VOTE))


def _check_policy(verdict: Verdict) -> None:
    if verdict.decision is Decision.ALLOW:
        return
    if verdict.exceeded:
        message = f"{verdict.reasons[0].message} It is counted when a permit is redeemed; nothing was redeemed"
        refused = _refuse("BUDGET_EXCEEDED", "budget", message, budget=verdict.exceeded[0])
    else:
        refused = _refuse(
            "POLICY_CHANGED",
            "policy",
            "the current policy no longer allows the call",
            decision=str(verdict.decision),
        )
    refused.values = usage_values(verdict.usage)
    raise refused


def _place(asked: RedeemInput | EvaluateInput) -> dict[str, Any]:
    return {
        "thread_id": asked.thread_id,
        "run_id": asked.run_id,
        "tool_call_id": asked.call.tool_call_id,
        "tool": asked.call.tool,
        "execution_id": asked.execution_id,
    }
