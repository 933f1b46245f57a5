"""RPCs over HTTP: the same answers as over gRPC, who may call, limits, and how a call ends that cannot be served."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from google.protobuf import json_format
from grpc import aio
from phylactery_chassis.auth.identity import LoopbackAuthenticator, token_hash
from phylactery_chassis.errors import PermissionDenied, StartError
from phylactery_chassis.settings import load
from phylactery_gateway.app import build
from phylactery_gateway.rpc import calls as rpc_calls
from phylactery_gateway.rpc.admission import Admission, Envelope
from phylactery_gateway.rpc.services import known_services
from phylactery_gateway.settings import GatewaySettings
from structlog.testing import capture_logs

from tests.support.agent.system import System, open_system
from tests.support.cases import each_case
from tests.support.contracts.refusals import refusal_of
from tests.support.contracts.rpcs import Rpc, every_rpc
from tests.support.contracts.valid_requests import valid_requests
from tests.support.gateway.rpc import LIMIT_SECONDS, Door, eventually, offered, open_door
from tests.support.gateway.upstream import Upstream, open_upstream
from tests.support.processes.ports import lasting_port

CHAT = "phylactery.agent.v1.ChatService"
GET_THREAD = f"/{CHAT}/GetThread"
SEND = f"/{CHAT}/SendMessage"
PACKAGES = ("agent", "memory", "riskgate")
MARK = "mark7f3a"
ALLOWED = "https://console.example"


def everything(system: System) -> dict[str, str]:
    return offered({name: system.target(name) for name in PACKAGES})


@asynccontextmanager
async def door_to(upstream: Upstream, folder: Path, **options: Any) -> AsyncIterator[Door]:
    async with open_door(folder, {CHAT: upstream.target}, **options) as door:
        yield door


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with open_upstream() as upstream:
        yield upstream


@pytest.fixture
async def door(upstream: Upstream, tmp_path: Path) -> AsyncIterator[Door]:
    async with door_to(upstream, tmp_path, rpc_origins=[ALLOWED]) as door:
        yield door


def told(response: httpx.Response) -> tuple[int, str, str]:
    """Return a failure's status, code and reason."""
    body = response.json()
    reasons = [one["debug"]["reason"] for one in body.get("details", ()) if one["type"] == "google.rpc.ErrorInfo"]
    return response.status_code, body["code"], "".join(reasons).removeprefix("ERROR_REASON_")


def head(version: str, length: int) -> bytes:
    """Return the beginning of a request."""
    lines = (f"POST {GET_THREAD} HTTP/{version}", "Host: localhost", "Content-Type: application/json")
    return "\r\n".join((*lines, f"Content-Length: {length}", "", "")).encode()


# the same over both


RANDOM = re.compile(r"[a-z0-9]{20,}|[A-Za-z0-9_+/-]{22,}={0,2}|\d{4}-\d\d-\d\dT[\d:.]+Z")
STATUSES = {"CANCELLED": "canceled"}


