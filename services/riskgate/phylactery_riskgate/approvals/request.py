"""Approval requests: rate limits and suppressed repeats. A storm is refused, never queued."""

from __future__ import annotations

from dataclasses import dataclass

from phylactery_chassis.errors import DomainError, FailedPrecondition, ResourceExhausted
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import Approval, ApprovalState
from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.model import ApprovalClass, BoundCall, Verdict
from phylactery_riskgate.store import approvals as rows

HOUR_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class Asking:
    """One approval that a decision requires: from whom, where, and for which call.

    ``kept_hash`` is the call's hash as stored in rows, ``args_commitment`` the decision record's commitment to that
    hash.
    """

    tenant: str
    requester: str
    thread_id: str
    run_id: str
    tool_call_id: str
    verdict: Verdict
    bound: BoundCall
    kept_hash: str
    args_commitment: str
    now_us: int


def new_approval(
    connection: Connection, asking: Asking, bundle: Bundle, wanted: ApprovalClass, seconds: int
) -> Approval | DomainError:
    """Return the approval to add, of class ``wanted`` and with that lifetime, or the error that refuses it.

    The errors are REJECTED_BEFORE, TOO_MANY_PENDING and TOO_MANY_ASKED. Counts are locked until the commit, so that the
    caps hold under concurrency. Raise BusyError.
    """
    rows.lock_requester(connection, asking.tenant, asking.requester)
    refused = (
        _rejected(connection, asking, bundle.rejected_stays_seconds)
        or _pending(connection, asking, "thread", bundle.max_pending_per_thread)
        or _pending(connection, asking, "user", bundle.max_pending_per_user)
        or _asked(connection, asking, "user", bundle.max_asked_per_user_per_hour)
        or (wanted.max_asked_per_hour and _asked(connection, asking, wanted.name, wanted.max_asked_per_hour))
    )
    if refused:
        return refused
    return Approval(
        id=new_id("ap"),
        tenant=asking.tenant,
        state=ApprovalState.PENDING,
        approval_class=wanted.name,
        who=wanted.who,
        approvers=wanted.approvers,
        tool=asking.bound.tool,
        risk=asking.verdict.risk or "",
        args_hash=asking.kept_hash,
        thread_id=asking.thread_id,
        run_id=asking.run_id,
        tool_call_id=asking.tool_call_id,
        requester=asking.requester,
        create_us=asking.now_us,
        expire_us=asking.now_us + seconds * MICROSECONDS,
        decision_id=new_id("de"),
        policy_ids=tuple(one.policy_id for one in asking.verdict.reasons if one.policy_id),
        args_commitment=asking.args_commitment,
        stakes=asking.verdict.stakes,
    )


def _rejected(connection: Connection, asking: Asking, seconds: int) -> DomainError | None:
    since_us = asking.now_us - seconds * MICROSECONDS
    found = seconds and rows.find_rejected(
        connection,
        asking.tenant,
        asking.requester,
        tool=asking.bound.tool,
        hashes=(asking.kept_hash, asking.bound.args_hash),
        since_us=since_us,
        # a rejection from up to its own period ahead counts, at least an hour: a clock that was set back does not bring
        # back what a person refused. One from further ahead was made by a clock that was wrong then, and would block
        # the call for as long
        until_us=asking.now_us + max(seconds, HOUR_SECONDS) * MICROSECONDS,
    )
    if not found:
        return None
    left = _seconds_left(found.decide_us - since_us)
    return FailedPrecondition(
        "REJECTED_BEFORE",
        f"a person rejected this call; it cannot be requested again for {left} s",
        metadata={"approval_id": found.id, "retry_after_seconds": str(left)},
    )


def _pending(connection: Connection, asking: Asking, per: str, limit: int) -> DomainError | None:
    waiting = rows.count_pending(
        connection,
        asking.tenant,
        asking.requester,
        asking.now_us,
        thread_id=asking.thread_id if per == "thread" else "",
    )
    if waiting < limit:
        return None
    return ResourceExhausted(
        "TOO_MANY_PENDING",
        f"{limit} approvals of this {per} are already pending; answer those first",
        metadata={"limit": str(limit), "per": per},
    )


def _asked(connection: Connection, asking: Asking, per: str, limit: int) -> DomainError | None:
    """Check the number of requests in the last hour; ``per`` is "user", or a class with its own cap."""
    since_us = asking.now_us - HOUR_SECONDS * MICROSECONDS
    approval_class = "" if per == "user" else per
    count, first_us = rows.count_asked(
        connection,
        asking.tenant,
        asking.requester,
        since_us=since_us,
        # times up to an hour ahead count, so that a clock that was set back does not permit a storm
        until_us=asking.now_us + HOUR_SECONDS * MICROSECONDS,
        approval_class=approval_class,
    )
    if count < limit:
        return None
    left = _seconds_left(first_us - since_us)
    of_class = f" of class '{per}'" if approval_class else ""
    return ResourceExhausted(
        "TOO_MANY_ASKED",
        f"{limit} approvals{of_class} were requested for this user within the last hour; retry in {left} s",
        metadata={"limit": str(limit), "per": per, "retry_after_seconds": str(left)},
    )


def _seconds_left(micros: int) -> int:
    return min(max(1, -(-micros // MICROSECONDS)), HOUR_SECONDS * 24 * 7)
