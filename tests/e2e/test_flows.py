"""Whole conversations through the three real processes, sharing one stack, each with its own thread and file."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, event_pb2, run_pb2, run_pb2_grpc
from phylactery.memory.v1 import output_pb2, output_pb2_grpc
from phylactery.riskgate.v1 import approval_pb2, types_pb2
from phylactery_cli.render.traces import SpanRecord, spans_of
from phylactery_cli.supervisor import Stack, running

from tests.support.processes.stack import ForkedStack, Person, lasting_ports, lines, relaunch, sandbox, yes
from tests.support.riskgate.asking_bundle import asks_first

DONE, FAILED, SUSPENDED = event_pb2.RUN_STATUS_DONE, event_pb2.RUN_STATUS_FAILED, event_pb2.RUN_STATUS_SUSPENDED
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("e2e-flows")]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("flows") / "data"
    bundle = asks_first(folder.parent / "bundle")
    env = {"agent": {"AGENT_APPROVAL_POLL_SECONDS": "0.2"}, "riskgate": {"RISKGATE_BUNDLE": str(bundle)}}
    with running(ForkedStack(folder, lasting_ports(), extra_env=env)) as made:
        sandbox(made).mkdir(parents=True, exist_ok=True)
        yield made


@pytest.fixture
def person(stack: Stack, request: pytest.FixtureRequest) -> Iterator[Person]:
    thread = re.sub(r"[^A-Za-z0-9_-]", "-", request.node.name)[:100]
    with Person(stack, "ana", thread=thread) as ana:
        yield ana


@pytest.fixture
def bea(stack: Stack, person: Person) -> Iterator[Person]:
    with Person(stack, "bea", thread=person.thread) as other:
        yield other


def refused(call) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def whole_trace(stack: Stack, trace_id: str) -> list[SpanRecord]:
    """Return the spans of a turn once each has its parent, and each call of another service what that wrote of it.

    A caller's own span is written after the one it called, and a service writes of a call once it has answered. What
    the turn leaves in the outbox is delivered, and traced, after the answer.
    """
    end = time.monotonic() + 60
    while True:
        spans = spans_of(stack.data_dir, trace_id)
        known, parents = {span.span_id for span in spans}, {span.parent_id for span in spans}
        lone = [span.name for span in spans if span.parent_id and span.parent_id not in known]
        unheard = [span.name for span in spans if _goes_out(span) and span.span_id not in parents]
        if spans and not lone and not unheard:
            return spans
        assert time.monotonic() < end, f"without a parent after 60 s: {lone}; without what was called: {unheard}"
        time.sleep(0.05)


def _goes_out(span: SpanRecord) -> bool:
    return span.service == "agent" and span.name.startswith(("phylactery.riskgate.", "phylactery.memory."))


def test_a_turn_is_one_trace_over_the_three_services_with_parents_and_statuses(stack: Stack, person: Person):
    (sandbox(stack) / "trace.txt").write_text("traced")
    turn = person.say("lee trace.txt")
    spans = whole_trace(stack, turn.run.trace_id)
    by_id = {span.span_id: span for span in spans}
    assert {span.service for span in spans} == {"agent", "riskgate", "memory"}
    [root] = [span for span in spans if not span.parent_id]
    assert root.name == "phylactery.agent.v1.ChatService/SendMessage"
    evaluate = [span for span in spans if span.name.endswith("RiskGateService/Evaluate")]
    assert {span.service for span in evaluate} == {"agent", "riskgate"}
    for span in evaluate:
        assert span.code == "OK"
        if span.service == "riskgate":
            assert by_id[span.parent_id].service == "agent"
            assert by_id[span.parent_id].name == span.name
    assert any(span.name == "execute_tool read_file" for span in spans)


def test_a_failed_call_says_so_in_its_span(stack: Stack, person: Person):
    metadata = (*person.metadata, ("traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"))
    stub = run_pb2_grpc.RunServiceStub(person.channel("agent"))
    error = refused(lambda: stub.GetRun(run_pb2.GetRunRequest(run_id="run_unknown"), metadata=metadata, timeout=60))
    assert error.code() is grpc.StatusCode.NOT_FOUND
    end = time.monotonic() + 60
    while not (spans := spans_of(stack.data_dir, "0123456789abcdef0123456789abcdef")):  # it ends after the call
        assert time.monotonic() < end, "no span after 60 s"
        time.sleep(0.05)
    [span] = spans
    assert (span.name, span.code) == ("phylactery.agent.v1.RunService/GetRun", "NOT_FOUND")


def test_the_code_and_the_arguments_are_in_no_file_but_the_one_written(stack: Stack, person: Person):
    asked = person.say('escribe "valor-muy-secreto" en secreto.txt')
    code = asked.pending_approval.code
    assert person.say(yes(asked)).run.status == DONE
    assert (sandbox(stack) / "secreto.txt").read_text() == "valor-muy-secreto"
    for service in ("agent", "riskgate", "memory"):
        for path in (stack.data_dir / service).rglob("*"):
            if path.is_file():
                assert code.encode() not in path.read_bytes(), path
    logged = [*(stack.data_dir / "logs").glob("*.log"), *stack.data_dir.glob("*/spans/*.jsonl")]
    assert len(logged) == 6
    for path in logged:
        assert b"valor-muy-secreto" not in path.read_bytes(), path
        assert code.encode() not in path.read_bytes(), path


def test_an_approval_decided_at_riskgate_wakes_the_run(stack: Stack, person: Person):
    asked = person.say('append "decided elsewhere" to elsewhere.txt')
    approval = person.approval(asked.pending_approval.approval_id)
    person.approvals.Approve(
        approval_pb2.ApproveRequest(
            approval_id=approval.id, args_hash=approval.args_hash, code=approval.code, thread_id=approval.thread_id
        ),
        metadata=person.metadata,
        timeout=60,
    )
    thread = person.await_status(DONE)
    assert thread.last_run.id == asked.run.id
    assert lines(stack, "elsewhere.txt") == ["decided elsewhere"]


def test_a_rejection_at_riskgate_wakes_the_run_and_nothing_is_written(stack: Stack, person: Person):
    asked = person.say('append "rejected elsewhere" to rejected-elsewhere.txt')
    person.approvals.Reject(
        approval_pb2.RejectRequest(approval_id=asked.pending_approval.approval_id, reason="no"),
        metadata=person.metadata,
        timeout=60,
    )
    thread = person.await_status(DONE)
    assert not thread.HasField("pending_approval")
    assert lines(stack, "rejected-elsewhere.txt") == []


def test_eight_approvals_at_once_are_one_effect(stack: Stack, person: Person):
    asked = person.say('append "once" to eight.txt')
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: person.say(yes(asked)), range(8)))
    assert lines(stack, "eight.txt") == ["once"]
    assert sum(len(answer.run.tool_calls) == 1 and answer.run.id == asked.run.id for answer in answers) >= 1
    assert all(answer.reply.text for answer in answers)


def test_two_messages_at_once_on_one_thread_are_both_served_in_some_order(stack: Stack, person: Person):
    (sandbox(stack) / "a.txt").write_text("text of a")
    (sandbox(stack) / "b.txt").write_text("text of b")
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(person.say, ["lee a.txt", "lee b.txt"]))
    assert ["text of a" in answers[0].reply.text, "text of b" in answers[1].reply.text] == [True, True]
    assert answers[0].run.id != answers[1].run.id


def test_the_same_request_at_once_is_one_turn(stack: Stack, person: Person):
    barrier = threading.Barrier(6)

    def ask(_number: int) -> chat_pb2.SendMessageResponse:
        barrier.wait()
        return person.say('append "same" to same.txt', request_id="the-same-request")

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(6)))
    assert len({answer.run.id for answer in answers}) == 1
    assert len({answer.pending_approval.approval_id for answer in answers}) == 1
    error = refused(lambda: person.say("something else", request_id="the-same-request"))
    assert error.code() is grpc.StatusCode.ALREADY_EXISTS


def test_five_wrong_codes_close_the_approval_and_the_right_one_comes_too_late(stack: Stack, person: Person):
    asked = person.say('append "guessed" to guessed.txt')
    wrong = f"APROBAR {asked.pending_approval.approval_id} WRONGCODE1"
    for _ in range(4):
        answer = person.say(wrong)
        assert answer.run.status == SUSPENDED
    assert person.say(wrong).run.status == DONE
    assert person.approval(asked.pending_approval.approval_id).closed_reason == "TOO_MANY_ATTEMPTS"
    person.say(yes(asked))
    assert lines(stack, "guessed.txt") == []


def test_another_request_is_done_while_an_approval_waits_and_keeps_it(stack: Stack, person: Person):
    asked = person.say('append "patient" to patient.txt')
    (sandbox(stack) / "other.txt").write_text("other")
    between = person.say("lee other.txt")
    assert (between.run.status, between.run.id != asked.run.id) == (DONE, True)
    waits = person.run(asked.run.id)
    assert (waits.status, len(waits.tool_calls)) == (SUSPENDED, 1)
    assert person.standing().pending_approval.approval_id == asked.pending_approval.approval_id
    assert person.say(yes(asked)).run.status == DONE
    assert lines(stack, "patient.txt") == ["patient"]


def test_a_step_that_cannot_be_done_is_tried_once_and_the_person_is_asked(stack: Stack, person: Person):
    answer = person.say("lee no-existe.txt")
    assert (answer.run.status, answer.run.reason) == (SUSPENDED, "AWAITING_USER_INPUT")
    assert [call.error_code for call in answer.run.tool_calls] == ["NOT_FOUND"]
    assert "no-existe.txt" in answer.reply.text
    (sandbox(stack) / "existe.txt").write_text("aquí estoy")
    again = person.say("lee existe.txt")
    assert "aquí estoy" in again.reply.text


def test_another_user_finds_neither_thread_nor_run_nor_approval_nor_output(stack: Stack, person: Person, bea: Person):
    (sandbox(stack) / "large.txt").write_text("x" * 20_000)
    pointer = person.say("lee large.txt").run.tool_calls[0].pointer
    asked = person.say('append "mine" to mine.txt')
    approval_id = asked.pending_approval.approval_id
    assert refused(bea.standing).code() is grpc.StatusCode.NOT_FOUND
    assert refused(lambda: bea.run(asked.run.id)).code() is grpc.StatusCode.NOT_FOUND
    assert refused(lambda: bea.approval(approval_id)).code() is grpc.StatusCode.NOT_FOUND
    outputs = output_pb2_grpc.OutputServiceStub(bea.channel("memory"))
    request = output_pb2.ReadOutputRequest(pointer=pointer)
    assert refused(lambda: outputs.ReadOutput(request, metadata=bea.metadata, timeout=60)).code() is (
        grpc.StatusCode.NOT_FOUND
    )
    stolen = bea.say(yes(asked))  # in a thread of her own by the same name
    assert stolen.run.id != asked.run.id
    assert stolen.run.status != FAILED
    assert "mine.txt" not in stolen.reply.text
    assert person.approval(approval_id).state == types_pb2.APPROVAL_STATE_PENDING
    assert lines(stack, "mine.txt") == []


def test_without_riskgate_nothing_is_taken_in_and_the_same_message_is_served_when_it_is_back(
    stack: Stack, person: Person
):
    (sandbox(stack) / "down-riskgate.txt").write_text("still here")
    stack.kill("riskgate")
    with pytest.raises(grpc.RpcError, match="RiskGate does not answer"):
        person.say("lee down-riskgate.txt", request_id="down-riskgate-1")
    relaunch(stack, "riskgate")
    assert "still here" in person.say("lee down-riskgate.txt", request_id="down-riskgate-1").reply.text
    assert said_by(person) == ["lee down-riskgate.txt"]


def test_without_memory_the_turn_says_so_and_the_next_turn_works(stack: Stack, person: Person):
    (sandbox(stack) / "down-memory.txt").write_text("still here")
    stack.kill("memory")
    told = person.say("lee down-memory.txt")
    assert (told.run.status, told.run.reason) == (DONE, "ANSWERED")
    assert "still here" in told.reply.text
    assert "La memoria no está disponible" in told.reply.text
    relaunch(stack, "memory")
    assert "still here" in person.say("lee down-memory.txt").reply.text
    assert said_by(person) == ["lee down-memory.txt"] * 2


def said_by(person: Person) -> list[str]:
    """Return what the transcript holds of the person's words."""
    stub = chat_pb2_grpc.ChatServiceStub(person.channel("agent"))
    request = chat_pb2.ListMessagesRequest(thread_id=person.thread)
    listed = stub.ListMessages(request, metadata=person.metadata, timeout=60).messages
    return [message.text for message in listed if message.role == "user"]


def test_a_stream_read_again_is_the_same_stream(person: Person):
    first = person.events("hola", request_id="stream-again-1")
    again = person.events("hola", request_id="stream-again-1")
    assert [event.SerializeToString(deterministic=True) for event in first] == [
        event.SerializeToString(deterministic=True) for event in again
    ]
    assert first[-1].WhichOneof("kind") == "run_finished"
