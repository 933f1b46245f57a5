"""Vote proofs: a MAC over a vote and everything its approval is bound to, under a key outside the database.

With write access to the database one can add a vote, change its groups, or move it to another approval. A vote counts
only if its proof matches, which is checked each time.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import replace

from phylactery_chassis.util.crypto import hmac_sha256, keyed_hash
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import Approval, Vote
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.store import approvals as rows
from phylactery_riskgate.store.audit_search import records_of_kind

_PURPOSE = "phylactery-votes-v1"


class VoteProofs:
    """Creator and verifier of vote proofs."""

    def __init__(self, data_key: bytes) -> None:
        """Derive the proof key from the data key."""
        self._key = hmac_sha256(data_key, _PURPOSE.encode())

    def proven(self, approval: Approval, vote: Vote) -> Vote:
        """Return a new vote with its proof."""
        return replace(vote, proof=self._proof(approval, vote), proven=True)

    def checked(self, approval: Approval) -> Approval:
        """Return a stored approval with its genuine votes marked as proven."""
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
        return keyed_hash(self._key, json.dumps(bound).encode())

    def adopt(self, connection: Connection) -> int:
        """Prove votes on open approvals from before proofs existed, and return how many.

        Only votes that the audit log contains are proven: each answer of a person has an entry.
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
                    rows.save_proof(connection, approval, self.proven(approval, vote))
                    count += 1
        return count


def _answered(connection: Connection, tenant: str) -> set[tuple[str, str]]:
    records = (json.loads(one) for one in records_of_kind(connection, tenant, Kind.APPROVAL_ANSWERED))
    return {(str(one["approval_id"]), str(one["subject"])) for one in records if one["answer"] == "approve"}
