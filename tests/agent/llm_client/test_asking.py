"""The model router: retries where useful, then the fallback, then failure; and what is reported."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from phylactery_agent.llm_client.request import Question, Spent
from phylactery_agent.llm_client.router import Models
from phylactery_agent.ports import ModelUnavailableError
from phylactery_chassis.telemetry import logs
from phylactery_chassis.telemetry.spans import LightProvider
from structlog.testing import capture_logs

from tests.support.agent.models import Waits, opened
from tests.support.servers.model_server import (
    Answer,
    ModelServer,
    calls,
    endless,
    events,
    fails,
    half,
    hangs,
    huge,
    malformed,
    model_server,
    raw,
    redirects,
    says,
)

HI = Question([{"role": "user", "content": "what the person said"}], [])
KEY = "sk-very-secret-0123456789"


@pytest.fixture
def other() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def text_of(models: Models, spent: Spent | None = None) -> str:
    return (await models.ask(HI, spent if spent is not None else Spent())).heard.text


async def reason_of(models: Models) -> str:
    with pytest.raises(ModelUnavailableError) as caught:
        await models.ask(HI, Spent())
    return caught.value.reason


@pytest.mark.parametrize(
    "answer",
    [fails(408), fails(409), fails(429), fails(500), fails(502), fails(503), malformed(), half(), half(cut=False)],
)
async def test_what_a_second_attempt_may_mend_is_tried_again(server: ModelServer, answer: Answer) -> None:
    server.script(answer, answer, says("at last"))
    waits = Waits()
    async with opened(server.url, waits=waits) as models:
        assert await text_of(models) == "at last"
    assert len(server.asked) == 3
    assert server.asked[0].body == server.asked[1].body == server.asked[2].body
    assert [0.25 <= waits.seconds[0] <= 0.5, 0.5 <= waits.seconds[1] <= 1.0] == [True, True]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (fails(400), "MODEL_BAD_REQUEST"),
        (fails(401), "MODEL_REFUSED_KEY"),
        (fails(403), "MODEL_FORBIDDEN"),
        (fails(404), "MODEL_NOT_FOUND"),
        (fails(429, '{"error": {"code": "insufficient_quota"}}'), "MODEL_QUOTA_EXHAUSTED"),
        (redirects("http://127.0.0.1:9/"), "MODEL_REDIRECTED"),
        (huge(4), "MODEL_REPLY_TOO_LARGE"),
        (endless(), "MODEL_REPLY_TOO_LARGE"),
    ],
)
async def test_what_no_attempt_mends_is_asked_once(server: ModelServer, answer: Answer, reason: str) -> None:
    server.script(answer)
    async with opened(server.url) as models:
        assert await reason_of(models) == reason
    assert len(server.asked) == 1


async def test_after_its_attempts_an_endpoint_is_given_up(server: ModelServer) -> None:
    server.otherwise = lambda _asked: fails(503)
    async with opened(server.url, model_attempts=3) as models:
        assert await reason_of(models) == "MODEL_SERVER_ERROR"
    assert len(server.asked) == 3


async def test_an_endpoint_that_asks_for_time_gets_it(server: ModelServer) -> None:
    server.script(fails(429, retry_after="7"), says("ok"))
    waits = Waits()
    async with opened(server.url, waits=waits) as models:
        assert await text_of(models) == "ok"
    [waited] = waits.seconds
    assert 7.0 <= waited <= 7.1


async def test_an_endpoint_that_asks_for_too_much_is_left_alone_and_the_fallback_answers(
    server: ModelServer, other: ModelServer
) -> None:
    server.script(fails(429, retry_after="60"))
    time, waits = Time(), Waits()
    fallback = {"model_fallback": "small", "model_fallback_base_url": other.url}
    async with opened(server.url, waits=waits, monotonic=time, **fallback) as models:
        assert await text_of(models) == "ok"
        assert await text_of(models) == "ok"
        assert (len(server.asked), len(other.asked)) == (1, 2)
        time.now += 60
        server.script(says("back again"))
        assert await text_of(models) == "back again"
    assert waits.seconds == []


async def test_the_fallback_is_asked_for_its_own_model_with_its_own_key(
    server: ModelServer, other: ModelServer
) -> None:
    server.otherwise = lambda _asked: fails(500)
    options = {"model_api_key": KEY, "model_fallback": "small", "model_fallback_base_url": other.url}
    async with opened(server.url, **options, model_fallback_api_key="sk-other") as models:
        answered = await models.ask(HI, Spent())
    assert (answered.endpoint.model, other.asked[0].body["model"]) == ("small", "small")
    assert other.asked[0].headers["authorization"] == "Bearer sk-other"
    async with opened(server.url, **options) as models:
        await models.ask(HI, Spent())
    assert "authorization" not in other.asked[1].headers


async def test_a_fallback_at_the_same_endpoint_has_the_same_key(server: ModelServer) -> None:
    server.script(fails(404), says("smaller"))
    async with opened(server.url, model_api_key=KEY, model_fallback="small") as models:
        assert await text_of(models) == "smaller"
    assert [asked.body["model"] for asked in server.asked] == ["test-model", "small"]
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}


async def test_where_nobody_answers_every_endpoint_says_why(server: ModelServer, other: ModelServer) -> None:
    server.script(fails(401))
    other.script(fails(404))
    fallback = {"model_fallback": "small", "model_fallback_base_url": other.url}
    async with opened(server.url, **fallback) as models:
        with pytest.raises(ModelUnavailableError) as caught:
            await models.ask(HI, Spent())
    assert str(caught.value) == (
        f"MODEL_REFUSED_KEY: test-model at {server.url}: it refused the key; set the right one in "
        f"PHYLACTERY_MODEL_API_KEY (HTTP 401 broken); small at {other.url}: it has no such model or path; "
        "check PHYLACTERY_MODEL and PHYLACTERY_MODEL_BASE_URL (HTTP 404 broken)"
    )


@pytest.mark.slow
async def test_an_endpoint_that_hangs_leaves_time_for_the_fallback(server: ModelServer, other: ModelServer) -> None:
    server.otherwise = lambda _asked: hangs()
    other.otherwise = lambda _asked: says("here")
    fallback = {"model_fallback": "small", "model_fallback_base_url": other.url}
    async with opened(server.url, model_total_seconds=16, model_first_token_seconds=300, **fallback) as models:
        assert await text_of(models) == "here"
    assert len(server.asked) == 1


async def test_failures_close_an_endpoint_off_and_one_probe_opens_it_again(server: ModelServer) -> None:
    server.otherwise = lambda _asked: fails(500)
    time = Time()
    options: dict[str, Any] = {"model_breaker_failures": 4, "model_breaker_seconds": 30, "model_attempts": 3}
    async with opened(server.url, monotonic=time, **options) as models:
        assert await reason_of(models) == "MODEL_SERVER_ERROR"
        assert await reason_of(models) == "MODEL_CLOSED_OFF"
        assert len(server.asked) == 4
        assert await reason_of(models) == "MODEL_CLOSED_OFF"
        assert len(server.asked) == 4
        time.now += 30
        assert await reason_of(models) == "MODEL_CLOSED_OFF"
        assert len(server.asked) == 5, "one probe, and its failure closes the endpoint off again"
        time.now += 30
        server.otherwise = lambda _asked: says("well again")
        assert await text_of(models) == "well again"
        assert await text_of(models) == "well again"


async def test_many_at_once_send_one_probe(server: ModelServer) -> None:
    server.otherwise = lambda _asked: fails(500)
    time = Time()
    async with opened(server.url, monotonic=time, model_breaker_failures=1, model_attempts=1) as models:
        assert await reason_of(models) == "MODEL_SERVER_ERROR"
        time.now += 30
        server.otherwise = lambda _asked: says("slowly", pause=0.2)
        found = await asyncio.gather(*(models.ask(HI, Spent()) for _ in range(8)), return_exceptions=True)
        assert sum(isinstance(one, ModelUnavailableError) for one in found) == 7
        assert len(server.asked) == 2


async def test_a_cancelled_probe_lets_the_next_one_through(server: ModelServer) -> None:
    server.script(fails(500), hangs())
    time = Time()
    async with opened(server.url, monotonic=time, model_breaker_failures=1, model_attempts=1) as models:
        assert await reason_of(models) == "MODEL_SERVER_ERROR"
        time.now += 30
        probe = asyncio.create_task(models.ask(HI, Spent()))
        await asyncio.to_thread(server.wait_until_asked, 2)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        assert await text_of(models) == "ok"


async def test_what_an_endpoint_refuses_says_nothing_against_it(server: ModelServer) -> None:
    server.otherwise = lambda _asked: fails(400)
    async with opened(server.url, model_breaker_failures=2) as models:
        for _ in range(5):
            assert await reason_of(models) == "MODEL_BAD_REQUEST"
    assert len(server.asked) == 5


async def test_one_turn_alone_does_not_close_an_endpoint_for_everybody(server: ModelServer) -> None:
    server.otherwise = lambda _asked: fails(500)
    async with opened(server.url, model_breaker_failures=3, model_backoff_seconds=0.001) as models:
        for _ in range(3):
            with pytest.raises(ModelUnavailableError):
                await models.ask(HI, Spent(), turn="a bad one")
        server.otherwise = lambda _asked: says("well")
        assert (await models.ask(HI, Spent(), turn="another")).heard.text == "well"
        server.otherwise = lambda _asked: fails(500)
        for turn in ("a bad one", "a second", "a third"):
            with pytest.raises(ModelUnavailableError) as caught:
                await models.ask(HI, Spent(), turn=turn)
        assert caught.value.reason == "MODEL_CLOSED_OFF"


async def test_the_log_says_what_the_endpoint_says_without_the_key_and_the_conversation(server: ModelServer) -> None:
    key = "sk-" + "9f8e7d6c5b4a39281706"
    message = f"Incorrect key {key} (or sk-9f**06) for the prompt: my wifi is Sunny-Day 2024! and 4111111111111111"
    server.otherwise = lambda _asked: fails(401, json.dumps({"error": {"message": message, "code": "bad"}}))
    asked = Question([{"role": "user", "content": "note that my wifi is Sunny-Day 2024! please"}], [])
    async with opened(server.url, model_api_key=key) as models:
        with capture_logs() as told, pytest.raises(ModelUnavailableError):
            await models.ask(asked, Spent())
    [line] = [one for one in told if one["event"] == "a model gave no reply"]
    assert (line["reason"], line["status"], line["error_code"]) == ("MODEL_REFUSED_KEY", 401, "bad")
    assert line["said"] == "Incorrect key […] (or […] for the prompt: […] […] […] […] […] and […]"


async def test_half_replies_are_paid_and_counted(server: ModelServer) -> None:
    server.script(half("half of a long reply", cut=False), fails(503), says("whole", usage=(10, 2)))
    spent = Spent()
    async with opened(server.url, model_input_price=1.0, model_output_price=1.0) as models:
        assert await text_of(models, spent) == "whole"
    assert spent.requests == 3
    assert spent.prompt_tokens > 10
    assert spent.completion_tokens == 2 + 7, "twenty characters are about seven tokens"
    assert spent.cost_micros == spent.prompt_tokens + spent.completion_tokens


@pytest.mark.parametrize("usage", [(0, 0), (1, 1)])
async def test_a_count_that_cannot_be_true_stops_no_budget(server: ModelServer, usage: tuple[int, int]) -> None:
    server.script(says("w" * 4_800, usage=usage))
    spent = Spent()
    async with opened(server.url) as models:
        await models.ask(Question([{"role": "user", "content": "h" * 4_800}], []), spent)
    assert min(spent.prompt_tokens, spent.completion_tokens) >= 200


async def test_tokens_nobody_counted_are_estimated(server: ModelServer) -> None:
    server.script(calls(("f", {"a": "x" * 30}), text="w" * 30, usage=None))
    spent = Spent()
    async with opened(server.url) as models:
        await models.ask(HI, spent)
    assert spent.completion_tokens >= 20
    assert spent.prompt_tokens >= 10


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """What the process's tracer tells; a process has one provider, so it is put aside for the test."""
    exporter = InMemorySpanExporter()
    provider = LightProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    before = trace._TRACER_PROVIDER
    trace._TRACER_PROVIDER = provider
    yield exporter
    trace._TRACER_PROVIDER = before


