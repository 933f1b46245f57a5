"""Queries on the changes table use an index on either store, because it grows with every approval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.store import approvals as rows
from phylactery_riskgate.store.tables import approval_changes, approvals
from sqlalchemy.engine import Connection

WANTED = rows.Wanted("acme")
QUESTIONS: dict[str, Callable[[Connection], Any]] = {
    "unplaced": lambda c: rows.unplaced(c, "acme"),
    "last_position": lambda c: rows.last_position(c, "acme"),
    "first_position": lambda c: rows.first_position(c, "acme"),
    "place_changes": lambda c: rows.place_changes(c, "acme"),
    "find_old": lambda c: rows.find_old(c, 50),
    "prune": lambda c: rows.prune(c, "acme", 50),
    "changes_after": lambda c: rows.changes_after(c, WANTED, 5, 10),
    "open_approvals": lambda c: rows.open_approvals(c, WANTED, (0, ""), 10),
}


@pytest.fixture
def database(tmp_path, shared_database) -> Iterator[Database]:
    """Five tenants with forty approvals of five changes each, the last of which has no place yet."""
    opened = Database(shared_database or f"sqlite:///{tmp_path}/riskgate.db")
    opened.migrate(PACKAGE)
    opened.write_sync(fill)
    yield opened
    opened.close()


def fill(connection: Connection) -> None:
    def row(table: sa.Table, **given: Any) -> dict[str, Any]:
        empty: dict[type, Any] = {int: 0, str: "", bytes: b"[]"}
        return {one.name: given.get(one.name, empty[one.type.python_type]) for one in table.columns}

    for tenant in ("acme", "beta", "gama", "delta", "zeta"):
        ids = [f"{tenant}-{number}" for number in range(40)]
        made = [row(approvals, id=one, tenant=tenant, state="PENDING", version=5) for one in ids]
        connection.execute(sa.insert(approvals), made)
        changes = [
            row(
                approval_changes,
                approval_id=one,
                version=version,
                tenant=tenant,
                state="PENDING",
                position=0 if version == 5 else number * 5 + version,
                change_us=number * 5 + version,
            )
            for number, one in enumerate(ids)
            for version in range(1, 6)
        ]
        connection.execute(sa.insert(approval_changes), changes)
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("ANALYZE"))


@contextmanager
def heard(connection: Connection) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that run on a connection."""
    said: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        said.append((statement, parameters))

    sa.event.listen(connection, "before_cursor_execute", note)
    try:
        yield said
    finally:
        sa.event.remove(connection, "before_cursor_execute", note)


def plans(database: Database, question: Callable[[Connection], Any]) -> str:
    """Return how the store goes about every statement of a question; nothing it changes is kept."""
    explain = "EXPLAIN " if database.dialect.is_server else "EXPLAIN QUERY PLAN "

    def work(connection: Connection) -> str:
        if database.dialect.is_server:  # a table this small is read whole where that is allowed
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        with heard(connection) as said:
            question(connection)
        assert said, "nothing was asked"
        lines = [line for one, values in said for line in connection.exec_driver_sql(explain + one, values)]
        return "\n".join(str(line[-1]) for line in lines)

    return database.write_sync(work)


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_question_about_changes_reads_the_whole_table(database, name):
    plan = plans(database, QUESTIONS[name])
    assert "approval_changes" in plan
    assert "Seq Scan on approval_changes" not in plan, plan
    assert "SCAN approval_changes" not in plan, plan


def test_what_waits_anywhere_is_counted_without_reading_what_is_over(database):
    """It is asked at each scrape of the metrics; the approvals of the past are nearly all there are."""
    assert database.read_sync(lambda c: rows.pending_everywhere(c, -1)) == (200, 0)
    plan = plans(database, lambda c: rows.pending_everywhere(c, 50))
    assert "approvals_by_expiry" in plan, plan
    for whole in ("SCAN approvals", "Seq Scan on approvals"):
        assert whole not in plan, plan


def test_what_is_old_is_found_by_its_time(database):
    plan = plans(database, QUESTIONS["find_old"])
    assert "change_us<?" in plan or "Index Cond: (change_us <" in plan, plan
