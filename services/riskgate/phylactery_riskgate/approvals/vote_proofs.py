"""What proves a vote: a MAC under a key that lies in no table, over the vote and all that its approval is bound to.

Whoever can write to the database can add a row to the votes, give one other groups, or move one to another approval. A
vote counts where its proof fits, and it is checked each time it counts.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import replace

from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.codes import hmac_sha256
from phylactery_riskgate.approvals.model import Approval, Vote
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.store import approvals as rows
from phylactery_riskgate.store.audit_search import records_of_kind

_PURPOSE = "phylactery-votes-v1"


class VoteProofs:
    """Makes proofs of votes, and checks them."""

    def __init__(self, data_key: bytes) -> None:
        """Take the data key, from which its own is derived."""
        self._key = hmac_sha256(data_key, _PURPOSE.encode())

    def proven(self, approval: Approval, vote: Vote) -> Vote:
        """Return a vote that was just given with its proof."""
        return replace(vote, proof=self._proof(approval, vote), proven=True)

    def checked(self, approval: Approval) -> Approval:
        """Return an approval as the store holds it with its votes marked as proven where they are."""
        if not approval.votes:
            return approval
        votes = (
            replace(vote, proven=hmac.compare_digest(vote.proof.encode(), self._proof(approval, vote).encode()))
            for vote in approval.votes
        )
        return replace(approval, votes=tuple(votes))

    def _proof(self, approval: Approval, vote: Vote) -> str:
        bound = [
            _PURPOSE,
            approval.id,
            approval.tenant,
            approval.approval_class,
            approval.who,
            approval.approvers,
            approval.tool,
            approval.args_hash,
            approval.thread_id,
            approval.run_id,
            approval.tool_call_id,
            approval.requester,
            approval.create_us,
            approval.expire_us,
            approval.decision_id,
            vote.subject,
            vote.vote_us,
            vote.approver,
            vote.level,
            sorted(vote.groups),
        ]
        return "hmac-sha256:" + hmac_sha256(self._key, json.dumps(bound).encode()).hex()


def adopt_votes(connection: Connection, proofs: VoteProofs) -> int:
    """Prove the votes on open approvals that were given before there were proofs, and return how many.

    Only those the audit log tells of: each answer of a person is an entry of theirs.
    """
    count = 0
    answered: dict[str, set[tuple[str, str]]] = {}
    for tenant, approval_id in rows.find_unproven(connection):
        approval = rows.find_approval(connection, tenant, approval_id)
        if approval is None:
            continue
        if tenant not in answered:
            answered[tenant] = _answered(connection, tenant)
        for vote in approval.votes:
            if not vote.proof and (approval_id, vote.subject) in answered[tenant]:
                rows.save_proof(connection, approval, proofs.proven(approval, vote))
                count += 1
    return count


def _answered(connection: Connection, tenant: str) -> set[tuple[str, str]]:
    records = (json.loads(one) for one in records_of_kind(connection, tenant, Kind.APPROVAL_ANSWERED))
    return {(str(one["approval_id"]), str(one["subject"])) for one in records if one["answer"] == "approve"}
