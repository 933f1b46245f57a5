"""Lifecycle of an MCP server: concurrency, restarts, and its tools after it ends."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from phylactery_agent.tools.contract import Implementation, Invocation, ToolFailedError
from phylactery_agent.tools.mcp.command import process_streams
from phylactery_agent.tools.mcp.config import load_config
from phylactery_agent.tools.mcp.pins import Pins, load_pins
from phylactery_agent.tools.mcp.server import McpServer
from phylactery_agent.tools.mcp.specs import McpArguments
from phylactery_agent.tools.registry import ToolRegistrationError, ToolRegistry

from tests.support.agent.graph import FakeMemories, FakeOutputs
from tests.support.processes.cancelling import kept_on
from tests.support.servers.mcp import McpPlace, processes_of

NOTE = "mcp_test_note"


@asynccontextmanager
async def living(place: McpPlace, registry: ToolRegistry | None = None) -> AsyncIterator[dict[str, Implementation]]:
    """Begin the server; return what runs its tools, once they can be called."""
    await asyncio.to_thread(place.pinned)
    config = load_config(str(place.config)).servers["test"]
    server = McpServer("test", config, load_pins(place.pins).of("test"), registry or ToolRegistry())
    implementations = dict(server.register())
    try:
        await server.begin().wait()
        yield implementations
    finally:
        await server.end()


def call(text: str, key: str = "ek_1") -> Invocation:
    return Invocation(McpArguments({"text": text}), key, FakeOutputs(), FakeMemories(), "acme", "ana")


async def held(place: McpPlace) -> None:
    while not (place.work / "held").exists():  # noqa: ASYNC110 - a file of another process's
        await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_a_server_with_no_place_left_is_busy_and_the_call_was_never_sent(tmp_path: Path) -> None:
    place = McpPlace(tmp_path / "mcp", options={"max_concurrent": 1, "timeout_seconds": 8})
    async with living(place) as tools:
        place.set("hold")
        first = asyncio.create_task(tools[NOTE].run(call("first")))
        await held(place)
        with pytest.raises(ToolFailedError) as refused:
            await tools[NOTE].run(call("second"))
        assert refused.value.code == "SERVER_BUSY"
        place.clear("hold")
        assert await first == "noted first under ek_"
        assert await tools[NOTE].run(call("third")) == "noted third under ek_"
    assert place.effects == ["first", "third"]


@pytest.mark.slow
async def test_calls_run_beside_each_other_up_to_the_bound(tmp_path: Path) -> None:
    async with living(McpPlace(tmp_path / "mcp")) as tools:
        said = await asyncio.gather(*(tools[NOTE].run(call(f"n{number}")) for number in range(20)))
    assert said == [f"noted n{number} under ek_" for number in range(20)]


@pytest.mark.slow
async def test_its_tools_are_ours_while_it_lives_and_nobodys_afterwards(tmp_path: Path) -> None:
    tools = ToolRegistry()
    async with living(McpPlace(tmp_path / "mcp"), tools):
        assert tools.source_of(NOTE) == "mcp:test"
        assert NOTE in {spec.name for spec in tools.offered()}
        assert [spec.name for spec in tools.offered([NOTE, "no_such_tool"])] == [NOTE]
    assert not [name for name in tools if name.startswith("mcp_")]
    assert tools.disabled_reason(NOTE) is None


@pytest.mark.slow
async def test_a_name_another_tool_has_is_not_taken(tmp_path: Path) -> None:
    place, tools = McpPlace(tmp_path / "mcp"), ToolRegistry()
    async with living(place, tools):
        config = load_config(str(place.config)).servers["test"]
        again = McpServer("test", config, load_pins(place.pins).of("test"), tools)
        with pytest.raises(ToolRegistrationError, match="two tools are called mcp_test_"):
            again.register()


@pytest.mark.slow
async def test_a_server_that_ends_again_and_again_is_begun_again_and_told_of_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begun = tmp_path / "begun"
    script = f"open({str(begun)!r}, 'a').write('x')"
    server = McpServer("test", load_config(_only(script)).servers["test"], Pins().of("test"), ToolRegistry())
    server.begin()
    try:
        while not begun.exists() or len(begun.read_text()) < 3:  # noqa: ASYNC110 - another process's
            await asyncio.sleep(0.05)
    finally:
        await server.end()
    said = capfd.readouterr()
    assert (said.out + said.err).count("an MCP server is away") == 1


@pytest.mark.slow
@pytest.mark.parametrize(("script", "moments"), [("exit", 20), ("sleep 600; exit", 8)], ids=["it ends", "it stays"])
async def test_ended_at_any_moment_a_server_is_gone_and_not_begun_again(
    tmp_path: Path, script: str, moments: int
) -> None:
    config = load_config(_command("sh", "-c", script, str(tmp_path))).servers["test"]

    async def life(at: int) -> None:
        McpServer(f"server{at}", config, Pins().of("test"), ToolRegistry()).begin()
        [lives] = [task for task in asyncio.all_tasks() if task.get_name() == f"mcp:server{at}"]
        await lives  # which is cancelled with what awaits it

    assert await kept_on(life, moments) == []
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("cancels", [1, 2, 3])
async def test_cancelled_again_while_it_begins_a_server_is_gone(tmp_path: Path, cancels: int) -> None:
    config = load_config(_command("sh", "-c", "sleep 600", str(tmp_path))).servers["test"]

    async def lives() -> None:
        async with process_streams(config):
            await asyncio.Event().wait()

    life = asyncio.create_task(lives())
    await asyncio.sleep(0)
    for _ in range(cancels):
        await asyncio.sleep(0)
        life.cancel()
    with pytest.raises(asyncio.CancelledError):
        await life
    assert processes_of(tmp_path) == []


def _only(script: str) -> str:
    return _command(sys.executable, "-c", script)


def _command(*words: str) -> str:
    return json.dumps({"servers": {"test": {"command": words}}})
