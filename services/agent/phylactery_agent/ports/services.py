"""The other services as the runtime reaches them: one handle per end user, so that no call can forget for whom."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phylactery_understanding.interpretation import Interpretation

from phylactery_agent.ports import Gate, GateDecision, Hydration, Inspector, Outputs, ProposedCall, Recalled, Remembered
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
        """Add messages with id, role, text and create_us; ones that are there already are skipped."""
        ...

    async def delete(self, thread_id: str, request_id: str) -> None:
        """Remove a thread's messages and outputs; the same request_id again removes nothing."""
        ...

    async def page(
        self, thread_id: str, *, page_size: int, page_token: str = "", max_characters: int = 0
    ) -> TranscriptPage:
        """Return one page, newest first; a thread nobody wrote to is empty."""
        ...


class UserMemory(Protocol):
    """What memory remembers about one user. Raises MemoryUnavailableError and MemoryRefusedError."""

    async def write(
        self, text: str, *, thread_id: str, message_ids: Sequence[str], valid_us: int, keep: bool, read: bool = False
    ) -> Remembered:
        """Give the write policy a text of the person, said in those messages; keep says that it was asked for.

        read says that something was read before: what the messages do not hold is then a text's, and nobody's word.
        """
        ...

    async def recall(self, query: str, *, limit: int) -> Sequence[Recalled]:
        """Return what fits the words, best first; without words what was said last."""
        ...

    async def hydrate(self, thread_id: str, *, pathway: str, query: str, max_messages: int) -> Hydration:
        """Return what a turn on this pathway should know, in one call: window, memories that matter, profile."""
        ...


class TaskGate(Gate, Protocol):
    """RiskGate as the runtime reaches it: the graph's Gate, and what it is shown of a task.

    The graph never sees this side of it, so that nothing a model proposes can name a task or say where a value is from.
    """

    async def begin_task(
        self,
        request_id: str,
        *,
        thread_id: str,
        words: str,
        continues: str,
        interpretation: Interpretation | None = None,
    ) -> str:
        """Open a task with the user's own words and return its id; the same request_id and words are the same task.

        interpretation is what a model read in the words, which RiskGate checks; the first one shown counts.
        continues names the task whose words still count, empty where these stand alone. Raise GateUnavailableError,
        GateRefusedError with TASK_NOT_FOUND where that one is over.
        """
        ...

    async def observe(self, shown: Mapping[str, Any]) -> None:
        """Show the result of a tool call, in the form of tasks.observation; the same again changes nothing.

        Raise GateUnavailableError, GateRefusedError.
        """
        ...

    async def end_task(self, task_id: str, *, keep_seconds: int = 0) -> None:
        """End a task; one that is over already is no error. Others may go on from it for keep_seconds.

        Raise GateUnavailableError, GateRefusedError.
        """
        ...

    async def evaluate(
        self,
        call: ProposedCall,
        *,
        thread_id: str,
        run_id: str,
        plan_step: str,
        pathway: str,
        approval_id: str = "",
        task_id: str = "",
    ) -> GateDecision:
        """Ask for a decision about a call of a task."""
        ...


class Approvals(Protocol):
    """One user's approvals at RiskGate. Raises GateUnavailableError and GateRefusedError."""

    async def withdraw(self, run_ids: Collection[str], *, reason: str) -> None:
        """Withdraw every open approval these runs asked for; one that is closed meanwhile is no error."""
        ...

    def watch(self) -> AsyncIterator[str]:
        """Yield the id of each that changes; an empty one says that all that change from then on will be told.

        End where RiskGate stops.
        """
        ...


class Services(Protocol):
    """Makes the handles."""

    def gate(self, owner: Owner) -> TaskGate:
        """Return RiskGate on behalf of the user."""
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
        """Return what memory remembers about the user."""
        ...
