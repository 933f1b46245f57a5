"""Thread deletion leaves no trace anywhere, whatever runs, waits or is unavailable meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import grpc
import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.memory.v1 import output_pb2, output_pb2_grpc
from phylactery.riskgate.v1 import approval_pb2, types_pb2
from phylactery_agent.adapters.memory import TranscriptAdapter
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.runtime.storage.schema import METADATA, RUNS
from phylactery_chassis.util import crashpoints

from tests.agent.runtime.intake.test_on_busy import held_turn, say_next
from tests.support.agent.system import DONE, Person, System, approval_of, open_system, refused
from tests.support.agent.threads import ENDS_SECONDS, Watch, delete, listed, watched

WRITE = 'escribe "hola" en notas.txt'


def rows_of(system: System, thread_key: str) -> dict[str, int]:
    """Return how many rows of each table are the thread's, or of a run that is not there any more."""

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
