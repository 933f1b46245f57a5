"""Any order of evaluations, redemptions, expiries and clock changes: no window exceeds its budget."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_riskgate.app import PACKAGE, RiskGate
from phylactery_riskgate.bundles.live import LiveBundle
from phylactery_riskgate.decisions.requests import CallInput, EvaluateInput, RedeemInput
from phylactery_riskgate.domain.bundle.bundle import load_bundle
from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.keys.live import LiveKeys
from phylactery_riskgate.settings import RiskGateSettings

from tests.support.clock import FakeClock
from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, tool, write_bundle

WINDOW, CALLS, AMOUNT, PEOPLE = 60, 3, 1000, 2
PAY = tool(
    "pay",
    {"to": {"type": "string"}, "amount": {"type": "number"}},
    effect="irreversible",
    amount="/amount",
    recipients=["/to"],
)
LIMITS = {"calls": CALLS, "amount": AMOUNT, "recipients": PEOPLE}
BUDGET = {"name": "minute", "tools": ["pay"], "per": ["user"], "window_seconds": WINDOW, "limits": LIMITS}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("evaluate"), st.sampled_from([0, 1, 333, 400, 500, 999, 1000]), st.sampled_from("abc")),
        st.tuples(st.just("redeem"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("wait"), st.sampled_from([1, 15, 30, 59, 60, 61]), st.just("")),
        st.tuples(st.just("set back"), st.sampled_from([1, 30, 3600]), st.just("")),
    ),
    max_size=40,
)


@dataclass
class Permitted:
    """A call with a permit, and whether it has run."""

    asked: EvaluateInput
    permit: str
    amount: int
    to: str


@dataclass
class World:
    """One tenant's story: what it was permitted, and what it redeemed at which time of the counters."""

    riskgate: RiskGate
    clock: FakeClock
    who: Principal
    permits: list[Permitted] = field(default_factory=list)
    redeemed: dict[str, tuple[int, int, str]] = field(default_factory=dict)

    def window(self, at_us: int) -> list[tuple[int, int, str]]:
        """Return what was redeemed in the window that ends at a time."""
        return [one for one in self.redeemed.values() if at_us - WINDOW * MICROSECONDS < one[0] <= at_us]

    def fits(self, more: Permitted | None = None) -> bool:
        """Return whether the window of this moment keeps every limit, with one more call in it."""
        now = max([self.clock.now_us(), *(one[0] for one in self.redeemed.values())])
        counted = [*self.window(now), *([(now, more.amount, more.to)] if more else [])]
        people = {one[2] for one in counted}
        return len(counted) <= CALLS and sum(one[1] for one in counted) <= AMOUNT and len(people) <= PEOPLE

    async def evaluate(self, number: int, amount: int, to: str) -> None:
        call = CallInput(tool="pay", tool_call_id=f"c{number}", arguments_json=json.dumps({"to": to, "amount": amount}))
        asked = EvaluateInput(call=call, thread_id="t1", run_id="r1")
        answer = await self.riskgate.evaluation.evaluate(self.who, asked)
        one = Permitted(asked, answer.permit, amount, to)
        assert (answer.record.decision is Decision.ALLOW) == self.fits(one)
        if answer.permit:
            self.permits.append(one)

    async def redeem(self, one: Permitted) -> None:
        call_id = one.asked.call.tool_call_id
        asked = RedeemInput(
            permit=one.permit, call=one.asked.call, execution_id=f"execution-{call_id}", thread_id="t1", run_id="r1"
        )
        repeated, fits = call_id in self.redeemed, self.fits(one)
        when = max([self.clock.now_us(), *(entry[0] for entry in self.redeemed.values())])
        try:
            answer = await self.riskgate.redemptions.redeem(self.who, asked)
        except DomainError as error:
            assert error.reason == "PERMIT_EXPIRED" or (error.reason == "BUDGET_EXCEEDED" and not fits)  # noqa: PT017
            assert not repeated
            return
        assert answer.repeated == repeated
        if not repeated:
            assert fits
            self.redeemed[call_id] = (when, one.amount, one.to)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RiskGate, FakeClock]]:
    """One RiskGate for every story; each has a tenant of its own."""
    folder: Path = tmp_path_factory.mktemp("stories")
    bundle = write_bundle(folder / "bundle", [PAY], ALLOW_ALL, settings={**SETTINGS, "budgets": [BUDGET]})
    options = RiskGateSettings(data_dir=folder / "data", bundle=bundle)
    options.prepare()
    database, clock = Database(options.url), FakeClock()
    database.migrate(PACKAGE)
    live = LiveBundle(DecisionEngine(load_bundle(bundle)))
    riskgate = RiskGate(database, live, LiveKeys.open(options.keys_dir), options, clock)
    asyncio.run(riskgate.open())
    yield riskgate, clock
    database.close()


_numbers = itertools.count()


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_no_window_ever_holds_more_than_the_budget(
    shared: tuple[RiskGate, FakeClock], steps: list[tuple[str, int, str]]
) -> None:
    who = Principal("ana", f"tenant-{next(_numbers)}", frozenset({Role.CALLER}))
    world = World(*shared, who)

    async def live() -> None:
        for number, (what, value, to) in enumerate(steps):
            if what == "evaluate":
                await world.evaluate(number, value, to)
            elif what == "redeem" and world.permits:
                await world.redeem(world.permits[value % len(world.permits)])
            elif what == "wait":
                world.clock.advance(value)
            elif what == "set back":
                world.clock.advance(-value)

    asyncio.run(live())
    for when, _, _ in world.redeemed.values():
        counted = world.window(when)
        assert len(counted) <= CALLS
        assert sum(one[1] for one in counted) <= AMOUNT
        assert len({one[2] for one in counted}) <= PEOPLE
