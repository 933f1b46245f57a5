"""Call limits: unauthenticated calls, streams and requests that never arrive are bounded separately."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc, privacy_pb2, privacy_pb2_grpc
from phylactery_chassis.auth.identity import token_hash
from phylactery_chassis.errors import ResourceExhausted
from phylactery_chassis.rpc import open_calls
from phylactery_chassis.rpc.server import Registration, RunningServer, Service, start
from phylactery_chassis.settings import ServiceSettings
from phylactery_chassis.util.limits import Places, host_of

from tests.support.cases import each_case
from tests.support.contracts.refusals import refusal_of as answer_of

Code = grpc.StatusCode
RELIABLY = 0.9
"""Of a thousand streams that a grpc.aio server ends at once, its client shows about ten as CANCELLED."""
LIST = "/phylactery.memory.v1.MemoryService/ListMessages"
ANA, BEN = ((("authorization", f"Bearer {name}"),) for name in ("ana", "ben"))


class Memory(memory_pb2_grpc.MemoryServiceServicer):
    async def ListMessages(self, request, context):
        return memory_pb2.ListMessagesResponse(next_page_token="served")


class Privacy(privacy_pb2_grpc.PrivacyServiceServicer):
    async def ExportUser(self, request, context):
        yield privacy_pb2.ExportUserResponse(json="first")
        await asyncio.Event().wait()


async def healthy() -> bool:
    return True


def service() -> Service:
    def memory(server: aio.Server) -> None:
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(Memory(), server)

    def privacy(server: aio.Server) -> None:
        privacy_pb2_grpc.add_PrivacyServiceServicer_to_server(Privacy(), server)

    names = ("phylactery.memory.v1.MemoryService", "phylactery.memory.v1.PrivacyService")
    return Service("memory", [Registration(names[0], memory), Registration(names[1], privacy)], healthy)


async def serve(folder: Path, **options: Any) -> RunningServer:
    tokens = folder / "tokens.yaml"
    entries = (
        f"{{hash: '{token_hash(name)}', subject: {name}, tenant: acme, roles: [caller]}}" for name in ("ana", "ben")
    )
    tokens.write_text("tokens: [" + ", ".join(entries) + "]")
    identity = {"identity_mode": "tokens", "tokens_file": tokens, "drain_seconds": 0, "admin_port": 0}
    return await start(service(), ServiceSettings(data_dir=folder, **{**identity, **options}))


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningServer]:
    server = await serve(tmp_path)
    yield server
    await server.stop()


async def ask(port: int, metadata: Any, **options: Any) -> str:
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        answer = await stub.ListMessages(memory_pb2.ListMessagesRequest(**options), metadata=metadata, timeout=20)
        return answer.next_page_token


REFUSED_UNREAD = "RST_STREAM with error code 7"
"""What gRPC says of a call that the server's transport refused: the connection had as many open as it may have."""


async def codes_of(calls: list[Any], seconds: float) -> list[grpc.StatusCode | None]:
    """Return how calls that nobody sends anything in have ended, None for those that go on."""
    await asyncio.wait([asyncio.ensure_future(call.code()) for call in calls], timeout=seconds)
    return [await call.code() if call.done() else None for call in calls]


async def never() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


@pytest.mark.slow
@pytest.mark.parametrize("admin", [False, True], ids=["service", "admin"])
async def test_a_thousand_watches_of_health_without_a_token_stop_nobody(running: RunningServer, *, admin: bool):
    port = running.admin_port if admin else running.port
    async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(1_200)]
        firsts = await asyncio.gather(*(watch.read() for watch in watches), return_exceptions=True)
        refused = [one for one in firsts if isinstance(one, aio.AioRpcError)]
        assert len(firsts) - len(refused) == 32
        read = [one for one in refused if REFUSED_UNREAD not in one.details()]
        told = [answer_of(one) for one in read if one.code() is not Code.CANCELLED]
        assert len(told) > RELIABLY * len(read)
        assert len(read) > len(refused) / 2
        assert {(one.code, one.reason) for one in told} == {(Code.RESOURCE_EXHAUSTED, "TOO_MANY_CALLS")}
        assert await ask(running.port, ANA) == "served"
        assert (await stub.Check(health_pb2.HealthCheckRequest())).status == health_pb2.HealthCheckResponse.SERVING


async def test_a_place_is_free_again_however_its_call_ended(running: RunningServer):
    async with aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        kept: list[Any] = []
        for _ in range(4):
            watches = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(32 - len(kept))]
            await asyncio.gather(*(watch.read() for watch in watches))
            for watch in (*kept, *watches):
                watch.cancel()
            async with asyncio.timeout(10):
                while True:  # the server hears of it after the client
                    one = stub.Watch(health_pb2.HealthCheckRequest())
                    try:
                        await one.read()
                    except aio.AioRpcError:
                        await asyncio.sleep(0.02)
                    else:
                        kept = [one]
                        break
        assert not kept[0].done()


@pytest.mark.timing
async def test_requests_that_never_come_are_refused_at_once_where_nobody_is_known(running: RunningServer):
    async with aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        calls = [channel.stream_unary(LIST)(never()) for _ in range(1_200)]
        assert None not in await codes_of(calls, 30)
        codes = [await call.code() for call in calls if REFUSED_UNREAD not in await call.details()]
        assert len(codes) > len(calls) / 2
        assert codes.count(Code.UNAUTHENTICATED) > RELIABLY * len(codes)
        assert set(codes) <= {Code.UNAUTHENTICATED, Code.CANCELLED}
        assert await ask(running.port, ANA) == "served"


