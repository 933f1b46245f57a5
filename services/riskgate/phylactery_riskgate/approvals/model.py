"""The approval state machine: states, transition table, and the checks of a person's answer.

Everything here is pure. The store persists approvals; the service records what this module decides.
"""

from __future__ import annotations

import base64
import hmac
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum

import rfc8785
from phylactery_chassis.errors import DomainError, FailedPrecondition, InvalidArgument, PermissionDenied, Violation
from phylactery_chassis.util.crypto import hmac_sha256

from phylactery_riskgate.domain.model import Stakes
from phylactery_riskgate.domain.policy.eligibility import same_person

MAX_ATTEMPTS = 5
"""Number of wrong codes after which an approval is closed."""
CODE_CHARACTERS = 10
"""Length of a code: 50 bits in base32, so with five tries a guess succeeds once in 2e14."""
_CODE_PURPOSE = "phylactery-approval-code-v1"


class ApprovalState(StrEnum):
    """The state of an approval."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REDEEMED = "REDEEMED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"


class ApprovalEvent(StrEnum):
    """An event in the life of an approval."""

    APPROVE = "approve"
    REJECT = "reject"
    EXPIRE = "expire"
    CANCEL = "cancel"
    REDEEM = "redeem"


class ClosedReason(StrEnum):
    """Why a final state other than REDEEMED was reached."""

    REJECTED_BY_USER = "REJECTED_BY_USER"
    EXPIRED = "EXPIRED"
    TOO_MANY_ATTEMPTS = "TOO_MANY_ATTEMPTS"
    CANCELLED_BY_REQUESTER = "CANCELLED_BY_REQUESTER"
    RETRACTED = "RETRACTED"
    REVOKED = "REVOKED"


_TRANSITIONS: dict[tuple[ApprovalState, ApprovalEvent], ApprovalState] = {
    (ApprovalState.PENDING, ApprovalEvent.APPROVE): ApprovalState.APPROVED,
    (ApprovalState.PENDING, ApprovalEvent.REJECT): ApprovalState.REJECTED,
    (ApprovalState.PENDING, ApprovalEvent.EXPIRE): ApprovalState.EXPIRED,
    (ApprovalState.PENDING, ApprovalEvent.CANCEL): ApprovalState.CANCELLED,
    (ApprovalState.APPROVED, ApprovalEvent.REDEEM): ApprovalState.REDEEMED,
    (ApprovalState.APPROVED, ApprovalEvent.EXPIRE): ApprovalState.EXPIRED,
    (ApprovalState.APPROVED, ApprovalEvent.CANCEL): ApprovalState.CANCELLED,
}


class TransitionError(RuntimeError):
    """A transition that the table lacks: an internal error (bug), since callers are refused earlier."""


def advance(state: ApprovalState, event: ApprovalEvent) -> ApprovalState:
    """Return the state after the event. Raise TransitionError if there is no such transition."""
    try:
        return _TRANSITIONS[state, event]
    except KeyError:
        raise TransitionError(f"an approval that is {state} cannot {event}") from None


class Factor(StrEnum):
    """The factors checked, as named in the audit log and in ErrorInfo; the seven factors of an answer come first."""

    ID = "id"
    USER = "user"
    EXPIRY = "expiry"
    ONE_TIME = "one_time"
    THREAD = "thread"
    ARGUMENT_HASH = "argument_hash"
    SIGNATURE = "signature"
    TOOL_VERSION = "tool_version"
    APPROVER = "approver"
    DISTINCT = "distinct"
    VOTE = "vote"
    RECORD = "record"


@dataclass(frozen=True, slots=True)
class Vote:
    """A stored yes, with the role, level and groups that the person's credential gave at that moment."""

    subject: str
    vote_us: int
    approver: bool = True
    level: str = ""
    groups: frozenset[str] = frozenset()
    proof: str = field(default="", repr=False)
    """The MAC that shows RiskGate recorded the vote; see vote_proofs."""
    proven: bool = False
    """True if the proof was checked and matches. No other vote counts."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval as stored. Times are microseconds since the epoch, 0 if not set.

    ``args_hash`` is a keyed hash (audit.commitments), ``args_commitment`` the commitment to it in the record of the
    decision.
    """

    id: str
    tenant: str
    state: ApprovalState
    approval_class: str
    who: str
    approvers: int
    tool: str
    risk: str
    args_hash: str
    thread_id: str
    run_id: str
    tool_call_id: str
    requester: str
    create_us: int
    expire_us: int
    decision_id: str
    policy_ids: tuple[str, ...]
    decide_us: int = 0
    decided_by: str = ""
    closed_reason: str = ""
    attempts: int = 0
    version: int = 0
    args_commitment: str = ""
    stakes: Stakes = "unspecified"
    votes: tuple[Vote, ...] = ()

    @property
    def voters(self) -> tuple[str, ...]:
        """Return the people who said yes with a proven vote, in that order."""
        return tuple(vote.subject for vote in self.votes if vote.proven)

    @property
    def doubtful_votes(self) -> bool:
        """Return True if a vote lacks its proof, that is, was written into the database by other means."""
        return not all(vote.proven for vote in self.votes)

    @property
    def attempts_left(self) -> int:
        """Return how many wrong codes are still tolerated."""
        return MAX_ATTEMPTS - self.attempts

    @property
    def by_requester(self) -> bool:
        """Return True if the requester answers it, with a code, in the chat."""
        return self.who == "requester"

    @property
    def open(self) -> bool:
        """Return True if it can still expire."""
        return (self.state, ApprovalEvent.EXPIRE) in _TRANSITIONS

    def due(self, now_us: int) -> bool:
        """Return True if its time is over and the record does not say so yet."""
        return self.open and now_us >= self.expire_us


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's yes: identity, origin, and the arguments they saw.

    ``direct`` is True if they act for themselves, ``delegate`` if they may act for others, and ``eligible`` if they
    meet the requirements of the approval's class. ``args_hash`` is the approval's own if it is that of the same
    arguments.
    """

    subject: str
    direct: bool
    approver: bool
    args_hash: str
    thread_id: str = ""
    code: str = field(default="", repr=False)
    delegate: bool = False
    eligible: bool = True


def failed_factors(approval: Approval, answer: Answer, *, code_matches: bool, now_us: int) -> tuple[Factor, ...]:
    """Return every factor that fails, in the order in which it is reported.

    All are checked, so that one wrong factor never reveals whether another was right. Thread and code belong to a chat:
    only an approval that the requester answers has them.
    """
    checks = {
        Factor.USER: eligible(approval, answer),
        Factor.APPROVER: approval.by_requester or answer.eligible,
        Factor.DISTINCT: not any(
            same_person(voter, answer.subject) and voter != answer.subject for voter in approval.voters
        ),
        Factor.EXPIRY: approval.state is not ApprovalState.EXPIRED and not approval.due(now_us),
        Factor.ONE_TIME: approval.state in (ApprovalState.PENDING, ApprovalState.EXPIRED),
        Factor.THREAD: not approval.by_requester or answer.thread_id == approval.thread_id,
        Factor.ARGUMENT_HASH: answer.args_hash == approval.args_hash,
        Factor.SIGNATURE: not approval.by_requester or code_matches,
    }
    return tuple(factor for factor, holds in checks.items() if not holds)


def reject_factors(approval: Approval, answer: Answer) -> tuple[Factor, ...]:
    """Return the factors that keep a person from rejecting.

    The requester may reject, and so may those who could approve another's request. A delegate may reject what its user
    alone may answer. A rejection needs neither code nor arguments.
    """
    own = answer.subject == approval.requester
    checks = {
        Factor.USER: (approval.by_requester or answer.direct) if own else (answer.approver and not answer.delegate),
        Factor.APPROVER: own or answer.eligible,
        Factor.EXPIRY: approval.state is not ApprovalState.EXPIRED,
        Factor.ONE_TIME: approval.state in (ApprovalState.PENDING, ApprovalState.EXPIRED),
        Factor.THREAD: answer.thread_id in ("", approval.thread_id),
    }
    return tuple(factor for factor, holds in checks.items() if not holds)


def cancel_factors(approval: Approval, subject: str, thread_id: str) -> tuple[Factor, ...]:
    """Return the factors that keep a person from withdrawing an approval: only its requester may, before it ran."""
    checks = {
        Factor.USER: subject == approval.requester,
        Factor.EXPIRY: approval.state is not ApprovalState.EXPIRED,
        Factor.ONE_TIME: approval.state not in (ApprovalState.REDEEMED, ApprovalState.REJECTED),
        Factor.THREAD: thread_id in ("", approval.thread_id),
    }
    return tuple(factor for factor, holds in checks.items() if not holds)


@dataclass(frozen=True, slots=True)
class Use:
    """A call that an approval is to count for.

    ``args_hash`` has the approval's stored form, and is empty if the call cannot be bound any more.
    """

    subject: str
    thread_id: str
    run_id: str
    tool_call_id: str
    tool: str
    args_hash: str
    same_version: bool


def unusable_factors(approval: Approval, use: Use, now_us: int) -> tuple[Factor, ...]:
    """Return every factor that keeps an approval from counting for a call; its code was checked with the answer.

    A PENDING approval fails no factor by its state, because it has no answer yet.
    """
    checks = {
        Factor.USER: use.subject == approval.requester,
        Factor.ID: (use.run_id, use.tool_call_id, use.tool) == (approval.run_id, approval.tool_call_id, approval.tool),
        Factor.EXPIRY: approval.state is not ApprovalState.EXPIRED and not approval.due(now_us),
        Factor.ONE_TIME: approval.state in (ApprovalState.PENDING, ApprovalState.APPROVED, ApprovalState.EXPIRED),
        Factor.THREAD: use.thread_id == approval.thread_id,
        Factor.ARGUMENT_HASH: use.args_hash == approval.args_hash,
        Factor.TOOL_VERSION: use.same_version,
    }
    return tuple(factor for factor, holds in checks.items() if not holds)


def without_hash(failed: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Return the factors for the record of a closed approval, without the argument hash.

    Otherwise an auditor could use it to test guesses about an erased call.
    """
    return tuple(factor for factor in failed if factor is not Factor.ARGUMENT_HASH)


