"""Retention of events and delivered messages: what is removed, what never is, and the error readers get."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest
from grpc import aio
from phylactery_agent.runtime.privacy.retention import Retention
from phylactery_agent.settings import AgentSettings
from pydantic import ValidationError

from tests.agent.runtime.storage.test_telemetry import until
from tests.support.agent.stores import ANA, BEN, BOUND, T1, Stores, call
from tests.support.agent.system import open_system, refused
from tests.support.agent.threads import Watch, watched

DAY = 86_400
DAYS = 7


def retention(stores: Stores, days: int = DAYS) -> Retention:
    return Retention(stores.database, stores.clock, days=days)


async def served(stores: Stores, message_id: str, status: str = "done", owner=ANA, **changes) -> None:
    await stores.accepted(message_id, owner=owner)
    claim = await stores.claimed(owner=owner)
    await stores.end(claim, status, **changes)


def sequences(stores: Stores) -> list[int]:
    return [row.sequence for row in stores.rows("agent_events", "sequence")]


async def first_sequence(stores: Stores) -> tuple[int, int]:
    thread = await stores.threads.get(ANA, "t1")
    return thread.first_sequence, thread.last_sequence


async def test_events_go_when_their_days_are_over_and_the_thread_says_where_it_begins(stores: Stores) -> None:
    await served(stores, "request-1")
    stores.clock.advance(DAYS * DAY)
    await served(stores, "request-2")
    assert await retention(stores).sweep() == 0
    stores.clock.advance(1)
    assert await retention(stores).sweep() == 3
    assert sorted(sequences(stores)) == [4, 5, 6]
    assert await first_sequence(stores) == (4, 6)
    stores.clock.advance(DAYS * DAY + 1)
    assert await retention(stores).sweep() == 3
    assert await first_sequence(stores) == (7, 6)
    assert await retention(stores).sweep() == 0
    await served(stores, "request-3")
    assert await first_sequence(stores) == (7, 9)


async def test_no_days_keep_them_for_ever(stores: Stores) -> None:
    await served(stores, "request-1")
    stores.clock.advance(36_500 * DAY)
    assert await retention(stores, 0).sweep() == 0
    assert sequences(stores) == [1, 2, 3]


@pytest.mark.parametrize("status", ["suspended", "running"])
async def test_what_a_live_run_told_stays_and_everything_after_it(stores: Stores, status: str) -> None:
    await served(stores, "request-1")
    if status == "suspended":
        await served(stores, "request-2", "suspended", approval_id="ap_abcdef")
    else:
        await stores.accepted("request-2")
        await stores.claimed()
    await served(stores, "request-1", owner=BEN)
    last = (await first_sequence(stores))[1]
    stores.clock.advance(365 * DAY)
    assert await retention(stores).sweep() == 6  # three of the run that has ended, and ben's
    assert await first_sequence(stores) == (4, last)
    tail = await stores.log.of_thread(ANA.thread_key("t1"), after=0)
    assert tail is not None
    assert [event.sequence for event in tail.events] == list(range(4, last + 1))


async def test_a_clock_that_was_set_back_leaves_no_gap(stores: Stores) -> None:
    stores.clock.advance(DAYS * DAY)
    await served(stores, "request-1")
    stores.clock.advance(-DAYS * DAY)
    await served(stores, "request-2")
    stores.clock.advance(DAYS * DAY + 10)
    assert await retention(stores).sweep() == 0
    stores.clock.advance(DAYS * DAY)
    assert await retention(stores).sweep() == 6


async def test_many_events_of_many_threads_go_some_at_a_time_and_two_sweep_at_once(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phylactery_agent.runtime.privacy.retention._AT_ONCE", 2)
    monkeypatch.setattr("phylactery_agent.runtime.privacy.retention._THREADS_AT_ONCE", 2)
    for number in range(5):
        await stores.accepted(f"request-{number}", thread_id=f"t{number}")
        claim = await stores.claimed(f"t{number}")
        await stores.end(claim)
    stores.clock.advance((DAYS + 1) * DAY)
    removed = await asyncio.gather(*(retention(stores).sweep() for _ in range(3)))
    assert sum(removed) == 15
    assert sequences(stores) == []


async def deliver(stores: Stores, *, refused: str = "") -> None:
    """Settle everything that waits for the first thread's transcript."""
    for parcel in await stores.outbox.waiting("transcript", T1):
        await stores.outbox.settle(parcel, refusal=refused)


def parcels(stores: Stores) -> list[str]:
    return sorted(row.state for row in stores.rows("agent_outbox", "state"))


async def test_what_was_delivered_goes_after_a_day_however_long_events_are_kept(stores: Stores) -> None:
    await served(stores, "request-1")
    await deliver(stores)
    stores.clock.advance(DAY)
    await served(stores, "request-2")
    await deliver(stores)
    assert await retention(stores, 0).prune() == 0, "the first was delivered a day ago, and not more"
    stores.clock.advance(1)
    assert await retention(stores, 0).prune() == 1
    assert parcels(stores) == ["delivered"]
    stores.clock.advance(DAY)
    assert await retention(stores, 0).prune() == 1
    assert parcels(stores) == []


