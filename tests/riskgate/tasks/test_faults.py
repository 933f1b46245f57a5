"""Kills, full disks, altered bytes, concurrent replicas: a task is complete, or absent."""

from __future__ import annotations

import asyncio
import json
import sqlite3

import grpc
import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.riskgate.v1 import explain_pb2, task_pb2, task_pb2_grpc, types_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import DataLoss, NotFound
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder
from phylactery_riskgate.domain.intent.packing import packed

from tests.riskgate.conftest import write_bundle
from tests.riskgate.faults.test_storage import Child
from tests.support.riskgate.task_indexes import calls_in
from tests.support.riskgate.tasks import ASKED, BOOK, IBAN, arguments, with_tasks

ANA = Principal("ana", "acme", frozenset({"caller"}))
READ = ("read_file", '{"path":"a.txt"}')
LOCAL = Principal("local", "local", frozenset({"caller"}))


class Shower:
    """Shows a task to a RiskGate in a process of its own."""

    def __init__(self, child: Child) -> None:
        self._tasks = task_pb2_grpc.TaskServiceStub(child.channel)

    async def begin(self) -> str:
        request = task_pb2.BeginTaskRequest(request_id="r1", thread_id="t1", words="hola")
        return (await self._tasks.BeginTask(request, timeout=60)).task_id

    async def observe(self, task_id: str, call_id: str = "c1") -> task_pb2.ObserveResponse:
        request = task_pb2.ObserveRequest(
            task_id=task_id, tool_call_id=call_id, tool="read_file", result_text=f"text of {call_id}"
        )
        return await self._tasks.Observe(request, timeout=60)


@pytest.mark.slow
async def test_killed_after_the_commit_of_a_task_it_answers_the_same_one(tmp_path):
    child = Child(tmp_path, "riskgate.0")
    with pytest.raises(aio.AioRpcError):
        await Shower(child).begin()
    await child.died()
    again = Child(tmp_path)
    task = await Shower(again).begin()
    await again.stop()
    with sqlite3.connect(tmp_path / "riskgate.db") as database:
        assert database.execute("SELECT id FROM tasks").fetchall() == [(task,)]


@pytest.mark.slow
async def test_killed_between_a_result_and_the_next_decision_it_knows_the_result(tmp_path, make_gate):
    child = Child(tmp_path / "killed", "riskgate.11")
    task = await Shower(child).begin()
    with pytest.raises(aio.AioRpcError):
        await Shower(child).observe(task)
    await child.died()
    again = Child(tmp_path / "killed")
    assert (await Shower(again).observe(task)).replayed
    await again.stop()
    gate = await make_gate("killed", bundle=default_bundle_folder(), task_ttl_seconds=30 * 86_400)
    gate.clock.advance(-gate.clock.now_us() / 1_000_000)
    index = await gate.riskgate.tasks.index_for(LOCAL, task, "t1")
    assert calls_in(index) == ["c1"]


@pytest.fixture
def asked_for(monkeypatch, tmp_path):
    """Every process of the test decides by tools that are asked for."""
    bundle = with_tasks(write_bundle(tmp_path / "bundle", revision=1))
    monkeypatch.setenv("RISKGATE_BUNDLE", str(bundle))


async def decided(child: Child, task: str) -> str:
    """Return where the account of a transfer comes from that only the contacts know."""
    asked = types_pb2.ToolCall(tool="transfer", tool_call_id="c9", arguments_json=arguments(IBAN))
    request = explain_pb2.ExplainRequest(call=asked, thread_id="t1", task_id=task)
    told = await child.decisions.Explain(request, timeout=60)
    return types_pb2.ArgumentOrigin.Name(told.task.arguments[0].origin)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["riskgate.11", ""])
