"""Requester-only approval data, code and arguments: fetched from RiskGate when an event is sent, never stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from google.protobuf import json_format
from phylactery.agent.v1 import event_pb2
from phylactery_chassis.errors import NotFound
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_agent.graph.core.events import SELF_CLASS
from phylactery_agent.ports import ApprovalInfo, GateRefusedError, GateUnavailableError
from phylactery_agent.ports.services import Services
from phylactery_agent.runtime.effects.file_previews import FilePreviews
from phylactery_agent.runtime.runs.status import ACTIVE, RunStatus
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.events import EventLog
from phylactery_agent.runtime.storage.records import Owner, StoredEvent, StoredRun

APPROVAL: Final = "approval_required"


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """An approval waiting for the requester: stored fields, and current code and arguments from RiskGate, by id.

    stored has the other approvals of the card in "also".
    """

    stored: Mapping[str, Any]
    live: Mapping[str, ApprovalInfo] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event in the form for the requester; live has approval_required's PENDING approvals, by id."""

    event: StoredEvent
    live: Mapping[str, ApprovalInfo] = field(default_factory=dict, repr=False)


class Showing:
    """A view of events and pending approvals for their owner."""

    def __init__(self, services: Services, log: EventLog, runs: RunStore, previews: FilePreviews) -> None:
        self._services, self._log, self._runs, self._previews = services, log, runs, previews

    async def event(self, owner: Owner, event: StoredEvent) -> ShownEvent:
        """Return an event in the form sent to its owner."""
        if event.kind != APPROVAL or not await self._may_wait(owner, event):
            return ShownEvent(event)
        looked = [(approval_id, *await self._live(owner, approval_id)) for approval_id in _ids(event.payload)]
        return ShownEvent(event, {name: live for name, state, live in looked if live and state == "PENDING"})

    async def pending(self, run: StoredRun) -> PendingApproval | None:
        """Return what a run waits for, with the open rest of its card; None once RiskGate reports it as answered."""
        if run.status != RunStatus.SUSPENDED or not run.approval_id:
            return None
        stored = await self._log.newest(run.run_id, APPROVAL)
        if stored is None or not stored.payload:  # of a key that was given up
            return None
        card, live = [], dict[str, ApprovalInfo]()
        for one in _from(run.approval_id, stored.payload):
            state, info = await self._live(run.owner, one["approval_id"])
            if state in ("PENDING", ""):
                card.append(one)
                live |= {info.id: info} if info else {}
        if not card or card[0]["approval_id"] != run.approval_id:
            return None
        whole = card[0] | ({"also": card[1:]} if card[1:] else {}) | {"run_id": run.run_id}
        return PendingApproval(whole, live)

    async def whole(self, run: StoredRun, info: ApprovalInfo) -> PendingApproval:
        """Return one approval of a run as on its card, with the arguments that ``info`` has, and without a code."""
        stored = await self._log.newest(run.run_id, APPROVAL)
        found = _from(info.id, stored.payload) if stored is not None and stored.payload else ()
        plain = {"tool": info.tool, "risk": info.risk, "approval_class": info.approval_class}
        one = next((one for one in found if one["approval_id"] == info.id), {"approval_id": info.id, **plain})
        live = replace(await self._with_previews(run.owner, info), code="")
        return PendingApproval(one | {"run_id": run.run_id}, {info.id: live})

    async def all_pending(self, owner: Owner, thread_id: str) -> Sequence[PendingApproval]:
        """Return the pending cards in one of the owner's threads, the newest first."""
        runs = await self._runs.waiting_in(owner, thread_id)
        return [card for run in runs if (card := await self.pending(run)) is not None]

    async def waiting(
        self, owner: Owner, thread_id: str, shown: Mapping[str, str], *, quoted: bool
    ) -> Sequence[ApprovalInfo]:
        """Return a thread's pending approvals, the waiting run's first, if they match what the requester was shown.

        shown has the hashes by approval id. Return nothing if those that were not withdrawn are not all of one card,
        the newest; if more is pending than was shown, including in another run; if another message was sent since; if
        another person must approve; or if RiskGate is unavailable. What was quoted need only be pending, on whichever
        card.
        """
        if quoted:
            cards = await self.all_pending(owner, thread_id)
            live = [one for card in cards for name in _ids(card.stored) if (one := card.live.get(name)) is not None]
            seen = [one for one in live if one.approval_class == SELF_CLASS and shown.get(one.id) == one.args_hash]
            return seen if len(seen) == len(shown) else ()
        run = await self._runs.newest(owner, thread_id)
        waiting = await self._runs.waiting_in(owner, thread_id)
        if run is None or [one.run_id for one in waiting] != [run.run_id]:
            return ()
        pending = await self.pending(run)
        stored = await self._log.newest(run.run_id, APPROVAL)
        if pending is None or stored is None:
            return ()
        for other in shown.keys() - set(_ids(stored.payload)):
            if (await self._live(owner, other))[0] != "CANCELLED":  # a card that was withdrawn is shown no more
                return ()
        found = [pending.live.get(approval_id) for approval_id in _ids(pending.stored)]
        seen = [one for one in found if one and one.approval_class == SELF_CLASS and shown.get(one.id) == one.args_hash]
        return seen if len(seen) == len(found) else ()

    async def _may_wait(self, owner: Owner, event: StoredEvent) -> bool:
        """Return True if the approval can still be open, so that reading a long log does not query every approval."""
        try:
            run = await self._runs.get(owner, event.run_id)
        except NotFound:
            return False
        if run.status == RunStatus.SUSPENDED:
            return run.approval_id in _ids(event.payload)
        return run.status in ACTIVE

    async def _live(self, owner: Owner, approval_id: str) -> tuple[str, ApprovalInfo | None]:
        """Return the approval's state and view; state is empty if RiskGate is unavailable."""
        try:
            info = await self._services.gate(owner).get_approval(approval_id)
        except GateUnavailableError:
            return "", None
        except GateRefusedError as error:
            return error.reason, None
        return info.state, await self._with_previews(owner, info) if info.state == "PENDING" else info

    async def _with_previews(self, owner: Owner, info: ApprovalInfo) -> ApprovalInfo:
        more = await self._previews.of(owner, info)
        return replace(info, arguments=(*info.arguments, *more)) if more else info


