"""The plugin: every tool call of an application passes RiskGate, and an approval is a confirmation of the framework."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.plugins import BasePlugin
from google.adk.sessions import Session
from google.adk.tools import BaseTool, ToolContext
from google.genai import types
from phylactery_client import Blocked, Guard, GuardedTask, GuardThread, Waits
from phylactery_client.errors import DeadlineError, UnavailableError
from pydantic_core import to_jsonable_python

from phylactery_google_adk.request import CONFIRMATION, Request, request_of, served, unanswered_calls


class RiskGatePlugin(BasePlugin):
    """Puts RiskGate in front of the tools of every agent of an application.

    target is RiskGate's host:port and connection the options of RiskGateClient (token, subject, credentials, …); guard
    are those of Guard. unguarded names tools without effects of their own, such as "transfer_to_agent", which run
    unasked; everything else has to be in RiskGate's catalog.

    Put it last in the list of plugins: it runs the tool itself, so that nothing comes between. A call that waits is a
    confirmation of the framework, with what is to be approved as its payload. After a person answered at RiskGate,
    confirm it; whether the call is approved, RiskGate says.
    """

    def __init__(
        self,
        target: str,
        *,
        connection: Mapping[str, Any] | None = None,
        guard: Mapping[str, Any] | None = None,
        unguarded: Collection[str] = (),
    ) -> None:
        super().__init__(name="riskgate")
        self._guard = GuardThread(target, connection=connection, **(guard or {}))
        self._unguarded = frozenset(unguarded)
        self._tasks: dict[str, str] = {}

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self._guard.close)

    async def waiting(self, session: Session) -> list[Waits]:
        """Return what the session's calls wait for that no person has answered yet. Raise PhylacteryError."""
        calls = list(unanswered_calls(session))
        if not calls:
            return []
        request = request_of(session)
        task_id = await self._begin(request)

        async def asked(guard: Guard) -> list[Waits]:
            task = self._task(guard, request, task_id)
            found = [await task.asks(call.name or "", call.args or {}, tool_call_id=call.id or "") for call in calls]
            return [waits for waits in found if waits is not None]

        return await self._guard.arun(asked)

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> types.Content | None:
        """Answer a confirmation with what still waits: the framework would use it up."""
        said = invocation_context.session.events[-1:]  # the context has the words of the request
        if not any(one.name == CONFIRMATION for event in said for one in event.get_function_responses()):
            return None
        waiting = await self.waiting(invocation_context.session)
        if not waiting:
            return None
        return types.Content(role="model", parts=[types.Part(text="\n".join(_told(waits) for waits in waiting))])

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any]:
        """Run a tool call if RiskGate permits it, and return its result; the framework then does not run it."""
        request = request_of(tool_context.session)

        async def run(arguments: dict[str, Any]) -> Any:
            token = served.set(request)
            try:
                return await tool.run_async(args=arguments, tool_context=tool_context)
            finally:
                served.reset(token)

        if tool.name in self._unguarded:
            return _response(tool, await run(tool_args))
        confirmation = tool_context.tool_confirmation
        if confirmation is not None and not confirmation.confirmed:
            return {"error": f"{tool.name} was not run: it was not confirmed."}
        try:
            task_id = await self._begin(request)
        except (UnavailableError, DeadlineError):
            task_id = ""
        outcome = await self._guard.acall(
            lambda guard: self._task(guard, request, task_id),
            tool.name,
            tool_args,
            tool_call_id=tool_context.function_call_id or "",
            execute=run,
            show=to_jsonable_python,
        )
        if isinstance(outcome, Waits):
            tool_context.request_confirmation(hint=outcome.question, payload=outcome.for_host())
            tool_context.actions.skip_summarization = True  # the model is not asked what to do about it
            return {"error": _told(outcome)}
        if isinstance(outcome, Blocked):
            return {"error": outcome.message}
        if outcome.stopped:
            return {"error": f"The call ran, and its result is not shown: {outcome.stopped}."}
        return _response(tool, outcome.result)

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """End the task of a request that is answered; one that waits or was left is kept, and expires."""
        if served.get() is not None:
            return
        request = request_of(invocation_context.session)
        task_id = self._tasks.pop(request.request_id, "")
        waits = next(unanswered_calls(invocation_context.session), None) is not None

        async def end(guard: Guard) -> None:
            task = self._task(guard, request, task_id)
            if not waits or task.stopped:
                await task.end()

        if task_id:
            await self._guard.arun(end)

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """End the task of a request that failed."""
        await self.after_run_callback(invocation_context=invocation_context)

    async def _begin(self, request: Request) -> str:
        """Return the task of a request, begun once; the same request is the same task in every process."""

        async def begun(guard: Guard) -> str:
            return (await guard.begin(request.words, thread_id=request.thread_id, request_id=request.request_id)).id

        if request.request_id not in self._tasks:
            self._tasks[request.request_id] = await self._guard.arun(begun)
        return self._tasks[request.request_id]

    def _task(self, guard: Guard, request: Request, task_id: str) -> GuardedTask:
        return guard.existing(task_id, thread_id=request.thread_id, request_id=request.request_id)


def _told(waits: Waits) -> str:
    return f"{waits.tool} was not run: it waits for a person to answer approval {waits.approval_id}."


def _response(tool: BaseTool, result: Any) -> dict[str, Any]:
    """Return a tool's result as the framework takes it from a plugin, for which None is no result."""
    if isinstance(result, dict):
        return result
    return {} if result is None and tool.is_long_running else {"result": result}
