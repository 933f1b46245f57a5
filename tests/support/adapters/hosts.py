"""What the ten cases need of a framework: a scripted model, tools that count their effects, and a resume."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Proposal:
    """A call the scripted model makes."""

    tool: str
    arguments: dict[str, Any]
    id: str


@dataclass(frozen=True)
class Turn:
    """Where a run stands: the approvals it waits for, and what the model was shown of each call that ended."""

    waiting: tuple[str, ...]
    seen: tuple[str, ...]
    state: Any = field(default=None, repr=False)
    """What the framework resumes from; it may be resumed more than once."""


@dataclass
class Tools:
    """The tools every host has; writes are counted, and read_file returns what the test says."""

    content: str = "All agreed."
    written: list[dict[str, Any]] = field(default_factory=list)

    def read_file(self, path: str) -> str:
        """Read a file."""
        return self.content

    def write_file(self, path: str, content: str, append: bool = False) -> str:
        """Write a file."""
        self.written.append({"path": path, "content": content, "append": append})
        return f"wrote {path}"


class Host(ABC):
    """An agent of one framework under RiskGate."""

    def __init__(self, target: str, subject: str, thread_id: str, tools: Tools) -> None:
        self.target, self.subject, self.thread_id, self.tools = target, subject, thread_id, tools
        self.connection = {"subject": subject, "retry_seconds": 0.5}

    @abstractmethod
    async def start(self, words: str, proposals: Sequence[Proposal]) -> Turn:
        """Serve a request whose model makes these calls one after the other, and then answers."""

    @abstractmethod
    async def resume(self, turn: Turn, edited: dict[str, Any] | None = None) -> Turn:
        """Go on after a person answered; ``edited`` replaces the arguments of the call that waited."""

    @abstractmethod
    async def close(self) -> None:
        """Close what it opened."""
