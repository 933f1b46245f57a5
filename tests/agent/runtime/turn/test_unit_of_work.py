"""A turn's unit of work: deferred and durable writes are committed in order, under one lease check, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from phylactery_agent.checkpoints.saver import Checkpoints, held_by
from phylactery_agent.ports import LeaseLostError, Told
from phylactery_agent.runtime.storage.events import ThreadEvents
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites
from phylactery_chassis.errors import Unavailable
from sqlalchemy.engine import Connection

from tests.support.agent.stores import T1, Stores, call


class Counted(TypedDict):
    """A state with a value that changes at each step, one that never does, and a large one."""

    count: int
    text: str
    large: list[str]


def graph(stores: Stores, steps: int, seen: list[int]) -> Any:
    async def step(state: Counted) -> Command[Any]:
        seen.append(len(stores.rows("agent_checkpoints")))
        more = state["count"] + 1 < steps
        update: dict[str, Any] = {"count": state["count"] + 1}
        if state["count"] == 0:
            update["large"] = ["x" * 300]
        return Command(goto="step" if more else "__end__", update=update)

    built = StateGraph(Counted)
    built.add_node("step", step, destinations=("step", "__end__"))
    built.add_edge(START, "step")
    return built.compile(checkpointer=Checkpoints(stores.database, keep_writes=False))


def told(stores: Stores) -> list[str]:
    return [once for _, once in sorted(stores.rows("agent_events", "sequence, once"))]


def config() -> dict[str, Any]:
    return {"configurable": {"thread_id": T1}}


@pytest.mark.usefixtures("patient")
async def test_what_is_held_is_written_before_what_it_waits_for_and_in_its_order(stores: Stores, claim: Claim) -> None:
    writes = stores.writes(claim.lease)
    await ThreadEvents(writes).emit(Told("step", {"step_id": "a"}, key="a"))
    await ThreadEvents(writes).emit(Told("step", {"step_id": "b"}, key="b"))
    assert stores.rows("agent_events", "kind") == [("run_started",)]
    seen = await writes.write(lambda connection, _now: list(_events(connection)))
    assert seen == ["run_started", "a", "b"]
    assert told(stores) == ["run_started", "a", "b"]


def _events(connection: Connection) -> Iterator[str]:
    for row in connection.exec_driver_sql("SELECT once FROM agent_events ORDER BY sequence"):
        yield row[0]


async def test_what_is_held_is_written_by_itself_where_nothing_else_is(stores: Stores, claim: Claim) -> None:
    writes = stores.writes(claim.lease)
    with stores.news.listen(T1) as news:
        await ThreadEvents(writes).emit(Told("step", {"step_id": "a"}, key="a"))
        await asyncio.wait_for(news.wait(), 20)
    assert told(stores) == ["run_started", "a"]


@pytest.mark.usefixtures("patient")
async def test_a_stale_holder_writes_nothing_of_what_it_held(stores: Stores, claim: Claim) -> None:
    writes = stores.writes(claim.lease)
    await ThreadEvents(writes).emit(Told("message", {"text": "zombie"}, key="z"))
    stores.pass_time(31)
    await stores.claimed(holder="other")
    for _ in range(2):
        with pytest.raises(LeaseLostError):
            await writes.flush()
    assert told(stores) == ["run_started"]


@pytest.mark.usefixtures("patient")
async def test_work_that_is_refused_leaves_what_was_held_to_the_next_write(stores: Stores, claim: Claim) -> None:
    writes = stores.writes(claim.lease)
    await ThreadEvents(writes).emit(Told("step", {"step_id": "a"}, key="a"))

    def refused(_connection: Connection, _now: int) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await writes.write(refused)
    assert told(stores) == ["run_started"]
    await writes.flush()
    assert told(stores) == ["run_started", "a"]


@pytest.mark.usefixtures("patient")
async def test_a_turn_stops_where_something_held_failed_while_more_was_held(
    stores: Stores, claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = stores.writes(claim.lease)
    writes.hold(lambda _connection, _now: None)

    async def fails(_work: object) -> None:
        writes.hold(lambda _connection, _now: None)
        raise Unavailable("STORE_UNAVAILABLE", "no")

    with monkeypatch.context() as patched:
        patched.setattr(stores.database, "write", fails)
        with pytest.raises(Unavailable):
            await writes.flush()
    with pytest.raises(Unavailable):
        await writes.write(lambda _connection, _now: None)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("steps", [1, 3])
async def test_steps_nobody_heard_of_are_one_checkpoint_with_every_value(
    stores: Stores, claim: Claim, steps: int
) -> None:
    writes, seen = stores.writes(claim.lease), []
    built = graph(stores, steps, seen)
    with held_by(writes):
        await built.ainvoke({"count": 0, "text": "y" * 300, "large": []}, config(), durability="sync")
        assert seen == [0] * steps
        await stores.ledger_of(writes).propose(call(), plan_step="s1")
    assert len(stores.rows("agent_checkpoints")) == 1
    state = await built.aget_state(config())
    assert state.values == {"count": steps, "text": "y" * 300, "large": ["x" * 300]}


@pytest.mark.usefixtures("patient")
async def test_a_state_that_is_asked_for_is_written_first(stores: Stores, claim: Claim) -> None:
    writes = stores.writes(claim.lease)
    built = graph(stores, 2, [])
    with held_by(writes):
        await built.ainvoke({"count": 0, "text": "", "large": []}, config(), durability="sync")
        assert (await built.aget_state(config())).values["count"] == 2
    assert len(stores.rows("agent_checkpoints")) == 1


@pytest.mark.usefixtures("patient")
async def test_of_a_turn_that_ended_no_state_is_written(stores: Stores, claim: Claim) -> None:
    writes = stores.writes(claim.lease)
    with held_by(writes):
        await graph(stores, 2, []).ainvoke({"count": 0, "text": "", "large": []}, config(), durability="sync")
    await stores.end(claim, writes=writes)
    assert stores.rows("agent_checkpoints") == []
    assert stores.rows("agent_checkpoint_blobs") == []


async def test_a_turn_that_waits_leaves_its_state(stores: Stores, claim: Claim) -> None:
    writes = stores.writes(claim.lease)
    built = graph(stores, 2, [])
    with held_by(writes):
        await built.ainvoke({"count": 0, "text": "", "large": []}, config(), durability="sync")
    await stores.end(claim, "suspended", writes=writes)
    assert (await built.aget_state(config())).values["count"] == 2


async def test_a_fault_in_what_was_held_does_not_hide_that_the_turn_ended(stores: Stores, claim: Claim) -> None:
    writes = stores.writes(claim.lease)

    def faulty(_connection: Connection, _now: int) -> None:
        raise ZeroDivisionError

    writes.hold(faulty)
    writes._flush_soon()
    assert writes._flushing is not None
    await asyncio.wait({writes._flushing}, timeout=20)
    assert isinstance(writes._flushing.exception(), ZeroDivisionError)
    await writes.close()


async def test_closed_writes_write_nothing_more_by_themselves(stores: Stores, claim: Claim) -> None:
    writes = stores.writes(claim.lease)
    writes.hold(lambda connection, _now: connection.exec_driver_sql("DELETE FROM agent_events"))
    await writes.close()
    other = TurnWrites(stores.database, stores.clock, claim.lease, written=lambda: None)
    with stores.news.listen(T1) as news:
        follower = stores.writes(claim.lease)
        follower.hold(lambda _connection, _now: None)
        await asyncio.wait_for(news.wait(), 20)  # begun later, and written: the closed ones would have been, too
    await other.flush()
    assert stores.rows("agent_events", "kind") == [("run_started",)]