def comparable(value: Any, name: str = "") -> Any:
    """Return an answer without what two installations never have in common: ids, keys, signatures, sizes of them."""
    if isinstance(value, dict):
        return {key: comparable(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [comparable(item, name) for item in value]
    return RANDOM.sub("*", value) if isinstance(value, str) else value


async def over_grpc(system: System, rpc: Rpc, request: Any) -> Any:
    channel = {"agent": system.agent_channel, "memory": system.memory_channel, "riskgate": system.riskgate_channel}
    call = channel[rpc.service].unary_unary(
        rpc.path, request_serializer=type(request).SerializeToString, response_deserializer=rpc.response.FromString
    )
    try:
        return "ok", comparable(json_format.MessageToDict(await call(request, timeout=LIMIT_SECONDS)))
    except aio.AioRpcError as error:
        refusal = refusal_of(error)
        code = STATUSES.get(refusal.code.name, refusal.code.name.lower())
        return code, comparable([refusal.message, refusal.reason, refusal.fields])


async def over_http(door: Door, rpc: Rpc, request: Any) -> Any:
    response = await door.call(rpc.path, json_format.MessageToJson(request))
    body = response.json()
    if response.status_code == 200:
        return "ok", comparable(body)
    details = {one["type"]: one["debug"] for one in body.get("details", ())}
    reason = details["google.rpc.ErrorInfo"]["reason"].removeprefix("ERROR_REASON_")
    fields = [one["field"] for one in details.get("google.rpc.BadRequest", {}).get("fieldViolations", ())]
    return body["code"], comparable([body["message"], reason, fields])


UNARY = [rpc for rpc in every_rpc() if not rpc.descriptor.client_streaming and not rpc.descriptor.server_streaming]


@pytest.mark.slow
async def test_every_unary_rpc_answers_over_http_as_over_grpc(tmp_path: Path):
    """Two installations that never met are asked the same in the same order, one over gRPC and one over HTTP."""
    requests = valid_requests()
    codes = set()
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(open_system(tmp_path / "one", asks=True))
        other = await stack.enter_async_context(open_system(tmp_path / "other", asks=True))
        door = await stack.enter_async_context(open_door(tmp_path, everything(other)))
        for rpc in UNARY:
            (request,) = requests[rpc.name]
            expected = await over_grpc(one, rpc, request)
            assert await over_http(door, rpc, request) == expected, rpc.name
            codes.add(expected[0])
    assert len(UNARY) > 60
    assert {"ok", "not_found", "invalid_argument"} <= codes


async def test_a_conversation_over_http_goes_on_over_grpc(tmp_path: Path):
    async with open_system(tmp_path) as system, open_door(tmp_path, everything(system)) as door:
        said = {"requestId": "request-1", "threadId": "t1", "text": "eco: hola"}
        answer = (await door.call(SEND, said, x_phylactery_subject="ana", x_phylactery_tenant="acme")).json()
        assert answer["reply"]["text"] == "hola"
        assert await system.person("ana").transcript() == [("user", "eco: hola"), ("assistant", "hola")]
        again = await door.call(SEND, said, x_phylactery_subject="ana", x_phylactery_tenant="acme")
        assert again.json()["run"]["id"] == answer["run"]["id"], "the request's id makes it the same"
        others = await door.call(f"/{CHAT}/GetThread", {"threadId": "t1"}, x_phylactery_subject="ben")
        assert told(others) == (404, "not_found", "THREAD_NOT_FOUND")


# what is passed on


async def test_identity_request_id_trace_and_deadline_are_passed_on_and_nothing_else(door: Door, upstream: Upstream):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    answer = await door.call(
        GET_THREAD,
        {"threadId": "t1"},
        authorization="Bearer abc",
        x_phylactery_subject="ana",
        x_phylactery_tenant="acme",
        x_request_id="my request",
        traceparent=trace,
        connect_timeout_ms="20000",
        cookie="session=1",
        x_other="1",
    )
    assert (answer.status_code, answer.json()) == (200, {"thread": {"id": "t1"}})
    assert answer.headers["x-request-id"] == "my request"
    (metadata,) = upstream.metadata
    assert {name: metadata.get(name) for name in ("authorization", "x-phylactery-subject", "x-phylactery-tenant")} == {
        "authorization": "Bearer abc",
        "x-phylactery-subject": "ana",
        "x-phylactery-tenant": "acme",
    }
    assert metadata["x-request-id"] == "my request"
    assert metadata["traceparent"].split("-")[1] == trace.split("-")[1]
    assert not {"cookie", "x-other", "connect-timeout-ms"} & metadata.keys()
    (deadline,) = upstream.deadlines
    assert deadline is not None
    assert deadline < 21


async def test_a_call_without_a_deadline_has_the_gateways_and_an_id_of_its_own(upstream: Upstream, tmp_path: Path):
    async with door_to(upstream, tmp_path, rpc_seconds=50) as door:
        answer = await door.call(GET_THREAD, {})
        longer = await door.call(GET_THREAD, {}, connect_timeout_ms="9000000000")
    assert re.fullmatch(r"http_\w+", answer.headers["x-request-id"])
    assert longer.status_code == 200
    assert all(one is not None and one < 51 for one in upstream.deadlines)


async def test_a_call_that_takes_too_long_ends_when_its_caller_said(door: Door, upstream: Upstream):
    answer = await door.call(GET_THREAD, {"threadId": "hang"}, connect_timeout_ms="300")
    assert told(answer) == (504, "deadline_exceeded", "DEADLINE_EXCEEDED")
    await asyncio.wait_for(upstream.cancelled.wait(), LIMIT_SECONDS)


async def test_a_client_that_hangs_up_cancels_its_call(door: Door, upstream: Upstream):
    asking = asyncio.create_task(door.call(GET_THREAD, {"threadId": "hang"}))
    await asyncio.wait_for(upstream.asked.wait(), LIMIT_SECONDS)
    asking.cancel()
    await asyncio.wait_for(upstream.cancelled.wait(), LIMIT_SECONDS)
    assert (await door.call(GET_THREAD, {"threadId": "t1"})).status_code == 200


# what is refused before it is a call


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"threadId": "a", "threadId": "mark7f3a"}', "thread_id"),
        ('{"threadId": 7}', "thread_id"),
        ('{"threadId": "mark7f3a", "nope": 1}', "nope"),
        ('{"threadId": NaN}', "thread_id"),
        ('{"threadId": ' + "[" * 50_000 + "]" * 50_000 + "}", ""),
        ('{"threadId": "mark7f3a"', ""),
        ("", ""),
        (b'{"threadId": "\xff"}', ""),
    ],
    ids=["duplicate", "type", "unknown", "NaN", "deep", "cut", "empty", "no UTF-8"],
)
async def test_bad_json_is_refused_by_its_field_and_never_reaches_the_service(
    door: Door, upstream: Upstream, body: str | bytes, field: str
):
    answer = await door.call(GET_THREAD, body)
    assert told(answer) == (400, "invalid_argument", "INVALID_REQUEST")
    assert field in answer.json()["message"]
    assert MARK not in answer.text
    assert upstream.metadata == []


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"content_type": "text/plain"}, (415, "invalid_argument")),
        ({"content_type": "application/proto"}, (415, "invalid_argument")),
        ({"content_type": "application/connect+json"}, (415, "invalid_argument")),
        ({"content_type": "application/json; charset=latin-1"}, (415, "invalid_argument")),
        ({"content_type": 'application/json; charset="UTF-8"'}, (200, "")),
        ({"content_encoding": "gzip"}, (501, "unimplemented")),
        ({"connect_protocol_version": "2"}, (400, "invalid_argument")),
        ({"connect_protocol_version": "1"}, (200, "")),
        ({"connect_timeout_ms": "1.5"}, (400, "invalid_argument")),
        ({"connect_timeout_ms": "-1"}, (400, "invalid_argument")),
        ({"connect_timeout_ms": "99999999999"}, (400, "invalid_argument")),
        ({"connect_timeout_ms": "0"}, (504, "deadline_exceeded")),
        ({"x_request_id": "x" * 201}, (400, "invalid_argument")),
        ({"x_phylactery_subject": "ana ben"}, (401, "unauthenticated")),
    ],
)
async def test_a_form_that_is_not_read_here_is_refused_by_its_code(door: Door, headers: dict[str, str], expected: Any):
    answer = await door.call(GET_THREAD, {"threadId": "t"}, **headers)
    assert (answer.status_code, answer.json().get("code", "")) == expected


