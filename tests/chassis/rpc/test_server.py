"""The chassis serves a small servicer on loopback over the real wire."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_status import rpc_status
from phylactery.memory.v1 import (
    memory_pb2,
    memory_pb2_grpc,
    output_pb2,
    output_pb2_grpc,
    privacy_pb2,
    privacy_pb2_grpc,
)
from phylactery_chassis.auth.identity import Principal, current_principal, token_hash
from phylactery_chassis.errors import FailedPrecondition, InvalidArgument, StartError, Violation
from phylactery_chassis.rpc.channel import call_metadata, open_channel
from phylactery_chassis.rpc.interceptor import remaining_seconds
from phylactery_chassis.rpc.server import Registration, Service, start
from phylactery_chassis.settings import ServiceSettings
from phylactery_chassis.telemetry import telemetry

SECRET = "hunter2-in-the-exception"


class Memory(memory_pb2_grpc.MemoryServiceServicer):
    """Answers by thread_id, so that one servicer shows every way a call can end."""

    def __init__(self) -> None:
        self.entered, self.release = asyncio.Event(), asyncio.Event()

    async def ListMessages(self, request, context):
        who = current_principal()
        match request.thread_id:
            case "boom":
                raise RuntimeError(SECRET)
            case "state":
                raise FailedPrecondition("MESSAGE_CONFLICT", "not now", metadata={"state": "CLOSED"})
            case "fields":
                raise InvalidArgument(
                    "INVALID_REQUEST", "bad", violations=[Violation(f"f{i}", "x" * 100) for i in range(50)]
                )
            case "deadline":
                left = remaining_seconds()
                return memory_pb2.ListMessagesResponse(next_page_token=f"{left:.1f}" if left else "none")
            case "slow":
                self.entered.set()
                await self.release.wait()
        return memory_pb2.ListMessagesResponse(
            next_page_token=json.dumps([who.subject, who.tenant, who.actor, sorted(who.roles)])
        )


class Privacy(privacy_pb2_grpc.PrivacyServiceServicer):
    async def ExportUser(self, request, context):
        who, left = current_principal(), remaining_seconds()
        for part in (who.subject, who.actor, "unbounded" if left is None else "bounded"):
            yield privacy_pb2.ExportUserResponse(json=part)


class Output(output_pb2_grpc.OutputServiceServicer):
    async def StoreOutput(self, request_iterator, context):
        count = 0
        async for _ in request_iterator:
            count += 1
        return output_pb2.StoreOutputResponse(placeholder=f"{count}")


class Health:
    up = True

    async def __call__(self) -> bool:
        return self.up


def make_service(health: Health, memory: Memory | None = None) -> Service:
    return Service(
        "memory",
        [
            Registration(
                "phylactery.memory.v1.MemoryService",
                lambda server: memory_pb2_grpc.add_MemoryServiceServicer_to_server(memory or Memory(), server),
            ),
            Registration(
                "phylactery.memory.v1.OutputService",
                lambda server: output_pb2_grpc.add_OutputServiceServicer_to_server(Output(), server),
            ),
            Registration(
                "phylactery.memory.v1.PrivacyService",
                lambda server: privacy_pb2_grpc.add_PrivacyServiceServicer_to_server(Privacy(), server),
            ),
        ],
        health,
    )


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[str]:
    running = await start(make_service(Health()), ServiceSettings(data_dir=tmp_path))
    yield f"127.0.0.1:{running.port}"
    await running.stop(drain_seconds=0)


async def list_messages(target: str, thread_id: str, **kwargs):
    async with aio.insecure_channel(target) as channel:
        return await memory_pb2_grpc.MemoryServiceStub(channel).ListMessages(
            memory_pb2.ListMessagesRequest(thread_id=thread_id), **kwargs
        )


async def failure(target: str, thread_id: str, **kwargs) -> aio.AioRpcError:
    with pytest.raises(aio.AioRpcError) as caught:
        await list_messages(target, thread_id, **kwargs)
    return caught.value


def info_of(error: aio.AioRpcError) -> error_details_pb2.ErrorInfo:
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    assert status is not None
    assert status.details[0].Unpack(info)
    return info


async def test_a_domain_error_becomes_its_status_with_reason_domain_and_metadata(target: str):
    error = await failure(target, "state")
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    info = info_of(error)
    assert (info.reason, info.domain) == ("ERROR_REASON_MESSAGE_CONFLICT", "memory.phylactery")
    assert dict(info.metadata) == {"state": "CLOSED"}


async def test_at_most_twenty_violations_travel(target: str):
    error = await failure(target, "fields")
    status = rpc_status.from_call(error)
    bad = error_details_pb2.BadRequest()
    assert status is not None
    assert status.details[1].Unpack(bad)
    assert len(bad.field_violations) == 20


async def test_an_unmapped_exception_is_internal_with_an_id_and_without_its_text(target: str, capsys):
    error = await failure(target, "boom")
    assert error.code() is grpc.StatusCode.INTERNAL
    error_id = info_of(error).metadata["error_id"]
    assert error_id.startswith("err_")
    assert error_id in (error.details() or "")
    assert SECRET not in (error.details() or "")
    assert SECRET not in capsys.readouterr().err


async def test_invalid_utf8_is_invalid_argument(target: str):
    async with aio.insecure_channel(target) as channel:
        call = channel.unary_unary("/phylactery.memory.v1.MemoryService/ListMessages")
        with pytest.raises(aio.AioRpcError) as caught:
            await call(b"\x0a\x02\xff\xfe")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_broken_message_in_a_stream_is_invalid_argument(target: str):
    async with aio.insecure_channel(target) as channel:
        call = channel.stream_unary("/phylactery.memory.v1.OutputService/StoreOutput")

        async def requests():
            yield b"\xff\xff\xff"

        with pytest.raises(aio.AioRpcError) as caught:
            await call(requests())
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_message_over_the_limit_is_resource_exhausted(target: str):
    async with aio.insecure_channel(target) as channel:
        with pytest.raises(aio.AioRpcError) as caught:
            await memory_pb2_grpc.MemoryServiceStub(channel).ListMessages(
                memory_pb2.ListMessagesRequest(thread_id="x" * 10_000_000)
            )
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_the_deadline_of_a_call_is_known_while_it_is_served(target: str):
    assert (await list_messages(target, "deadline")).next_page_token == "none"
    left = float((await list_messages(target, "deadline", timeout=300)).next_page_token)
    assert 200 < left < 302  # the header rounds up


async def test_without_tokens_everybody_on_loopback_is_local_and_may_name_a_subject(target: str):
    subject, tenant, actor, roles = json.loads((await list_messages(target, "who")).next_page_token)
    assert (subject, tenant, actor) == ("local", "local", "")
    assert "approver" in roles
    metadata = (("x-phylactery-subject", "ana"),)
    answer = json.loads((await list_messages(target, "who", metadata=metadata)).next_page_token)
    assert answer == ["ana", "local", "local", ["caller"]]


async def test_tokens_bind_subject_tenant_and_roles_and_a_delegate_names_its_user(tmp_path: Path):
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(
        f"""