def eligible(approval: Approval, answer: Answer) -> bool:
    """Return True if this person may answer this approval.

    A requester's approval is answered by the requester, directly or through a delegate. Any other class requires a
    different person with the role approver, who acts for themselves and has no delegate role: a delegate answers class
    "self" only.
    """
    if approval.by_requester:
        return answer.subject == approval.requester
    another = not same_person(answer.subject, approval.requester)
    return another and answer.direct and answer.approver and not answer.delegate


def require_chat_fields(approval: Approval, answer: Answer) -> None:
    """Raise InvalidArgument INVALID_REQUEST if a pending "self" approval is answered without its fields."""
    if not approval.by_requester or approval.state is not ApprovalState.PENDING:
        return
    missing = [name for name in ("code", "thread_id") if not getattr(answer, name)]
    if missing:
        raise InvalidArgument(
            "INVALID_REQUEST",
            f"an approval of class '{approval.approval_class}' is answered with {' and '.join(missing)}",
            violations=[Violation(name, "required for this approval's class") for name in missing],
        )


def refusal(approval: Approval, factor: Factor) -> DomainError:
    """Return the typed error for the first failed factor."""
    metadata = {"factor": str(factor)}
    if factor is Factor.ONE_TIME:
        return not_pending(approval)
    if factor is Factor.USER:
        whom = "its requester" if approval.by_requester else "an approver who is not its requester, at RiskGate"
        return PermissionDenied(
            "NOT_ELIGIBLE", f"this approval is answered by {whom}, and not by this identity", metadata=metadata
        )
    if factor is Factor.APPROVER:
        return PermissionDenied(
            "NOT_ELIGIBLE",
            f"an approval of class '{approval.approval_class}' wants another group or level than this identity's; "
            "riskgate.yaml says which",
            metadata=metadata,
        )
    if factor is Factor.DISTINCT:
        return PermissionDenied(
            "NOT_ELIGIBLE",
            "a person with this name has already approved; another person has to approve",
            metadata=metadata,
        )
    if factor is Factor.SIGNATURE:
        left = f"{approval.attempts_left} tries are left" if approval.attempts_left else "the approval is closed now"
        return FailedPrecondition(
            "CODE_MISMATCH",
            f"the code is wrong; {left}",
            metadata={**metadata, "attempts_left": str(approval.attempts_left)},
        )
    reason, message = _REFUSALS[factor]
    return FailedPrecondition(reason, message, metadata=metadata)


