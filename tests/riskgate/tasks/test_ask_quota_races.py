"""Real processes race for one ask, and are killed while using it: it never has more effects than it allows."""

from __future__ import annotations

import asyncio
import signal

import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.riskgate.v1 import types_pb2

from tests.riskgate.conftest import write_bundle
from tests.support.riskgate.people import Person
from tests.support.riskgate.rivals import reason_of, rows_of
from tests.support.riskgate.tasks import ASKED, KNOWN, arguments, with_tasks

RIVALS, CALLS = 3, 12
OTHER = "eve@acme.es"


@pytest.fixture
def bundle(tmp_path):
    # room for all that is asked about once the ask is used up: this is about the ask, not about what may wait
    return with_tasks(write_bundle(tmp_path / "bundle", max_pending_per_thread=CALLS, max_pending_per_user=CALLS))


def a_call(number: int, room: int = 1) -> types_pb2.ToolCall:
    """Go to everybody in turn, of as many as there is room for."""
    to = (KNOWN, OTHER)[number % room]
    return types_pb2.ToolCall(tool="transfer", tool_call_id=f"c{number}", arguments_json=arguments(to))


async def permits_of(person: Person, task: str, room: int = 1) -> list[str]:
    answers = [await person.evaluate(a_call(number, room), task_id=task) for number in range(CALLS)]
    assert all(answer.permit for answer in answers), "while nothing is redeemed, everything is allowed"
    return [answer.permit for answer in answers]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "room"), [(ASKED, 1), (f"{ASKED} and to {OTHER}", 2)])
async def test_processes_that_race_one_ask_redeem_what_it_allows(rivals, shared_database, tmp_path, words, room):
    people = [Person(one.channel, "local") for one in await asyncio.gather(*(rivals(f"r{n}") for n in range(RIVALS)))]
    permits = await permits_of(people[0], await people[0].begin(words), room)
    results = await asyncio.gather(
        *(people[n % RIVALS].redeem(permits[n], a_call(n, room), execution=f"execution-{n}") for n in range(CALLS)),
        return_exceptions=True,
    )
    lost = [reason_of(one) for one in results if isinstance(one, BaseException)]
    assert lost == ["ASK_USED_UP"] * (CALLS - room)
    folder = tmp_path / "data"
    assert rows_of(folder, shared_database, "ask_uses") == rows_of(folder, shared_database, "redemptions") == room


@pytest.mark.slow
@pytest.mark.parametrize(("words", "room"), [(ASKED, 1), (f"{ASKED} and to {OTHER}", 2)])
async def test_processes_that_decide_and_redeem_at_once_redeem_what_an_ask_allows(
    rivals, shared_database, tmp_path, words, room
):
    people = [Person(one.channel, "local") for one in await asyncio.gather(*(rivals(f"r{n}") for n in range(RIVALS)))]
    task = await people[0].begin(words)
    results = await asyncio.gather(
        *(
            people[n % RIVALS].evaluate(a_call(n, room), task_id=task, execution_id=f"execution-{n}")
            for n in range(CALLS)
        ),
        return_exceptions=True,
    )
    assert {reason_of(one) for one in results if isinstance(one, BaseException)} <= {"ASK_USED_UP"}
    answers = [one for one in results if not isinstance(one, BaseException)]
    assert sum(one.HasField("redemption") for one in answers) == room
    assert not any(one.permit for one in answers)
    folder = tmp_path / "data"
    assert rows_of(folder, shared_database, "ask_uses") == rows_of(folder, shared_database, "redemptions") == room


@pytest.mark.slow
@pytest.mark.parametrize("point", ["riskgate.2", "riskgate.8"])
async def test_killed_before_the_answer_to_a_decision_that_redeems_the_call_is_known_to_be_redeemed(
    rivals, shared_database, tmp_path, point
):
    doomed, steady = await rivals("doomed", point), await rivals("steady")
    person, other = Person(steady.channel, "local"), Person(doomed.channel, "local")
    task = await person.begin(ASKED)
    with pytest.raises(aio.AioRpcError):
        await other.evaluate(a_call(0), task_id=task, execution_id="execution-0")
    await doomed.channel.close()
    assert await asyncio.to_thread(doomed.process.wait, 60) == -signal.SIGKILL
    again = await person.evaluate(a_call(0), task_id=task, execution_id="execution-0")
    assert (again.replayed, again.HasField("redemption")) == (True, False)
    assert (await person.redeem(again.permit, a_call(0), execution="execution-0")).repeated_redeem
    folder = tmp_path / "data"
    assert rows_of(folder, shared_database, "ask_uses") == rows_of(folder, shared_database, "redemptions") == 1


@pytest.mark.slow
async def test_killed_between_the_count_and_the_receipt_the_execution_gets_its_receipt_and_counts_once(
    rivals, shared_database, tmp_path
):
    doomed, steady = await rivals("doomed", "riskgate.8"), await rivals("steady")
    person, other = Person(steady.channel, "local"), Person(doomed.channel, "local")
    permits = await permits_of(person, await person.begin(ASKED))
    with pytest.raises(aio.AioRpcError):
        await other.redeem(permits[0], a_call(0), execution="execution-0")
    await doomed.channel.close()
    assert await asyncio.to_thread(doomed.process.wait, 30) == -signal.SIGKILL
    again = [await person.redeem(permits[0], a_call(0), execution="execution-0") for _ in range(2)]
    assert again[0].receipt == again[1].receipt
    assert all(one.repeated_redeem for one in again)
    with pytest.raises(aio.AioRpcError, match="already been carried out"):
        await person.redeem(permits[1], a_call(1), execution="execution-1")
    assert rows_of(tmp_path / "data", shared_database, "ask_uses") == 1


async def test_a_use_whose_redemption_could_not_be_written_is_none(make_gate, call):
    gate = await make_gate()
    ana = gate.person("ana")
    task = await ana.begin(ASKED)
    answer = await ana.evaluate(a_call(0), task_id=task)
    gate.fail_writes("redemptions")
    with pytest.raises(aio.AioRpcError):
        await ana.redeem(answer.permit, a_call(0))
    assert gate.count("ask_uses") == 0
    gate.database.write_sync(lambda connection: connection.execute(sa.text("DROP TRIGGER no_rows")))
    await ana.redeem(answer.permit, a_call(0))
    assert gate.count("ask_uses") == 1
