"""Validity of an approval: the classes it satisfies under the current bundle, by the people who gave it.

A static token identifies a person only while they call, so role, level and groups are those of the vote. The bundle's
rules about the class and its people are looked up each time.
"""

from __future__ import annotations

from phylactery_chassis.auth.identity import Principal, Role

from phylactery_riskgate.approvals.model import Answer, Approval, failed_factors
from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.model import ApprovalClass
from phylactery_riskgate.domain.policy.eligibility import Approver, may_approve, people


def satisfied_by(bundle: Bundle, approval: Approval | None) -> frozenset[str]:
    """Return the class an approval satisfies, and the classes that are requested as this one.

    Empty if the bundle requires other approvers for the class, or more of them than gave the approval and are still
    eligible.
    """
    wanted = None if approval is None else _class_of(bundle, approval)
    if approval is None or wanted is None or _counting(bundle, wanted, approval) < wanted.approvers:
        return frozenset()
    return frozenset({wanted.name, *(one.name for one in bundle.classes if bundle.asked_as(one.name) == wanted.name)})


def lost_approvers(bundle: Bundle, approval: Approval) -> bool:
    """Return True if an approval fails its class only because some of its approvers lost eligibility."""
    wanted = _class_of(bundle, approval)
    return wanted is not None and _counting(bundle, wanted, approval) < wanted.approvers <= people(approval.voters)


def sees_all(who: Principal) -> bool:
    """Return True if the caller is an approver who acts for themselves."""
    return Role.APPROVER in who.roles and not who.delegated


def answer_of(
    bundle: Bundle, approval: Approval, who: Principal, *, args_hash: str, thread_id: str = "", code: str = ""
) -> Answer:
    """Return a caller's yes with everything known about them now."""
    wanted = _class_of(bundle, approval)
    person = Approver(who.subject, who.tenant, sees_all(who), who.level, who.groups)
    return Answer(
        who.subject,
        not who.delegated,
        person.approver,
        args_hash,
        thread_id,
        code,
        # without a credential, on loopback, all callers are indistinguishable
        delegate=Role.DELEGATE in who.roles and bool(who.credential_hash),
        eligible=wanted is not None and may_approve(wanted, person, bundle),
    )


def may_answer(bundle: Bundle, approval: Approval, who: Principal) -> bool:
    """Return True if this caller's yes would count now, given the right arguments and code."""
    answer = answer_of(bundle, approval, who, args_hash=approval.args_hash, thread_id=approval.thread_id)
    failed = failed_factors(approval, answer, code_matches=True, now_us=approval.create_us)
    return not failed and who.subject not in approval.voters


def _class_of(bundle: Bundle, approval: Approval) -> ApprovalClass | None:
    same = (one for one in bundle.classes if (one.name, one.who) == (approval.approval_class, approval.who))
    return next(same, None)


def _counting(bundle: Bundle, wanted: ApprovalClass, approval: Approval) -> int:
    """Count the distinct people whose yes counts: it is proven, and they are still eligible."""
    if approval.by_requester:
        return people(approval.voters)
    return people(
        vote.subject
        for vote in approval.votes
        if vote.proven
        and may_approve(wanted, Approver(vote.subject, approval.tenant, vote.approver, vote.level, vote.groups), bundle)
    )
