"""Use cases of ApprovalService (docs/effects.md, 4). An answer changes a state; it is never a permit."""

from __future__ import annotations

import functools
from dataclasses import replace

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.rpc.paging import decode_token, encode_token
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import (
    MAX_ATTEMPTS,
    Answer,
    Approval,
    ApprovalEvent,
    ApprovalState,
    ClosedReason,
    Factor,
    Vote,
    advance,
    cancel_factors,
    eligible,
    failed_factors,
    refusal,
    reject_factors,
    require_chat_fields,
    same_code,
    without_hash,
)
from phylactery_riskgate.approvals.requests import DEFAULT_PAGE, ApproveInput, GetInput, ListInput, RejectInput
from phylactery_riskgate.approvals.validity import answer_of, sees_all
from phylactery_riskgate.audit.commitments import WORDS
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.decisions.context import ApprovalSeen, DecisionContext, Refused, about
from phylactery_riskgate.decisions.questions import approval_not_found
from phylactery_riskgate.domain.policy.eligibility import people
from phylactery_riskgate.store import approvals as rows


class ApprovalService:
    """The use cases of showing and answering approvals."""

    def __init__(self, core: DecisionContext) -> None:
        self._core = core

    async def get(self, who: Principal, asked: GetInput) -> ApprovalSeen:
        """Return one approval as the caller may see it. Raise NotFound APPROVAL_NOT_FOUND."""
        approval_id, full = asked.approval_id, asked.full
        now_us = self._core.clock.now_us()

        def look(connection: Connection) -> ApprovalSeen | None:
            approval = self._core.find_approval(connection, who.tenant, approval_id)
            if approval is None or not visible_to(approval, who):
                raise approval_not_found(approval_id)
            return None if approval.due(now_us) else self._core.seen(connection, approval, who, full=full)

        found = await self._core.database.read(look)
        if found is None:
            # shown by a reader all the same: a megabyte takes seconds, which would block the writer
            await self._core.write(functools.partial(self._expire, who=who, approval_id=approval_id, now_us=now_us))
            found = await self._core.database.read(look)
        assert found is not None, "its time is not over twice"
        return found

    async def list_page(self, who: Principal, asked: ListInput) -> tuple[list[ApprovalSeen], str]:
        """Return one page of approvals, newest first, and the next page's token, empty on the last page.

        Raise InvalidArgument INVALID_REQUEST for a foreign page token.
        """
        position = decode_token(asked.page_token, int, str) if asked.page_token else None
        before = None if position is None else (int(position[0]), str(position[1]))
        size = asked.page_size or DEFAULT_PAGE
        await self.expire_due(who)

        def look(connection: Connection) -> list[ApprovalSeen]:
            found = rows.list_approvals(
                connection,
                who.tenant,
                requester="" if sees_all(who) else who.subject,
                state=asked.state,
                thread_id=asked.thread_id,
                before=before,
                limit=size + 1,
            )
            return [
                self._core.seen(connection, self._core.votes.checked(approval), who, listed=True) for approval in found
            ]

        seen = await self._core.database.read(look)
        if len(seen) <= size:
            return seen, ""
        last = seen[size - 1].approval
        return seen[:size], encode_token(last.create_us, last.id)

    async def approve(self, who: Principal, asked: ApproveInput) -> ApprovalSeen:
        """Record a person's yes and return the new state.

        Raise NotFound, PermissionDenied NOT_ELIGIBLE, FailedPrecondition with the first failed factor, InvalidArgument
        if a "self" approval is answered without code or thread, and Unavailable STORE_UNAVAILABLE.
        """
        now_us = self._core.clock.now_us()
        seen = await self._core.write(lambda connection: self._approve(connection, who, asked, now_us))
        reach("riskgate.4")
        return seen

    async def reject(self, who: Principal, asked: RejectInput) -> ApprovalSeen:
        """Record a person's no and return the new state. Raise as approve does."""
        now_us = self._core.clock.now_us()
        seen = await self._core.write(lambda connection: self._reject(connection, who, asked, now_us))
        reach("riskgate.4")
        return seen

    async def cancel(self, who: Principal, asked: RejectInput) -> ApprovalSeen:
        """Withdraw the requester's approval request, even if already approved, and return the new state.

        Raise as approve does.
        """
        now_us = self._core.clock.now_us()
        seen = await self._core.write(lambda connection: self._cancel(connection, who, asked, now_us))
        reach("riskgate.4")
        return seen

    async def expire_due(self, who: Principal) -> None:
        """Record expired approvals, so that lists, filters and streams agree."""
        now_us = self._core.clock.now_us()
        while due := await self._core.database.read(lambda connection: rows.find_due(connection, who.tenant, now_us)):
            for approval_id in due:
                await self._core.write(functools.partial(self._expire, who=who, approval_id=approval_id, now_us=now_us))

    def _approve(
        self, connection: Connection, who: Principal, asked: ApproveInput, now_us: int
    ) -> ApprovalSeen | Refused:
        found = self._find(connection, who, asked.approval_id, "approve", now_us)
        if isinstance(found, Refused):
            return found
        approval = self._core.current(connection, found, who, now_us)
        answer = answer_of(
            self._core.engine.bundle,
            approval,
            who,
            args_hash=self._core.as_kept(approval, asked.args_hash),
            thread_id=asked.thread_id,
            code=asked.code,
        )
        if eligible(approval, answer):
            require_chat_fields(approval, answer)
        matches = approval.by_requester and same_code(self._core.code_of(approval), answer.code)
        if answer.subject in approval.voters and _same_answer(approval, answer, code_matches=matches):
            return self._core.seen(connection, approval, who)
        failed = failed_factors(approval, answer, code_matches=matches, now_us=now_us)
        if failed:
            return self._refuse(connection, who, approval, "approve", failed, now_us=now_us)
        given = Vote(who.subject, now_us, approver=sees_all(who), level=who.level, groups=who.groups)
        vote = self._core.votes.proven(approval, given)
        rows.add_vote(connection, approval, vote)
        # an earlier vote of the same person would be unproven
        others = (one for one in approval.votes if one.subject != vote.subject)
        approval = replace(approval, votes=(*others, vote))
        if people(approval.voters) >= approval.approvers:
            approval = replace(
                approval,
                state=advance(approval.state, ApprovalEvent.APPROVE),
                decide_us=now_us,
                decided_by=who.subject,
            )
        approval = self._core.change_approval(connection, approval, now_us)
        body = about(approval) | {"answer": "approve", "votes": len(approval.voters), "needed": approval.approvers}
        self._core.note(connection, Kind.APPROVAL_ANSWERED, who, now_us, body)
        return self._core.seen(connection, approval, who)

    def _reject(
        self, connection: Connection, who: Principal, asked: RejectInput, now_us: int
    ) -> ApprovalSeen | Refused:
        found = self._find(connection, who, asked.approval_id, "reject", now_us)
        if isinstance(found, Refused):
            return found
        approval = self._core.current(connection, found, who, now_us)
        if approval.state is ApprovalState.REJECTED and approval.decided_by == who.subject:
            return self._core.seen(connection, approval, who)
        answer = answer_of(
            self._core.engine.bundle, approval, who, args_hash=approval.args_hash, thread_id=asked.thread_id
        )
        failed = reject_factors(approval, answer)
        if failed:
            return self._refuse(connection, who, approval, "reject", failed, now_us=now_us)
        approval = replace(
            approval,
            state=advance(approval.state, ApprovalEvent.REJECT),
            decide_us=now_us,
            decided_by=who.subject,
            closed_reason=str(ClosedReason.REJECTED_BY_USER),
        )
        approval = self._core.change_approval(connection, approval, now_us)
        body = about(approval) | {"answer": "reject"}
        words = {WORDS: asked.reason} if asked.reason else {}
        self._core.note(connection, Kind.APPROVAL_ANSWERED, who, now_us, body, values=words)
        return self._core.seen(connection, approval, who)

    def _cancel(
        self, connection: Connection, who: Principal, asked: RejectInput, now_us: int
    ) -> ApprovalSeen | Refused:
        found = self._find(connection, who, asked.approval_id, "cancel", now_us)
        if isinstance(found, Refused):
            return found
        approval = self._core.current(connection, found, who, now_us)
        failed = cancel_factors(approval, who.subject, asked.thread_id)
        if failed:
            return self._refuse(connection, who, approval, "cancel", failed, now_us=now_us)
        if approval.state is ApprovalState.CANCELLED:
            return self._core.seen(connection, approval, who)
        approval = replace(
            approval,
            state=advance(approval.state, ApprovalEvent.CANCEL),
            closed_reason=str(ClosedReason.CANCELLED_BY_REQUESTER),
        )
        approval = self._core.change_approval(connection, approval, now_us)
        body = about(approval) | {"answer": "cancel"}
        words = {WORDS: asked.reason} if asked.reason else {}
        self._core.note(connection, Kind.APPROVAL_ANSWERED, who, now_us, body, values=words)
        return self._core.seen(connection, approval, who)

    def _find(
        self, connection: Connection, who: Principal, approval_id: str, given: str, now_us: int
    ) -> Approval | Refused:
        """Return the approval; a caller who may not see it gets the error of an unknown one, and is recorded."""
        approval = self._core.find_approval(connection, who.tenant, approval_id, lock=True)
        if approval is not None and visible_to(approval, who):
            return approval
        factor = Factor.ID if approval is None else Factor.USER
        body = {"approval_id": approval_id, "answer": given, "failed": [str(factor)]}
        self._core.note(connection, Kind.APPROVAL_REFUSED, who, now_us, body)
        return Refused(approval_not_found(approval_id))

    def _refuse(
        self,
        connection: Connection,
        who: Principal,
        approval: Approval,
        given: str,
        failed: tuple[Factor, ...],
        *,
        now_us: int,
    ) -> Refused:
        """Record a refused answer. A wrong code of an eligible person counts; the fifth closes the approval."""
        closed, waiting = False, approval.state is ApprovalState.PENDING
        if waiting and Factor.SIGNATURE in failed and not {Factor.USER, Factor.EXPIRY} & set(failed):
            approval = replace(approval, attempts=approval.attempts + 1)
            closed = approval.attempts >= MAX_ATTEMPTS
            if closed:
                approval = replace(
                    approval,
                    state=advance(approval.state, ApprovalEvent.CANCEL),
                    closed_reason=str(ClosedReason.TOO_MANY_ATTEMPTS),
                )
                approval = self._core.change_approval(connection, approval, now_us)
            rows.save_attempts(connection, approval)
        names = [str(factor) for factor in (failed if waiting else without_hash(failed))]
        body = about(approval) | {"answer": given, "failed": names, "attempts": approval.attempts}
        self._core.note(connection, Kind.APPROVAL_REFUSED, who, now_us, body)
        if closed:
            self._core.note(connection, Kind.APPROVAL_CLOSED, who, now_us, about(approval))
        return Refused(refusal(approval, failed[0]))

    def _expire(self, connection: Connection, who: Principal, approval_id: str, now_us: int) -> None:
        approval = self._core.find_approval(connection, who.tenant, approval_id, lock=True)
        if approval is not None:
            self._core.current(connection, approval, who, now_us)


def visible_to(approval: Approval, who: Principal) -> bool:
    """Return True if the caller may see an approval."""
    return approval.requester == who.subject or sees_all(who)


def _same_answer(approval: Approval, answer: Answer, *, code_matches: bool) -> bool:
    """Return True if this repeats the yes that was given before, so it is answered with the same state."""
    if approval.state not in (ApprovalState.PENDING, ApprovalState.APPROVED):
        return False
    in_chat = not approval.by_requester or (code_matches and answer.thread_id == approval.thread_id)
    return in_chat and answer.args_hash == approval.args_hash
