"""The three real services in one process on free ports, each with its own SQLite file, sharing one clock."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grpc import aio
from phylactery.agent.v1 import (
    chat_pb2,
    chat_pb2_grpc,
    event_pb2,
    form_pb2,
    form_pb2_grpc,
    run_pb2,
    run_pb2_grpc,
)
from phylactery.memory.v1 import output_pb2, output_pb2_grpc
from phylactery.riskgate.v1 import approval_pb2, approval_pb2_grpc
from phylactery_agent.app import Agent, build_agent
from phylactery_agent.ports import GateUnavailableError, MemoryUnavailableError
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools.named_folders import folder_name, make_person_folder
from phylactery_chassis.rpc.server import RunningServer, start
from phylactery_chassis.util.ids import new_id
from phylactery_memory.app import build as build_memory
from phylactery_memory.settings import MemorySettings
from phylactery_riskgate.app import build as build_riskgate
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder
from phylactery_riskgate.settings import RiskGateSettings

from tests.support.clock import FakeClock
from tests.support.contracts.refusals import refusal_of
from tests.support.processes.ports import lasting_port
from tests.support.riskgate.asking_bundle import asks_first
from tests.support.riskgate.bundle_cache import read_bundles_once

read_bundles_once()

SUSPENDED = event_pb2.RUN_STATUS_SUSPENDED
DONE = event_pb2.RUN_STATUS_DONE
FAILED = event_pb2.RUN_STATUS_FAILED
refused = refusal_of


class Person:
    """A chat user."""

    def __init__(
        self, system: System, metadata: tuple[tuple[str, str], ...], channel: aio.Channel | None = None
    ) -> None:
        self._system, self.metadata, self._channel = system, metadata, channel

    @property
    def chat(self) -> chat_pb2_grpc.ChatServiceStub:
        return chat_pb2_grpc.ChatServiceStub(self._channel or self._system.agent_channel)

    async def say(
        self, text: str, thread_id: str = "t1", *, request_id: str = "", seconds: float = 200, **fields: Any
    ) -> chat_pb2.SendMessageResponse:
        request = chat_pb2.SendMessageRequest(
            request_id=request_id or new_id("request"), thread_id=thread_id, text=text, **fields
        )
        return await self.chat.SendMessage(request, metadata=self.metadata, timeout=seconds)

    async def stream(
        self, text: str, thread_id: str = "t1", *, request_id: str = "", **fields: Any
    ) -> list[event_pb2.Event]:
        request = chat_pb2.StreamMessageRequest(
            request_id=request_id or new_id("request"), thread_id=thread_id, text=text, **fields
        )
        call = self.chat.StreamMessage(request, metadata=self.metadata, timeout=60)
        return [response.event async for response in call]

    async def thread(self, thread_id: str = "t1") -> chat_pb2.Thread:
        request = chat_pb2.GetThreadRequest(thread_id=thread_id)
        return (await self.chat.GetThread(request, metadata=self.metadata, timeout=60)).thread

    async def transcript(self, thread_id: str = "t1") -> list[tuple[str, str]]:
        request = chat_pb2.ListMessagesRequest(thread_id=thread_id)
        answer = await self.chat.ListMessages(request, metadata=self.metadata, timeout=60)
        return [(message.role, message.text) for message in reversed(answer.messages)]

    async def run(self, run_id: str) -> run_pb2.Run:
        stub = run_pb2_grpc.RunServiceStub(self._system.agent_channel)
        return (await stub.GetRun(run_pb2.GetRunRequest(run_id=run_id), metadata=self.metadata, timeout=60)).run

    async def submissions(self, **options: Any) -> list[form_pb2.FormSubmission]:
        """Return what ListSubmissions lists, the newest first."""
        stub = form_pb2_grpc.FormServiceStub(self._channel or self._system.agent_channel)
        request = form_pb2.ListSubmissionsRequest(**options)
        return list((await stub.ListSubmissions(request, metadata=self.metadata, timeout=60)).submissions)

    async def submitted(self, **options: Any) -> list[dict[str, str]]:
        """Return the values of each stored submission, the newest first."""
        found = await self.submissions(**options)
        return [{value.field: value.value for value in one.values} for one in found if one.submission_id]

    @property
    def approvals(self) -> approval_pb2_grpc.ApprovalServiceStub:
        return approval_pb2_grpc.ApprovalServiceStub(self._system.riskgate_channel)

    async def approve_at_riskgate(self, approval_id: str) -> None:
        got = await self.approvals.GetApproval(
            approval_pb2.GetApprovalRequest(approval_id=approval_id), metadata=self.metadata
        )
        await self.approvals.Approve(
            approval_pb2.ApproveRequest(
                approval_id=approval_id,
                args_hash=got.approval.args_hash,
                code=got.approval.code,
                thread_id=got.approval.thread_id,
            ),
            metadata=self.metadata,
        )

    async def reject_at_riskgate(self, approval_id: str) -> None:
        await self.approvals.Reject(approval_pb2.RejectRequest(approval_id=approval_id), metadata=self.metadata)


@dataclass
class System:
    """The running services."""

    folder: Path
    clock: FakeClock = field(default_factory=FakeClock)
    identity: dict[str, Any] = field(default_factory=dict)
    bundle: Path = field(default_factory=default_bundle_folder)
    _ports: dict[str, int] = field(default_factory=dict)
    _servers: dict[str, RunningServer] = field(default_factory=dict)
    _channels: list[aio.Channel] = field(default_factory=list)
    agent: Agent = field(init=False)
    agent_channel: aio.Channel = field(init=False)
    riskgate_channel: aio.Channel = field(init=False)
    memory_channel: aio.Channel = field(init=False)

    @property
    def sandbox(self) -> Path:
        return self.sandbox_of("ana")

    def sandbox_of(self, subject: str, tenant: str = "acme") -> Path:
        """Return the folder of a person's files, created if it was missing."""
        return make_person_folder(self.folder / "agent" / "sandbox", tenant, subject)

    def phone_sandbox(self) -> Path:
        """Return the folder of the one person of a channel; one that is not there before they use a file."""
        root = self.folder / "agent" / "sandbox" / folder_name("tenant", "local")
        found = list(root.glob("user=*:*"))
        assert len(found) <= 1, "several people of channels have files"
        return found[0] if found else root / "nobody"

    def written(self, name: str) -> list[Path]:
        """Return the files of a name, whoever's they are."""
        return list((self.folder / "agent" / "sandbox").rglob(name))

    def person(self, subject: str = "ana", tenant: str = "acme") -> Person:
        """Return a user identified by loopback metadata."""
        return Person(self, (("x-phylactery-subject", subject), ("x-phylactery-tenant", tenant)))

    def through(self, channel: aio.Channel, person: Person) -> Person:
        """Return the same user connected to another agent."""
        return Person(self, person.metadata, channel)

    def target(self, name: str) -> str:
        """Return a service's address."""
        return f"127.0.0.1:{self._ports[name]}"

    def targets(self) -> dict[str, str]:
        """Return the address of every port, admin ports included."""
        own = {name: server.port for name, server in self._servers.items()}
        admin = {f"{name} admin": server.admin_port for name, server in self._servers.items() if server.admin_port}
        return {name: f"127.0.0.1:{port}" for name, port in (own | admin).items()}

    def bearer(self, token: str) -> Person:
        """Return the user of a token."""
        return Person(self, (("authorization", f"Bearer {token}"),))

    async def start_riskgate(self) -> None:
        settings = RiskGateSettings(
            data_dir=self.folder / "riskgate",
            port=self._port("riskgate"),
            drain_seconds=0,
            bundle=self.bundle,
            **self.identity,
        )
        await self._serve("riskgate", await build_riskgate(settings, clock=self.clock), settings)
        self.riskgate_channel = self._channel("riskgate")

    async def start_memory(self) -> None:
        settings = MemorySettings(
            data_dir=self.folder / "memory", port=self._port("memory"), drain_seconds=0, **self.identity
        )
        await self._serve("memory", await build_memory(settings, clock=self.clock), settings)
        self.memory_channel = self._channel("memory")

    async def start_agent(self, **options: Any) -> None:
        settings = AgentSettings(
            **{
                "data_dir": self.folder / "agent",
                "port": 0,
                "drain_seconds": 0,
                "riskgate_target": f"127.0.0.1:{self._ports['riskgate']}",
                "memory_target": f"127.0.0.1:{self._ports['memory']}",
                "approval_poll_seconds": 0,
                "retry_seconds": 0.05,
                **self.identity,
                **options,
            }
        )
        self.agent = await build_agent(settings, clock=self.clock)
        await self._serve("agent", self.agent.service, settings)
        self.agent_channel = self._channel("agent")

    async def come_back(self, name: str) -> None:
        """Restart a stopped service on its old port, and wait until the agent's channel has reconnected."""
        await (self.start_riskgate() if name == "riskgate" else self.start_memory())
        owner = Owner("acme", "nobody")
        while True:
            try:
                if name == "riskgate":
                    await self.agent.services.gate(owner).public_keys(fresh=True)
                else:
                    await self.agent.services.transcript(owner).page("none", page_size=1)
            except (GateUnavailableError, MemoryUnavailableError):
                await asyncio.sleep(0.05)
            else:
                return

    async def stop(self, name: str) -> None:
        server = self._servers.pop(name, None)
        if server is not None:
            await server.stop()

    async def restart_agent(self) -> None:
        await self.stop("agent")
        await self.start_agent()

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()
        for name in ("agent", "memory", "riskgate"):
            await self.stop(name)

    def _port(self, name: str) -> int:
        """Return a service's port, reusing the previous one after a restart."""
        return self._ports.setdefault(name, lasting_port())

    async def _serve(self, name: str, service: Any, settings: Any) -> None:
        self._servers[name] = await start(service, settings)
        self._ports[name] = self._servers[name].port

    def _channel(self, name: str) -> aio.Channel:
        channel = aio.insecure_channel(f"127.0.0.1:{self._ports[name]}", options=[("grpc.enable_retries", 0)])
        self._channels.append(channel)
        return channel

    def everything_stored(self) -> bytes:
        """Return all bytes of the agent's and memory's folders, for checks that something is in none of them."""
        return b"".join(
            path.read_bytes()
            for name in ("agent", "memory")
            for path in sorted((self.folder / name).rglob("*"))
            if path.is_file()
        )


