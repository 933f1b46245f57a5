"""Executed nodes of a run: stored atomically with their checkpoint, bounded, and read without extra queries."""

from __future__ import annotations

import itertools
import signal
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa
from alembic import command
from grpc import aio
from phylactery.agent.v1 import run_pb2, run_pb2_grpc
from phylactery_agent.checkpoints import rows
from phylactery_agent.ports import NodeStep
from phylactery_agent.runtime.turn.trail import MAX_KEPT, RunTrail
from phylactery_chassis.db.migrations import _config
from phylactery_chassis.errors import Unavailable

from tests.support.agent.process import AgentProcess
from tests.support.agent.stores import Stores
from tests.support.agent.system import DONE, Person, System, approval_of, open_system, refused
from tests.support.servers.postgres import brief_database

WRITE = 'escribe "hola" en notas.txt'


async def steps_of(system: System, person: Person, run_id: str, **fields: Any) -> run_pb2.ListRunStepsResponse:
    stub = run_pb2_grpc.RunServiceStub(system.agent_channel)
    request = run_pb2.ListRunStepsRequest(run_id=run_id, **fields)
    return await stub.ListRunSteps(request, metadata=person.metadata, timeout=60)


def step(graph_step: int, node: str = "Router", **changes: Any) -> NodeStep:
    return NodeStep(node, graph_step, 1, 2, ("Finalizer",), **changes)


@pytest.mark.slow
async def test_every_node_of_a_run_is_listed_in_order_over_all_its_turns(system: System, ana: Person) -> None:
    asked = await ana.say(WRITE)
    approval_id, code = approval_of(asked)
    done = await ana.say(f"APROBAR {approval_id} {code}")
    assert (done.run.id, done.run.status) == (asked.run.id, DONE)
    shown = (await steps_of(system, ana, asked.run.id)).run_steps
    nodes = [one.node for one in shown]
    assert nodes[:2] == ["Router", "Planner"]
    assert nodes.count("Router") == nodes.count("Finalizer") == 2
    assert [one.superstep for one in shown] == list(range(1, len(shown) + 1))
    for before, after in itertools.pairwise(shown):
        assert list(before.next_nodes) == ([after.node] if before.turn_id == after.turn_id else [])
        assert before.start_time.ToMicroseconds() <= after.start_time.ToMicroseconds()
    assert len({one.turn_id for one in shown}) == 2
    assert all(one.duration_us >= 0 for one in shown)
    [call] = done.run.tool_calls
    assert {one.tool_call_id for one in shown if one.node == "Tools"} == {call.tool_call_id}
    ends = [one.finish_reason for one in shown if not one.next_nodes]
    assert ends == ["AWAITING_APPROVAL", "ANSWERED"]


