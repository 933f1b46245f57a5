"""Threads: events live and again after a disconnect, and the list of one's own threads."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc import aio
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery_agent.api.threads import MAX_WATCHES

from tests.agent.runtime.intake.test_on_busy import held_turn
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, refused
from tests.support.agent.threads import ENDS_SECONDS, Watch, delete, listed, watched

WRITE = 'escribe "hola" en notas.txt'


async def test_a_watch_gives_what_was_stored_and_then_each_event_as_it_comes(system: System, ana: Person) -> None:
    first = await ana.stream("hola")
    async with watched(ana) as watch:
        assert await watch.until(first[-1].sequence) == first
        second = await ana.stream("gracias")
        assert await watch.until(second[-1].sequence) == second
    sequences = [event.sequence for event in (*first, *second)]
    assert sequences == list(range(1, len(sequences) + 1))


@pytest.mark.parametrize("page", [1, 3, 200])
async def test_a_watch_goes_on_exactly_where_it_was_cut_after_every_event_whatever_is_read_at_once(
    system: System, ana: Person, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phylactery_agent.runtime.storage.events._PAGE", page)
    await ana.say("hola")
    await ana.say(WRITE)
    last = (await ana.thread()).last_sequence
    async with watched(ana) as watch:
        everything = await watch.until(last)
    for cut in range(last):
        async with watched(ana, after=cut) as watch:
            assert await watch.until(last) == everything[cut:]


async def test_a_watch_shows_code_and_arguments_while_the_approval_waits_and_never_afterwards(
    system: System, ana: Person
) -> None:
    asked = await ana.say(WRITE)
    approval_id, code = approval_of(asked)

    async def shown() -> event_pb2.ApprovalRequired:
        async with watched(ana) as watch:
            events = await watch.until(asked.last_sequence)
        return next(event.approval_required for event in events if event.HasField("approval_required"))

    waiting = await shown()
    assert (waiting.approval_id, waiting.code) == (approval_id, code)
    assert {argument.path for argument in waiting.arguments} >= {"/path"}
    assert code.encode() not in system.everything_stored()
    await ana.say(f"APROBAR {approval_id} {code}")
    answered = await shown()
    assert (answered.approval_id, answered.code, list(answered.arguments)) == (approval_id, "", [])


@pytest.mark.parametrize("after", [-1, -(2**63)])
async def test_a_cursor_below_nought_is_no_cursor(system: System, ana: Person, after: int) -> None:
    await ana.say("hola")
    told = await Watch(ana, after=after).refusal()
    assert (told.code, told.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["after_sequence"])


async def test_a_cursor_past_the_last_event_is_told_instead_of_waiting_for_ever(system: System, ana: Person) -> None:
    last = (await ana.say("hola")).last_sequence
    for after in (last + 1, 2**63 - 1):
        told = await Watch(ana, after=after).refusal()
        assert (told.code, told.reason) == (grpc.StatusCode.OUT_OF_RANGE, "CURSOR_AHEAD")
        assert told.metadata == {"last_sequence": str(last)}


@pytest.mark.parametrize(("subject", "tenant"), [("ben", "acme"), ("ana", "globex")])
async def test_somebody_elses_thread_is_not_there(system: System, ana: Person, subject: str, tenant: str) -> None:
    await ana.say("hola")
    stranger = system.person(subject, tenant)
    assert (await Watch(stranger).refusal()).reason == "THREAD_NOT_FOUND"
    assert not (await listed(stranger)).threads
    await delete(stranger)
    assert (await ana.thread()).last_sequence
    await stranger.say("hola")
    await delete(stranger)
    assert (await ana.thread()).last_sequence
    assert await ana.transcript()


async def test_one_user_watches_a_bounded_number_of_times_and_nobody_else_pays_for_it(
    system: System, ana: Person
) -> None:
    await ana.say("hola")
    await system.person("ben").say("hola")
    watches = [Watch(ana) for _ in range(MAX_WATCHES)]
    try:
        for watch in watches:
            await watch.next()
        for _ in range(20):
            told = await Watch(ana).refusal()
            assert (told.code, told.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_WATCHES")
            assert told.metadata == {"limit": str(MAX_WATCHES)}
        async with watched(system.person("ben")) as watch:
            await watch.next()
        watches.pop().call.cancel()
        async with asyncio.timeout(ENDS_SECONDS):
            while True:
                try:
                    async with watched(ana) as watch:
                        await watch.next()
                    break
                except aio.AioRpcError:  # the one that left is not counted out yet
                    await asyncio.sleep(0.05)
    finally:
        for watch in watches:
            watch.call.cancel()


async def test_a_watch_ends_in_peace_when_the_agent_stops_and_goes_on_at_the_next(system: System, ana: Person) -> None:
    first = await ana.stream("hola")
    watch = Watch(ana)
    await watch.until(first[-1].sequence)
    await system.restart_agent()
    try:
        assert await asyncio.wait_for(watch.call.read(), ENDS_SECONDS) is aio.EOF
    except aio.AioRpcError as gone:  # it is hung up at once: nothing is left to drain
        assert gone.code() is grpc.StatusCode.UNAVAILABLE  # noqa: PT017 - either is an end one goes on after
    second = await ana.stream("gracias")
    async with watched(ana, after=first[-1].sequence) as again:
        assert await again.until(second[-1].sequence) == second


async def test_threads_are_listed_newest_opened_first_page_by_page(system: System, ana: Person) -> None:
    for number in range(5):
        await ana.say("hola", f"t{number}")
        system.clock.advance(1)
    asked = await ana.say(WRITE, "t1")
    await system.person("ben").say("hola", "t9")
    names, token = [], ""
    while True:
        page = await listed(ana, page_size=2, page_token=token)
        names += [thread.id for thread in page.threads]
        if token := page.next_page_token:
            continue
        break
    assert names == ["t4", "t3", "t2", "t1", "t0"]
    whole = {thread.id: thread for thread in (await listed(ana)).threads}
    assert (whole["t1"].last_run.id, whole["t1"].last_run.status) == (asked.run.id, SUSPENDED)
    assert (whole["t1"].first_sequence, whole["t1"].last_sequence) == (1, asked.last_sequence)
    assert (whole["t1"].graph, whole["t1"].HasField("pending_approval")) == ("secured", False)
    assert whole["t0"].last_run.status == DONE
    ben = await listed(system.person("ben"), page_token=(await listed(ana, page_size=2)).next_page_token)
    assert {thread.id for thread in ben.threads} <= {"t9"}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"page_size": -1}, "page_size"),
        ({"page_size": 101}, "page_size"),
        ({"page_token": "WzFd"}, "page_token"),
        ({"page_token": "x" * 1_001}, "page_token"),
    ],
)
async def test_a_page_nobody_has_is_refused(system: System, ana: Person, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(aio.AioRpcError) as caught:
        await listed(ana, **fields)
    assert refused(caught.value).fields == [field]


async def test_the_route_and_the_run_say_how_a_message_is_served(system: System, ana: Person) -> None:
    async def route_of(text: str, thread_id: str, **fields: Any) -> tuple[str, str, str]:
        events = await ana.stream(text, thread_id, **fields)
        [routed] = [event.route_decided for event in events if event.HasField("route_decided")]
        run = await ana.run(events[-1].run_id)
        assert run.pathway == routed.pathway
        return routed.input_class, routed.pathway, routed.reason

    for graph, talk, task in (("secured", "CONVERSATION", "NEW_TASK"), ("react", "NEW_EPISODE", "NEW_EPISODE")):
        said = await route_of("hola", f"{graph}-1", graph=graph)
        assert said == ("TEXT_SIMPLE", "text_fast_path", talk)
        asked = await route_of(WRITE, f"{graph}-2", graph=graph)
        assert asked == ("TEXT_TOOL_INTENT", "tool_intent", task)


async def test_a_callers_deadline_ends_the_wait_and_never_the_run(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held_turn(system, ana, monkeypatch):
        request = chat_pb2.SendMessageRequest(request_id="request-late", thread_id="t1", text="gracias")
        for _ in range(2):
            with pytest.raises(aio.AioRpcError) as caught:
                await ana.chat.SendMessage(request, metadata=ana.metadata, timeout=0.3)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    answer = await ana.chat.SendMessage(request, metadata=ana.metadata, timeout=60)
    assert answer.run.status == DONE
    assert [text for role, text in await ana.transcript() if role == "user"] == ["hola", "gracias"]