async def test_a_header_that_names_the_caller_twice_is_refused(door: Door, upstream: Upstream):
    headers = [("content-type", "application/json"), ("authorization", "Bearer a"), ("authorization", "Bearer b")]
    answer = await door.client.post(GET_THREAD, content="{}", headers=headers)
    assert told(answer) == (401, "unauthenticated", "UNAUTHENTICATED")
    assert upstream.metadata == []


async def test_a_token_that_no_service_could_read_is_refused(door: Door, upstream: Upstream):
    headers = [(b"content-type", b"application/json"), (b"authorization", b"Bearer \xff\xfe")]
    answer = await door.client.post(GET_THREAD, content="{}", headers=headers)
    assert told(answer) == (401, "unauthenticated", "UNAUTHENTICATED")
    assert upstream.metadata == []


async def test_a_path_with_more_than_a_method_is_redirected_nowhere(door: Door):
    for path in (GET_THREAD + "/", "/" + GET_THREAD, GET_THREAD + "/x"):
        answer = await door.client.post(f"{door.url}{path}", content="{}", headers={"content-type": "application/json"})
        assert (answer.status_code, answer.headers.get("location")) == (404, None)


async def test_nothing_between_keeps_an_answer_or_guesses_its_type(door: Door):
    for answer in (await door.call(GET_THREAD, {"threadId": "t"}), await door.call(GET_THREAD, "no json")):
        assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")


