"""The model of one run: a call is counted and inspected before it is asked, and its reply durable before it is used."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from phylactery_chassis.db.database import Database
from phylactery_chassis.util import crashpoints
from phylactery_chassis.util.clock import Clock

from phylactery_agent.llm_client.request import Answered, Question, Spent
from phylactery_agent.llm_client.response import arguments_of, clean
from phylactery_agent.ports import Inspector, ModelCall, ModelMessage, ModelReply, ModelTool, ModelUnavailableError
from phylactery_agent.runtime.storage.records import Lease
from phylactery_agent.runtime.turn.model_calls import ModelCallStore, Usage

if TYPE_CHECKING:
    from phylactery_agent.llm_client.router import Models
import re
from collections.abc import Iterator
from typing import Final

from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.ports import GateRefusedError, GateUnavailableError

NOT_INSPECTED: Final = "MODEL_NOT_INSPECTED"
"""Why a model was not asked: nobody looked at what it would have been shown."""

_MARK: Final = "\x1e"
_BETWEEN: Final = f"\n\n{_MARK}\n\n"
"""Stands between the parts RiskGate looks at in one call, none of which has the mark in it."""
_BLOCKS: Final = re.compile(r"\n\n(?=<data )")
"""Where a block of quoted data begins: one that is new does not have the others looked at again."""
_BLOCK: Final = "\n\n"

_log = get_logger("models")


class ShownInspection:
    """Takes secrets out of what one turn shows to models. Lives as long as the turn, and so does what it knows."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._looked: dict[str, str] = {}

    async def checked(self, question: Question) -> Question:
        """Return the question as it may go out: our own instructions as they are, the rest without secrets.

        Costs one call for all parts that are new in the turn. Raise ModelUnavailableError MODEL_NOT_INSPECTED where
        RiskGate does not answer or does not take a part: then nothing of the question goes out.
        """
        new = list(dict.fromkeys(part for part in _parts(question.messages) if part not in self._looked))
        if new:
            try:
                self._looked.update(await self._look(new))
            except (GateUnavailableError, GateRefusedError) as error:
                reason = error.reason if isinstance(error, GateRefusedError) else "RISKGATE_UNAVAILABLE"
                _log.warning("a model is not asked, for nobody inspected what it would be shown", reason=reason)
                raise ModelUnavailableError(NOT_INSPECTED, "RiskGate did not look at what is to be shown") from None
        return Question([self._message(message) for message in question.messages], question.tools)

    async def _look(self, parts: Sequence[str]) -> Mapping[str, str]:
        """Return each part without its secrets: together in one call, alone where that does not tell them apart."""
        if len(parts) > 1 and not any(_MARK in part for part in parts):
            try:
                together = (await self._inspector.inspect(_BETWEEN.join(parts))).text.split(_BETWEEN)
            except GateRefusedError:  # too much at once
                together = []
            if len(together) == len(parts):
                return dict(zip(parts, together, strict=True))
        return {part: (await self._inspector.inspect(part)).text for part in parts}

    def _message(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        if message["role"] == "system":
            return message
        shown = dict(message)
        if message["content"]:
            shown["content"] = _BLOCK.join(self._looked[part] for part in _BLOCKS.split(message["content"]))
        if called := message.get("tool_calls"):
            shown["tool_calls"] = [self._call(call) for call in called]
        return shown

    def _call(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        function = call["function"]
        return {**call, "function": {**function, "arguments": _object(self._looked[function["arguments"]])}}


def _parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        if message["role"] == "system":
            continue
        if message["content"]:
            yield from _BLOCKS.split(message["content"])
        for call in message.get("tool_calls", ()):
            yield call["function"]["arguments"]


def _object(arguments: str) -> str:
    """Return arguments an endpoint takes: none, where what was taken out took the form of an object with it."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except ValueError:
        return "{}"


_MAX_KEY = 128
_LOOK_SECONDS = 1.0
"""How often it is looked whether a run that waits for a model is still wanted."""
_MAX_TOLD = 10_000
"""Threads of which it is kept that their outage was told; it is told once more in one that was dropped."""
_ID_LETTERS = 9
"""Letters and digits of a tool call's id: some endpoints take exactly nine, none refuses them."""

OnText = Callable[[str], Awaitable[None]]
First = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    """Is what comes first where everything is durable already."""


class RunModels:
    """Makes the model of each run."""

    def __init__(self, models: Models, database: Database, clock: Clock) -> None:
        self.models = models
        self._store = ModelCallStore(database, clock)
        self._away = Outages()

    def of(self, lease: Lease, inspector: Inspector, *, first: First = _nothing, keep: bool = True) -> RunModel:
        """Return the model of the run under this lease; without keep it stores no reply, whatever a call says.

        ``inspector`` looks at what it is shown, for the lease's owner. ``first`` makes durable what led to a call,
        before it is counted: a node that runs again must ask the same.
        """
        shown = ShownInspection(inspector)
        return RunModel(self.models, self._store, lease, shown, self._away, first=first, keep=keep)


class Outages:
    """In which threads it was told that the model is away, as long as it stays so; of this process alone."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def is_news(self, thread_key: str, reason: str, turn_id: str) -> bool:
        """Return whether no other turn of the thread was told the same; from now on one was."""
        before = self._told.get(thread_key)
        if before is not None and before[0] == reason and before[1] != turn_id:
            return False
        self._told[thread_key] = (reason, turn_id)
        while len(self._told) > _MAX_TOLD:
            self._told.popitem(last=False)
        return True

    def end(self, thread_key: str) -> None:
        """Note that the model answered in a thread."""
        self._told.pop(thread_key, None)


class RunModel:
    """ports.Model of one run."""

    def __init__(
        self,
        models: Models,
        store: ModelCallStore,
        lease: Lease,
        shown: ShownInspection,
        away: Outages | None = None,
        *,
        first: First = _nothing,
        keep: bool = True,
    ) -> None:
        self._models, self._store, self._lease, self._shown = models, store, lease, shown
        self._away = away or Outages()
        self._first, self._keep = first, keep

    def is_news(self, reason: str) -> bool:
        """Return whether the person was not told yet, in another turn of the thread, that the model is away."""
        return self._away.is_news(self._lease.thread_key, reason, self._lease.turn_id)

    async def reply(
        self,
        messages: Sequence[ModelMessage],
        *,
        key: str,
        tools: Sequence[ModelTool] = (),
        on_text: OnText | None = None,
        keep: bool = True,
    ) -> ModelReply:
        """Return the conversation; see the port.

        A call that is cut off by a crash or a cancellation stays counted with the most it may have taken: nobody knows
        what was paid.
        """
        if not 0 < len(key) <= _MAX_KEY:
            raise ValueError(f"a key of a model call has 1 to {_MAX_KEY} characters; this one has {len(key)}")
        question = wire_question(messages, tools)
        request_hash = hash_of(question)
        tokens, cost = self._models.most(question)
        most = Usage(1, tokens, 0, cost)
        await self._first()
        before = await self._store.begin(self._lease, key, request_hash, most=most, limits=self._models.config.limits)
        if before is not None:
            if on_text is not None and before.text:
                await on_text(before.text)
            return before
        crashpoints.reach("agent.model.counted")
        spent = Spent()
        try:
            answered = await self._ask(await self._shown.checked(question), spent, on_text)
        except ModelUnavailableError:
            took = Usage(min(spent.requests, 1), spent.prompt_tokens, spent.completion_tokens, spent.cost_micros)
            await self._store.settle(self._lease, key, counted=most, took=took, reply=None)
            raise
        self._away.end(self._lease.thread_key)
        crashpoints.reach("agent.model.answered")
        reply = self._reply(answered, spent, key, request_hash)
        took = Usage(1, reply.prompt_tokens, reply.completion_tokens, reply.cost_micros)
        await self._store.settle(
            self._lease, key, counted=most, took=took, reply=reply if keep and self._keep else None, model=reply.model
        )
        crashpoints.reach("agent.model.kept")
        return reply

    async def _ask(self, question: Question, spent: Spent, on_text: OnText | None) -> Answered:
        """Ask while the run is wanted: who cancels it does not wait for a model. Raise RunCancelledError."""
        asking = asyncio.create_task(self._models.ask(question, spent, on_text, turn=self._lease.turn_id))
        try:
            while not (await asyncio.wait({asking}, timeout=_LOOK_SECONDS))[0]:
                await self._store.require_wanted(self._lease)
            return asking.result()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    def _reply(self, answered: Answered, spent: Spent, key: str, request_hash: str) -> ModelReply:
        heard = answered.heard
        calls = tuple(
            ModelCall(self._call_id(key, request_hash, place), call.name, arguments_of(call.raw), call.raw)
            for place, call in enumerate(heard.calls)
        )
        return ModelReply(
            text=heard.text,
            calls=calls,
            finish_reason=heard.finish_reason,
            model=answered.endpoint.model,
            prompt_tokens=spent.prompt_tokens,
            completion_tokens=spent.completion_tokens,
            cost_micros=spent.cost_micros,
        )

    def _call_id(self, key: str, request_hash: str, place: int) -> str:
        """Return an id that no other call of the run has: endpoints repeat theirs, and the ledger is keyed by it."""
        name = json.dumps([self._lease.run_id, key, request_hash, place])
        return base64.b32encode(hashlib.sha256(name.encode()).digest()).decode().lower()[:_ID_LETTERS]


def wire_question(messages: Sequence[ModelMessage], tools: Sequence[ModelTool]) -> Question:
    """Return a conversation as the wire has it."""
    return Question([_message(one) for one in messages], [_tool(one) for one in tools])


def hash_of(question: Question) -> str:
    """Return what tells a request from another: the conversation and the tools, whichever model is asked."""
    body = json.dumps([question.messages, question.tools], sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(body.encode()).hexdigest()


def _message(message: ModelMessage) -> Mapping[str, Any]:
    words = clean(message.content)
    wire: dict[str, Any] = {"role": message.role, "content": words}
    if message.tool_call_id:
        wire["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        wire["content"] = words or None
        wire["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in message.tool_calls
        ]
    return wire


def _arguments(call: ModelCall) -> str:
    """Return the arguments as they are sent back: what is no object many endpoints refuse, from themselves too."""
    return call.raw if call.arguments is not None and call.raw.strip() else "{}"


def _tool(tool: ModelTool) -> Mapping[str, Any]:
    function = {"name": tool.name, "description": clean(tool.description), "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}
