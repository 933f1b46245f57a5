"""Shadow mode: a second bundle evaluates calls after the live one has answered; only differences are reported.

It changes no answer, raises nothing to a caller, and costs at most one more decision per call. Calls beyond its
capacity are skipped and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.jobs import Work
from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.instruments import meter, start_at_zero
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.domain.model import CallSite, RawCall, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import TaskReader

MAX_WAITING = 256
MAX_RECORDS_PER_MINUTE = 60
"""Limit for a bundle that differs on every call: further differences are only counted and logged."""

_MINUTE_US = 60_000_000
_log = get_logger("shadow")
_differences = start_at_zero(
    meter().create_counter(
        "riskgate.shadow.differences", unit="{call}", description="calls that the shadow bundle decides differently"
    )
)


class Recorder(Protocol):
    """The part of DecisionContext that decides and records; that module imports this one."""

    @property
    def clock(self) -> Clock:
        """Return the clock of records."""

    async def decide(
        self,
        engine: DecisionEngine,
        who: Principal,
        call: RawCall,
        site: CallSite,
        approved: frozenset[str],
        *,
        task: TaskReader | None = None,
    ) -> Verdict:
        """Decide about a call, with the facts its task provides."""

    async def write(self, work: Work[object]) -> object:
        """Run work durably."""

    def note(self, connection: Connection, kind: Kind, who: Principal, now_us: int, body: Mapping[str, Any]) -> object:
        """Append an entry to the audit log of this instance."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One call the live bundle has decided: its inputs and its outcome.

    decision_id identifies its record, under the name ``named``. ``task`` computes the task facts of the call for any
    catalog.
    """

    who: Principal
    call: RawCall
    site: CallSite
    approved: frozenset[str]
    decision_id: str
    revision: int
    outlook: tuple[str, str]
    named: str = "decision_id"
    task: TaskReader | None = None


class Shadow:
    """The shadow bundle, or none; ``decided``, ``differed`` and ``skipped`` count since it was set."""

    def __init__(self) -> None:
        """Start without a bundle."""
        self._own: DecisionEngine | None = None
        self._engine: DecisionEngine | None = None
        self._followed = ""
        self._waiting: deque[Shown] = deque()
        self._wake = asyncio.Event()
        self._recorded: deque[int] = deque(maxlen=MAX_RECORDS_PER_MINUTE)
        self.decided = self.differed = self.skipped = 0

    @property
    def engine(self) -> DecisionEngine | None:
        """Return the current engine, or None."""
        return self._engine

    def begin_with(self, engine: DecisionEngine) -> None:
        """Set the engine to use while no shadow is activated."""
        self._own = engine
        self.replace(self._engine, self._followed)

    def follows(self, bundle_hash: str) -> bool:
        """Return True if the activated shadow differs from the one followed last."""
        return bundle_hash != self._followed

    def replace(self, engine: DecisionEngine | None, bundle_hash: str) -> None:
        """Use another bundle, or the initial one, as the shadow, and reset the counters."""
        self._engine, self._followed = engine or self._own, bundle_hash
        self._waiting.clear()
        self.decided = self.differed = self.skipped = 0

    def offer(self, shown: Shown) -> None:
        """Queue a decided call, if there is a shadow and room; does nothing else, so it cannot fail."""
        if self._engine is None:
            return
        if len(self._waiting) >= MAX_WAITING:
            self.skipped += 1
            return
        self._waiting.append(shown)
        self._wake.set()

    async def run(self, core: Recorder) -> None:
        """Decide queued calls, forever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting and self._engine is not None:
                try:
                    await self._decide(core, self._engine, self._waiting.popleft())
                except Exception as error:  # noqa: BLE001 - no failure of the shadow may have an effect
                    self.skipped += 1
                    _log.warning("the shadow could not decide", error=type(error).__name__)
                await asyncio.sleep(0)

    async def _decide(self, core: Recorder, engine: DecisionEngine, shown: Shown) -> None:
        verdict = await core.decide(engine, shown.who, shown.call, shown.site, shown.approved, task=shown.task)
        self.decided += 1
        outlook = (str(verdict.decision), verdict.approval_class or "")
        if outlook == shown.outlook:
            return
        self.differed += 1
        _differences.add(1)
        body = {
            shown.named: shown.decision_id,
            "tool": shown.call.tool,
            "bundle_revision": shown.revision,
            "decision": shown.outlook[0],
            "approval_class": shown.outlook[1],
            "shadow_revision": verdict.bundle_revision,
            "shadow_hash": verdict.bundle_hash,
            "shadow_decision": outlook[0],
            "shadow_approval_class": outlook[1],
            "shadow_policy_ids": list(verdict.policy_ids),
        }
        _log.info("shadow decision differs", **body)
        now_us = core.clock.now_us()
        if len(self._recorded) == MAX_RECORDS_PER_MINUTE and now_us - self._recorded[0] < _MINUTE_US:
            return
        self._recorded.append(now_us)
        try:
            await core.write(lambda unit: core.note(unit, Kind.SHADOW_DIFFERENCE, shown.who, now_us, body))
        except DomainError as error:
            _log.warning("a difference of the shadow was not recorded", reason=error.reason)
