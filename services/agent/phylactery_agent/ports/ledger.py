"""The graph's interface to the effect ledger of one run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from phylactery_agent.ports.effects import EffectState
from phylactery_agent.ports.gate import BoundCall, ProposedCall


class LeaseLostError(Exception):
    """Error for a lost lease: another process holds the run, so this one stops at once and writes nothing more."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One effect in the ledger. permit and output stay inside the agent's own database."""

    tool_call_id: str
    tool: str
    state: EffectState
    execution_id: str = ""
    effect_key: str = ""
    args_hash: str = ""
    content_hash: str = ""
    """The file that the call may send or replace, as it was when it was proposed: see ProposedCall."""
    output_hash: str = ""
    """The SHA-256 of the output, with its prefix; empty if there is none."""
    status: str = ""
    error_code: str = ""
    output: str | None = field(default=None, repr=False)


class Ledger(Protocol):
    """The effect ledger of one run. Every write checks the lease's fence; a stale one raises LeaseLostError."""

    async def find(self, tool_call_id: str) -> LedgerRow | None:
        """Return the row of this proposal, if there is one."""
        ...

    async def calls(self) -> Sequence[LedgerRow]:
        """Return every call of the run without its output, oldest first."""
        ...

    async def done_before(self) -> Collection[str]:
        """Return the tools that succeeded in other runs of the conversation."""
        ...

    async def propose(self, call: ProposedCall, *, plan_step: str) -> None:
        """Write the proposal; idempotent, and the first content_hash stays.

        Another call under the same id is an internal error (bug) and raises.
        """
        ...

    async def deny(self, tool_call_id: str, *, error_code: str) -> None:
        """Record that the call was blocked, rejected or expired."""
        ...

    async def start(
        self,
        tool_call_id: str,
        *,
        execution_id: str,
        effect_key: str,
        bound: BoundCall,
        stakes: str = "",
        low_stakes: bool = False,
    ) -> None:
        """Commit that the effect is about to be redeemed and run.

        An effect of low stakes can be undone. The person is told of one that nothing else allowed (low_stakes).
        """
        ...

    async def finish(
        self,
        tool_call_id: str,
        *,
        arguments_json: str,
        status: Literal["success", "error"],
        output: str,
        error_code: str,
        low_stakes: bool = False,
        not_done: bool = False,
    ) -> None:
        """Commit the result of a call with these bound arguments; not_done is for an error that certainly did nothing.

        The same transaction queues the messages to RiskGate: the report, and the whole result for the task.
        """
        ...

    async def doubt(self, tool_call_id: str, *, error_code: str) -> None:
        """Commit that the outcome of the effect is unknown, and queue that report."""
        ...

    async def evicted(self, tool_call_id: str, *, pointer: str, size_chars: int) -> None:
        """Record that memory now holds the output, and drop the ledger's own copy."""
        ...

    async def check_fence(self) -> bool:
        """Return True if the run was not cancelled. Raise LeaseLostError unless this process still holds it."""
        ...
