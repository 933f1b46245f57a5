"""Values of each instrument: violations, losses, retries, cancelled runs and model requests."""

from __future__ import annotations

import pytest
from opentelemetry.metrics import Counter, Histogram
from phylactery_agent.llm_client import metrics as measuring
from phylactery_agent.llm_client.request import Question, Spent
from phylactery_agent.ports import ModelUnavailableError
from phylactery_agent.runtime.runs.cancellation import Cancellations
from phylactery_agent.runtime.storage import metrics
from phylactery_agent.runtime.storage.metrics import TurnTimes
from phylactery_chassis.telemetry import semconv

from tests.support.agent.models import opened
from tests.support.agent.stores import ANA, Stores
from tests.support.clock import FakeClock
from tests.support.servers.model_server import ModelServer, fails, says

Given = list[tuple[float, dict[str, str]]]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Given]:
    """What was given to each instrument, by the name of its variable."""
    told: dict[str, Given] = {}
    for module in (metrics, measuring):
        for name, instrument in vars(module).items():
            if not isinstance(instrument, Counter | Histogram):
                continue
            kept = told.setdefault(name, [])
            method = "add" if isinstance(instrument, Counter) else "record"
            monkeypatch.setattr(instrument, method, lambda *given, kept=kept: kept.append(given), raising=False)
    assert {"_turns", "_violations", "_seconds", "_tokens"} <= told.keys()
    return told


def times(clock: FakeClock, *, attempt: int = 1, pathway: str = "text_fast_path") -> TurnTimes:
    now = clock.now_us()
    made = TurnTimes(clock, graph="secured", created_us=now, run_created_us=now, attempt=attempt)
    made.pathway = pathway
    return made


def test_a_turn_that_takes_as_long_as_its_pathway_may_violates(given: dict[str, Given]) -> None:
    clock = FakeClock()
    quick, slow, other = times(clock), times(clock), times(clock, pathway="tool_intent")
    clock.advance(1.999)
    quick.ended("done", "ANSWERED")
    assert given["_violations"] == []
    clock.advance(0.001)
    slow.ended("done", "ANSWERED")
    other.ended("done", "ANSWERED")
    assert given["_violations"] == [(1, {semconv.PATHWAY: "text_fast_path"})]
    assert [round(value) for value, _ in given["_end_ms"]] == [1_999, 2_000, 2_000]


def test_a_clock_that_is_behind_tells_no_time_below_none(given: dict[str, Given]) -> None:
    clock = FakeClock()
    turn = times(clock)
    clock.advance(-3_600)
    turn.routed()
    turn.told()
    turn.ended("failed", "INTERNAL_ERROR")
    assert {value for name in ("_route_ms", "_typing_ms", "_end_ms", "_run_seconds") for value, _ in given[name]} == {0}


def test_only_the_first_node_and_the_first_event_count_and_a_suspended_run_has_not_ended(
    given: dict[str, Given],
) -> None:
    clock = FakeClock()
    turn = times(clock, attempt=3)
    turn.routed()
    turn.told()
    clock.advance(5)
    turn.routed()
    turn.told()
    turn.lease_lost()
    turn.ended("suspended", "AWAITING_APPROVAL")
    about = {semconv.GEN_AI_AGENT: "secured"}
    assert given["_turn_retries"] == given["_lease_losses"] == [(1, about)]
    assert [value for value, _ in given["_route_ms"] + given["_typing_ms"]] == [0, 0]
    assert given["_run_seconds"] == []
    assert [told[semconv.RUN_STATUS] for _, told in given["_turns"]] == ["suspended"]


async def test_a_run_that_is_cancelled_while_it_waits_counts_as_ended(stores: Stores, given: dict[str, Given]) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    await stores.end(claim, "suspended", approval_id="ap_1")
    stores.clock.advance(90)
    cancellations = Cancellations(stores.database, stores.clock, stores.tools)
    for _ in range(2):
        await cancellations.request(ANA, claim.run.run_id)
    [(one, about)] = given["_turns"]
    assert (one, about[semconv.RUN_STATUS], about[semconv.FINISH_REASON]) == (1, "cancelled", "CANCELLED")
    assert [value for value, _ in given["_run_seconds"]] == [90]


async def test_every_request_to_a_model_is_timed_and_its_tokens_counted(
    server: ModelServer, given: dict[str, Given]
) -> None:
    server.script(fails(503), says("hello"), fails(400))
    async with opened(server.url) as models:
        await models.ask(Question([{"role": "user", "content": "hi"}], []), Spent())
        with pytest.raises(ModelUnavailableError):
            await models.ask(Question([{"role": "user", "content": "hi"}], []), Spent())
    timed = given["_seconds"]
    assert len(timed) == 3
    assert all(value > 0 for value, _ in timed)
    faults = [about.get(semconv.ERROR_TYPE, "") for _, about in timed]
    assert [bool(fault) for fault in faults] == [True, False, True]
    kinds = {about[semconv.GEN_AI_TOKEN_TYPE]: value for value, about in given["_tokens"]}
    assert kinds.keys() == {"input", "output"}
    assert all(value > 0 for value in kinds.values())
    assert {about[semconv.GEN_AI_OPERATION] for _, about in timed} == {"chat"}
