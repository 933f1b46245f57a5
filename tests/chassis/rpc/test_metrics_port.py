"""The port that Prometheus reads: off by default, on loopback, read-only, and held by nobody."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc import metrics_port
from phylactery_chassis.rpc.metrics_port import start_metrics
from phylactery_chassis.rpc.server import Service, start
from phylactery_chassis.settings import ServiceSettings
from pydantic import ValidationError

PAGE = b"# TYPE one counter\none_total 0.0\n"
ASK = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n"


async def healthy() -> bool:
    return True


@asynccontextmanager
async def serving(page: Callable[[], bytes] = lambda: PAGE) -> AsyncIterator[int]:
    server = await start_metrics(page, "127.0.0.1", 0, "MEMORY_")
    try:
        assert server.port is not None
        yield server.port
    finally:
        await server.stop()


async def answer(port: int, request: bytes = ASK) -> tuple[int, dict[str, str], bytes]:
    """Send a request and return status, headers and body of the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        whole = await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()
    head, _, body = whole.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., ServiceSettings]:
    return lambda **options: ServiceSettings(data_dir=tmp_path, drain_seconds=0, **options)


async def test_it_is_off_unless_it_is_asked_for_and_ends_with_the_service(settings):
    started = await start(Service("memory", [], healthy), settings(), lambda: PAGE)
    assert started.metrics_port is None
    await started.stop()
    started = await start(Service("memory", [], healthy), settings(metrics_port=0), lambda: PAGE)
    assert (await answer(started.metrics_port))[2] == PAGE
    await started.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", started.metrics_port)) != 0


async def test_a_taken_port_keeps_the_service_from_starting_and_names_its_variable(settings):
    async with serving() as taken:
        with pytest.raises(StartError, match=f"127.0.0.1:{taken}.*MEMORY_METRICS_PORT"):
            await start(Service("memory", [], healthy), settings(metrics_port=taken), lambda: PAGE)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "metrics.example"])
def test_beyond_loopback_it_must_be_said_that_the_network_is_private(settings, host: str):
    with pytest.raises(ValidationError, match="METRICS_HOST"):
        settings(metrics_port=0, metrics_host=host)
    assert settings(metrics_port=0, metrics_host=host, allow_plaintext=True).metrics_host == host
    assert settings(metrics_host=host).metrics_port is None  # nothing is served


async def test_it_says_what_it_is_and_no_name_or_version_of_what_serves_it():
    async with serving() as port:
        status, headers, body = await answer(port)
        assert (status, body) == (200, PAGE)
        assert headers == {
            "content-type": "text/plain; version=0.0.4; charset=utf-8",
            "content-length": str(len(PAGE)),
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            "connection": "close",
        }
        assert await answer(port, ASK.replace(b"GET", b"HEAD")) == (200, headers, b"")
        assert (await answer(port, ASK.replace(b"/metrics", b"/metrics?name[]=x")))[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9464", 200),
        ("LOCALHOST", 200),
        ("127.0.0.2", 200),
        ("[::1]:9464", 200),
        ("evil.example:9464", 403),  # a name that its owner lets lead here, in somebody's browser
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("user@evil.example", 403),
        ("192.0.2.7", 403),
        ("127.0.0.1\r\nHOST: evil.example", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
async def test_on_loopback_a_page_in_a_browser_here_reads_nothing_by_a_name_of_its_own(host: str, status: int):
    request = ASK.replace(b"127.0.0.1:9464", host.encode())
    async with serving() as port:
        assert (await answer(port, request))[0] == status
    elsewhere = await start_metrics(lambda: PAGE, "0.0.0.0", 0, "MEMORY_")
    assert (await answer(elsewhere.port, request))[0] == 200  # there others name it as they like
    await elsewhere.stop()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics/../secrets HTTP/1.1\r\n\r\n", 404),
        (b"GET http://x/metrics HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", 405),
        (b"PUT /metrics HTTP/1.0\r\n\r\n", 405),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET /metrics HTTP/2.0\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET /" + b"a" * 100_000, 400),
        (b"GET /metrics HTTP/1.1\r\n" + b"x: y\r\n" * 20_000, 400),
    ],
)
async def test_what_is_not_a_reading_of_the_page_is_refused(request_: bytes, status: int):
    called: list[None] = []

    def page() -> bytes:
        called.append(None)
        return PAGE

    async with serving(page) as port:
        with contextlib.suppress(ConnectionResetError):  # what it did not read to the end
            assert (await answer(port, request_))[0] == status
        assert called == []
        assert (await answer(port))[0] == 200


async def test_clients_that_send_nothing_or_take_nothing_keep_nobody_out(monkeypatch):
    monkeypatch.setattr(metrics_port, "_CONNECTIONS", 8)
    async with serving(lambda: b"x" * 4_000_000) as port:
        idle = []
        for number in range(40):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.settimeout(0)
            await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
            one.send((b"", b"GET /met", ASK)[number % 3])
            idle.append(one)
        assert len((await answer(port))[2]) == 4_000_000
        for one in idle:
            one.close()


async def test_a_connection_has_little_time(monkeypatch):
    monkeypatch.setattr(metrics_port, "_HEAD_SECONDS", 0.05)
    monkeypatch.setattr(metrics_port, "_WRITE_SECONDS", 0.05)
    async with serving(lambda: b"x" * 8_000_000) as port:
        silent, _ = await asyncio.open_connection("127.0.0.1", port)
        assert await asyncio.wait_for(silent.read(), 30) == b""
        slow, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
        writer.write(ASK)
        with contextlib.suppress(ConnectionResetError):
            await asyncio.sleep(0.3)  # takes nothing meanwhile
            assert len(await asyncio.wait_for(slow.read(), 30)) < 8_000_000


async def test_whoever_asks_and_however_often_the_database_is_read_once_a_second_at_most():
    count, go = [0], threading.Event()

    def page() -> bytes:
        count[0] += 1
        go.wait(30)
        return PAGE

    async with serving(page) as port:
        asked = [asyncio.create_task(answer(port)) for _ in range(20)]
        await asyncio.sleep(0)
        go.set()
        assert {status for status, *_ in await asyncio.gather(*asked)} == {200}
        assert (await answer(port))[0] == 200
        assert count[0] <= 2  # a second may have passed meanwhile


async def test_a_page_that_hangs_or_fails_is_an_error_of_that_scrape_alone(monkeypatch):
    monkeypatch.setattr(metrics_port, "_FRESH_SECONDS", 0.0)
    monkeypatch.setattr(metrics_port, "_PAGE_SECONDS", 0.05)
    go, calls = threading.Event(), [0]

    def page() -> bytes:
        calls[0] += 1
        if calls[0] == 1:
            go.wait(30)
        if calls[0] == 2:
            raise ValueError("postgres://ana:secret@db")
        return PAGE

    async with serving(page) as port:
        assert [(await answer(port))[0] for _ in range(3)] == [503] * 3
        assert calls == [1]  # all of them waited for the same thread
        go.set()
        status, body = 503, b""
        while status == 503:
            status, _, body = await answer(port)
        if status == 200:  # of the page that hung
            status, _, body = await answer(port)
        assert (status, b"secret" in body) == (500, False)
        assert (await answer(port))[0] == 200
