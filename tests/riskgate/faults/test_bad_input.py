"""Invalid input to every RPC: a clear error, never INTERNAL or UNKNOWN, and nothing decided."""

from __future__ import annotations

import grpc
import pytest
from phylactery.riskgate.v1 import approval_pb2, riskgate_pb2, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
LONG = "x" * 200
HASH = "sha256:" + "a" * 64
CALL = types_pb2.ToolCall(tool="echo", tool_call_id="c1")
EVALUATE = {"call": CALL, "thread_id": "t1", "run_id": "r1"}
REDEEM = {"permit": "a.b.c", "call": CALL, "execution_id": "execution-1", "thread_id": "t1", "run_id": "r1"}
OUTCOME = {"execution_id": "execution-1", "outcome": riskgate_pb2.OUTCOME_SUCCEEDED}


def changed(call: dict[str, str]) -> types_pb2.ToolCall:
    return types_pb2.ToolCall(**({"tool": "echo", "tool_call_id": "c1"} | call))


BAD = [
    ("Evaluate", {}, {"call.tool", "call.tool_call_id", "thread_id", "run_id"}),
    ("Evaluate", EVALUATE | {"call": changed({"tool": LONG})}, {"call.tool"}),
    ("Evaluate", EVALUATE | {"call": changed({"tool": "../x y"})}, {"call.tool"}),
    ("Evaluate", EVALUATE | {"call": changed({"tool_call_id": LONG})}, {"call.tool_call_id"}),
    ("Evaluate", EVALUATE | {"call": changed({"raw_args_hash": "abc"})}, {"call.raw_args_hash"}),
    ("Evaluate", EVALUATE | {"call": changed({"tool_schema_hash": "SHA256:1"})}, {"call.tool_schema_hash"}),
    ("Evaluate", EVALUATE | {"thread_id": LONG, "run_id": "a b"}, {"thread_id", "run_id"}),
    ("Evaluate", EVALUATE | {"plan_step": LONG}, {"plan_step"}),
    ("Evaluate", EVALUATE | {"plan_step": "a\x00b"}, {"plan_step"}),
    ("Evaluate", EVALUATE | {"approval_id": "a'--"}, {"approval_id"}),
    ("Redeem", {}, {"permit", "call.tool", "call.tool_call_id", "execution_id", "thread_id", "run_id"}),
    ("Redeem", REDEEM | {"permit": "x" * 9_000}, {"permit"}),
    ("Redeem", REDEEM | {"permit": "é.é.é"}, {"permit"}),
    ("Redeem", REDEEM | {"execution_id": "short"}, {"execution_id"}),
    ("ReportOutcome", {}, {"execution_id", "outcome"}),
    ("ReportOutcome", OUTCOME | {"outcome": 9}, {"outcome"}),
    ("ReportOutcome", OUTCOME | {"result_hash": "x"}, {"result_hash"}),
    ("ReportOutcome", OUTCOME | {"result_size": -1}, {"result_size"}),
    ("ReportOutcome", OUTCOME | {"result_size": 2**62}, {"result_size"}),
    ("ReportOutcome", OUTCOME | {"error_code": "not a code"}, {"error_code"}),
    ("GetApproval", {}, {"approval_id"}),
    ("GetApproval", {"approval_id": LONG}, {"approval_id"}),
    ("ListApprovals", {"state": 9}, {"state"}),
    ("ListApprovals", {"thread_id": LONG}, {"thread_id"}),
    ("ListApprovals", {"page_size": -1}, {"page_size"}),
    ("ListApprovals", {"page_size": 201}, {"page_size"}),
    ("ListApprovals", {"page_token": "x" * 2_000}, {"page_token"}),
    ("ListApprovals", {"page_token": "bm9uc2Vuc2U"}, {"page_token"}),
    ("Approve", {}, {"approval_id", "args_hash"}),
    ("Approve", {"approval_id": "ap_1", "args_hash": HASH, "code": LONG}, {"code"}),
    ("Approve", {"approval_id": "ap_1", "args_hash": HASH, "thread_id": LONG}, {"thread_id"}),
    ("Reject", {}, {"approval_id"}),
    ("Reject", {"approval_id": "ap_1", "reason": "x" * 501}, {"reason"}),
    ("Reject", {"approval_id": "ap_1", "reason": "a\x00"}, {"reason"}),
    ("Cancel", {}, {"approval_id"}),
    ("Cancel", {"approval_id": "ap_1", "reason": "x" * 501}, {"reason"}),
]


def send(person, name: str, fields: dict[str, object]):
    of_approvals = hasattr(approval_pb2, f"{name}Request")
    request = getattr(approval_pb2 if of_approvals else riskgate_pb2, f"{name}Request")(**fields)
    method = getattr(person.approvals if of_approvals else person.decisions, name)
    return method(request, metadata=person.metadata, timeout=60)


