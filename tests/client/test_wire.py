"""The requests of every call, its retries, and the exceptions of failed ones."""

from __future__ import annotations

import asyncio
import hashlib
import math
import subprocess
import sys

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import status_pb2
from opentelemetry.sdk.trace import TracerProvider
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery.memory.v1 import output_pb2
from phylactery.riskgate.v1 import task_pb2
from phylactery_client import (
    AccessQuestion,
    AuditClient,
    FieldViolation,
    FormClient,
    MemoryClient,
    NewMessage,
    PhylacteryClient,
    PhylacteryError,
    RiskGateClient,
    ToolCall,
    errors,
)
from phylactery_client.channel import MAX_ATTEMPTS

HASH = "sha256:" + "0" * 64
CALL = ToolCall("write_file", "c1", '{"path":"a"}')
AT = {"thread_id": "t1", "run_id": "r1"}
FROM = {**AT, "tool_call_id": "c1", "tool_name": "read_file"}


async def drain(stream):
    return [item async for item in stream]


EVERY_CALL = {
    "SendMessage": (PhylacteryClient, lambda c, **o: c.send_message("hola", **o)),
    "StreamMessage": (PhylacteryClient, lambda c, **o: drain(c.stream_message("hola", **o))),
    "AnswerApproval": (PhylacteryClient, lambda c, **o: c.answer_call("ap_1", HASH, approve=True, **o)),
    "ReadApproval": (PhylacteryClient, lambda c, **o: c.read_approval("ap_1", HASH, **o)),
    "GetThread": (PhylacteryClient, lambda c, **o: c.get_thread("t1", **o)),
    "WatchThread": (PhylacteryClient, lambda c, **o: drain(c.watch_thread("t1", reconnect=False, **o))),
    "FetchFile": (PhylacteryClient, lambda c, **o: c.fetch_file("t1", "r1.f1", **o)),
    "ListThreads": (PhylacteryClient, lambda c, **o: c.list_threads(**o)),
    "DeleteThread": (PhylacteryClient, lambda c, **o: c.delete_thread("t1", **o)),
    "ListMessages": (PhylacteryClient, lambda c, **o: c.list_messages("t1", **o)),
    "GetRun": (PhylacteryClient, lambda c, **o: c.get_run("r1", **o)),
    "Evaluate": (RiskGateClient, lambda c, **o: c.evaluate(CALL, **AT, **o)),
    "Redeem": (RiskGateClient, lambda c, **o: c.redeem("p", CALL, execution_id="e1234567", **AT, **o)),
    "EvaluateAccess": (RiskGateClient, lambda c, **o: c.evaluate_access(AccessQuestion("ana", "read", "f", "1"), **o)),
    "ReportOutcome": (RiskGateClient, lambda c, **o: c.report_outcome("e1234567", outcome="SUCCEEDED", **o)),
    "GetApproval": (RiskGateClient, lambda c, **o: c.get_approval("ap_1", **o)),
    "ListApprovals": (RiskGateClient, lambda c, **o: c.list_approvals(**o)),
    "Approve": (RiskGateClient, lambda c, **o: c.approve("ap_1", args_hash="sha256:0", **o)),
    "Reject": (RiskGateClient, lambda c, **o: c.reject("ap_1", **o)),
    "Cancel": (RiskGateClient, lambda c, **o: c.cancel("ap_1", **o)),
    "ListKeys": (RiskGateClient, lambda c, **o: c.list_keys(**o)),
    "BeginTask": (RiskGateClient, lambda c, **o: c.begin_task("hola", thread_id="t1", **o)),
    "Observe": (RiskGateClient, lambda c, **o: c.observe("ta_1", tool_call_id="c1", tool="t", result_text="x", **o)),
    "EndTask": (RiskGateClient, lambda c, **o: c.end_task("ta_1", **o)),
    "StoreOutput": (MemoryClient, lambda c, **o: c.store_output("texto", **FROM, **o)),
    "GetOutput": (MemoryClient, lambda c, **o: c.get_output("out_1", **o)),
    "ReadOutput": (MemoryClient, lambda c, **o: c.read_output("out_1", **o)),
    "AppendMessages": (MemoryClient, lambda c, **o: c.append_messages("t1", [NewMessage("m1", "USER", "hola")], **o)),
}
CALLS = pytest.mark.parametrize("name", EVERY_CALL)
STREAMS = {"StreamMessage", "WatchThread", "FetchFile"}


def prepare(wire, name) -> None:
    """Give the calls that need a set field in the answer one; a stream without answers ends at once."""
    if name == "FetchFile":
        nothing = event_pb2.SentFile(sha256=hashlib.sha256(b"").hexdigest())
        wire.answer(name, [chat_pb2.FetchFileResponse(file=nothing)])
    elif name in STREAMS:
        wire.answer(name, [])
    if name == "StoreOutput":
        wire.answer(name, output_pb2.StoreOutputResponse(output=output_pb2.Output()))


