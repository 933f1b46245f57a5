"""Rows buffered until the end of their unit of work: found as if written, undone individually, and all written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from phylactery_chassis.db.database import Database
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.store.decisions import CallKey, DecisionRecord, insert_decision
from phylactery_riskgate.store.pending import Keys, PendingRows
from phylactery_riskgate.store.redemptions import Redemption, find_execution, find_redemption, insert_redemption
from sqlalchemy.engine import Connection


class NoError(Exception):
    """What a job raises of itself."""


def decision(number: int) -> DecisionRecord:
    texts = dict.fromkeys(("args_hash", "approval_id", "counted_approval_id", "permit_id", "risk", "tool_version"), "")
    return DecisionRecord(
        id=f"de_{number}",
        tenant="acme",
        subject="ana",
        run_id="run",
        tool_call_id=f"call-{number}",
        thread_id="t1",
        fingerprint="f",
        decision=Decision.ALLOW,
        reasons=(),
        tool="t",
        policy_ids=(),
        bundle_revision=1,
        permit_us=0,
        create_us=number,
        audit_log="log",
        audit_index=0,
        pathway="unspecified",
        **texts,
    )


def redemption(number: int, execution: int) -> Redemption:
    claims = {"jti": f"rc_{number}", "iat": 7}
    return Redemption(
        "acme", "ana", "run", f"call-{number}", f"execution-{execution}", f"de_{number}", claims, 7, "log", number
    )


def of_call(connection: Connection, number: int) -> Redemption | None:
    return find_redemption(connection, CallKey("acme", "ana", "run", f"call-{number}"))


def of_execution(connection: Connection, number: int, *, lock: bool = False) -> Redemption | None:
    return find_execution(connection, "acme", "ana", f"execution-{number}", lock=lock)


def written(connection: Connection) -> int:
    return int(connection.execute(sa.text("SELECT count(*) FROM redemptions")).scalar_one())


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'x.db'}")
    opened.migrate(PACKAGE)
    opened.write_sync(lambda connection: [insert_decision(connection, decision(number)) for number in range(4)])
    yield opened
    opened.close()


async def test_a_redemption_is_found_by_its_call_and_its_execution_before_it_is_written_and_after(database: Database):
    made = redemption(1, 2)

    def redeem(connection: Connection) -> tuple[object, ...]:
        insert_redemption(connection, made)
        assert written(connection) == 0
        return of_call(connection, 1), of_execution(connection, 2), of_execution(connection, 2, lock=True)

    assert await database.write(redeem) == (made, made, made)
    look = await database.read(lambda c: (of_call(c, 1), of_execution(c, 2), of_call(c, 2), of_execution(c, 1)))
    assert look == (made, made, None, None)


async def test_a_job_of_the_same_transaction_sees_what_the_one_before_redeemed_and_not_what_failed(database: Database):
    def redeem(connection: Connection) -> None:
        insert_redemption(connection, redemption(1, 1))

    def fail(connection: Connection) -> None:
        insert_redemption(connection, redemption(2, 2))
        raise NoError

    def look(connection: Connection) -> tuple[object, ...]:
        assert written(connection) == 0, "all three run in one transaction"
        return of_call(connection, 1), of_call(connection, 2), of_execution(connection, 2)

    jobs = (database.write(redeem), database.write(fail), database.write(look))
    _, failed, seen = await asyncio.gather(*jobs, return_exceptions=True)
    assert isinstance(failed, NoError)
    assert seen == (redemption(1, 1), None, None)
    assert await database.read(written) == 1


@pytest.mark.parametrize("again", [redemption(1, 3), redemption(3, 1)])
async def test_the_store_refuses_a_second_redemption_of_a_call_and_of_an_execution_also_in_one_transaction(
    database: Database, again: Redemption
):
    jobs = [database.write(lambda c, one=one: insert_redemption(c, one)) for one in (redemption(1, 1), again)]
    first, second = await asyncio.gather(*jobs, return_exceptions=True)
    assert first is None
    assert isinstance(second, sa.exc.IntegrityError)
    assert await database.read(lambda c: (written(c), of_call(c, 1))) == (1, redemption(1, 1))


Step = tuple[str, int]
STEPS = st.lists(st.tuples(st.sampled_from(["add", "change", "mark", "undo"]), st.integers(0, 5)), max_size=30)


@given(STEPS)
def test_rows_that_are_added_changed_and_undone_are_those_of_a_plain_list(steps: list[Step]):
    wrote: list[tuple[int, int]] = []

    def keys(row: tuple[int, int]) -> Keys:
        return row[0], ("also", row[0])

    def write(_connection: Connection, rows: Sequence[tuple[int, int]]) -> None:
        wrote.extend(rows)

    pending = PendingRows(keys, write)
    plain: dict[int, tuple[int, int]] = {}
    marks = [(pending.mark(), dict(plain))]
    for at, (step, number) in enumerate(steps):
        if step == "add" and number not in plain:
            pending.add((number, at))
            plain[number] = (number, at)
        elif step == "change" and number in plain:
            pending.change((number, at))
            plain[number] = (number, at)
        elif step == "mark":
            marks.append((pending.mark(), dict(plain)))
        elif step == "undo":
            mark, before = marks.pop() if len(marks) > 1 else marks[0]
            pending.undo(mark)
            plain = dict(before)
        for one in range(6):
            assert pending.find(one) == pending.find(("also", one)) == plain.get(one)
    with sa.create_engine("sqlite://").connect() as connection:
        pending.flush(connection)
    assert wrote == list(plain.values())
