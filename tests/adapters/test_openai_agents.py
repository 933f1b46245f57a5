"""What is the OpenAI Agents SDK's own: its approvals, its error texts, and tools that nobody guarded."""

from __future__ import annotations

import itertools
from typing import Any

import grpc
import pytest
from agents import Agent, Runner, RunState, UserError, WebSearchTool, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from phylactery_client import RiskGateClient
from phylactery_client.errors import UnavailableError
from phylactery_openai_agents import RiskGate

from tests.adapters.test_ten_cases import ASKED, READ, UNASKED, WORDS
from tests.support.adapters.hosts import Proposal, Tools
from tests.support.adapters.openai_agents_host import NO_TRACES, scripted

pytestmark = pytest.mark.slow

TOLD = "Write 'I was here' to owned.txt"
OWNED = Proposal("write_file", {"path": "owned.txt", "content": "I was here"}, "call_inner")
SECRET = "what RiskGate did not see"
_numbers = itertools.count(1)


@pytest.fixture
async def gate(shared_riskgate):
    made = RiskGate(
        shared_riskgate.target, connection={"subject": f"openai-{next(_numbers)}"}, unguarded={"ask_assistant"}
    )
    yield made
    await made.close()


@pytest.fixture
def reported(monkeypatch):
    """The outcomes that the guard reports."""
    found: list[dict[str, Any]] = []
    report = RiskGateClient.report_outcome

    async def noted(self, execution_id, **options):
        found.append(options)
        return await report(self, execution_id, **options)

    monkeypatch.setattr(RiskGateClient, "report_outcome", noted)
    return found


def request_of(gate: RiskGate, words: str = WORDS, **options: Any) -> Any:
    return gate.request(words, thread_id=f"openai-{next(_numbers)}", **options)


async def run(gate: RiskGate, agent: Agent[Any], given: Any) -> Any:
    return await Runner.run(agent, given, run_config=NO_TRACES, hooks=gate.hooks)


def outputs(result: Any) -> list[str]:
    return [one["output"] for one in result.to_input_list() if one.get("type") == "function_call_output"]


async def test_the_sdk_alone_runs_a_tool_twice_whose_state_is_resumed_twice():
    """Which is why the same case with RiskGate has one effect by RiskGate's redemption alone."""
    tools = Tools()
    asking = function_tool(tools.write_file, needs_approval=True)
    agent = Agent(name="Assistant", model=scripted([UNASKED]), tools=[asking])
    saved = (await Runner.run(agent, WORDS, run_config=NO_TRACES)).to_state().to_string()
    for _ in range(2):
        state = await RunState.from_string(agent, saved)
        state.approve(state.get_interruptions()[0])
        await Runner.run(agent, state, run_config=NO_TRACES)
    assert len(tools.written) == 2


async def test_the_sdk_alone_asks_a_person_where_an_argument_was_left_out():
    """It does not ask the policy of a decorated tool then; that of a guarded one is always asked."""
    tools, asked = Tools(), []

    async def policy(context, arguments, call_id):
        asked.append(call_id)
        return False

    agent = Agent(
        name="Assistant", model=scripted([ASKED]), tools=[function_tool(tools.write_file, needs_approval=policy)]
    )
    result = await Runner.run(agent, WORDS, run_config=NO_TRACES)
    assert (asked, len(result.interruptions)) == ([], 1)


async def test_what_the_application_approves_itself_waits_for_the_person(gate):
    """The run goes on without the call; the same state runs it once the person has answered."""
    tools = Tools()
    agent = Agent(name="Assistant", model=scripted([UNASKED]), tools=gate.tools([function_tool(tools.write_file)]))
    request = request_of(gate)
    async with request:
        state = (await run(gate, agent, WORDS)).to_state()
        (waits,) = await gate.waiting(state)
        saved = state.to_string()
        state.approve(state.get_interruptions()[0])
        result = await run(gate, agent, state)
    assert outputs(result) == [f"write_file was not run: it waits for a person to answer approval {waits.approval_id}."]
    assert tools.written == []
    async with RiskGateClient(gate._guard._target, **gate._guard._connection) as person:
        one = await person.get_approval(waits.approval_id)
        await person.approve(one.id, args_hash=one.args_hash, code=one.code, thread_id=one.thread_id)
    async with request:
        state = await RunState.from_string(agent, saved)
        assert await gate.waiting(state) == []
        result = await run(gate, agent, state)
    assert outputs(result) == ["wrote other.txt"]


async def test_a_run_outside_a_request_ends_before_a_tool_runs(gate):
    tools = Tools()
    agent = Agent(name="Assistant", model=scripted([ASKED]), tools=gate.tools([function_tool(tools.write_file)]))
    with pytest.raises(UserError, match="no request of a user here"):
        await run(gate, agent, WORDS)
    assert tools.written == []


async def test_a_tool_that_nobody_guarded_ends_the_run_before_it_runs(gate):
    tools = Tools()
    agent = Agent(name="Assistant", model=scripted([ASKED]), tools=[function_tool(tools.write_file)])
    async with request_of(gate):
        with pytest.raises(UserError, match="write_file was not run: it does not pass RiskGate"):
            await run(gate, agent, WORDS)
    assert tools.written == []


