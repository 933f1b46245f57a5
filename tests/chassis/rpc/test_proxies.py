"""A proxy of the environment gets no call to this machine, whatever the exceptions beside it say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures

import grpc
import pytest
import typer
from grpc_health.v1 import health_pb2, health_pb2_grpc
from phylactery_chassis.rpc.channel import open_channel
from phylactery_chassis.rpc.healthcheck import serving
from phylactery_chassis.rpc.proxies import proxy_of, proxy_options
from phylactery_client import proxies, transport
from phylactery_client.sync import transport as sync_transport
from phylactery_riskgate.cli.remote import connect


class Proxy:
    """A proxy that refuses whatever it is asked for, and keeps it."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.asked.append(connection.recv(4_096))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    refusing = Proxy()
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, refusing.url)
    monkeypatch.setenv("no_proxy", "localhost")
    yield refusing
    refusing.close()


class Health(health_pb2_grpc.HealthServicer):
    def Check(self, request: health_pb2.HealthCheckRequest, context: object) -> health_pb2.HealthCheckResponse:
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


@pytest.fixture
def target() -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(1))
    health_pb2_grpc.add_HealthServicer_to_server(Health(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None)


HERE = (
    *("127.0.0.1:1", "localhost:1", "[::1]:1", "127.8.9.1:1", "dns:///localhost:1", "dns:127.0.0.1:1", "0.0.0.0:1"),
    *("ipv4:127.0.0.1:1", "a.localhost:1", "LOCALHOST.:1", "[::]:1", "[::ffff:127.0.0.1]:1", "unix:/tmp/x"),
)
ELSEWHERE = ("riskgate:1", "10.0.0.1:1", "localhost.example.org:1", "[2001:db8::1]:1", "127.0.0.1.example.org:1", "")


@pytest.mark.parametrize("options", [proxy_options, proxies.proxy_options])
def test_a_target_on_this_machine_is_told_from_others(options: Callable[[str], object]) -> None:
    assert [target for target in HERE if not options(target)] == []
    assert [target for target in ELSEWHERE if options(target)] == []


async def test_calls_to_this_machine_do_not_reach_the_proxy(proxy: Proxy, target: str) -> None:
    for channel in (open_channel(target), transport.open_channel(target, None, ())):
        async with channel:
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert proxy.asked == []


def test_neither_do_those_without_asyncio(proxy: Proxy, target: str) -> None:
    assert serving(target)
    with sync_transport.open_channel(target, None, ()) as channel:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
    with connect(target, None) as remote:
        remote.ask(health_pb2_grpc.HealthStub(remote.channel).Check, health_pb2.HealthCheckRequest())
    assert proxy.asked == []


def test_a_proxy_that_refuses_a_remote_target_is_named(proxy: Proxy, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), connect("riskgate.example.org:1", None) as remote:
        remote.ask(health_pb2_grpc.HealthStub(remote.channel).Check, health_pb2.HealthCheckRequest(), seconds=10)
    said = capsys.readouterr()
    assert "the proxy 127.0.0.1:" in said.out + said.err
    assert "of the environment gave no connection; name the host in no_proxy" in said.out + said.err
    assert proxy.asked


def test_a_proxy_that_is_not_there_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "https_proxy", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://ana:secret@gate.example:3128")
    monkeypatch.setenv("no_proxy", "localhost, .inner.example")
    assert proxy_of("riskgate.example.org:1") == "gate.example:3128"
    assert [proxy_of(one) for one in (*HERE, "a.inner.example:1")] == [""] * (len(HERE) + 1)
    monkeypatch.setenv("https_proxy", "other.example")
    assert proxy_of("dns:///riskgate.example.org:1") == "other.example"