async def test_an_answer_waits_for_no_acknowledgement(door: Door):
    assert (await door.client.get("/healthz")).status_code == 200
    connections = door.gateway.http._server.server_state.connections
    options = {
        one.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for one in connections
    }
    assert len(connections) == 1
    assert 0 not in options, "Nagle's algorithm costs 40 ms where an answer is written in two parts"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"/{CHAT}/DropEverything", (501, "unimplemented", "METHOD_NOT_SERVED")),
        ("/phylactery.riskgate.v1.PolicyService/ActivateBundle", (501, "unimplemented", "METHOD_NOT_SERVED")),
        ("/phylactery.agent.v1.PrivacyService/EraseUser", (501, "unimplemented", "METHOD_NOT_SERVED")),
        ("/phylactery.nothing/Nothing", (501, "unimplemented", "METHOD_NOT_SERVED")),
    ],
)
async def test_only_what_was_named_is_served(door: Door, path: str, expected: Any):
    assert told(await door.call(path, {})) == expected


async def test_reading_a_path_is_no_call(door: Door, upstream: Upstream):
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        answer = await door.client.request(method, GET_THREAD)
        assert answer.status_code == 405
        assert "POST" in answer.headers["allow"]
    assert upstream.metadata == []


async def test_a_stream_of_requests_is_for_grpc(tmp_path: Path):
    name = "phylactery.memory.v1.OutputService"
    async with open_door(tmp_path, {name: "127.0.0.1:1"}) as door:
        answer = await door.call(f"/{name}/StoreOutput", {})
    assert told(answer) == (501, "unimplemented", "STREAM_OF_REQUESTS")
    assert "gRPC" in answer.json()["message"]


async def test_without_services_nothing_of_this_is_there(tmp_path: Path):
    folder = tmp_path / "secrets"
    folder.mkdir()
    for name in ("token", "secret"):
        (folder / name).write_text("1:x")
    channel = {"telegram_token_file": folder / "token", "telegram_secret_file": folder / "secret"}
    async with open_door(tmp_path, {}, **channel) as door:
        for path in (GET_THREAD, "/access/v1/evaluation"):
            assert (await door.call(path, {})).status_code == 404
        for path in ("/openapi.json", "/.well-known/authzen-configuration"):
            assert (await door.client.get(path)).status_code == 404
        assert (await door.client.get("/healthz")).status_code == 200


# limits


async def test_a_body_over_the_limit_is_refused_however_it_is_sent(upstream: Upstream, tmp_path: Path):
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 1_000

    headers = {"content-type": "application/json"}
    async with door_to(upstream, tmp_path, max_message_bytes=10_000) as door:
        for body in (b" " * 10_001, chunks()):
            answer = await door.client.post(GET_THREAD, content=body, headers=headers)
            assert told(answer) == (429, "resource_exhausted", "MESSAGE_TOO_LARGE")
        fits = json.dumps({"threadId": "t"}).ljust(10_000)
        assert (await door.call(GET_THREAD, fits)).status_code == 200
    assert len(upstream.metadata) == 1


async def test_a_body_that_does_not_arrive_gives_its_place_back(upstream: Upstream, tmp_path: Path):
    async with door_to(upstream, tmp_path, body_seconds=0.2) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.gateway.port)
        writer.write(head("1.1", 9))
        status = await asyncio.wait_for(reader.readline(), LIMIT_SECONDS)
        writer.close()
    assert b" 504 " in status
    assert upstream.metadata == []


async def test_a_caller_has_so_many_calls_at_once_and_others_have_theirs(upstream: Upstream, tmp_path: Path):
    async with door_to(upstream, tmp_path, max_concurrent_rpcs=3, max_concurrent_rpcs_per_caller=1) as door:
        hanging = asyncio.create_task(door.call(GET_THREAD, {"threadId": "hang"}, x_phylactery_subject="ana"))
        await asyncio.wait_for(upstream.asked.wait(), LIMIT_SECONDS)
        full = await door.call(GET_THREAD, {"threadId": "t"}, x_phylactery_subject="ana")
        assert told(full) == (429, "resource_exhausted", "TOO_MANY_CALLS")
        assert (await door.call(GET_THREAD, {"threadId": "t"}, x_phylactery_subject="ben")).status_code == 200
        hanging.cancel()
        await asyncio.wait_for(upstream.cancelled.wait(), LIMIT_SECONDS)

        async def has_a_place() -> bool:
            return (await door.call(GET_THREAD, {"threadId": "t"}, x_phylactery_subject="ana")).status_code == 200

        await eventually(has_a_place)


