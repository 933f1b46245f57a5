"""Storage of tasks: through indexes on either store, cached only while used, and not beyond their time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, Update
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.store import tasks as rows
from phylactery_riskgate.tasks import index_cache
from phylactery_riskgate.tasks.index_cache import TaskVault
from sqlalchemy.engine import Connection

from tests.support.riskgate.task_indexes import calls_in

ANA = Principal("ana", "acme", frozenset({"caller"}))
OFTEN = {name: one for name, one in vars(rows).items() if isinstance(one, Query | Update)}
SELDOM = {
    "find_over": lambda c: rows.find_over(c, 50, 10),
    "of a user": lambda c: rows.find_unended(c, "acme", 9, subject="ana", thread_id="", start_us=0, end_us=0, now_us=0),
    "of a thread": lambda c: rows.find_unended(
        c, "acme", 9, subject="", thread_id="t1", start_us=0, end_us=0, now_us=0
    ),
}
NUMBERS = {"now_us", "since", "now_pieces", "now_size", "end_us_1", "last_us", "until_us"}


@pytest.fixture
def database(tmp_path, shared_database) -> Iterator[Database]:
    """Forty users of five tenants with five tasks each, and three pieces in each of those."""
    opened = Database(shared_database or f"sqlite:///{tmp_path}/riskgate.db")
    opened.migrate(PACKAGE)
    opened.write_sync(fill)
    yield opened
    opened.close()


def fill(connection: Connection) -> None:
    for place in range(200):
        tenant, user = f"tenant-{place % 5}", f"user-{place % 40}"
        task = rows.Task(f"ta_{place}", tenant, user, f"t{place % 50}", f"r{place}", "", "", place, place, 0, 3, 9)
        rows.insert_task(connection, task, rows.PieceRow(task.id, 0, "", "", 0, cut=False, unproven=False, sealed=b"x"))
        for number in (1, 2):
            piece = rows.PieceRow(task.id, number, f"c{number}", "", 0, cut=False, unproven=False, sealed=b"x")
            rows.insert_piece(connection, task, piece, 3)
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("ANALYZE"))


def plan_of(connection: Connection, text: str, values: object) -> str:
    explain = "EXPLAIN QUERY PLAN " if connection.dialect.name == "sqlite" else "EXPLAIN "
    if connection.dialect.name == "postgresql":  # a table this small is read whole where that is allowed
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
    return "\n".join(str(line[-1]) for line in connection.exec_driver_sql(explain + text, values))


def check(plan: str) -> None:
    assert "tasks" in plan or "task_pieces" in plan
    assert "Seq Scan" not in plan, plan
    assert "SCAN" not in plan, plan


@pytest.mark.parametrize("name", OFTEN)
def test_no_statement_about_a_task_reads_a_whole_table(database, name):
    def work(connection: Connection) -> str:
        compiled = OFTEN[name]._statement.compile(dialect=connection.dialect)
        values = {key: 0 if key in NUMBERS else "" for key in compiled.params}
        order = getattr(compiled, "positiontup", None)
        return plan_of(connection, str(compiled), values if order is None else tuple(values[key] for key in order))

    check(database.write_sync(work))


@pytest.mark.parametrize("name", SELDOM)
def test_no_search_for_what_is_over_or_erased_reads_a_whole_table(database, name):
    said: list[tuple[str, object]] = []

    def work(connection: Connection) -> str:
        def note(_connection: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
            said.append((statement, parameters))

        sa.event.listen(connection, "before_cursor_execute", note)
        SELDOM[name](connection)
        sa.event.remove(connection, "before_cursor_execute", note)
        return "\n".join(plan_of(connection, text, values) for text, values in said)

    check(database.write_sync(work))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the pieces that were opened, as it happens."""
    numbers: list[int] = []
    open_piece = TaskVault.open

    def noted(vault, task, number, sealed):
        numbers.append(number)
        return open_piece(vault, task, number, sealed)

    monkeypatch.setattr(TaskVault, "open", noted)
    return numbers


async def ask(gate, task: str) -> list[str]:
    return calls_in(await gate.riskgate.tasks.index_for(ANA, task, "t1"))


async def test_a_piece_is_opened_once_however_often_the_task_is_asked_for(gate, ana, opened):
    task = await ana.begin()
    for number in range(5):
        await ana.observe(task, f"c{number}", result_text="x")
    assert await ask(gate, task) == await ask(gate, task) == [f"c{number}" for number in range(5)]
    assert opened == [0, 1, 2, 3, 4, 5]
    await ana.observe(task, "c5", result_text="x")
    await ask(gate, task)
    assert opened[6:] == [6]
    for number in range(6, 10):
        await ana.observe(task, f"c{number}", result_text="x")
    assert len(await ask(gate, task)) == 10
    assert opened[7:] == [7, 8, 9, 10]


async def test_an_index_nobody_asks_for_is_dropped_after_a_while(gate, ana, opened):
    used, idle = await ana.begin(request="r1"), await ana.begin(request="r2")
    await ask(gate, used)
    await ask(gate, idle)
    gate.clock.advance(599)
    await ask(gate, used)
    gate.clock.advance(2)
    await gate.riskgate.tasks.prune()
    del opened[:]
    await ask(gate, used)
    assert opened == []
    await ask(gate, idle)
    assert opened == [0]


async def test_memory_holds_what_was_used_last_and_no_more_than_fits(gate, ana, opened, monkeypatch):
    tasks = [await ana.begin(f"palabra{number}", request=f"r{number}") for number in range(3)]
    size = gate.database.read_sync(lambda c: c.execute(sa.text("SELECT max(size) FROM tasks")).scalar_one())
    monkeypatch.setattr(index_cache, "_KEEP_BYTES", 2 * size)
    for task in (tasks[0], tasks[1], tasks[0], tasks[2]):
        await ask(gate, task)
    del opened[:]
    await ask(gate, tasks[0])
    await ask(gate, tasks[2])
    assert opened == []
    await ask(gate, tasks[1])
    assert opened == [0]


def test_room_in_memory_is_made_at_the_tenant_that_has_the_most_in_it(monkeypatch):
    monkeypatch.setattr(index_cache, "_KEEP_BYTES", 10)
    memory = index_cache._Memory()

    def put(tenant: str, name: str, size: int) -> None:
        memory.put(tenant, name, index_cache._Kept(((name, 1),), TaskIndex([]), size, 0))

    put("quiet", "q", 4)
    for number in range(9):
        put("loud", f"l{number}", 3)
    assert memory.find("q", 0) is not None
    assert [memory.find(f"l{number}", 0) is not None for number in range(9)] == [False] * 7 + [True] * 2
    put("loud", "huge", 100)
    assert memory.find("q", 0) is not None
    assert memory._sizes.total() == 4


async def test_what_ended_is_in_no_memory_also_of_those_that_went_on_from_it(gate, ana):
    first = await ana.begin(request="r1")
    second = await ana.begin(request="r2", continues=first)
    await ask(gate, first)
    await ask(gate, second)
    memory = gate.riskgate.tasks._indexes._memory
    await ana.end_task(first)
    assert (memory._kept, memory._tenants, memory._sizes) == ({}, {}, {})


async def test_the_service_itself_removes_what_is_over(gate, ana):
    await ana.begin()
    gate.clock.advance(86_400 + 3_600)
    await gate.riskgate.housekeeping._prune()
    assert gate.count("tasks") == gate.count("task_pieces") == 0
