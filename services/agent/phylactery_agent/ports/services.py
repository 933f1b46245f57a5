"""The runtime's interface to the other services: one handle per end user, so that every call names its user."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from phylactery_understanding.interpretation.model import Interpretation

from phylactery_agent.ports import (
    CallContext,
    ExecutionReport,
    Gate,
    GateDecision,
    Hydration,
    Inspector,
    Outputs,
    ProposedCall,
    Recalled,
    Remembered,
)
from phylactery_agent.runtime.storage.records import Owner


@dataclass(frozen=True, slots=True)
class TranscriptMessage:
    """One message of memory's transcript; role is user, assistant or tool."""

    id: str
    role: str
    text: str
    run_id: str
    created_us: int
    sequence: int


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """One page, newest first."""

    messages: Sequence[TranscriptMessage]
    next_page_token: str


class Transcript(Protocol):
    """Memory's transcript of one user's threads. Raises MemoryUnavailableError and MemoryRefusedError."""

    async def append(self, thread_id: str, run_id: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Add messages with id, role, text and create_us; existing ones are skipped."""
        ...

    async def delete(self, thread_id: str, request_id: str) -> None:
        """Remove a thread's messages and outputs; idempotent by request_id."""
        ...

    async def page(
        self, thread_id: str, *, page_size: int, page_token: str = "", max_characters: int = 0
    ) -> TranscriptPage:
        """Return one page, newest first; a thread without messages is empty."""
        ...


class UserMemory(Protocol):
    """The memories of one user. Raises MemoryUnavailableError and MemoryRefusedError."""

    async def write(
        self, text: str, *, thread_id: str, message_ids: Sequence[str], valid_us: int, keep: bool, read: bool = False
    ) -> Remembered:
        """Submit a text from the person's messages to the write policy; keep means that storing was requested.

        read means that something was read before: content that is not in the messages then comes from a text, not from
        the person.
        """
        ...

    async def recall(self, query: str, *, limit: int) -> Sequence[Recalled]:
        """Return the memories matching the query, best first; without a query, the newest."""
        ...

    async def forget(self, memory_id: str, *, restore: bool = False) -> bool:
        """Forget a memory, and with restore make valid again what it had superseded; False if there is none."""
        ...

    async def hydrate(self, thread_id: str, *, pathway: str, query: str, max_messages: int) -> Hydration:
        """Return the context for a turn on this pathway, in one call: window, relevant memories, profile."""
        ...


class TaskGate(Gate, Protocol):
    """RiskGate's interface for the runtime: the graph's Gate, and task management.

    The graph never sees this part, so nothing a model proposes can name a task or state where a value comes from.
    """

    async def begin_task(
        self,
        request_id: str,
        *,
        thread_id: str,
        words: str,
        continues: str,
        own_spans: Sequence[tuple[int, int]] | None = None,
        message_starts: Sequence[int] = (),
        interpretation: Interpretation | None = None,
    ) -> str:
        """Open a task with the user's words and return its id; idempotent by request_id and words.

        own_spans are the parts of the words that they wrote themselves, None for all, and message_starts the offsets at
        which a further message begins.

        interpretation is a model's reading of the words, which RiskGate checks; the first one submitted counts.
        continues names the task whose words still apply, empty if these are self-contained. Raise GateUnavailableError,
        and GateRefusedError with TASK_NOT_FOUND if that task is over.
        """
        ...

    async def observe(self, shown: Mapping[str, Any]) -> None:
        """Submit the result of a tool call, in the form of tasks.observation; idempotent.

        Raise GateUnavailableError, GateRefusedError.
        """
        ...

    async def end_task(self, task_id: str, *, keep_seconds: int = 0) -> None:
        """End a task; one that is already over is not an error. Others may continue it for keep_seconds.

        Raise GateUnavailableError, GateRefusedError.
        """
        ...

    async def evaluate(self, call: ProposedCall, where: CallContext, *, task_id: str = "") -> GateDecision:
        """Request a decision about a call of a task."""
        ...

    async def report_outcome(self, report: ExecutionReport) -> None:
        """Record how an execution ended; idempotent. Raise GateUnavailableError, GateRefusedError."""
        ...

    async def report_told(self, execution_ids: Sequence[str]) -> None:
        """Record that the person was told of effects that ran without a question; idempotent.

        Raise GateUnavailableError, GateRefusedError.
        """
        ...


class Approvals(Protocol):
    """One user's approvals at RiskGate. Raises GateUnavailableError and GateRefusedError."""

    async def withdraw(self, run_ids: Collection[str], *, reason: str) -> None:
        """Withdraw every open approval requested by these runs; one that closes meanwhile is not an error."""
        ...

    def watch(self) -> AsyncIterator[str]:
        """Yield the id of each approval that changes; an empty id means that all later changes will be reported.

        End when RiskGate stops.
        """
        ...


Level: TypeAlias = Callable[[], Awaitable[str]]
"""Returns the user's level now."""


class Services(Protocol):
    """Factory of the handles."""

    def gate(self, owner: Owner, level: Level | None = None) -> TaskGate:
        """Return RiskGate on behalf of the user; ``level`` is read at each Evaluate and Redeem, and told with it."""
        ...

    def approvals(self, owner: Owner) -> Approvals:
        """Return the user's approvals at RiskGate."""
        ...

    def inspector(self, owner: Owner) -> Inspector:
        """Return RiskGate's inspection of text on behalf of the user."""
        ...

    def outputs(self, owner: Owner) -> Outputs:
        """Return memory's outputs on behalf of the user."""
        ...

    def transcript(self, owner: Owner) -> Transcript:
        """Return memory's transcript on behalf of the user."""
        ...

    def memories(self, owner: Owner) -> UserMemory:
        """Return the user's memories."""
        ...
