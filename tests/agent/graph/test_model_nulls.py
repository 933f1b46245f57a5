"""A model that writes null for an argument it does not use is understood; for one that decides it is corrected."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.agent.system import DONE, System, open_system
from tests.support.servers.model_server import ModelServer, calls, fails, model_server, says


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[tuple[System, ModelServer]]:
    with model_server() as server:
        async with open_system(tmp_path, model_base_url=server.url, model="test-model") as opened:
            yield opened, server


async def test_a_null_that_is_not_needed_costs_nothing(running: tuple[System, ModelServer]) -> None:
    system, server = running
    ana = system.person()
    server.script(calls(("write_file", {"path": "notes.txt", "content": "hello", "append": None})), says("Written."))
    answer = await ana.say("write hello to notes.txt")
    assert (answer.run.status, [call.state for call in answer.run.tool_calls]) == (DONE, ["finished"])
    assert len(server.asked) == 2
    assert (system.sandbox / "notes.txt").read_text() == "hello"


async def test_a_null_that_decides_is_to_be_left_out_and_a_model_that_repeats_it_loses_no_turn(
    running: tuple[System, ModelServer],
) -> None:
    system, server = running
    (system.sandbox / "notes.txt").write_text("hello")
    null = calls(("write_file", {"path": None, "content": "x"}))
    listing = calls(("list_dir", {"path": None}))
    server.script(
        fails(400), listing, null, says("ok")
    )  # where arguments are not strict, null is not for what is left out
    answer = await system.person().say("explain notes.txt")
    assert "leave it out" in server.asked[2].messages[-1]["content"]
    assert answer.run.status == DONE
    assert "hello" in answer.reply.text
