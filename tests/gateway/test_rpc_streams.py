"""Server streams as events: order, ids, resuming, heartbeats, slow and vanished readers, and the last event."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc
from phylactery_gateway.http import connections
from phylactery_gateway.http import events as events_module

from tests.support.agent.system import System, approval_of, open_system
from tests.support.gateway.rpc import LIMIT_SECONDS, Door, Events, eventually, offered, open_door
from tests.support.gateway.upstream import Upstream, open_upstream

CHAT = "phylactery.agent.v1.ChatService"
WATCH = f"/{CHAT}/WatchThread"
STREAM = f"/{CHAT}/StreamMessage"
APPROVALS = "/phylactery.riskgate.v1.ApprovalService/WatchApprovals"
ANA = {"x_phylactery_subject": "ana", "x_phylactery_tenant": "acme"}


@asynccontextmanager
async def open_both(folder: Path, **options: Any) -> AsyncIterator[tuple[System, Door]]:
    async with open_system(folder, **options) as system:
        targets = {name: system.target(name) for name in ("agent", "memory", "riskgate")}
        async with open_door(folder, offered(targets)) as door:
            yield system, door


@asynccontextmanager
async def door_to(folder: Path, services: dict[str, Any], **options: Any) -> AsyncIterator[tuple[Upstream, Door]]:
    async with open_upstream(**services) as upstream, open_door(folder, {CHAT: upstream.target}, **options) as door:
        yield upstream, door


async def next_of(events: Events) -> dict[str, Any]:
    event = await asyncio.wait_for(events.next(), LIMIT_SECONDS)
    assert event is not None, "the stream has ended"
    return event


@pytest.mark.slow
async def test_a_turn_is_a_stream_of_the_same_events_as_over_grpc_with_an_end(tmp_path: Path):
    async with open_both(tmp_path) as (system, door):
        said = {"requestId": "request-1", "threadId": "t1", "text": "eco: hola"}
        async with door.stream(STREAM, said, **ANA) as events:
            assert events.response.status_code == 200
            assert events.response.headers["content-type"].startswith("text/event-stream")
            assert events.response.headers["cache-control"] == "no-store"
            assert events.response.headers["x-request-id"]
            *shown, last = await events.rest()
        assert last == {"event": "end", "data": {}}
        assert [one["id"] for one in shown] == [str(number) for number in range(1, len(shown) + 1)]
        stub = chat_pb2_grpc.ChatServiceStub(system.agent_channel)
        request = chat_pb2.StreamMessageRequest(request_id="request-1", thread_id="t1", text="eco: hola")
        stored = [one.event.sequence async for one in stub.StreamMessage(request, metadata=system.person().metadata)]
        assert [int(one["data"]["event"]["sequence"]) for one in shown] == stored


async def test_a_watch_goes_on_after_the_last_event_it_had(tmp_path: Path):
    async with open_both(tmp_path) as (system, door):
        await system.person("ana").say("eco: uno")
        async with door.stream(WATCH, {"threadId": "t1"}, **ANA) as events:
            first = await next_of(events)
            second = await next_of(events)
        async with door.stream(WATCH, {"threadId": "t1"}, last_event_id=first["id"], **ANA) as events:
            assert await next_of(events) == second
        wrong = await door.call(WATCH, {"threadId": "t1"}, last_event_id="junk", **ANA)
        assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_argument")
        nowhere = await door.call(STREAM, {"threadId": "t1"}, last_event_id="1", **ANA)
        assert "Last-Event-ID" in nowhere.json()["message"]


@pytest.mark.slow
async def test_approvals_are_watched_and_resumed_by_their_token(tmp_path: Path):
    async with open_both(tmp_path, asks=True) as (system, door):
        async with door.stream(APPROVALS, {"snapshot": True}, **ANA) as events:
            assert (await next_message(events))["data"]["snapshotEnd"] is True
            approval_id, _ = approval_of(await system.person("ana").say("escribe «hola» en notas.txt"))
            change = await next_message(events)
            assert change["data"]["approval"]["id"] == approval_id
            assert change["id"] == change["data"]["resumeToken"]
        await system.person("ana").reject_at_riskgate(approval_id)
        async with door.stream(APPROVALS, {}, last_event_id=change["id"], **ANA) as events:
            rejected = await next_message(events)
        assert rejected["data"]["approval"]["state"] == "APPROVAL_STATE_REJECTED"


async def next_message(events: Events) -> dict[str, Any]:
    """Return the next event that is no heartbeat."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while "data" not in (event := await next_of(events)):
            pass
    return event


