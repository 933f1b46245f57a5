"""Undecodable bytes to every method of every port: INVALID_ARGUMENT, and no traceback in any log.

The methods come from each port's reflection, so those of libraries are included.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support.agent.system import open_system
from tests.support.contracts.described import methods_of

GARBAGE = {
    "an endless varint": [b"\xff" * 12],
    "a length past the end": [b"\x0a\x7fab"],
    "a megabyte of it": [b"\xff" * 1_000_000],
    "no UTF-8": [b"\x0a\x02\xff\xfe"],
}
STREAMED = {"fifty broken messages": [b"\xff\xff\xff"] * 50, "thirty large ones": [b"\xff" * 500_000] * 30}
OF_LIBRARIES = {
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/List",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
}


@pytest.fixture
async def ports(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    async with open_system(tmp_path, admin_ports=True) as system:
        yield system.targets()


async def answer(channel: aio.Channel, path: str, method: MethodDescriptor, bodies: list[bytes]) -> aio.AioRpcError:
    sends = "stream" if method.client_streaming else "unary"
    answers = "stream" if method.server_streaming else "unary"
    call = getattr(channel, f"{sends}_{answers}")(path)
    running = call(iter(bodies) if sends == "stream" else bodies[0], timeout=30)
    with pytest.raises(aio.AioRpcError) as caught:
        await (anext(aiter(running)) if answers == "stream" else running)
    return caught.value


def takes_text(method: MethodDescriptor) -> bool:
    """Return True if the first field is text, which must be UTF-8; elsewhere these bytes may be a message."""
    first = method.input_type.fields_by_number.get(1)
    return first is not None and first.type == first.TYPE_STRING


@pytest.mark.slow
async def test_garbage_is_invalid_argument_for_every_method_of_every_port_and_leaves_no_traceback(
    ports: dict[str, str], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    wrong, swept = [], {}
    for port, target in ports.items():
        async with aio.insecure_channel(target) as channel:
            swept[port] = await methods_of(channel)
            for path, method in swept[port].items():
                for what, bodies in (GARBAGE | (STREAMED if method.client_streaming else {})).items():
                    if what == "no UTF-8" and not takes_text(method):
                        continue
                    error = await answer(channel, path, method, bodies)
                    if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
                        wrong.append((port, path, what, error.code(), error.details()))
    assert wrong == []
    assert len(ports) == 6
    assert all(swept[port].keys() >= OF_LIBRARIES for port in ports)
    assert sum(len(methods) for methods in swept.values()) > 80
    said = "".join(capfd.readouterr()) + caplog.text
    assert "Traceback" not in said
    assert "DecodeError" not in said


async def test_the_health_of_every_service_of_a_port_is_listed(ports: dict[str, str]):
    for name, target in ports.items():
        async with aio.insecure_channel(target) as channel:
            if "admin" in name:
                continue
            listed = await health_pb2_grpc.HealthStub(channel).List(health_pb2.HealthListRequest(), timeout=30)
            assert listed.statuses[""].status == health_pb2.HealthCheckResponse.SERVING
            assert len(listed.statuses) > 1