async def test_health_is_told_when_every_place_is_taken_and_takes_none(upstream: Upstream, tmp_path: Path):
    async with door_to(upstream, tmp_path, max_concurrent_rpcs=1) as door:
        hanging = asyncio.create_task(door.call(GET_THREAD, {"threadId": "hang"}))
        await asyncio.wait_for(upstream.asked.wait(), LIMIT_SECONDS)
        answers = await asyncio.gather(*(door.client.get("/healthz") for _ in range(20)))
        assert {one.status_code for one in answers} == {200}
        assert (await door.call(GET_THREAD, {})).status_code == 429
        hanging.cancel()


async def test_large_json_is_read_beside_the_event_loop_and_keeps_nobody_waiting(
    door: Door, monkeypatch: pytest.MonkeyPatch
):
    read, begun, go_on, threads = rpc_calls.decoding.read, threading.Event(), threading.Event(), []

    def held(kind: Any, body: bytes, **options: Any) -> Any:
        threads.append(threading.current_thread())
        if len(body) > 10_000:
            begun.set()
            assert go_on.wait(LIMIT_SECONDS)
        return read(kind, body, **options)

    monkeypatch.setattr(rpc_calls.decoding, "read", held)
    large = json.dumps({"threadId": "t"}).ljust(4 * 1024 * 1024)
    asking = asyncio.create_task(door.call(GET_THREAD, large))
    assert await asyncio.to_thread(begun.wait, LIMIT_SECONDS)
    assert (await door.call(GET_THREAD, {"threadId": "small"})).status_code == 200
    assert (await door.client.get("/healthz")).status_code == 200
    go_on.set()
    assert (await asking).json() == {"thread": {"id": "t"}}
    assert [one is threading.main_thread() for one in threads] == [False, True]


# upstreams


async def test_calls_count_by_whether_they_failed_and_from_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class Counter:
        counts: dict[tuple[str, str], int] = {}  # noqa: RUF012 - of this test

        def add(self, amount: int, labels: dict[str, str]) -> None:
            about = labels["rpc.method"], labels["phylactery.rpc.outcome"]
            self.counts[about] = self.counts.get(about, 0) + amount

    monkeypatch.setattr("phylactery_chassis.telemetry.calls._calls", Counter())
    async with open_door(tmp_path, {CHAT: "127.0.0.1:9"}) as door:
        methods = known_services()[CHAT].methods_by_name
        assert Counter.counts == {
            (f"{CHAT}/{name}", outcome): 0 for name in methods for outcome in ("ok", "refused", "failed")
        }
        await door.call(GET_THREAD, {"threadId": "t"})
        await door.call(GET_THREAD, "no JSON")
        await door.call(f"/{CHAT}/NoSuchMethod")
    counted = {about: count for about, count in Counter.counts.items() if count}
    assert counted == {(GET_THREAD[1:], "failed"): 1, (GET_THREAD[1:], "refused"): 1}


@pytest.mark.slow
async def test_a_service_that_is_away_is_unavailable_without_its_address(tmp_path: Path):
    target = f"127.0.0.1:{lasting_port()}"
    async with open_door(tmp_path, {CHAT: target}) as door:
        answer = await door.call(GET_THREAD, {"threadId": "t"})
    assert told(answer) == (503, "unavailable", "SERVICE_UNAVAILABLE")
    assert "try again" in answer.json()["message"]
    assert target.rpartition(":")[2] not in answer.text
    assert "127.0.0.1" not in answer.text


async def test_a_service_of_another_version_lacks_a_method(tmp_path: Path):
    server = aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with open_door(tmp_path, {CHAT: f"127.0.0.1:{port}"}) as door:
            assert told(await door.call(GET_THREAD, {})) == (501, "unimplemented", "METHOD_NOT_SERVED")
    finally:
        await server.stop(None)


async def test_a_fault_of_the_gateway_is_internal_with_an_id_and_without_its_text(
    door: Door, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_args: Any, **_options: Any) -> Any:
        raise RuntimeError(MARK)

    monkeypatch.setattr(rpc_calls.decoding, "read", broken)
    with capture_logs() as lines:
        answer = await door.call(GET_THREAD, {})
    assert told(answer) == (500, "internal", "INTERNAL")
    assert MARK not in answer.text
    (line,) = [line for line in lines if line["event"] == "unexpected error"]
    assert line["error_id"] in answer.json()["message"]
    assert MARK not in json.dumps(line)


# browsers


