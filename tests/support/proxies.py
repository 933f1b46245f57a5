"""An MCP proxy under test: a real guarded server, a real RiskGate that knows its tools, and real clients."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc
import mcp_types as types
import yaml
from mcp import Client, StdioServerParameters
from phylactery.riskgate.v1 import audit_pb2, audit_pb2_grpc
from phylactery_client import RiskGateClient
from phylactery_mcp_proxy.running import Options, assembled
from phylactery_mcp_proxy.settings import GateTarget, ServerTarget
from phylactery_mcp_proxy.state.folder import StateFolder
from phylactery_mcp_proxy.state.pins import Definitions, Pins, save_pins
from phylactery_mcp_proxy.upstream.session import connected, list_tools
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder

from tests.support.riskgate.serving import ServedRiskGate

SERVERS = Path(__file__).parent / "servers"
PATIENCE = 60.0


def _entry(name: str, effect: str, schema: dict[str, Any], risk: str = "", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "description": name,
        "description_es": name,
        "risk": risk or ("low" if effect == "read" else "medium"),
        "effect": effect,
        "controls": [],
        "sensitive": [],
        "timeout_seconds": 30,
        "idempotency": "read_only" if effect == "read" else "unsafe",
        "schema": {"type": "object", "additionalProperties": False, "properties": {}, **schema},
        **more,
    }


_TEXT: dict[str, Any] = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
CATALOG = [
    _entry("mcp_test_note", "write", _TEXT),
    _entry("mcp_test_facts", "read", {}, output={"/count": "system"}),
    *(_entry(f"mcp_test_{name}", "read", {}) for name in ("look", "show", "fail", "ask", "environment", "huge")),
    _entry("mcp_raw_act", "read", _TEXT),
    _entry("mcp_rawgrave_act", "write", _TEXT, risk="high"),
]


def write_bundle(folder: Path) -> Path:
    """Write the default bundle with the servers' tools, which may ask as often as tests need, and return its folder."""
    shutil.copytree(default_bundle_folder(), folder)
    tools = folder / "tools.yaml"
    entries = yaml.safe_load(tools.read_text())
    entries["tools"] += json.loads(json.dumps(CATALOG))  # without the aliases of shared parts
    tools.write_text(yaml.safe_dump(entries, allow_unicode=True))
    settings = folder / "riskgate.yaml"
    kept = yaml.safe_load(settings.read_text())
    kept |= {"max_asked_per_user_per_hour": 1_000, "max_pending_per_user": 1_000, "rejected_stays_seconds": 0}
    settings.write_text(yaml.safe_dump(kept, allow_unicode=True))
    return folder