async def test_a_result_is_sent_as_what_it_is_and_never_as_two_things(wire, connect):
    client, of = connect(RiskGateClient), {"tool_call_id": "c1", "tool": "read_file"}
    for given in ({"result_json": ""}, {"result_text": "x"}, {}):
        await client.observe("ta_1", **of, **given)
    assert [call.request.WhichOneof("result") for call in wire.calls] == ["result_json", "result_text", None]
    with pytest.raises(ValueError, match="not both"):
        await client.observe("ta_1", **of, result_json="1", result_text="1")
    await client.evaluate(CALL, **AT, task_id="ta_1")
    assert wire.calls[-1].request.task_id == "ta_1"


async def test_a_task_begins_with_a_models_interpretation_if_there_is_one(wire, connect):
    client = connect(RiskGateClient)
    meant = task_pb2.Interpretation(version="interpret-2", model="m", asks=[task_pb2.InterpretedAsk(tool="write_file")])
    for given in ({"interpretation": meant}, {}):
        await client.begin_task("hola", thread_id="t1", **given)
    assert wire.calls[0].request.interpretation == meant
    assert not wire.calls[1].request.HasField("interpretation")


async def test_a_demanded_bundle_revision_is_sent_with_evaluate_and_redeem(wire, connect):
    client = connect(RiskGateClient)
    await client.evaluate(CALL, **AT, min_bundle_revision=7)
    prepare(wire, "Redeem")
    await client.redeem("p", CALL, execution_id="e1234567", **AT, min_bundle_revision=8)
    assert [call.request.min_bundle_revision for call in wire.calls] == [7, 8]


USUAL = {"SendMessage": 930, "StreamMessage": 930, "AnswerApproval": 930, "DeleteThread": 90, "WatchThread": None}
"""Seconds that fit what is asked for: a turn may wait for a model, a deletion for an effect, a watch for ever."""


@CALLS
async def test_every_call_has_a_deadline_that_fits_it_or_its_own(wire, connect, name):
    prepare(wire, name)
    kind, call = EVERY_CALL[name]
    await call(connect(kind))
    await call(connect(kind, timeout=300.0))
    await call(connect(kind), timeout=100.0)
    usual, client, own = [received.seconds for received in wire.calls]
    assert [received.name for received in wire.calls] == [name] * 3
    expected = USUAL.get(name, 30)
    if expected is None:
        assert usual is client is None
    else:
        assert 0.6 * expected < usual < 1.05 * expected  # the header rounds up
        assert 200 < client < 305
    assert 31.5 < own < 105


@CALLS
async def test_an_error_carries_the_request_id_of_its_call_also_one_the_client_made(wire, connect, refusal, name):
    kind, call = EVERY_CALL[name]
    scripted = refusal(grpc.StatusCode.ABORTED)
    wire.answer(name, [scripted] if name in STREAMS else scripted)
    with pytest.raises(errors.AbortedError) as caught:
        await call(connect(kind))
    assert caught.value.request_id == getattr(wire.calls[0].request, "request_id", "")
    if name in {"SendMessage", "StreamMessage", "AnswerApproval", "BeginTask"}:
        assert caught.value.request_id.startswith("req_")


@CALLS
async def test_every_call_carries_the_identity_it_was_given_and_no_other(wire, connect, name):
    prepare(wire, name)
    kind, call = EVERY_CALL[name]
    await call(connect(kind))
    await call(connect(kind, token="secreto", subject="ana", tenant="acme"))
    bare, named = [received.metadata for received in wire.calls]
    headers = ("authorization", "x-phylactery-subject", "x-phylactery-tenant")
    assert [bare.get(header) for header in headers] == [None, None, None]
    assert [named.get(header) for header in headers] == ["Bearer secreto", "ana", "acme"]


async def test_a_client_for_another_subject_keeps_its_tenant_unless_another_is_named(wire, connect):
    prepare(wire, "GetThread")
    client = connect(PhylacteryClient, token="secreto", subject="ana", tenant="acme")
    for other in (client.acting_for("ben"), client.acting_for("eva", "globex"), client):
        await other.get_thread("t1")
    named = [
        (received.metadata.get("x-phylactery-subject"), received.metadata.get("x-phylactery-tenant"))
        for received in wire.calls
    ]
    assert named == [("ben", "acme"), ("eva", "globex"), ("ana", "acme")]


@CALLS
async def test_every_call_carries_the_trace_it_is_made_in(wire, connect, name):
    prepare(wire, name)
    kind, call = EVERY_CALL[name]
    client = connect(kind)
    await call(client)
    with TracerProvider().get_tracer("test").start_as_current_span("outer") as span:
        await call(client)
    outside, inside = [received.metadata.get("traceparent") for received in wire.calls]
    own = span.get_span_context()
    assert outside is None
    assert inside == f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"


