"""Metrics of the agent: outcomes and durations of turns, queue depths, lost leases and retries.

No attribute holds a text, an id or a name that a person or a model chose: only words from fixed lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, get_args

import sqlalchemy as sa
from opentelemetry.metrics import Observation
from phylactery_chassis.db.gauges import StoreGauges
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.instruments import each, meter, start_at_zero
from phylactery_chassis.telemetry.telemetry import Ratio
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_agent.ports import EffectState
from phylactery_agent.ports.handoff import EscalationPolicy
from phylactery_agent.runtime.effects.outbox import OutboxKind
from phylactery_agent.runtime.runs.status import ACTIVE, RunStatus
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.storage.schema import (
    ESCALATIONS,
    INBOX,
    IS_IN_DOUBT,
    IS_UNENDED,
    OUTBOX,
    RUNS,
    TOOL_CALLS,
)
from phylactery_agent.runtime.turn import canned_replies
from phylactery_agent.tools.registry import BUILTIN, ToolRegistry

SLO_MS: Final = {"text_fast_path": 2_000.0}
"""Maximum end-to-end time of a turn in milliseconds, by pathway; a turn that reaches it is a violation."""

_SECONDS: Final = (0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600, 86_400)
"""Histogram boundaries, up to a day: a run may wait that long for a person."""
_SLA_MS: Final = (5, 10, 25, 50, 75, 100, 250, 500, 750, 1_000, 2_000, 2_500, 5_000, 7_500, 10_000, 30_000, 60_000)
"""Histogram boundaries of a turn; the target is one of them, so that a percentile near it is exact."""

_turns = meter().create_counter(
    semconv.AGENT_TURNS, unit="{turn}", description="turns that ended, by status and reason"
)
_run_seconds = meter().create_histogram(
    semconv.AGENT_RUN_DURATION,
    unit="s",
    description="from the message that opened a run to its end, waiting included",
    explicit_bucket_boundaries_advisory=_SECONDS,
)
_lease_losses = meter().create_counter(semconv.AGENT_LEASE_LOSSES, unit="{lease}", description="turns whose lease went")
_turn_retries = meter().create_counter(semconv.AGENT_TURN_RETRIES, unit="{attempt}", description="turns served again")
_run_retries = meter().create_counter(semconv.AGENT_RUN_RETRIES, unit="{run}", description="runs begun once more")
_tool_calls = meter().create_counter(
    semconv.AGENT_TOOL_CALLS, unit="{call}", description="tool calls that came to stand in a state"
)
_route_ms = meter().create_histogram(
    semconv.SLA_ROUTE_DECISION_MS,
    unit="ms",
    description="from a message to the choice of how it is served",
    explicit_bucket_boundaries_advisory=_SLA_MS,
)
_typing_ms = meter().create_histogram(
    semconv.SLA_TYPING_START_MS,
    unit="ms",
    description="from a message to the first event a client can be sent",
    explicit_bucket_boundaries_advisory=_SLA_MS,
)
_end_ms = meter().create_histogram(
    semconv.SLA_END_TO_END_MS,
    unit="ms",
    description="from a message to the durable answer",
    explicit_bucket_boundaries_advisory=_SLA_MS,
)
_violations = meter().create_counter(
    semconv.SLA_VIOLATIONS, unit="{turn}", description="turns that took longer than their pathway may"
)
_escalations = meter().create_counter(
    semconv.AGENT_ESCALATIONS, unit="{escalation}", description="conversations for which a person was called"
)
_claim_seconds = meter().create_histogram(
    semconv.AGENT_ESCALATION_CLAIM_TIME,
    unit="s",
    description="from calling a person to the first claim",
    explicit_bucket_boundaries_advisory=_SECONDS,
)
start_at_zero(_violations, each({semconv.PATHWAY: SLO_MS}))
start_at_zero(_escalations, each({semconv.ESCALATION_POLICY: get_args(EscalationPolicy)}))
_failures = Ratio()
meter().create_observable_gauge(
    semconv.SLA_ERROR_RATE, [_failures.observe], unit="1", description="failed turns among all, since the start"
)


_UNKNOWN_TO_RISKGATE: Final = ("NOT_PINNED", "DESCRIPTION_CHANGED", "SCHEMA_DIFFERS", "NOT_IN_CATALOG")
_ENDINGS: Final = (
    (RunStatus.DONE, "ANSWERED"),
    (RunStatus.SUSPENDED, "AWAITING_APPROVAL"),
    (RunStatus.CANCELLED, canned_replies.CANCELLED),
    (RunStatus.DEAD, canned_replies.TOO_MANY_ATTEMPTS),
    (RunStatus.FAILED, "EFFECT_IN_DOUBT"),
    *((RunStatus.FAILED, reason) for reason in canned_replies.REASONS),
)
"""How a turn usually ends, and every way in which it fails."""


def begin(graphs: Iterable[str], tools: ToolRegistry) -> None:
    """Export as 0 what is counted by graph and by tool, before the first turn."""
    by_graph = [{semconv.GEN_AI_AGENT: graph} for graph in graphs]
    for counter in (_lease_losses, _turn_retries, _run_retries):
        start_at_zero(counter, by_graph)
    start_at_zero(
        _turns,
        (
            {**graph, semconv.RUN_STATUS: status, semconv.FINISH_REASON: reason}
            for graph in by_graph
            for status, reason in _ENDINGS
        ),
    )
    # a tool of an MCP server has its name from there, and counts by it only once RiskGate's catalog has it
    own = (name for name in tools if tools.source_of(name) == BUILTIN)
    start_at_zero(_tool_calls, each({semconv.GEN_AI_TOOL: [*own, semconv.OTHER], semconv.TOOL_CALL_STATE: EffectState}))


class TurnTimes:
    """Metrics of one turn, created at its claim and updated when it is routed, first becomes visible, and ends."""

    def __init__(self, clock: Clock, *, graph: str, created_us: int, run_created_us: int, attempt: int) -> None:
        self._clock, self._graph = clock, graph
        self._created_us, self._run_created_us = created_us, run_created_us
        self._routed = self._told = False
        self.pathway = "unknown"
        """The message's pathway, once it is known."""
        if attempt > 1:
            _turn_retries.add(1, {semconv.GEN_AI_AGENT: graph})

    @classmethod
    def of(cls, clock: Clock, claim: Claim) -> TurnTimes:
        """Return the metrics of a claimed turn."""
        return cls(
            clock,
            graph=claim.run.graph,
            created_us=claim.turn.created_us,
            run_created_us=claim.run.created_us,
            attempt=claim.attempt,
        )

    def routed(self) -> None:
        """Record that a node ended: the first one decides how the turn is served."""
        if not self._routed:
            self._routed = True
            _route_ms.record(self._since(self._created_us), {semconv.PATHWAY: self.pathway})

    def told(self) -> None:
        """Record that events of the turn can be sent: the first one is the first visible sign of progress."""
        if not self._told:
            self._told = True
            _typing_ms.record(self._since(self._created_us), {semconv.PATHWAY: self.pathway})

    def lease_lost(self) -> None:
        """Record that another process may be serving the run."""
        _lease_losses.add(1, {semconv.GEN_AI_AGENT: self._graph})

    def ended(self, status: str, reason: str) -> None:
        """Record how the turn ended, after that is durable."""
        taken, pathway = self._since(self._created_us), {semconv.PATHWAY: self.pathway}
        about = {semconv.GEN_AI_AGENT: self._graph, semconv.RUN_STATUS: status}
        _turns.add(1, {**about, semconv.FINISH_REASON: reason})
        _end_ms.record(taken, {**pathway, semconv.RUN_STATUS: status})
        if taken >= SLO_MS.get(self.pathway, float("inf")):
            _violations.add(1, pathway)
        _failures.count(hit=status in {RunStatus.FAILED, RunStatus.DEAD})
        if status not in ACTIVE:
            _run_seconds.record(self._since(self._run_created_us) / 1_000, about)

    def _since(self, begun_us: int) -> float:
        """Return the elapsed milliseconds, at least 0: another process's clock may be ahead."""
        return max(0, self._clock.now_us() - begun_us) / 1_000