_REFUSALS = {
    Factor.ID: ("ARGS_MISMATCH", "the approval is for another call of the run"),
    Factor.EXPIRY: ("APPROVAL_EXPIRED", "the approval has expired; propose the call again"),
    Factor.THREAD: ("THREAD_MISMATCH", "the approval belongs to another conversation; answer there"),
    Factor.ARGUMENT_HASH: ("ARGS_MISMATCH", "the approval is for different arguments; review it again"),
    Factor.VOTE: (
        "APPROVER_NOT_ELIGIBLE",
        (
            "a vote on the approval has no valid proof and may have been inserted into the database; propose the call "
            "again, and inform the operator of RiskGate"
        ),
    ),
    Factor.TOOL_VERSION: ("ARGS_MISMATCH", "the tool's contract has changed since; propose the call again"),
    Factor.RECORD: (
        "ARGS_MISMATCH",
        "the stored decision does not match the audit log; propose the call again, and inform RiskGate's operator",
    ),
}


def approvers_lost(approval: Approval) -> DomainError:
    """Return the error for an approval that does not count because one of its approvers lost eligibility."""
    return FailedPrecondition(
        "APPROVER_NOT_ELIGIBLE",
        f"the approval '{approval.id}' no longer counts: one of its approvers may no longer approve this class; "
        f"propose the call again",
        metadata={"factor": str(Factor.APPROVER), "approval_id": approval.id},
    )


