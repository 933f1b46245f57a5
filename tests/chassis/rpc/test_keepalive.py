"""Idle connections survive: every channel argument exists in the installed gRPC, and idle pings are allowed."""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import grpc
import pytest
from grpc import aio
from grpc._cython import cygrpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from phylactery_chassis.rpc import server
from phylactery_chassis.rpc.server import Service, start
from phylactery_chassis.settings import ServiceSettings

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("services", "clients", "benchmarks", "tests", "examples")


def channel_arguments(source: str) -> Iterator[str]:
    """Yield the name of every channel argument that a program sets: pairs whose first part begins with ``grpc.``."""
    if '"grpc.' not in source:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[0], ast.Constant):
            name = node.elts[0].value
            if isinstance(name, str) and name.startswith("grpc."):
                yield name


def exists(name: str) -> bool:
    """Return True if gRPC's core compares channel arguments with this name: it stands there as a C string."""
    library, text = Path(cygrpc.__file__).read_bytes(), name.encode() + b"\0"
    at = library.find(text)
    while at > 0 and (chr(library[at - 1]).isalpha() or library[at - 1 : at] in {b"_", b"."}):
        at = library.find(text, at + 1)  # the end of a longer name
    return at >= 0


def test_every_channel_argument_we_set_is_one_that_the_installed_grpc_reads():
    used = {
        (name, path.relative_to(ROOT).as_posix())
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*.py")
        for name in channel_arguments(path.read_text(encoding="utf-8"))
    }
    assert {"grpc.so_reuseport", "grpc.keepalive_time_ms"} <= {name for name, _ in used}
    known = {name for name in {name for name, _ in used} if exists(name)}
    assert sorted(one for one in used if one[0] not in known) == []


def test_a_name_that_grpc_does_not_know_is_found_out():
    assert not exists("grpc.http2.min_recv_ping_interval_without_data_ms")
    assert not exists("keepalive_time_ms")
    assert exists("grpc.http2.min_ping_interval_without_data_ms")


async def healthy() -> bool:
    return True


class Counting:
    """A way to a server on loopback that counts the PING frames a client sends over it: type 6, and no ACK."""

    def __init__(self, port: int) -> None:
        self.pings = 0
        self._to, self._tasks = port, set[asyncio.Task[None]]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, down = await asyncio.open_connection("127.0.0.1", self._to)
        for carry in (self._frames(reader, down), self._bytes(up, writer)):
            self._tasks.add(asyncio.create_task(carry))

    async def _frames(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(24))  # how every connection of HTTP/2 begins
        while True:
            head = await reader.readexactly(9)
            self.pings += head[3] == 6 and not head[4] & 1
            writer.write(head + await reader.readexactly(int.from_bytes(head[:3], "big")))
            await writer.drain()

    async def _bytes(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()


async def idle(tmp_path: Path, seconds: float, *, ping_ms: int) -> grpc.StatusCode | None:
    """Return how a silent stream to a new server ended whose client pings, None where it lived for the seconds."""
    running = await start(Service("memory", [], healthy), ServiceSettings(data_dir=tmp_path))
    try:
        return await silent(running.port, seconds, ping_ms=ping_ms)
    finally:
        await running.stop(drain_seconds=0)


async def silent(port: int, seconds: float, *, ping_ms: int) -> grpc.StatusCode | None:
    """Return how a silent stream ended whose client pings, None where it lived for the seconds."""
    pings = [("grpc.keepalive_time_ms", ping_ms), ("grpc.http2.max_pings_without_data", 0)]
    async with aio.insecure_channel(f"127.0.0.1:{port}", options=pings) as channel:
        stream = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await stream.read()).status == health_pb2.HealthCheckResponse.SERVING
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                await stream.read()
        except TimeoutError:
            return None
        except aio.AioRpcError as error:
            return error.code()
        raise AssertionError(f"the stream ended after {time.monotonic() - began:.0f} s")


@pytest.mark.timing
async def test_a_silent_stream_lives_while_its_client_pings_no_faster_than_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "_MIN_PING_INTERVAL_MS", 100)
    assert await idle(tmp_path, 4.0, ping_ms=400) is None


@pytest.mark.timing
async def test_the_shortest_interval_is_what_the_server_holds_clients_to(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(server, "_MIN_PING_INTERVAL_MS", 30_000)
    assert await idle(tmp_path, 10.0, ping_ms=400) is grpc.StatusCode.UNAVAILABLE
    assert "too_many_pings" in capfd.readouterr().err


@pytest.mark.nightly
async def test_silent_streams_live_at_the_fastest_pace_of_grpc_libraries_and_through_the_pings_of_ten_minutes(
    tmp_path, monkeypatch
):
    """One is at the true pace; the other has, ten times as fast, more pings than ten minutes of it (gRPC's core sends
    no more than one in a second, whatever it is told)."""
    at_true_pace = await start(Service("memory", [], healthy), ServiceSettings(data_dir=tmp_path / "true"))
    monkeypatch.setattr(server, "_MIN_PING_INTERVAL_MS", 500)
    faster = await start(Service("memory", [], healthy), ServiceSettings(data_dir=tmp_path / "fast"))
    try:
        async with Counting(faster.port) as way:
            ends = await asyncio.gather(
                silent(at_true_pace.port, 75.0, ping_ms=10_000), silent(way.port, 75.0, ping_ms=1_000)
            )
            assert ends == [None, None]
            assert way.pings > 600 / 10
    finally:
        await asyncio.gather(at_true_pace.stop(drain_seconds=0), faster.stop(drain_seconds=0))