@pytest.mark.timing
async def test_probes_whose_request_never_comes_are_ended_and_bounded(running: RunningServer, monkeypatch):
    monkeypatch.setattr(open_calls, "_REQUEST_SECONDS", 0.5)
    async with aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        calls = [channel.stream_unary("/grpc.health.v1.Health/Check")(never()) for _ in range(200)]
        codes = await codes_of(calls, 20)
        assert None not in codes
        assert codes.count(Code.INVALID_ARGUMENT) > RELIABLY * 32
        assert codes.count(Code.INVALID_ARGUMENT) + codes.count(Code.RESOURCE_EXHAUSTED) > RELIABLY * len(codes)


async def test_a_probe_is_answered_while_others_of_its_host_send_no_request(running: RunningServer):
    """A proxy and a probe of the same machine are one host."""
    async with aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        calls = [channel.stream_unary(f"/grpc.health.v1.Health/{name}")(never()) for name in ("Check", "List") * 100]
        await codes_of(calls, 1)
        stub = health_pb2_grpc.HealthStub(channel)
        for _ in range(5):
            assert (await stub.Check(health_pb2.HealthCheckRequest())).status == health_pb2.HealthCheckResponse.SERVING
        assert sum(not call.done() for call in calls) >= 24
        for call in calls:
            call.cancel()


async def test_a_request_to_health_of_a_megabyte_is_refused(running: RunningServer):
    """Without a token nobody makes the service keep megabytes: a stream would hold its request as long as it lives."""
    async with aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        for name in ("Check", "List", "Watch"):
            call = channel.unary_stream(f"/grpc.health.v1.Health/{name}")(b"x" * 1_000_000)
            with pytest.raises(aio.AioRpcError) as caught:
                await call.read()
            assert caught.value.code() is Code.INVALID_ARGUMENT


@pytest.mark.timing
async def test_one_caller_takes_half_of_the_places_and_no_more(tmp_path: Path):
    server = await serve(tmp_path, max_concurrent_rpcs=20, max_concurrent_rpcs_per_caller=10)
    async with aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        calls = [channel.stream_unary(LIST)(never(), metadata=ANA) for _ in range(50)]
        codes = await codes_of(calls, 2)
        assert codes.count(None) == 10
        assert codes.count(Code.RESOURCE_EXHAUSTED) > RELIABLY * 40
        assert await ask(server.port, BEN) == "served"
        with pytest.raises(aio.AioRpcError) as caught:
            await ask(server.port, ANA)
        assert answer_of(caught.value).reason == "TOO_MANY_CALLS"
        for call in calls:
            call.cancel()
        async with asyncio.timeout(10):
            while True:
                try:
                    assert await ask(server.port, ANA) == "served"
                    break
                except aio.AioRpcError:
                    await asyncio.sleep(0.02)
    await server.stop()


async def test_streams_have_places_of_their_own_for_each_kind_and_caller(tmp_path: Path):
    server = await serve(tmp_path, max_concurrent_rpcs=4, max_streams=30, max_streams_per_caller=20)
    async with aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub = privacy_pb2_grpc.PrivacyServiceStub(channel)
        request = privacy_pb2.ExportUserRequest()
        streams = [stub.ExportUser(request, metadata=ANA) for _ in range(40)]
        firsts = await asyncio.gather(*(one.read() for one in streams), return_exceptions=True)
        assert sum(isinstance(one, aio.AioRpcError) for one in firsts) == 20
        others = [stub.ExportUser(request, metadata=BEN) for _ in range(20)]
        firsts = await asyncio.gather(*(one.read() for one in others), return_exceptions=True)
        assert sum(isinstance(one, aio.AioRpcError) for one in firsts) == 10
        assert await ask(server.port, ANA) == "served"
    await server.stop()


async def test_a_large_request_without_an_identity_is_told_so(running: RunningServer):
    with pytest.raises(aio.AioRpcError) as caught:
        await ask(running.port, (), thread_id="x" * 3_500_000)
    assert caught.value.code() is Code.UNAUTHENTICATED


@each_case(
    ("peer", "host"),
    [
        ("ipv4:10.0.0.7:40312", "10.0.0.7"),
        ("ipv6:%5B::1%5D:40312", "::/64"),
        ("ipv6:[2001:db8:1:2:3:4:5:6]:40312", "2001:db8:1:2::/64"),
        ("ipv6:[2001:db8:1:2:ffff::1]:1", "2001:db8:1:2::/64"),
        ("ipv6:[::ffff:10.0.0.7]:40312", "10.0.0.7"),
        ("ipv6:[fe80::1%25eth0]:40312", "fe80::/64"),
        ("unix:", "unix"),
        ("ipv4:nonsense", "nonsense"),
    ],
)
def test_a_peer_is_the_host_it_comes_from_whatever_its_port(peer: str, host: str):
    assert host_of(peer) == host


def test_nothing_is_kept_of_those_who_are_gone():
    places = Places("calls", total=2, each=1)
    first, second = places.take("a"), places.take("b")
    for who in ("a", "c"):
        with pytest.raises(ResourceExhausted):
            places.take(who)
    first()
    second()
    assert not places._taken
    assert not places._running