tokens:
  - {{hash: "{token_hash("ana-token")}", subject: ana, tenant: acme, roles: [caller]}}
  - {{hash: "{token_hash("agent-token")}", subject: agent, tenant: "*", roles: [delegate]}}
"""
    )
    settings = ServiceSettings(data_dir=tmp_path, identity_mode="tokens", tokens_file=tokens)
    running = await start(make_service(Health()), settings)
    target = f"127.0.0.1:{running.port}"
    try:
        ana = (("authorization", "Bearer ana-token"),)
        assert json.loads((await list_messages(target, "who", metadata=ana)).next_page_token)[:2] == ["ana", "acme"]
        assert (await failure(target, "who")).code() is grpc.StatusCode.UNAUTHENTICATED
        wrong = (("authorization", "Bearer ana-tokeN"),)
        assert (await failure(target, "who", metadata=wrong)).code() is grpc.StatusCode.UNAUTHENTICATED
        posing = (*ana, ("x-phylactery-subject", "bea"))
        assert (await failure(target, "who", metadata=posing)).code() is grpc.StatusCode.PERMISSION_DENIED
        nobody = (("authorization", "Bearer agent-token"),)
        assert (await failure(target, "who", metadata=nobody)).code() is grpc.StatusCode.UNAUTHENTICATED
        channel = open_channel(target, token="agent-token")
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        answer = await stub.ListMessages(
            memory_pb2.ListMessagesRequest(thread_id="who"),
            metadata=call_metadata(Principal("bea", "beta", frozenset({"caller"}))),
        )
        assert json.loads(answer.next_page_token) == ["bea", "beta", "agent", ["caller"]]
        streamed = privacy_pb2_grpc.PrivacyServiceStub(channel).ExportUser(
            privacy_pb2.ExportUserRequest(),
            metadata=call_metadata(Principal("bea", "beta", frozenset({"caller"}))),
        )
        assert [part.json async for part in streamed] == ["bea", "agent", "unbounded"]
        await channel.close()
    finally:
        await running.stop(drain_seconds=0)


async def test_an_identity_named_twice_is_nobody_whichever_of_the_two_is_read_first(tmp_path: Path):
    """What stands before the service may check the one and the service obey the other."""
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(
        f"""
