"""What only its requester sees of an approval, code and arguments: asked of RiskGate when it is sent, never stored."""

from __future__ import annotations

from typing import Final

from phylactery_chassis.errors import NotFound

from phylactery_agent.ports import ApprovalInfo, GateRefusedError, GateUnavailableError
from phylactery_agent.runtime.events import EventLog
from phylactery_agent.runtime.model import Owner, StoredEvent, StoredRun
from phylactery_agent.runtime.runs import RunStore
from phylactery_agent.runtime.schema import ACTIVE
from phylactery_agent.runtime.services import Services
from phylactery_agent.service.views import PendingApproval, ShownEvent

APPROVAL: Final = "approval_required"


class Showing:
    """Shows events and what waits to whom they belong."""

    def __init__(self, services: Services, log: EventLog, runs: RunStore) -> None:
        self._services, self._log, self._runs = services, log, runs

    async def event(self, owner: Owner, event: StoredEvent) -> ShownEvent:
        """Answers an event of the owner's as it is sent to them."""
        if event.kind != APPROVAL or not await self._may_wait(owner, event):
            return ShownEvent(event)
        state, live = await self._live(owner, event.payload.get("approval_id", ""))
        return ShownEvent(event, live if state == "PENDING" else None)

    async def pending(self, run: StoredRun) -> PendingApproval | None:
        """Answers what a run waits for; None once RiskGate says that it is answered."""
        if run.status != "suspended" or not run.approval_id:
            return None
        stored = await self._log.newest(run.run_id, APPROVAL)
        state, live = await self._live(run.owner, run.approval_id)
        if stored is None or state not in ("PENDING", ""):
            return None
        return PendingApproval(stored.payload, live)

    async def _may_wait(self, owner: Owner, event: StoredEvent) -> bool:
        """Says whether the approval can still be open: whoever reads a long log again does not ask about each."""
        try:
            run = await self._runs.get(owner, event.run_id)
        except NotFound:
            return False
        if run.status == "suspended":
            return bool(run.approval_id == event.payload.get("approval_id", ""))
        return run.status in ACTIVE

    async def _live(self, owner: Owner, approval_id: str) -> tuple[str, ApprovalInfo | None]:
        """Answers the approval's state and view; state is empty when RiskGate cannot be asked."""
        try:
            info = await self._services.gate(owner).get_approval(approval_id)
        except GateUnavailableError:
            return "", None
        except GateRefusedError as error:
            return error.reason, None
        return info.state, info