@CALLS
async def test_every_call_is_made_again_while_the_service_is_unavailable_and_the_same(wire, connect, refusal, name):
    prepare(wire, name)
    kind, call = EVERY_CALL[name]
    away = refusal(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    wire.answer_after(name, *([[away], [away]] if name in STREAMS else [away, away]))
    await call(connect(kind))
    assert len(wire.calls) == 3
    assert wire.calls[0].requests == wire.calls[1].requests == wire.calls[2].requests


@CALLS
async def test_a_service_that_stays_away_is_asked_four_times(wire, connect, refusal, name):
    kind, call = EVERY_CALL[name]
    away = refusal(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    wire.answer(name, [away] if name in STREAMS else away)
    with pytest.raises(errors.UnavailableError) as caught:
        await call(connect(kind))
    assert (caught.value.reason, len(wire.calls)) == ("STORE_UNAVAILABLE", 4)


ONCE = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.InvalidRequestError,
    grpc.StatusCode.UNAUTHENTICATED: errors.UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: errors.PermissionDeniedError,
    grpc.StatusCode.NOT_FOUND: errors.NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: errors.AlreadyExistsError,
    grpc.StatusCode.FAILED_PRECONDITION: errors.FailedPreconditionError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.ResourceExhaustedError,
    grpc.StatusCode.OUT_OF_RANGE: errors.OutOfRangeError,
    grpc.StatusCode.ABORTED: errors.AbortedError,
    grpc.StatusCode.DEADLINE_EXCEEDED: errors.DeadlineError,
    grpc.StatusCode.CANCELLED: errors.CancelledByServerError,
    grpc.StatusCode.DATA_LOSS: errors.DataLossError,
    grpc.StatusCode.UNIMPLEMENTED: errors.UnimplementedError,
    grpc.StatusCode.INTERNAL: errors.ServiceFaultError,
    grpc.StatusCode.UNKNOWN: errors.ServiceFaultError,
}


@pytest.mark.parametrize("name", ["GetOutput", "StoreOutput", "StreamMessage"])
@pytest.mark.parametrize("code", ONCE)
async def test_every_other_code_is_its_own_error_after_one_call_unless_the_server_had_too_many(
    wire, connect, refusal, name, code
):
    kind, call = EVERY_CALL[name]
    scripted = refusal(code, "SOME_REASON", ("a", "b.0"), pointer="out_1")
    wire.answer(name, [scripted] if name in STREAMS else scripted)
    with pytest.raises(PhylacteryError) as caught:
        await call(connect(kind))
    error = caught.value
    assert type(error) is ONCE[code]
    assert (error.code, error.reason, error.domain) == (code, "SOME_REASON", "memory.phylactery")
    assert (error.message, error.metadata) == (f"it is {code.name}", {"pointer": "out_1"})
    assert error.violations == (FieldViolation("a", "bad"), FieldViolation("b.0", "bad"))
    assert str(error) == f"{code.name} (SOME_REASON): it is {code.name}"
    repeated = code is grpc.StatusCode.CANCELLED and name != "StoreOutput"  # a stream that gRPC cannot send again
    assert len(wire.calls) == (MAX_ATTEMPTS if repeated else 1)


NOT_SURE = {
    "EndLift", "EraseValues", "ForgetMemory", "Lift", "RenewClaim", "RevokeDecision", "RollbackBundle",
    "SetProfileFields", "StartForm", "StoreOutput", "Unfreeze", "UpdateMemory",
}  # fmt: skip
"""Calls that may have had their effect when a server cancelled them: the list of the Go and the TypeScript client."""


@CALLS
async def test_a_call_that_the_server_cancelled_is_made_again_only_where_that_is_harmless(wire, connect, refusal, name):
    prepare(wire, name)
    kind, call = EVERY_CALL[name]
    cancelled = refusal(grpc.StatusCode.CANCELLED)
    wire.answer_after(name, [cancelled] if name in STREAMS else cancelled)
    if name in NOT_SURE:
        with pytest.raises(errors.CancelledByServerError):
            await call(connect(kind))
        assert len(wire.calls) == 1
    else:
        await call(connect(kind))
        assert len(wire.calls) == 2


@pytest.mark.parametrize(
    "details",
    [
        None,
        b"\xff\xff not a status",
        status_pb2.Status(code=3, message="another half").SerializeToString(),
        status_pb2.Status(
            code=5,
            message="no",
            details=[
                AnyMessage(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff"),
                AnyMessage(type_url="type.example.com/unknown.Thing", value=b"x"),
            ],
        ).SerializeToString(),
    ],
    ids=["none", "garbage", "contradiction", "broken parts"],
)
async def test_details_that_cannot_be_read_leave_the_code_and_the_message(wire, connect, bare, details):
    wire.answer("GetOutput", bare(grpc.StatusCode.NOT_FOUND, details))
    with pytest.raises(errors.NotFoundError) as caught:
        await connect(MemoryClient).get_output("out_1")
    assert (caught.value.message, caught.value.reason, caught.value.violations) == ("no", "", ())
    assert str(caught.value) == "NOT_FOUND: no"


async def test_no_answer_in_time_is_a_deadline_error_and_not_asked_again(wire, connect):
    never = asyncio.Event()
    wire.answer("GetOutput", never.wait)
    with pytest.raises(errors.DeadlineError):
        await connect(MemoryClient).get_output("out_1", timeout=0.3)
    assert len(wire.calls) <= 1  # none, where the time was over before it arrived


@pytest.mark.parametrize("name", EVERY_CALL)
async def test_a_server_that_is_not_there_is_unavailable(unused_target, name):
    kind, call = EVERY_CALL[name]
    async with kind(unused_target, retry_seconds=0) as client:
        with pytest.raises(errors.UnavailableError) as caught:
            await call(client)
    assert caught.value.reason == ""


@pytest.mark.parametrize("name", ["SendMessage", "Redeem", "StoreOutput"])
async def test_a_call_outlasts_a_restart_and_is_made_with_the_same_ids(wire, connect, refusal, name, monkeypatch):
    kind, call = EVERY_CALL[name]
    monkeypatch.setattr("phylactery_client.channel.FIRST_BACKOFF", 0.001)
    wire.answer_after(name, *[refusal(grpc.StatusCode.UNAVAILABLE)] * 9)
    await call(connect(kind, retry_seconds=math.inf))
    assert len(wire.calls) == 10
    assert all(one.requests == wire.calls[0].requests for one in wire.calls)


async def test_a_call_that_was_silent_for_longer_than_that_outlasts_a_restart_as_well(wire, connect, refusal):
    """The time is counted from the break."""
    away = refusal(grpc.StatusCode.UNAVAILABLE)

    async def silent() -> object:
        await asyncio.sleep(0.5)
        return away

    wire.answer_after("SendMessage", silent, *[away] * (MAX_ATTEMPTS - 1))  # what gRPC repeats by itself
    await connect(PhylacteryClient, retry_seconds=0.4).send_message("hola")
    assert len(wire.calls) == MAX_ATTEMPTS + 1


MADE_ONCE = {
    "StartForm": (FormClient, lambda c: c.start("trip")),
    "ForgetMemory": (MemoryClient, lambda c: c.forget_memory("mem_1")),
    "SetProfileFields": (MemoryClient, lambda c: c.set_profile_fields({"city": "Lima"})),
    "EraseValues": (AuditClient, lambda c: c.erase_values(subject="ana", reason="she asked")),
}


@pytest.mark.parametrize("name", MADE_ONCE)
async def test_a_call_without_an_id_is_made_once(wire, connect, refusal, name):
    """Made again, it could undo what came in between; neither the client nor gRPC does that."""
    kind, call = MADE_ONCE[name]
    wire.answer(name, refusal(grpc.StatusCode.UNAVAILABLE))
    with pytest.raises(errors.UnavailableError):
        await call(connect(kind, retry_seconds=math.inf))
    assert len(wire.calls) == 1


async def test_a_call_is_not_repeated_beyond_its_deadline(wire, connect, refusal, monkeypatch):
    monkeypatch.setattr("phylactery_client.channel.FIRST_BACKOFF", 1_000)
    wire.answer("StoreOutput", refusal(grpc.StatusCode.UNAVAILABLE))
    with pytest.raises(errors.UnavailableError):
        await connect(MemoryClient, retry_seconds=math.inf).store_output("x", **FROM, timeout=250)
    assert len(wire.calls) == 1


async def test_a_request_id_is_made_where_none_is_given(wire, connect):
    client = connect(PhylacteryClient)
    await client.send_message("hola")
    await client.send_message("hola")
    await client.send_message("hola", request_id="mine-12345")
    first, second, mine = [received.request.request_id for received in wire.calls]
    assert first != second
    assert len(first) == len("req_") + 32
    assert mine == "mine-12345"


def test_the_client_needs_neither_the_chassis_nor_opentelemetry():
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import phylactery_client, phylactery_client.channel as channel\n"
        "assert channel._propagator is None\n"
        "print(sorted(name for name in sys.modules if name.startswith(('phylactery_', 'sqlalchemy', 'pydantic'))))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.strip("'") for name in done.stdout.strip().strip("[]").split(", ")}
    assert loaded
    assert {name.partition(".")[0] for name in loaded} == {"phylactery_client"}