async def test_killed_between_observe_and_evaluate_it_decides_by_all_it_was_shown(tmp_path, asked_for, point):
    """What comes from the contacts is asked about; where they were never shown, it comes from nowhere."""
    child = Child(tmp_path, point)
    tasks = task_pb2_grpc.TaskServiceStub(child.channel)
    begin = task_pb2.BeginTaskRequest(request_id="r1", thread_id="t1", words=ASKED)
    task = (await tasks.BeginTask(begin, timeout=60)).task_id
    shown = task_pb2.ObserveRequest(task_id=task, tool_call_id="c1", tool="contacts", result_json=BOOK)
    if point:
        with pytest.raises(aio.AioRpcError):
            await tasks.Observe(shown, timeout=60)
    else:
        child.process.kill()
    await child.died()
    again = Child(tmp_path)
    answer = await decided(again, task)
    assert answer == ("ARGUMENT_ORIGIN_REGISTRY" if point else "ARGUMENT_ORIGIN_FOREIGN")
    await again.stop()


@pytest.mark.slow
async def test_killed_in_the_middle_of_many_results_it_keeps_every_answered_one_and_takes_the_others_again(
    tmp_path, make_gate
):
    child = Child(tmp_path / "storm")
    task = await Shower(child).begin()
    shower, answered, enough = Shower(child), set(), asyncio.Event()

    async def show(number: int) -> None:
        await shower.observe(task, f"c{number}")
        answered.add(f"c{number}")
        if len(answered) == 10:
            enough.set()

    shown = [asyncio.create_task(show(number)) for number in range(150)]
    await enough.wait()
    child.process.kill()
    await asyncio.gather(*shown, return_exceptions=True)
    await child.died()
    again = Child(tmp_path / "storm")
    replayed = {f"c{n}" for n in range(150) if (await Shower(again).observe(task, f"c{n}")).replayed}
    assert answered <= replayed
    await again.stop()
    gate = await make_gate("storm", bundle=default_bundle_folder())
    gate.clock.advance(-gate.clock.now_us() / 1_000_000)
    index = await gate.riskgate.tasks.index_for(LOCAL, task, "t1")
    assert sorted(calls_in(index)) == sorted(f"c{n}" for n in range(150))


async def test_two_replicas_are_shown_one_task_at_once_and_each_knows_it_all(make_gate, shared_database):
    one = await make_gate(database_url=shared_database, instance="one")
    two = await make_gate(database_url=shared_database, instance="two")
    people = [gate.person("ana") for gate in (one, two)]
    tasks = await asyncio.gather(*(person.begin() for person in people for _ in range(4)))
    assert len(set(tasks)) == 1
    answers = await asyncio.gather(
        *(person.observe(tasks[0], f"c{n}", result_text=f"{n}") for n in range(20) for person in people)
    )
    assert [answer.replayed for answer in answers].count(True) == 20
    for gate in (one, two):
        index = await gate.riskgate.tasks.index_for(ANA, tasks[0], "t1")
        assert sorted(calls_in(index)) == sorted(f"c{n}" for n in range(20))


async def test_what_one_replica_was_shown_the_other_decides_by_at_once(make_gate, shared_database):
    one = await make_gate(database_url=shared_database, instance="one")
    two = await make_gate(database_url=shared_database, instance="two")
    task = await one.person("ana").begin()
    for number in range(4):
        shown_to, asked = (one, two) if number % 2 else (two, one)
        await shown_to.person("ana").observe(task, f"c{number}", result_text="x")
        assert len(calls_in(await asked.riskgate.tasks.index_for(ANA, task, "t1"))) == number + 1
    await one.person("ana").end_task(task)
    with pytest.raises(NotFound):
        await two.riskgate.tasks.index_for(ANA, task, "t1")


async def test_a_full_disk_keeps_nothing_and_says_so(gate, ana, refused):
    task = await ana.begin()
    gate.fill_disk()
    text = " ".join(f"palabra{number}" for number in range(60_000))
    for attempt in (ana.observe(task, result_text=text), ana.begin(text[:99_000], request="r2")):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL")
    assert (gate.count("tasks"), gate.count("task_pieces")) == (1, 1)
    assert calls_in(await gate.riskgate.tasks.index_for(ANA, task, "t1")) == []


async def test_a_task_whose_record_cannot_be_made_is_not_begun(gate, ana, refused):
    gate.fail_writes()
    assert (await refused(ana.begin())).reason == "STORE_UNAVAILABLE"
    assert gate.count("tasks") == gate.count("task_pieces") == 0