async def test_every_request_is_a_span_of_genai_attributes_without_content(
    server: ModelServer, spans: InMemorySpanExporter
) -> None:
    server.script(fails(429), calls(("f", {"a": "an argument"}), text="what the model said", usage=(12, 5)))
    async with opened(server.url) as models:
        await models.ask(HI, Spent())
    first, second = spans.get_finished_spans()
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    common = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "test-model",
        "server.address": "127.0.0.1",
        "server.port": port,
    }
    assert (first.name, second.name) == ("chat test-model", "chat test-model")
    assert dict(first.attributes or {}) == {**common, "phylactery.attempt": 1, "error.type": "MODEL_RATE_LIMITED"}
    found = {
        name: list(value) if isinstance(value, tuple) else value for name, value in (second.attributes or {}).items()
    }
    assert found == {
        **common,
        "phylactery.attempt": 2,
        "gen_ai.response.model": "test-model",
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 5,
    }
    assert (first.status.status_code.name, second.status.status_code.name) == ("ERROR", "UNSET")


ECHOES: list[Answer] = [
    fails(401, json.dumps({"error": {"message": f"Incorrect key {KEY}", "code": KEY}})),
    fails(400, json.dumps({"error": {"message": KEY, "code": f"x{KEY}"}})),
    fails(500, KEY),
    raw(KEY),
    events({"error": {"message": KEY, "code": KEY}}),
    events({"model": KEY, "choices": [{"delta": {"content": "hi"}, "finish_reason": KEY}]}),
    redirects(f"http://127.0.0.1:9/?key={KEY}"),
    half(KEY),
    malformed(),
    hangs(KEY),
    says("fine"),
]


async def test_the_key_is_in_no_error_no_log_and_no_span(
    server: ModelServer, spans: InMemorySpanExporter, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    logs.configure("agent", "DEBUG")
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    told: list[str] = []
    try:
        for answer in ECHOES:
            server.script(answer)
            options = {"model_api_key": KEY, "model_attempts": 1, "model_between_tokens_seconds": 0.5}
            async with opened(server.url, **options) as models:
                told.append(repr(models.config))
                try:
                    answered = await models.ask(HI, Spent())
                except ModelUnavailableError as error:
                    told += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
                else:
                    told.append(answered.endpoint.model)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert len(server.asked) == len(ECHOES)
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    written = capfd.readouterr()
    told += [span.to_json() for span in spans.get_finished_spans()]
    assert len(spans.get_finished_spans()) == len(ECHOES)
    everything = "\n".join([*told, heard.getvalue(), written.out, written.err])
    assert "MODEL_REFUSED_KEY" in everything
    assert KEY not in everything
    assert "what the person said" not in everything