async def test_a_page_of_another_origin_is_refused_and_its_call_not_made(door: Door, upstream: Upstream):
    for origin in ("https://evil.example", "null", "http://console.example", f"{ALLOWED}.evil.example", ALLOWED + "/"):
        answer = await door.call(GET_THREAD, {"threadId": "t"}, origin=origin)
        assert told(answer) == (403, "permission_denied", "ORIGIN_NOT_ALLOWED")
        assert "access-control-allow-origin" not in answer.headers
        preflight = await door.client.options(
            GET_THREAD, headers={"origin": origin, "access-control-request-method": "POST"}
        )
        assert preflight.status_code == 400
        assert "access-control-allow-origin" not in preflight.headers
    assert upstream.metadata == []


async def test_a_page_of_a_named_origin_calls_without_cookies(door: Door, upstream: Upstream):
    preflight = await door.client.options(
        GET_THREAD,
        headers={
            "origin": ALLOWED,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,connect-protocol-version,connect-timeout-ms,content-type",
        },
    )
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == ALLOWED
    answer = await door.call(GET_THREAD, {"threadId": "t"}, origin=ALLOWED)
    assert answer.headers["access-control-allow-origin"] == ALLOWED
    assert "x-request-id" in answer.headers["access-control-expose-headers"].lower()
    refused = await door.call(GET_THREAD, "no json", origin=ALLOWED)
    assert refused.headers["access-control-allow-origin"] == ALLOWED, "the page may read why"
    for one in (preflight, answer, refused):
        assert "access-control-allow-credentials" not in one.headers
        assert "origin" in one.headers["vary"].lower()
    assert len(upstream.metadata) == 1


async def test_without_origins_no_page_may_call(upstream: Upstream, tmp_path: Path):
    async with door_to(upstream, tmp_path) as door:
        assert (await door.call(GET_THREAD, {}, origin="http://127.0.0.1")).status_code == 403
    assert upstream.metadata == []


# without identities


FORWARDED = {
    "forwarded": "for=127.0.0.1",
    "x_forwarded_for": "127.0.0.1",
    "x_forwarded_host": "localhost",
    "x_forwarded_proto": "https",
    "x_forwarded_anything": "",
    "via": "1.1 proxy",
    "x_real_ip": "127.0.0.1",
    "cf_connecting_ip": "127.0.0.1",
    "host": "gateway.example",
}


@pytest.mark.parametrize("header", FORWARDED)
async def test_in_mode_none_a_request_that_was_forwarded_is_refused(door: Door, upstream: Upstream, header: str):
    answer = await door.call(GET_THREAD, {"threadId": "t"}, **{header: FORWARDED[header]})
    assert told(answer) == (403, "permission_denied", "NOT_LOCAL")
    assert "GATEWAY_IDENTITY_MODE" in answer.json()["message"]
    assert upstream.metadata == []


async def test_in_mode_none_http_1_0_is_refused_as_proxies_speak_it(door: Door, upstream: Upstream):
    reader, writer = await asyncio.open_connection("127.0.0.1", door.gateway.port)
    head = (
        f"POST {GET_THREAD} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
    )
    writer.write(head.encode() + b"{}")
    status = await asyncio.wait_for(reader.readline(), LIMIT_SECONDS)
    writer.close()
    assert b" 403 " in status
    assert upstream.metadata == []


@each_case(
    ("peer", "host", "admitted"),
    [
        ("127.0.0.1", "127.0.0.1:8080", True),
        ("127.0.0.2", "localhost:8080", True),
        ("::1", "[::1]:8080", True),
        ("::ffff:127.0.0.1", "localhost", True),
        ("10.0.0.1", "localhost", False),
        ("::ffff:10.0.0.1", "localhost", False),
        ("", "localhost", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "127.0.0.1.evil.example:80", False),
    ],
)
def test_in_mode_none_only_this_machine_is_admitted(peer: str, host: str, admitted: bool):
    admission, envelope = Admission(LoopbackAuthenticator(), ()), Envelope([("host", host)], peer)
    if admitted:
        assert admission.admit(envelope, "r").principal.subject == "local"
    else:
        with pytest.raises(PermissionDenied) as caught:
            admission.admit(envelope, "r")
        assert caught.value.reason == "NOT_LOCAL"


# with tokens


TOKENS = {
    "ana": {"tenant": "acme", "roles": ["caller"]},
    "ben": {"tenant": "acme", "roles": ["caller"]},
    "pep": {"tenant": "acme", "roles": ["delegate", "caller"]},
}