async def test_what_waits_was_refused_or_belongs_to_a_live_run_is_never_pruned(stores: Stores) -> None:
    await served(stores, "request-1")
    await deliver(stores, refused="MESSAGE_CONFLICT")
    await served(stores, "request-2", "suspended", approval_id="ap_abcdef")
    await deliver(stores)
    await served(stores, "request-3", owner=BEN)
    assert parcels(stores) == ["delivered", "refused", "waiting"]
    stores.clock.advance(365 * DAY)
    assert await retention(stores).prune() == 0
    assert parcels(stores) == ["delivered", "refused", "waiting"]
    await stores.accepted("request-4", text="RECHAZAR ap_abcdef")
    await stores.end(await stores.claimed())  # the run that waited goes on, and ends
    assert await retention(stores).prune() == 1
    assert parcels(stores) == ["refused", "waiting", "waiting"]


async def test_an_effect_that_was_reported_is_not_reported_again_whether_its_report_is_pruned_or_not(
    stores: Stores,
) -> None:
    await stores.accepted("request-1")
    claim = await stores.claimed()
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="k", bound=BOUND)
    result = {"arguments_json": "{}", "status": "success", "output": "ok", "error_code": ""}
    await ledger.finish("c1", **result)
    [report] = await stores.outbox.waiting("outcome", T1)
    await stores.outbox.settle(report)
    stores.pass_time(2 * DAY)
    assert await retention(stores).prune() == 0, "the run is live, and its turn may be served once more"
    again = await stores.claimed()
    await stores.ledger(again.lease).finish("c1", **result)
    await stores.end(again)
    assert await retention(stores).prune() == 1
    assert await stores.outbox.waiting("outcome", T1) == []


async def test_many_parcels_go_some_at_a_time_and_two_prune_at_once(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phylactery_agent.runtime.privacy.retention._AT_ONCE", 2)
    await served(stores, "request-0", owner=BEN)  # waits, in the first page
    for number in range(1, 8):
        await served(stores, f"request-{number}")
    await deliver(stores)
    stores.clock.advance(2 * DAY)
    await served(stores, "request-8")
    pruned = await asyncio.gather(*(retention(stores).prune() for _ in range(3)))
    assert sum(pruned) == 7
    assert parcels(stores) == ["waiting", "waiting"]


async def test_the_background_job_prunes_parcels_where_events_are_kept_for_ever(tmp_path: Path) -> None:
    async with open_system(tmp_path, event_days=0) as system:
        ana = system.person("ana")
        await ana.say("hola", request_id="request-1")

        def left() -> list[str]:
            query = "SELECT state FROM agent_outbox"
            return list(system.agent.database.read_sync(lambda c: c.exec_driver_sql(query).scalars().all()))

        await until(lambda: set(left()) == {"delivered"})
        system.clock.advance(2 * DAY)
        job = asyncio.create_task(system.agent.retention.run())
        try:
            await until(lambda: left() == [])
        finally:
            job.cancel()
        assert (await ana.thread()).first_sequence == 1


async def test_a_cursor_before_what_is_kept_is_told_where_the_thread_begins(tmp_path: Path) -> None:
    async with open_system(tmp_path, event_days=DAYS) as system:
        ana = system.person("ana")
        first = await ana.stream("hola", request_id="request-1")
        answer = await ana.say("hola", request_id="request-2")
        async with watched(ana) as early:
            assert await early.until(answer.last_sequence)
            system.clock.advance((DAYS + 1) * DAY)
            later = await ana.say("gracias")
            assert await system.agent.retention.sweep() == answer.last_sequence
            assert (await early.until(later.last_sequence))[-1].sequence == later.last_sequence
        thread = await ana.thread()
        assert (thread.first_sequence, thread.last_sequence) == (answer.last_sequence + 1, later.last_sequence)
        for after in (0, first[-1].sequence, thread.first_sequence - 2):
            told = await Watch(ana, after=after).refusal()
            assert (told.code, told.reason) == (grpc.StatusCode.OUT_OF_RANGE, "CURSOR_TOO_OLD")
            assert told.metadata == {"first_sequence": str(thread.first_sequence)}
        async with watched(ana, after=thread.first_sequence - 1) as watch:
            events = await watch.until(later.last_sequence)
        assert events[0].sequence == thread.first_sequence
        with pytest.raises(aio.AioRpcError) as caught:
            await ana.stream("hola", request_id="request-1")
        assert refused(caught.value).reason == "CURSOR_TOO_OLD"
        assert await ana.say("hola", request_id="request-2") == answer


@pytest.mark.parametrize("days", [-1, 36_501])
def test_days_that_are_none_are_refused(days: int) -> None:
    with pytest.raises(ValidationError, match="event_days"):
        AgentSettings(event_days=days)