def run_cancelled(graph: str, seconds: float) -> None:
    """Count a run that waited for a person and was ended without a turn."""
    about = {semconv.GEN_AI_AGENT: graph, semconv.RUN_STATUS: RunStatus.CANCELLED}
    _turns.add(1, {**about, semconv.FINISH_REASON: "CANCELLED"})
    _run_seconds.record(max(0.0, seconds), about)


def escalation_opened(policy: str) -> None:
    """Count a conversation for which a person was called."""
    _escalations.add(1, {semconv.ESCALATION_POLICY: policy})


def escalation_claimed(policy: str, seconds: float) -> None:
    """Record the first claim of an escalation, after that is durable."""
    _claim_seconds.record(max(0.0, seconds), {semconv.ESCALATION_POLICY: policy})


def run_retried(graph: str) -> None:
    """Count a retried run."""
    _run_retries.add(1, {semconv.GEN_AI_AGENT: graph})


def tool_call(tool: str, state: str, tools: ToolRegistry) -> None:
    """Count a tool call that entered a state.

    A name that is not registered, or that RiskGate's catalog does not have, is not recorded: it may be a model's own
    words, or an MCP server's, which may name as many tools as it likes.
    """
    known = tool in tools and tools.disabled_reason(tool) not in _UNKNOWN_TO_RISKGATE
    _tool_calls.add(1, {semconv.GEN_AI_TOOL: tool if known else semconv.OTHER, semconv.TOOL_CALL_STATE: state})