async def test_every_missing_or_overlong_field_of_every_rpc_is_named(gate, ana, refused):
    for name, fields, expected in BAD:
        refusal = await refused(send(ana, name, fields))
        assert (refusal.code, refusal.reason) == (INVALID, "INVALID_REQUEST"), (name, fields, refusal)
        assert set(refusal.fields) == expected, (name, fields)
        assert LONG not in refusal.message
    assert gate.records() == []


async def test_a_message_of_ten_megabytes_is_refused_before_anything_reads_it(gate, ana, call, refused):
    refusal = await refused(ana.evaluate(call(arguments='{"content":"' + "x" * 10_000_000 + '"}')))
    assert refusal.code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert gate.records() == []


async def test_arguments_over_one_megabyte_are_a_recorded_block(gate, ana, call):
    answer = await ana.evaluate(call(arguments='{"content":"' + "x" * 1_100_000 + '"}'))
    assert answer.decision == types_pb2.DECISION_BLOCKED
    assert len(gate.records("decision")) == 1


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a\x08\x0a\x02\xff\xfe\x12\x02c1",  # call.tool is not UTF-8
        b"\xff\xff\xff\xff",  # no protobuf at all
        b"\x0a\x04" + b"\x22\x7f" * 2,  # a length that runs over the end
    ],
)
async def test_bytes_that_are_no_message_are_invalid_and_never_internal(gate, ana, refused, message):
    for method in (
        "RiskGateService/Evaluate",
        "RiskGateService/Redeem",
        "RiskGateService/ReportOutcome",
        "ApprovalService/Approve",
        "ApprovalService/GetApproval",
    ):
        raw = gate.channel.unary_unary(f"/phylactery.riskgate.v1.{method}")
        refusal = await refused(raw(message, metadata=ana.metadata, timeout=60))
        assert (refusal.code, refusal.reason) == (INVALID, "INVALID_REQUEST"), method


async def test_a_struct_nested_too_deeply_for_protobuf_is_invalid(gate, ana, refused):
    value = b"\x1a\x00"
    for _ in range(5_000):  # Value{list_value{values: …}}
        value = b"\x0a" + length(value) + value
        value = b"\x32" + length(value) + value
    entry = b"\x0a\x01a\x12" + length(value) + value
    struct = b"\x0a" + length(entry) + entry
    tool_call = b"\x0a\x04echo\x12\x02c1\x22" + length(struct) + struct
    message = b"\x0a" + length(tool_call) + tool_call + b"\x12\x02t1\x1a\x02r1"
    raw = gate.channel.unary_unary("/phylactery.riskgate.v1.RiskGateService/Evaluate")
    refusal = await refused(raw(message, metadata=ana.metadata, timeout=60))
    assert refusal.code == INVALID


def length(data: bytes) -> bytes:
    size, out = len(data), b""
    while size > 0x7F:
        out, size = out + bytes([size & 0x7F | 0x80]), size >> 7
    return out + bytes([size])


async def test_a_struct_hashes_like_the_same_json_and_odd_numbers_are_blocked(ana, call):
    plain = await ana.evaluate(call("read_output", '{"pointer":"p","offset":2}'))
    struct = types_pb2.ToolCall(tool="read_output", tool_call_id="c2")
    struct.arguments_struct.update({"pointer": "p", "offset": 2})
    assert (await ana.evaluate(struct)).bound_call.args_hash == plain.bound_call.args_hash
    for number, value in enumerate((float("nan"), float("inf"), 2.5, 1e300)):
        odd = types_pb2.ToolCall(tool="read_output", tool_call_id=f"odd{number}")
        odd.arguments_struct.update({"pointer": "p", "offset": value})
        assert (await ana.evaluate(odd)).decision == types_pb2.DECISION_BLOCKED, value


async def test_text_in_any_script_passes_through_unharmed(ana, call):
    answer = await ana.evaluate(call("echo", '{"text":"ñ 漢 😀 \\u202e"}'), plan_step="decir «ñ»")
    assert answer.decision == types_pb2.DECISION_ALLOW
    assert "😀" in answer.bound_call.arguments_json


async def test_unknown_ids_are_not_found(ana, refused):
    asked = types_pb2.Approval(id="ap_unknown", args_hash=HASH, code="ABCDEF", thread_id="t1")
    for attempt in (ana.get("ap_unknown"), ana.approve(asked), ana.reject("ap_unknown")):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "APPROVAL_NOT_FOUND")
        assert refusal.metadata == {"approval_id": "ap_unknown"}