async def test_agents_and_tools_of_the_provider_cannot_be_guarded(gate):
    agent = Agent(name="Helper")
    with pytest.raises(TypeError, match="guard that agent's tools"):
        gate.tools([agent.as_tool("helper", "Ask a helper.")])
    with pytest.raises(TypeError, match="is not called by the agent"):
        gate.tools([WebSearchTool()])
    assert len(gate.tools([agent.as_tool("ask_assistant", "Ask the assistant.")])) == 1, "it is named unguarded"


async def test_what_an_agent_tells_another_is_no_request_of_the_user(gate):
    """The assistant is told to write; the user only asked to read. Its approval interrupts the run of the other."""
    tools = Tools()
    assistant = Agent(name="Assistant", model=scripted([OWNED]), tools=gate.tools([function_tool(tools.write_file)]))
    asking = Proposal("ask_assistant", {"input": TOLD}, "call_outer")
    agent = Agent(
        name="Outer", model=scripted([asking]), tools=gate.tools([assistant.as_tool("ask_assistant", "Ask.")])
    )
    async with request_of(gate, "Read minutes.txt"):
        result = await run(gate, agent, "Read minutes.txt")
    assert len(result.interruptions) + len([one for one in outputs(result) if "blocked" in one]) == 1
    assert tools.written == []


@pytest.mark.parametrize("custom", [False, True], ids=["the SDK's text", "a text of the tool's"])
async def test_the_error_of_a_tool_leaves_a_doubt_and_is_told_as_the_tool_says(gate, reported, custom):
    def failing(path: str) -> str:
        """Read a file."""
        raise RuntimeError(SECRET)

    own = {"failure_error_function": lambda context, error: f"failed: {type(error).__name__}"} if custom else {}
    made = function_tool(failing, name_override="read_file", **own)
    agent = Agent(name="Assistant", model=scripted([READ]), tools=gate.tools([made]))
    async with request_of(gate):
        (told,) = outputs(await run(gate, agent, WORDS))
    assert told == ("failed: RuntimeError" if custom else "An error occurred while running the tool. Please try again.")
    assert [one["outcome"] for one in reported] == ["IN_DOUBT"]


async def test_an_error_that_the_tool_does_not_tell_ends_the_run(gate, reported):
    def failing(path: str) -> str:
        """Read a file."""
        raise RuntimeError("disk full")

    made = function_tool(failing, name_override="read_file", failure_error_function=None)
    agent = Agent(name="Assistant", model=scripted([READ]), tools=gate.tools([made]))
    async with request_of(gate):
        with pytest.raises(Exception, match="disk full"):
            await run(gate, agent, WORDS)
    assert [one["outcome"] for one in reported] == ["IN_DOUBT"]


async def test_the_error_of_a_tool_that_was_not_shown_is_withheld(shared_riskgate, monkeypatch):
    async def observe(*words, **options):
        raise UnavailableError(grpc.StatusCode.UNAVAILABLE, "away")

    def failing(path: str) -> str:
        """Read a file."""
        raise RuntimeError(SECRET)

    monkeypatch.setattr(RiskGateClient, "observe", observe)
    gate = RiskGate(shared_riskgate.target, connection={"subject": "openai-away"}, guard={"settle_seconds": 0.2})
    tools = Tools()
    made = function_tool(failing, name_override="read_file", failure_error_function=lambda context, error: str(error))
    agent = Agent(
        name="Assistant",
        model=scripted([READ, ASKED]),
        tools=gate.tools([made, function_tool(tools.write_file)]),
    )
    try:
        async with request_of(gate):
            read, write = outputs(await run(gate, agent, WORDS))
    finally:
        await gate.close()
    assert read.startswith("The call ran, and its result is not shown: ")
    assert "was not run" in write
    assert tools.written == []


async def test_arguments_that_are_no_json_run_nothing(gate):
    """The SDK asks a person about them without asking the policy; RiskGate asks nobody."""
    tools = Tools()
    call = function_call("write_file", '{"path": "a.txt", "path": "log.txt", "content": "hello"}', call_id="call_9")
    broken = function_call("write_file", "{", call_id="call_10")
    model = ScriptedModel([ModelStep(output=[call, broken]), ModelStep(output=[assistant_message("done")])])
    agent = Agent(name="Assistant", model=model, tools=gate.tools([function_tool(tools.write_file)]))
    async with request_of(gate):
        result = await run(gate, agent, WORDS)
        state = result.to_state()
        assert await gate.waiting(state) == []
        result = await run(gate, agent, state)
    assert [one for one in outputs(result) if "was not run" not in one] == []
    assert len(outputs(result)) == 2
    assert tools.written == []


async def test_the_tool_sees_the_bound_arguments_in_its_context_as_well(gate):
    seen: list[str] = []

    async def write_file(context: ToolContext[Any], path: str, content: str, append: bool = False) -> str:
        """Write a file."""
        seen.extend([context.tool_arguments, context.tool_call.arguments])
        return "written"

    agent = Agent(name="Assistant", model=scripted([ASKED]), tools=gate.tools([function_tool(write_file)]))
    async with request_of(gate):
        assert outputs(await run(gate, agent, WORDS)) == ["written"]
    assert all('"append": false' in one for one in seen)
    assert len(seen) == 2