ALTERED = {
    "a byte": "UPDATE task_pieces SET sealed = substr(sealed, 1, 20) || x'00' || substr(sealed, 22) WHERE number = 1",
    "the end": "UPDATE task_pieces SET sealed = substr(sealed, 1, 12) WHERE number = 1",
    "all": "UPDATE task_pieces SET sealed = x'' WHERE number = 2",
    "put in the place of another": "UPDATE task_pieces SET sealed = (SELECT sealed FROM task_pieces WHERE number = 1) "
    "WHERE number = 2",
    "another number": "UPDATE task_pieces SET number = 9 WHERE number = 2",
    "removed": "DELETE FROM task_pieces WHERE number = 1",
    "the last removed": "DELETE FROM task_pieces WHERE number = 2",
    "words removed": "DELETE FROM task_pieces WHERE number = 0",
}


@pytest.mark.parametrize("change", ALTERED.values(), ids=ALTERED.keys())
async def test_what_was_altered_beside_riskgate_is_said_to_be_lost(gate, ana, change):
    task = await ana.begin()
    for call_id in ("c1", "c2"):
        await ana.observe(task, call_id, result_text=f"text of {call_id}")
    gate.database.write_sync(lambda c: c.execute(sa.text(change)))
    with pytest.raises(DataLoss, match=task):
        await gate.riskgate.tasks.index_for(ANA, task, "t1")


async def test_what_was_sealed_for_another_user_opens_for_nobody_else(gate, ana):
    mine, theirs = await ana.begin(), await gate.person("ben").begin()
    change = sa.text("UPDATE task_pieces SET task_id = :to WHERE task_id = :from")
    gate.database.write_sync(lambda c: c.execute(sa.text("DELETE FROM task_pieces WHERE task_id = :id"), {"id": mine}))
    gate.database.write_sync(lambda c: c.execute(change, {"to": mine, "from": theirs}))
    with pytest.raises(DataLoss):
        await gate.riskgate.tasks.index_for(ANA, mine, "t1")


async def test_the_keys_of_another_riskgate_open_nothing(make_gate, tmp_path):
    gate = await make_gate("one")
    task = await gate.person("ana").begin()
    other = await make_gate("two")
    rows = gate.database.read_sync(
        lambda c: [c.execute(sa.text(f"SELECT * FROM {name}")).all() for name in ("tasks", "task_pieces")]
    )

    def put(connection) -> None:
        for name, found in zip(("tasks", "task_pieces"), rows, strict=True):
            table = sa.Table(name, sa.MetaData(), autoload_with=connection)
            connection.execute(table.insert(), [row._asdict() for row in found])

    other.database.write_sync(put)
    with pytest.raises(DataLoss):
        await other.riskgate.tasks.index_for(ANA, task, "t1")


async def test_nothing_is_decided_by_a_task_that_cannot_be_opened(gate, ana, call, refused):
    task = await ana.begin()
    await ana.observe(task, result_text="x")
    gate.database.write_sync(lambda c: c.execute(sa.text(ALTERED["a byte"])))
    refusal = await refused(ana.evaluate(call(*READ), task_id=task))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.DATA_LOSS, "INTERNAL")
    assert task in refusal.message
    assert gate.count("decisions") == 0
    assert (await ana.evaluate(call(*READ), task_id=await ana.begin(request="request-2"))).permit


async def test_pieces_that_another_version_kept_are_lost_and_not_misread(gate, ana, monkeypatch):
    task = await ana.begin()
    earlier = b"\x01" + json.dumps({"k": "words", "t": []}).encode()
    for number, kept in enumerate([packed({"k": "words", "of": "another day"})[0], earlier]):
        monkeypatch.setattr("phylactery_riskgate.tasks.service.packed", lambda _, kept=kept: (kept, len(kept)))
        other = await ana.begin(request=f"request-{number + 2}")
        monkeypatch.undo()
        assert await gate.riskgate.tasks.index_for(ANA, task, "t1")
        with pytest.raises(DataLoss, match="another data key or version"):
            await gate.riskgate.tasks.index_for(ANA, other, "t1")
