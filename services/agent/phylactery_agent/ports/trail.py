"""The trail: which nodes a run executed, for people to look at. Nothing is ever decided by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class NodeStep:
    """One node that ran to its end; nodes of one superstep share its graph_step, which is LangGraph's own count."""

    node: str
    graph_step: int
    started_us: int
    duration_us: int
    next_nodes: tuple[str, ...]
    """Where the graph goes from there; empty at the end of the turn."""
    tool_call_id: str = ""
    finish_reason: str = ""


class Trail(Protocol):
    """What the runtime keeps of the nodes of one turn: it is stored with the checkpoint they lead to, or not at all."""

    def begin(self) -> None:
        """Says that a node begins. Raises what stops the run before it does."""
        ...

    def now_us(self) -> int:
        """Answers the time, in microseconds since the epoch."""
        ...

    def note(self, step: NodeStep) -> None:
        """Takes a node that ended."""
        ...


class NoTrail:
    """A trail that keeps nothing, for graphs that run without the runtime."""

    def begin(self) -> None:
        """Lets every node begin."""

    def now_us(self) -> int:
        """Answers 0: nobody reads it."""
        return 0

    def note(self, step: NodeStep) -> None:
        """Keeps nothing."""
