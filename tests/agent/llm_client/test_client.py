"""The client of one endpoint against a real HTTP server: accepted and rejected responses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from phylactery_agent.llm_client.client import EndpointClient
from phylactery_agent.llm_client.errors import ModelFault
from phylactery_agent.llm_client.request import Question
from phylactery_agent.llm_client.response import Heard, HeardCall

from tests.support.agent.models import config_of
from tests.support.clock import FakeClock
from tests.support.servers.model_server import (
    Answer,
    ModelServer,
    calls,
    chunk_of,
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

HI = Question([{"role": "user", "content": "hola"}], [])
KEY = "sk-very-secret-0123456789"
TOOL = {"type": "function", "function": {"name": "f", "description": "Does.", "parameters": {"type": "object"}}}


async def ask(server: ModelServer, question: Question = HI, *, heard: list[str] | None = None, **options: Any) -> Heard:
    config = config_of(server.url, **options)
    client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())

    async def on_text(text: str) -> None:
        if heard is not None:
            heard.append(text)

    try:
        return await client.ask(question, on_text)
    finally:
        await client.close()


async def fault(server: ModelServer, answer: Answer, **options: Any) -> ModelFault:
    server.script(answer)
    with pytest.raises(ModelFault) as caught:
        await ask(server, **options)
    assert len(server.asked) == 1, "the client itself asks nothing again"
    return caught.value


FORM = {"name": "answer", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}}


@pytest.mark.parametrize("status", [400, 422])
async def test_an_endpoint_that_refuses_a_form_is_asked_without_it_and_never_for_one_again(
    server: ModelServer, status: int
) -> None:
    question = Question(HI.messages, [], FORM)
    config = config_of(server.url)
    client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())
    try:
        server.script(fails(status), says('{"a": "b"}'), says("{}"))
        assert (await client.ask(question)).text == '{"a": "b"}'
        assert (await client.ask(question)).text == "{}"
    finally:
        await client.close()
    wanted = {"type": "json_schema", "json_schema": FORM}
    assert [one.body.get("response_format") for one in server.asked] == [wanted, None, None]


CLOSED = {"type": "object", "required": ["a"], "additionalProperties": False}
PROPERTIES = {"a": {"type": "string", "maxLength": 9}, "b": {"type": "integer", "default": 3}}
STRICT = {
    **CLOSED,
    "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
    "required": ["a", "b"],
}


def tool_of(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "Does.", "parameters": schema}}


async def test_arguments_are_asked_for_strictly_and_a_null_for_what_is_left_out_is_none(server: ModelServer) -> None:
    server.script(calls(("f", {"a": "x", "b": None}), ("g", {"a": None})))
    tools = [tool_of("f", {**CLOSED, "properties": PROPERTIES}), TOOL | {"function": {**TOOL["function"], "name": "g"}}]
    reply = await ask(server, Question(HI.messages, tools))
    sent = [one["function"] for one in server.asked[0].body["tools"]]
    assert (sent[0]["parameters"], sent[0]["strict"]) == (STRICT, True)
    assert sent[1] == tools[1]["function"], "an object that takes any property is asked for as it is"
    assert [json.loads(one.raw) for one in reply.calls] == [{"a": "x"}, {"a": None}]


async def test_an_endpoint_that_refuses_strict_tools_still_gets_forms(server: ModelServer) -> None:
    tools = [tool_of("f", {**CLOSED, "properties": PROPERTIES})]
    config = config_of(server.url)
    client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())
    try:
        server.script(fails(400), says("a"), says("b"), says("{}"))
        assert [(await client.ask(Question(HI.messages, tools))).text for _ in range(2)] == ["a", "b"]
        await client.ask(Question(HI.messages, [], FORM))
    finally:
        await client.close()
    strict = [["strict" in one["function"] for one in asked.body.get("tools", ())] for asked in server.asked]
    assert strict == [[True], [False], [False], []]
    assert "response_format" in server.asked[-1].body


@pytest.mark.parametrize("answer", [fails(401), fails(429), fails(500), hangs()], ids=["401", "429", "500", "hangs"])
async def test_what_is_not_about_the_form_is_not_asked_again_for_it(server: ModelServer, answer: Answer) -> None:
    server.script(answer)
    with pytest.raises(ModelFault):
        await ask(server, Question(HI.messages, [], FORM), model_first_token_seconds=0.2)
    assert len(server.asked) == 1


async def test_a_request_that_is_refused_without_a_form_too_tells_nothing_about_forms(server: ModelServer) -> None:
    config = config_of(server.url)
    client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())
    try:
        server.script(fails(400), fails(400), says("{}"))
        with pytest.raises(ModelFault):
            await client.ask(Question(HI.messages, [], FORM))
        await client.ask(Question(HI.messages, [], FORM))
    finally:
        await client.close()
    assert "response_format" in server.asked[-1].body


@pytest.mark.parametrize("stream", [True, False])
async def test_words_and_parallel_calls_are_heard_streamed_and_whole(server: ModelServer, stream: bool) -> None:
    server.script(calls(("f", {"a": "ñ"}), ("g", {"b": [1, 2]}, ""), text="Ahora voy.", usage=(21, 9)))
    heard: list[str] = []
    reply = await ask(server, Question(HI.messages, [TOOL]), heard=heard, model_stream=stream)
    wanted = (HeardCall("f", json.dumps({"a": "ñ"})), HeardCall("g", '{"b": [1, 2]}'))
    assert reply == Heard("Ahora voy.", wanted, "tool_calls", "test-model", 21, 9)
    assert heard == ["Ahora voy."]
    [asked] = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {
        "model": "test-model",
        "messages": [{"role": "user", "content": "hola"}],
        "tools": [TOOL],
        "stream": stream,
        "max_tokens": 4096,
        **({"stream_options": {"include_usage": True}} if stream else {}),
    }


async def test_every_option_an_endpoint_may_refuse_can_be_left_out(server: ModelServer) -> None:
    options = {"model_stream_usage": False, "model_reply_tokens_field": "none"}
    reply = await ask(server, **options)
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("ok", None, None)
    assert server.asked[0].body.keys() == {"model", "messages", "stream"}


async def test_limits_and_temperature_are_sent_as_the_endpoint_calls_them(server: ModelServer) -> None:
    await ask(server, model_reply_tokens=77, model_reply_tokens_field="max_completion_tokens", model_temperature=0.0)
    body = server.asked[0].body
    assert (body["max_completion_tokens"], body["temperature"]) == (77, 0.0)
    assert "max_tokens" not in body


async def test_an_endpoint_without_a_key_is_sent_none(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "somebody-elses")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    await ask(server)
    headers = server.asked[0].headers
    assert "authorization" not in headers
    assert "somebody-elses" not in str(headers)
    assert "x-stainless-os" not in headers


async def test_a_key_goes_with_every_question(server: ModelServer) -> None:
    await ask(server, model_api_key=KEY)
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


async def test_an_endpoint_that_does_not_stream_is_understood_all_the_same(server: ModelServer) -> None:
    answer = {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}
    server.script(raw(json.dumps(answer), "application/json; charset=utf-8"))
    heard: list[str] = []
    assert (await ask(server, heard=heard)).text == "whole"
    assert heard == ["whole"]


async def test_a_stream_is_whole_once_the_model_says_so_whatever_breaks_after_it(server: ModelServer) -> None:
    said = {"choices": [{"delta": {"content": "all of it"}, "finish_reason": "stop"}]}
    for ending in (events(said, cut=True), events(said, '{"usage": '), events(said), events(said, "[DONE]")):
        server.script(ending)
        assert (await ask(server)).text == "all of it"


async def test_comments_that_keep_a_stream_open_are_no_words(server: ModelServer) -> None:
    def answer(exchange: Any) -> None:
        exchange.begin()
        for _ in range(3):
            exchange.send(b": still thinking\n\n")
        exchange.event(chunk_of(exchange, {"content": "thought"}, finish="stop"))
        exchange.end()

    server.script(answer)
    assert (await ask(server)).text == "thought"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (malformed(), "MODEL_MALFORMED"),
        (half(), "MODEL_UNREACHABLE"),
        (half(cut=False), "MODEL_CUT_OFF"),
        (events(), "MODEL_CUT_OFF"),
        (events("[DONE]"), "MODEL_CUT_OFF"),
        (events({"choices": []}), "MODEL_CUT_OFF"),
        (events({"choices": [{"delta": {}, "finish_reason": "stop"}]}, "[DONE]"), "MODEL_MALFORMED"),
        (events("[1, 2]"), "MODEL_MALFORMED"),
        (events('"words"'), "MODEL_MALFORMED"),
        (events("[" * 100_000), "MODEL_MALFORMED"),
        (events({"error": {"message": "overloaded", "code": "overloaded"}}), "MODEL_SERVER_ERROR"),
        (events({"error": {"code": "context_length_exceeded"}}), "MODEL_CONVERSATION_TOO_LONG"),
        (raw('{"choices": []}'), "MODEL_MALFORMED"),
        (raw("<html>log in first</html>", "text/html"), "MODEL_CUT_OFF"),
        (raw(b"\xff\xfe", "application/json"), "MODEL_MALFORMED"),
        (raw(""), "MODEL_MALFORMED"),
        (endless(), "MODEL_REPLY_TOO_LARGE"),
        (huge(), "MODEL_REPLY_TOO_LARGE"),
    ],
)
async def test_what_is_no_answer_is_told_as_what_it_is(server: ModelServer, answer: Answer, reason: str) -> None:
    assert (await fault(server, answer)).reason == reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (malformed(), "MODEL_MALFORMED"),
        (raw('{"choices": []}'), "MODEL_MALFORMED"),
        (raw('{"choices": [{"message": {"content": "x"}}'), "MODEL_MALFORMED"),
        (half(), "MODEL_UNREACHABLE"),
        (huge(), "MODEL_REPLY_TOO_LARGE"),
    ],
)
async def test_what_is_no_whole_answer_is_told_as_well(server: ModelServer, answer: Answer, reason: str) -> None:
    assert (await fault(server, answer, model_stream=False)).reason == reason


async def test_a_packed_answer_is_not_unpacked(server: ModelServer) -> None:
    def answer(exchange: Any) -> None:
        exchange.whole(200, b"\x1f\x8b" + b"\0" * 50, {"Content-Encoding": "gzip"})

    assert (await fault(server, answer)).reason == "MODEL_MALFORMED"
    assert server.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(server: ModelServer, status: int) -> None:
    with model_server() as elsewhere:
        found = await fault(server, redirects(f"{elsewhere.url}/chat/completions", status), model_api_key=KEY)
        assert (found.reason, found.status) == ("MODEL_REDIRECTED", status)
        assert elsewhere.asked == []


async def test_an_endpoint_that_says_when_to_come_back_is_heard(server: ModelServer) -> None:
    assert (await fault(server, fails(429, retry_after="3"))).retry_after == 3.0


async def test_an_endpoint_that_is_not_there_is_told_as_unreachable() -> None:
    with model_server() as gone:
        url = gone.url
    config = config_of(url)
    client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())
    with pytest.raises(ModelFault) as caught:
        await client.ask(HI)
    await client.close()
    assert (caught.value.reason, caught.value.began) == ("MODEL_UNREACHABLE", False)


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        (hangs(), {"model_first_token_seconds": 0.5}),
        (hangs("once upon a time"), {"model_between_tokens_seconds": 0.5}),
        (says("x" * 400, chunk=1, pause=0.1), {"model_reply_seconds": 2.0}),
        (hangs(), {"model_stream": False, "model_reply_seconds": 0.5}),
    ],
)
async def test_silence_ends_by_its_bound(server: ModelServer, answer: Answer, options: dict[str, Any]) -> None:
    assert (await fault(server, answer, **options)).reason == "MODEL_TIMEOUT"


@pytest.mark.slow
async def test_the_first_reply_is_passed_on_when_complete_and_later_ones_as_they_grow(server: ModelServer) -> None:
    config = config_of(server.url)
    client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())
    heard: list[str] = []

    async def on_text(text: str) -> None:
        heard.append(text)

    server.script(*[says("one two", chunk=4)] * 2, says("I think.</think>\nYes", chunk=4), says("I", chunk=1))
    for _ in range(4):
        await client.ask(HI, on_text)
    await client.close()
    assert heard[:3] == ["one two", "one ", "one two"]
    assert heard[-2:] == ["Yes", "I"]


async def test_time_the_listener_takes_is_no_pause_of_the_endpoint(server: ModelServer) -> None:
    config = config_of(server.url, model_between_tokens_seconds=2.0)
    client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())
    await client.ask(HI)
    server.script(says("one two three", chunk=4))

    async def slow(text: str) -> None:
        await asyncio.sleep(2.5 if text == "one " else 0)

    assert (await client.ask(HI, slow)).text == "one two three"
    await client.close()


async def test_what_the_listener_raises_is_passed_on_and_the_connection_closed(server: ModelServer) -> None:
    config = config_of(server.url)
    client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())
    await client.ask(HI)
    server.script(endless())

    async def fail(_text: str) -> None:
        raise LookupError("the lease is lost")

    with pytest.raises(LookupError, match="the lease is lost"):
        await client.ask(HI, fail)
    assert (await client.ask(HI)).text == "ok"
    await client.close()


async def test_a_cancelled_question_ends_and_the_next_one_is_answered(server: ModelServer) -> None:
    config = config_of(server.url)
    client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())
    for answer in (hangs(), hangs("half a"), endless()):
        server.script(answer)
        heard = asyncio.Event()

        async def on_text(_text: str, heard: asyncio.Event = heard) -> None:
            heard.set()

        before = len(server.asked)
        task = asyncio.create_task(client.ask(HI, on_text))
        await asyncio.to_thread(server.wait_until_asked, before + 1)
        if answer.__qualname__.startswith("endless"):
            await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.ask(HI)).text == "ok"
    await client.close()


async def test_what_is_not_encrypted_goes_through_no_proxy_of_the_environment(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = server.url.replace("127.0.0.1", "0.0.0.0")  # no loopback address, and yet this machine
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with model_server() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        config = config_of(elsewhere, model_api_key=KEY, model_allow_plaintext=True)
        client = EndpointClient(config.endpoints[0], config.bounds, FakeClock())
        try:
            assert (await client.ask(HI)).text == "ok"
        finally:
            await client.close()
        assert (len(server.asked), proxy.asked) == (1, [])


async def test_no_proxy_of_the_environment_is_asked_about_this_machine(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert (await ask(server)).text == "ok"
