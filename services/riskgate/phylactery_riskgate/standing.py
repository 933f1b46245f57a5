"""Whether an approval still stands: what it satisfies under the bundle of this moment, by those who gave it.

A static token says who somebody is only when they call, so role, level and groups are those of the vote; what the
bundle says of the class and of its people is looked up again each time.
"""

from __future__ import annotations

from phylactery_riskgate.approvals import Approval
from phylactery_riskgate.domain.bundle import Bundle
from phylactery_riskgate.domain.eligibility import Approver, may_approve, people
from phylactery_riskgate.domain.model import ApprovalClass


def satisfied_by(bundle: Bundle, approval: Approval | None) -> frozenset[str]:
    """Answers the class an approval satisfies.

    None where the bundle asks the class of others, or of more people than those who gave the approval and still may.
    """
    wanted = None if approval is None else _class_of(bundle, approval)
    if approval is None or wanted is None or _counting(bundle, wanted, approval) < wanted.approvers:
        return frozenset()
    return frozenset({wanted.name})


def lost_approvers(bundle: Bundle, approval: Approval) -> bool:
    """Says whether an approval would satisfy its class if everybody who gave it still might."""
    wanted = _class_of(bundle, approval)
    return wanted is not None and _counting(bundle, wanted, approval) < wanted.approvers <= people(approval.voters)


def eligible_now(bundle: Bundle, approval: Approval, person: Approver) -> bool:
    """Says whether a person has what the approval's class asks of its approvers."""
    wanted = _class_of(bundle, approval)
    return wanted is not None and may_approve(wanted, person, bundle)


def _class_of(bundle: Bundle, approval: Approval) -> ApprovalClass | None:
    same = (one for one in bundle.classes if (one.name, one.who) == (approval.approval_class, approval.who))
    return next(same, None)


def _counting(bundle: Bundle, wanted: ApprovalClass, approval: Approval) -> int:
    """Counts the different people whose yes counts."""
    if approval.by_requester:
        return people(approval.voters)
    return people(
        vote.subject
        for vote in approval.votes
        if may_approve(wanted, Approver(vote.subject, approval.tenant, vote.approver, vote.level, vote.groups), bundle)
    )
