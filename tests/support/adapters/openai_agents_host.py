"""An agent of the OpenAI Agents SDK with guarded tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agents import Agent, RunConfig, Runner, RunState, function_tool
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from phylactery_openai_agents import RiskGate

from tests.support.adapters.hosts import Host, Proposal, Turn

NO_TRACES = RunConfig(tracing_disabled=True)


def scripted(proposals: Sequence[Proposal]) -> ScriptedModel:
    """Return a model that makes the next call for each answer it was given, and then says that it is done."""

    def respond(call: ModelCall) -> Any:
        said = call.input if isinstance(call.input, list) else []
        number = sum(one.get("type") == "function_call" for one in said)
        if number >= len(proposals):
            return [assistant_message("done")]
        one = proposals[number]
        return [function_call(one.tool, one.arguments, call_id=one.id)]

    return ScriptedModel([ModelStep.respond(respond) for _ in range(3 * len(proposals) + 3)])


class OpenAIAgentsHost(Host):
    """An agent that is run with its calls' approvals at RiskGate."""

    async def start(self, words: str, proposals: Sequence[Proposal]) -> Turn:
        self.words = words
        self.gate = RiskGate(self.target, connection=self.connection)
        self.agent = Agent(
            name="Assistant",
            model=scripted(proposals),
            tools=self.gate.tools([function_tool(self.tools.read_file), function_tool(self.tools.write_file)]),
        )
        async with self.gate.request(words, thread_id=self.thread_id) as self.request:
            return await self._turn(words)

    async def resume(self, turn: Turn, edited: dict[str, Any] | None = None) -> Turn:
        saved = turn.state if edited is None else edit(turn.state, edited)
        state = await RunState.from_string(self.agent, saved)
        request_id = self.request.request_id
        async with self.gate.request(self.words, thread_id=self.thread_id, request_id=request_id):
            await self.gate.waiting(state)
            return await self._turn(state)

    async def close(self) -> None:
        await self.gate.close()

    async def _turn(self, given: Any) -> Turn:
        result = await Runner.run(self.agent, given, run_config=NO_TRACES, hooks=self.gate.hooks)
        state = result.to_state()
        waiting = tuple(one.approval_id for one in await self.gate.waiting(state))
        outputs = [one["output"] for one in result.to_input_list() if one.get("type") == "function_call_output"]
        return Turn(waiting, tuple(outputs), state.to_string())


def edit(saved: str, edited: dict[str, Any]) -> str:
    """Return the saved state with other arguments in its newest call, and without the SDK's mark of what they were."""
    state = json.loads(saved)
    newest = list(_calls(state))[-1]["call_id"]
    for call in _calls(state):
        if call["call_id"] == newest:
            call["arguments"] = json.dumps(edited)
    del state["context"]["tool_invocations"][newest]
    return json.dumps(state)


def _calls(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("type") == "function_call" and "call_id" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _calls(one)
