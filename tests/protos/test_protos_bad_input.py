"""Bad input to every RPC of the three real services: a clear answer, never INTERNAL, UNKNOWN, DATA_LOSS or a hang.

The RPCs come from the contracts, so one that is added is swept too, and needs its valid request here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message
from grpc import aio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phylactery.agent.v1 import chat_pb2, graph_pb2, run_pb2, tool_pb2
from phylactery.agent.v1 import privacy_pb2 as agent_privacy_pb2
from phylactery.memory.v1 import memory_pb2, output_pb2, privacy_pb2, profile_pb2, user_memory_pb2
from phylactery.riskgate.v1 import (
    access_pb2,
    approval_pb2,
    audit_pb2,
    explain_pb2,
    inspection_pb2,
    key_pb2,
    policy_pb2,
    riskgate_pb2,
    task_pb2,
    types_pb2,
)

from tests.support.agent_system import Person, System, approval_of, open_system
from tests.support.rpcs import ENDLESS, MARK, Answer, Rpc, call, call_all, every_rpc, spoilt, truncated

Code = grpc.StatusCode
RPCS = {rpc.name: rpc for rpc in every_rpc()}
HASH = "sha256:" + "a" * 64
CLEAR = {
    Code.OK,
    Code.INVALID_ARGUMENT,
    Code.NOT_FOUND,
    Code.ALREADY_EXISTS,
    Code.FAILED_PRECONDITION,
    Code.ABORTED,
    Code.OUT_OF_RANGE,
    Code.PERMISSION_DENIED,
    Code.RESOURCE_EXHAUSTED,
}
"""Codes that tell a caller what to do about what it sent."""

OVER_LONG = ": far over-long"
JUDGED = ("call.arguments_json", "result_text")
"""Arguments over their bound are a recorded decision, BLOCKED, not a fault of the envelope; a result may be long."""
TAKEN_WHOLE = {"InspectionService/Inspect", "InspectionService/InspectBatch", "RiskGateService/EvaluateBatch"}
"""Texts to inspect may be longer than the sweep's; a batch tells what is wrong with a request in that one's result."""
NEVER_TAKEN = ("a cut sequence", "a surrogate", "no UTF-8")

each_rpc = pytest.mark.parametrize("rpc", RPCS.values(), ids=RPCS.keys())


def valid_requests() -> dict[str, list[Message]]:
    """Answers what each RPC takes: one message, or several for a stream. The ids in them name nothing."""
    call_ = types_pb2.ToolCall(tool="echo", tool_call_id="c1", arguments_json='{"text":"hola"}', raw_args_hash=HASH)
    by_struct = types_pb2.ToolCall(tool="echo", tool_call_id="c2", tool_schema_hash=HASH)
    by_struct.arguments_struct.update({"text": "hola"})
    told = memory_pb2.Message(message_id="m1", role=memory_pb2.ROLE_USER, content="hola", run_id="r1")
    told.create_time.FromSeconds(1_700_000_000)
    found = {
        "thread_id": "t9",
        "kind": user_memory_pb2.MEMORY_KIND_FACT,
        "layer": user_memory_pb2.MEMORY_LAYER_SEMANTIC,
    }
    spec = output_pb2.OutputSpec(thread_id="t1", run_id="r1", tool_call_id="c1", tool_name="echo")
    said = {"request_id": "request-1", "thread_id": "t1", "text": "hola", "language": "es", "on_busy": 1}
    said["graph"] = "secured"
    asked = {"thread_id": "t1", "run_id": "r1"}
    inspected = inspection_pb2.InspectOptions(
        kinds=[inspection_pb2.FINDING_KIND_ES_DNI],
        min_confidence=inspection_pb2.FINDING_CONFIDENCE_LOW,
        want_redacted=True,
    )
    said_of_it = by_struct.arguments_struct
    files = [policy_pb2.BundleFile(name="riskgate.yaml", content=b"revision: 2")]
    wanted = audit_pb2.EntryFilter(
        log="riskgate", kind="decision", subject="ana", tool="echo", decision=types_pb2.DECISION_ALLOW, **asked
    )
    wanted.start_time.FromSeconds(1_700_000_000)
    return {
        "ChatService/SendMessage": [chat_pb2.SendMessageRequest(**said)],
        "ChatService/StreamMessage": [chat_pb2.StreamMessageRequest(**said | {"request_id": "request-2"})],
        "ChatService/GetThread": [chat_pb2.GetThreadRequest(thread_id="t9")],
        "ChatService/WatchThread": [chat_pb2.WatchThreadRequest(thread_id="t9", after_sequence=1)],
        "ChatService/ListThreads": [chat_pb2.ListThreadsRequest(page_size=5, page_token="WzFd")],
        "ChatService/DeleteThread": [chat_pb2.DeleteThreadRequest(thread_id="t9")],
        "ChatService/ListMessages": [chat_pb2.ListMessagesRequest(thread_id="t9", page_size=5, page_token="WzFd")],
        "ToolService/ListTools": [tool_pb2.ListToolsRequest(enabled_only=True, source="builtin")],
        "GraphService/ListGraphs": [graph_pb2.ListGraphsRequest()],
        "GraphService/GetGraph": [graph_pb2.GetGraphRequest(name="secured")],
        "RunService/GetRun": [run_pb2.GetRunRequest(run_id="ru_none")],
        "RunService/ListRuns": [run_pb2.ListRunsRequest(thread_id="t9", status=4, page_size=5, page_token="WzFd")],
        "RunService/CancelRun": [run_pb2.CancelRunRequest(run_id="ru_none")],
        "RunService/RetryRun": [
            run_pb2.RetryRunRequest(run_id="ru_none", request_id="request-9", acknowledge_effects=True)
        ],
        "RunService/ListRunSteps": [run_pb2.ListRunStepsRequest(run_id="ru_none", page_size=5, page_token="WzEsMF0")],
        "RunService/ListToolCalls": [run_pb2.ListToolCallsRequest(state="in_doubt", page_size=5, page_token="WzFd")],
        "RunService/ResolveInDoubt": [run_pb2.ResolveInDoubtRequest(run_id="ru_none", tool_call_id="c1", resolution=1)],
        "MemoryService/AppendMessages": [memory_pb2.AppendMessagesRequest(thread_id="t1", messages=[told])],
        "MemoryService/ListMessages": [
            memory_pb2.ListMessagesRequest(thread_id="t1", page_size=5, page_token="WzFd", max_characters=9)
        ],
        "MemoryService/DeleteThread": [memory_pb2.DeleteThreadRequest(thread_id="t9", request_id="request-1")],
        "MemoryService/WriteMemory": [
            user_memory_pb2.WriteMemoryRequest(
                text="vivo en Lima",
                source=user_memory_pb2.MEMORY_SOURCE_USER,
                kind=user_memory_pb2.MEMORY_KIND_FACT,
                lineage=[
                    user_memory_pb2.Lineage(message=user_memory_pb2.MessageRef(thread_id="t9", message_id="m9")),
                    user_memory_pb2.Lineage(pointer="out_none"),
                ],
                keep=True,
                importance=0.5,
                thread_id="t9",
                sequence=1,
                about="user",
                attribute="city",
                valid_at=told.create_time,
                supersedes="mem_none",
                if_content_hash=HASH,
            )
        ],
        "MemoryService/SearchMemories": [
            user_memory_pb2.SearchMemoriesRequest(query="Lima", limit=5, as_of=told.create_time, **found)
        ],
        "MemoryService/ListMemories": [
            user_memory_pb2.ListMemoriesRequest(
                page_size=5, page_token="WzFd", as_of=told.create_time, about="user", attribute="city", **found
            )
        ],
        "MemoryService/UpdateMemory": [
            user_memory_pb2.UpdateMemoryRequest(
                memory_id="mem_none",
                etag="r1",
                update_mask={"paths": ["text", "kind", "importance", "invalid_at"]},
                text="vivo en Cusco",
                kind=user_memory_pb2.MEMORY_KIND_FACT,
                importance=0.5,
                invalid_at=told.create_time,
            )
        ],
        "agent.PrivacyService/EraseUser": [agent_privacy_pb2.EraseUserRequest(subject="ana", request_id="request-1")],
        "agent.PrivacyService/GetErasure": [agent_privacy_pb2.GetErasureRequest(erasure_id="era_none")],
        "memory.PrivacyService/EraseUser": [privacy_pb2.EraseUserRequest(subject="ana", request_id="request-1")],
        "memory.PrivacyService/GetErasure": [privacy_pb2.GetErasureRequest(erasure_id="era_none")],
        "memory.PrivacyService/ExportUser": [privacy_pb2.ExportUserRequest()],
        "MemoryService/GetProfile": [profile_pb2.GetProfileRequest(max_superseded=2)],
        "MemoryService/SetProfileFields": [
            profile_pb2.SetProfileFieldsRequest(
                values=[
                    profile_pb2.ProfileValue(name="city", text_value="Lima"),
                    profile_pb2.ProfileValue(name="age", number_value=41.0),
                    profile_pb2.ProfileValue(name="notify", bool_value=True),
                ],
                remove=["old"],
                source=user_memory_pb2.MEMORY_SOURCE_USER,
                lineage=[user_memory_pb2.Lineage(pointer="out_none")],
                etag="r1",
            )
        ],
        "MemoryService/BuildContext": [
            memory_pb2.BuildContextRequest(
                thread_id="t1",
                pathway=memory_pb2.PATHWAY_TOOL_INTENT,
                query="Lima",
                max_messages=5,
                max_characters=9,
                max_memories=2,
            )
        ],
        "MemoryService/ForgetMemory": [user_memory_pb2.ForgetMemoryRequest(memory_id="mem_none", etag="r1")],
        "OutputService/StoreOutput": [
            output_pb2.StoreOutputRequest(spec=spec),
            output_pb2.StoreOutputRequest(chunk=b"hola"),
        ],
        "OutputService/GetOutput": [output_pb2.GetOutputRequest(pointer="out_none")],
        "OutputService/ReadOutput": [output_pb2.ReadOutputRequest(pointer="out_none", offset=1, limit=1)],
        "OutputService/SearchOutput": [output_pb2.SearchOutputRequest(pointer="out_none", pattern="x")],
        "OutputService/RehydrateOutput": [output_pb2.RehydrateOutputRequest(pointer="out_none")],
        "OutputService/ListOutputs": [output_pb2.ListOutputsRequest(thread_id="t1", run_id="r1", page_size=2)],
        "OutputService/DeleteOutput": [output_pb2.DeleteOutputRequest(pointer="out_none")],
        "RiskGateService/Evaluate": [
            riskgate_pb2.EvaluateRequest(call=call_, plan_step="s1", approval_id="ap_none", **asked)
        ],
        "RiskGateService/EvaluateBatch": [
            riskgate_pb2.EvaluateBatchRequest(requests=[riskgate_pb2.EvaluateRequest(call=call_, **asked)])
        ],
        "RiskGateService/Explain": [
            explain_pb2.ExplainRequest(
                call=call_, thread_id="t1", plan_step="s1", approved=["self"], subject="somebody-else"
            )
        ],
        "RiskGateService/Redeem": [
            riskgate_pb2.RedeemRequest(permit="a.b.c", call=by_struct, execution_id="execution-1", **asked)
        ],
        "RiskGateService/ReportOutcome": [
            riskgate_pb2.ReportOutcomeRequest(
                execution_id="execution-1",
                outcome=riskgate_pb2.OUTCOME_FAILED,
                result_hash=HASH,
                result_size=4,
                error_code="TIMED_OUT",
            )
        ],
        "TaskService/BeginTask": [
            task_pb2.BeginTaskRequest(request_id="request-1", thread_id="t1", words="hola", continues_task_id="ta_none")
        ],
        "TaskService/Observe": [
            task_pb2.ObserveRequest(
                task_id="ta_none", tool_call_id="c1", tool="echo", arguments_json='{"text":"hola"}', result_text="hola"
            )
        ],
        "TaskService/EndTask": [task_pb2.EndTaskRequest(task_id="ta_none")],
        "ApprovalService/GetApproval": [approval_pb2.GetApprovalRequest(approval_id="ap_none")],
        "ApprovalService/ListApprovals": [
            approval_pb2.ListApprovalsRequest(
                state=types_pb2.APPROVAL_STATE_PENDING, thread_id="t1", page_size=5, page_token="WzFd"
            )
        ],
        "ApprovalService/Approve": [
            approval_pb2.ApproveRequest(approval_id="ap_none", args_hash=HASH, code="ABC123", thread_id="t1")
        ],
        "ApprovalService/Reject": [approval_pb2.RejectRequest(approval_id="ap_none", reason="no", thread_id="t1")],
        "ApprovalService/Cancel": [approval_pb2.CancelRequest(approval_id="ap_none", reason="no", thread_id="t1")],
        "ApprovalService/WatchApprovals": [
            approval_pb2.WatchApprovalsRequest(
                state=types_pb2.APPROVAL_STATE_PENDING, thread_id="t1", approval_id="ap_none", snapshot=True
            )
        ],
        "PolicyService/GetBundle": [policy_pb2.GetBundleRequest(with_files=True, hash=HASH)],
        "PolicyService/ListCatalogTools": [policy_pb2.ListCatalogToolsRequest(known_hash=HASH)],
        "PolicyService/ValidateBundle": [policy_pb2.ValidateBundleRequest(files=files)],
        "PolicyService/ActivateBundle": [policy_pb2.ActivateBundleRequest(files=files, shadow=True)],
        "PolicyService/ReplayBundle": [
            policy_pb2.ReplayBundleRequest(files=files, since_time=told.create_time, limit=5)
        ],
        "RiskGateService/EvaluateAccess": [
            access_pb2.EvaluateAccessRequest(
                subject=access_pb2.AccessSubject(type="user", id="ana", properties=said_of_it),
                action=access_pb2.AccessAction(name="echo", properties=said_of_it),
                resource=access_pb2.AccessResource(type="todo", id="1", properties=said_of_it),
                context=said_of_it,
                evaluations=[access_pb2.AccessEvaluation()],
                options=access_pb2.AccessOptions(evaluations_semantic="execute_all"),
            )
        ],
        "InspectionService/Inspect": [inspection_pb2.InspectRequest(text="hola 12345678Z", options=inspected)],
        "InspectionService/InspectBatch": [inspection_pb2.InspectBatchRequest(texts=["hola", "x"], options=inspected)],
        "KeyService/ListKeys": [key_pb2.ListKeysRequest(etag="none")],
        "AuditService/ListLogs": [audit_pb2.ListLogsRequest()],
        "AuditService/ListEntries": [
            audit_pb2.ListEntriesRequest(filter=wanted, include_values=True, page_size=5, page_token="WzEsInIiLDFd")
        ],
        "AuditService/TailEntries": [
            audit_pb2.TailEntriesRequest(
                filter=audit_pb2.EntryFilter(kind="decision"),
                positions=[audit_pb2.LogPosition(log="riskgate", next_index=1)],
            )
        ],
        "AuditService/GetCheckpoint": [audit_pb2.GetCheckpointRequest(log="riskgate", size=1)],
        "AuditService/GetInclusionProof": [audit_pb2.GetInclusionProofRequest(log="riskgate", index=1, tree_size=2)],
        "AuditService/GetConsistencyProof": [
            audit_pb2.GetConsistencyProofRequest(log="riskgate", first_size=1, second_size=2)
        ],
        "AuditService/EraseValues": [
            audit_pb2.EraseValuesRequest(
                filter=wanted, reason="they asked", entries=[audit_pb2.EntryReference(log="riskgate", index=1)]
            )
        ],
    }


UNKNOWN = {
    "ChatService/GetThread": "THREAD_NOT_FOUND",
    "ChatService/ListMessages": "THREAD_NOT_FOUND",
    "ChatService/WatchThread": "THREAD_NOT_FOUND",
    "RunService/GetRun": "RUN_NOT_FOUND",
    "RunService/CancelRun": "RUN_NOT_FOUND",
    "RunService/ResolveInDoubt": "RUN_NOT_FOUND",
    "MemoryService/UpdateMemory": "MEMORY_NOT_FOUND",
    "agent.PrivacyService/GetErasure": "ERASURE_NOT_FOUND",
    "memory.PrivacyService/GetErasure": "ERASURE_NOT_FOUND",
    "MemoryService/ForgetMemory": "MEMORY_NOT_FOUND",
    "OutputService/GetOutput": "OUTPUT_NOT_FOUND",
    "OutputService/ReadOutput": "OUTPUT_NOT_FOUND",
    "OutputService/SearchOutput": "OUTPUT_NOT_FOUND",
    "OutputService/RehydrateOutput": "OUTPUT_NOT_FOUND",
    "RiskGateService/Evaluate": "APPROVAL_NOT_FOUND",
    "RiskGateService/ReportOutcome": "EXECUTION_NOT_FOUND",
    "TaskService/BeginTask": "TASK_NOT_FOUND",
    "TaskService/Observe": "TASK_NOT_FOUND",
    "TaskService/EndTask": "TASK_NOT_FOUND",
    "ApprovalService/GetApproval": "APPROVAL_NOT_FOUND",
    "ApprovalService/Approve": "APPROVAL_NOT_FOUND",
    "ApprovalService/Reject": "APPROVAL_NOT_FOUND",
    "ApprovalService/Cancel": "APPROVAL_NOT_FOUND",
}


@dataclass
class Swept:
    """The three services, and ana who sends what she should not."""

    system: System
    ana: Person

    def channel(self, rpc: Rpc) -> aio.Channel:
        return {
            "agent": self.system.agent_channel,
            "riskgate": self.system.riskgate_channel,
            "memory": self.system.memory_channel,
        }[rpc.service]

    async def ask(self, rpc: Rpc, *bodies: bytes, refused: bool = False) -> Answer:
        return await call(self.channel(rpc), rpc, bodies, self.ana.metadata, refused=refused)

    async def check_all(self, rpc: Rpc, requests: dict[str, Sequence[bytes]]) -> set[grpc.StatusCode]:
        """Sends all requests, checks every answer, and answers which codes there were."""
        seen = set()
        async for name, answer in call_all(self.channel(rpc), rpc, requests, self.ana.metadata):
            invalid = name.endswith(NEVER_TAKEN)
            over_long = (
                name.endswith(OVER_LONG) and not any(one in name for one in JUDGED) and rpc.name not in TAKEN_WHOLE
            )
            if (invalid or over_long) and rpc.name in ENDLESS and answer.code is Code.OK:
                # it said nothing while it was listened to: a refusal has the time of any other call
                answer = await self.ask(rpc, *requests[name], refused=True)  # noqa: PLW2901
            check(answer, rpc, name)
            if invalid:
                assert answer.code is Code.INVALID_ARGUMENT, (rpc.name, name, answer)
            if over_long:
                field = name.removesuffix(OVER_LONG).rsplit(" ", 1)[-1].rsplit(".", 1)[-1]
                assert [one.rsplit(".", 1)[-1] for one, _ in answer.violations] == [field], (rpc.name, name, answer)
            seen.add(answer.code)
        return seen


def check(answer: Answer, rpc: Rpc, what: str) -> None:
    """Fails unless the answer is one a caller can act on and repeats nothing of what it was sent."""
    told = f"{rpc.name} with {what}: {answer}"
    assert answer.code in CLEAR, told
    if answer.code is Code.OK or (answer.code is Code.RESOURCE_EXHAUSTED and not answer.reason):
        return  # a message over the size limit is refused by grpc itself, before any detail could be added
    assert answer.reason.startswith("ERROR_REASON_"), told
    assert answer.domain == f"{rpc.service}.phylactery", told
    assert answer.message, told
    assert len(answer.message) <= 1_000, told
    assert MARK not in answer.message, told
    assert len(answer.violations) <= 20, told
    assert all(field and description for field, description in answer.violations), told
    assert all(len(part) <= 100 and MARK not in part for violation in answer.violations for part in violation), told


def in_place(valid: Sequence[Message], place: int, body: bytes) -> list[bytes]:
    """Answers a whole request with one of its messages replaced."""
    return [body if index == place else message.SerializeToString() for index, message in enumerate(valid)]


@pytest.fixture
async def swept(tmp_path: Path) -> AsyncIterator[Swept]:
    async with open_system(tmp_path, asks=True) as system:
        yield Swept(system, system.person("ana"))


def test_every_rpc_of_the_contracts_has_a_valid_request_here():
    assert RPCS.keys() == valid_requests().keys()
    assert {rpc.service for rpc in RPCS.values()} == {"agent", "memory", "riskgate"}


@each_rpc
async def test_a_request_with_any_field_spoilt_is_answered_clearly_and_not_logged(
    swept: Swept, rpc: Rpc, capfd: pytest.CaptureFixture[str]
):
    valid = valid_requests()[rpc.name]
    requests = {
        f"message {place}: {what}": in_place(valid, place, body)
        for place, message in enumerate(valid)
        for what, body in spoilt(message)
    }
    seen = await swept.check_all(rpc, requests)
    assert Code.INVALID_ARGUMENT in seen or not rpc.request.DESCRIPTOR.fields
    assert MARK not in "".join(capfd.readouterr())


@each_rpc
async def test_a_request_cut_short_anywhere_is_answered_clearly(swept: Swept, rpc: Rpc):
    valid = valid_requests()[rpc.name]
    requests = {
        f"message {place}: {what}": in_place(valid, place, body)
        for place, message in enumerate(valid)
        for what, body in truncated(message)
    }
    seen = await swept.check_all(rpc, requests)
    assert Code.INVALID_ARGUMENT in seen or not rpc.request.DESCRIPTOR.fields


@each_rpc
async def test_a_message_over_the_limit_is_refused_by_size_and_the_service_lives(swept: Swept, rpc: Rpc):
    answer = await swept.ask(rpc, b"\x0a" + b"\xff\xff\xff\x04" + b"x" * 10_000_000, refused=True)
    assert answer.code is Code.RESOURCE_EXHAUSTED
    valid = [message.SerializeToString() for message in valid_requests()[rpc.name]]
    check(await swept.ask(rpc, *valid), rpc, "a valid request after it")


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
async def test_random_bytes_and_broken_bits_are_answered_clearly_by_every_rpc(swept: Swept, data: st.DataObject):
    noise = data.draw(st.binary(max_size=120))
    flips = data.draw(st.lists(st.tuples(st.integers(0, 399), st.integers(1, 255)), min_size=1, max_size=4))
    for rpc in RPCS.values():
        valid = [message.SerializeToString() for message in valid_requests()[rpc.name]]
        broken = bytearray(valid[0])
        for place, bits in flips:
            if broken:
                broken[place % len(broken)] ^= bits
        for what, body in (("noise", noise), ("noise after it", valid[0] + noise), ("flips", bytes(broken))):
            check(await swept.ask(rpc, body, *valid[1:]), rpc, f"{what} {body!r}")


@each_rpc
async def test_metadata_nobody_should_send_is_answered_clearly(swept: Swept, rpc: Rpc):
    valid = [message.SerializeToString() for message in valid_requests()[rpc.name]]
    refused = Code.UNAUTHENTICATED
    for extra, expected in (
        ((("x-phylactery-subject", "x" * 129),), {refused}),
        ((("x-phylactery-subject", "ana ben"),), {refused}),
        ((("x-phylactery-subject", "ana"), ("x-phylactery-tenant", "*")), {refused}),
        ((("x-phylactery-tenant", "acme"),), {refused}),
        ((*swept.ana.metadata, ("traceparent", "00-junk-" + "f" * 300), ("tracestate", "=,=;;")), CLEAR),
        ((*swept.ana.metadata, ("authorization", "Bearer " + "x" * 4_000), ("junk-bin", b"\x00\xff")), CLEAR),
    ):
        answer = await call(swept.channel(rpc), rpc, valid, extra, refused=expected == {refused})
        assert answer.code in expected, (rpc.name, extra, answer)


@pytest.mark.parametrize(("name", "reason"), UNKNOWN.items())
async def test_an_id_that_names_nothing_is_not_found(swept: Swept, name: str, reason: str):
    answer = await swept.ask(RPCS[name], *(message.SerializeToString() for message in valid_requests()[name]))
    assert (answer.code, answer.reason) == (Code.NOT_FOUND, f"ERROR_REASON_{reason}"), answer


@pytest.mark.parametrize("name", [f"ApprovalService/{name}" for name in ("GetApproval", "Approve", "Reject", "Cancel")])
async def test_somebody_elses_id_is_not_found_as_one_that_never_was(swept: Swept, name: str):
    approval_id, _ = approval_of(await swept.ana.say("escribe «hola» en notas.txt"))
    request = valid_requests()[name][0]
    request.approval_id = approval_id
    ben = swept.system.person("ben")
    rpc = RPCS[name]
    theirs = await call(swept.channel(rpc), rpc, [request.SerializeToString()], ben.metadata)
    request.approval_id = "ap_none"
    never = await call(swept.channel(rpc), rpc, [request.SerializeToString()], ben.metadata)
    assert theirs.code is Code.NOT_FOUND
    assert (theirs.code, theirs.reason) == (never.code, never.reason)


async def test_a_method_that_is_not_there_is_unimplemented(swept: Swept):
    rpc = RPCS["ChatService/SendMessage"]
    nowhere = Rpc(rpc.service, "/phylactery.agent.v1.ChatService/DropEverything", rpc.descriptor)
    assert (await swept.ask(nowhere, b"")).code is Code.UNIMPLEMENTED


async def test_after_the_whole_sweep_of_a_turn_the_next_turn_works(swept: Swept):
    rpc = RPCS["ChatService/SendMessage"]
    valid = valid_requests()[rpc.name]
    await swept.check_all(rpc, {what: [body] for what, body in spoilt(valid[0])})
    answer = await swept.ana.say("eco: sigo aquí", "t-after")
    assert "sigo aquí" in answer.reply.text
