"""The clients without asyncio: generated from the others, of the same calls, requests, results and errors."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import phylactery_client
import pytest
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery_cli.supervisor import Stack, running
from phylactery_client import MemoryClient, PendingApproval, PhylacteryClient, sync
from phylactery_client.errors import ClosedError, NotFoundError, UnavailableError

from tests.client.test_wire import EVERY_CALL, STREAMS, prepare
from tests.support.processes.stack import ForkedStack, lasting_ports, relaunch

ROOT = Path(__file__).resolve().parents[2] / "clients" / "python"
SYNC = ROOT / "phylactery_client" / "sync"
CLIENTS = [name for name in sync.__all__ if name != "ServiceClient"]


def twin_of(kind: type) -> type:
    return getattr(sync, kind.__name__)


def test_the_twins_are_what_the_asynchronous_clients_come_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))
    import generate

    try:
        generate.generate(tmp_path)
    finally:
        del sys.modules["generate"]
    made = {path.name: path.read_text() for path in tmp_path.glob("*.py")}
    assert len(made) > 4
    assert {name: (SYNC / name).read_text() for name in made} == made, "run: python clients/python/generate.py"


@pytest.mark.parametrize("name", CLIENTS)
def test_a_twin_has_every_method_with_the_same_parameters(name: str):
    def methods(kind: type) -> dict[str, str]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: str(inspect.signature(one)).rpartition(" -> ")[0] for name, one in found if name[0] != "_"}

    ours, theirs = methods(getattr(phylactery_client, name)), methods(getattr(sync, name))
    assert len(ours) > 2
    assert theirs == ours


@pytest.mark.parametrize("name", EVERY_CALL)
async def test_a_twin_sends_the_same_request_and_returns_the_same_result(wire, connect, name):
    kind, call = EVERY_CALL[name]
    prepare(wire, name)
    first = await call(connect(kind))

    def synchronous() -> Any:
        with twin_of(kind)(wire.target) as client:
            if name in STREAMS - {"FetchFile"}:  # it returns a file, not a stream
                return list(stream_of(name, client))
            return call(client)

    second = await asyncio.to_thread(synchronous)
    asked, again = wire.calls
    assert first == second
    for requests in (asked.requests, again.requests):
        for one in requests:
            if hasattr(one, "request_id"):
                one.request_id = ""
    assert asked.requests == again.requests
    assert (asked.seconds is None) == (again.seconds is None)


def stream_of(name: str, client: Any) -> Iterator[Any]:
    if name == "StreamMessage":
        return client.stream_message("hola")
    return client.watch_thread("t1", reconnect=False)


async def test_a_twin_raises_the_same_errors(wire, connect, refusal):
    wire.answer("GetOutput", refusal(grpc.StatusCode.NOT_FOUND, "OUTPUT_NOT_FOUND", pointer="out_1"))

    def synchronous() -> None:
        with sync.MemoryClient(wire.target) as client:
            client.get_output("out_1")

    with pytest.raises(NotFoundError) as ours:
        await connect(MemoryClient).get_output("out_1")
    with pytest.raises(NotFoundError) as theirs:
        await asyncio.to_thread(synchronous)
    assert vars(ours.value) == vars(theirs.value)
    assert theirs.value.metadata == {"pointer": "out_1"}


def event(sequence: int, **kind: Any) -> chat_pb2.StreamMessageResponse:
    return chat_pb2.StreamMessageResponse(event=event_pb2.Event(thread_id="t1", sequence=sequence, **kind))


async def test_a_broken_stream_goes_on_after_its_last_event_with_the_same_request(wire, connect, refusal):
    end = event(3, run_finished=event_pb2.RunFinished(reason="ANSWERED"))
    away = refusal(grpc.StatusCode.UNAVAILABLE)
    script = ([event(1), away], [event(1), event(2), away], [event(1), event(2), end])
    wire.answer("StreamMessage", *script)
    seen = [one.sequence async for one in connect(PhylacteryClient).stream_message("hola")]
    assert seen == [1, 2, 3]
    wire.answer("StreamMessage", *script)

    def synchronous() -> list[int]:
        with sync.PhylacteryClient(wire.target) as client:
            return [one.sequence for one in client.stream_message("hola")]

    assert await asyncio.to_thread(synchronous) == [1, 2, 3]
    for calls in (wire.calls[:3], wire.calls[3:]):
        assert len({one.request.request_id for one in calls}) == 1


async def test_a_stream_that_stays_broken_is_given_up_after_the_events_it_had(wire, connect, refusal):
    wire.answer("StreamMessage", [event(1), refusal(grpc.StatusCode.UNAVAILABLE)])
    seen = []

    async def follow() -> None:
        async for one in connect(PhylacteryClient, retry_seconds=0).stream_message("hola"):
            seen.append(one.sequence)  # noqa: PERF401 - what came before the break is what is looked at

    with pytest.raises(UnavailableError):
        await follow()
    assert seen == [1]


@pytest.mark.parametrize("ends", ["waits", "breaks", "ends"])
async def test_closing_a_twin_ends_its_watches(wire, refusal, ends):
    """Whatever the watch does meanwhile: it is not opened again, nor does gRPC's own error of it get out."""
    last = {"waits": [asyncio.Event().wait], "breaks": [refusal(grpc.StatusCode.UNAVAILABLE)], "ends": []}[ends]
    wire.answer("WatchThread", [event(1), *last])

    def synchronous() -> None:
        client = sync.PhylacteryClient(wire.target)
        for _ in client.acting_for("ana").watch_thread("t1"):
            client.close()

    with pytest.raises(ClosedError):
        await asyncio.to_thread(synchronous)
    assert len(wire.calls) == 1


