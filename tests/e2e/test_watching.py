"""A client follows a thread through SIGKILL of the agent, and resumes at its cursor with exactly the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import grpc
import pytest
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, event_pb2

from tests.support.processes.shared import Tenant
from tests.support.processes.stack import Person, await_death, relaunch, yes

pytestmark = pytest.mark.slow

DONE = event_pb2.RUN_STATUS_DONE
ASK = 'append "one line" to log.txt'


def watching(person: Person, after: int = 0) -> Iterator[event_pb2.Event]:
    """Open a watch of the person's thread, as it is reachable now."""
    stub = chat_pb2_grpc.ChatServiceStub(person.channel("agent"))
    request = chat_pb2.WatchThreadRequest(thread_id=person.thread, after_sequence=after)
    for answer in stub.WatchThread(request, metadata=person.metadata, timeout=120):
        yield answer.event


def until(watch: Iterator[event_pb2.Event], sequence: int) -> list[event_pb2.Event]:
    """Read events up to one."""
    read = []
    for event in watch:
        read.append(event)
        if event.sequence >= sequence:
            break
    return read


def told(event: event_pb2.Event) -> bytes:
    """Return what is stored of an event: what answers it is shown only while the approval waits."""
    stored = event_pb2.Event()
    stored.CopyFrom(event)
    if stored.HasField("approval_required"):
        stored.approval_required.ClearField("code")
        stored.approval_required.ClearField("arguments")
        stored.approval_required.ClearField("args_hash")
        stored.approval_required.ClearField("also")
        stored.approval_required.ClearField("why")
        stored.approval_required.ClearField("stakes")
    return stored.SerializeToString(deterministic=True)


@pytest.mark.parametrize("point", ["agent.7", "agent.9", "agent.10"])
def test_a_watch_cut_by_sigkill_goes_on_with_exactly_the_rest(new_tenant: Callable[..., Tenant], point: str) -> None:
    tenant = new_tenant()
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        asked = ana.say(ASK)
        watch = watching(ana)
        seen = until(watch, asked.last_sequence)
        ana.say_and_lose(yes(asked), "yes-request-1")
        with contextlib.suppress(grpc.RpcError):  # what it still said before it died counts as well
            seen.extend(watch)
        await_death(stack, "agent")
        relaunch(stack, "agent")
        ana.await_status(DONE)
        last = ana.standing().last_sequence
        rest = until(watching(ana, seen[-1].sequence), last) if seen[-1].sequence < last else []
        sequences = [event.sequence for event in (*seen, *rest)]
        assert sequences == list(range(1, last + 1))
        whole = until(watching(ana), last)
        assert [told(event) for event in (*seen, *rest)] == [told(event) for event in whole]
        assert tenant.lines() == ["one line"]
