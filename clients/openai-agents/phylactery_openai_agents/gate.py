"""The gate: every guarded tool of an agent passes RiskGate, and an approval interrupts the run."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper, RunHooks, RunState, Tool, ToolOutputText, UserError
from agents.tool import (
    ToolOriginType,
    get_function_tool_origin,
    resolve_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext
from phylactery_client import Blocked, Guard, GuardThread, Waits, new_request_id
from phylactery_client.errors import PhylacteryError
from pydantic_core import to_jsonable_python

from phylactery_openai_agents.request import Request, current_request


class RiskGate:
    """Puts RiskGate in front of an agent's tools.

    target is RiskGate's host:port and connection the options of RiskGateClient (token, subject, credentials, …); guard
    are those of Guard. unguarded names tools without effects of their own, which run unasked; every other has to be in
    RiskGate's catalog. Give the agent ``tools(…)``, the runner ``hooks``, and run it in a ``request(…)``.
    """

    def __init__(
        self,
        target: str,
        *,
        connection: Mapping[str, Any] | None = None,
        guard: Mapping[str, Any] | None = None,
        unguarded: Collection[str] = (),
    ) -> None:
        self._guard = GuardThread(target, connection=connection, **(guard or {}))
        self._unguarded = frozenset(unguarded)
        self._guarded: set[str] = set()
        self.hooks: RunHooks[Any] = _OnlyGuarded(self._unguarded)
        """Hooks for the runner, which end a run before it calls a tool that is neither guarded nor ``unguarded``."""

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self._guard.close)

    def request(
        self,
        words: str,
        *,
        thread_id: str,
        request_id: str = "",
        continues_task_id: str = "",
        keep_seconds: int = 0,
    ) -> Request:
        """Return a user's request, to run agents in: ``async with gate.request(…): await Runner.run(…)``.

        words are the user's own, complete and unchanged. The same request_id is the same request, before and after a
        run was interrupted. keep_seconds is how long a later one may continue it by its task_id.
        """
        return Request(
            words,
            thread_id,
            request_id or new_request_id(),
            _guard=self._guard,
            _continues=continues_task_id,
            _keep_seconds=keep_seconds,
        )

    def tools(self, tools: Iterable[Tool]) -> list[Tool]:
        """Return tools that pass RiskGate; those of ``unguarded`` stay as they are.

        Raise TypeError for one that the agent does not call itself, or that is an agent: guard that agent's tools.
        """
        return [tool if tool.name in self._unguarded else self._tool(tool) for tool in tools]

    async def waiting(self, state: RunState[Any, Any]) -> list[Waits]:
        """Return what the calls of an interrupted run wait for; those that a person has answered may go on.

        Call it within the run's request, then run the state. Raise PhylacteryError if RiskGate cannot be asked.
        """
        request, found = current_request(), []
        for item in state.get_interruptions():
            name = item.qualified_name or ""
            if name not in self._guarded or item.call_id is None:
                continue
            request.suspend(item.call_id)
            waits = await self.asks(request, name, item.arguments or "", item.call_id)
            if waits is None:
                state.approve(item)
            else:
                found.append(waits)
        return found

    async def asks(
        self, request: Request, tool: str, arguments: Mapping[str, Any] | str, tool_call_id: str
    ) -> Waits | None:
        """Return what a call waits for, None if no person has to answer. Raise PhylacteryError."""

        async def asked(guard: Guard) -> Waits | None:
            return await request.task(guard).asks(tool, arguments, tool_call_id=tool_call_id)

        return await self._guard.arun(asked)

    def _tool(self, tool: Tool) -> Tool:
        if not isinstance(tool, FunctionTool):
            raise TypeError(f"{tool.name} is not called by the agent, so it cannot be guarded")
        origin = get_function_tool_origin(tool)
        if origin is not None and origin.type is ToolOriginType.AGENT_AS_TOOL:
            raise TypeError(f"{tool.name} is an agent: guard that agent's tools, and name this one in unguarded")
        guarded = _Guarded(self, self._guard, tool)
        self._guarded.add(tool.qualified_name)
        # its own needs_approval would ask a person whose answer RiskGate does not know
        return replace(tool, on_invoke_tool=guarded, needs_approval=guarded.needs_approval)


class _Guarded:
    """What a guarded tool does in place of the tool."""

    def __init__(self, gate: RiskGate, guard: GuardThread, tool: FunctionTool) -> None:
        self._gate, self._guard, self._name = gate, guard, tool.qualified_name
        self._tool = replace(tool)  # a copy, whose errors are reported before the model is told of them
        tell = resolve_function_tool_failure_error_function(tool)
        if tell is not None:

            async def told(context: RunContextWrapper[Any], error: Exception) -> str:
                text = tell(context, error)
                raise _Told(await text if inspect.isawaitable(text) else text) from error

            set_function_tool_failure_error_function(self._tool, told)

    async def needs_approval(
        self, _context: RunContextWrapper[Any], arguments: dict[str, Any], tool_call_id: str
    ) -> bool:
        """Return True if a person has to answer; whether the call may run is asked when it is made."""
        request = current_request()
        try:
            waits = await self._gate.asks(request, self._name, arguments, tool_call_id)
        except PhylacteryError:
            return False  # the call says so
        if waits is not None:
            request.suspend(tool_call_id)
        return waits is not None

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        """Run a tool call if RiskGate permits it."""
        request, texts = current_request(), list[str]()

        async def execute(bound: dict[str, Any]) -> Any:
            given = json.dumps(bound)
            try:
                return await self._tool.on_invoke_tool(_with(context, given), given)
            except _Told as told:
                texts.append(told.text)
                raise told.error from None

        try:
            outcome = await self._guard.acall(
                request.task,
                self._name,
                arguments,
                tool_call_id=context.tool_call_id,
                execute=execute,
                show=_shown,
            )
        except Exception:
            request.answered(context.tool_call_id)
            if stopped := await request.stopped():
                return _not_shown(stopped)
            if texts:
                return texts[0]
            raise
        if isinstance(outcome, Waits):
            request.suspend(context.tool_call_id)
            return f"{self._name} was not run: it waits for a person to answer approval {outcome.approval_id}."
        request.answered(context.tool_call_id)
        if isinstance(outcome, Blocked):
            return outcome.message
        return _not_shown(outcome.stopped) if outcome.stopped else outcome.result


class _Told(Exception):
    """A tool's error, and what the model is told of it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    @property
    def error(self) -> BaseException:
        """Return the tool's error."""
        return self.__cause__ or self


class _OnlyGuarded(RunHooks[Any]):
    """Hooks that end a run before it calls a tool that does not pass RiskGate."""

    def __init__(self, unguarded: frozenset[str]) -> None:
        self._unguarded = unguarded

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:
        """Raise UserError for such a tool."""
        passes = isinstance(tool, FunctionTool) and isinstance(tool.on_invoke_tool, _Guarded)
        if not passes and tool.name not in self._unguarded:
            raise UserError(f"{tool.name} was not run: it does not pass RiskGate; give the agent gate.tools([…])")


def _with(context: ToolContext[Any], arguments: str) -> ToolContext[Any]:
    """Return the context of the call with the bound arguments."""
    bound = copy.copy(context)
    bound.tool_arguments = arguments
    if bound.tool_call is not None:
        bound.tool_call = bound.tool_call.model_copy(update={"arguments": arguments})
    return bound


def _not_shown(stopped: str) -> str:
    """Return what stands for a result that RiskGate was not shown."""
    return f"The call ran, and its result is not shown: {stopped}."


def _shown(result: Any) -> Any:
    """Return what the model sees of a tool's result, as JSON where the SDK would make text of it."""
    if isinstance(result, ToolOutputText):
        return result.text
    return to_jsonable_python(result, fallback=str)
