"""The gate: every tool call of an agent passes RiskGate, and an approval is a request for the user's input."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from agent_framework import (
    AgentMiddleware,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    MiddlewareFailure,
)
from phylactery_client import Blocked, GuardThread, Waits
from phylactery_client.guard import json_or_text
from pydantic_core import to_jsonable_python

from phylactery_agent_framework.request import RequestMiddleware, request_of, served, stop_of, task_of


class RiskGate:
    """Puts RiskGate in front of an agent's tools.

    target is RiskGate's host:port and connection the options of RiskGateClient (token, subject, credentials, …); guard
    are those of Guard. unguarded names tools without effects of their own, which run unasked; everything else has to be
    in RiskGate's catalog. keep_seconds is how long the user's next message may continue a request.

    Give the agent ``middleware``, last in its list, and each run a session. A call that waits is a request for the
    user's input, with what is to be approved in its additional_properties. After a person answered at RiskGate, run the
    agent with its approval response; whether it is approved, RiskGate says.
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
        self.middleware: list[AgentMiddleware | FunctionMiddleware] = [
            RequestMiddleware(self._guard, keep_seconds),
            _CallMiddleware(self._guard, frozenset(unguarded)),
        ]

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self._guard.close)


class _CallMiddleware(FunctionMiddleware):
    """Asks RiskGate about every tool call."""

    def __init__(self, guard: GuardThread, unguarded: frozenset[str]) -> None:
        self._guard, self._unguarded = guard, unguarded

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Run a tool call if RiskGate permits it."""
        request, name = request_of(context.session), context.function.name

        async def run() -> Any:
            token = served.set(request)
            try:
                await call_next()
            finally:
                served.reset(token)
            return context.result

        if name in self._unguarded:
            await run()
            return
        proposed, raised = context.arguments, list[BaseException]()

        async def execute(bound: dict[str, Any]) -> Any:
            if bound != to_jsonable_python(proposed):
                # the framework compares what it was approved for with these, and not with what RiskGate bound
                context.metadata.setdefault("original_arguments_for_messages", proposed)
                context.arguments = bound
            try:
                return await run()
            except BaseException as error:
                raised.append(error)
                raise

        try:
            outcome = await self._guard.acall(
                lambda guard: task_of(guard, request),
                name,
                to_jsonable_python(proposed),
                tool_call_id=context.metadata["call_id"],
                execute=execute,
                show=_shown,
            )
        except Exception as error:
            if not raised:  # the framework would tell the model of it, and go on
                raise MiddlewareFailure(f"{name} was not run: {type(error).__name__}") from error
            if stopped := await stop_of(self._guard, request):
                context.result = _not_shown(stopped)
                return
            raise
        if isinstance(outcome, Waits):
            context.result = _question(outcome, context)
        elif isinstance(outcome, Blocked):
            context.result = outcome.message
        else:
            context.result = _not_shown(outcome.stopped) if outcome.stopped else outcome.result


def _not_shown(stopped: str) -> str:
    """Return what stands for a result that RiskGate was not shown."""
    return f"The call ran, and its result is not shown: {stopped}."


def _shown(result: Any) -> Any:
    """Return what the model sees of a tool's result, as JSON where it is JSON. Raise ValueError if that is no JSON."""
    if not isinstance(result, list) or not all(isinstance(one, Content) for one in result):
        return to_jsonable_python(result)
    contents = [json_or_text(one.text or "") if one.type == "text" else one.to_dict() for one in result]
    return contents[0] if len(contents) == 1 else contents


def _question(waits: Waits, context: FunctionInvocationContext) -> Content:
    """Return the framework's request for the approval of a call."""
    call_id = context.metadata["call_id"]
    occurrence = context.metadata.get("function_call_occurrence_id")
    call = Content.from_function_call(
        call_id, context.function.name, arguments=to_jsonable_python(context.arguments), id=occurrence
    )
    return Content.from_function_approval_request(occurrence or call_id, call, additional_properties=waits.for_host())
