"""Random and mutated messages to every RPC: never INTERNAL, never UNKNOWN, and the service keeps running."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from grpc import aio
from phylactery.riskgate.v1 import (
    access_pb2,
    approval_pb2,
    audit_pb2,
    control_pb2,
    explain_pb2,
    inspection_pb2,
    key_pb2,
    policy_pb2,
    riskgate_pb2,
    task_pb2,
    types_pb2,
)
from phylactery_riskgate.audit.export import export_log, verify_export

from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, tool

HASH = "sha256:" + "a" * 64
ROUNDS = 60
FILES = [
    policy_pb2.BundleFile(name="riskgate.yaml", content=json.dumps({**SETTINGS, "revision": 2}).encode()),
    policy_pb2.BundleFile(name="tools.yaml", content=json.dumps({"tools": [tool("read_file")]}).encode()),
    policy_pb2.BundleFile(name="policies/all.cedar", content=ALLOW_ALL.encode()),
]
STREAM_SECONDS = 2
"""A watch ends when its caller has enough of it: by the deadline, which is no failure."""
BAD = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS}
SOMEBODY_ELSE = {"AuditService": "zora", "PolicyService": "petra", "RiskGateService/EvaluateAccess": "pep"}
STREAMS = ("ApprovalService/WatchApprovals", "AuditService/ExportLog", "PolicyService/ReplayBundle")
ANSWERED = (
    *STREAMS,
    "PolicyService/ListCatalogTools",
    "RiskGateService/EvaluateAccess",
    "RiskGateService/EvaluateBatch",
    "RiskGateService/Explain",
    "RiskGateService/Explain of a decision",
    "TaskService/BeginTask",
    "TaskService/EndTask",
    "TaskService/Observe",
)
"""Those whose message is answered as it stands, so that what is changed in it goes deep."""


def requests(task: str = "", decision: str = "") -> dict[str, Message]:
    call = types_pb2.ToolCall(tool="read_file", tool_call_id="c1", arguments_json='{"path":"a.txt"}')
    struct = types_pb2.ToolCall(tool="write_file", tool_call_id="c2")
    struct.arguments_struct.update({"path": "a", "content": [1, None, {"b": True}]})
    place = {"thread_id": "t1", "run_id": "r1"}
    wanted = audit_pb2.EntryFilter(log="riskgate", kind="decision", subject="ana", tool="echo", **place)
    wanted.end_time.FromSeconds(1_700_000_000)
    return {
        "RiskGateService/Evaluate": riskgate_pb2.EvaluateRequest(call=struct, **place),
        "RiskGateService/EvaluateBatch": riskgate_pb2.EvaluateBatchRequest(
            requests=[riskgate_pb2.EvaluateRequest(call=one, **place) for one in (call, struct)]
        ),
        "RiskGateService/EvaluateAccess": access_pb2.EvaluateAccessRequest(
            subject={"type": "user", "id": "ana"},
            action={"name": "read_file", "properties": {"a": [1, None, {"b": True}]}},
            evaluations=[{"resource": {"type": "file", "id": name, "properties": {"path": "a"}}} for name in "ab"],
            options={"evaluations_semantic": "execute_all"},
        ),
        "RiskGateService/Explain": explain_pb2.ExplainRequest(
            call=call, approved=["self"], task_id=task, thread_id="t1"
        ),
        "RiskGateService/Explain of a decision": explain_pb2.ExplainRequest(decision_id=decision),
        "TaskService/BeginTask": task_pb2.BeginTaskRequest(
            request_id="request-2", thread_id="t1", words="Lee a.txt", continues_task_id=task
        ),
        "TaskService/Observe": task_pb2.ObserveRequest(
            task_id=task, tool_call_id="o1", tool="list_files", arguments_json='{"path":"a"}', result_json='{"a":[1]}'
        ),
        "TaskService/EndTask": task_pb2.EndTaskRequest(task_id=task),
        "PolicyService/ListCatalogTools": policy_pb2.ListCatalogToolsRequest(known_hash=HASH),
        "PolicyService/ReplayBundle": policy_pb2.ReplayBundleRequest(files=FILES, limit=5, since_time=wanted.end_time),
        "ApprovalService/WatchApprovals": approval_pb2.WatchApprovalsRequest(snapshot=True, thread_id="t1"),
        "RiskGateService/Redeem": riskgate_pb2.RedeemRequest(
            call=call, permit="a.b.c", execution_id="execution-1", **place
        ),
        "RiskGateService/ReportTold": riskgate_pb2.ReportToldRequest(execution_ids=["ex_1"]),
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
        "ControlService/Freeze": control_pb2.FreezeRequest(
            target={"scope": control_pb2.FREEZE_SCOPE_TOOL, "tenant": "nowhere", "name": "echo"}, reason="no"
        ),
        "ControlService/Unfreeze": control_pb2.UnfreezeRequest(
            target={"scope": control_pb2.FREEZE_SCOPE_TOOL, "tenant": "nowhere", "name": "echo"}, reason="no"
        ),
        "ControlService/ListUndoFailures": control_pb2.ListUndoFailuresRequest(),
        "ControlService/ClearUndoFailure": control_pb2.ClearUndoFailureRequest(tool="echo", reason="no"),
        "ControlService/ListFreezes": control_pb2.ListFreezesRequest(),
        "ControlService/ListSinks": control_pb2.ListSinksRequest(),
        "ControlService/ResumeSink": control_pb2.ResumeSinkRequest(sink="hook"),
        "ControlService/RevokeDecision": control_pb2.RevokeDecisionRequest(decision_id="de_1", reason="no"),
        "PolicyService/RollbackBundle": policy_pb2.RollbackBundleRequest(hash=HASH),
        "PolicyService/ListActivations": policy_pb2.ListActivationsRequest(limit=5),
        "KeyService/ListKeys": key_pb2.ListKeysRequest(),
        "AuditService/ExportLog": audit_pb2.ExportLogRequest(log="riskgate", include_values=True),
        "AuditService/ListLogs": audit_pb2.ListLogsRequest(),
        "AuditService/ListEntries": audit_pb2.ListEntriesRequest(
            filter=wanted, include_values=True, page_size=2, page_token="WzEsInIiLDFd"
        ),
        "AuditService/GetCheckpoint": audit_pb2.GetCheckpointRequest(log="riskgate", size=1),
        "AuditService/GetInclusionProof": audit_pb2.GetInclusionProofRequest(log="riskgate", index=1, tree_size=2),
        "AuditService/GetConsistencyProof": audit_pb2.GetConsistencyProofRequest(log="riskgate", first_size=1),
        "AuditService/GetReceipt": audit_pb2.GetReceiptRequest(
            entry=audit_pb2.EntryReference(log="riskgate", index=1), include_values=True
        ),
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


ELSEWHERE = {
    "AuditService/TailEntries": "test_riskgate_tails.py",
    "PolicyService/ActivateBundle": "test_riskgate_bundle_hostile.py",
    "PolicyService/GetBundle": "test_riskgate_bundle_hostile.py",
    "PolicyService/ValidateBundle": "test_riskgate_bundle_hostile.py",
}
"""Where messages that anybody may have made are sent to the RPCs that are not here."""


def test_no_rpc_of_the_contract_is_left_out():
    here = {named.partition(" ")[0] for named in requests()}
    modules = (approval_pb2, audit_pb2, control_pb2, inspection_pb2, key_pb2, policy_pb2, riskgate_pb2, task_pb2)
    all_of_them = {
        f"{service.name}/{method.name}"
        for module in modules
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    assert here | ELSEWHERE.keys() == all_of_them
    assert not here & ELSEWHERE.keys()


async def codes_of(channel: aio.Channel, method: str, messages: list[bytes], metadata: Any) -> list[grpc.StatusCode]:
    """Return how each message was answered; stream are read side by side, so that their deadlines pass together."""
    path = f"/phylactery.riskgate.v1.{method}"

    async def one(data: bytes) -> grpc.StatusCode:
        try:
            if method in STREAMS:
                async for _ in channel.unary_stream(path)(data, metadata=metadata, timeout=STREAM_SECONDS):
                    pass
            else:
                await channel.unary_unary(path)(data, metadata=metadata, timeout=60)
        except aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    at_once = 16 if method in STREAMS else 1
    chunks = [messages[at : at + at_once] for at in range(0, len(messages), at_once)]
    return [code for chunk in chunks for code in await asyncio.gather(*map(one, chunk))]


@pytest.mark.slow
@pytest.mark.parametrize("named", sorted(requests()))
async def test_no_message_makes_an_rpc_fail_in_a_way_a_client_cannot_understand(gate, ana, named, tmp_path):
    method = named.partition(" ")[0]
    person = gate.person(SOMEBODY_ELSE.get(method, SOMEBODY_ELSE.get(method.partition("/")[0], "ana")))
    message = requests(await ana.begin(), (await ana.evaluate()).decision_id)[named]
    messages = [message.SerializeToString(), *mutations(message, random.Random(named))]
    codes = await codes_of(gate.channel, method, messages, person.metadata)
    assert codes[0] in {grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED} or named not in ANSWERED
    assert not set(codes) & BAD
    assert (await ana.list_keys()).keys
    out = tmp_path / "log.jsonl"
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
    )
    assert verify_export(out).ok
