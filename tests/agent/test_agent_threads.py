"""Threads: every event of one as it comes and again after any cut, the list of one's own, and their end."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery.memory.v1 import output_pb2, output_pb2_grpc
from phylactery.riskgate.v1 import approval_pb2, types_pb2
from phylactery_agent.adapters.memory import TranscriptAdapter
from phylactery_agent.runtime.model import Owner
from phylactery_agent.runtime.schema import METADATA, RUNS
from phylactery_agent.service.threads import MAX_WATCHES
from phylactery_chassis import crashpoints

from tests.agent.test_agent_on_busy import held_turn, say_next
from tests.support.agent_system import DONE, SUSPENDED, Person, System, approval_of, open_system, refused

WRITE = 'escribe "hola" en notas.txt'
ENDS_SECONDS = 60


class Watch:
    """One open stream of a thread's events."""

    def __init__(self, person: Person, thread_id: str = "t1", after: int = 0) -> None:
        request = chat_pb2.WatchThreadRequest(thread_id=thread_id, after_sequence=after)
        self.call = person.chat.WatchThread(request, metadata=person.metadata, timeout=120)

    async def next(self) -> event_pb2.Event:
        answer = await asyncio.wait_for(self.call.read(), ENDS_SECONDS)
        assert isinstance(answer, chat_pb2.WatchThreadResponse), "the stream ended"
        return answer.event

    async def until(self, sequence: int) -> list[event_pb2.Event]:
        events = [await self.next()]
        while events[-1].sequence < sequence:
            events.append(await self.next())
        return events

    async def refusal(self) -> Any:
        with pytest.raises(aio.AioRpcError) as caught:
            await asyncio.wait_for(self.call.read(), ENDS_SECONDS)
        return refused(caught.value)


@asynccontextmanager
async def watched(person: Person, thread_id: str = "t1", after: int = 0) -> AsyncIterator[Watch]:
    watch = Watch(person, thread_id, after)
    try:
        yield watch
    finally:
        watch.call.cancel()


async def delete(person: Person, thread_id: str = "t1") -> None:
    request = chat_pb2.DeleteThreadRequest(thread_id=thread_id)
    await person.chat.DeleteThread(request, metadata=person.metadata, timeout=60)


async def listed(person: Person, **fields: Any) -> chat_pb2.ListThreadsResponse:
    return await person.chat.ListThreads(chat_pb2.ListThreadsRequest(**fields), metadata=person.metadata, timeout=60)


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
    monkeypatch.setattr("phylactery_agent.runtime.events._PAGE", page)
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


def rows_of(system: System, thread_key: str) -> dict[str, int]:
    """Answers how many rows of each table are the thread's, or of a run that is not there any more."""

    def count(connection: sa.Connection) -> dict[str, int]:
        found = {}
        for table in METADATA.sorted_tables:
            column = next((table.c[name] for name in ("thread_key", "thread_id") if name in table.c), None)
            if column is not None:
                query = sa.select(sa.func.count()).select_from(table).where(column == thread_key)
                found[table.name] = connection.execute(query).scalar_one()
            elif "run_id" in table.c:
                lost = table.c.run_id.not_in(sa.select(RUNS.c.run_id))
                query = sa.select(sa.func.count()).select_from(table).where(lost)
                found[table.name] = connection.execute(query).scalar_one()
        return found

    return system.agent.database.read_sync(count)


async def test_a_deleted_thread_leaves_nothing_at_the_agent_or_at_memory_and_other_threads_stay(
    system: System, ana: Person
) -> None:
    await ana.say("hola xolotlcuauhtli")
    asked = await ana.say(WRITE)
    approval_id, code = approval_of(asked)
    await ana.say(f"APROBAR {approval_id} {code}")
    waiting = await ana.say(WRITE)
    await ana.say("hola", "t2")
    await system.agent.delivery.flush_all()
    assert b"xolotlcuauhtli" in system.everything_stored()
    await delete(ana)
    await system.agent.delivery.flush_all()
    left = rows_of(system, Owner("acme", "ana").thread_key("t1"))
    assert {name: rows for name, rows in left.items() if rows} == {}
    assert b"xolotlcuauhtli" not in system.everything_stored()
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.thread()
    assert refused(caught.value).reason == "THREAD_NOT_FOUND"
    assert [thread.id for thread in (await listed(ana)).threads] == ["t2"]
    request = approval_pb2.GetApprovalRequest(approval_id=waiting.pending_approval.approval_id)
    approval = (await ana.approvals.GetApproval(request, metadata=ana.metadata)).approval
    assert approval.state == types_pb2.APPROVAL_STATE_CANCELLED
    await delete(ana)
    anew = await ana.say("gracias")
    assert (await ana.thread()).first_sequence == 1
    assert anew.run.status == DONE
    assert [text for role, text in await ana.transcript() if role == "user"] == ["gracias"]
    assert [text for role, text in await ana.transcript("t2") if role == "user"] == ["hola"]


