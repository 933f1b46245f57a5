"""A client whose token file is replaced sends the new token with its next call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc
from phylactery_chassis.auth.identity import token_hash
from phylactery_chassis.rpc.channel import open_channel
from phylactery_chassis.rpc.server import Registration, Service, start
from phylactery_chassis.settings import FollowedSecret, ServiceSettings


class Memory(memory_pb2_grpc.MemoryServiceServicer):
    async def ListMessages(self, request: Any, context: Any) -> Any:
        return memory_pb2.ListMessagesResponse(next_page_token="served")


async def healthy() -> bool:
    return True


async def test_a_rotated_token_file_is_used_without_a_restart(tmp_path: Path):
    tokens, secret = tmp_path / "tokens.yaml", tmp_path / "token"
    tokens.write_text(f"tokens: [{{hash: '{token_hash('new')}', subject: agent, tenant: acme, roles: [caller]}}]")
    secret.write_text("old\n")

    def add(server: aio.Server) -> None:
        memory_pb2_grpc.add_MemoryServiceServicer_to_server(Memory(), server)

    service = Service("memory", [Registration("phylactery.memory.v1.MemoryService", add)], healthy)
    settings = ServiceSettings(data_dir=tmp_path, identity_mode="tokens", tokens_file=tokens, drain_seconds=0)
    server = await start(service, settings)
    async with open_channel(f"127.0.0.1:{server.port}", token=FollowedSecret(secret, "TOKEN_FILE")) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.ListMessages(memory_pb2.ListMessagesRequest())
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        (tmp_path / "next").write_text("new\n")
        (tmp_path / "next").replace(secret)
        assert (await stub.ListMessages(memory_pb2.ListMessagesRequest())).next_page_token == "served"
        secret.unlink()
        assert (await stub.ListMessages(memory_pb2.ListMessagesRequest())).next_page_token == "served"
        secret.write_text("")
        assert (await stub.ListMessages(memory_pb2.ListMessagesRequest())).next_page_token == "served"
    await server.stop()
