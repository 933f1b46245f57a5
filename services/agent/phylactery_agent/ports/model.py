"""A language model as the graphs see it: a conversation in, words and proposed tool calls out.

Nothing here can run a tool: what a model answers is a proposal, and RiskGate decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


class ModelUnavailableError(Exception):
    """No endpoint answered, or none could be understood; the graph goes on in static mode. Holds a stable reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class ModelBudgetError(Exception):
    """The run has used what it may: MODEL_CALL_LIMIT, TOKEN_LIMIT or MONEY_LIMIT; nothing was asked."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ModelTool:
    """One tool a model may propose: its name, what it does, and the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One tool call a model proposes. arguments is None where its text is no JSON object; raw is that text.

    id is made by us and unique in the run, whatever the endpoint calls it: a ledger may be keyed by it.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str


@dataclass(frozen=True, slots=True)
class ModelMessage:
    """One message of the conversation; tool_calls belong to the assistant, tool_call_id to a tool's answer."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ModelCall, ...] = ()
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model answered, and what it took: tokens, and money in millionths of the configured currency."""

    text: str
    calls: tuple[ModelCall, ...]
    finish_reason: str
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_micros: int = 0


class Model(Protocol):
    """The model of one run. Raises ModelUnavailableError, ModelBudgetError, LeaseLostError, RunCancelledError."""

    def is_news(self, reason: str) -> bool:
        """Return whether the person was not told yet, in another turn, that the model is away for this reason."""
        ...

    async def reply(
        self,
        messages: Sequence[ModelMessage],
        *,
        key: str,
        tools: Sequence[ModelTool] = (),
        on_text: Callable[[str], Awaitable[None]] | None = None,
        keep: bool = True,
    ) -> ModelReply:
        """Return the conversation. key names the call in the run: a node that runs again gets the same reply unpaid.

        A key that comes back with another conversation is asked anew, and paid. on_text is given the text so far,
        whole, each time it grew; a reply that is tried again begins anew. Without keep nothing of the reply is stored
        (a turn that is not to be stored), and a node that runs again pays again.
        """
        ...
