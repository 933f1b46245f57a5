"""Calls through the proxy: what RiskGate permits runs once, as it was bound, and what came of it is on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from mcp import MCPError

from tests.support.proxies import Place, texts, until
from tests.support.riskgate.serving import ServedRiskGate

ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])


@pytest.mark.slow
@ERAS
async def test_a_permitted_call_runs_once_and_its_outcome_is_on_record(make_place: Callable[..., Place], mode: str):
    place = await make_place("test-sdk" if mode == "legacy" else "test").pin()
    async with place.client(mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("mcp_test_look", {})
    assert listed["mcp_test_look"].description == "Answers what was noted."
    assert "mcp_test_note" in listed
    assert (texts(result), result.is_error) == ("looked", False)
    assert place.effects == ["look"]
    assert place.outcomes() == ["SUCCEEDED"]


@ERAS
async def test_a_write_names_its_approval_and_the_same_call_runs_once_it_is_approved(
    make_place: Callable[..., Place], mode: str
):
    place = await make_place().pin()
    async with place.client(mode) as client:
        told = await client.call_tool("mcp_test_note", {"text": "milk"})
        again = await client.call_tool("mcp_test_note", {"text": "milk"})
        assert texts(again) == texts(told), "the same call is the same approval"
        approval = await place.approve()
        assert told.is_error
        assert f"riskgate approvals approve {approval}" in texts(told)
        assert place.effects == []
        other = await client.call_tool("mcp_test_note", {"text": "bread"})
        assert approval not in texts(other)
        ran = await client.call_tool("mcp_test_note", {"text": "milk"})
        assert texts(ran) == "noted milk under ex-", "the server can tell a repetition by the execution's id"
        after = await client.call_tool("mcp_test_note", {"text": "milk"})
        assert after.is_error
        assert approval not in texts(after), "an approval is for one call"
    assert place.effects == ["milk"]
    assert place.outcomes() == ["SUCCEEDED"]


async def test_a_proxy_that_is_started_again_finds_the_call_that_waits(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client() as client:
        told = texts(await client.call_tool("mcp_test_note", {"text": "salt"}))
    async with place.client() as client:
        assert texts(await client.call_tool("mcp_test_note", {"text": "salt"})) == told
        await place.approve()
    async with place.client() as client:
        assert not (await client.call_tool("mcp_test_note", {"text": "salt"})).is_error
    assert place.effects == ["salt"]


async def test_a_rejected_call_does_not_run(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client() as client, place.riskgate() as gate:
        await client.call_tool("mcp_test_note", {"text": "gin"})
        (approval,) = (await gate.list_approvals(thread_id=place.thread)).approvals
        await gate.reject(approval.id, thread_id=place.thread)
        told = await client.call_tool("mcp_test_note", {"text": "gin"})
    assert "rejected" in texts(told)
    assert place.effects == []


async def test_equal_calls_at_the_same_time_are_one_approval_and_one_effect(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client() as client:
        calls = [client.call_tool("mcp_test_note", {"text": "tea"}) for _ in range(5)]
        assert len({texts(one) for one in await asyncio.gather(*calls)}) == 1
        await place.approve()
        calls = [client.call_tool("mcp_test_note", {"text": "tea"}) for _ in range(3)]
        ran = [one for one in await asyncio.gather(*calls) if not one.is_error]
    assert len(ran) == 1
    assert place.effects == ["tea"]


async def test_arguments_that_do_not_fit_the_catalog_are_refused_with_their_place(make_place: Callable[..., Place]):
    place = await make_place().pin()
    wrong: list[dict[str, Any]] = [{"txt": "x"}, {}, {"text": 5}, {"text": None}]
    async with place.client("legacy") as client:
        told = [await client.call_tool("mcp_test_note", one) for one in wrong]
    assert [one.is_error for one in told] == [True] * len(wrong)
    assert "/text" in texts(told[2])
    assert place.effects == []


@pytest.mark.slow
async def test_without_riskgate_nothing_runs_and_after_its_return_calls_do(own_gate: ServedRiskGate, make_place: Any):
    place = await make_place(gate=own_gate).pin()
    async with place.client() as client:
        own_gate.stop()
        told = await client.call_tool("mcp_test_look", {})
        assert told.is_error
        assert "RiskGate is unavailable" in texts(told)
        assert place.effects == []
        own_gate.start()
        assert texts(await client.call_tool("mcp_test_look", {})) == "looked"
    assert place.effects == ["look"]


@pytest.mark.slow
async def test_a_restart_of_riskgate_between_question_and_answer_loses_nothing(
    own_gate: ServedRiskGate, make_place: Any
):
    place = await make_place(gate=own_gate).pin()
    async with place.client() as client:
        told = texts(await client.call_tool("mcp_test_note", {"text": "oil"}))
        own_gate.kill()
        own_gate.start()
        assert texts(await client.call_tool("mcp_test_note", {"text": "oil"})) == told
        await place.approve()
        assert not (await client.call_tool("mcp_test_note", {"text": "oil"})).is_error
    assert place.effects == ["oil"]


@ERAS
async def test_what_is_no_tool_is_refused_clearly(make_place: Callable[..., Place], mode: str):
    place = await make_place().pin()
    async with place.client(mode) as client:
        for ask in (
            client.list_resources,
            client.list_prompts,
            lambda: client.read_resource("file:///etc/hostname"),
            lambda: client.get_prompt("p"),
        ):
            with pytest.raises(MCPError, match="passes on tools alone"):
                await ask()
        assert client.server_capabilities.resources is None
        assert client.server_capabilities.prompts is None
    assert place.effects == []


async def test_a_named_task_is_shown_every_result_that_a_model_sees(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client() as client, place.riskgate() as gate:
        task = await gate.begin_task("look at the facts", thread_id=place.thread, request_id="named-task-0001")
        named = {"phylactery/task-id": task.task_id, "phylactery/thread-id": place.thread}
        facts = await client.call_tool("mcp_test_facts", {}, meta=named)
        failed = await client.call_tool("mcp_test_fail", {}, meta=named)
        # RiskGate keeps what it was shown: the same again is a replay, anything else a conflict
        approvals = await gate.list_approvals(thread_id=place.thread)
    assert not facts.is_error
    assert failed.is_error
    assert approvals.approvals == ()
    assert place.outcomes() == ["SUCCEEDED", "IN_DOUBT"]


async def test_a_task_that_is_not_the_callers_blocks_the_call(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client() as client:
        named = {"phylactery/task-id": "ta_nobodys", "phylactery/thread-id": place.thread}
        told = await client.call_tool("mcp_test_look", {}, meta=named)
    assert told.is_error
    assert place.effects == []


async def test_a_client_that_cancels_leaves_the_effect_in_doubt_and_the_server_is_told(
    make_place: Callable[..., Place],
):
    place = await make_place().pin()
    place.set("hold")
    async with place.client("legacy") as client:
        call = asyncio.create_task(client.call_tool("mcp_test_look", {}))
        await until(lambda: place.effects == ["look"])
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: place.outcomes() == ["IN_DOUBT"])
        place.clear("hold")
        assert texts(await client.call_tool("mcp_test_look", {})) == "looked"
    assert place.outcomes() == ["IN_DOUBT", "SUCCEEDED"]


async def test_progress_passes_through_as_numbers(make_place: Callable[..., Place]):
    place = await make_place("test", "progress").pin()
    seen: list[tuple[float, float | None, str | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with place.client("legacy") as client:
        await client.call_tool("mcp_test_look", {}, progress_callback=progressed)
    assert (19.0, 20.0, None) in seen
    assert {message for _, _, message in seen} == {None}, "texts of a server are not passed on"