def _ids(card: Mapping[str, Any]) -> list[str]:
    """Return the ids of the approvals on a card, in the order of their calls."""
    return [str(one.get("approval_id", "")) for one in (card, *card.get("also", ()))]


def _from(approval_id: str, card: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a card's data from one approval on; all of it if the approval is not on the card."""
    each = [{name: value for name, value in one.items() if name != "also"} for one in (card, *card.get("also", ()))]
    ids = _ids(card)
    return each[ids.index(approval_id) :] if approval_id in ids else each


def event_message(shown: ShownEvent) -> event_pb2.Event:
    """Return an event in wire form."""
    stored = shown.event
    message = event_pb2.Event(
        thread_id=stored.thread_id,
        run_id=stored.run_id,
        sequence=stored.sequence,
        create_time=to_timestamp(stored.created_us),
    )
    json_format.ParseDict({stored.kind: dict(stored.payload)}, message, ignore_unknown_fields=True)
    if stored.kind == "approval_required":
        message.approval_required.run_id = stored.run_id
    if shown.live:
        _fill(message.approval_required, shown.live)
    return message


def approval_message(pending: PendingApproval) -> event_pb2.ApprovalRequired:
    """Return an approval that is waiting for a person."""
    message = event_pb2.ApprovalRequired()
    json_format.ParseDict(dict(pending.stored), message, ignore_unknown_fields=True)
    _fill(message, pending.live)
    return message


def _fill(card: event_pb2.ApprovalRequired, live: Mapping[str, ApprovalInfo]) -> None:
    for message in (card, *card.also):
        if (info := live.get(message.approval_id)) is not None:
            message.code, message.args_hash = info.code, info.args_hash
            message.stakes = info.stakes
            message.why.extend(one["es" if card.language == "es" else "en"] for one in info.why)
            for argument in info.arguments:
                message.arguments.add(
                    path=argument.path,
                    display=argument.display,
                    control=argument.control,
                    left_out=argument.left_out,
                )