@dataclass
class Place:
    """One guarded server: its folder and faults, the proxy's state, and the thread of its calls at RiskGate."""

    folder: Path
    gate: ServedRiskGate
    kind: str = "test"
    faults: tuple[str, ...] = ()
    call_seconds: float = PATIENCE
    max_result_chars: int = 200_000
    thread: str = field(default_factory=lambda: f"thread-{uuid.uuid4().hex}")
    listed: dict[str, Definitions] = field(default_factory=dict)
    """What servers of a kind list, for all tests: starting one takes longer than most of them."""

    def __post_init__(self) -> None:
        self.work = self.folder / "work"
        self.work.mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        return self.kind.removesuffix("-sdk")

    @property
    def command(self) -> tuple[str, ...]:
        """Return the server's command: the SDK's own server for a kind that ends so, else one that starts at once."""
        sdk = self.kind.endswith("-sdk")
        program, first = ("mcp_server.py", ("stdio",)) if sdk else ("raw_mcp_server.py", ())
        # -P, because beside it lies a module named as the SDK is
        return (sys.executable, "-P", str(SERVERS / program), *first, str(self.work), *self.faults)

    @property
    def target(self) -> ServerTarget:
        return ServerTarget(
            name=self.name,
            command=self.command,
            start_seconds=PATIENCE,
            call_seconds=self.call_seconds,
            max_result_chars=self.max_result_chars,
        )

    @property
    def state(self) -> StateFolder:
        return StateFolder(self.folder / "state")

    def options(self, *, subject: str = "", forms: bool = False, **more: Any) -> Options:
        gate = GateTarget(self.gate.target, subject=subject, thread_id=self.thread)
        return replace(Options(self.target, gate, self.state, forms=forms), **more)

    async def pin(self) -> Place:
        """Pin the tools as a server of this kind lists them without faults."""
        if self.kind not in self.listed:
            async with connected(replace(self, faults=()).target, lambda: None) as (session, _):
                self.listed[self.kind] = await list_tools(session)
        save_pins(self.state, Pins(self.target.identity, self.listed[self.kind]))
        return self

    @asynccontextmanager
    async def client(
        self, mode: str = "auto", *, answer: Any = None, options: Options | None = None, **given: Any
    ) -> AsyncIterator[Client]:
        """Yield a client of the proxy, which runs in this process; the guarded server is a process."""
        async with (
            assembled(options or self.options(**given)) as server,
            Client(server, mode=mode, elicitation_callback=answer, cache=None) as client,
        ):
            yield client

    def process(self, *more: str) -> StdioServerParameters:
        """Return how a client starts the proxy as a process."""
        options = ("--name", self.name, "--state", str(self.state.path), "--target", self.gate.target)
        patient = ("--thread", self.thread, "--start-seconds", str(PATIENCE), "--call-seconds", str(self.call_seconds))
        return StdioServerParameters(
            command=sys.executable,
            args=["-m", "phylactery_mcp_proxy", *options, *patient, *more, "--", *self.command],
            env=dict(os.environ),
        )

    def riskgate(self, subject: str = "") -> RiskGateClient:
        """Return a client of RiskGate for the test's own questions."""
        return RiskGateClient(self.gate.target, subject=subject)

    async def approve(self, subject: str = "") -> str:
        """Approve the only call of this thread that waits, as the requester does, and return the approval's id."""
        async with self.riskgate(subject) as gate:
            (found,) = (await gate.list_approvals(thread_id=self.thread, state="PENDING")).approvals
            seen = await gate.get_approval(found.id)
            await gate.approve(seen.id, args_hash=seen.args_hash, code=seen.code, thread_id=self.thread)
            return seen.id

    @property
    def effects(self) -> list[str]:
        path = self.work / "effects"
        return path.read_text().splitlines() if path.exists() else []

    def set(self, fault: str) -> None:
        (self.work / fault).write_text("")

    def clear(self, fault: str) -> None:
        (self.work / fault).unlink(missing_ok=True)

    @property
    def server_pid(self) -> int:
        return int((self.work / "pid").read_text())

    def outcomes(self) -> list[str]:
        """Return what became of each redeemed call of this thread, oldest first: its last outcome, or none."""
        redeemed = [one["execution_id"] for one in records(self.gate, kind="redeemed", thread_id=self.thread)]
        reported = {one["execution_id"]: one["outcome"] for one in records(self.gate, kind="outcome")}
        return [reported.get(one, "") for one in redeemed]


def records(gate: ServedRiskGate, **wanted: str) -> list[dict[str, Any]]:
    """Return the records of a RiskGate's audit log that match a filter, oldest first."""
    with grpc.insecure_channel(gate.target) as channel:
        stub, token, found = audit_pb2_grpc.AuditServiceStub(channel), "", []
        while True:
            request = audit_pb2.ListEntriesRequest(
                filter=audit_pb2.EntryFilter(**wanted), oldest_first=True, page_size=200, page_token=token
            )
            page = stub.ListEntries(request, timeout=PATIENCE)
            found += [json.loads(one.record_json) for one in page.entries]
            token = page.next_page_token
            if not token:
                return found


def texts(result: types.CallToolResult) -> str:
    """Return what a model reads."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


async def until(holds: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Wait until something holds. Raise AssertionError if it never does."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it never came about"
        await asyncio.sleep(0.01)


def lives(pid: int) -> bool:
    """Return True while a process runs; one that ended and waits for its parent does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
