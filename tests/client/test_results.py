"""Results of calls: typed, complete, without secrets in their repr; and their requests."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from contextlib import aclosing
from datetime import UTC, datetime, timedelta, timezone

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.timestamp_pb2 import Timestamp
from phylactery.agent.v1 import chat_pb2, event_pb2, privacy_pb2, run_pb2
from phylactery.memory.v1 import memory_pb2, output_pb2
from phylactery.riskgate.v1 import approval_pb2, audit_pb2, key_pb2, riskgate_pb2, task_pb2, types_pb2
from phylactery_chassis.rpc.server import start
from phylactery_client import (
    MemoryClient,
    NewMessage,
    PhylacteryClient,
    RiskGateClient,
    ToolCall,
    errors,
    memory_results,
    results,
    run_results,
)
from phylactery_client.decode import decode, enum_number, enum_word
from phylactery_memory.app import build
from phylactery_memory.settings import MemorySettings

from tests.support.cases import each_case

MESSAGES = {
    run_results.PlanStep: event_pb2.PlanStep,
    run_results.ToolCallRecord: run_pb2.ToolCallRecord,
    run_results.BudgetUse: run_pb2.BudgetUse,
    run_results.RunBudget: run_pb2.RunBudget,
    run_results.Run: run_pb2.Run,
    run_results.RunPage: run_pb2.ListRunsResponse,
    run_results.RunStep: run_pb2.RunStep,
    run_results.RunStepPage: run_pb2.ListRunStepsResponse,
    run_results.RetriedRun: run_pb2.RetryRunResponse,
    run_results.ToolCallPage: run_pb2.ListToolCallsResponse,
    results.ChatMessage: chat_pb2.Message,
    results.ApprovalArgument: event_pb2.ApprovalArgument,
    results.PendingApproval: event_pb2.ApprovalRequired,
    results.Turn: chat_pb2.SendMessageResponse,
    results.Thread: chat_pb2.Thread,
    results.ChatPage: chat_pb2.ListMessagesResponse,
    results.Reason: types_pb2.Reason,
    results.BoundCall: types_pb2.BoundCall,
    results.ArgumentView: types_pb2.ArgumentView,
    results.Approval: types_pb2.Approval,
    results.ApprovalChange: approval_pb2.WatchApprovalsResponse,
    results.PolicyTitle: types_pb2.PolicyTitle,
    results.AskedBecause: types_pb2.AskedBecause,
    results.ApprovalPage: approval_pb2.ListApprovalsResponse,
    results.Evaluation: riskgate_pb2.EvaluateResponse,
    results.Redemption: riskgate_pb2.RedeemResponse,
    results.Task: task_pb2.BeginTaskResponse,
    results.Observation: task_pb2.ObserveResponse,
    results.Key: key_pb2.Key,
    results.Keys: key_pb2.ListKeysResponse,
    results.Output: output_pb2.Output,
    results.StoredOutput: output_pb2.StoreOutputResponse,
    results.OutputRange: output_pb2.ReadOutputResponse,
    results.Appended: memory_pb2.AppendMessagesResponse,
    results.StoredMessage: memory_pb2.Message,
    results.Window: memory_pb2.ListMessagesResponse,
    memory_results.AgentErasureCounts: privacy_pb2.ErasureCounts,
    memory_results.ErasedValues: audit_pb2.EraseValuesResponse,
}
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
SPAN = timedelta(seconds=61, microseconds=5)


def filled(kind):
    """A message whose every field holds something, and the same as plain values."""
    message, plain = kind(), {}
    for number, field in enumerate(kind.DESCRIPTOR.fields, start=1):
        if field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp":
            getattr(message, field.name).CopyFrom(stamp(MOMENT))
            plain[field.name] = MOMENT
        elif field.message_type is not None and field.message_type.full_name == "google.protobuf.Duration":
            getattr(message, field.name).FromTimedelta(SPAN)
            plain[field.name] = SPAN
        elif field.message_type is kind.DESCRIPTOR:  # one of its own kind: it is enough that it is empty
            getattr(message, field.name).add()
            result = next(result for result, known in MESSAGES.items() if known.DESCRIPTOR is kind.DESCRIPTOR)
            plain[field.name] = (plain_of(decode(result, kind())),)
        elif field.message_type is not None:
            part, values = filled(message_factory.GetMessageClass(field.message_type))
            target = getattr(message, field.name)
            _ = target.extend([part, part]) if field.is_repeated else target.CopyFrom(part)
            plain[field.name] = (values, values) if field.is_repeated else values
        else:
            value = {"string": f"{field.name}-{number}", "bool": True}.get(_kind_of(field), 1)
            _ = (
                getattr(message, field.name).extend([value])
                if field.is_repeated
                else setattr(message, field.name, value)
            )
            plain[field.name] = enum_word(field.enum_type, 1) if field.enum_type else value
            plain[field.name] = (plain[field.name],) if field.is_repeated else plain[field.name]
    return message, plain


def _kind_of(field) -> str:
    return {field.TYPE_STRING: "string", field.TYPE_BOOL: "bool"}.get(field.type, "number")


def stamp(moment: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


def plain_of(value):
    if dataclasses.is_dataclass(value):
        return {field.name: plain_of(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return tuple(plain_of(one) for one in value) if isinstance(value, tuple) else value


@each_case("result", MESSAGES)
def test_a_result_holds_every_field_of_its_message(result):
    message, plain = filled(MESSAGES[result])
    assert plain_of(decode(result, message)) == plain


@each_case("result", MESSAGES)
def test_an_empty_message_is_an_empty_result(result):
    assert nothing_in(decode(result, MESSAGES[result]()))


def nothing_in(value) -> bool:
    """Return True where a result holds nothing; what is always there is a result without anything in it."""
    if dataclasses.is_dataclass(value):
        return all(nothing_in(getattr(value, field.name)) for field in dataclasses.fields(value))
    return value in ("", 0, False, (), None, "UNSPECIFIED")


@each_case("result", MESSAGES)
def test_a_result_cannot_be_changed_and_hides_what_is_secret(result):
    value = decode(result, filled(MESSAGES[result])[0])
    first = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, first, None)
    for secret in ("code", "permit", "receipt", "arguments_json", "display"):
        public = result in (results.Reason, results.AskedBecause)  # their code is a word for programs
        if hasattr(value, secret) and not public:
            assert getattr(value, secret) not in repr(value)


def test_a_number_this_client_does_not_know_stays_a_number():
    assert decode(run_results.Run, run_pb2.Run(status=77)).status == "77"


def test_a_word_that_is_none_names_the_words_there_are():
    states = types_pb2.DESCRIPTOR.enum_types_by_name["ApprovalState"]
    assert enum_number(states, "") == 0
    with pytest.raises(ValueError, match="PENDING, APPROVED"):
        enum_number(states, "MAYBE")


async def test_what_is_asked_of_the_agent_arrives_as_given(wire, connect):
    client = connect(PhylacteryClient)
    await client.send_message("hola", thread_id="t1", language="es", request_id="req-1234")
    await client.list_messages("t1", page_size=7, page_token="tok")
    await client.get_run("r1")
    await client.get_thread("t1")
    assert [received.request for received in wire.calls] == [
        chat_pb2.SendMessageRequest(text="hola", thread_id="t1", language="es", request_id="req-1234"),
        chat_pb2.ListMessagesRequest(thread_id="t1", page_size=7, page_token="tok"),
        run_pb2.GetRunRequest(run_id="r1"),
        chat_pb2.GetThreadRequest(thread_id="t1"),
    ]


async def test_what_is_asked_of_riskgate_arrives_as_given(wire, connect):
    client = connect(RiskGateClient)
    wire.answer("ReportOutcome", riskgate_pb2.ReportOutcomeResponse(audit_index=41))
    call = ToolCall.of("write_file", {"path": "ñ", "n": 1}, tool_call_id="c1")
    sent = types_pb2.ToolCall(tool="write_file", tool_call_id="c1", arguments_json='{"path": "\\u00f1", "n": 1}')
    at = {"thread_id": "t1", "run_id": "r1"}
    await client.evaluate(call, **at, plan_step="s1", approval_id="ap_1")
    await client.redeem("permit", call, execution_id="exec-1234", **at)
    index = await client.report_outcome("exec-1234", outcome="FAILED", result_hash="h", result_size=3, error_code="E")
    await client.list_approvals(state="PENDING", thread_id="t1", page_size=5, page_token="tok")
    await client.get_approval("ap_1", full=True)
    await client.approve("ap_1", args_hash="h", code="123", thread_id="t1")
    await client.reject("ap_1", reason="no", thread_id="t1")
    await client.cancel("ap_1", reason="no", thread_id="t1")
    assert index == 41
    assert [received.request for received in wire.calls] == [
        riskgate_pb2.EvaluateRequest(call=sent, **at, plan_step="s1", approval_id="ap_1"),
        riskgate_pb2.RedeemRequest(permit="permit", call=sent, execution_id="exec-1234", **at),
        riskgate_pb2.ReportOutcomeRequest(
            execution_id="exec-1234",
            outcome=riskgate_pb2.OUTCOME_FAILED,
            result_hash="h",
            result_size=3,
            error_code="E",
        ),
        approval_pb2.ListApprovalsRequest(
            state=types_pb2.APPROVAL_STATE_PENDING, thread_id="t1", page_size=5, page_token="tok"
        ),
        approval_pb2.GetApprovalRequest(approval_id="ap_1", full=True),
        approval_pb2.ApproveRequest(approval_id="ap_1", args_hash="h", code="123", thread_id="t1"),
        approval_pb2.RejectRequest(approval_id="ap_1", reason="no", thread_id="t1"),
        approval_pb2.CancelRequest(approval_id="ap_1", reason="no", thread_id="t1"),
    ]


async def test_changes_of_approvals_come_as_they_happen_without_a_deadline_and_hang_up_when_left(wire, connect):
    client = connect(RiskGateClient)
    never = asyncio.Event()
    first = approval_pb2.WatchApprovalsResponse(
        approval=types_pb2.Approval(id="ap_1", state=types_pb2.APPROVAL_STATE_APPROVED), resume_token="tok"
    )

    async def later():
        await never.wait()

    wire.answer("WatchApprovals", [approval_pb2.WatchApprovalsResponse(snapshot_end=True), first, later])
    changes = client.watch_approvals(state="APPROVED", thread_id="t1", approval_id="ap_1", resume_token="t0")
    end, change = await anext(changes), await anext(changes)
    await changes.aclose()
    await asyncio.wait_for(wire.cancelled.wait(), 60)
    assert (end.snapshot_end, end.approval) == (True, None)
    assert (change.approval.id, change.approval.state, change.resume_token) == ("ap_1", "APPROVED", "tok")
    (received,) = wire.calls
    assert received.seconds is None
    assert received.request == approval_pb2.WatchApprovalsRequest(
        state=types_pb2.APPROVAL_STATE_APPROVED, thread_id="t1", approval_id="ap_1", resume_token="t0"
    )


def test_arguments_json_has_no_word_for_are_refused_before_they_are_sent():
    for bad in (float("nan"), object()):
        with pytest.raises((ValueError, TypeError)):
            ToolCall.of("t", {"x": bad}, tool_call_id="c1")


async def test_events_come_as_they_happen_with_their_kind_and_detail(wire, connect):
    second = asyncio.Event()

    async def later():
        await second.wait()
        return _event(2, run_finished=event_pb2.RunFinished(reason="ANSWERED"))

    wire.answer("StreamMessage", [_event(1, message=event_pb2.AssistantMessage(text="hola")), later, _event(3)])
    seen = []
    async for event in connect(PhylacteryClient).stream_message("hola", thread_id="t1"):
        seen.append(event)
        second.set()  # had the client waited for the whole stream, the second event would never come
    assert [(event.sequence, event.kind) for event in seen] == [(1, "message"), (2, "run_finished"), (3, "")]
    assert (seen[0].detail.text, seen[1].detail.reason, seen[2].detail) == ("hola", "ANSWERED", None)
    assert (seen[0].thread_id, seen[0].run_id, seen[0].create_time) == ("t1", "r1", MOMENT)
    assert seen[0].raw.message.text == "hola"


def _event(sequence: int, **kind) -> chat_pb2.StreamMessageResponse:
    event = event_pb2.Event(thread_id="t1", run_id="r1", sequence=sequence, create_time=stamp(MOMENT), **kind)
    return chat_pb2.StreamMessageResponse(event=event)


async def test_a_stream_that_breaks_raises_after_the_events_it_had(wire, connect, refusal):
    wire.answer("StreamMessage", [_event(1), refusal(grpc.StatusCode.UNAVAILABLE, "MEMORY_UNAVAILABLE")])
    seen = []

    async def follow():
        async for event in connect(PhylacteryClient).stream_message("hola"):
            seen.append(event.sequence)  # noqa: PERF401 - what came before the break is what is looked at

    with pytest.raises(errors.UnavailableError) as caught:
        await follow()
    assert (seen, caught.value.reason, len(wire.calls)) == ([1], "MEMORY_UNAVAILABLE", 1)


async def test_leaving_a_stream_early_hangs_up(wire, connect):
    wire.answer("StreamMessage", [_event(1), asyncio.Event().wait])
    async with aclosing(connect(PhylacteryClient).stream_message("hola")) as events:
        assert (await anext(events)).sequence == 1
    async with asyncio.timeout(60):
        await wire.cancelled.wait()


async def test_a_message_to_add_needs_a_known_role_and_a_zone(wire, connect):
    with pytest.raises(ValueError, match="USER, ASSISTANT, TOOL"):
        await connect(MemoryClient).append_messages("t1", [NewMessage("m1", "SYSTEM", "hola")])
    naive = MOMENT.replace(tzinfo=None)
    with pytest.raises(ValueError, match="time zone"):
        await connect(MemoryClient).append_messages("t1", [NewMessage("m1", "USER", "hola", create_time=naive)])
    assert wire.calls == []


@pytest.fixture
async def real(tmp_path):
    """A client of a real memory service."""
    settings = MemorySettings(data_dir=tmp_path, port=0, drain_seconds=0)
    server = await start(await build(settings), settings)
    async with MemoryClient(f"127.0.0.1:{server.port}", subject="ana", tenant="acme") as client:
        yield client
    await server.stop()


async def test_an_output_goes_to_a_real_memory_and_comes_back(real):
    text = "".join(random.Random(3).choices("aé🜛\r\n\0", k=300_000))
    at = {"thread_id": "t1", "run_id": "r1", "tool_name": "read_file"}
    stored = await real.store_output(text, tool_call_id="c1", **at)
    assert await real.store_output(text, tool_call_id="c1", **at) == stored
    assert (stored.output.size_chars, stored.output.evicted, stored.output.rehydration_allowed) == (
        300_000,
        True,
        False,
    )
    assert stored.placeholder == f"[EVICTED size=300000] See {stored.output.pointer}"
    pointer = stored.output.pointer
    assert await real.get_output(pointer) == stored.output
    assert (await real.read_output(pointer, offset=10, limit=5)).text == text[10:15]
    assert "".join([part async for part in real.iterate_output(pointer)]) == text
    assert "".join([part async for part in real.iterate_output(pointer, offset=299_990, limit=3)]) == text[-10:]
    assert [part async for part in real.iterate_output(pointer, offset=300_000)] == []
    small = await real.store_output("corta", tool_call_id="c2", **at)
    assert (small.output.pointer, small.placeholder, small.preview_head) == ("", "", "corta")
    with pytest.raises(errors.OutOfRangeError) as past:
        await real.read_output(pointer, offset=300_001)
    assert (past.value.reason, past.value.metadata) == ("RANGE_PAST_END", {"total_chars": "300000"})
    with pytest.raises(errors.InvalidRequestError) as invalid:
        await real.read_output(pointer, limit=10_001)
    assert [violation.field for violation in invalid.value.violations] == ["limit"]
    with pytest.raises(errors.AlreadyExistsError):
        await real.store_output(text + "!", tool_call_id="c1", **at)


async def test_messages_go_to_a_real_memory_and_come_back(real):
    local = MOMENT.astimezone(timezone(timedelta(hours=-5)))
    said = [NewMessage("m1", "USER", "hola", "r1", local), NewMessage("m2", "ASSISTANT", "¿sí?")]
    assert await real.append_messages("t1", said) == results.Appended(last_sequence=2, appended=2)
    assert (await real.append_messages("t1", said)).appended == 0
    page = await real.list_messages("t1", page_size=1)
    rest = await real.list_messages("t1", page_token=page.next_page_token, max_characters=10)
    assert [(m.message_id, m.role, m.content, m.sequence) for m in page.messages + rest.messages] == [
        ("m2", "ASSISTANT", "¿sí?", 2),
        ("m1", "USER", "hola", 1),
    ]
    assert (rest.messages[0].create_time, rest.next_page_token) == (MOMENT, "")
