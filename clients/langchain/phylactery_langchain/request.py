"""The user's request as the graph's state keeps it, and its beginning and end at RiskGate."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Annotated, Any, Final, NotRequired, TypedDict

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.config import get_config
from phylactery_client import Guard, GuardedTask
from phylactery_client.errors import DeadlineError, NotFoundError, UnavailableError

_NESTED: Final = "|"
"""What separates the levels of a checkpoint namespace: a graph within a tool has more than one."""
_SOURCE: Final = "lc_source"
"""What LangChain marks a message with that is in a person's place and was written by a middleware."""


class Request(TypedDict):
    """One request of a user: its task at RiskGate (empty without their words), its thread and its run."""

    task_id: str
    thread_id: str
    request_id: str
    inner: bool
    """Whether it is that of the agent whose tool this agent is."""


class GuardedState(AgentState[Any]):
    """The agent's state with the request it serves, which is neither input nor output."""

    riskgate_request: NotRequired[Annotated[Request, PrivateStateAttr]]


served: ContextVar[Request | None] = ContextVar("phylactery_langchain_request", default=None)
"""The request for which a tool runs, for agents that are tools."""


def request_of_outer_agent() -> Request | None:
    """Return the request of the agent this one works for; None if this one got the user's words itself.

    What an agent is told by another was written by a model, so it is no request of the user's.
    """
    outer = served.get()
    if outer is not None:
        return {**outer, "inner": True}
    within, nested, _ = str(get_config().get("configurable", {}).get("checkpoint_ns", "")).rpartition(_NESTED)
    if nested:
        # the graph's place in the outer one: another one for each time it runs, and the same when it is resumed
        thread_id = _thread_id(_hashed(within))
        named = f"nested-{_hashed(f'{thread_id} {within}')}"
        return {"task_id": "", "thread_id": thread_id, "request_id": named, "inner": True}
    return None


def new_request(messages: Sequence[AnyMessage]) -> tuple[str, Request]:
    """Return the user's words, and the request without its task; the same message is the same request.

    The words are the newest message alone: a human message before it may have been written by a tool or a model.
    """
    last = messages[-1] if messages else None
    said = last if isinstance(last, HumanMessage) and _SOURCE not in last.additional_kwargs else None
    last_id = (last.id if last is not None else "") or ""
    thread_id = _thread_id(last_id)
    named = _hashed(f"{thread_id} {last_id} {len(messages)}")
    request: Request = {"task_id": "", "thread_id": thread_id, "request_id": f"lc-{named}", "inner": False}
    return str(said.text) if said is not None else "", request


async def begin(guard: Guard, words: str, request: Request, earlier: Request | None, keep_seconds: int) -> Request:
    """Return the request with its task begun, continuing the earlier one while that is kept.

    While RiskGate is unavailable it has none, so that every call is blocked then, and asked about after that.
    """

    async def begun(continues: str) -> Request:
        task = await guard.begin(
            words,
            thread_id=request["thread_id"],
            request_id=request["request_id"],
            continues_task_id=continues,
        )
        return {**request, "task_id": task.id}

    try:
        if earlier is None or not earlier["task_id"]:
            return await begun("")
        await end(guard, earlier, keep_seconds)
        try:
            return await begun(earlier["task_id"] if keep_seconds else "")
        except NotFoundError:  # its time is over
            return await begun("")
    except (UnavailableError, DeadlineError):
        return request


async def end(guard: Guard, request: Request, keep_seconds: int) -> None:
    """End the request's task."""
    await task_of(guard, request, keep_seconds).end()


def task_of(guard: Guard, request: Request, keep_seconds: int = 0) -> GuardedTask:
    """Return the guarded task of a request."""
    return guard.existing(
        request["task_id"],
        thread_id=request["thread_id"],
        request_id=request["request_id"],
        keep_seconds=keep_seconds,
    )


async def stop_of(guard: Guard, request: Request) -> str:
    """Return why the request's task takes no further calls, empty if it does."""
    return task_of(guard, request).stopped


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:40]


def _thread_id(otherwise: str) -> str:
    configurable = get_config().get("configurable", {})
    return str(configurable.get("thread_id") or f"no-thread-{otherwise}")
