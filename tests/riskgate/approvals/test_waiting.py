"""How many approvals wait and how long the oldest has, as the gauges tell it, over either store."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from opentelemetry.metrics import CallbackOptions
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.gauges import StoreGauges
from phylactery_chassis.telemetry import instruments
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.approvals import metrics
from phylactery_riskgate.approvals.model import ApprovalState
from phylactery_riskgate.store.tables import approvals

from tests.support.clock import FakeClock

SECOND = 1_000_000


@pytest.fixture
def database(tmp_path, shared_database) -> Iterator[Database]:
    opened = Database(shared_database or f"sqlite:///{tmp_path}/riskgate.db")
    opened.migrate(PACKAGE)
    yield opened
    opened.close()


_ids = itertools.count()


def add(database: Database, tenant: str, state: str, lives: tuple[int, int], now_us: int) -> None:
    """Insert an approval that was created so many seconds ago and has so many seconds to live."""
    age, left = lives
    empty: dict[type, Any] = {int: 0, str: "", bytes: b"[]"}
    row = {one.name: empty[one.type.python_type] for one in approvals.columns}
    row |= {"id": f"ap_{next(_ids)}", "tenant": tenant, "state": state}
    row |= {"create_us": now_us - age * SECOND, "expire_us": now_us + left * SECOND}
    database.write_sync(lambda connection: connection.execute(sa.insert(approvals), [row]))


def told(database: Database, clock: FakeClock) -> tuple[float, float]:
    read = (metrics._waiting, metrics._oldest)
    (count,), (age,) = (database.read_sync(lambda connection, one=one: one(connection, clock.now_us())) for one in read)
    return count.value, age.value


def test_those_that_wait_of_all_tenants_count_and_the_oldest_tells_the_age(database: Database):
    clock = FakeClock()
    now = clock.now_us()
    assert told(database, clock) == (0, 0)
    for state in ApprovalState:
        if state is not ApprovalState.PENDING:
            add(database, "acme", str(state), (9_000, 600), now)  # decided or over: waits for nobody
    assert told(database, clock) == (0, 0)
    add(database, "acme", "PENDING", (8_000, 0), now)  # expired at this moment, and not yet on record as that
    add(database, "zeta", "PENDING", (40, 600), now)
    add(database, "", "PENDING", (120, 600), now)
    add(database, "ñandú", "PENDING", (5, 30), now)
    assert told(database, clock) == (3, 120)
    clock.advance(30)
    assert told(database, clock) == (2, 150)
    clock.advance(600)
    assert told(database, clock) == (0, 0)
    add(database, "acme", "PENDING", (-60, 600), clock.now_us())  # by a machine whose clock is ahead
    assert told(database, clock) == (1, 0)


def test_a_database_that_cannot_be_read_tells_nothing_and_one_that_is_closed_is_not_asked(tmp_path, monkeypatch):
    made: list[Any] = []

    class Meter:
        def create_observable_gauge(self, name, callbacks, unit, description):
            made.extend(callbacks)

    monkeypatch.setattr("phylactery_chassis.db.gauges.meter", Meter)
    gauges, good, empty = StoreGauges(), Database(f"sqlite:///{tmp_path}/a.db"), Database(f"sqlite:///{tmp_path}/b.db")
    good.migrate(PACKAGE)
    gauges.create_gauge("riskgate.approvals.waiting", "{approval}", "waiting", metrics._waiting)
    (observe,) = made
    clock = FakeClock()
    assert list(observe(CallbackOptions())) == []
    ends = [gauges.watch(one, clock) for one in (empty, good)]
    assert [one.value for one in observe(CallbackOptions())] == [0]  # the other has no tables yet
    for end in ends:
        end()
    assert list(observe(CallbackOptions())) == []
    good.close()
    empty.close()
    assert "riskgate.approvals.waiting" in instruments.meter().known
