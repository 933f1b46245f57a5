"""Threads temporarily withheld from dispatch, under concurrent claims, messages and faults."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_agent.ports import LeaseLostError
from phylactery_agent.runtime.dispatch import claims
from phylactery_agent.runtime.dispatch.claims import ClaimStore, HeldError
from phylactery_agent.runtime.dispatch.leases import hold_of
from phylactery_agent.runtime.dispatch.named_leases import NamedLeases
from phylactery_agent.runtime.effects.outbox import queue_transcript
from phylactery_agent.runtime.intake import inbox
from phylactery_agent.runtime.privacy.erasure_store import Erasure, ErasureCounts, ErasureStore
from phylactery_agent.runtime.storage.records import Claim, Lease
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import Unavailable

from tests.support.agent.stores import ANA, BEN, T1, Stores, incoming, open_stores, opened, runner_of
from tests.support.servers.postgres import brief_database

ENDS_SECONDS = 60.0
INTENT = Erasure("era_1", "sha256:0", "00", "acme", False, 1, "sha256:1", ErasureCounts())  # noqa: FBT003


@pytest.fixture
def replicated(postgres_url: str) -> Iterator[Stores]:
    """Store that several processes may share."""
    with open_stores(brief_database(postgres_url, "phylactery_agent")) as opened:
        yield opened


@pytest.fixture
def elsewhere(replicated: Stores) -> Iterator[Database]:
    """The same database as another process has it."""
    database = opened(replicated.database.engine.url.render_as_string(hide_password=False))
    yield database
    database.close()


class Gate:
    """Stops a transaction of another process in its middle."""

    def __init__(self) -> None:
        self.reached, self._go = threading.Event(), threading.Event()

    def wrap(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def stops(*given: Any, **named: Any) -> Any:
            answer = real(*given, **named)
            self.reached.set()
            assert self._go.wait(ENDS_SECONDS)
            return answer

        return stops

    async def until_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, ENDS_SECONDS)

    def open(self) -> None:
        self._go.set()


async def until_done_or_locked_out(stores: Stores, task: asyncio.Task[Any]) -> None:
    """Wait until a task is done, or the database has it wait for a lock."""
    waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(ENDS_SECONDS):
        while not task.done():
            if await stores.database.read(lambda connection: connection.execute(sa.text(waits)).first()):
                return
            await asyncio.sleep(0.01)


class Served:
    """A serve that ends every turn and notes it."""

    def __init__(self, stores: Stores) -> None:
        self._stores, self.turns = stores, list[str]()

    async def __call__(self, claim: Claim) -> None:
        self.turns.append(claim.lease.turn_id)
        await self._stores.end(claim)


async def test_a_message_that_comes_while_its_user_is_erased_goes_with_the_thread_or_opens_another(
    replicated: Stores, elsewhere: Database
) -> None:
    await replicated.accepted()
    await replicated.end(await replicated.claimed())
    gate, store = Gate(), ErasureStore(replicated.database, replicated.clock)
    accept = gate.wrap(inbox._accept)
    late = incoming("request-2", "palabras mías")
    accepting = asyncio.create_task(elsewhere.write(lambda connection: accept(connection, late, 1)))
    await gate.until_reached()
    erasing = asyncio.create_task(store.erase(ANA, {T1}, lambda counts: replace(INTENT, counts=counts)))
    await until_done_or_locked_out(replicated, erasing)
    gate.open()
    turn, removed = await accepting, await erasing
    assert removed is not None
    assert removed.unhandled == [turn.turn_id]
    for table in ("agent_inbox", "agent_runs", "agent_threads", "agent_events"):
        assert replicated.rows(table, "thread_key") == []


async def test_an_approval_that_is_withdrawn_while_another_process_holds_its_thread_is_noted_later(
    replicated: Stores, elsewhere: Database
) -> None:
    """An erasure withdraws it: what noted that would be counted among what the person said."""
    await replicated.accepted()
    await replicated.end(await replicated.claimed(), "suspended", approval_id="ap_1")
    [run] = await replicated.runs.awaiting_approval()
    holding = NamedLeases(elsewhere, replicated.clock, "another")
    assert await holding.take(hold_of(T1))
    with pytest.raises(LeaseLostError):
        await replicated.inbox.note_approval_decided(run, "CANCELLED")
    await holding.drop(hold_of(T1))
    assert await replicated.inbox.note_approval_decided(run, "CANCELLED") is not None


async def test_a_thread_opened_while_its_user_is_erased_stays_whole(
    replicated: Stores, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await replicated.accepted()
    await replicated.end(await replicated.claimed())
    store, late = ErasureStore(replicated.database, replicated.clock), incoming("request-2", "hola", thread_id="t2")

    def done(counts: ErasureCounts) -> Erasure:
        return replace(INTENT, counts=counts)

    def opens(connection: sa.Connection, thread_ids: Any) -> None:
        """Right before the first row goes, another process opens a thread and has something to tell of it."""
        lease = Lease("run_late", late.turn_id, "t2", ANA, holder="another", fence=1)
        elsewhere.write_sync(lambda other: inbox._accept(other, late, 1))
        elsewhere.write_sync(lambda other: queue_transcript(other, lease, [], now_us=1))

    monkeypatch.setattr("phylactery_agent.runtime.privacy.erasure_store.require_written", opens)
    assert await store.erase(ANA, {T1}, done) is not None
    for table in ("agent_inbox", "agent_runs", "agent_threads", "agent_outbox"):
        assert replicated.rows(table, "thread_key") == [(late.thread_key,)]


async def test_what_is_left_of_a_thread_that_is_gone_is_removed_and_stops_nobody_else(stores: Stores) -> None:
    await stores.accepted(text="palabras mías")
    await stores.accepted("request-2", "y más")
    gone = sa.text("DELETE FROM agent_threads")
    stores.database.write_sync(lambda connection: connection.execute(gone) and None)
    stores.clock.advance(1)
    theirs = await stores.accepted("request-b", owner=BEN)
    if stores.database.dialect.is_server:
        claim = await stores.claims.claim_any("me")
        assert claim is not None
        assert claim.lease.turn_id == theirs.turn_id
    assert await stores.claims.claim_next(T1, "me") is None
    assert stores.rows("agent_inbox", "turn_id") == [(theirs.turn_id,)]
    assert stores.rows("agent_runs", "user_id") == [("ben",)]


async def test_a_hold_that_fails_holds_nothing(replicated: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of(replicated, served := Served(replicated))
    turn = await replicated.accepted()
    for fails in ("served", "settle"):
        with monkeypatch.context() as patch:
            patch.setattr(replicated.claims, fails, away)
            with pytest.raises(Unavailable):
                await runner.hold([T1], by="deletions")
        assert replicated.rows("agent_duties", "name") == []
    runner.wake(T1)
    await runner.idle()
    assert served.turns == [turn.turn_id]
    await runner.stop()


async def away(*_args: Any) -> None:
    raise Unavailable("STORE_UNAVAILABLE", "the database restarts")


async def test_what_is_to_stay_unserved_does_though_the_hold_fails_and_is_held_from_all_the_next_time(
    replicated: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = runner_of(replicated, served := Served(replicated))
    await replicated.accepted()
    with monkeypatch.context() as patch:
        patch.setattr("phylactery_agent.runtime.dispatch.named_leases.NamedLeases.take", away)
        with pytest.raises(Unavailable):
            await runner.hold([T1], by="erasures", keep=True)
    runner.wake(T1)
    runner.look()
    await runner.idle()
    assert served.turns == []
    assert replicated.rows("agent_duties", "name") == []
    assert await runner.hold([T1], by="erasures") == frozenset()
    assert replicated.rows("agent_duties", "name") == [(hold_of(T1),)]
    with pytest.raises(HeldError):
        await replicated.claimed(holder="another")
    await runner.stop()


async def test_a_thread_held_twice_is_served_once_both_let_go_of_it(stores: Stores) -> None:
    runner = runner_of(stores, served := Served(stores))
    turn = await stores.accepted()
    assert await runner.hold([T1], by="erasures") == await runner.hold([T1], by="deletions") == {T1}
    await runner.release([T1], by="deletions")
    runner.wake(T1)
    await runner.idle()
    assert served.turns == []
    assert await runner.hold([T1], by="erasures") == frozenset()
    await runner.release([T1], by="erasures")
    runner.wake(T1)
    await runner.idle()
    assert served.turns == [turn.turn_id]
    await runner.stop()


class SlowAnswer:
    """A claim_any whose answer is on its way until it is let go."""

    def __init__(self, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real, self.claimed, self.go = stores.claims.claim_any, asyncio.Event(), asyncio.Event()
        self.before: Callable[[], None] = lambda: None
        """What happens in the very turn of the loop in which the answer arrives, right behind it."""
        monkeypatch.setattr(stores.claims, "claim_any", self)

    async def __call__(self, holder: str, **given: Any) -> Claim | None:
        claim = await self._real(holder, **given)
        self.claimed.set()
        await self.go.wait()
        if claim is not None:
            asyncio.get_running_loop().call_soon(self.before)
        return claim


async def test_what_was_being_claimed_here_when_its_thread_was_held_is_given_back(
    replicated: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, slow = runner_of(replicated, served := Served(replicated)), SlowAnswer(replicated, monkeypatch)
    await replicated.accepted()
    runner.look()
    await asyncio.wait_for(slow.claimed.wait(), ENDS_SECONDS)
    at_taking: list[Any] = []
    real = NamedLeases.take_patiently

    async def take(named_leases: NamedLeases, name: str) -> None:
        at_taking.extend(replicated.rows("agent_runs", "lease_owner, attempt"))
        await real(named_leases, name)

    monkeypatch.setattr(NamedLeases, "take_patiently", take)
    holding = asyncio.create_task(runner.hold([T1], by="erasures"))
    await asyncio.sleep(0)  # it begins
    slow.go.set()
    await asyncio.wait_for(holding, ENDS_SECONDS)
    assert at_taking == [("", 0)]
    await runner.idle()
    assert served.turns == []
    await runner.stop()


async def test_what_was_found_for_a_thread_that_stops_being_served_at_that_moment_is_given_back(
    replicated: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, slow = runner_of(replicated, served := Served(replicated)), SlowAnswer(replicated, monkeypatch)
    await replicated.accepted()
    runner.look()
    await asyncio.wait_for(slow.claimed.wait(), ENDS_SECONDS)
    runner.wake(T1)
    await asyncio.sleep(0)  # its task begins, and waits for what is being looked for
    assert await replicated.named_leases("another").take(hold_of(T1))
    slow.before = lambda: runner.preempt(T1)
    slow.go.set()
    await asyncio.wait_for(runner.idle(), ENDS_SECONDS)
    assert served.turns == []
    assert replicated.rows("agent_runs", "lease_owner, attempt") == [("", 0)]
    await runner.stop()


async def test_a_hold_waits_for_a_claim_that_another_process_is_making(
    replicated: Stores, elsewhere: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await replicated.accepted()
    runner, gate = runner_of(replicated, Served(replicated)), Gate()
    monkeypatch.setattr(claims, "coalesce", gate.wrap(claims.coalesce))
    theirs = ClaimStore(elsewhere, replicated.clock)
    claiming_there = asyncio.create_task(theirs.claim_next(T1, "another"))
    await gate.until_reached()
    holding = asyncio.create_task(runner.hold([T1], by="erasures"))
    await until_done_or_locked_out(replicated, holding)
    assert not holding.done()
    gate.open()
    claim = await claiming_there
    assert claim is not None
    assert not holding.done()
    await theirs.give_back(claim, pause_seconds=0, counted=False)
    assert await asyncio.wait_for(holding, ENDS_SECONDS) == {T1}
    with pytest.raises(HeldError):
        await theirs.claim_next(T1, "another")
    await runner.release([T1], by="erasures")
    await runner.stop()
