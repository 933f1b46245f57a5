"""Random and mutated messages to every RPC: never INTERNAL, never UNKNOWN, and the service goes on."""

from __future__ import annotations

import random
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf.message import Message
from grpc import aio
from phylactery.riskgate.v1 import approval_pb2, audit_pb2, inspection_pb2, key_pb2, riskgate_pb2, types_pb2
from phylactery_riskgate.audit_export import export_log, verify_export

HASH = "sha256:" + "a" * 64
ROUNDS = 60
BAD = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS}


def requests() -> dict[str, Message]:
    call = types_pb2.ToolCall(tool="read_file", tool_call_id="c1", arguments_json='{"path":"a.txt"}')
    struct = types_pb2.ToolCall(tool="write_file", tool_call_id="c2")
    struct.arguments_struct.update({"path": "a", "content": [1, None, {"b": True}]})
    place = {"thread_id": "t1", "run_id": "r1"}
    wanted = audit_pb2.EntryFilter(log="riskgate", kind="decision", subject="ana", tool="echo", **place)
    wanted.end_time.FromSeconds(1_700_000_000)
    return {
        "RiskGateService/Evaluate": riskgate_pb2.EvaluateRequest(call=struct, **place),
        "RiskGateService/Redeem": riskgate_pb2.RedeemRequest(
            call=call, permit="a.b.c", execution_id="execution-1", **place
        ),
        "RiskGateService/ReportOutcome": riskgate_pb2.ReportOutcomeRequest(
            execution_id="execution-1", outcome=riskgate_pb2.OUTCOME_FAILED, result_hash=HASH, error_code="NO"
        ),
        "ApprovalService/GetApproval": approval_pb2.GetApprovalRequest(approval_id="ap_1"),
        "ApprovalService/ListApprovals": approval_pb2.ListApprovalsRequest(page_size=2, thread_id="t1"),
        "ApprovalService/Approve": approval_pb2.ApproveRequest(
            approval_id="ap_1", args_hash=HASH, code="ABCDEF", thread_id="t1"
        ),
        "ApprovalService/Reject": approval_pb2.RejectRequest(approval_id="ap_1", reason="no"),
        "ApprovalService/Cancel": approval_pb2.CancelRequest(approval_id="ap_1", reason="no"),
        "InspectionService/Inspect": inspection_pb2.InspectRequest(
            text="card 4111 1111 1111 1111, ñandú@example.com", options={"kinds": [23], "want_redacted": True}
        ),
        "InspectionService/InspectBatch": inspection_pb2.InspectBatchRequest(
            texts=["12345678Z", "password=hunter22"], options={"min_confidence": 1, "want_redacted": True}
        ),
        "KeyService/ListKeys": key_pb2.ListKeysRequest(),
        "AuditService/ListLogs": audit_pb2.ListLogsRequest(),
        "AuditService/ListEntries": audit_pb2.ListEntriesRequest(
            filter=wanted, include_values=True, page_size=2, page_token="WzEsInIiLDFd"
        ),
        "AuditService/GetCheckpoint": audit_pb2.GetCheckpointRequest(log="riskgate", size=1),
        "AuditService/GetInclusionProof": audit_pb2.GetInclusionProofRequest(log="riskgate", index=1, tree_size=2),
        "AuditService/GetConsistencyProof": audit_pb2.GetConsistencyProofRequest(log="riskgate", first_size=1),
        "AuditService/EraseValues": audit_pb2.EraseValuesRequest(
            filter=wanted, reason="no", entries=[audit_pb2.EntryReference(log="riskgate", index=1)]
        ),
    }


def mutations(message: Message, chooser: random.Random) -> Iterator[bytes]:
    data = message.SerializeToString()
    for _ in range(ROUNDS):
        changed = bytearray(data)
        for _ in range(chooser.randint(1, 4)):
            at = chooser.randrange(len(changed) + 1)
            kind = chooser.randrange(3)
            if kind == 0:
                changed[at:at] = chooser.randbytes(chooser.randint(1, 6))
            elif kind == 1:
                del changed[at : at + chooser.randint(1, 3)]
            elif at < len(changed):
                changed[at] = chooser.randrange(256)
        yield bytes(changed)
        yield chooser.randbytes(chooser.randint(0, 80))


@pytest.mark.parametrize("method", sorted(requests()))
async def test_no_message_makes_an_rpc_fail_in_a_way_a_client_cannot_understand(gate, ana, method, tmp_path):
    raw = gate.channel.unary_unary(f"/phylactery.riskgate.v1.{method}")
    person = gate.person("zora") if method.startswith("AuditService") else ana
    codes = set()
    for data in mutations(requests()[method], random.Random(method)):
        try:
            await raw(data, metadata=person.metadata, timeout=60)
            codes.add(grpc.StatusCode.OK)
        except aio.AioRpcError as error:
            codes.add(error.code())
    assert codes
    assert not codes & BAD
    assert (await ana.list_keys()).keys
    out = tmp_path / "log.jsonl"
    gate.database.read_sync(lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer))
    assert verify_export(out).ok