@pytest.mark.slow
async def test_a_stream_that_fails_says_so_in_its_last_event(tmp_path: Path):
    async with open_both(tmp_path) as (_, door), door.stream(WATCH, {"threadId": "none"}) as events:
        assert events.response.status_code == 200
        (only,) = await events.rest()
    assert only["event"] == "error"
    assert only["data"]["code"] == "not_found"
    assert only["data"]["details"][0]["debug"]["reason"] == "ERROR_REASON_THREAD_NOT_FOUND"


async def test_a_stream_that_is_refused_is_an_ordinary_error(tmp_path: Path):
    async with door_to(tmp_path, {}) as (upstream, door):
        for body, headers in (({"threadId": 7}, {}), ({"nope": 1}, {}), ({}, {"origin": "https://evil.example"})):
            answer = await door.call(WATCH, body, **headers)
            assert answer.status_code in {400, 403}
            assert answer.json()["code"]
        assert upstream.metadata == []


async def test_a_silent_stream_beats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(events_module, "HEARTBEAT_SECONDS", 0.05)
    async with door_to(tmp_path, {}) as (_, door), door.stream(WATCH, {"threadId": "hang"}) as events:
        for _ in range(3):
            assert await next_of(events) == {"": "heartbeat"}


async def test_a_reader_that_hangs_up_cancels_the_stream_and_gives_its_place_back(tmp_path: Path):
    async with door_to(tmp_path, {"count": 1}, max_streams_per_caller=1) as (upstream, door):
        async with door.stream(WATCH, {"threadId": "hang"}) as events:
            assert (await next_of(events))["id"] == "1"
            full = await door.call(WATCH, {"threadId": "hang"})
            assert (full.status_code, full.json()["code"]) == (429, "resource_exhausted")
        await asyncio.wait_for(upstream.cancelled.wait(), LIMIT_SECONDS)

        async def has_a_place() -> bool:
            return (await door.call(WATCH, {"threadId": "t"})).status_code == 200

        await eventually(has_a_place)


