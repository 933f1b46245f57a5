"""Answers to approvals by their id, instead of by words: each becomes a strict reply in the thread of its run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from phylactery_chassis.errors import FailedPrecondition, NotFound, Unavailable

from phylactery_agent.graph.core.events import SELF_CLASS
from phylactery_agent.ports import ApprovalInfo, GateRefusedError, GateUnavailableError
from phylactery_agent.ports.services import Services
from phylactery_agent.runtime.runs.status import ACTIVE, RunStatus
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.records import Owner, StoredRun

PENDING = "PENDING"


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """A yes or no to one approval, as its card was shown, and to others of the same card."""

    approval_id: str
    args_hash: str
    approve: bool
    also: Sequence[tuple[str, str]] = ()
    """The others, each with the hash that was shown."""

    @property
    def body(self) -> bytes:
        """Return the content that must match when a request_id is repeated; no message has the same."""
        answer = {"approval_id": self.approval_id, "args_hash": self.args_hash, "approve": self.approve}
        return json.dumps(answer | ({"also": list(self.also)} if self.also else {}), sort_keys=True).encode()


@dataclass(frozen=True, slots=True)
class Answered:
    """The run an answer is for, and the strict reply that its Router takes; a yes has its code in it."""

    run: StoredRun
    reply: str
    codes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The codes of the other approvals that it answers, by their ids."""


class ApprovalAnswers:
    """What an answer is for: looked up when it is given, and checked once more by RiskGate when its turn is served.

    The look is what gives a caller a typed error; it decides nothing. What changes between the look and the turn,
    because another device answers or the question is withdrawn, is found by ApprovalHandler.
    """

    def __init__(self, services: Services, runs: RunStore) -> None:
        self._services, self._runs = services, runs

    async def read(self, owner: Owner, answer: ApprovalAnswer) -> Answered:
        """Return the run that asked and the reply for it.

        Raise as ``look``; FailedPrecondition APPROVAL_OF_ANOTHER.
        """
        shown = dict.fromkeys(((answer.approval_id, answer.args_hash), *answer.also))
        looked = [await self.look(owner, *one) for one in shown]
        run = looked[0][0]
        found = {asked.id: asked for _, asked in looked}
        waiting = [one.approval_id for one in run.card if one.open]
        if len(found) > 1 and sorted(found) != sorted(waiting):
            raise _refused(
                "APPROVAL_CHANGED",
                f"what waits beside approval '{answer.approval_id}' is not what was shown with it; show the card again",
                answer.approval_id,
            )
        # in the order of the card: the run is resumed by the one it waits for
        first, *others = [found[one] for one in waiting] if len(found) > 1 else found.values()
        for asked in found.values() if answer.approve or others else ():
            if asked.approval_class != SELF_CLASS or not asked.code:
                raise _refused(
                    "APPROVAL_OF_ANOTHER",
                    f"another person has to approve '{asked.id}'; whoever asked for it can only withdraw it, with a no",
                    asked.id,
                )
        reply = f"APPROVE {first.id} {first.code}" if answer.approve else f"REJECT {first.id}"
        return Answered(run, reply, {one.id: one.code for one in others})

    async def look(
        self, owner: Owner, approval_id: str, args_hash: str, *, full: bool = False
    ) -> tuple[StoredRun, ApprovalInfo]:
        """Return an approval that waits for the owner, as it was shown, and the run that asked.

        Raise NotFound APPROVAL_NOT_FOUND; FailedPrecondition APPROVAL_NOT_PENDING and APPROVAL_CHANGED; Unavailable
        RISKGATE_UNAVAILABLE.
        """
        asked = await self._asked(owner, approval_id, full=full)
        try:  # an approver may see what another person asked: the run tells whose it is
            run = await self._runs.get(owner, asked.run_id)
        except NotFound:
            raise _unknown(approval_id) from None
        state = asked.state if asked.state != PENDING or _waits(run, asked.id) else "CANCELLED"
        if state != PENDING:
            raise FailedPrecondition(
                "APPROVAL_NOT_PENDING",
                f"approval '{asked.id}' waits for no answer any more ({state.lower()}), so nothing was changed",
                metadata={"state": state},
            )
        if asked.args_hash != args_hash:
            raise _refused(
                "APPROVAL_CHANGED",
                f"the card of approval '{asked.id}' changed since it was shown; show it again and ask once more",
                asked.id,
            )
        return run, asked

    async def _asked(self, owner: Owner, approval_id: str, *, full: bool) -> ApprovalInfo:
        try:
            return await self._services.gate(owner).get_approval(approval_id, full=full)
        except GateUnavailableError:
            raise Unavailable(
                "RISKGATE_UNAVAILABLE",
                "RiskGate does not answer, so nothing was done and the answer is not kept; send it again in a moment",
                metadata={"service": "riskgate"},
            ) from None
        except GateRefusedError:
            raise _unknown(approval_id) from None


def _waits(run: StoredRun, approval_id: str) -> bool:
    """Return True if a run waits for an approval, or is still being served and may be about to.

    RiskGate hears later than the run's own end that its questions are withdrawn.
    """
    if run.status != RunStatus.SUSPENDED:
        return run.status in ACTIVE
    return any(one.approval_id == approval_id and one.open for one in run.card)


def _unknown(approval_id: str) -> NotFound:
    return NotFound(
        "APPROVAL_NOT_FOUND",
        f"no run of this caller asked for approval '{approval_id}'",
        metadata={"approval_id": approval_id},
    )


def _refused(reason: str, told: str, approval_id: str) -> FailedPrecondition:
    return FailedPrecondition(reason, told, metadata={"approval_id": approval_id})
