"""Reminders in the database: stored once per effect, delivered exactly once, and erased with their user."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_agent.ports import LeaseLostError, ReminderRefusedError, WantedReminder
from phylactery_agent.runtime.privacy.erasure_store import Erasure, ErasureCounts, ErasureStore
from phylactery_agent.runtime.reminders.scheduler import KEPT_US, ReminderScheduler, database_now
from phylactery_agent.runtime.reminders.store import Reminding, TurnReminders
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.runtime.storage.schema import SCHEDULES
from phylactery_agent.timeparse.recurrence import to_us, zone
from phylactery_chassis.util import crashpoints

from tests.support.agent.stores import ANA, BEN, T1, Stores, opened

MINUTE = 60 * 1_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Woken:
    """Stands for the delivery: the outbox is looked at instead."""

    def __init__(self) -> None:
        self.times = 0

    def wake(self) -> None:
        self.times += 1


def process_now(_connection: Any, now_us: int) -> int:
    """The clock a test moves."""
    return now_us


def firing(stores: Stores, **changes: Any) -> ReminderScheduler:
    delivery: Any = Woken()
    return ReminderScheduler(
        stores.database, stores.clock, stores.news, delivery, **{"poll_seconds": 0.02, "now_of": process_now, **changes}
    )


async def reminders(stores: Stores, owner: Owner = ANA, most: int = 100, thread_id: str = "t1") -> TurnReminders:
    """What a turn of the thread reaches; every thread stands after it."""
    turn = await stores.accepted(f"request-{owner.user_id}-{thread_id}", owner=owner, thread_id=thread_id)
    claim = await stores.claimed(thread_id, owner=owner)
    shared = Reminding(stores.database, stores.clock, "America/Lima", most)
    return TurnReminders(shared, claim.lease, turn, "es", "")


async def kept(stores: Stores, turn: TurnReminders, key: str = "ek_1", **changes: Any) -> Any:
    fields = {"text": "pagar", "due_us": stores.clock.now_us() + HOUR, "repeat": "", "time_zone": "America/Lima"}
    return await turn.create(WantedReminder(**{**fields, **changes}), key=key)


def told(stores: Stores) -> list[dict[str, Any]]:
    """The messages in ana's thread that belong to no run."""
    rows = stores.rows("agent_events", "payload, kind, run_id, sequence")
    return [{**json.loads(row.payload), "sequence": row.sequence} for row in rows if not row.run_id]


async def test_a_reminder_is_told_in_its_thread_and_in_the_transcript_when_it_is_due(stores: Stores) -> None:
    turn = await reminders(stores)
    one = await kept(stores, turn)
    looking = firing(stores)
    assert await looking.fire_due() == 0
    stores.clock.advance(3_600)
    assert await looking.fire_due() == 1
    message = {"message_id": f"{one.reminder_id}.{one.due_us}", "text": "Recordatorio: pagar"}
    assert [{k: v for k, v in each.items() if k != "sequence"} for each in told(stores)] == [message]
    (parcel,) = await stores.outbox.waiting("transcript", T1)
    (said,) = parcel.payload["messages"]
    assert (said["id"], said["role"], said["text"]) == (message["message_id"], "assistant", message["text"])
    assert await looking.fire_due() == 0
    assert await turn.list(limit=10) == []


async def test_the_same_effect_keeps_one_reminder_also_after_it_was_told_or_cancelled(stores: Stores) -> None:
    turn = await reminders(stores)
    first = await kept(stores, turn)
    assert await kept(stores, turn, text="another") == first
    stores.clock.advance(3_600)
    await firing(stores).fire_due()
    again = await kept(stores, turn)
    assert (again.reminder_id, again.state) == (first.reminder_id, "done")
    assert len(stores.rows("agent_schedules")) == 1


async def test_eight_at_once_under_one_key_are_one_reminder_and_eight_lookers_tell_it_once(stores: Stores) -> None:
    turn = await reminders(stores)
    made = await asyncio.gather(*(kept(stores, turn) for _ in range(8)))
    assert len({one.reminder_id for one in made}) == 1
    stores.clock.advance(3_600)
    fired = await asyncio.gather(*(firing(stores).fire_due() for _ in range(8)))
    assert (sum(fired), len(told(stores))) == (1, 1)