@pytest.mark.parametrize("handled", [True, False])
async def test_a_request_whose_thread_goes_while_it_is_sent_again_is_not_found_and_not_taken_in_without_its_words(
    system: System, ana: Person, *, handled: bool
) -> None:
    await ana.say("hola", request_id="request-1")
    if not handled:
        await database_does(system, "UPDATE agent_inbox SET state = 'waiting'")
    gone: list[str] = []

    def goes(point: str) -> None:
        if point in {"agent.inbox.before", "agent.5"} and not gone:
            gone.append(point)
            path = system.folder / "agent" / "agent.db"
            with closing(sqlite3.connect(path, timeout=ENDS_SECONDS)) as database, database:
                for table in ("agent_inbox", "agent_runs", "agent_events", "agent_threads"):
                    database.execute(f"DELETE FROM {table}")

    crashpoints.install(goes)
    try:
        with pytest.raises(aio.AioRpcError) as error:
            await ana.say("hola", request_id="request-1")
    finally:
        crashpoints.install(None)
    assert (error.value.code(), len(gone)) == (grpc.StatusCode.NOT_FOUND, 1)
    left = "SELECT count(*) FROM agent_inbox"
    assert await system.agent.database.read(lambda connection: connection.exec_driver_sql(left).scalar()) == 0


async def database_does(system: System, statement: str) -> None:
    await system.agent.database.write(lambda connection: connection.exec_driver_sql(statement))


async def test_what_runs_and_what_waits_ends_with_the_thread(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held_turn(system, ana, monkeypatch, WRITE) as first:
        second = await say_next(system, ana, 2, "gracias")
        deleting = asyncio.create_task(delete(ana))
        with pytest.raises(aio.AioRpcError) as caught:
            await second
        assert refused(caught.value).reason == "THREAD_NOT_FOUND"
        assert not deleting.done()
    await deleting
    [answer] = await asyncio.gather(first, return_exceptions=True)
    if isinstance(answer, aio.AioRpcError):  # it was gone before it could be told
        assert refused(answer).reason in ("THREAD_NOT_FOUND", "RUN_NOT_FOUND")
    else:
        assert answer.run.reason == "CANCELLED"
    assert not system.sandbox.joinpath("notas.txt").exists()
    assert not (await listed(ana)).threads


async def test_a_watch_of_a_thread_that_is_deleted_ends_with_not_found(system: System, ana: Person) -> None:
    first = await ana.say("hola")
    watch = Watch(ana)
    await watch.until(first.last_sequence)
    await delete(ana)
    assert (await watch.refusal()).reason == "THREAD_NOT_FOUND"
    assert (await Watch(ana).refusal()).reason == "THREAD_NOT_FOUND"


async def test_memory_is_told_once_it_is_back_and_a_thread_of_the_same_name_keeps_its_own_words(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    real = TranscriptAdapter.delete

    async def twice(adapter: TranscriptAdapter, thread_id: str, request_id: str) -> None:
        await real(adapter, thread_id, request_id)
        await real(adapter, thread_id, request_id)
        told.append(request_id)

    monkeypatch.setattr(TranscriptAdapter, "delete", twice)
    await ana.say("hola")
    await system.agent.delivery.flush_all()
    await system.stop("memory")
    await delete(ana)
    assert not (await listed(ana)).threads
    await ana.say("gracias")
    await system.come_back("memory")
    assert await system.agent.delivery.flush_all()
    assert len(set(told)) == 1
    assert [text for role, text in await ana.transcript() if role == "user"] == ["gracias"]


async def test_a_thread_is_deleted_while_riskgate_is_away_which_is_told_later(system: System, ana: Person) -> None:
    asked = await ana.say(WRITE)
    approval_id, _ = approval_of(asked)
    await system.stop("riskgate")
    await delete(ana)
    assert not (await listed(ana)).threads
    await system.come_back("riskgate")
    assert await system.agent.delivery.flush_all()
    request = approval_pb2.GetApprovalRequest(approval_id=approval_id)
    approval = (await ana.approvals.GetApproval(request, metadata=ana.metadata)).approval
    assert approval.state == types_pb2.APPROVAL_STATE_CANCELLED
    rows = system.agent.database.read_sync(lambda c: list(c.exec_driver_sql("SELECT * FROM agent_outbox")))
    assert rows == []


async def test_eight_deletions_at_once_and_messages_between_leave_a_thread_that_works(
    system: System, ana: Person
) -> None:
    await ana.say("hola")
    work = [delete(ana) if number % 2 else ana.say("gracias") for number in range(12)]
    answers = await asyncio.gather(*work, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            assert isinstance(answer, aio.AioRpcError)
            assert refused(answer).reason == "THREAD_NOT_FOUND"
    assert (await ana.say("hola")).run.status == DONE
    async with watched(ana) as watch:
        last = (await ana.thread()).last_sequence
        assert [event.sequence for event in await watch.until(last)] == list(range(1, last + 1))


async def test_evicted_outputs_go_with_their_thread(tmp_path: Path) -> None:
    async with open_system(tmp_path, evict_over_chars=1_000) as system:
        ana = system.person("ana")
        system.sandbox.joinpath("largo.txt").write_text("línea\n" * 2_000)
        answer = await ana.say("lee largo.txt")
        [pointer] = {call.pointer for call in answer.run.tool_calls}
        assert pointer
        stub = output_pb2_grpc.OutputServiceStub(system.memory_channel)
        asked = output_pb2.GetOutputRequest(pointer=pointer)
        assert (await stub.GetOutput(asked, metadata=ana.metadata)).output.size_chars
        await delete(ana)
        await system.agent.delivery.flush_all()
        with pytest.raises(aio.AioRpcError) as caught:
            await stub.GetOutput(asked, metadata=ana.metadata)
        assert caught.value.code() == grpc.StatusCode.NOT_FOUND


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
