"""The user's request that an agent's run serves, as its messages tell it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeGuard

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    RetryPromptPart,
    TextContent,
    ToolReturnPart,
    UserPromptPart,
)


@dataclass(frozen=True)
class Request:
    """One request of a user: their words, its thread and its run, the same ones when a run is resumed."""

    words: str
    thread_id: str
    request_id: str
    task_id: str = ""


served: ContextVar[Request | None] = ContextVar("phylactery_pydantic_ai_request", default=None)
"""The request for which a tool runs, for agents that are called by tools."""


def request_of(ctx: RunContext[Any]) -> Request:
    """Return the request a run serves.

    What an agent is told by the tool of another was written by a model, so its request is that of the other.
    """
    outer = served.get()
    if outer is not None:
        return outer
    first = _first_of_request(ctx.messages)
    thread_id = ctx.conversation_id or f"no-conversation-{ctx.run_id}"
    run_id = ctx.run_id if first is None else first.run_id
    named = hashlib.sha256(f"{thread_id} {run_id}".encode()).hexdigest()[:40]
    return Request("" if first is None else _words(first), thread_id, f"pa-{named}")


def _first_of_request(messages: Sequence[ModelMessage]) -> ModelRequest | None:
    """Return the message with the user's newest words; None if it cannot be told who wrote them.

    Only the first message of a run holds what the user said. Later ones may hold what tools returned as user content.
    """
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    firsts: dict[str | None, ModelRequest] = {}
    for request in requests:
        firsts.setdefault(request.run_id, request)
    for request in reversed(firsts.values()):
        if any(isinstance(part, UserPromptPart) for part in request.parts):
            mixed = any(isinstance(part, ToolReturnPart | RetryPromptPart) for part in request.parts)
            return None if mixed or request.run_id is None else request
    return None


def _words(request: ModelRequest) -> str:
    contents: list[str] = []
    for part in request.parts:
        if isinstance(part, UserPromptPart):
            pieces = [part.content] if isinstance(part.content, str) else part.content
            contents += [
                piece.content if isinstance(piece, TextContent) else piece for piece in pieces if _is_text(piece)
            ]
    return "\n".join(contents)


def _is_text(piece: Any) -> TypeGuard[str | TextContent]:
    return isinstance(piece, str | TextContent)
