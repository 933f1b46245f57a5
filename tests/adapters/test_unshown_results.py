"""A result that RiskGate could not be shown does not reach the model, whatever it is and wherever it stands."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import grpc
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentState
from langchain.tools import tool
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.types import Command, Send
from phylactery_client import RiskGateClient
from phylactery_client.errors import UnavailableError
from phylactery_langchain import RiskGateMiddleware
from phylactery_pydantic_ai import RiskGate
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import RetryPromptPart, ToolReturnPart

from tests.adapters.test_whose_words import scripted
from tests.support.adapters.hosts import Proposal, Tools
from tests.support.adapters.langchain_host import ScriptedChatModel

pytestmark = pytest.mark.slow

WORDS = 'Read minutes.txt and write "hello" to log.txt'
READ = Proposal("read_file", {"path": "minutes.txt"}, "call_read")
WRITE = Proposal("write_file", {"path": "log.txt", "content": "hello"}, "call_write")
SECRET = "what RiskGate did not see"
LONG = SECRET + "x" * 1024 * 1024
NOT_SHOWN = "The call ran, and its result is not shown: "
_numbers = itertools.count(1)


class NotesState(AgentState[Any]):
    """A state with something a prompt may show."""

    notes: str


def answered(call_id: str, text: str = "read") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id)


@pytest.fixture
async def middleware(shared_riskgate):
    made = RiskGateMiddleware(shared_riskgate.target, connection={"subject": f"unshown-{next(_numbers)}"})
    yield made
    await asyncio.to_thread(made.close)


@pytest.fixture
async def capability(shared_riskgate):
    made = RiskGate(shared_riskgate.target, connection={"subject": f"unshown-{next(_numbers)}"})
    yield made
    await made.close()


@pytest.fixture
def unseeing(monkeypatch):
    """Observations that never arrive."""

    async def observe(*words, **options):
        raise UnavailableError(grpc.StatusCode.UNAVAILABLE, "away")

    monkeypatch.setattr(RiskGateClient, "observe", observe)


async def served(middleware: Any, returned: Any, *, sync: bool = False) -> tuple[dict[str, Any], Tools]:
    """Return the state after a request whose first tool returns this."""
    tools = Tools()

    @tool
    def read_file(path: str) -> Any:
        """Read a file."""
        return returned(READ.id)

    agent = create_agent(
        ScriptedChatModel(script=[READ, WRITE]),
        [read_file, tool(tools.write_file)],
        middleware=[middleware],
        state_schema=NotesState,
    )
    config: Any = {"configurable": {"thread_id": f"unshown-{next(_numbers)}"}}
    given: Any = {"messages": [HumanMessage(WORDS)]}
    return await (asyncio.to_thread(agent.invoke, given, config) if sync else agent.ainvoke(given, config)), tools


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize(
    "returned",
    [
        pytest.param(lambda call: Command(update={"messages": [answered(call)], "notes": SECRET}), id="state"),
        pytest.param(lambda call: Command(update={"messages": [answered(call), HumanMessage(SECRET)]}), id="message"),
        pytest.param(
            lambda call: Command(
                update={"messages": [answered(call)]}, goto=Send("model", {"messages": [HumanMessage(SECRET)]})
            ),
            id="send",
        ),
        pytest.param(lambda call: Command(update={"messages": [answered(call, LONG)]}), id="long"),
        pytest.param(lambda call: answered(call, LONG), id="long message"),
    ],
)
async def test_more_than_a_tools_messages_is_withheld_and_the_request_stops(middleware, returned, sync):
    state, tools = await served(middleware, returned, sync=sync)
    read, write = [one for one in state["messages"] if isinstance(one, ToolMessage)]
    assert read.text.startswith(f"{NOT_SHOWN}the result of read_file cannot be shown to RiskGate")
    assert "was not run" in write.text
    assert tools.written == []
    assert SECRET not in str(state)


async def test_the_stop_is_in_the_graph_for_another_process(middleware, shared_riskgate):
    """The next call of the request is made by a middleware that did not see the first one."""
    state, _ = await served(middleware, lambda call: Command(update={"messages": [answered(call)], "notes": SECRET}))
    (read, _) = [one for one in state["messages"] if isinstance(one, ToolMessage)]
    assert "cannot be shown" in read.response_metadata["riskgate_stopped"]


async def test_a_command_of_the_tools_messages_alone_is_shown_and_goes_on(middleware):
    state, tools = await served(middleware, lambda call: Command(update={"messages": [answered(call)]}))
    assert next(one.text for one in state["messages"] if isinstance(one, ToolMessage)) == "read"
    assert len(tools.written) == 1


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_the_error_of_a_tool_that_was_not_shown_is_withheld(shared_riskgate, unseeing, sync):
    middleware = RiskGateMiddleware(
        shared_riskgate.target, connection={"subject": "unshown-error"}, guard={"settle_seconds": 0.2}
    )
    try:
        error = lambda call: ToolMessage(SECRET, tool_call_id=call, status="error")  # noqa: E731 - as the others are given
        state, tools = await served(middleware, error, sync=sync)
    finally:
        await asyncio.to_thread(middleware.close)
    (read, _) = [one for one in state["messages"] if isinstance(one, ToolMessage)]
    assert read.text.startswith(NOT_SHOWN)
    assert "UNAVAILABLE" in read.response_metadata["riskgate_stopped"]
    assert tools.written == []
    assert SECRET not in str(state)


async def read_by_pydantic(capability: RiskGate, read_file: Any) -> tuple[list[str], Tools]:
    """Return what the model is told of its calls."""
    tools = Tools()
    agent = Agent(scripted(READ, WRITE), tools=[read_file, tools.write_file], capabilities=[capability])
    result = await agent.run(WORDS, conversation_id=f"unshown-{next(_numbers)}")
    parts = [part for message in result.all_messages() for part in message.parts]
    return [str(one.content) for one in parts if isinstance(one, ToolReturnPart | RetryPromptPart)], tools


async def test_a_result_that_an_agent_of_pydantic_ai_cannot_show_is_withheld(capability):
    def read_file(path: str) -> str:
        """Read a file."""
        return LONG

    (read, write), tools = await read_by_pydantic(capability, read_file)
    assert read.startswith(f"{NOT_SHOWN}the result of read_file cannot be shown to RiskGate")
    assert "was not run" in write
    assert tools.written == []


@pytest.mark.parametrize("error", [ModelRetry, ToolFailed])
async def test_the_error_of_a_tool_of_pydantic_ai_that_was_not_shown_is_withheld(shared_riskgate, unseeing, error):
    def read_file(path: str) -> str:
        """Read a file."""
        raise error(SECRET)

    capability = RiskGate(
        shared_riskgate.target, connection={"subject": "unshown-retry"}, guard={"settle_seconds": 0.2}
    )
    try:
        (read, _), tools = await read_by_pydantic(capability, read_file)
    finally:
        await capability.close()
    assert read.startswith(NOT_SHOWN)
    assert tools.written == []