async def test_more_streams_than_a_connection_has_keep_neither_each_other_nor_a_call_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The service lets 16 calls of a connection be open here, and the gateway makes 8 of each of its own."""
    monkeypatch.setattr("phylactery_gateway.rpc.services._CALLS_OF_A_CONNECTION", 8)
    options = {"count": 1, "calls_of_a_connection": 16}
    async with door_to(tmp_path, options) as (upstream, door), AsyncExitStack() as stack:
        for _ in range(40):
            events = await stack.enter_async_context(door.stream(WATCH, {"threadId": "hang"}))
            assert (await next_of(events))["id"] == "1"
        for number in range(20):
            thread = {"threadId": f"t{number}"}
            assert (await door.call(WATCH.replace("WatchThread", "GetThread"), thread)).status_code == 200
        calls = [
            asyncio.create_task(door.call(WATCH.replace("WatchThread", "GetThread"), {"threadId": "hang"}))
            for _ in range(20)
        ]

        async def are_all_served() -> bool:
            return len(upstream.metadata) == 80

        await eventually(are_all_served)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_client_that_hangs_up_in_its_request_leaves_nothing_behind(tmp_path: Path):
    """A stream has one place here: the next one is served, and the gateway stops at once."""
    async with door_to(tmp_path, {"count": 1}, max_streams_per_caller=1) as (_, door):
        with socket.socket() as client:
            client.connect(("127.0.0.1", door.gateway.port))
            lines = (f"POST {WATCH} HTTP/1.1", "Host: localhost", "Content-Type: application/json")
            client.sendall("\r\n".join((*lines, "Content-Length: 100", "", "")).encode() + b"{")

        async def none_reads() -> bool:
            reading = [task for task in asyncio.all_tasks() if "EventStream" in repr(task.get_coro())]
            return not reading and (await door.call(WATCH, {"threadId": "t"})).status_code == 200

        await eventually(none_reads)


PIECE = 20_000
MANY = 20_000
"""So many pieces are 400 MB."""


def connect(door: Door) -> socket.socket:
    """Ask for a long stream on a connection that takes little at once."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.connect(("127.0.0.1", door.gateway.port))
    body = b'{"threadId": "hang"}'
    lines = (f"POST {WATCH} HTTP/1.1", "Host: localhost", "Content-Type: application/json")
    client.sendall("\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body)
    return client


async def still(upstream: Upstream) -> int:
    """Return how much was sent once nothing more is."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            sent = upstream.sent
            await asyncio.sleep(1)
            if sent and upstream.sent == sent:
                return sent


@pytest.mark.slow
async def test_a_slow_reader_slows_the_service_instead_of_filling_memory(tmp_path: Path):
    long = {"count": MANY, "events": lambda number: f"{number} ".ljust(PIECE, "x")}
    async with door_to(tmp_path, long) as (upstream, door):
        client = connect(door)
        sent = await still(upstream)
        assert sent * PIECE < 64 * 1024 * 1024, "the rest waits in the service"
        assert (await door.call(f"/{CHAT}/GetThread", {"threadId": "t"})).status_code == 200
        client.close()
        await asyncio.wait_for(upstream.cancelled.wait(), LIMIT_SECONDS)


async def test_a_reader_that_takes_nothing_loses_its_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "WRITE_SECONDS", 0.5)
    long = {"count": MANY, "events": lambda number: "x" * PIECE}
    async with door_to(tmp_path, long) as (upstream, door):
        client = connect(door)
        await asyncio.wait_for(upstream.cancelled.wait(), LIMIT_SECONDS)
        client.settimeout(LIMIT_SECONDS)
        await asyncio.to_thread(until_closed, client)


def until_closed(client: socket.socket) -> None:
    """Read what is left until the connection is closed or reset."""
    try:
        while client.recv(65_536):
            pass
    except ConnectionResetError:
        return


async def test_a_gateway_that_stops_ends_its_streams_with_what_to_do(tmp_path: Path):
    async with open_upstream(count=1) as upstream, open_door(tmp_path, {CHAT: upstream.target}) as door:
        async with door.stream(WATCH, {"threadId": "hang"}) as events:
            assert (await next_of(events))["id"] == "1"
            stopping = asyncio.create_task(door.gateway.http.stop())
            assert door.gateway.rpc is not None
            door.gateway.rpc.end_streams()
            (last,) = await asyncio.wait_for(events.rest(), LIMIT_SECONDS)
        await asyncio.wait_for(stopping, LIMIT_SECONDS)
        await asyncio.wait_for(upstream.cancelled.wait(), LIMIT_SECONDS)
    assert last["event"] == "error"
    assert last["data"]["code"] == "unavailable"
    assert "last event" in last["data"]["message"]


@pytest.mark.slow
async def test_a_reader_that_takes_nothing_does_not_keep_a_gateway_from_stopping(tmp_path: Path):
    long = {"count": MANY, "events": lambda number: "x" * PIECE}
    async with open_upstream(**long) as upstream:
        async with open_door(tmp_path, {CHAT: upstream.target}) as door:
            client = connect(door)
            await still(upstream)
        client.settimeout(LIMIT_SECONDS)
        await asyncio.to_thread(until_closed, client)


async def test_the_message_of_an_event_is_one_line_whatever_is_in_it(tmp_path: Path):
    text = "one\ntwo\r\n\r\ndata: {}\n\nevent: end\u2028\x85three"
    async with door_to(tmp_path, {"count": 2, "events": lambda number: text}) as (_, door):
        answer = await door.call(WATCH, {"threadId": "t"})
    parts = answer.content.split(b"\n\n")
    assert [part.split(b"\n")[0] for part in parts] == [b"id: 1", b"id: 2", b"event: end", b""]
    shown = json.loads(parts[0].split(b"\n")[1].removeprefix(b"data: "))
    assert shown["event"]["message"]["text"] == text
