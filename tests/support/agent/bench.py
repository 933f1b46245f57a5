"""Test doubles for serving a turn: a graph with the compiled graph's methods, and services that can be switched off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from phylactery_agent.graph.core.registry import SPECS, ServedGraph
from phylactery_agent.ports import (
    ApprovalInfo,
    ExecutionReport,
    GateRefusedError,
    GateUnavailableError,
    Hydration,
    MemoryUnavailableError,
    Remembered,
)
from phylactery_agent.ports.services import TranscriptPage
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.intake.redaction import Sanitizing
from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.sealing import Sealer
from phylactery_agent.runtime.turn.gate import ReplacedFiles, ReportingGate, TurnTask
from phylactery_agent.runtime.turn.server import TurnServer
from phylactery_agent.runtime.turn.tasks import TaskStore
from phylactery_agent.tools.executor import Executor

from tests.support.agent.inspector import LocalInspector
from tests.support.agent.stores import Stores

STATE = {
    "turn_id": "",
    "run_status": "done",
    "finish_reason": "ANSWERED",
    "reply": {"id": "msg_1", "text": "listo"},
    "approval_id": None,
    "plan": [],
    "steps": {},
    "request_turn": "",
    "do_not_store": False,
}


class StandInGraph:
    """A graph that returns the test's answers, after running ``work`` if given."""

    def __init__(self, work: Callable[..., Awaitable[Mapping[str, Any]]] | None = None) -> None:
        self.work, self.calls = work, 0
        self.contexts: list[Any] = []
        self.kept: dict[str, Any] = {"turn_id": "an earlier one"}
        self.channels: dict[str, Any] = {}

    async def aget_state(self, _config: Any) -> Any:
        return SimpleNamespace(values=self.kept, next=())

    async def ainvoke(
        self, given: Any, _config: Any, *, context: Any, durability: str, output_keys: list[str]
    ) -> Mapping[str, Any]:
        assert durability == "sync"
        self.calls += 1
        self.contexts.append(context)
        ended = STATE if self.work is None else await self.work(given, context)
        return {name: ended[name] for name in output_keys if name in ended}


class StandInServices:
    """Services that record what was delivered; each can be switched off."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.gate_down = self.memory_down = False
        self.refusal: GateRefusedError | None = None
        self.approval_state = "PENDING"
        self.hydrated: list[tuple[str, str]] = []
        self.remembered: list[tuple[str, str, bool]] = []
        self.heard_all = asyncio.Event()
        self.changes: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self.streams = 0

    async def watch(self) -> AsyncIterator[str]:
        """Yield what a test puts into ``changes``: None ends the stream, an error breaks it."""
        self.streams += 1
        while (change := await self.changes.get()) is not None:
            if isinstance(change, Exception):
                raise change
            yield change

    def approvals(self, _owner: Owner) -> Any:
        return self

    def inspector(self, _owner: Owner) -> Any:
        return LocalInspector()

    def gate(self, _owner: Owner, _level: Any = None) -> Any:
        return self

    def outputs(self, _owner: Owner) -> Any:
        return self

    def transcript(self, _owner: Owner) -> Any:
        return self

    def memories(self, _owner: Owner) -> Any:
        return self

    async def write(self, text: str, **about: Any) -> Remembered:
        if self.memory_down:
            raise MemoryUnavailableError("down")
        self.remembered.append((text, about["message_ids"][0], about["keep"]))
        return Remembered("mem_1")

    async def report_outcome(self, report: ExecutionReport) -> None:
        if self.gate_down:
            raise GateUnavailableError("down")
        if self.refusal is not None:
            raise self.refusal
        self.told.append((report.execution_id, report.outcome))

    redeem = approve = reject = cancel = public_keys = issuer = None

    async def evaluate(self, call: Any, _where: Any, **_of: Any) -> str:
        self.told.append(("evaluate", call.tool_call_id))
        return "decision"

    async def get_approval(self, approval_id: str, *, full: bool = False) -> ApprovalInfo:
        if self.gate_down:
            raise GateUnavailableError("down")
        if self.refusal is not None:
            raise self.refusal
        return ApprovalInfo(approval_id, self.approval_state, "self", "t", "low", "h", "t1", "r", "c", 0)

    async def append(self, thread_id: str, _run_id: str, messages: Sequence[Mapping[str, Any]]) -> None:
        if self.memory_down:
            raise MemoryUnavailableError("down")
        self.told.extend((thread_id, message["text"]) for message in messages)
        if len(self.told) == 6:
            self.heard_all.set()

    async def hydrate(self, thread_id: str, *, pathway: str, **_bounds: Any) -> Hydration:
        if self.memory_down:
            raise MemoryUnavailableError("down")
        self.hydrated.append((thread_id, pathway))
        return Hydration()

    async def page(self, _thread_id: str, **_bounds: Any) -> TranscriptPage:
        if self.memory_down:
            raise MemoryUnavailableError("down")
        return TranscriptPage([], "")


class Bench:
    """A turn server over real stores."""

    def __init__(self, stores: Stores, executor: Executor | None = None) -> None:
        self.stores, self.services, self.graph = stores, StandInServices(), StandInGraph()
        self.sealer, self.active_seconds = Sealer(b"\x07" * 32), 900.0
        self.delivery = Delivery(stores.outbox, self.services, stores.named_leases(), retry_seconds=0.01)
        self.executor = executor

    def gate(self, lease: Lease, words: str = "", *, opens_run: bool = True) -> ReportingGate:
        """Return RiskGate's gate as used by a turn with these words."""
        gate = self.services.gate(lease.owner)
        store = TaskStore(self.stores.database, self.stores.clock)
        task = TurnTask(gate, store, lease, words, opens_run=opens_run)
        replaced = ReplacedFiles(cast("Executor", self.executor), store, lease)
        return ReportingGate(gate, self.delivery, lease, task, replaced)

    def server(self, heartbeat_seconds: float = 10.0) -> TurnServer:
        tools: Any = {
            "database": self.stores.database,
            "clock": self.stores.clock,
            "runs": self.stores.runs,
            "leases": self.stores.leases,
            "services": self.services,
            "delivery": self.delivery,
            "news": self.stores.news,
            "graphs": SimpleNamespace(get=lambda name: ServedGraph(cast("Any", self.graph), SPECS[name])),
            "executor": self.executor,
            "tools": self.stores.tools,
            "evict_over_chars": 10_000,
            "active_seconds": self.active_seconds,
            "sanitizing": Sanitizing(cast("Any", self.services), self.sealer),
        }
        return TurnServer(**tools, heartbeat_seconds=heartbeat_seconds)
