"""The capability: every tool call of an agent passes RiskGate, and an approval is a deferred call."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from phylactery_client import Blocked, Guard, GuardedTask, GuardThread, Waits
from phylactery_client.errors import DeadlineError, UnavailableError
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import to_jsonable_python

from phylactery_pydantic_ai.request import Request, request_of, served


class RiskGate(AbstractCapability[Any]):
    """Puts RiskGate in front of an agent's tools.

    target is RiskGate's host:port and connection the options of RiskGateClient (token, subject, credentials, …); guard
    are those of Guard. unguarded names tools without effects of their own, which run unasked; everything else has to be
    in RiskGate's catalog. keep_seconds is how long an ended request may be continued.

    The agent's output_type needs DeferredToolRequests for approvals: a call that waits is one, with what is to be
    approved as its metadata. After a person answered at RiskGate, resume the run with the call as approved; whether it
    is, RiskGate says.
    """

    def __init__(
        self,
        target: str,
        *,
        connection: Mapping[str, Any] | None = None,
        guard: Mapping[str, Any] | None = None,
        unguarded: Collection[str] = (),
        keep_seconds: int = 0,
    ) -> None:
        self._guard = GuardThread(target, connection=connection, **(guard or {}))
        self._unguarded = frozenset(unguarded)
        self._keep_seconds = keep_seconds

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self._guard.close)

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Return the capability of one run."""
        return _RunGate(self._guard, self._unguarded, self._keep_seconds)


class _RunGate(AbstractCapability[Any]):
    """The capability of one run: its request begins with the first tool call."""

    def __init__(self, guard: GuardThread, unguarded: frozenset[str], keep_seconds: int) -> None:
        self.guard, self.unguarded, self.keep_seconds = guard, unguarded, keep_seconds
        self._beginning = asyncio.Lock()
        self._request: Request | None = None
        self._inner = served.get() is not None

    async def request(self, ctx: RunContext[Any]) -> Request:
        """Return the run's request with its task begun, without one while RiskGate is unavailable."""
        async with self._beginning:
            if self._request is None:
                request = request_of(ctx)
                if not self._inner:
                    request = await self.guard.arun(lambda guard: _begin(guard, request))
                self._request = request
            return self._request

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """End the task of a request that is answered, or failed."""
        answered = True
        try:
            result = await handler()
            answered = not isinstance(result.output, DeferredToolRequests)
        finally:
            request = self._request
            if answered and request is not None and request.task_id and not self._inner:
                await self.guard.arun(lambda guard: task_of(guard, request, self.keep_seconds).end())
        return result

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Return the agent's tools behind RiskGate: next to the tool, so that no hook changes what runs."""
        return _GuardedToolset(toolset, self)


@dataclass
class _GuardedToolset(WrapperToolset[Any]):
    gate: _RunGate

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Run a tool call if RiskGate permits it."""
        request = await self.gate.request(ctx)

        async def run(arguments: dict[str, Any]) -> Any:
            token = served.set(request)
            try:
                return await self.wrapped.call_tool(name, arguments, ctx, tool)
            finally:
                served.reset(token)

        if name in self.gate.unguarded:
            return await run(tool_args)

        async def execute(bound: dict[str, Any]) -> Any:
            return await run(tool.args_validator.validate_python(bound))

        try:
            outcome = await self.gate.guard.acall(
                lambda guard: task_of(guard, request),
                name,
                to_jsonable_python(tool_args),
                tool_call_id=ctx.tool_call_id or "",
                execute=execute,
                show=_shown,
            )
        except (ModelRetry, ToolFailed):  # its text is for the model
            if stopped := await self.gate.guard.arun(lambda guard: _stop_of(guard, request)):
                return _not_shown(stopped)
            raise
        if isinstance(outcome, Waits):
            raise ApprovalRequired(metadata=outcome.for_host())
        if isinstance(outcome, Blocked):
            return outcome.message
        return _not_shown(outcome.stopped) if outcome.stopped else outcome.result


def task_of(guard: Guard, request: Request, keep_seconds: int = 0) -> GuardedTask:
    """Return the guarded task of a request."""
    return guard.existing(
        request.task_id, thread_id=request.thread_id, request_id=request.request_id, keep_seconds=keep_seconds
    )


async def _begin(guard: Guard, request: Request) -> Request:
    try:
        task = await guard.begin(request.words, thread_id=request.thread_id, request_id=request.request_id)
    except (UnavailableError, DeadlineError):
        return request
    return replace(request, task_id=task.id)


async def _stop_of(guard: Guard, request: Request) -> str:
    return task_of(guard, request).stopped


def _not_shown(stopped: str) -> str:
    """Return what stands for a result that RiskGate was not shown."""
    return f"The call ran, and its result is not shown: {stopped}."


def _shown(result: Any) -> Any:
    """Return what the model sees of a tool's result. Raise ValueError if that is no JSON."""
    if isinstance(result, ToolReturn):
        value = to_jsonable_python(result.return_value)
        return value if result.content is None else [value, to_jsonable_python(result.content)]
    return to_jsonable_python(result)
