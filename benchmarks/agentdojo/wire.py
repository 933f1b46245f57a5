"""A running RiskGate over gRPC: the whole life of every call, from task and permit to the reported result."""

from __future__ import annotations

import hashlib
from itertools import count
from typing import Any

from phylactery.riskgate.v1 import task_pb2
from phylactery_client import RiskGateClient, ToolCall
from phylactery_client.results import Evaluation
from phylactery_understanding.interpretation.model import Interpretation, InterpretedAsk, Span

from benchmarks.agentdojo.parts import Answer, Call, Said, Session, Shown, compact

_SAID = {"ALLOW": Said.ALLOW, "AUTH_REQUIRED": Said.ASK, "BLOCKED": Said.BLOCK}
_ANSWERED_BY_THE_REQUESTER = "self"


class Running:
    """Plays against a running RiskGate; each task has its own user, so that plays are independent."""

    def __init__(self, target: str, approver: RiskGateClient) -> None:
        """``approver`` is a client that may approve what the requester may not."""
        self._target, self._approver = target, approver
        self._numbers = count()

    async def begin(self, words: str, meant: Interpretation | None = None) -> Session:
        """Begin a task for a new user."""
        number = next(self._numbers)
        client = RiskGateClient(self._target, subject=f"user-{number}")
        thread, run = f"thread-{number}", f"run-{number}"
        shown = None if meant is None else _message(meant)
        task = await client.begin_task(words, thread_id=thread, request_id=run, interpretation=shown)
        return _Session(client, self._approver, thread, run, task.task_id)


class _Session:
    def __init__(self, client: RiskGateClient, approver: RiskGateClient, thread: str, run: str, task: str) -> None:
        self._client, self._approver = client, approver
        self._where: dict[str, Any] = {"thread_id": thread, "run_id": run}
        self._task = task

    async def evaluate(self, call_id: str, call: Call) -> Answer:
        evaluation = await self._client.evaluate(_tool_call(call_id, call), task_id=self._task, **self._where)
        return _answer(evaluation)

    async def approve(self, call_id: str, call: Call, answer: Answer) -> Answer:
        evaluation: Evaluation = answer.ticket
        waiting = evaluation.approval
        if waiting is None:
            return Answer(Said.BLOCK, "nothing waits for an approval")
        own = waiting.approval_class == _ANSWERED_BY_THE_REQUESTER
        await (self._client if own else self._approver).approve(
            waiting.id, args_hash=waiting.args_hash, code=waiting.code if own else "", thread_id=waiting.thread_id
        )
        again = await self._client.evaluate(
            _tool_call(call_id, call), task_id=self._task, approval_id=waiting.id, **self._where
        )
        return _answer(again)

    async def starts(self, call_id: str, call: Call, answer: Answer) -> bool:
        await self._client.redeem(
            answer.ticket.permit, _tool_call(call_id, call), execution_id=self._execution(call_id), **self._where
        )
        return True

    async def observe(self, call_id: str, call: Call, answer: Answer, shown: Shown) -> None:
        written = shown.value if shown.is_text else compact(shown.value)
        await self._client.report_outcome(
            self._execution(call_id),
            outcome="FAILED" if shown.failed else "SUCCEEDED",
            result_hash=f"sha256:{hashlib.sha256(written.encode()).hexdigest()}",
            result_size=len(written.encode()),
            error_code="TOOL_FAILED" if shown.failed else "",
        )
        await self._client.observe(
            self._task,
            tool=call.tool,
            tool_call_id=call_id,
            arguments_json=answer.ticket.bound_call.arguments_json,
            result_json=None if shown.is_text else written,
            result_text=written if shown.is_text else None,
            failed=shown.failed,
            run_id=self._where["run_id"],
        )

    async def end(self) -> None:
        await self._client.end_task(self._task)
        await self._client.close()

    def _execution(self, call_id: str) -> str:
        return f"{self._where['run_id']}-{call_id}"


def _message(meant: Interpretation) -> task_pb2.Interpretation:
    return task_pb2.Interpretation(version=meant.version, model=meant.model, asks=[_ask(one) for one in meant.asks])


def _ask(ask: InterpretedAsk) -> task_pb2.InterpretedAsk:
    return task_pb2.InterpretedAsk(
        tool=ask.tool,
        slots=[task_pb2.InterpretedSlot(argument=one.argument, value=_span(one.span)) for one in ask.slots],
        mode=task_pb2.InterpretedMode.Value(f"INTERPRETED_MODE_{ask.mode.name if ask.mode else 'UNSPECIFIED'}"),
        quantity=ask.quantity,
        time=None if ask.time is None else _span(ask.time),
        also_time=[_span(one) for one in ask.also_time],
        **({"composed": ask.composed} if ask.content is None else {"literal": _span(ask.content)}),
    )


def _span(span: Span) -> task_pb2.Span:
    return task_pb2.Span(text=span.text, start=span.start, length=len(span.text), back=span.back)


def _tool_call(call_id: str, call: Call) -> ToolCall:
    return ToolCall(call.tool, call_id, compact(call.arguments))


def _answer(evaluation: Evaluation) -> Answer:
    why = [*evaluation.policy_ids, *(one.code for one in evaluation.reasons)]
    by = evaluation.approval.approval_class if evaluation.approval is not None else ""
    return Answer(_SAID[evaluation.decision], " ".join(why), evaluation, by)