@pytest.mark.parametrize("ends", ["breaks", "ends"])
async def test_closing_a_client_ends_its_watches(wire, refusal, ends):
    wire.answer("WatchThread", [event(1), *([refusal(grpc.StatusCode.UNAVAILABLE)] if ends == "breaks" else [])])
    client = PhylacteryClient(wire.target)

    async def follow() -> None:
        async for _ in client.acting_for("ana").watch_thread("t1"):
            asyncio.get_running_loop().call_soon(lambda: closing.append(asyncio.create_task(client.close())))

    closing: list[asyncio.Task[None]] = []
    with pytest.raises(ClosedError):
        await follow()
    await asyncio.gather(*closing)


async def test_a_call_of_a_closed_client_says_so_with_its_id(wire):
    def synchronous() -> ClosedError:
        client = sync.PhylacteryClient(wire.target)
        client.close()
        with pytest.raises(ClosedError) as caught:
            client.send_message("hola")
        return caught.value

    client = PhylacteryClient(wire.target)
    await client.close()
    with pytest.raises(ClosedError) as caught:
        await client.send_message("hola")
    for error in (caught.value, await asyncio.to_thread(synchronous)):
        assert error.request_id.startswith("req_")
    assert wire.calls == []


async def test_leaving_a_stream_of_a_twin_early_hangs_up(wire):
    wire.answer("StreamMessage", [event(1), asyncio.Event().wait])

    def synchronous() -> int:
        with sync.PhylacteryClient(wire.target) as client:
            events = client.stream_message("hola")
            first = next(events).sequence
            events.close()
            return first

    assert await asyncio.to_thread(synchronous) == 1
    async with asyncio.timeout(60):
        await wire.cancelled.wait()


@pytest.mark.parametrize(("approve", "word"), [(True, "yes"), (False, "no")])
async def test_an_approval_is_answered_by_what_was_shown(wire, connect, approve, word):
    card = PendingApproval("ap_1", "write_file", "low", "self", (), None, "", args_hash="sha256:1")
    await connect(PhylacteryClient).answer_approval(card, thread_id="t1", approve=approve)
    (asked,) = (one.request for one in wire.calls)
    assert (asked.text, asked.thread_id) == (word, "t1")
    assert [(one.approval_id, one.args_hash) for one in asked.shown_approvals] == [("ap_1", "sha256:1")]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(ForkedStack(tmp_path_factory.mktemp("stack"), lasting_ports())) as started:
        yield started


@pytest.mark.slow
def test_a_turn_an_approval_and_a_restart_without_a_loop(stack: Stack):
    """The same client goes on after the agent was killed, in the middle of a conversation."""
    with sync.PhylacteryClient(stack.target("agent"), retry_seconds=60) as agent:
        asked = agent.send_message('write "paid with 4111 1111 1111 1111" to journal.txt', thread_id="t1")
        assert asked.pending_approval is not None
        stack.kill("agent")
        relaunch(stack, "agent")
        done = agent.answer_approval(asked.pending_approval, thread_id="t1", approve=True)
        assert done.run.status == "DONE"
        assert "journal.txt" in done.reply.text
        refused = agent.send_message('write "4111 1111 1111 1111 again" to journal.txt', thread_id="t1")
        assert refused.pending_approval is not None
        left = agent.answer_approval(refused.pending_approval, thread_id="t1", approve=False)
        assert left.pending_approval is None
        kinds = [one.kind for one in agent.stream_message("read journal.txt", thread_id="t1")]
        assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
    assert (stack.sandbox / "journal.txt").read_text().count("4111") == 1
