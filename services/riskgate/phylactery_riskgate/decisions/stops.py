"""Freeze, unfreeze and revoke: an operator stops calls at once, whatever the policies decide.

A stop is durable and recorded in one transaction, which no Redeem overlaps. The installation's operator can stop
anything. A tenant's operator or policy admin stops calls of that tenant only, and lifts only what the tenant stopped.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import DomainError, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import ApprovalEvent, ClosedReason, advance
from phylactery_riskgate.audit.commitments import WORDS
from phylactery_riskgate.audit.log import SYSTEM_PRINCIPAL, Kind
from phylactery_riskgate.decisions.context import DecisionContext, Refused, about
from phylactery_riskgate.decisions.requests import ClearInput, RevokeInput, SinkInput, TargetInput, TenantInput
from phylactery_riskgate.domain.intent.facts import uses_ask
from phylactery_riskgate.domain.intent.understood import task_of
from phylactery_riskgate.domain.model import Decision, Reason, Verdict
from phylactery_riskgate.notices.status import SinkStatus, status_of
from phylactery_riskgate.store import approvals as approval_rows
from phylactery_riskgate.store import asks as ask_rows
from phylactery_riskgate.store import decisions as decision_rows
from phylactery_riskgate.store import stops as rows
from phylactery_riskgate.store import tasks as task_rows
from phylactery_riskgate.store import undo
from phylactery_riskgate.store.asks import AskUse
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.decisions import CallKey, DecisionRecord
from phylactery_riskgate.store.notices import resume_sink
from phylactery_riskgate.store.redemptions import find_redemption
from phylactery_riskgate.store.stops import EVERY_TENANT, FreezeRow, Scope, Target
from phylactery_riskgate.store.undo import UndoFailure

_NEAR, _SHOWN = 3, 20
"""Maximum number of tools that are named after a wrong name: those near to it, or else the first of all."""
_OF_TENANT = frozenset({Role.OPERATOR, Role.POLICY_ADMIN})


@dataclass(frozen=True, slots=True)
class Frozen:
    """The result of Freeze; ``place`` is None if it was already frozen."""

    row: FreezeRow
    place: Place | None
    known: bool
    running: int


@dataclass(frozen=True, slots=True)
class Lifted:
    """The result of Unfreeze; ``still_frozen`` is True if another freeze stops some of the same calls."""

    place: Place
    still_frozen: bool


@dataclass(frozen=True, slots=True)
class Revoked:
    """The result of RevokeDecision; ``place`` is None if the decision was already void."""

    place: Place | None
    approval_id: str


class Control:
    """The Freeze, Unfreeze and RevokeDecision use cases."""

    def __init__(self, core: DecisionContext) -> None:
        """Store the shared context."""
        self._core = core

    async def freeze(self, who: Principal, asked: TargetInput) -> Frozen:
        """Stop every call that matches a target.

        Raise PermissionDenied ROLE_REQUIRED, NotFound TOOL_NOT_FOUND, InvalidArgument and Unavailable.
        """
        target = _target(who, asked)
        if target.scope is Scope.TOOL and target.name not in self._core.live.held.bundle.tools:
            raise NotFound(
                "TOOL_NOT_FOUND",
                f"the live catalog knows no tool '{target.name}', so nothing was frozen{self._near(target.name)}",
                metadata={"tool": target.name},
            )
        row, place = await self._core.write(lambda connection: self._freeze(connection, who, target, asked.reason))
        reach("riskgate.frozen")
        known, running = await self._core.database.read(
            lambda connection: (rows.anything_decided(connection, target), rows.count_running(connection, target))
        )
        return Frozen(row, place, known, running)

    def _near(self, name: str) -> str:
        """Return the tools that a wrong name may mean, as the end of a sentence."""
        known = sorted(self._core.live.held.bundle.tools)
        near = difflib.get_close_matches(name, known, _NEAR)
        shown = ", ".join(near or known[:_SHOWN])
        more = f" and {len(known) - _SHOWN} more" if not near and len(known) > _SHOWN else ""
        return f"; did you mean {shown}?" if near else f"; it knows {shown or 'none'}{more}"

    async def unfreeze(self, who: Principal, asked: TargetInput) -> Lifted:
        """Lift a freeze that the caller's level (installation or tenant) set.

        Raise PermissionDenied ROLE_REQUIRED, NotFound FREEZE_NOT_FOUND, InvalidArgument and Unavailable.
        """
        target = _target(who, asked)
        return await self._core.write(lambda connection: self._unfreeze(connection, who, target, asked.reason))

    async def list_freezes(self, who: Principal) -> list[FreezeRow]:
        """Return the freezes that concern the caller's tenant, or all of them for the installation's operator."""
        if not who.roles & {*_OF_TENANT, Role.AUDITOR}:
            who.require(Role.INSTALLATION_OPERATOR)
        found = await self._core.database.read(rows.in_force)
        return [one for one in found if _installation(who) or one.tenant in (EVERY_TENANT, who.tenant)]

    async def sinks(self, who: Principal) -> list[SinkStatus]:
        """Return how the sinks of notices do, as this process has them. Raise PermissionDenied and Unavailable."""
        who.require(Role.INSTALLATION_OPERATOR)
        now_us = self._core.clock.now_us()
        return await self._core.database.read(
            lambda connection: status_of(connection, self._core.notices.notices, now_us)
        )

    async def resume_sink(self, who: Principal, asked: SinkInput) -> None:
        """Enable a sink of notices that said that it is gone. Raise PermissionDenied, NotFound and Unavailable."""
        who.require(Role.INSTALLATION_OPERATOR)
        if not await self._core.write(lambda connection: resume_sink(connection, asked.sink)):
            raise NotFound(
                "SINK_NOT_FOUND", "no notice was ever sent to a sink of this name; see riskgate notices status"
            )

    async def revoke(self, who: Principal, asked: RevokeInput) -> Revoked:
        """Void a decision, and close the approval it requested.

        Raise PermissionDenied ROLE_REQUIRED, NotFound DECISION_NOT_FOUND, FailedPrecondition ALREADY_REDEEMED and
        Unavailable.
        """
        tenant = _tenant(who, asked.tenant)
        done = await self._core.write(lambda connection: self._revoke(connection, who, tenant, asked))
        reach("riskgate.revoked")
        return done

    async def undo_failures(self, who: Principal, asked: TenantInput) -> Sequence[UndoFailure]:
        """Return the tools of a tenant whose undo failed. Raise PermissionDenied ROLE_REQUIRED and Unavailable."""
        if not who.roles & {*_OF_TENANT, Role.AUDITOR}:
            who.require(Role.INSTALLATION_OPERATOR)
        if asked.tenant not in ("", who.tenant):
            who.require(Role.INSTALLATION_OPERATOR)
        tenant = asked.tenant or who.tenant
        return await self._core.database.read(lambda connection: undo.failures_of(connection, tenant))

    async def clear_undo_failure(self, who: Principal, asked: ClearInput) -> Place | None:
        """Trust the undo of a tool again; return None if it had not failed.

        Raise PermissionDenied ROLE_REQUIRED, InvalidArgument and Unavailable.
        """
        tenant = _tenant(who, asked.tenant)

        def work(connection: Connection) -> Place | None:
            if not undo.delete_failure(connection, tenant, asked.tool):
                return None
            now_us = self._core.clock.now_us()
            return self._tell(connection, Kind.UNDO_CLEARED, who, tenant, now_us, {"tool": asked.tool}, asked.reason)

        return await self._core.write(work)

    def _freeze(
        self, connection: Connection, who: Principal, target: Target, reason: str
    ) -> tuple[FreezeRow, Place | None]:
        rows.keep_out(connection)
        by_installation = _installation(who)
        for one in rows.in_force(connection):
            if (one.target, one.by_installation) == (target, by_installation):
                return one, None
        now_us = self._core.clock.now_us()
        row = FreezeRow(*target, by_installation, now_us, who.subject, who.tenant, reason)
        rows.insert_freeze(connection, row)
        self._core.notices.frozen(connection, row, now_us)
        return row, self._note(connection, Kind.FROZEN, who, target, now_us, reason)

    def _unfreeze(self, connection: Connection, who: Principal, target: Target, reason: str) -> Lifted | Refused:
        now_us = self._core.clock.now_us()
        if not rows.lift_freeze(connection, target, now_us, by_installation=_installation(who)):
            return Refused(_not_frozen(who, target))
        row = FreezeRow(*target, _installation(who), now_us, who.subject, who.tenant, "")
        self._core.notices.frozen(connection, row, now_us, lifted=True)
        place = self._note(connection, Kind.UNFROZEN, who, target, now_us, reason)
        return Lifted(place, any(_overlap(one.target, target) for one in rows.in_force(connection)))

    def _revoke(self, connection: Connection, who: Principal, tenant: str, asked: RevokeInput) -> Revoked | Refused:
        rows.keep_out(connection)
        record = decision_rows.find_decision(connection, tenant, asked.decision_id)
        refusal = _not_revocable(connection, record, asked.decision_id)
        if record is None or refusal is not None:
            assert refusal is not None, "what is not there cannot be revoked"
            return Refused(refusal)
        if record.revoke_us:
            return Revoked(None, "")
        now_us = self._core.clock.now_us()
        decision_rows.revoke(connection, tenant, record.id, now_us)
        self._use_up(connection, record, now_us)
        closed = self._close(connection, who, record, now_us)
        body = {
            "decision_id": record.id,
            "requester": record.subject,
            "thread_id": record.thread_id,
            "run_id": record.run_id,
            "tool_call_id": record.tool_call_id,
            "tool": record.tool,
            "approval_id": closed,
        }
        return Revoked(self._tell(connection, Kind.DECISION_REVOKED, who, tenant, now_us, body, asked.reason), closed)

    def _use_up(self, connection: Connection, record: DecisionRecord, now_us: int) -> None:
        """Use up the ask of a revoked decision, as its redemption would have: no other call runs by it."""
        facts = self._core.snapshot_of(connection, record).facts
        tool = self._core.live.held.bundle.tools.get(record.tool)
        if record.counted_approval_id or (tool is not None and not uses_ask(facts, tool)):
            return
        task_id = task_of(facts.ask)
        if not task_id or task_rows.find_task(connection, record.tenant, record.subject, task_id) is None:
            return
        ask_rows.lock(connection, record.tenant, record.subject, [task_id])
        key = CallKey(record.tenant, record.subject, record.run_id, record.tool_call_id)
        ask_rows.insert_use(connection, key, AskUse(task_id, facts.ask, record.args_hash), now_us)

    def _close(self, connection: Connection, who: Principal, record: DecisionRecord, now_us: int) -> str:
        """Close the approval a decision requested, if it is open; return its id, or an empty string."""
        if not record.approval_id:
            return ""
        approval = approval_rows.find_approval(connection, record.tenant, record.approval_id, lock=True)
        requester = replace(who, tenant=record.tenant)
        approval = approval and self._core.current(connection, approval, requester, now_us)
        if not approval or not approval.open:
            return ""
        closed = replace(
            approval, state=advance(approval.state, ApprovalEvent.CANCEL), closed_reason=str(ClosedReason.REVOKED)
        )
        closed = self._core.change_approval(connection, closed, now_us)
        self._core.note(connection, Kind.APPROVAL_CLOSED, requester, now_us, about(closed))
        return closed.id

    def _note(  # noqa: PLR0917 - its two callers pass all of it
        self, connection: Connection, kind: Kind, who: Principal, target: Target, now_us: int, reason: str
    ) -> Place:
        body = {"scope": str(target.scope), "target_tenant": target.tenant, "by_installation": _installation(who)}
        body |= {"tool": target.name} if target.scope is Scope.TOOL else {}
        body |= {"user": target.name} if target.scope is Scope.USER else {}
        body |= {"frozen_actor": target.name} if target.scope is Scope.ACTOR else {}
        return self._tell(connection, kind, who, target.tenant, now_us, body, reason)

    def _tell(  # noqa: PLR0917 - its two callers pass all of it
        self,
        connection: Connection,
        kind: Kind,
        who: Principal,
        concerned: str,
        now_us: int,
        body: Mapping[str, Any],
        reason: str,
    ) -> Place:
        """Record the action for the actor's tenant and, if another tenant is concerned, for that one as well.

        Both records name the actor, and the second refers to the first.
        """
        told = {**body, "by": {"subject": who.subject, "tenant": who.tenant}}
        values = {WORDS: reason} if reason else {}
        place = self._core.note(connection, kind, who, now_us, told, values=values)
        if concerned != who.tenant:
            told["record"] = {"log": place.log, "index": place.index}
            self._core.note(connection, kind, replace(SYSTEM_PRINCIPAL, tenant=concerned), now_us, told)
        return place


def stopped_verdict(verdict: Verdict, why: Reason) -> Verdict:
    """Return the verdict of a call that an operator stopped; a call the policies block keeps their reasons."""
    if verdict.decision is Decision.BLOCKED:
        return verdict
    return verdict._replace(decision=Decision.BLOCKED, reasons=(why,), approval_class=None, policy_ids=())


def _installation(who: Principal) -> bool:
    return Role.INSTALLATION_OPERATOR in who.roles


def _target(who: Principal, asked: TargetInput) -> Target:
    """Return the target of a request, if the caller may stop it. Raise PermissionDenied ROLE_REQUIRED."""
    if asked.scope is Scope.ALL:
        who.require(Role.INSTALLATION_OPERATOR)
        return Target(Scope.ALL, EVERY_TENANT, "")
    if asked.scope in (Scope.TOOL, Scope.ACTOR) and not asked.tenant and _installation(who):
        return Target(asked.scope, EVERY_TENANT, asked.name)
    return Target(asked.scope, _tenant(who, asked.tenant), asked.name)


def _tenant(who: Principal, asked: str) -> str:
    """Return the tenant of a request, if the caller may act for it. Raise PermissionDenied and InvalidArgument."""
    if who.delegated:
        told = "a delegate cannot freeze or revoke"
        raise PermissionDenied("ROLE_REQUIRED", told, metadata={"role": str(Role.OPERATOR)})
    if asked in ("", who.tenant) and not who.roles & {*_OF_TENANT, Role.INSTALLATION_OPERATOR}:
        any_of = f"'{Role.OPERATOR}', '{Role.POLICY_ADMIN}' or '{Role.INSTALLATION_OPERATOR}'"
        told = f"'{who.subject}' has none of the roles {any_of}; ask the administrator of the tokens file"
        raise PermissionDenied("ROLE_REQUIRED", told, metadata={"role": str(Role.INSTALLATION_OPERATOR)})
    if asked not in ("", who.tenant):
        who.require(Role.INSTALLATION_OPERATOR)
    if not (asked or who.tenant):
        raise InvalidArgument("INVALID_REQUEST", "name the tenant")
    return asked or who.tenant


def _not_frozen(who: Principal, target: Target) -> NotFound:
    whose = "the installation" if _installation(who) else f"the tenant '{who.tenant}'"
    what = f"{target.scope} '{target.name}'" if target.name else str(target.scope)
    return NotFound(
        "FREEZE_NOT_FOUND",
        f"{whose} has not frozen {what}, so nothing was lifted; `riskgate freeze list` shows what is, and by whom",
        metadata={"scope": str(target.scope)},
    )


def _not_revocable(connection: Connection, record: DecisionRecord | None, decision_id: str) -> DomainError | None:
    """Return why a decision cannot be revoked, or None if it can."""
    if record is None:
        return NotFound(
            "DECISION_NOT_FOUND",
            f"this tenant has no decision '{decision_id}'",
            metadata={"decision_id": decision_id},
        )
    redemption = find_redemption(connection, CallKey(record.tenant, record.subject, record.run_id, record.tool_call_id))
    if redemption is not None and not record.revoke_us:
        return FailedPrecondition(
            "ALREADY_REDEEMED",
            f"the call of decision '{decision_id}' was redeemed as execution '{redemption.execution_id}', so it may "
            "have run; nothing was revoked. Freeze the tool or the user to stop what may follow",
            metadata={"factor": "one_time", "execution_id": redemption.execution_id},
        )
    return None


def _overlap(one: Target, other: Target) -> bool:
    """Return True if some call matches both targets."""
    if EVERY_TENANT not in (one.tenant, other.tenant) and one.tenant != other.tenant:
        return False
    return one.scope != other.scope or one.name == other.name