def write_tokens(path: Path, *without: str) -> Path:
    entries = [
        {"hash": token_hash(f"token-of-{name}"), "subject": name, **entry}
        for name, entry in TOKENS.items()
        if name not in without
    ]
    path.write_text(yaml.safe_dump({"tokens": entries}))
    return path


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer token-of-{name}"}


@pytest.mark.slow
async def test_a_token_is_the_callers_own_at_the_service_too_and_gives_no_more(tmp_path: Path):
    tokens = {"identity_mode": "tokens", "tokens_file": write_tokens(tmp_path / "tokens.yaml")}
    agents = {
        **TOKENS,
        "agent": {"tenant": "*", "roles": ["delegate"]},
    }
    entries = [{"hash": token_hash(f"token-of-{name}"), "subject": name, **entry} for name, entry in agents.items()]
    (tmp_path / "services.yaml").write_text(yaml.safe_dump({"tokens": entries}))
    (tmp_path / "agent-token").write_text("token-of-agent")
    identity = {"identity_mode": "tokens", "tokens_file": tmp_path / "services.yaml"}
    held = {"riskgate_token_file": tmp_path / "agent-token", "memory_token_file": tmp_path / "agent-token"}
    async with (
        open_system(tmp_path, identity, **held) as system,
        open_door(tmp_path, everything(system), public_url="https://gate.example", **tokens) as door,
    ):
        said = {"requestId": "request-1", "threadId": "t1", "text": "eco: hola"}
        proxied = {"x_forwarded_for": "10.0.0.9", "host": "gate.example"}
        first = await door.call(SEND, said, **bearer("ana"), **proxied)
        assert first.json()["reply"]["text"] == "hola"
        assert told(await door.call(GET_THREAD, {"threadId": "t1"}, **bearer("ben")))[0] == 404
        mine = await door.call(GET_THREAD, {"threadId": "t1"}, **bearer("pep"), x_phylactery_subject="ana")
        assert mine.json()["thread"]["id"] == "t1"
        not_hers = await door.call(GET_THREAD, {"threadId": "t1"}, **bearer("ben"), x_phylactery_subject="ana")
        assert told(not_hers) == (403, "permission_denied", "ROLE_REQUIRED")
        operator = await door.call("/phylactery.riskgate.v1.ControlService/ListFreezes", {}, **bearer("ana"))
        assert told(operator) == (403, "permission_denied", "ROLE_REQUIRED")
        over_grpc = aio.insecure_channel(system.target("riskgate")).unary_unary(
            "/phylactery.riskgate.v1.ControlService/ListFreezes"
        )
        with pytest.raises(aio.AioRpcError) as caught:
            await over_grpc(b"", metadata=(("authorization", "Bearer token-of-ana"),))
        assert refusal_of(caught.value).message == operator.json()["message"]
        for wrong in ({}, {"authorization": "Bearer unknown"}, {"authorization": "Basic abc"}):
            answer = await door.call(GET_THREAD, {"threadId": "t1"}, **wrong)
            assert told(answer) == (401, "unauthenticated", "UNAUTHENTICATED")
        write_tokens(tmp_path / "tokens.yaml", "ben")

        async def is_withdrawn() -> bool:
            return (await door.call(GET_THREAD, {"threadId": "t1"}, **bearer("ben"))).status_code == 401

        await eventually(is_withdrawn)


@pytest.mark.slow
async def test_nobody_becomes_a_service_s_own_machine_by_passing_through(tmp_path: Path):
    tokens = {"identity_mode": "tokens", "tokens_file": write_tokens(tmp_path / "tokens.yaml")}
    async with open_system(tmp_path) as system, open_door(tmp_path, everything(system), **tokens) as door:
        freeze = {"target": {"scope": "FREEZE_SCOPE_USER", "tenant": "local", "name": "zoe"}, "reason": "x"}
        answer = await door.call("/phylactery.riskgate.v1.ControlService/Freeze", freeze, **bearer("ana"))
        assert told(answer) == (400, "failed_precondition", "SERVICE_WITHOUT_IDENTITIES")
        streamed = await door.call(f"/{CHAT}/WatchThread", {"threadId": "t"}, **bearer("ana"))
        assert told(streamed) == (400, "failed_precondition", "SERVICE_WITHOUT_IDENTITIES")
        mine = await door.call("/phylactery.riskgate.v1.ControlService/ListFreezes", {}, **bearer("ana"))
        assert mine.status_code == 400
        stub = system.riskgate_channel.unary_unary("/phylactery.riskgate.v1.ControlService/ListFreezes")
        assert await stub(b"") == b"", "nothing was frozen"


