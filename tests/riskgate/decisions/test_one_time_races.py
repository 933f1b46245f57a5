"""Real processes race for one permit and one approval: each counts once, in any order and at any replica."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.riskgate.v1 import types_pb2
from phylactery_riskgate.cli import app
from typer.testing import CliRunner

from tests.support.riskgate.people import Person
from tests.support.riskgate.rivals import reason_of, rows_of

RIVALS, TRIES, APPROVALS = 3, 24, 6
READ = ("read_file", '{"path":"a.txt"}')
State = types_pb2.ApprovalState


@pytest.fixture
async def channels(rivals) -> list[aio.Channel]:
    gates = await asyncio.gather(*(rivals(f"rival-{number}") for number in range(RIVALS)))
    return [gate.channel for gate in gates]


@pytest.fixture
def people(channels) -> list[Person]:
    """The same person at each of the processes."""
    return [Person(channel, "local") for channel in channels]


@pytest.fixture
def records(tmp_path: Path, shared_database: str) -> Callable[[str], list[dict[str, Any]]]:
    """Return the records of one kind in all the logs, once the logs verify."""

    def read(kind: str) -> list[dict[str, Any]]:
        environment = {"RISKGATE_DATABASE_URL": shared_database} if shared_database else {}
        found = CliRunner().invoke(app, ["audit", "verify", "--data-dir", str(tmp_path / "data")], env=environment)
        assert found.exit_code == 0, found.output
        engine = sa.create_engine(shared_database or f"sqlite:///{tmp_path}/data/riskgate.db")
        with engine.connect() as connection:
            texts = connection.execute(sa.text("SELECT record FROM audit_entries")).scalars().all()
        engine.dispose()
        return [one for one in (json.loads(bytes(text)) for text in texts) if one["kind"] == kind]

    return read


async def told(*calls: Awaitable[Any]) -> tuple[list[Any], Counter[str]]:
    """Return what was answered, and how often each refusal was."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    refusals = Counter(reason_of(result) for result in results if isinstance(result, BaseException))
    return [result for result in results if not isinstance(result, BaseException)], refusals


@pytest.mark.slow
async def test_of_many_executions_at_several_processes_one_redeems_the_permit(
    people, call, records, shared_database, tmp_path
):
    permit = (await people[0].evaluate(call(*READ))).permit
    won, lost = await told(
        *(
            people[number % RIVALS].redeem(permit, call(*READ), execution=f"execution-{number}")
            for number in range(TRIES)
        )
    )
    assert (len(won), lost) == (1, {"ALREADY_REDEEMED": TRIES - 1})
    assert rows_of(tmp_path / "data", shared_database, "redemptions") == len(records("redeemed")) == 1
    (execution,) = {record["execution_id"] for record in records("redeemed")}
    again, refused = await told(*(one.redeem(permit, call(*READ), execution=execution) for one in people))
    assert ({one.receipt for one in again}, refused) == ({won[0].receipt}, {})
    assert all(one.repeated_redeem for one in again)


@pytest.mark.slow
async def test_an_approval_that_every_process_has_a_permit_of_is_redeemed_once(people, call, records):
    approval = await people[0].approved()
    answers = await asyncio.gather(*(one.evaluate(approval=approval.id) for one in people))
    assert all(answer.permit for answer in answers)
    won, lost = await told(
        *(
            people[number % RIVALS].redeem(answers[(number + 1) % RIVALS].permit, execution=f"execution-{number}")
            for number in range(TRIES)
        )
    )
    assert (len(won), lost) == (1, {"ALREADY_REDEEMED": TRIES - 1})
    assert len(records("redeemed")) == 1
    assert {(await one.get(approval.id)).state for one in people} == {State.APPROVAL_STATE_REDEEMED}


@pytest.mark.slow
async def test_a_yes_and_a_no_at_several_processes_end_in_one_answer_that_all_of_them_know(people, call, records):
    asked = [
        (await people[0].evaluate(call(call_id=f"c{number}"), thread=f"t{number}")).approval
        for number in range(APPROVALS)
    ]
    for number, approval in enumerate(asked):
        yes = [one.approve(approval) for one in people]
        no = [one.reject(approval.id, thread=approval.thread_id) for one in people]
        won, lost = await told(*(yes + no if number % 2 else no + yes))
        (state,) = {(await one.get(approval.id)).state for one in people}
        assert state in {State.APPROVAL_STATE_APPROVED, State.APPROVAL_STATE_REJECTED}
        assert {one.state for one in won} == {state}
        assert set(lost) <= {"APPROVAL_NOT_PENDING"}
    answered = Counter(record["approval_id"] for record in records("approval_answered"))
    assert answered == {approval.id: 1 for approval in asked}


@pytest.mark.slow
async def test_one_approver_at_several_processes_is_one_vote_of_the_two_that_are_needed(
    channels, people, call, records
):
    ana = Person(channels[0], "local", "ana", "local")
    approval = (await ana.evaluate(call("wipe", "{}"))).approval
    assert approval.votes_needed == 2
    await told(*(people[number % RIVALS].approve(approval) for number in range(TRIES)))
    seen = [await one.get(approval.id) for one in people]
    assert {(one.state, one.votes) for one in seen} == {(State.APPROVAL_STATE_PENDING, 1)}
    assert len(records("approval_answered")) == 1
