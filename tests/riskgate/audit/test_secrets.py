"""A secret in any text of any RPC reaches no log, no span, no error and no plain byte of the database.

The RPCs come from the contracts, so a new one is included.
"""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio
from grpc_status import rpc_status
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from phylactery.riskgate.v1 import (
    access_pb2,
    approval_pb2,
    audit_pb2,
    inspection_pb2,
    key_pb2,
    riskgate_pb2,
    task_pb2,
    types_pb2,
)
from phylactery_chassis.telemetry.spans import LightProvider
from structlog.testing import capture_logs

from tests.support.contracts.rpcs import Rpc, every_rpc, with_text

RPCS = {rpc.name: rpc for rpc in every_rpc() if rpc.service == "riskgate"}
MARK = "7f3a9c51"
SECRETS = (f"Sesame-{MARK}", f"ábrete {MARK}, sésamo", f'{{"content":"{MARK}","path":"{MARK}.txt"}}')
"""One that passes for an id, one that only text takes, and one that arguments take."""

NAMES = {
    "tool",
    "tool_call_id",
    "thread_id",
    "run_id",
    "approval_id",
    "task_id",
    "continues_task_id",
    "request_id",
    "execution_id",
    "execution_ids",
    "log",
    "name",
    "id",
    "hash",
    "decision_id",
    "kind",
    "subject",
}
"""Ids and names: whoever chose one finds it in errors and records. Nothing else is repeated to anybody."""
PEOPLE = {"ana", "carla", "aldo", "petra", "dora", "olga"}
CONFIGURATION = "PolicyService/"
"""A bundle is no secret: what is wrong in it is shown, and the database keeps it as it is."""


@pytest.fixture
def spans() -> InMemorySpanExporter:
    """Every span that ends from now on, whoever set the process's tracing up before."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, LightProvider):
        provider = LightProvider()
        trace.set_tracer_provider(provider)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


async def requests(gate: Any) -> dict[str, Message]:
    """Return a request for each RPC that gets far; one that is not here is driven with its fields alone."""
    ana = gate.person("ana")
    waiting = (await ana.evaluate(run="waits")).approval
    permit = (
        await ana.evaluate(types_pb2.ToolCall(tool="read_file", tool_call_id="c", arguments_json='{"path":"a"}'))
    ).permit
    call = types_pb2.ToolCall(tool="write_file", tool_call_id="c9", arguments_json='{"path":"a","content":"b"}')
    read = types_pb2.ToolCall(tool="read_file", tool_call_id="c", arguments_json='{"path":"a"}')
    place = {"thread_id": "t1", "run_id": "r9"}
    answer = {"approval_id": waiting.id, "args_hash": waiting.args_hash, "thread_id": "t1"}
    question = riskgate_pb2.EvaluateRequest(call=call, plan_step="s", **place)
    found = audit_pb2.EntryFilter(log="riskgate", tool="write_file")
    about = {
        "subject": access_pb2.AccessSubject(type="user", id="ana"),
        "action": access_pb2.AccessAction(name="read_file"),
        "resource": access_pb2.AccessResource(type="file", id="a"),
    }
    return {
        "RiskGateService/Evaluate": question,
        "RiskGateService/EvaluateBatch": riskgate_pb2.EvaluateBatchRequest(requests=[question]),
        "RiskGateService/EvaluateAccess": access_pb2.EvaluateAccessRequest(**about),
        "RiskGateService/Redeem": riskgate_pb2.RedeemRequest(
            permit=permit, call=read, execution_id="execution-9", thread_id="t1", run_id="r1"
        ),
        "RiskGateService/ReportOutcome": riskgate_pb2.ReportOutcomeRequest(
            execution_id="execution-9", outcome=riskgate_pb2.OUTCOME_FAILED
        ),
        "ApprovalService/GetApproval": approval_pb2.GetApprovalRequest(approval_id=waiting.id),
        "ApprovalService/Approve": approval_pb2.ApproveRequest(code=waiting.code, **answer),
        "ApprovalService/Reject": approval_pb2.RejectRequest(approval_id=waiting.id, reason="no", thread_id="t1"),
        "AuditService/ListEntries": audit_pb2.ListEntriesRequest(filter=found),
        "AuditService/TailEntries": audit_pb2.TailEntriesRequest(
            filter=found, positions=[audit_pb2.LogPosition(log="riskgate")]
        ),
        "AuditService/EraseValues": audit_pb2.EraseValuesRequest(
            reason="asked", entries=[audit_pb2.EntryReference(log="riskgate", index=1)]
        ),
        "InspectionService/Inspect": inspection_pb2.InspectRequest(text="x", options={"want_redacted": True}),
        "InspectionService/InspectBatch": inspection_pb2.InspectBatchRequest(texts=["x"]),
        "TaskService/BeginTask": task_pb2.BeginTaskRequest(request_id="request-9", thread_id="t1", words="hola"),
        "TaskService/Observe": task_pb2.ObserveRequest(
            task_id=await ana.begin(), tool_call_id="c9", tool="read_file", result_text="x"
        ),
        "KeyService/ListKeys": key_pb2.ListKeysRequest(),
    }


async def said(channel: aio.Channel, rpc: Rpc, request: Message, metadata: Any) -> str:
    """Call and return everything an error says, and nothing of an answer."""
    body, failure = request.SerializeToString(), None
    try:
        if rpc.descriptor.server_streaming:
            async for _ in channel.unary_stream(rpc.path)(body, metadata=metadata, timeout=0.3):
                pass
        else:
            await channel.unary_unary(rpc.path)(body, metadata=metadata, timeout=30)
    except aio.AioRpcError as error:
        failure = error
    if failure is None:
        return ""
    assert failure.code() not in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}, failure.details()
    return f"{failure.details()} {rpc_status.from_call(failure)}"


def with_parts(message: Message) -> Message:
    """Put one of each message inside into a message, so that there is a place for every text."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None and not field.message_type.full_name.startswith("google.protobuf."):
            inside = getattr(message, field.name)
            with_parts(inside.add() if field.is_repeated else inside).SetInParent()
    return message


