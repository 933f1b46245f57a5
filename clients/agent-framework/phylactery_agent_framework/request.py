"""The user's request as the session's state keeps it, and its beginning and end at RiskGate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Final, TypedDict

from agent_framework import (
    AgentContext,
    AgentMiddleware,
    AgentResponse,
    AgentSession,
    Message,
    MiddlewareFailure,
)
from phylactery_client import Guard, GuardedTask, GuardThread, new_request_id
from phylactery_client.errors import DeadlineError, NotFoundError, UnavailableError

_STATE: Final = "riskgate_request"


class Request(TypedDict):
    """One request of a user: its task at RiskGate (empty without their words), its thread and its run."""

    task_id: str
    thread_id: str
    request_id: str


served: ContextVar[Request | None] = ContextVar("phylactery_agent_framework_request", default=None)
"""The request for which a tool runs, for agents that are tools."""


class RequestMiddleware(AgentMiddleware):
    """Begins a request with the user's words, and ends it when it is answered."""

    def __init__(self, guard: GuardThread, keep_seconds: int) -> None:
        self._guard, self._keep_seconds = guard, keep_seconds

    async def process(self, context: AgentContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Begin the request of a run, or take up the one whose approvals the run answers."""
        if served.get() is not None:  # what an agent is told by another's tool was written by a model
            await call_next()
            return
        session = context.session
        if session is None:
            raise MiddlewareFailure("RiskGate needs the session of the run: pass agent.run(…, session=…)")
        if not _answers(context.messages):
            earlier: Request | None = session.state.get(_STATE)
            session.state[_STATE] = await self._guard.arun(
                lambda guard: self._begin(guard, _words(context.messages), session.session_id, earlier)
            )
        if context.stream:

            async def answered(response: AgentResponse) -> None:
                await self._end(session, response)

            context.stream_result_hooks.append(answered)
            await call_next()
            return
        result: object = None
        try:
            await call_next()
            result = context.result
        finally:
            await self._end(session, result)

    async def _begin(self, guard: Guard, words: str, session_id: str, earlier: Request | None) -> Request:
        """Return a request with its task begun, continuing the earlier one while that is kept.

        While RiskGate is unavailable it has none, so that every call is blocked then, and asked about after that.
        """
        request: Request = {"task_id": "", "thread_id": session_id, "request_id": new_request_id()}

        async def begun(continues: str) -> Request:
            task = await guard.begin(
                words,
                thread_id=session_id,
                request_id=request["request_id"],
                continues_task_id=continues,
            )
            return {**request, "task_id": task.id}

        try:
            if earlier is None or not earlier["task_id"]:
                return await begun("")
            await task_of(guard, earlier, self._keep_seconds).end()
            try:
                return await begun(earlier["task_id"] if self._keep_seconds else "")
            except NotFoundError:  # its time is over
                return await begun("")
        except (UnavailableError, DeadlineError):
            return request

    async def _end(self, session: AgentSession, response: object) -> None:
        """End the task of a request that is answered, failed or stopped."""
        request: Request | None = session.state.get(_STATE)
        waits = isinstance(response, AgentResponse) and bool(response.user_input_requests)
        if request is not None and not (waits and not await stop_of(self._guard, request)):
            await self._guard.arun(lambda guard: task_of(guard, request, self._keep_seconds).end())


def request_of(session: AgentSession | None) -> Request:
    """Return the request that a tool call belongs to. Raise MiddlewareFailure, which ends the run, if there is none."""
    request: Request | None = served.get()
    if request is None and session is not None:
        request = session.state.get(_STATE)
    if request is None:
        raise MiddlewareFailure("the run has no request of a user: give the agent all of RiskGate's middleware")
    return request


def task_of(guard: Guard, request: Request, keep_seconds: int = 0) -> GuardedTask:
    """Return the guarded task of a request."""
    return guard.existing(
        request["task_id"],
        thread_id=request["thread_id"],
        request_id=request["request_id"],
        keep_seconds=keep_seconds,
    )


async def stop_of(guard: GuardThread, request: Request) -> str:
    """Return why the request's task takes no further calls, empty if it does."""

    async def stopped(guard: Guard) -> str:
        return task_of(guard, request).stopped

    return await guard.arun(stopped)


def _answers(messages: Sequence[Message]) -> bool:
    """Return True if the run goes on after an approval."""
    return any(content.type == "function_approval_response" for message in messages for content in message.contents)


def _words(messages: Sequence[Message]) -> str:
    """Return the user's words: the newest message alone, because one before it may have been written by a model."""
    last = messages[-1] if messages else None
    return last.text if last is not None and last.role == "user" else ""