def not_pending(approval: Approval) -> DomainError:
    """Return the error for an answer that comes too late."""
    return FailedPrecondition(
        "APPROVAL_NOT_PENDING",
        f"the approval is already {approval.state}; only a PENDING one can be answered",
        metadata={"state": str(approval.state), "factor": str(Factor.ONE_TIME)},
    )


def approval_code(
    key: bytes, *, approval_id: str, args_hash: str, tenant: str, thread_id: str, requester: str, expire_us: int
) -> str:
    """Return the code that a person types to answer a "self" approval in the chat: 10 characters of [A-Z2-7].

    It is an HMAC-SHA256 over everything the approval is bound to, so it serves as the signature factor. It is computed
    on each request of a person who may see it, and never stored.
    """
    bound = rfc8785.dumps([_CODE_PURPOSE, approval_id, args_hash, tenant, thread_id, requester, expire_us])
    return base64.b32encode(hmac_sha256(key, bound)).decode()[:CODE_CHARACTERS]


def plain_code(typed: str) -> str:
    """Return a typed code in canonical form: lower case, full width, blanks and dashes are tolerated."""
    return "".join(char for char in unicodedata.normalize("NFKC", typed).upper() if char.isalnum())


def same_code(expected: str, typed: str) -> bool:
    """Return True if the typed code is the expected one; compares in constant time."""
    return hmac.compare_digest(expected.encode(), plain_code(typed).encode("utf-8", "surrogatepass"))