async def outputs_of(system: System, person: Person) -> list[Any]:
    """Return the outputs that memory keeps for a person, the newest first."""
    stub = output_pb2_grpc.OutputServiceStub(system.memory_channel)
    answer = await stub.ListOutputs(output_pb2.ListOutputsRequest(), metadata=person.metadata, timeout=30)
    return list(answer.outputs)


@asynccontextmanager
async def open_system(
    folder: Path,
    identity: dict[str, Any] | None = None,
    *,
    asks: bool = False,
    bundle: Path | None = None,
    admin_ports: bool = False,
    **agent_options: Any,
) -> AsyncIterator[System]:
    """Run all three services for the block; ``identity`` applies to all, ``agent_options`` to the agent.

    With ``asks`` every write needs an approval; without, ``bundle`` decides, which is the default one if none is named.
    With ``admin_ports`` each service has an admin port.
    """
    bundle = asks_first(folder / "bundle") if asks else bundle or default_bundle_folder()
    system = System(folder, identity=(identity or {}) | ({"admin_port": 0} if admin_ports else {}), bundle=bundle)
    try:
        await system.start_riskgate()
        await system.start_memory()
        await system.start_agent(**agent_options)
        yield system
    finally:
        await system.close()


def approval_of(response: chat_pb2.SendMessageResponse) -> tuple[str, str]:
    """Return the id and code of the waiting approval."""
    pending = response.pending_approval
    assert re.fullmatch(r"[A-Za-z0-9_-]{6,}", pending.approval_id)
    assert re.fullmatch(r"[A-Za-z0-9_-]{6,}", pending.code)
    return pending.approval_id, pending.code


def runs_of(system: System) -> run_pb2_grpc.RunServiceStub:
    """Return the stub of RunService."""
    return run_pb2_grpc.RunServiceStub(system.agent_channel)
