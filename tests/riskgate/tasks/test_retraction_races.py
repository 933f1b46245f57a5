"""A retraction and a Redeem race in real processes: exactly one wins, and the log records which."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.riskgate.v1 import types_pb2

from tests.riskgate.conftest import write_bundle
from tests.support.riskgate.people import Person
from tests.support.riskgate.rivals import reason_of, rows_of
from tests.support.riskgate.tasks import ASKED, KNOWN, arguments, with_tasks

ROUNDS = 8
UNCLEAR = f"Send some money to {KNOWN}, if you feel like it"
CANCELLED, REDEEMED = types_pb2.APPROVAL_STATE_CANCELLED, types_pb2.APPROVAL_STATE_REDEEMED


@pytest.fixture
def bundle(tmp_path):
    return with_tasks(write_bundle(tmp_path / "bundle"))


@pytest.fixture
async def people(rivals) -> list[Person]:
    """The same person at two processes."""
    return [Person(one.channel, "local") for one in await asyncio.gather(rivals("one"), rivals("two"))]


@pytest.fixture
def records(tmp_path, shared_database):
    def read(kind: str) -> list[dict[str, Any]]:
        engine = sa.create_engine(shared_database or f"sqlite:///{tmp_path}/data/riskgate.db")
        with engine.connect() as connection:
            texts = connection.execute(sa.text("SELECT record FROM audit_entries")).scalars().all()
        engine.dispose()
        return [one for one in (json.loads(bytes(text)) for text in texts) if one["kind"] == kind]

    return read


def a_call(number: int) -> types_pb2.ToolCall:
    return types_pb2.ToolCall(tool="transfer", tool_call_id=f"c{number}", arguments_json=arguments())


async def race(people: list[Person], permit: str, number: int, task: str) -> tuple[bool, str]:
    """Redeem at one process and take back at the other; return whether it was redeemed, and why not."""
    redeemed, later = await asyncio.gather(
        people[0].redeem(permit, a_call(number), execution=f"execution-{number}"),
        people[1].begin("No, don't send it", request=f"no-{number}", continues=task),
        return_exceptions=True,
    )
    assert isinstance(later, str)
    return (True, "") if not isinstance(redeemed, BaseException) else (False, reason_of(redeemed))


@pytest.mark.slow
async def test_of_a_permit_and_a_retraction_one_wins_and_the_log_says_which(people, records, tmp_path, shared_database):
    won = 0
    for number in range(ROUNDS):
        task = await people[0].begin(ASKED, request=f"ask-{number}")
        permit = (await people[0].evaluate(a_call(number), task_id=task)).permit
        redeemed, why = await race(people, permit, number, task)
        assert redeemed or why == "PERMIT_RETRACTED"
        won += redeemed
        again = await people[1].evaluate(a_call(number), task_id=task)
        assert bool(again.permit) is redeemed
    assert (len(records("redeemed")), len(records("redeem_refused"))) == (won, ROUNDS - won)
    assert sum("retracts" in one for one in records("task_begun")) == ROUNDS
    assert rows_of(tmp_path / "data", shared_database, "ask_uses") == won


@pytest.mark.slow
async def test_of_an_approval_and_a_retraction_one_wins(people, records):
    won = 0
    for number in range(ROUNDS):
        task = await people[0].begin(UNCLEAR, request=f"ask-{number}")
        asked = await people[0].evaluate(a_call(number), task_id=task)
        await people[0].approve(asked.approval)
        permit = (await people[0].evaluate(a_call(number), approval=asked.approval.id)).permit
        redeemed, why = await race(people, permit, number, task)
        assert redeemed or why == "PERMIT_RETRACTED"
        won += redeemed
        approval = await people[1].get(asked.approval.id)
        assert approval.state == (REDEEMED if redeemed else CANCELLED)
        assert approval.closed_reason == ("" if redeemed else "RETRACTED")
    assert len(records("approval_closed")) == ROUNDS - won


@pytest.mark.slow
async def test_killed_right_after_it_took_something_back_it_has_done_so_once(
    rivals, records, tmp_path, shared_database
):
    doomed, steady = await rivals("doomed", "riskgate.0"), await rivals("steady")
    person, other = Person(steady.channel, "local"), Person(doomed.channel, "local")
    task = await person.begin(UNCLEAR, request="ask")
    approval = (await person.evaluate(a_call(1), task_id=task)).approval
    with pytest.raises(aio.AioRpcError):
        await other.begin("Never mind", request="no", continues=task)
    await doomed.channel.close()
    assert await asyncio.to_thread(doomed.process.wait, 30) == -signal.SIGKILL
    assert (await person.get(approval.id)).closed_reason == "RETRACTED"
    await person.begin("Never mind", request="no", continues=task)
    assert rows_of(tmp_path / "data", shared_database, "retractions") == len(records("approval_closed")) == 1
