"""The checkpoint saver beyond LangGraph's suite: clock-independent order, fencing, plain data, few writes."""

from __future__ import annotations

import asyncio
import contextlib
import operator
import sqlite3
from pathlib import Path
from typing import Annotated, Any, TypedDict

import ormsgpack
import pytest
import sqlalchemy as sa
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple
from langgraph.graph import END, START, StateGraph
from phylactery_agent.checkpoints import rows
from phylactery_agent.checkpoints.saver import Checkpoints, held_by
from phylactery_agent.checkpoints.serializer import NotPlainError
from phylactery_agent.ports import LeaseLostError
from phylactery_chassis.errors import DataLoss
from sqlalchemy.engine import Connection

from tests.support.agent.stores import Stores, opened

LONG = "a value too long to lie in the checkpoint itself " * 10


def config_of(thread: str = "t", checkpoint_id: str = "", namespace: str = "") -> RunnableConfig:
    named = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": named | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def checkpoint_of(checkpoint_id: str, values: dict[str, Any] | None = None, version: int = 1) -> Checkpoint:
    values = values or {}
    return Checkpoint(
        v=1,
        id=checkpoint_id,
        ts="2026-11-22T00:00:00+00:00",
        channel_values=values,
        channel_versions=dict.fromkeys(values, version),
        versions_seen={},
        updated_channels=None,
    )


async def put(
    saver: Checkpoints, checkpoint: Checkpoint, *, parent: str = "", thread: str = "t", **metadata: Any
) -> None:
    versions = checkpoint["channel_versions"]
    await saver.aput(config_of(thread, parent), checkpoint, {"source": "loop", "step": 0, **metadata}, versions)


async def head(saver: Checkpoints, thread: str = "t") -> CheckpointTuple:
    found = await saver.aget_tuple(config_of(thread))
    assert found is not None
    return found


async def listed(saver: Checkpoints, config: RunnableConfig | None = None, **asked: Any) -> list[str]:
    return [one.checkpoint["id"] async for one in saver.alist(config or config_of(), **asked)]


