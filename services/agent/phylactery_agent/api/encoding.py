"""Encoding of views as protobuf messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from phylactery.agent.v1 import chat_pb2, event_pb2, graph_pb2, privacy_pb2, run_pb2, tool_pb2
from phylactery_chassis.erasure import encoding
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_agent.api.requests import BudgetLimits, budget_message
from phylactery_agent.api.tools import ShownTool, ShownTools
from phylactery_agent.api.views import Answer, PendingApproval, ShownEvent, ShownRun, ShownThread
from phylactery_agent.graph.core.spec import GraphSpec, mermaid
from phylactery_agent.ports import ApprovalInfo
from phylactery_agent.ports.services import TranscriptMessage
from phylactery_agent.runtime.privacy.erasure_store import Erasure
from phylactery_agent.runtime.runs.queries import ListedThread
from phylactery_agent.runtime.runs.status import RunStatus
from phylactery_agent.runtime.storage.records import StoredRun, StoredStep, StoredThread, StoredToolCall

_STATUS, _RESOLUTION, _ON_BUSY, _NONE = "RUN_STATUS_", "RESOLUTION_", "ON_BUSY_", "unspecified"


def event_message(shown: ShownEvent) -> event_pb2.Event:
    """Return an event in wire form."""
    stored = shown.event
    message = event_pb2.Event(
        thread_id=stored.thread_id,
        run_id=stored.run_id,
        sequence=stored.sequence,
        create_time=to_timestamp(stored.created_us),
    )
    json_format.ParseDict({stored.kind: dict(stored.payload)}, message, ignore_unknown_fields=True)
    if stored.kind == "approval_required":
        message.approval_required.run_id = stored.run_id
    if shown.live:
        _fill(message.approval_required, shown.live)
    return message


def approval_message(pending: PendingApproval) -> event_pb2.ApprovalRequired:
    """Return an approval that is waiting for a person."""
    message = event_pb2.ApprovalRequired()
    json_format.ParseDict(dict(pending.stored), message, ignore_unknown_fields=True)
    _fill(message, pending.live)
    return message


def _fill(card: event_pb2.ApprovalRequired, live: Mapping[str, ApprovalInfo]) -> None:
    for message in (card, *card.also):
        if (info := live.get(message.approval_id)) is not None:
            message.code, message.args_hash = info.code, info.args_hash
            for argument in info.arguments:
                message.arguments.add(path=argument.path, display=argument.display, control=argument.control)


def run_message(shown: ShownRun, limits: BudgetLimits | None = None) -> run_pb2.Run:
    """Return a run with its steps and its ledger."""
    message = listed_run(shown.run, limits)
    message.tool_calls.extend(tool_call_message(call) for call in shown.tool_calls)
    message.plan_steps.extend(event_pb2.PlanStep(**_step(step)) for step in shown.run.steps)
    return message


def listed_run(run: StoredRun, limits: BudgetLimits | None = None) -> run_pb2.Run:
    """Return a run in list form, with its budget if the limits are given."""
    return run_pb2.Run(
        id=run.run_id,
        thread_id=run.thread_id,
        graph=run.graph,
        status=event_pb2.RunStatus.Value(f"{_STATUS}{run.status.upper()}"),
        reason=run.reason,
        create_time=to_timestamp(run.created_us),
        update_time=to_timestamp(run.updated_us),
        approval_id=run.approval_id if run.status == RunStatus.SUSPENDED else "",
        trace_id=run.trace_id,
        pathway=run.pathway,
        retry_of=run.retry_of,
        budget=None if limits is None else budget_message(run, limits),
    )


def run_step_message(step: StoredStep) -> run_pb2.RunStep:
    """Return an executed node."""
    return run_pb2.RunStep(
        superstep=step.superstep,
        position=step.position,
        node=step.node,
        start_time=to_timestamp(step.started_us),
        duration_us=step.duration_us,
        next_nodes=step.next_nodes,
        tool_call_id=step.tool_call_id,
        finish_reason=step.finish_reason,
        turn_id=step.turn_id,
    )


def tool_call_message(call: StoredToolCall) -> run_pb2.ToolCallRecord:
    """Return a row of the ledger."""
    return run_pb2.ToolCallRecord(
        tool_call_id=call.tool_call_id,
        tool=call.tool,
        state=call.state,
        execution_id=call.execution_id,
        args_hash=call.args_hash,
        status=call.status,
        size_chars=call.size_chars,
        pointer=call.pointer,
        error_code=call.error_code,
        run_id=call.run_id,
        thread_id=call.thread_id,
        resolution=run_pb2.Resolution.Value(f"{_RESOLUTION}{(call.resolution or _NONE).upper()}"),
        create_time=to_timestamp(call.created_us),
    )


def status_word(value: int) -> str:
    """Return the name of a RunStatus, empty if unset; the name of an unknown number is one that nothing accepts."""
    return _word(event_pb2.RunStatus, value, _STATUS)


def resolution_word(value: int) -> str:
    """Return the name of a Resolution in the same way."""
    return _word(run_pb2.Resolution, value, _RESOLUTION)


def on_busy_word(value: int) -> str:
    """Return the name of an OnBusy in the same way."""
    return _word(chat_pb2.OnBusy, value, _ON_BUSY)


def _word(enum: Any, value: int, prefix: str) -> str:
    if value not in enum.values():
        return str(value)
    word: str = enum.Name(value).removeprefix(prefix).lower()
    return "" if word == _NONE else word


def _step(step: Any) -> dict[str, Any]:
    return {name: step[name] for name in ("step_id", "description", "status", "tries")}


def answer_message(answer: Answer) -> chat_pb2.SendMessageResponse:
    """Return the answer of a turn."""
    response = chat_pb2.SendMessageResponse(
        run=run_message(answer.run),
        reply=chat_pb2.Message(
            id=answer.reply.id,
            role="assistant",
            text=answer.reply.text,
            create_time=to_timestamp(answer.reply.created_us),
            run_id=answer.reply.run_id,
        ),
        last_sequence=answer.last_sequence,
    )
    if answer.pending is not None:
        response.pending_approval.CopyFrom(approval_message(answer.pending))
    return response


def listed_thread(listed: ListedThread) -> chat_pb2.Thread:
    """Return a thread in list form."""
    thread = _thread(listed.thread)
    if listed.run is not None:
        thread.last_run.CopyFrom(listed_run(listed.run))
    return thread


def _thread(stored: StoredThread) -> chat_pb2.Thread:
    return chat_pb2.Thread(
        id=stored.thread_id,
        create_time=to_timestamp(stored.created_us),
        update_time=to_timestamp(stored.updated_us),
        first_sequence=stored.first_sequence,
        last_sequence=stored.last_sequence,
        graph=stored.graph,
    )


def thread_message(shown: ShownThread) -> chat_pb2.Thread:
    """Return a thread."""
    thread = _thread(shown.thread)
    if shown.run is not None:
        thread.last_run.CopyFrom(run_message(shown.run))
    thread.pending_approvals.extend(approval_message(card) for card in shown.pending)
    if thread.pending_approvals:
        thread.pending_approval.CopyFrom(thread.pending_approvals[0])
    return thread


def erasure_message(erasure: Erasure) -> privacy_pb2.Erasure:
    """Return the record of an erasure."""
    return encoding.erasure_message(privacy_pb2.Erasure, privacy_pb2.ErasureCounts, erasure)


def transcript_message(message: TranscriptMessage) -> chat_pb2.Message:
    """Return one message of the transcript."""
    return chat_pb2.Message(
        id=message.id,
        role=message.role,
        text=message.text,
        create_time=to_timestamp(message.created_us),
        run_id=message.run_id,
        sequence=message.sequence,
    )


def graph_message(spec: GraphSpec, *, default: str) -> graph_pb2.Graph:
    """Return a graph in list form."""
    return graph_pb2.Graph(
        name=spec.name,
        description=spec.descriptions["en"],
        description_es=spec.descriptions["es"],
        version=spec.version,
        is_default=spec.name == default,
    )


def drawn_graph(spec: GraphSpec, *, default: str) -> graph_pb2.GetGraphResponse:
    """Return a graph with its nodes."""
    return graph_pb2.GetGraphResponse(
        graph=graph_message(spec, default=default),
        nodes=list(spec.nodes),
        edges=[graph_pb2.GraphEdge(source=source, target=target) for source, target in spec.drawn_edges],
        mermaid=mermaid(spec),
    )


def tools_message(shown: ShownTools) -> tool_pb2.ListToolsResponse:
    """Return a list of tools in wire form."""
    response = tool_pb2.ListToolsResponse(
        tools=[tool_message(tool) for tool in shown.tools], catalog_revision=shown.revision
    )
    if shown.checked_us:
        response.check_time.CopyFrom(to_timestamp(shown.checked_us))
    return response


def tool_message(shown: ShownTool) -> tool_pb2.Tool:
    """Return a tool in wire form."""
    contract = shown.spec.contract
    timeout = Duration()
    timeout.FromMilliseconds(round(contract.timeout_seconds * 1_000))
    return tool_pb2.Tool(
        name=shown.spec.name,
        description=shown.spec.descriptions["en"],
        description_es=shown.spec.descriptions["es"],
        schema_hash=shown.spec.schema_hash,
        version=shown.version,
        risk=tool_pb2.ToolRisk.Value(f"TOOL_RISK_{contract.risk.upper()}"),
        effect=tool_pb2.ToolEffect.Value(f"TOOL_EFFECT_{contract.effect.upper()}"),
        idempotency=tool_pb2.ToolIdempotency.Value(f"TOOL_IDEMPOTENCY_{contract.idempotency.upper()}"),
        timeout=timeout,
        retries=contract.retries,
        control_arguments=contract.controls,
        source=shown.source,
        enabled=shown.disabled is None,
        disabled_reason=tool_pb2.DisabledReason.Value(f"DISABLED_REASON_{shown.disabled or 'UNSPECIFIED'}"),
        checked=shown.checked,
    )
