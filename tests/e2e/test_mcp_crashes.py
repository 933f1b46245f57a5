"""SIGKILL of the agent while an MCP server processes a call: effects are counted at the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from phylactery.agent.v1 import event_pb2, tool_pb2, tool_pb2_grpc
from phylactery_cli.supervisor import Stack

from tests.support.processes.stack import Person, await_death, crash_at, relaunch, yes
from tests.support.servers.mcp import LIMIT_SECONDS, McpPlace

pytestmark = pytest.mark.slow

DONE, FAILED = event_pb2.RUN_STATUS_DONE, event_pb2.RUN_STATUS_FAILED
ASK = "keep the note buy milk"


def until(check: Callable[[], bool], what: str) -> None:
    """Wait until it is so."""
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        if check():
            return
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come")


def running(pid: int) -> bool:
    """Return whether a process runs; one that only waits to be reaped by init does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def place(tmp_path: Path) -> Iterator[McpPlace]:
    made = McpPlace(tmp_path / "mcp")
    yield made
    made.clear("hold")
    made.stop()


@pytest.fixture
def stack(place: McpPlace, tmp_path: Path, make_stack: Callable[..., Stack]) -> Stack:
    bundle = place.prepared(tmp_path / "mcp-bundle")
    return make_stack(agent=place.agent_env(), riskgate={"RISKGATE_BUNDLE": str(bundle)})


def offered(stack: Stack) -> None:
    """Wait until the agent offers the server's tools."""
    with grpc.insecure_channel(stack.target("agent")) as channel:
        stub = tool_pb2_grpc.ToolServiceStub(channel)
        request = tool_pb2.ListToolsRequest(source="mcp:test", enabled_only=True)
        until(lambda: len(stub.ListTools(request, timeout=60).tools) > 0, "the server")


def kill_in_the_middle(stack: Stack, place: McpPlace, ana: Person, words: str) -> int:
    """Say something whose call the server holds, and kill the agent then; return the server's process."""
    place.set("hold")
    said = threading.Thread(target=lambda: ana.say_and_lose(words, "middle-request-1"))
    said.start()
    until((place.work / "held").exists, "the call")
    pid = place.pid
    stack.kill("agent")
    said.join(LIMIT_SECONDS)
    return pid


def test_killed_in_the_middle_of_a_write_it_is_in_doubt_and_never_run_again(stack: Stack, place: McpPlace) -> None:
    stack.start()
    offered(stack)
    with Person(stack, "ana") as ana:
        asked = ana.say(ASK)
        pid = kill_in_the_middle(stack, place, ana, yes(asked))
        until(lambda: not running(pid), "the server's end with its agent")
        place.clear("hold")
        relaunch(stack, "agent")
        thread = ana.await_status(DONE, FAILED, event_pb2.RUN_STATUS_SUSPENDED)
        calls = ana.run(thread.last_run.id).tool_calls
        assert [(call.state, call.tool) for call in calls] == [("in_doubt", "mcp_test_note")]
    assert place.effects == ["buy milk"]


def test_killed_in_the_middle_of_a_read_it_is_read_again(stack: Stack, place: McpPlace) -> None:
    stack.start()
    offered(stack)
    with Person(stack, "ana") as ana:
        kill_in_the_middle(stack, place, ana, "look at the notes")
        place.clear("hold")
        relaunch(stack, "agent")
        thread = ana.await_status(DONE)
        calls = ana.run(thread.last_run.id).tool_calls
        assert [(call.state, call.status) for call in calls] == [("finished", "success")]
    assert place.effects == ["look", "look"]


@pytest.mark.parametrize("point", ["agent.7", "agent.8", "agent.9", "agent.10"])
def test_killed_around_a_write_it_happens_at_most_once_and_once_where_it_is_said_to_be_done(
    stack: Stack, place: McpPlace, point: str
) -> None:
    crash_at(stack, "agent", point)
    stack.start()
    offered(stack)
    with Person(stack, "ana") as ana:
        asked = ana.say(ASK)
        ana.say_and_lose(yes(asked), "yes-request-1")
        await_death(stack, "agent")
        relaunch(stack, "agent")
        thread = ana.await_status(DONE, FAILED, event_pb2.RUN_STATUS_SUSPENDED)
        (call,) = ana.run(thread.last_run.id).tool_calls
    done_before = {"agent.7": 0, "agent.8": 0, "agent.9": 1, "agent.10": 1}[point]
    if call.state == "finished" and call.status == "success":
        assert place.effects == ["buy milk"]
    else:
        assert (call.state, len(place.effects)) == ("in_doubt", done_before)