async def test_the_newest_is_the_one_stored_last_whatever_its_id_says(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    for checkpoint_id in ("c9", "c5", "c1"):  # a clock that was set back makes ids that go down
        await put(saver, checkpoint_of(checkpoint_id))
    assert (await head(saver)).checkpoint["id"] == "c1"
    assert await listed(saver) == ["c1", "c5", "c9"]
    await put(saver, checkpoint_of("c9", {"a": "again"}))
    assert (await head(saver)).checkpoint["id"] == "c1", "the same id again keeps its place"
    again = await saver.aget_tuple(config_of(checkpoint_id="c9"))
    assert again is not None
    assert again.checkpoint["channel_values"] == {"a": "again"}


@pytest.mark.usefixtures("patient")
async def test_a_lost_lease_stops_its_own_write_and_not_its_neighbours(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    await stores.accepted()
    claim = await stores.claimed()
    writes = stores.writes(claim.lease)
    with held_by(writes):
        await put(saver, checkpoint_of("stale"), thread="stale")
    stores.pass_time(31)
    await stores.claimed(holder="other")
    others = [put(saver, checkpoint_of("c1"), thread=f"t{number}") for number in range(5)]
    ended = await asyncio.gather(writes.flush(), *others, return_exceptions=True)
    assert isinstance(ended[0], LeaseLostError)
    assert ended[1:] == [None] * 5
    assert await saver.aget_tuple(config_of("stale")) is None
    assert [(await head(saver, f"t{number}")).checkpoint["id"] for number in range(5)] == ["c1"] * 5


async def test_what_a_task_wrote_and_the_checkpoint_it_led_to_share_a_transaction(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    await put(saver, checkpoint_of("c1"))
    commits: list[int] = []
    sa.event.listen(stores.database.engine, "commit", lambda _connection: commits.append(1))
    await asyncio.gather(
        saver.aput_writes(config_of(checkpoint_id="c1"), [("a", 1)], "task"),
        put(saver, checkpoint_of("c2"), parent="c1"),
    )
    assert len(commits) == 1


async def test_a_value_that_did_not_change_is_written_once(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    first = checkpoint_of("c1", {"long": LONG, "short": "s"})
    await put(saver, first)
    second = checkpoint_of("c2", {"long": LONG, "short": "s"})
    await saver.aput(config_of(checkpoint_id="c1"), second, {"source": "loop", "step": 1}, {})
    assert (await head(saver)).checkpoint["channel_values"] == {"long": LONG, "short": "s"}
    assert stores.rows("agent_checkpoint_blobs", "channel") == [("long",)]


async def test_two_branches_from_one_checkpoint_keep_their_own_values(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    await put(saver, checkpoint_of("c1"))
    versions = [saver.get_next_version(1, None) for _ in range(2)]
    assert len(set(versions)) == 2
    assert all(saver.get_next_version(version, None) > max(versions) for version in versions)
    for number, version in enumerate(versions):
        await put(saver, checkpoint_of(f"b{number}", {"long": LONG + str(number)}, version), parent="c1")
    for number in range(2):
        found = await saver.aget_tuple(config_of(checkpoint_id=f"b{number}"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"long": LONG + str(number)}


async def test_a_value_that_is_gone_is_said_and_not_left_out(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    await put(saver, checkpoint_of("c1", {"long": LONG}))
    await stores.database.write(lambda c: c.execute(sa.text("DELETE FROM agent_checkpoint_blobs")))
    with pytest.raises(DataLoss, match="missing"):
        await head(saver)


@pytest.mark.parametrize(
    "blob", [b"\xc1", ormsgpack.packb(ormsgpack.Ext(0, b"os.system")), ormsgpack.packb(["no", "checkpoint"])]
)
async def test_a_stored_blob_that_is_no_plain_data_is_refused(stores: Stores, blob: bytes) -> None:
    saver = Checkpoints(stores.database)
    await put(saver, checkpoint_of("c1"))
    change = sa.text("UPDATE agent_checkpoints SET body = :body")
    await stores.database.write(lambda c: c.execute(change, {"body": blob}))
    with pytest.raises(NotPlainError):
        await head(saver)


async def test_a_state_that_is_no_plain_data_is_not_stored(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    with pytest.raises(NotPlainError):
        await put(saver, checkpoint_of("c1", {"path": Path("/etc")}))
    assert await saver.aget_tuple(config_of()) is None


async def test_two_processes_that_write_one_thread_at_once_leave_no_gap(stores: Stores) -> None:
    other = opened(stores.database.engine.url.render_as_string(hide_password=False))
    try:
        savers = [Checkpoints(stores.database), Checkpoints(other)]
        await asyncio.gather(*(put(savers[number % 2], checkpoint_of(f"c{number}")) for number in range(40)))
    finally:
        other.close()
    sequences = sorted(row[0] for row in stores.rows("agent_checkpoints", "sequence"))
    assert sequences == list(range(1, 41))


async def test_a_list_goes_on_beyond_a_page_and_stops_where_it_is_told(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    for number in range(120):
        await put(saver, checkpoint_of(f"c{number:03}"), kind="even" if number % 2 == 0 else "odd")
    newest_first = [f"c{number:03}" for number in reversed(range(120))]
    assert await listed(saver) == newest_first
    assert await listed(saver, limit=3) == newest_first[:3]
    assert await listed(saver, before=config_of(checkpoint_id="c010")) == newest_first[-10:]
    assert await listed(saver, filter={"kind": "odd"}, limit=55) == newest_first[::2][:55]
    assert await listed(saver, config_of(checkpoint_id="c007")) == ["c007"]
    assert await listed(saver, limit=0) == []


class _Sum(TypedDict, total=False):
    total: Annotated[int, operator.add]
    text: str


async def test_a_task_that_was_done_beside_one_that_failed_is_not_run_again(stores: Stores) -> None:
    ran: list[str] = []

    async def good(_state: _Sum) -> dict[str, Any]:
        ran.append("good")
        return {"total": 1, "text": LONG}

    async def bad(_state: _Sum) -> dict[str, Any]:
        ran.append("bad")
        if ran.count("bad") == 1:
            await asyncio.sleep(0)
            raise RuntimeError("the first time")
        return {"total": 10}

    def graph() -> Any:
        made = StateGraph(_Sum)
        made.add_node("good", good)
        made.add_node("bad", bad)
        for name in ("good", "bad"):
            made.add_edge(START, name)
            made.add_edge(name, END)
        return made.compile(checkpointer=Checkpoints(stores.database))

    with pytest.raises(RuntimeError, match="first time"):
        await graph().ainvoke({"total": 100}, config_of(), durability="sync")
    state = await graph().ainvoke(None, config_of(), durability="sync")
    assert state == {"total": 111, "text": LONG}
    assert sorted(ran) == ["bad", "bad", "good"]


async def test_what_is_kept_of_a_line_is_its_newest_and_the_values_that_needs(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    for number in range(3):
        await put(saver, checkpoint_of(f"c{number}", {"long": f"{LONG}{number}"}, version=number + 1))
    await saver.aprune(["t"])
    assert await listed(saver) == ["c2"]
    assert (await head(saver)).checkpoint["channel_values"] == {"long": f"{LONG}2"}
    assert len(stores.rows("agent_checkpoint_blobs", "channel")) == 1
    with pytest.raises(ValueError, match="strategy"):
        await saver.aprune(["t"], strategy="some")
    assert await saver.forget("t") == 1
    assert [stores.rows(name, "thread_id") for name in ("agent_checkpoints", "agent_checkpoint_blobs")] == [[], []]


async def test_checkpoints_of_many_threads_at_once_are_written_in_few_statements(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    statements: list[str] = []
    sa.event.listen(stores.database.engine, "commit", lambda _connection: statements.append("commit"))
    await asyncio.gather(*(put(saver, checkpoint_of("c1", {"long": LONG}), thread=f"t{n}") for n in range(40)))
    assert len(statements) <= 2, "what comes at once shares a transaction"
    for number in range(40):
        newest = await head(saver, f"t{number}")
        assert (newest.checkpoint["id"], newest.checkpoint["channel_values"]) == ("c1", {"long": LONG})


async def test_several_checkpoints_of_one_line_in_one_transaction_keep_their_order(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    ids = [f"c{number}" for number in (3, 1, 2)]
    await asyncio.gather(*(put(saver, checkpoint_of(one)) for one in ids), put(saver, checkpoint_of("x"), thread="t2"))
    assert await listed(saver) == ids[::-1]
    found = sorted(stores.rows("agent_checkpoints", "sequence, checkpoint_id, thread_id"))
    assert [row[:2] for row in found if row[1] != "x"] == [(1, "c3"), (2, "c1"), (3, "c2")]


async def test_a_job_that_fails_takes_back_its_own_checkpoint_alone(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    row = rows.Row(rows.Place("bad", ""), 0, "c1", "", "", b"body", b"metadata")

    def fails(connection: Connection) -> None:
        rows.put(connection, row, {("a", "1"): b"value"})
        raise ValueError("no")

    others = [put(saver, checkpoint_of("c1"), thread=f"t{number}") for number in range(3)]
    ended = await asyncio.gather(stores.database.write(fails), *others, return_exceptions=True)
    assert isinstance(ended[0], ValueError)
    assert ended[1:] == [None] * 3
    assert sorted(stores.rows("agent_checkpoints", "thread_id")) == [("t0",), ("t1",), ("t2",)]
    assert stores.rows("agent_checkpoint_blobs") == []


async def test_what_is_dropped_in_the_transaction_that_wrote_it_is_gone(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    await asyncio.gather(
        put(saver, checkpoint_of("c1", {"long": LONG})),
        put(saver, checkpoint_of("c1"), thread="t2"),
        saver.adelete_thread("t"),
        put(saver, checkpoint_of("c1"), thread="t3"),
    )
    assert await saver.aget_tuple(config_of()) is None
    assert stores.rows("agent_checkpoint_blobs") == []
    assert sorted(stores.rows("agent_checkpoints", "thread_id")) == [("t2",), ("t3",)]


async def test_one_statement_the_store_refuses_fails_no_neighbour(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    bad = rows.Row(rows.Place("bad", ""), 0, None, "", "", b"body", b"metadata")  # type: ignore[arg-type]
    others = [put(saver, checkpoint_of("c1"), thread=f"t{number}") for number in range(3)]
    ended = await asyncio.gather(
        stores.database.write(lambda connection: rows.put(connection, bad, {})), *others, return_exceptions=True
    )
    assert isinstance(ended[0], Exception)
    assert ended[1:] == [None] * 3
    assert sorted(stores.rows("agent_checkpoints", "thread_id")) == [("t0",), ("t1",), ("t2",)]


async def test_what_a_task_wrote_first_stays_and_special_values_stand_beside_it(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    await put(saver, checkpoint_of("c1"))
    place = config_of(checkpoint_id="c1")
    await saver.aput_writes(place, [("__interrupt__", "why")], "task", "path")
    await saver.aput_writes(place, [("a", 1), ("b", [LONG]), ("a", 2)], "task", "path")
    await saver.aput_writes(place, [("a", 9), ("b", 9), ("c", 9), ("d", 9)], "task", "path")
    await saver.aput_writes(place, [("__interrupt__", "why again")], "task", "path")
    assert (await head(saver)).pending_writes == [
        ("task", "__interrupt__", "why again"),
        ("task", "a", 1),
        ("task", "b", [LONG]),
        ("task", "a", 2),
    ]
    assert len(stores.rows("agent_checkpoint_writes", "position")) == 2, "the results of a task are one row"


async def test_what_is_written_for_no_task_grows_and_is_not_written_twice(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    await put(saver, checkpoint_of("c1"))
    place, no_task = config_of(checkpoint_id="c1"), "00000000-0000-0000-0000-000000000000"
    await saver.aput_writes(place, [("a", 1)], no_task)
    await saver.aput_writes(place, [("a", 1), ("b", 2), ("__resume__", ["yes"])], no_task)
    written = (await head(saver)).pending_writes or []
    assert sorted(channel for _, channel, _ in written) == ["__resume__", "a", "b"]


async def test_results_of_a_task_as_they_were_stored_one_by_one_are_still_read(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    await put(saver, checkpoint_of("c1"))
    place = rows.Place("t", "")
    old = [rows.Write("task", number, "", channel, ormsgpack.packb(number)) for number, channel in enumerate("ab")]
    await stores.database.write(lambda c: rows.put_writes(c, place, "c1", old, replace=False))
    assert (await head(saver)).pending_writes == [("task", "a", 0), ("task", "b", 1)]


async def test_results_that_were_damaged_are_refused(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    await put(saver, checkpoint_of("c1"))
    await saver.aput_writes(config_of(checkpoint_id="c1"), [("a", 1)], "task")
    change = sa.text("UPDATE agent_checkpoint_writes SET body = :body")
    await stores.database.write(lambda c: c.execute(change, {"body": ormsgpack.packb(["a", 1])}))
    with pytest.raises(NotPlainError, match="damaged"):
        await head(saver)


async def test_a_file_whose_values_lay_by_their_keys_keeps_them_all(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    database = opened(url)
    database.migrate("phylactery_agent")
    saver = Checkpoints(database)
    await put(saver, checkpoint_of("c1", {"long": LONG}))
    await saver.aput_writes(config_of(checkpoint_id="c1"), [("a", [LONG])], "task")
    database.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "agent.db")) as file, file:
        for name in ("agent_checkpoint_blobs", "agent_checkpoint_writes"):
            (made,) = file.execute("SELECT sql FROM sqlite_master WHERE name = ?", [name]).fetchone()
            file.execute(f"ALTER TABLE {name} RENAME TO now")
            file.execute(f"{made} WITHOUT ROWID")
            file.execute(f"INSERT INTO {name} SELECT * FROM now")
            file.execute("DROP TABLE now")
        file.execute("UPDATE phylactery_agent_version SET version_num = '0013'")
        for index in ("agent_inbox_texts", "agent_tool_calls_kept", "agent_tool_calls_owed"):
            file.execute(f"DROP INDEX {index}")
        file.execute("DROP INDEX agent_runs_active")
        file.execute("DROP INDEX agent_runs_one_served")
        file.execute("CREATE UNIQUE INDEX agent_runs_one_active ON agent_runs (thread_key)")
        for table, column in (
            *(("agent_tool_calls", one) for one in ("turn_id", "undo", "undone_by", "object_id", "told")),
            ("agent_runs", "card"),
            ("agent_runs", "cancel_reason"),
            ("agent_inbox", "form"),
            ("agent_inbox", "attachments"),
            ("agent_inbox", "others"),
            ("agent_inbox", "message_starts"),
            ("agent_inbox", "over_share"),
            ("agent_inbox", "sender_phone"),
            ("agent_inbox", "text_erased"),
            ("agent_threads", "handed_off"),
            ("agent_tool_calls", "content_hash"),
            ("agent_tool_calls", "output_hash"),
        ):
            file.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        escalations = ("escalations", "escalation_entries", "escalation_queues")
        for table in ("form_sessions", *escalations, "lifts", "shares", "form_submissions"):
            file.execute(f"DROP TABLE agent_{table}")
    database = opened(url)
    database.migrate("phylactery_agent")
    found = await head(Checkpoints(database))
    database.close()
    assert found.checkpoint["channel_values"] == {"long": LONG}
    assert found.pending_writes == [("task", "a", [LONG])]
    with contextlib.closing(sqlite3.connect(tmp_path / "agent.db")) as file:
        query = "SELECT (SELECT rowid FROM agent_checkpoint_blobs), (SELECT rowid FROM agent_checkpoint_writes)"
        assert file.execute(query).fetchone() == (1, 1)


async def test_a_checkpoint_the_store_refuses_fails_none_of_those_it_came_with(stores: Stores) -> None:
    saver = Checkpoints(stores.database)
    good = [put(saver, checkpoint_of("c1"), thread=f"t{number}") for number in range(3)]
    ended = await asyncio.gather(
        good[0], put(saver, checkpoint_of("c1"), thread="\ud800"), *good[1:], return_exceptions=True
    )
    assert isinstance(ended[1], UnicodeEncodeError)
    assert [ended[0], *ended[2:]] == [None] * 3
    assert sorted(stores.rows("agent_checkpoints", "thread_id")) == [("t0",), ("t1",), ("t2",)]
    with pytest.raises(UnicodeEncodeError):
        await put(saver, checkpoint_of("c1"), thread="\ud800")
    assert stores.database.healthy, "a text no store takes says nothing of the store"
