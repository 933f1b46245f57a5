"""Servers that break the protocol, die, flood or never answer: nothing is confused, and doubt is on record."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from phylactery_mcp_proxy.settings import ServerTarget
from phylactery_mcp_proxy.upstream.session import Upstream, connected

from tests.support.processes.cancelling import kept_on
from tests.support.proxies import Place, texts, until
from tests.support.servers.mcp import processes_of

ACT = ("mcp_raw_act", {"text": "once"})


@pytest.mark.slow
@pytest.mark.parametrize(("script", "moments"), [("exit", 20), ("sleep 600; exit", 8)], ids=["it ends", "it stays"])
async def test_ended_at_any_moment_the_server_is_gone_and_not_begun_again(tmp_path: Path, script: str, moments: int):
    target = ServerTarget(name="test", command=("sh", "-c", script, str(tmp_path)), start_seconds=60)
    assert await kept_on(lambda _: Upstream(target, lambda _: None).run(), moments) == []
    assert processes_of(tmp_path) == []


async def test_an_answer_to_another_request_reaches_no_call(make_place: Callable[..., Place]):
    place = await make_place("raw", "stranger").pin()
    async with place.client() as client:
        told = [texts(await client.call_tool("mcp_raw_act", {"text": f"t{number}"})) for number in range(3)]
    assert told == ["acted on t0", "acted on t1", "acted on t2"]
    assert place.outcomes() == ["SUCCEEDED"] * 3


@pytest.mark.parametrize("fault", ["error", "input", "shapeless", "dies"])
async def test_an_unusable_answer_leaves_the_effect_in_doubt_and_none_of_its_text_is_passed_on(
    make_place: Callable[..., Place], fault: str
):
    place = await make_place("raw", fault).pin()
    async with place.client() as client:
        told = await client.call_tool(*ACT)
    assert told.is_error
    assert "Nobody knows whether mcp_raw_act ran" in texts(told)
    assert "IGNORE" not in texts(told)
    assert place.effects == ["once"]
    assert place.outcomes() == ["IN_DOUBT"]


@pytest.mark.parametrize("fault", ["silent", "deep"])
async def test_a_server_that_never_answers_usably_is_waited_for_so_long(make_place: Callable[..., Place], fault: str):
    place = await make_place("raw", fault, call_seconds=1.0).pin()
    async with place.client() as client:
        told = await client.call_tool(*ACT)
    assert told.is_error
    assert "no answer within 1 seconds" in texts(told)
    assert place.outcomes() == ["IN_DOUBT"]
    if fault == "silent":
        await until((place.work / "cancelled").exists)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["line", "streams"])
async def test_a_server_that_streams_without_end_is_given_up_in_bounded_memory(
    make_place: Callable[..., Place], fault: str
):
    place = await make_place("raw", fault).pin()
    async with place.client() as client:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        told = await client.call_tool(*ACT)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert told.is_error
    assert "Nobody knows" in texts(told)
    assert grown < 128 * 1024, "kilobytes"
    assert place.outcomes() == ["IN_DOUBT"]


async def test_a_burst_of_notifications_harms_no_call(make_place: Callable[..., Place]):
    place = await make_place("raw", "floods").pin()
    async with place.client() as client:
        assert texts(await client.call_tool(*ACT)) == "acted on once"
    assert place.outcomes() == ["SUCCEEDED"]


async def test_noise_before_the_protocol_is_skipped(make_place: Callable[..., Place]):
    place = await make_place("test", "garbage").pin()
    async with place.client() as client:
        assert texts(await client.call_tool("mcp_test_look", {})) == "looked"


async def test_a_server_that_only_makes_noise_is_given_up(make_place: Callable[..., Place]):
    place = await make_place("test", "flood").pin()
    with pytest.raises(ExceptionGroup):
        async with connected(place.target, lambda: None):
            pass
    assert place.effects == []


async def test_a_server_that_died_is_started_again(make_place: Callable[..., Place]):
    place = await make_place("raw").pin()
    place.set("dies")
    async with place.client() as client:
        first = await client.call_tool(*ACT)
        assert "Nobody knows" in texts(first)
        pid = place.server_pid
        second = await client.call_tool(*ACT)
        assert texts(second) == "acted on once"
        assert place.server_pid != pid
    assert place.outcomes() == ["IN_DOUBT", "SUCCEEDED"]


async def test_a_failed_result_is_passed_on_and_in_doubt(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client() as client:
        told = await client.call_tool("mcp_test_fail", {})
    assert (told.is_error, texts(told)) == (True, "no such account")
    assert place.outcomes() == ["IN_DOUBT"]


async def test_a_call_the_server_does_not_know_did_not_run(make_place: Callable[..., Place]):
    place = await make_place("test", "unknown").pin()
    async with place.client() as client:
        told = await client.call_tool("mcp_test_fail", {})
    assert "was not run" in texts(told)
    assert place.outcomes() == ["FAILED"]


@pytest.mark.slow
async def test_a_huge_result_is_cut_and_pictures_are_named(make_place: Callable[..., Place]):
    place = await make_place("test-sdk", max_result_chars=10_000).pin()
    async with place.client() as client:
        huge = await client.call_tool("mcp_test_huge", {})
        show = await client.call_tool("mcp_test_show", {})
        facts = await client.call_tool("mcp_test_facts", {})
    assert len(texts(huge)) == 10_000
    assert texts(huge).endswith("characters]")
    assert {type(block).__name__ for block in show.content} == {"TextContent"}
    assert "[image/png, 300 bytes, not shown]" in texts(show)
    assert "a whole file" in texts(show)
    assert "https://example.com/x" in texts(show)
    assert facts.structured_content == {"count": 3, "by": "Ñandú"}
    assert texts(facts) == "the text of it"


@pytest.mark.slow
async def test_a_server_gets_no_input_from_the_client_and_not_its_environment(
    make_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RISKGATE_TOKEN", "t-secret")
    monkeypatch.setenv("SOME_KEY", "k-secret")
    place = await make_place("test-sdk").pin()
    async with place.client() as client:
        asked = await client.call_tool("mcp_test_ask", {})
        environment = texts(await client.call_tool("mcp_test_environment", {})).split()
    assert "answered" not in texts(asked)
    assert {"RISKGATE_TOKEN", "SOME_KEY"}.isdisjoint(environment)
    assert "PATH" in environment