async def test_tokens_and_bodies_are_in_no_log_and_no_span(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Nor are ids of requests, which may be anything."""
    spans: list[Any] = []
    opened = rpc_calls.telemetry.span

    def noted(name: str, **options: Any) -> Any:
        spans.append((name, options["attributes"]))
        return opened(name, **options)

    monkeypatch.setattr(rpc_calls.telemetry, "span", noted)
    async with open_upstream() as upstream, door_to(upstream, tmp_path) as door:
        with capture_logs() as lines:
            await door.call(GET_THREAD, {"threadId": MARK}, authorization=f"Bearer {MARK}", x_request_id=MARK)
            await door.call(GET_THREAD, {MARK: MARK}, authorization=f"Bearer {MARK}")
            await door.call(GET_THREAD, f'{{"threadId": "{MARK}', authorization=f"Bearer {MARK}")
    served = [line for line in lines if line["event"] == "rpc over http"]
    assert [line["status"] for line in served] == ["ok", "invalid_argument", "invalid_argument"]
    assert MARK not in repr(lines)
    assert MARK not in repr(spans)
    assert len([name for name, _ in spans if name == GET_THREAD[1:]]) >= 3
    assert MARK not in "".join(capfd.readouterr())


# settings


def settings(**options: Any) -> GatewaySettings:
    return load(GatewaySettings, **options)


SERVED = {"rpc_services": {CHAT: "127.0.0.1:50051"}}


@each_case(
    ("options", "said"),
    [
        ({}, "GATEWAY_RPC_SERVICES"),
        ({"rpc_services": {CHAT: "nowhere"}}, "GATEWAY_RPC_SERVICES"),
        ({**SERVED, "rpc_origins": ["*"]}, "GATEWAY_RPC_ORIGINS"),
        ({**SERVED, "rpc_origins": ["null"]}, "GATEWAY_RPC_ORIGINS"),
        ({**SERVED, "rpc_origins": ["https://a.example/"]}, "GATEWAY_RPC_ORIGINS"),
        ({**SERVED, "public_url": "gate.example"}, "GATEWAY_PUBLIC_URL"),
        ({**SERVED, "public_url": "https://gate.example"}, "GATEWAY_IDENTITY_MODE to tokens"),
        ({**SERVED, "host": "0.0.0.0", "allow_plaintext": True}, "GATEWAY_IDENTITY_MODE to tokens"),
        (
            {**SERVED, "telegram_token_file": "token", "telegram_secret_file": "secret"},
            "GATEWAY_IDENTITY_MODE to tokens",
        ),
        ({**SERVED, "identity_mode": "tokens"}, "GATEWAY_TOKENS_FILE"),
    ],
)
def test_settings_that_would_serve_the_wrong_ones_are_refused(options: dict[str, Any], said: str):
    with pytest.raises(StartError) as caught:
        settings(**options)
    assert said in str(caught.value)


async def test_a_service_that_does_not_exist_is_named_at_the_start(tmp_path: Path):
    options = settings(data_dir=tmp_path, port=0, rpc_services={"phylactery.agent.v1.Chat": "127.0.0.1:1"})
    with pytest.raises(StartError, match=r"no service is called 'phylactery\.agent\.v1\.Chat'") as caught:
        await build(options)
    assert CHAT in str(caught.value)
    assert len(known_services()) > 15


# the end


async def test_idle_connections_of_a_stopped_gateway_end(upstream: Upstream, tmp_path: Path):
    async with door_to(upstream, tmp_path) as door:
        idle = [await asyncio.open_connection("127.0.0.1", door.gateway.port) for _ in range(3)]
        reader, writer = idle[0]
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in await asyncio.wait_for(reader.readline(), LIMIT_SECONDS)
        idle[1][1].write(b"POST /half HTTP/1.1\r\nHost: ")
    for reader, writer in idle:
        async with asyncio.timeout(LIMIT_SECONDS):
            await end_of(reader)
        writer.close()


async def end_of(reader: asyncio.StreamReader) -> None:
    """Read until the other side has closed the connection."""
    try:
        while await reader.read(4_096):
            pass
    except ConnectionResetError:
        return