async def test_replicas_that_hold_their_own_databases_tell_each_occurrence_once(
    stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> None:

    turn = await reminders(stores)
    for number in range(5):
        await kept(stores, turn, f"ek_{number}", repeat="FREQ=DAILY", text=f"n{number}")
    url = stores.database.engine.url.render_as_string(hide_password=False)
    others = [opened(url) for _ in range(2)]
    try:
        lookers = [firing(stores)]
        lookers += [
            ReminderScheduler(other, stores.clock, stores.news, Woken(), poll_seconds=1, now_of=process_now)  # type: ignore[arg-type]
            for other in others
        ]
        stores.clock.advance(3_600)
        await asyncio.gather(*(one.fire_due() for one in lookers))
    finally:
        for other in others:
            other.close()
    messages = told(stores)
    assert sorted(one["text"] for one in messages) == [f"Recordatorio: n{number}" for number in range(5)]
    sequences = [row.sequence for row in stores.rows("agent_events", "sequence")]
    assert sorted(sequences) == list(range(1, len(sequences) + 1))


@pytest.mark.parametrize(("point", "before"), [("agent.schedule.claimed", 0), ("agent.schedule.fired", 1)])
async def test_a_process_that_dies_around_a_firing_tells_it_once(stores: Stores, point: str, before: int) -> None:
    turn = await reminders(stores)
    await kept(stores, turn)
    stores.clock.advance(3_600)

    def dies(name: str) -> None:
        if name == point:
            raise RuntimeError(point)

    crashpoints.install(dies)
    try:
        with pytest.raises(RuntimeError, match=point):
            await firing(stores).fire_due()
    finally:
        crashpoints.install(None)
    assert len(told(stores)) == before
    await firing(stores).fire_due()
    assert len(told(stores)) == 1
    assert len(await stores.outbox.waiting("transcript", T1)) == 1


async def test_a_clock_set_forward_tells_early_and_set_back_tells_nothing_twice(stores: Stores) -> None:
    turn = await reminders(stores)
    await kept(stores, turn, repeat="FREQ=DAILY")
    looking = firing(stores)
    stores.clock.advance(3_700)
    assert await looking.fire_due() == 1
    stores.clock.advance(-7_200)
    assert await looking.fire_due() == 0
    stores.clock.advance(7_200)
    assert await looking.fire_due() == 0
    stores.clock.advance(24 * 3_600)
    assert await looking.fire_due() == 1
    assert len(told(stores)) == 2


async def test_over_postgresql_the_databases_clock_decides_and_over_sqlite_the_process(stores: Stores) -> None:
    shared = stores.database.dialect.is_server
    real = time.time_ns() // 1_000
    stores.clock.advance((real - stores.clock.now_us()) / 1_000_000)
    turn = await reminders(stores)
    await kept(stores, turn, due_us=real + HOUR // 2)
    stores.clock.advance(3_600)  # this process is an hour ahead of all others
    assert await firing(stores, now_of=database_now).fire_due() == (0 if shared else 1)
    later = await reminders(stores, thread_id="t2")
    await kept(stores, later, "ek_2", due_us=real - HOUR // 2)
    stores.clock.advance(-2 * 3_600)  # and now an hour behind
    assert await firing(stores, now_of=database_now).fire_due() == (1 if shared else 0)


async def test_what_was_missed_is_told_in_one_late_message_that_says_how_often_and_since_when(stores: Stores) -> None:
    due = to_us(datetime.fromisoformat("2030-01-07T09:00"), zone("America/Lima"))
    stores.clock.advance((due - stores.clock.now_us()) / 1_000_000 - 60)
    turn = await reminders(stores)
    await kept(stores, turn, due_us=due, repeat="FREQ=DAILY")
    stores.clock.advance(3 * 24 * 3_600 + 120)
    assert await firing(stores).fire_due() == 1
    (late,) = told(stores)
    assert late["text"] == (
        "Recordatorio (tocaba 4 veces desde el 2030-01-07 09:00, hora de America/Lima; no pude avisarte antes): pagar"
    )
    (left,) = await turn.list(limit=10)
    assert left.due_us == due + 4 * DAY


async def test_one_that_comes_late_says_when_it_was_due(stores: Stores) -> None:
    due = to_us(datetime.fromisoformat("2030-01-07T09:00"), zone("America/Lima"))
    stores.clock.advance((due - stores.clock.now_us()) / 1_000_000 - 60)
    turn = await reminders(stores)
    await kept(stores, turn, due_us=due)
    stores.clock.advance(60 + 61)
    await firing(stores).fire_due()
    assert told(stores)[0]["text"] == (
        "Recordatorio (era para el 2030-01-07 09:00, hora de America/Lima; no pude avisarte antes): pagar"
    )


async def test_a_rule_with_an_end_is_told_to_it_and_no_further(stores: Stores) -> None:
    turn = await reminders(stores)
    await kept(stores, turn, repeat="FREQ=DAILY;COUNT=3")
    looking = firing(stores)
    fired = []
    for _ in range(5):
        stores.clock.advance(24 * 3_600)
        fired.append(await looking.fire_due())
    assert fired == [1, 1, 1, 0, 0]


async def test_a_suspended_run_is_left_as_it_is(stores: Stores) -> None:
    turn = await reminders(stores)
    await kept(stores, turn)
    claim = (await stores.accepted("request-2"), turn._lease)  # a second message waits behind the first
    before = stores.rows("agent_runs"), stores.rows("agent_inbox")
    stores.clock.advance(3_600)
    assert await firing(stores).fire_due() == 1
    assert (stores.rows("agent_runs"), stores.rows("agent_inbox")) == before
    assert claim[0].position == 2


async def test_a_person_has_so_many_and_no_more_also_when_they_come_at_once(stores: Stores) -> None:
    turn = await reminders(stores, most=3)
    made = await asyncio.gather(*(kept(stores, turn, f"ek_{number}") for number in range(8)), return_exceptions=True)
    refused = [one.reason for one in made if isinstance(one, ReminderRefusedError)]
    assert refused == ["TOO_MANY_REMINDERS"] * 5
    await kept(stores, await reminders(stores, BEN, 3), "ek_ben")
    await turn.cancel((await turn.list(limit=1))[0].reminder_id, key="ek_cancel")
    await kept(stores, turn, "ek_9")
    assert len(await turn.list(limit=10)) == 3


async def test_a_reminder_is_cancelled_by_its_id_or_by_words_that_are_its_alone(stores: Stores) -> None:
    turn = await reminders(stores)
    rent = await kept(stores, turn, "ek_1", text="Pagar la Luz")
    water = await kept(stores, turn, "ek_2", text="regar las plantas del salón")
    both = await kept(stores, turn, "ek_3", text="pagar el agua")
    for name, reason in (("pagar", "REMINDER_AMBIGUOUS"), ("gimnasio", "REMINDER_NOT_FOUND")):
        with pytest.raises(ReminderRefusedError) as refused:
            await turn.cancel(name, key="ek_x")
        assert refused.value.reason == reason
    assert (await turn.cancel("plantas del salon", key="ek_4")).reminder_id == water.reminder_id
    assert (await turn.cancel("anything", key="ek_4")).reminder_id == water.reminder_id
    assert (await turn.cancel("pagar la luz", key="ek_5")).state == "cancelled"
    assert (await turn.cancel(both.reminder_id, key="ek_6")).state == "cancelled"
    stores.clock.advance(3_600)
    assert await firing(stores).fire_due() == 0
    assert rent.reminder_id != both.reminder_id


async def test_another_persons_reminders_are_neither_seen_nor_cancelled(stores: Stores) -> None:
    turn = await reminders(stores)
    one = await kept(stores, turn)
    for owner in (BEN, Owner("other", "ana")):
        theirs = await reminders(stores, owner)
        assert await theirs.list(limit=10) == []
        with pytest.raises(ReminderRefusedError, match="REMINDER_NOT_FOUND"):
            await theirs.cancel(one.reminder_id, key=f"ek_{owner.tenant}")


async def test_everything_of_a_person_that_is_erased_goes_with_them(stores: Stores) -> None:
    await kept(stores, await reminders(stores))
    await kept(stores, await reminders(stores, BEN), "ek_ben")
    store = ErasureStore(stores.database, stores.clock)

    def done(counts: ErasureCounts) -> Erasure:
        return Erasure("er_1", "", "", "acme", False, 0, "", counts, False, 1)  # noqa: FBT003

    assert await store.erase(ANA, {T1}, done) is not None
    assert [row.user_id for row in stores.rows("agent_schedules", "user_id")] == ["ben"]


async def test_a_reminder_whose_thread_is_gone_is_dropped(stores: Stores) -> None:
    import sqlalchemy as sa

    await kept(stores, await reminders(stores))
    await stores.database.write(lambda connection: connection.execute(sa.text("DELETE FROM agent_threads")).rowcount)
    stores.clock.advance(3_600)
    assert await firing(stores).fire_due() == 0
    assert stores.rows("agent_schedules") == []


async def test_what_is_over_is_forgotten_after_a_month_and_what_is_active_is_not(stores: Stores) -> None:
    turn = await reminders(stores)
    await kept(stores, turn)
    await kept(stores, turn, "ek_2", due_us=stores.clock.now_us() + 100 * DAY)
    looking = firing(stores)
    stores.clock.advance(3_600)
    await looking.fire_due()
    stores.clock.advance(KEPT_US / 1_000_000 + 1)
    await looking.fire_due()
    assert [row.effect_key for row in stores.rows("agent_schedules", "effect_key")] == ["ek_2"]


async def test_one_that_cannot_be_told_does_not_hold_up_the_others(stores: Stores) -> None:
    import sqlalchemy as sa

    turn = await reminders(stores)
    broken = await kept(stores, turn, repeat="FREQ=DAILY")
    await kept(stores, turn, "ek_2")
    change = sa.update(SCHEDULES).where(SCHEDULES.c.schedule_id == broken.reminder_id).values(time_zone="No/Where")
    await stores.database.write(lambda connection: connection.execute(change).rowcount)
    stores.clock.advance(3_600)
    assert await firing(stores).fire_due() == 1


async def test_the_background_wakes_for_a_new_reminder_and_ends_when_it_is_cancelled(stores: Stores) -> None:
    looking = firing(stores, poll_seconds=60)
    turn = await reminders(stores)
    turn._shared = Reminding(stores.database, stores.clock, "UTC", 10, looking.wake)
    job = asyncio.create_task(looking.run())
    with stores.news.listen(T1) as news:
        await asyncio.sleep(0)
        await kept(stores, turn, due_us=stores.clock.now_us() - MINUTE)
        await asyncio.wait_for(news.wait(), 60)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert len(told(stores)) == 1


async def test_who_lost_the_lease_writes_and_cancels_no_reminder(stores: Stores) -> None:
    turn = await reminders(stores)
    one = await kept(stores, turn)
    stores.pass_time(31)
    await stores.claims.claim_next(T1, "other")
    with pytest.raises(LeaseLostError):
        await kept(stores, turn, "ek_2")
    with pytest.raises(LeaseLostError):
        await turn.cancel(one.reminder_id, key="ek_3")
    assert stores.rows("agent_schedules", "effect_key, state") == [("ek_1", "active")]


async def test_a_reminder_that_cannot_be_told_is_not_tried_again_at_once_and_holds_up_no_other(stores: Stores) -> None:
    turn = await reminders(stores)
    broken = await kept(stores, turn, repeat="FREQ=DAILY")
    elsewhere = sa.update(SCHEDULES).values(time_zone="No/Where").where(SCHEDULES.c.schedule_id == broken.reminder_id)
    await stores.database.write(lambda connection: connection.execute(elsewhere).rowcount)
    await kept(stores, turn, "ek_2", text="regar")
    stores.clock.advance(3_601)
    looking = firing(stores, poll_seconds=3_600)
    assert await looking.fire_due() == 1
    assert await looking._until_next() == 3_600


async def test_a_fault_in_one_round_does_not_end_the_reminders(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    looking, rounds, enough = firing(stores), [], asyncio.Event()

    async def fails() -> int:
        rounds.append(1)
        if len(rounds) > 2:
            enough.set()
        raise ZeroDivisionError

    monkeypatch.setattr(looking, "fire_due", fails)
    job = asyncio.create_task(looking.run())
    await asyncio.wait_for(enough.wait(), 20)
    assert not job.done()
    job.cancel()
