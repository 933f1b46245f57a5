"""Explain: a hypothetical or recorded decision about a call, with everything that led to it; read-only."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from phylactery_chassis.auth.identity import Principal, Role, level_of
from phylactery_chassis.errors import FailedPrecondition, NotFound
from sqlalchemy.engine import Connection

from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.decisions.proposals import caller_of, raw_call
from phylactery_riskgate.decisions.replay import Recalled, recall
from phylactery_riskgate.decisions.requests import CallInput, ExplainInput
from phylactery_riskgate.decisions.task_ref import TaskSource, shown
from phylactery_riskgate.domain.bundle.bundle import read_bundle
from phylactery_riskgate.domain.bundle.files import read_parts
from phylactery_riskgate.domain.model import CallSite, Reason
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import TaskReader
from phylactery_riskgate.domain.policy.explanation import Explanation, explain
from phylactery_riskgate.domain.policy.reasons import reason
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.audit_search import find_entry
from phylactery_riskgate.store.bundles import find_files
from phylactery_riskgate.store.decisions import find_decision

_NO_THREAD = "explain"


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation; ``decision_id`` is empty for a hypothetical call, ``revoke_us`` 0 where nothing was revoked."""

    explanation: Explanation
    decision_id: str
    revoke_us: int = 0

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Say why, most important first."""
        revoked = (reason("DECISION_REVOKED"),) if self.revoke_us else ()
        return (*revoked, *self.explanation.verdict.reasons)


class Explaining:
    """The Explain use case."""

    def __init__(self, core: DecisionContext, tasks: TaskSource) -> None:
        self._core, self._tasks = core, tasks
        self._earlier: DecisionEngine | None = None
        """The last engine of an earlier bundle, cached: explanations come in series, and an engine is slow to build."""

    async def explain(self, who: Principal, asked: ExplainInput) -> Explained:
        """Explain a call.

        Raise PermissionDenied ROLE_REQUIRED, NotFound and FailedPrecondition NOT_EXPLAINABLE, NotFound TASK_NOT_FOUND
        if a hypothetical call names a task that is not the caller's in this thread, and Unavailable.
        """
        everybodys = bool(who.roles & {Role.AUDITOR, Role.POLICY_ADMIN})
        if not everybodys:
            who.require(Role.CALLER)
        if asked.decision_id is not None:
            return await self._recorded(who, asked.decision_id, everybodys=everybodys)
        assert asked.call is not None, "the edge makes sure of one of both"
        task = await shown(self._tasks, who, asked.task_id, asked.thread_id) if asked.task_id else None
        if asked.subject not in ("", who.subject):
            if not everybodys:
                who.require(Role.AUDITOR)
            level = level_of(who, asked.subject)
            who = Principal(asked.subject, who.tenant, frozenset({Role.CALLER}), level, actor=who.subject)
        return Explained(await self._imagined(who, asked, asked.call, task), "")

    async def _imagined(
        self, who: Principal, asked: ExplainInput, call: CallInput, task: TaskReader | None
    ) -> Explanation:
        engine, approved = self._core.engine, frozenset(asked.approved)
        raw, caller = raw_call(call), caller_of(who)
        site = CallSite(asked.thread_id or _NO_THREAD, _NO_THREAD, asked.plan_step, pathway=asked.pathway)
        now_us = self._core.clock.now_us()

        def work(connection: Connection) -> Explanation:
            usage = self._core.usage.reader(connection, who, site, now_us)
            return explain(engine, lambda one: one.decide(raw, caller, site, approved=approved, usage=usage, task=task))

        return await self._core.database.read(work)

    async def _recorded(self, who: Principal, decision_id: str, *, everybodys: bool) -> Explained:
        recalled, revoke_us = await self._core.database.read(
            lambda connection: self._recall(connection, who, decision_id, everybodys=everybodys)
        )
        engine = await self._engine_of(recalled)
        return Explained(await asyncio.to_thread(explain, engine, recalled.ask), decision_id, revoke_us)

    def _recall(
        self, connection: Connection, who: Principal, decision_id: str, *, everybodys: bool
    ) -> tuple[Recalled, int]:
        """Return what a decision rested on, and when it was revoked. Raise NotFound and FailedPrecondition."""
        decision = find_decision(connection, who.tenant, decision_id)
        found = None
        if decision is not None and (everybodys or decision.subject == who.subject):
            found = find_entry(connection, who.tenant, Place(decision.audit_log, decision.audit_index))
        if decision is None or found is None:
            raise NotFound(
                "NOT_EXPLAINABLE",
                f"decision '{decision_id}' not found",
                metadata={"decision_id": decision_id},
            )
        recalled = recall(connection, self._core.audit, who.tenant, found)
        if isinstance(recalled, Recalled):
            return recalled, decision.revoke_us
        why = "its values were erased" if recalled.erased else "its arguments were not valid JSON and were not stored"
        if recalled.frozen:
            why = "an operator had frozen the call or revoked it before, and no policy decided it"
        raise _unexplainable(decision_id, why)

    async def _engine_of(self, recalled: Recalled) -> DecisionEngine:
        """Return the engine of the bundle that decided."""
        for engine in (self._core.live.held, self._earlier):
            if engine is not None and engine.bundle.hash == recalled.bundle_hash:
                return engine
        files = await self._core.database.read(lambda connection: find_files(connection, recalled.bundle_hash))
        if files is None:
            raise _unexplainable(recalled.decision_id, f"bundle revision {recalled.bundle_revision} is not stored")
        kept = read_parts(((name, text.encode()) for name, text in files.items()), stored=True)
        if kept.hash != recalled.bundle_hash:
            raise _unexplainable(recalled.decision_id, "the bundle that decided was altered in the database")
        self._earlier = await asyncio.to_thread(lambda: DecisionEngine(read_bundle(kept)))
        return self._earlier


def _unexplainable(decision_id: str, why: str) -> FailedPrecondition:
    return FailedPrecondition(
        "NOT_EXPLAINABLE",
        f"decision '{decision_id}' can no longer be explained: {why}",
        metadata={"decision_id": decision_id},
    )
