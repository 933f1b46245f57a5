"""The middleware: every tool call of an agent passes RiskGate, and an approval is an interrupt of the graph."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.tools.tool_node import ToolCallRequest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from phylactery_client import Blocked, GuardThread, Ran, Waits
from phylactery_client.guard import json_or_text

from phylactery_langchain.request import (
    GuardedState,
    Request,
    begin,
    end,
    new_request,
    request_of_outer_agent,
    served,
    stop_of,
    task_of,
)

Answer = ToolMessage | Command[Any]

_STOPPED = "riskgate_stopped"
"""The metadata of a tool's message that says why no further call of its request may run."""


class RiskGateMiddleware(AgentMiddleware[GuardedState, Any, Any]):
    """Puts RiskGate in front of an agent's tools.

    target is RiskGate's host:port and connection the options of RiskGateClient (token, subject, credentials, …); guard
    are those of Guard. unguarded names tools without effects of their own, such as "write_todos" and "task", which run
    unasked; everything else has to be in RiskGate's catalog. keep_seconds is how long the user's next message may
    continue a request.

    Put it last in the agent's middleware, next to the tool: what runs is then exactly what RiskGate bound, and a retry
    asks again instead of running the tool twice. The agent needs a checkpointer for approvals. A call that waits
    interrupts the graph with what is to be approved; after a person answered at RiskGate, resume with any value.
    """

    state_schema = GuardedState

    def __init__(
        self,
        target: str,
        *,
        connection: Mapping[str, Any] | None = None,
        guard: Mapping[str, Any] | None = None,
        unguarded: Collection[str] = (),
        keep_seconds: int = 0,
    ) -> None:
        super().__init__()
        self._guard = GuardThread(target, connection=connection, **(guard or {}))
        self._unguarded = frozenset(unguarded)
        self._keep_seconds = keep_seconds

    def close(self) -> None:
        """Close the connection."""
        self._guard.close()

    def before_agent(self, state: GuardedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Begin the request's task with the user's words."""
        outer = request_of_outer_agent()
        if outer is not None:
            return {"riskgate_request": outer}
        words, request = new_request(state["messages"])
        earlier = state.get("riskgate_request")
        begun = self._guard.run(lambda guard: begin(guard, words, request, earlier, self._keep_seconds))
        return {"riskgate_request": begun}

    async def abefore_agent(self, state: GuardedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Begin the request's task with the user's words."""
        outer = request_of_outer_agent()
        if outer is not None:
            return {"riskgate_request": outer}
        words, request = new_request(state["messages"])
        earlier = state.get("riskgate_request")
        begun = await self._guard.arun(lambda guard: begin(guard, words, request, earlier, self._keep_seconds))
        return {"riskgate_request": begun}

    def after_agent(self, state: GuardedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """End the task of an answered request."""
        request = state.get("riskgate_request")
        if request is not None and not request["inner"]:
            self._guard.run(lambda guard: end(guard, request, self._keep_seconds))
        return None

    async def aafter_agent(self, state: GuardedState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """End the task of an answered request."""
        request = state.get("riskgate_request")
        if request is not None and not request["inner"]:
            await self._guard.arun(lambda guard: end(guard, request, self._keep_seconds))
        return None

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """Run a tool call if RiskGate permits it."""
        call, serving = request.tool_call, _serving(request)

        def run(changed: ToolCallRequest) -> Answer:
            token = served.set(serving)
            try:
                return handler(changed)
            finally:
                served.reset(token)

        if call["name"] in self._unguarded:
            return run(request)
        if why := _stop_in(request):
            return _refusal(request, why)

        def execute(bound: dict[str, Any]) -> Answer:
            return _checked(run(_with(request, bound)))

        while True:
            try:
                outcome = self._guard.call(
                    lambda guard: task_of(guard, serving),
                    call["name"],
                    call["args"],
                    tool_call_id=str(call["id"]),
                    execute=execute,
                    show=_shown,
                )
            except _ToolError as said:
                return _unless_stopped(request, said.answer, self._guard.run(lambda guard: stop_of(guard, serving)))
            if not isinstance(outcome, Waits):
                return _answer(request, outcome)
            interrupt(outcome.for_host())

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """Run a tool call if RiskGate permits it."""
        call, serving = request.tool_call, _serving(request)

        async def run(changed: ToolCallRequest) -> Answer:
            token = served.set(serving)
            try:
                return await handler(changed)
            finally:
                served.reset(token)

        if call["name"] in self._unguarded:
            return await run(request)
        if why := _stop_in(request):
            return _refusal(request, why)

        async def execute(bound: dict[str, Any]) -> Answer:
            return _checked(await run(_with(request, bound)))

        while True:
            try:
                outcome = await self._guard.acall(
                    lambda guard: task_of(guard, serving),
                    call["name"],
                    call["args"],
                    tool_call_id=str(call["id"]),
                    execute=execute,
                    show=_shown,
                )
            except _ToolError as said:
                why = await self._guard.arun(lambda guard: stop_of(guard, serving))
                return _unless_stopped(request, said.answer, why)
            if not isinstance(outcome, Waits):
                return _answer(request, outcome)
            interrupt(outcome.for_host())


class _ToolError(Exception):
    """The tool's error as the graph worded it for the model; whether it had an effect is not known."""

    def __init__(self, answer: ToolMessage) -> None:
        super().__init__(str(answer.text))
        self.answer = answer


def _serving(request: ToolCallRequest) -> Request:
    state = request.state
    serving = state.get("riskgate_request") if isinstance(state, dict) else getattr(state, "riskgate_request", None)
    if serving is None:
        raise RuntimeError("the agent's state has no request: RiskGateMiddleware has to be in the agent's middleware")
    found: Request = serving
    return found


def _with(request: ToolCallRequest, bound: dict[str, Any]) -> ToolCallRequest:
    return request.override(tool_call={**request.tool_call, "args": bound})


def _checked(answer: Answer) -> Answer:
    if isinstance(answer, ToolMessage) and answer.status == "error":
        raise _ToolError(answer)
    return answer


def _shown(answer: Answer) -> Any:
    """Return what the model sees of a tool's answer, as JSON where it is JSON. Raise ValueError if it is more."""
    contents = [_content(one) for one in _messages(answer)]
    return contents[0] if len(contents) == 1 else contents


def _messages(answer: Answer) -> list[ToolMessage]:
    """Return all that an answer brings. Raise ValueError if that is not in messages of the tool alone.

    The rest of a Command would reach the model unseen: other messages, and state that a prompt may show.
    """
    if isinstance(answer, ToolMessage):
        return [answer]
    if isinstance(answer, list):  # of a tool that returns several
        return [message for one in answer for message in _messages(one)]
    update = {} if answer.update is None else answer.update
    goto = [answer.goto] if isinstance(answer.goto, str) else answer.goto
    if not isinstance(update, dict) or update.keys() - {"messages"} or answer.resume is not None:
        raise ValueError("it changes more than the messages")
    messages = update.get("messages", [])
    if not isinstance(messages, list) or not all(isinstance(one, ToolMessage) for one in messages):
        raise ValueError("it has other messages than the tool's")
    if not isinstance(goto, list | tuple) or not all(isinstance(one, str) for one in goto):
        raise ValueError("it sends something to a node")
    return messages


def _content(message: ToolMessage) -> Any:
    return json_or_text(message.content) if isinstance(message.content, str) else message.content


def _answer(request: ToolCallRequest, outcome: Ran | Blocked) -> Answer:
    if isinstance(outcome, Blocked):
        return _refusal(request, outcome.message)
    answer: Answer = outcome.result
    return _unless_stopped(request, answer, outcome.stopped)


def _unless_stopped(request: ToolCallRequest, answer: Answer, stopped: str) -> Answer:
    """Return the answer, in place of one that RiskGate was not shown a message that says so."""
    if not stopped:
        return answer
    told = _refusal(request, f"The call ran, and its result is not shown: {stopped}.")
    return told.model_copy(update={"response_metadata": {_STOPPED: stopped}})


def _refusal(request: ToolCallRequest, message: str) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(message, tool_call_id=str(call["id"]), name=call["name"], status="error")


def _stop_in(request: ToolCallRequest) -> str:
    """Return why an earlier result of this request stopped it, as a graph resumed in another process knows it."""
    state = request.state
    messages = state.get("messages", []) if isinstance(state, dict) else getattr(state, "messages", [])
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            break
        if isinstance(message, ToolMessage) and _STOPPED in message.response_metadata:
            why = message.response_metadata[_STOPPED]
            return f"{request.tool_call['name']} was not run: {why}. Begin a new request."
    return ""