async def test_steps_are_paged_oldest_first_and_only_ones_own_are_found(system: System, ana: Person) -> None:
    run_id = (await ana.say("hola")).run.id
    whole = (await steps_of(system, ana, run_id)).run_steps
    first = await steps_of(system, ana, run_id, page_size=1)
    rest = await steps_of(system, ana, run_id, page_size=500, page_token=first.next_page_token)
    assert [*first.run_steps, *rest.run_steps] == list(whole)
    assert (len(first.run_steps), rest.next_page_token) == (1, "")
    with pytest.raises(aio.AioRpcError) as error:
        await steps_of(system, ana, run_id, page_token="WzFd")
    assert refused(error.value).fields == ["page_token"]
    for stranger in (system.person("ben"), system.person("ana", "other")):
        with pytest.raises(aio.AioRpcError) as error:
            await steps_of(system, stranger, run_id)
        assert error.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_node_whose_checkpoint_was_not_kept_leaves_no_step_and_runs_again(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, times = rows.put, []

    def put(connection: sa.Connection, *given: Any) -> None:
        real(connection, *given)
        times.append(connection.execute(sa.text("SELECT count(*) FROM agent_steps")).scalar())
        if len(times) == 2:
            raise Unavailable("STORE_UNAVAILABLE", "the commit fails here")

    monkeypatch.setattr(rows, "put", put)
    answer = await ana.say(WRITE)
    shown = (await steps_of(system, ana, answer.run.id)).run_steps
    assert [one.superstep for one in shown] == list(range(1, len(shown) + 1))
    assert [one.node for one in shown].count("Planner") == 1
    assert times[1] > times[0]  # what was undone was more than what had been kept
    run = await ana.run(answer.run.id)
    assert (run.budget.supersteps.used, run.budget.tool_calls.used) == (len(shown), 1)
    assert (run.budget.supersteps.limit, run.budget.tool_calls.limit) == (25, 12)


@pytest.mark.slow
async def test_a_run_killed_between_effect_and_checkpoint_counts_each_kept_superstep_once(tmp_path: Path) -> None:
    async with open_system(tmp_path) as system:
        ana = system.person("ana")
        folder = tmp_path / "killed"
        folder.mkdir()
        process = AgentProcess(system, folder, "agent.10")
        async with await process.channel() as channel:
            with pytest.raises(aio.AioRpcError):
                await system.through(channel, ana).say(WRITE, request_id="write-once")
        assert process.child.wait(60) == -signal.SIGKILL
        process = AgentProcess(system, folder)
        async with await process.channel() as channel:
            answer = await system.through(channel, ana).say(WRITE, request_id="write-once")
            assert answer.run.status == DONE
            request = run_pb2.ListRunStepsRequest(run_id=answer.run.id)
            shown = (await run_pb2_grpc.RunServiceStub(channel).ListRunSteps(request, metadata=ana.metadata)).run_steps
            assert [one.superstep for one in shown] == list(range(1, len(shown) + 1))
            assert [one.node for one in shown].count("Tools") == 1
            asked = run_pb2.GetRunRequest(run_id=answer.run.id)
            run = (await run_pb2_grpc.RunServiceStub(channel).GetRun(asked, metadata=ana.metadata)).run
            assert (run.budget.supersteps.used, run.budget.tool_calls.used) == (len(shown), 1)
        process.end()


def goes_on() -> None:
    """Stop nothing."""


async def test_nodes_side_by_side_share_a_superstep(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    trail, writes = RunTrail(stores.clock, claim.lease, supersteps=7, begins=goes_on), stores.writes(claim.lease)
    for number, node in ((3, "a"), (3, "b"), (4, "c")):
        trail.note(step(number, node))
        trail.hold(writes)
    await writes.flush()
    trail.hold(writes)
    await writes.flush()
    assert sorted(stores.rows("agent_steps", "superstep, position, node")) == [(8, 0, "a"), (8, 1, "b"), (9, 0, "c")]
    assert stores.rows("agent_runs", "supersteps") == [(9,)]


async def test_a_run_keeps_a_bounded_number_of_steps(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    trail, writes = RunTrail(stores.clock, claim.lease, supersteps=0, begins=goes_on), stores.writes(claim.lease)
    for number in range(MAX_KEPT + 40):
        trail.note(step(number, finish_reason="x" * 100))
        if number % 20 == 19:
            trail.hold(writes)
            await writes.flush()
    kept = sorted(number for (number,) in stores.rows("agent_steps", "superstep"))
    assert kept == list(range(41, MAX_KEPT + 41))
    assert stores.rows("agent_runs", "supersteps") == [(MAX_KEPT + 40,)]


async def test_the_react_graph_leaves_the_same_trail(system: System, ana: Person) -> None:
    system.sandbox.joinpath("notas.txt").write_text("contenido")
    done = await ana.say("lee notas.txt", graph="react")
    assert (done.run.graph, done.run.status) == ("react", DONE)
    shown = (await steps_of(system, ana, done.run.id)).run_steps
    assert {one.tool_call_id for one in done.run.tool_calls} <= {one.tool_call_id for one in shown}
    assert len(done.run.tool_calls) > 1
    assert [one.superstep for one in shown] == list(range(1, len(shown) + 1))
    assert [bool(one.next_nodes) for one in shown] == [True] * (len(shown) - 1) + [False]
    assert shown[-1].finish_reason == done.run.reason


def test_an_older_database_learns_whose_its_calls_are_and_how_many_each_run_made(
    postgres_or_sqlite: str,
) -> None:
    engine = sa.create_engine(postgres_or_sqlite)
    upgrade_to(engine, "0008")
    with engine.begin() as connection:
        for run_id, user, calls in (("run_1", "ana", 2), ("run_2", "ben", 0)):
            insert_old(connection, "agent_runs", run_id=run_id, thread_key=run_id, tenant="acme", user_id=user)
            for number in range(calls):
                insert_old(connection, "agent_tool_calls", run_id=run_id, tool_call_id=f"c{number}")
    upgrade_to(engine, "head")
    with engine.begin() as connection:
        runs = connection.execute(sa.text("SELECT run_id, tool_calls, supersteps, retry_of FROM agent_runs")).all()
        calls = connection.execute(sa.text("SELECT tool_call_id, tenant, user_id FROM agent_tool_calls")).all()
    engine.dispose()
    assert sorted(map(tuple, runs)) == [("run_1", 2, 0, ""), ("run_2", 0, 0, "")]
    assert sorted(map(tuple, calls)) == [("c0", "acme", "ana"), ("c1", "acme", "ana")]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def postgres_or_sqlite(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'old.db'}"
    return brief_database(request.getfixturevalue("postgres_url"))


def upgrade_to(engine: sa.Engine, revision: str) -> None:
    with as_file(files("phylactery_agent") / "migrations" / "versions") as versions, engine.begin() as connection:
        config = _config(versions)
        config.attributes.update(connection=connection, version_table="phylactery_agent_version")
        command.upgrade(config, revision)


def insert_old(connection: sa.Connection, table: str, **given: str) -> None:
    """Add a row of which only these columns matter."""
    values: dict[str, Any] = {}
    for column in sa.inspect(connection).get_columns(table):
        if not column["nullable"] and column["default"] is None:
            values[column["name"]] = 0 if column["type"].python_type is int else "done"[: column["type"].length or 4]
    values |= given
    names = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.execute(sa.text(f"INSERT INTO {table} ({names}) VALUES ({marks})"), values)
