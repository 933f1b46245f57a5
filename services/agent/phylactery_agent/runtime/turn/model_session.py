"""The model of one run: calls are charged and inspected before they are made, replies durable before they are used."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from phylactery_chassis.db.database import Database
from phylactery_chassis.util import crashpoints
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crypto import sha256

from phylactery_agent.llm_client.request import Answered, Question, Spent
from phylactery_agent.llm_client.response import arguments_of, clean
from phylactery_agent.ports import Inspector, ModelCall, ModelMessage, ModelReply, ModelTool, ModelUnavailableError
from phylactery_agent.ports.model import AnswerForm
from phylactery_agent.runtime.guests.shares import NO_LIMITS, Shares
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
"""Reason for not calling a model: RiskGate did not inspect the content it would have been shown."""

_MARK: Final = "\x1e"
_BETWEEN: Final = f"\n\n{_MARK}\n\n"
"""Separator between the parts RiskGate inspects in one call; no part contains the mark."""
_BLOCKS: Final = re.compile(r"\n\n(?=<data )")
"""Start of a block of quoted data. Splitting here keeps a new block from causing the others to be re-inspected."""
_BLOCK: Final = "\n\n"

_log = get_logger("models")


class ShownInspection:
    """Redaction of secrets from what one turn shows to models, with a cache of inspected parts for the turn."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._looked: dict[str, str] = {}

    async def checked(self, question: Question) -> Question:
        """Return the question as it may be sent: system messages unchanged, everything else without secrets.

        Costs one call for all parts that are new in the turn. Raise ModelUnavailableError MODEL_NOT_INSPECTED if
        RiskGate does not answer or rejects a part; nothing of the question is sent then.
        """
        new = list(dict.fromkeys(part for part in _parts(question.messages) if part not in self._looked))
        if new:
            try:
                self._looked.update(await self._look(new))
            except (GateUnavailableError, GateRefusedError) as error:
                reason = error.reason if isinstance(error, GateRefusedError) else "RISKGATE_UNAVAILABLE"
                _log.warning("model not called: its input was not inspected", reason=reason)
                raise ModelUnavailableError(NOT_INSPECTED, "RiskGate did not look at what is to be shown") from None
        return replace(question, messages=[self._message(message) for message in question.messages])

    async def _look(self, parts: Sequence[str]) -> Mapping[str, str]:
        """Return each part without its secrets: inspected in one call, or one by one if the result cannot be split."""
        if len(parts) > 1 and not any(_MARK in part for part in parts):
            try:
                together = (await self._inspector.inspect(_BETWEEN.join(parts))).text.split(_BETWEEN)
            except GateRefusedError:  # too long when joined
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
    """Return arguments that an endpoint accepts: "{}" if removing secrets left something other than a JSON object."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except ValueError:
        return "{}"


_MAX_KEY = 128
_LOOK_SECONDS = 1.0
"""Interval, in seconds, of the check whether a run that waits for a model was cancelled."""
_MAX_TOLD = 10_000
"""Maximum number of threads whose reported outage is remembered; an evicted thread reports its outage again."""
_ID_LETTERS = 9
"""Letters and digits of a tool call's id: some endpoints require exactly nine, and none rejects them."""

OnText = Callable[[str], Awaitable[None]]
First = Callable[[], Awaitable[None]]


async def _nothing() -> None:
    """Do nothing: the default ``first`` where everything is durable already."""


class RunModels:
    """Factory for the model of each run."""

    def __init__(self, models: Models, database: Database, clock: Clock, shares: Shares = NO_LIMITS) -> None:
        self.models = models
        self._store = ModelCallStore(database, clock, shares)
        self._away = Outages()

    def of(self, lease: Lease, inspector: Inspector, *, first: First = _nothing, keep: bool = True) -> RunModel:
        """Return the model of the run under this lease; without keep no reply is stored, whatever a call requests.

        ``inspector`` inspects what the model is shown, on behalf of the lease's owner. ``first`` makes durable what led
        to a call, before it is charged: a node that runs again must send the same request.
        """
        shown = ShownInspection(inspector)
        return RunModel(self.models, self._store, lease, shown, self._away, first=first, keep=keep)


class Outages:
    """Threads in which an ongoing model outage was already reported, in this process only."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def is_news(self, thread_key: str, reason: str, turn_id: str) -> bool:
        """Return True unless another turn of the thread already reported the same outage; record this report."""
        before = self._told.get(thread_key)
        if before is not None and before[0] == reason and before[1] != turn_id:
            return False
        self._told[thread_key] = (reason, turn_id)
        while len(self._told) > _MAX_TOLD:
            self._told.popitem(last=False)
        return True

    def end(self, thread_key: str) -> None:
        """Record that the model answered in a thread."""
        self._told.pop(thread_key, None)


class RunModel:
    """Implementation of ports.Model for one run."""

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
        """Return True if the outage was not yet reported to the person in another turn of the thread."""
        return self._away.is_news(self._lease.thread_key, reason, self._lease.turn_id)

    async def reply(
        self,
        messages: Sequence[ModelMessage],
        *,
        key: str,
        tools: Sequence[ModelTool] = (),
        on_text: OnText | None = None,
        keep: bool = True,
        form: AnswerForm | None = None,
    ) -> ModelReply:
        """Return the model's reply to a conversation; see the port.

        A call cut off by a crash or a cancellation stays charged with its maximum: what was actually billed is unknown.
        """
        if not 0 < len(key) <= _MAX_KEY:
            raise ValueError(f"a key of a model call has 1 to {_MAX_KEY} characters; this one has {len(key)}")
        question = wire_question(messages, tools, form)
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
        """Call the model, checking that the run is still wanted: cancelling does not wait for a model.

        Raise RunCancelledError.
        """
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
        """Return an id unique to this call within the run: endpoints repeat theirs, and the ledger is keyed by it."""
        name = json.dumps([self._lease.run_id, key, request_hash, place])
        return base64.b32encode(hashlib.sha256(name.encode()).digest()).decode().lower()[:_ID_LETTERS]


def wire_question(
    messages: Sequence[ModelMessage], tools: Sequence[ModelTool], form: AnswerForm | None = None
) -> Question:
    """Return a conversation in its wire format."""
    wanted = None if form is None else {"name": form.name, "schema": form.schema}
    return Question([_message(one) for one in messages], [_tool(one) for one in tools], wanted)


def hash_of(question: Question) -> str:
    """Return the identity of a request: a hash of the conversation and the tools, independent of the model."""
    body = json.dumps([question.messages, question.tools], sort_keys=True, separators=(",", ":"))
    return sha256(body)


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
    """Return the arguments to send back: many endpoints reject a non-object, even one they produced themselves."""
    return call.raw if call.arguments is not None and call.raw.strip() else "{}"


def _tool(tool: ModelTool) -> Mapping[str, Any]:
    function = {"name": tool.name, "description": clean(tool.description), "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}
