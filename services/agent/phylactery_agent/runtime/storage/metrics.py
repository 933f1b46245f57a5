"""What the agent tells about itself: how turns end and how long they take, what waits, what is lost and done again.

No attribute holds a text, an id or a name a person or a model chose: only words from lists of ours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Final, get_args

import sqlalchemy as sa
from opentelemetry.metrics import CallbackOptions, Observation
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.telemetry import Ratio, meter
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.effects.outbox import OutboxKind
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.storage.schema import ACTIVE, INBOX, OUTBOX, RUNS, TOOL_CALLS
from phylactery_agent.tools.registry import TOOL_REGISTRY

SLO_MS: Final = {"text_fast_path": 2_000.0}
"""How long a turn may take end to end, by pathway; a turn that takes as long or longer counts."""

_SECONDS: Final = (0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600, 86_400)
"""A run may wait for a person for a day."""

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
    semconv.SLA_ROUTE_DECISION_MS, unit="ms", description="from a message to the choice of how it is served"
)
_typing_ms = meter().create_histogram(
    semconv.SLA_TYPING_START_MS, unit="ms", description="from a message to the first event a client can be sent"
)
_end_ms = meter().create_histogram(
    semconv.SLA_END_TO_END_MS, unit="ms", description="from a message to the durable answer"
)
_violations = meter().create_counter(
    semconv.SLA_VIOLATIONS, unit="{turn}", description="turns that took longer than their pathway may"
)
_failures = Ratio()
meter().create_observable_gauge(
    semconv.SLA_ERROR_RATE, [_failures.observe], unit="1", description="failed turns among all, since the start"
)


class TurnTimes:
    """What one turn tells: made when it is claimed, told when it routes, is heard of, and ends."""

    def __init__(self, clock: Clock, *, graph: str, created_us: int, run_created_us: int, attempt: int) -> None:
        self._clock, self._graph = clock, graph
        self._created_us, self._run_created_us = created_us, run_created_us
        self._routed = self._told = False
        self.pathway = "unknown"
        """How the message is served, once that is known."""
        if attempt > 1:
            _turn_retries.add(1, {semconv.GEN_AI_AGENT: graph})

    @classmethod
    def of(cls, clock: Clock, claim: Claim) -> TurnTimes:
        """Return those of a claimed turn."""
        return cls(
            clock,
            graph=claim.run.graph,
            created_us=claim.turn.created_us,
            run_created_us=claim.run.created_us,
            attempt=claim.attempt,
        )

    def routed(self) -> None:
        """Note that a node has ended: the first one says how the turn is served."""
        if not self._routed:
            self._routed = True
            _route_ms.record(self._since(self._created_us), {semconv.PATHWAY: self.pathway})

    def told(self) -> None:
        """Note that events of the turn can be sent: the first one shows the person that something happens."""
        if not self._told:
            self._told = True
            _typing_ms.record(self._since(self._created_us), {semconv.PATHWAY: self.pathway})

    def lease_lost(self) -> None:
        """Note that another process may be serving the run."""
        _lease_losses.add(1, {semconv.GEN_AI_AGENT: self._graph})

    def ended(self, status: str, reason: str) -> None:
        """Note how the turn ended, durably."""
        taken, pathway = self._since(self._created_us), {semconv.PATHWAY: self.pathway}
        about = {semconv.GEN_AI_AGENT: self._graph, semconv.RUN_STATUS: status}
        _turns.add(1, {**about, semconv.FINISH_REASON: reason})
        _end_ms.record(taken, {**pathway, semconv.RUN_STATUS: status})
        if taken >= SLO_MS.get(self.pathway, float("inf")):
            _violations.add(1, pathway)
        _failures.count(hit=status in {"failed", "dead"})
        if status not in ACTIVE:
            _run_seconds.record(self._since(self._run_created_us) / 1_000, about)

    def _since(self, begun_us: int) -> float:
        """Return milliseconds; another process' clock may be ahead, and no time is less than none."""
        return max(0, self._clock.now_us() - begun_us) / 1_000


def run_cancelled(graph: str, seconds: float) -> None:
    """Count a run that waited for a person and was ended without a turn."""
    about = {semconv.GEN_AI_AGENT: graph, semconv.RUN_STATUS: "cancelled"}
    _turns.add(1, {**about, semconv.FINISH_REASON: "CANCELLED"})
    _run_seconds.record(max(0.0, seconds), about)


def run_retried(graph: str) -> None:
    """Count a run that was begun once more."""
    _run_retries.add(1, {semconv.GEN_AI_AGENT: graph})


def tool_call(tool: str, state: str) -> None:
    """Count a tool call that came to stand in a state. A name nobody registered may be a model's own words."""
    name = tool if tool in TOOL_REGISTRY else semconv.OTHER
    _tool_calls.add(1, {semconv.GEN_AI_TOOL: name, semconv.TOOL_CALL_STATE: state})


_watched: list[Database] = []


def watch(database: Database) -> Callable[[], None]:
    """Let the gauges of what waits read this database, and return what ends that.

    Agents that share a database each tell the same numbers: look at their greatest, not at their sum.
    """
    _watched.append(database)
    return lambda: _watched.remove(database)


def _gauge(name: str, unit: str, description: str, read: Callable[[Connection], Iterable[Observation]]) -> None:
    """Make a gauge of what a read of each database answers."""

    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        found: list[Observation] = []
        for database in tuple(_watched):
            with contextlib.suppress(DomainError):  # health tells that the store is away; nobody knows the number
                found += database.read_sync(read)
        return found

    meter().create_observable_gauge(name, [observe], unit=unit, description=description)


def _count(*conditions: sa.ColumnElement[bool]) -> Callable[[Connection], Iterable[Observation]]:
    query = sa.select(sa.func.count()).where(*conditions)
    return lambda connection: [Observation(connection.execute(query).scalar_one())]


def _outbox(connection: Connection) -> Iterable[Observation]:
    """Return how much waits of each kind, those of which nothing waits included."""
    counted = sa.select(OUTBOX.c.kind, sa.func.count().label("depth"))
    query = counted.where(OUTBOX.c.state == "waiting").group_by(OUTBOX.c.kind)
    waiting = {row.kind: row.depth for row in connection.execute(query)}
    kinds = dict.fromkeys((*get_args(OutboxKind), *waiting))
    return [Observation(waiting.get(kind, 0), {semconv.OUTBOX_KIND: kind}) for kind in kinds]


_gauge(
    semconv.AGENT_QUEUE_DEPTH,
    "{turn}",
    "messages that are not answered yet, those being served included",
    _count(INBOX.c.state == "waiting"),
)
_gauge(
    semconv.AGENT_APPROVALS_WAITING,
    "{run}",
    "runs that wait for a person's approval",
    _count(RUNS.c.status == "suspended", RUNS.c.approval_id != ""),
)
_gauge(
    semconv.AGENT_EFFECTS_IN_DOUBT,
    "{call}",
    "effects nobody can say the end of: each waits for a person",
    _count(TOOL_CALLS.c.state == "in_doubt"),
)
_gauge(
    semconv.AGENT_OUTBOX_DEPTH,
    "{parcel}",
    "what other services have not been told yet, by kind",
    _outbox,
)
