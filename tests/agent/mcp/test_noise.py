"""A server that writes log lines between its messages is heard, however many there are, and gets no other's time."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest
from mcp import MCPError
from phylactery_agent.tools.mcp.config import ServerConfig
from phylactery_agent.tools.mcp.results import text_of
from phylactery_agent.tools.mcp.session import McpSession, open_session

from tests.support.proxies import SERVERS

NOISES = ["chatters", "structures", pytest.param("logs", marks=pytest.mark.slow), "longline"]


def server(folder: Path, *faults: str) -> ServerConfig:
    # -P, because beside it lies a module named as the SDK is
    return ServerConfig(command=[sys.executable, "-P", str(SERVERS / "raw_mcp_server.py"), str(folder), *faults])


async def act(session: McpSession, text: str) -> str:
    result = await session.call("act", {"text": text}, "ek_1")
    return text_of(result, structured=False, limit=1_000)


@pytest.mark.parametrize("fault", NOISES)
async def test_ten_megabytes_of_log_lines_during_each_call_end_no_session(tmp_path: Path, fault: str) -> None:
    async with open_session(server(tmp_path, fault), lambda: None) as session:
        for text in ("one", "two"):
            assert await act(session, text) == f"acted on {text}"
        assert not session.ended.is_set()
    assert (tmp_path / "effects").read_text() == "one\ntwo\n"


async def test_a_server_that_prints_more_than_a_bound_in_all_but_answers_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phylactery_agent.tools.mcp.command.MAX_NOISE_BYTES", 12_000_000)
    async with open_session(server(tmp_path, "chatters"), lambda: None) as session:
        assert [await act(session, f"{number}") for number in range(3)] == [f"acted on {n}" for n in range(3)]


@pytest.mark.parametrize("fault", [pytest.param("flood", marks=pytest.mark.slow), "chatters"])
async def test_a_server_that_never_stops_printing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("phylactery_agent.tools.mcp.command.MAX_NOISE_BYTES", 1_000_000)
    with pytest.raises((ExceptionGroup, MCPError)):
        async with open_session(server(tmp_path, fault), lambda: None) as session:
            await act(session, "one")


async def test_an_answer_that_is_in_the_pipe_of_a_server_that_leaves_is_read(tmp_path: Path) -> None:
    async with open_session(server(tmp_path, "leaves"), lambda: None) as session:
        assert await act(session, "one") == "acted on one"
        async with asyncio.timeout(30):
            await session.ended.wait()


@pytest.mark.timing
async def test_others_have_their_turn_while_log_lines_are_passed_over(tmp_path: Path) -> None:
    longest, before = 0.0, time.monotonic()

    async def tick() -> None:
        nonlocal longest, before
        while True:
            await asyncio.sleep(0.001)
            now = time.monotonic()
            longest, before = max(longest, now - before), now

    async with open_session(server(tmp_path, "chatters"), lambda: None) as session:
        before = time.monotonic()
        ticking = asyncio.create_task(tick())
        await act(session, "one")
        ticking.cancel()
    assert longest < 0.25
