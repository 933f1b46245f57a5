"""The admin port: channelz, health and reflection on loopback only, off by default."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpc import aio
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc
from phylactery_chassis.auth.identity import token_hash
from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc.server import Registration, RunningServer, Service, start
from phylactery_chassis.settings import ServiceSettings

GRPCURL = shutil.which("grpcurl", path=f"{os.environ['PATH']}{os.pathsep}{Path.home() / 'go' / 'bin'}")
NAME = "phylactery.memory.v1.MemoryService"


async def healthy() -> bool:
    return True


def service() -> Service:
    def add(server: aio.Server) -> None:
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(memory_pb2_grpc.MemoryServiceServicer(), server)

    return Service("memory", [Registration(NAME, add)], healthy)


def settings(folder: Path, **options: object) -> ServiceSettings:
    (folder / "tokens.yaml").write_text(
        json.dumps({"tokens": [{"hash": token_hash("t"), "subject": "ana", "tenant": "acme", "roles": ["caller"]}]})
    )
    tokens = {"identity_mode": "tokens", "tokens_file": folder / "tokens.yaml", "drain_seconds": 0}
    return ServiceSettings(data_dir=folder, **{**tokens, **options})


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningServer]:
    started = await start(service(), settings(tmp_path, admin_port=0))
    yield started
    await started.stop()


async def test_it_is_off_unless_it_is_asked_for(tmp_path):
    started = await start(service(), settings(tmp_path))
    assert started.admin_port is None
    await started.stop()


async def test_it_shows_the_service_and_the_calls_it_served_without_an_identity(running):
    async with aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        for _ in range(3):
            with pytest.raises(aio.AioRpcError):
                await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="nobody"))
        async with aio.insecure_channel(f"127.0.0.1:{running.admin_port}") as admin:
            stub = channelz_pb2_grpc.ChannelzStub(admin)
            servers = (await stub.GetServers(channelz_pb2.GetServersRequest())).server
            listening = [one for one in servers if one.data.calls_started >= 3]
            assert listening
            alive = await health_pb2_grpc.HealthStub(admin).Check(health_pb2.HealthCheckRequest(service=NAME))
            assert alive.status == health_pb2.HealthCheckResponse.SERVING
            with pytest.raises(aio.AioRpcError) as refused:
                await memory_pb2_grpc.MemoryServiceStub(admin).ListMessages(
                    memory_pb2.ListMessagesRequest(thread_id="t1")
                )
            assert refused.value.code().name == "UNIMPLEMENTED"


async def test_it_listens_on_loopback_even_where_the_service_does_not(tmp_path):
    wide = settings(tmp_path, host="0.0.0.0", allow_plaintext=True, admin_port=0)
    started = await start(service(), wide)
    try:
        for address in _addresses():
            with socket.socket() as probe:
                assert probe.connect_ex((address, started.port)) == 0
            with socket.socket() as probe:
                assert probe.connect_ex((address, started.admin_port)) != 0
    finally:
        await started.stop()


def _addresses() -> list[str]:
    """Addresses of this machine other than loopback; 127.0.0.2 where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # documentation range: nothing is sent
            found = probe.getsockname()[0]
        except OSError:
            found = "127.0.0.1"
    return [found] if not found.startswith("127.") else ["127.0.0.2"]


async def test_a_taken_port_keeps_the_service_from_starting_and_leaves_nothing_open(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(StartError, match="MEMORY_ADMIN_PORT"):
            await start(service(), settings(tmp_path, admin_port=taken.getsockname()[1]))


async def test_it_ends_with_the_service(tmp_path):
    started = await start(service(), settings(tmp_path, admin_port=0))
    await started.stop()
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", started.admin_port)) != 0


@pytest.mark.skipif(GRPCURL is None, reason="grpcurl is not installed")
async def test_grpcurl_lists_every_service_by_reflection_v1_and_v1alpha(running):
    def listed(port: int, *words: str) -> set[str]:
        done = subprocess.run(
            [GRPCURL, "-plaintext", *words, f"127.0.0.1:{port}", "list"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return set(done.stdout.split())

    both = {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}
    token = ("-H", "authorization: Bearer t")
    assert await asyncio.to_thread(listed, running.port, *token) == {NAME, *both}
    assert await asyncio.to_thread(listed, running.admin_port) == {"grpc.channelz.v1.Channelz", *both}