tokens:
  - {{hash: "{token_hash("ana-token")}", subject: ana, tenant: acme, roles: [caller]}}
  - {{hash: "{token_hash("zoe-token")}", subject: zoe, tenant: zeta, roles: [caller]}}
  - {{hash: "{token_hash("agent-token")}", subject: agent, tenant: "*", roles: [delegate]}}
"""
    )
    ana, zoe, agent = (("authorization", f"Bearer {name}-token") for name in ("ana", "zoe", "agent"))
    bea, bob = (("x-phylactery-subject", name) for name in ("bea", "bob"))
    acme, beta = (("x-phylactery-tenant", name) for name in ("acme", "beta"))
    by_token = ((ana, zoe), (zoe, ana), (ana, ana), (agent, bea, bob, acme), (agent, bea, acme, beta))
    for settings, doubled in (
        (ServiceSettings(data_dir=tmp_path, identity_mode="tokens", tokens_file=tokens), by_token),
        (ServiceSettings(data_dir=tmp_path), ((bea, bob), (bea, acme, beta), (ana, zoe))),
    ):
        running = await start(make_service(Health()), settings)
        target = f"127.0.0.1:{running.port}"
        try:
            for metadata in doubled:
                error = await failure(target, "who", metadata=metadata)
                assert error.code() is grpc.StatusCode.UNAUTHENTICATED, metadata
                assert info_of(error).reason == "ERROR_REASON_UNAUTHENTICATED"
                assert "more than once" in (error.details() or "")
                assert "-token" not in (error.details() or "")
            async with aio.insecure_channel(target) as channel:
                exported = privacy_pb2_grpc.PrivacyServiceStub(channel).ExportUser(
                    privacy_pb2.ExportUserRequest(), metadata=doubled[0]
                )
                with pytest.raises(aio.AioRpcError) as caught:
                    await exported.read()
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            plain = (doubled[0][0], ("x-other", "1"), ("x-other", "2"))
            assert json.loads((await list_messages(target, "who", metadata=plain)).next_page_token)
        finally:
            await running.stop(drain_seconds=0)


async def test_health_needs_no_identity_and_follows_the_service(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("phylactery_chassis.rpc.server._HEALTH_SECONDS", 0.01)
    health = Health()
    running = await start(make_service(health), ServiceSettings(data_dir=tmp_path))
    async with aio.insecure_channel(f"127.0.0.1:{running.port}") as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(
            health_pb2.HealthCheckRequest(service="phylactery.memory.v1.MemoryService")
        )
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        health.up = False
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        health.up = True
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
    await running.stop(drain_seconds=0)


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_the_services(target: str, version: str):
    async with aio.insecure_channel(target) as channel:
        call = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )

        async def requests():
            yield reflection_pb2.ServerReflectionRequest(list_services="")

        async for answer in call(requests()):
            names = {service.name for service in answer.list_services_response.service}
    assert {"phylactery.memory.v1.MemoryService", "grpc.health.v1.Health"} <= names


async def test_a_taken_port_is_named_and_the_setting_too(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=rf"127.0.0.1:{port}.*MEMORY_PORT"):
            await start(make_service(Health()), ServiceSettings(data_dir=tmp_path, port=port))


async def test_a_running_call_may_finish_while_the_server_drains(tmp_path: Path):
    memory = Memory()
    running = await start(make_service(Health(), memory), ServiceSettings(data_dir=tmp_path))
    slow = asyncio.create_task(list_messages(f"127.0.0.1:{running.port}", "slow"))
    await memory.entered.wait()
    stopping = asyncio.create_task(running.stop(drain_seconds=300))
    await asyncio.sleep(0)
    memory.release.set()
    assert (await slow).next_page_token
    await stopping


def test_a_failed_export_reports_failure_instead_of_raising(tmp_path: Path):
    exporter = telemetry.FileSpanExporter(tmp_path / "spans" / "x.jsonl", "x")
    (tmp_path / "spans").rmdir()
    (tmp_path / "spans").write_text("a file where the folder should be")
    assert exporter.export([]).name == "FAILURE"


async def test_calls_are_counted_while_they_run_however_they_end(tmp_path: Path):
    memory = Memory()
    service = make_service(Health(), memory)
    running = await start(service, ServiceSettings(data_dir=tmp_path))
    target = f"127.0.0.1:{running.port}"

    async def all_ended() -> None:
        while service.running.count:  # noqa: ASYNC110 - a server tells nobody when a call is off its hands
            await asyncio.sleep(0.01)

    slow = asyncio.create_task(list_messages(target, "slow"))
    await asyncio.wait_for(memory.entered.wait(), 30)
    assert service.running.count == 1
    for broken in ("boom", "state", "fields"):
        await failure(target, broken)
    slow.cancel()
    await asyncio.wait_for(all_ended(), 30)
    await list_messages(target, "thread")
    await asyncio.wait_for(all_ended(), 30)
    await running.stop(drain_seconds=0)