@pytest.mark.parametrize("name", RPCS)
async def test_a_secret_in_any_text_of_any_rpc_is_nowhere(gate, spans, capfd: pytest.CaptureFixture[str], name: str):
    rpc = RPCS[name]
    base = (await requests(gate)).get(name) or with_parts(GetMessageClass(rpc.descriptor.input_type)())
    spans.clear()
    stored_names, lines = False, []
    for secret in SECRETS:
        for path, request in with_text(base, secret):
            is_name, shown = path.rsplit(".", 1)[-1] in NAMES, name.startswith(CONFIGURATION)
            with capture_logs() as heard:
                for person in sorted(PEOPLE):
                    told = await said(gate.channel, rpc, request, gate.person(person).metadata)
                    assert MARK not in told or is_name or shown, (path, person, told)
            lines += heard
            assert MARK not in json.dumps(heard) or (is_name and shown), (path, heard)
            stored_names |= is_name
    ended = [json.loads(span.to_json()) for span in spans.get_finished_spans()]
    assert bool(lines) == bool(ended) == bool(list(with_text(base, MARK)))
    assert MARK not in "".join(capfd.readouterr())
    for span in ended:
        span["attributes"].pop("gen_ai.tool.name", None)
        assert MARK not in json.dumps(span)
    if not stored_names and not name.startswith(CONFIGURATION):
        for path in gate.folder.rglob("*.db*"):
            assert MARK.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("name", "person"),
    [
        ("RiskGateService/Evaluate", "ana"),
        ("RiskGateService/EvaluateBatch", "ana"),
        ("RiskGateService/EvaluateAccess", "ana"),
        ("RiskGateService/Redeem", "ana"),
        ("ApprovalService/Approve", "ana"),
        ("ApprovalService/Reject", "ana"),
        ("TaskService/BeginTask", "ana"),
        ("AuditService/EraseValues", "olga"),
    ],
)
async def test_what_is_no_name_stands_nowhere_in_the_database_in_plain_bytes(gate, name: str, person: str):
    base = (await requests(gate))[name]
    before = gate.count("audit_entries")
    for secret in SECRETS:
        for path, request in with_text(base, secret):
            if path.rsplit(".", 1)[-1] not in NAMES | {"type"}:
                await said(gate.channel, RPCS[name], request, gate.person(person).metadata)
    assert gate.count("audit_entries") > before
    for path in gate.folder.rglob("*.db*"):
        assert MARK.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    "arguments",
    [
        f'{{"path":"a","content":"b","{MARK}":1}}',
        f'{{"path":"a","content":"b","x":{{"{MARK}":[{{"{MARK}":1}}]}}}}',
        f'{{"path":"a","{MARK}":1,"{MARK}":2}}',
        f'{{"path":"a","{MARK}":"\\ud800"}}',
        f'{{"path":"a","{MARK}":{{"__entity":1}}}}',
        f'{{"path":{{"{MARK}":1}},"content":"b"}}',
    ],
)
@pytest.mark.parametrize("tool", ["write_file", "no_such_tool"])
async def test_the_name_of_an_unknown_argument_is_not_kept_in_clear(gate, spans, tool: str, arguments: str):
    call = types_pb2.ToolCall(tool=tool, tool_call_id="c1", arguments_json=arguments)
    with capture_logs() as heard:
        answer = await gate.person("ana").evaluate(call)
    assert (answer.decision, len(answer.reasons) > 0) == (types_pb2.DECISION_BLOCKED, True)
    assert MARK not in str(answer)
    assert MARK not in json.dumps(heard, default=str)
    assert MARK not in "".join(span.to_json() for span in spans.get_finished_spans())
    for path in gate.folder.rglob("*.db*"):
        assert MARK.encode() not in path.read_bytes(), path
