"""The graph on in-memory ports: a ledger with the real transitions, memory, events, and a chat driver."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from phylactery_agent.graph.core.spec import GraphSpec
from phylactery_agent.graph.secured.builder import SECURED
from phylactery_agent.ports import (
    BoundCall,
    EffectState,
    Language,
    LeaseLostError,
    LedgerRow,
    MemoryRefusedError,
    MemoryUnavailableError,
    Model,
    OutputLine,
    OutputMatches,
    OutputRange,
    ProposedCall,
    Recalled,
    Remembered,
    StoredOutput,
    Told,
    Turn,
    TurnContext,
)
from phylactery_agent.ports.effects import EffectEvent, advance
from phylactery_agent.rules.intents import classify, parse_reply
from phylactery_agent.tools.executor import Executor, ToolSettings
from phylactery_agent.tools.named_folders import make_person_folder
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_chassis.util import crashpoints
from phylactery_chassis.util.crypto import sha256

from tests.support.agent.gate import FakeGate
from tests.support.agent.inspector import LocalInspector

COUNTER = "tests.support.agent.counter_tool"


class Died(BaseException):
    """Simulates the death of the process: no production code catches it."""


@contextmanager
def dies_at(name: str, *, times: int = 1) -> Any:
    """Simulate a crash at a crash point, the first ``times`` times it is reached."""
    left = [times]

    def hook(reached: str) -> None:
        if reached == name and left[0]:
            left[0] -= 1
            raise Died(name)

    crashpoints.install(hook)
    try:
        yield
    finally:
        crashpoints.install(None)
    assert left[0] == 0, f"crash point {name} was never reached"


@dataclass
class FakeLedger:
    rows: dict[str, LedgerRow] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    lost: bool = False
    keeps_outputs: bool = True
    writes: list[tuple[str, str]] = field(default_factory=list)
    ran_with: dict[str, str] = field(default_factory=dict)

    def _move(self, tool_call_id: str, event: EffectEvent, **values: Any) -> None:
        if self.lost:
            raise LeaseLostError
        row = self.rows[tool_call_id]
        to = advance(EffectState(row.state), event)
        self.writes.append((to, tool_call_id))
        self.rows[tool_call_id] = replace(row, state=to, **values)

    async def find(self, tool_call_id: str) -> LedgerRow | None:
        return self.rows.get(tool_call_id)

    async def calls(self) -> Sequence[LedgerRow]:
        return [replace(row, output=None) for row in self.rows.values()]

    async def done_before(self) -> Sequence[str]:
        return self.before

    async def propose(self, call: ProposedCall, *, plan_step: str) -> None:
        new = LedgerRow(
            call.tool_call_id,
            call.tool,
            EffectState.PROPOSED,
            args_hash=call.args_hash,
            content_hash=call.content_hash,
        )
        row = self.rows.setdefault(call.tool_call_id, new)
        assert row.tool == call.tool, "the id names another call"
        assert row.args_hash == call.args_hash or row.state not in {"proposed", "denied"}, "the id names another call"

    async def deny(self, tool_call_id: str, *, error_code: str) -> None:
        self._move(tool_call_id, EffectEvent.DENY, error_code=error_code)

    async def start(
        self, tool_call_id: str, *, execution_id: str, effect_key: str, bound: BoundCall, **_stakes: object
    ) -> None:
        values = {"execution_id": execution_id, "effect_key": effect_key, "args_hash": bound.args_hash}
        self._move(tool_call_id, EffectEvent.START, **values)

    async def finish(
        self,
        tool_call_id: str,
        *,
        arguments_json: str,
        status: Literal["success", "error"],
        output: str,
        error_code: str,
        low_stakes: bool = False,
        not_done: bool = False,
    ) -> None:
        if self.rows[tool_call_id].state == "finished":
            return
        self.ran_with[tool_call_id] = arguments_json
        values: dict[str, Any] = {"status": status, "output": output, "error_code": error_code}
        values["output_hash"] = sha256(output)
        if not self.keeps_outputs:
            values["output"] = None
        self._move(tool_call_id, EffectEvent.FINISH, **values)

    async def doubt(self, tool_call_id: str, *, error_code: str) -> None:
        self._move(tool_call_id, EffectEvent.DOUBT, error_code=error_code)

    async def evicted(self, tool_call_id: str, *, pointer: str, size_chars: int) -> None:
        self._move(tool_call_id, EffectEvent.EVICT, status="evicted", output=None)

    async def check_fence(self) -> bool:
        if self.lost:
            raise LeaseLostError
        return True


@dataclass
class FakeOutputs:
    stored: dict[str, str] = field(default_factory=dict)
    available: bool = True

    async def store_output(
        self, text: str, *, thread_id: str, run_id: str, tool_call_id: str, tool_name: str
    ) -> StoredOutput:
        if not self.available:
            raise MemoryUnavailableError
        pointer = f"out_{tool_call_id}"
        self.stored[pointer] = text
        return StoredOutput(
            evicted=True,
            pointer=pointer,
            placeholder=f"[EVICTED size={len(text)}] See {pointer}",
            size_chars=len(text),
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            rehydration_allowed=len(text) < 50_000,
            preview_head=text[:300],
            preview_tail=text[-300:],
        )

    async def read_output(self, pointer: str, *, offset: int, limit: int) -> OutputRange:
        if not self.available:
            raise MemoryUnavailableError
        if pointer not in self.stored:
            raise MemoryRefusedError("OUTPUT_NOT_FOUND", "there is no such output")
        text = self.stored[pointer]
        part = text[offset : offset + limit]
        return OutputRange(part, offset, offset + len(part), len(text))

    async def search_output(self, pointer: str, pattern: str, **_how: Any) -> OutputMatches:
        text = self.stored[pointer]
        found = [line for line in enumerate(text.split("\n"), 1) if pattern in line[1]]
        return OutputMatches([OutputLine(at, at, line, matched=True) for at, line in found], 0, len(text), len(text))


@dataclass
class FakeMemories:
    kept: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    refusal: str = ""
    available: bool = True

    async def remember(self, text: str) -> Remembered:
        if not self.available:
            raise MemoryUnavailableError
        if self.refusal:
            return Remembered("", self.refusal)
        if text not in self.kept:
            self.kept.append(text)
        return Remembered(f"mem_{self.kept.index(text)}")

    async def recall(self, query: str, *, limit: int) -> list[Recalled]:
        if not self.available:
            raise MemoryUnavailableError
        told = [Recalled(text, untrusted=False, valid_us=1_790_000_000_000_000) for text in self.kept if query in text]
        return [*told, *(Recalled(text, untrusted=True, valid_us=1_790_000_000_000_000) for text in self.foreign)][
            :limit
        ]


@dataclass
class FakeEvents:
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    keys: set[tuple[str, str]] = field(default_factory=set)
    turn_id: str = ""

    async def emit(self, *told: Told) -> None:
        for event in told:
            if (self.turn_id, event.key) not in self.keys:
                self.keys.add((self.turn_id, event.key))
                self.told.append((event.kind, dict(event.payload)))

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.told]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [payload for known, payload in self.told if known == kind]


def strict_saver() -> InMemorySaver:
    return InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))


class Chat:
    """One thread, driven as the runtime does: a new run, or the suspended one again."""

    def __init__(self, folder: Path, saver: BaseCheckpointSaver[Any] | None = None, spec: GraphSpec = SECURED) -> None:
        self.sandbox = make_person_folder(folder / "sandbox", "acme", "ana")
        self.tools = ToolRegistry([COUNTER])
        self.executor = Executor(ToolSettings(folder / "sandbox", folder / "journal"), self.tools)
        self.gate = FakeGate(tools=self.tools)
        self.gate.policy.update(count="ALLOW", flaky="ALLOW")
        self.ledger, self.outputs, self.events = FakeLedger(), FakeOutputs(), FakeEvents()
        self.memories = FakeMemories()
        self.inspector = LocalInspector()
        self.model: Model | None = None
        self.spec = spec
        self.graph: Any = spec.compile(saver or strict_saver())
        self.config: Any = {"configurable": {"thread_id": "th_1"}}
        self.turns = self.runs = 0
        self.code = ""
        self.also_answered: dict[str, str] = {}
        self.language: Language | None = None
        self.allowed_tools: tuple[str, ...] = ()
        self.narrowed_now: tuple[str, ...] = ()
        self.do_not_store = False
        self.evict_over_chars = 10_000

    async def values(self) -> dict[str, Any]:
        return dict((await self.graph.aget_state(self.config)).values)

    def _context(self, language: Language) -> TurnContext:
        return TurnContext(
            gate=self.gate,
            outputs=self.outputs,
            memories=self.memories,
            ledger=self.ledger,
            events=self.events,
            executor=self.executor,
            tools=self.tools,
            language=language,
            reply_code=self.code,
            also_answered=self.also_answered,
            evict_over_chars=self.evict_over_chars,
            inspector=self.inspector,
            allowed_tools=self.narrowed_now,
            model=self.model,
        )

    async def say(self, text: str, *, code: str = "", intent: str = "") -> dict[str, Any]:
        """Send a message; an approval code is masked in the text and passed separately, as the API does."""
        before = await self.values()
        resumed = before.get("run_status") == "suspended"
        self.turns += 1
        self.runs += not resumed
        heard = classify(text, self.tools, before.get("language", "es"))
        self.language = heard.language
        reply = parse_reply(text)
        self.code = code
        if reply is not None and reply.verb == "approve":
            self.code = self.code or text.rsplit(maxsplit=1)[-1]
            text = f"{text.split(maxsplit=1)[0]} {reply.approval_id} ________"
        self.events.turn_id = f"tn_{self.turns}"
        turn = Turn(
            turn_id=self.events.turn_id,
            run_id=f"rn_{self.runs}",
            thread_id="th_1",
            user_id="ana",
            tenant="acme",
            text=text,
            language=heard.language,
            intent=intent or heard.intent,
            pathway="standby" if intent == "approval_decided" else heard.pathway,
            allowed_tools=self.allowed_tools,
            do_not_store=self.do_not_store,
        )
        return await self._invoke(self.spec.reentry_input(turn) if resumed else self.spec.new_run_input(turn))

    async def wake(self) -> dict[str, Any]:
        """Resume the run without a message, after the approval was decided elsewhere."""
        return await self.say("", intent="approval_decided")

    async def go_on(self) -> dict[str, Any]:
        """Resume the same turn from its checkpoint, as after a crash of the process."""
        return await self._invoke(None)

    async def _invoke(self, given: dict[str, Any] | None) -> dict[str, Any]:
        context = self._context(self.language or "es")
        return dict(await self.graph.ainvoke(given, self.config, context=context, durability="sync"))


def ended(state: dict[str, Any]) -> tuple[str, str]:
    """Return a run's final status and its reason."""
    return state["run_status"], state["finish_reason"]


def said(state: dict[str, Any]) -> str:
    """Return the text of the reply."""
    return str(state["reply"]["text"])


def reasons(chat: Chat) -> list[str]:
    """Return the reasons of the conversation's notices."""
    return [notice["reason"] for notice in chat.events.of("notice")]
