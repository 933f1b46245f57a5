"""A tool call under each framework's adapter, over the same framework with its own approval middleware."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import agent_framework
import agents
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from phylactery_agent_framework import RiskGate as AgentFrameworkGate
from phylactery_langchain import RiskGateMiddleware
from phylactery_openai_agents import RiskGate as OpenAIAgentsGate
from phylactery_pydantic_ai import RiskGate
from pydantic_ai import Agent, ApprovalRequiredToolset, FunctionToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from benchmarks.measure import Sample
from benchmarks.pinned import apart, riskgate

_RUNS, _CALLS, _WARMUP = 12, 10, 2
_WORDS = "Read minutes.txt"


def read_file(path: str) -> str:
    """Read a file."""
    return f"the content of {path}"


class _Scripted(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:  # noqa: ARG002 - as the framework calls it
        return self

    def _generate(self, messages: list[BaseMessage], *_words: Any, **_options: Any) -> ChatResult:
        number = sum(isinstance(one, AIMessage) for one in messages)
        said = AIMessage("done")
        if number < _CALLS:
            call = {"name": "read_file", "args": {"path": f"{number}.txt"}, "id": f"call-{number}"}
            said = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=said)])


async def _langchain(middleware: AgentMiddleware[Any, Any, Any], kind: str) -> Sample:
    agent = create_agent(_Scripted(), [read_file], middleware=[middleware], checkpointer=InMemorySaver())

    async def run(number: int) -> None:
        config: Any = {"configurable": {"thread_id": f"{kind}-{number}"}}
        await agent.ainvoke({"messages": [HumanMessage(_WORDS)]}, config)

    return await _per_call(run)


def _scripted(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    number = sum(isinstance(one, ModelResponse) for one in messages)
    if number >= _CALLS:
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart("read_file", {"path": f"{number}.txt"}, tool_call_id=f"call-{number}")])


async def _pydantic_ai(agent: Agent[None, str]) -> Sample:
    async def run(_number: int) -> None:
        await agent.run(_WORDS)

    return await _per_call(run)


async def _never(*_words: Any) -> bool:
    return False


def _called(call: ModelCall) -> Any:
    said = call.input if isinstance(call.input, list) else []
    number = sum(one.get("type") == "function_call" for one in said)
    if number >= _CALLS:
        return [assistant_message("done")]
    return [function_call("read_file", {"path": f"{number}.txt"}, call_id=f"call-{number}")]


async def _openai_agents(gate: OpenAIAgentsGate | None) -> Sample:
    tools: list[agents.Tool] = [agents.function_tool(read_file, needs_approval=_never)]
    model = ScriptedModel([ModelStep.respond(_called) for _ in range((_RUNS + _WARMUP) * (_CALLS + 1))])
    agent = agents.Agent(name="Assistant", model=model, tools=tools if gate is None else gate.tools(tools))
    config = agents.RunConfig(tracing_disabled=True)

    async def run(number: int) -> None:
        if gate is None:
            await agents.Runner.run(agent, _WORDS, run_config=config, max_turns=_CALLS + 1)
            return
        async with gate.request(_WORDS, thread_id=f"openai-{number}"):
            await agents.Runner.run(agent, _WORDS, run_config=config, max_turns=_CALLS + 1, hooks=gate.hooks)

    return await _per_call(run)


class _ScriptedClient(agent_framework.FunctionInvocationLayer[Any], agent_framework.BaseChatClient[Any]):
    def _inner_get_response(
        self,
        *,
        messages: Sequence[agent_framework.Message],
        stream: bool,  # noqa: ARG002 - as the framework calls it
        options: Mapping[str, Any],  # noqa: ARG002 - the same
        **_words: Any,
    ) -> Awaitable[agent_framework.ChatResponse[Any]]:
        number = sum(one.type == "function_result" for message in messages for one in message.contents)
        said = agent_framework.Content.from_text("done")
        if number < _CALLS:
            said = agent_framework.Content.from_function_call(
                f"call-{number}", "read_file", arguments={"path": f"{number}.txt"}
            )

        async def answer() -> agent_framework.ChatResponse[Any]:
            return agent_framework.ChatResponse(messages=[agent_framework.Message("assistant", [said])])

        return answer()


async def _agent_framework(middleware: Sequence[Any]) -> Sample:
    tools = [agent_framework.tool(read_file)]
    agent = agent_framework.Agent(client=_ScriptedClient(), tools=tools, middleware=middleware)

    async def run(_number: int) -> None:
        await agent.run(_WORDS, session=agent.create_session())

    return await _per_call(run)


async def _per_call(run: Callable[[int], Awaitable[None]]) -> Sample:
    """Return the seconds of a run divided by its calls, for each run."""
    for number in range(_WARMUP):
        await run(-1 - number)
    seconds: list[float] = []
    for number in range(_RUNS):
        began = time.perf_counter()
        await run(number)
        seconds.append((time.perf_counter() - began) / _CALLS)
    return Sample(seconds, sum(seconds))


async def rows() -> AsyncIterator[Mapping[str, Any]]:
    """Yield what a call costs under each adapter; ``own`` is the framework with its own approvals, which ask nobody."""
    with apart() as cores, riskgate(cores=cores) as server:
        middleware = RiskGateMiddleware(server.target)
        own = await _langchain(HumanInTheLoopMiddleware(interrupt_on={"write_file": True}), "own")
        yield _row("langchain", await _langchain(middleware, "gate"), own)
        middleware.close()
        capability = RiskGate(server.target)
        tools = FunctionToolset([read_file])
        asking = ApprovalRequiredToolset(tools, lambda _ctx, tool_def, _arguments: tool_def.name == "write_file")
        own = await _pydantic_ai(Agent(FunctionModel(_scripted), toolsets=[asking]))
        guarded = Agent(FunctionModel(_scripted), toolsets=[tools], capabilities=[capability])
        yield _row("pydantic_ai", await _pydantic_ai(guarded), own)
        await capability.close()
        gate = OpenAIAgentsGate(server.target)
        yield _row("openai_agents", await _openai_agents(gate), await _openai_agents(None))
        await gate.close()
        middlewares = AgentFrameworkGate(server.target)
        own = await _agent_framework([agent_framework.ToolApprovalMiddleware()])
        yield _row("agent_framework", await _agent_framework(middlewares.middleware), own)
        await middlewares.close()


def _row(name: str, measured: Sample, own: Sample) -> Mapping[str, Any]:
    return {
        "name": f"reach_{name}_call_p50_ms",
        "value": measured.percentile_ms(50),
        "unit": "ms",
        "p95_ms": measured.percentile_ms(95),
        "own_p50_ms": own.percentile_ms(50),
        "own_p95_ms": own.percentile_ms(95),
    }
