"""Real processes race for one budget and are killed while counting: never one effect too many."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from pathlib import Path

import pytest
from phylactery.riskgate.v1 import riskgate_pb2, types_pb2
from phylactery.riskgate.v1.riskgate_pb2_grpc import RiskGateServiceStub
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import Unavailable
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.decisions.usage import Counting
from phylactery_riskgate.domain.bundle.bundle import load_bundle
from phylactery_riskgate.domain.model import CallSite
from phylactery_riskgate.domain.policy.usage import Charge
from phylactery_riskgate.store.locks import BusyError
from sqlalchemy.engine import Connection

from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, tool, write_bundle
from tests.support.riskgate.rivals import Rival, reason_of, rows_of

ROOM, RIVALS, CALLS = 7, 3, 30
PROPERTIES = {"to": {"type": "string"}, "amount": {"type": "number"}}
PAY = tool("pay", PROPERTIES, effect="irreversible", amount="/amount", recipients=["/to"])
TIP = tool("tip", PROPERTIES, effect="irreversible", amount="/amount", recipients=["/to"])
BUDGETS = [
    {"name": "zeal", "tools": ["effect:write"], "per": ["user"], "window_seconds": 3600, "limits": {"calls": ROOM}},
    {"name": "all", "tools": ["tip", "pay"], "per": ["tenant"], "window_seconds": 3600, "limits": {"amount": 1000}},
    {"name": "each", "tools": ["pay"], "per": ["tool", "thread"], "window_seconds": 3600, "limits": {"recipients": 3}},
]
IN_BUDGETS = {"pay": 3, "tip": 2}


def a_call(number: int, amount: float = 1) -> types_pb2.ToolCall:
    arguments = json.dumps({"to": f"p{number % 3}", "amount": amount})
    return types_pb2.ToolCall(tool=("pay", "tip")[number % 2], tool_call_id=f"c{number}", arguments_json=arguments)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "spending", [PAY, TIP], ALLOW_ALL, settings={**SETTINGS, "budgets": BUDGETS})


async def permit(rival: Rival, number: int) -> str:
    request = riskgate_pb2.EvaluateRequest(call=a_call(number), thread_id="t1", run_id="r1")
    return (await RiskGateServiceStub(rival.channel).Evaluate(request, timeout=60)).permit


async def redeem(rival: Rival, number: int, permit: str) -> riskgate_pb2.RedeemResponse:
    request = riskgate_pb2.RedeemRequest(
        permit=permit, call=a_call(number), execution_id=f"execution-{number}", thread_id="t1", run_id="r1"
    )
    return await RiskGateServiceStub(rival.channel).Redeem(request, timeout=60)


@pytest.mark.slow
async def test_processes_that_race_one_budget_redeem_exactly_its_room(rivals, shared_database, tmp_path):
    gates = await asyncio.gather(*(rivals(f"rival-{number}") for number in range(RIVALS)))
    permits = await asyncio.gather(*(permit(gates[number % RIVALS], number) for number in range(CALLS)))
    assert all(permits), "while nothing is counted, everything is allowed"
    order = list(range(CALLS))
    random.Random(7).shuffle(order)
    results = await asyncio.gather(
        *(redeem(gates[(number + 1) % RIVALS], number, permits[number]) for number in order), return_exceptions=True
    )
    won = [number for number, result in zip(order, results, strict=True) if not isinstance(result, BaseException)]
    lost = [reason_of(result) for result in results if isinstance(result, BaseException)]
    assert (len(won), lost) == (ROOM, ["BUDGET_EXCEEDED"] * (CALLS - ROOM))
    counted = sum(IN_BUDGETS[a_call(number).tool] for number in won)
    assert rows_of(tmp_path / "data", shared_database, "usage_calls") == counted
    assert not await permit(gates[0], CALLS), "a new call finds no room"


@pytest.mark.slow
async def test_a_process_killed_while_it_counts_has_counted_what_it_redeemed_once(rivals, shared_database, tmp_path):
    """Killed after the commit of its third redemption, before it answers."""
    doomed = await rivals("doomed", "riskgate.8#3")
    steady = await rivals("steady")
    permits = [await permit(steady, number) for number in range(CALLS)]
    calls = [redeem(doomed if number else steady, number, permits[number]) for number in range(ROOM - 1)]
    first = await asyncio.gather(*calls, return_exceptions=True)
    await doomed.channel.close()
    assert await asyncio.to_thread(doomed.process.wait, 30) == -signal.SIGKILL
    again = await asyncio.gather(
        *(redeem(steady, number, permits[number]) for number in range(CALLS)), return_exceptions=True
    )
    won = {number for number, result in enumerate(again) if not isinstance(result, BaseException)}
    answered = {number for number, result in enumerate(first) if not isinstance(result, BaseException)}
    assert answered <= won
    assert len(won) == ROOM
    assert rows_of(tmp_path / "data", shared_database, "redemptions") == ROOM
    counted = sum(IN_BUDGETS[a_call(number).tool] for number in won)
    assert rows_of(tmp_path / "data", shared_database, "usage_calls") == counted


def test_counters_that_another_replica_holds_are_refused_at_once_so_nobody_waits_in_a_circle(fresh_database, bundle):
    database, counting = Database(fresh_database), Counting(b"k" * 32)
    database.migrate(PACKAGE)
    pay, tip = (load_bundle(bundle).tools[name] for name in ("pay", "tip"))
    place, charge = (Principal("ana", "acme", frozenset()), CallSite("t1", "r1"), 0), Charge(1, "", ("bob",))
    with database.engine.begin() as first, database.engine.begin() as second:
        counting.reader(first, *place, lock=True)(tip, charge)
        with pytest.raises(BusyError):
            counting.reader(second, *place, lock=True)(pay, charge)
        assert counting.reader(second, *place)(pay, charge)["all"].calls == 0
    with database.engine.begin() as second:
        assert set(counting.reader(second, *place, lock=True)(pay, charge)) == {"zeal", "all", "each"}
    database.close()


async def test_what_stays_busy_is_unavailable_in_the_end(gate, monkeypatch):
    def busy(_connection: Connection) -> None:
        raise BusyError

    monkeypatch.setattr("phylactery_riskgate.decisions.context._LONGEST_PAUSE_SECONDS", 0.0)
    with pytest.raises(Unavailable, match="STORE_UNAVAILABLE"):
        await gate.riskgate.core.write(busy)


async def test_many_of_a_batch_that_stay_busy_wait_no_longer_together_than_one_would(gate, monkeypatch):
    tries = 0

    def busy(_connection: Connection) -> None:
        nonlocal tries
        tries += 1
        raise BusyError

    monkeypatch.setattr("phylactery_riskgate.decisions.context._LONGEST_PAUSE_SECONDS", 0.0)
    alone = await asyncio.gather(gate.riskgate.core.write(busy), return_exceptions=True)
    of_one, tries = tries, 0
    together = await gate.riskgate.core.write_all([busy, lambda _connection: "free", busy, busy])
    assert [type(one) for one in (*alone, *together)] == [Unavailable, Unavailable, str, Unavailable, Unavailable]
    assert tries == of_one + 3 + 2, "each once with the others, and those behind the first once more"