_gauges = StoreGauges()
watch = _gauges.watch


def _count(table: sa.Table, *conditions: sa.ColumnElement[bool]) -> Callable[[Connection, int], Iterable[Observation]]:
    query = sa.select(sa.func.count()).select_from(table).where(*conditions)
    return lambda connection, _now_us: [Observation(connection.execute(query).scalar_one())]


def _outbox(connection: Connection, _now_us: int) -> Iterable[Observation]:
    """Return the number of waiting rows per kind, including kinds with none."""
    counted = sa.select(OUTBOX.c.kind, sa.func.count().label("depth"))
    query = counted.where(OUTBOX.c.state == "waiting").group_by(OUTBOX.c.kind)
    waiting = {row.kind: row.depth for row in connection.execute(query)}
    kinds = dict.fromkeys((*get_args(OutboxKind), *waiting))
    return [Observation(waiting.get(kind, 0), {semconv.OUTBOX_KIND: kind}) for kind in kinds]


def _open_escalations(connection: Connection, _now_us: int) -> Iterable[Observation]:
    """Return the number of escalations that have not ended, per policy and state."""
    counted = sa.select(ESCALATIONS.c.policy, ESCALATIONS.c.status, sa.func.count().label("number"))
    rows = connection.execute(counted.where(IS_UNENDED).group_by(ESCALATIONS.c.policy, ESCALATIONS.c.status))
    found = {(row.policy, row.status): row.number for row in rows}
    every = [(policy, status) for policy in get_args(EscalationPolicy) for status in ("open", "claimed")]
    return [
        Observation(found.get(one, 0), {semconv.ESCALATION_POLICY: one[0], semconv.ESCALATION_STATE: one[1]})
        for one in every
    ]


_gauges.create_gauge(
    semconv.AGENT_ESCALATIONS_OPEN,
    "{escalation}",
    "conversations that wait for a person (open) or are with one (claimed), by policy",
    _open_escalations,
)
_gauges.create_gauge(
    semconv.AGENT_QUEUE_DEPTH,
    "{turn}",
    "messages that are not answered yet, those being served included",
    _count(INBOX, INBOX.c.state == "waiting"),
)
_gauges.create_gauge(
    semconv.AGENT_APPROVALS_WAITING,
    "{run}",
    "runs that wait for a person's approval",
    _count(RUNS, RUNS.c.status == RunStatus.SUSPENDED, RUNS.c.approval_id != ""),
)
_gauges.create_gauge(
    semconv.AGENT_EFFECTS_IN_DOUBT,
    "{call}",
    "effects with unknown outcome: each waits for a person",
    _count(TOOL_CALLS, IS_IN_DOUBT),
)
_gauges.create_gauge(
    semconv.AGENT_OUTBOX_DEPTH,
    "{message}",
    "outbox messages not yet delivered to RiskGate and memory, by kind",
    _outbox,
)
