"""A message to an idle thread: the commit that accepts it also claims its turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from phylactery_agent.ports.services import Services
from phylactery_agent.runtime.dispatch.dispatcher import Dispatcher
from phylactery_agent.runtime.intake.classification import classify_incoming, listen
from phylactery_agent.runtime.storage.records import Claim, Incoming
from phylactery_agent.runtime.turn.context_loader import Hydrating
from phylactery_chassis.errors import CommitUnknown, FailedPrecondition
from phylactery_chassis.util import crashpoints

from tests.support.agent.bench import Bench
from tests.support.agent.stores import T1, Stores, incoming, runner_of

ENDS_SECONDS = 60.0


class Served:
    """A serve that ends every turn and notes it; a turn whose number is held waits until it is let go."""

    def __init__(self, stores: Stores) -> None:
        self._stores, self.turns, self.attempts = stores, list[str](), list[int]()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.ended = asyncio.Condition()
        self.go_on.set()

    async def __call__(self, claim: Claim) -> None:
        self.begun.set()
        await self.go_on.wait()
        self.turns.append(claim.lease.turn_id)
        self.attempts.append(claim.attempt)
        await self._stores.end(claim)
        async with self.ended:
            self.ended.notify_all()


@pytest.fixture
def at_point() -> Iterator[Callable[[str, Callable[[], Any]], None]]:
    """Have something done whenever a crash point is reached."""

    def at(point: str, do: Callable[[], Any]) -> None:
        crashpoints.install(lambda name: do() if name == point else None)

    yield at
    crashpoints.install(None)


async def test_what_keeps_the_message_claims_its_turn_and_tells_that_it_began(
    stores: Stores, at_point: Callable[[str, Callable[[], Any]], None]
) -> None:
    runner = runner_of(stores, served := Served(stores))
    kept: list[Any] = []

    def look() -> None:
        kept.extend((*stores.rows("agent_runs", "status, lease_owner"), *stores.rows("agent_events", "kind")))

    at_point("agent.5", look)
    turn = await runner.accept(incoming())
    await runner.idle()
    assert kept == [("running", "me"), ("run_started",)]
    assert (served.turns, served.attempts) == ([turn.turn_id], [1])
    assert stores.rows("agent_inbox", "state") == [("handled",)]
    await runner.stop()


async def test_what_comes_behind_a_turn_that_is_served_waits_for_it_and_is_served_after_it(stores: Stores) -> None:
    runner = runner_of(stores, served := Served(stores))
    served.go_on.clear()
    first = await runner.accept(incoming())
    async with asyncio.timeout(ENDS_SECONDS):
        await served.begun.wait()
    second = await runner.accept(incoming("request-2"))
    assert second.run_id == ""
    served.go_on.set()
    await runner.idle()
    assert served.turns == [first.turn_id, second.turn_id]
    await runner.stop()


async def test_the_same_request_twice_at_once_is_served_once(stores: Stores) -> None:
    runner = runner_of(stores, served := Served(stores))
    one, other = await asyncio.gather(runner.accept(incoming()), runner.accept(incoming()))
    await runner.idle()
    assert one.turn_id == other.turn_id
    assert served.turns == [one.turn_id]
    await runner.stop()


async def test_a_message_that_is_refused_is_told_to_its_caller_and_leaves_room_for_the_next(stores: Stores) -> None:
    runner = runner_of(stores, served := Served(stores), max_concurrent=1)
    first = await runner.accept(incoming())
    await runner.idle()
    with pytest.raises(FailedPrecondition):
        await runner.accept(incoming("request-2", graph="react"))
    third = await runner.accept(incoming("request-3"))
    await runner.idle()
    assert served.turns == [first.turn_id, third.turn_id]
    await runner.stop()


class FailsOnce(Hydrating):
    failed = False

    def begin(self, incoming: Incoming) -> None:
        if not self.failed:
            self.failed = True
            raise ValueError("a fault of ours")
        super().begin(incoming)


async def test_a_message_nothing_can_be_begun_for_leaves_room_for_the_next(stores: Stores) -> None:
    bench = Bench(stores)
    hydrating = FailsOnce(cast("Services", bench.services), bench.delivery, bench.stores.tools)
    runner = runner_of(stores, served := Served(stores), max_concurrent=1, hydrating=hydrating)
    with pytest.raises(ValueError, match="a fault of ours"):
        await runner.accept(incoming())
    turn = await runner.accept(incoming())
    async with asyncio.timeout(ENDS_SECONDS):
        await runner.idle()
    assert served.turns == [turn.turn_id]
    await runner.stop()


async def held(runner: Dispatcher) -> None:
    await runner.hold([T1], by="deletions")
    await runner.release([T1], by="deletions")


@pytest.mark.parametrize("interrupts", [held, Dispatcher.stop])
async def test_a_claim_made_while_its_thread_is_held_or_the_agent_stops_is_given_back_and_no_attempt_is_counted(
    stores: Stores,
    at_point: Callable[[str, Callable[[], Any]], None],
    interrupts: Callable[[Dispatcher], Awaitable[None]],
) -> None:
    runner = runner_of(stores, served := Served(stores))
    reached, go_on = threading.Event(), threading.Event()

    def stops() -> None:
        reached.set()
        assert go_on.wait(ENDS_SECONDS)

    at_point("agent.claim.before", stops)
    accepting = asyncio.create_task(runner.accept(incoming()))
    assert await asyncio.to_thread(reached.wait, ENDS_SECONDS)
    interrupting = asyncio.ensure_future(interrupts(runner))
    await asyncio.sleep(0)
    go_on.set()
    turn = await accepting
    await interrupting
    assert served.turns == []
    assert stores.rows("agent_runs", "status, lease_owner, attempt") == [("running", "", 0)]
    after = runner_of(stores, served, holder="another")
    after.wake(T1)
    await after.idle()
    assert (served.turns, served.attempts) == ([turn.turn_id], [1])
    await after.stop()


async def held_twice(runner: Dispatcher) -> None:
    """Hold the thread for two at once, so that whatever serves it is cancelled twice."""
    holding = [asyncio.create_task(runner.hold([T1], by="deletions"))]
    await turns_of_the_loop()
    holding.append(asyncio.create_task(runner.hold([T1], by="erasures")))
    await turns_of_the_loop()
    await asyncio.gather(*holding)


@asynccontextmanager
async def busy_writer(stores: Stores) -> AsyncIterator[None]:
    """Keep the store's writer until the block is over."""
    reached, go_on = threading.Event(), threading.Event()

    def keeps(_connection: object) -> None:
        reached.set()
        assert go_on.wait(ENDS_SECONDS)

    keeping = asyncio.create_task(stores.database.write(keeps))
    assert await asyncio.to_thread(reached.wait, ENDS_SECONDS)
    try:
        yield
    finally:
        go_on.set()
        await keeping


async def test_a_claim_whose_giving_back_is_itself_interrupted_is_given_back_and_told_all_the_same(
    stores: Stores,
) -> None:
    returned: list[str] = []
    served = Served(stores)
    runner = runner_of(stores, served, on_return=lambda claim: returned.append(claim.lease.turn_id))
    served.go_on.clear()
    turn = await runner.accept(incoming())
    async with asyncio.timeout(ENDS_SECONDS):
        await served.begun.wait()
    async with busy_writer(stores):
        holding = asyncio.create_task(held_twice(runner))
        await turns_of_the_loop(30)
        assert not holding.done()
    await holding
    assert returned == [turn.turn_id]
    assert stores.rows("agent_runs", "status, lease_owner, attempt") == [("running", "", 0)]
    await runner.stop()


async def test_a_message_whose_serving_is_interrupted_twice_while_it_is_taken_in_leaves_no_claim(
    stores: Stores,
) -> None:
    runner = runner_of(stores, served := Served(stores))
    async with busy_writer(stores):
        accepting = asyncio.create_task(runner.accept(incoming()))
        await turns_of_the_loop()
        holding = asyncio.create_task(held_twice(runner))
        await turns_of_the_loop(30)
        assert not holding.done()
    await holding
    await accepting
    assert served.turns == []
    assert stores.rows("agent_runs", "status, lease_owner, attempt") == [("running", "", 0)]
    await runner.stop()


@pytest.mark.parametrize("room", [True, False])
async def test_a_message_whose_commit_lost_its_answer_is_served_though_nobody_sends_it_again(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, room: bool
) -> None:
    runner = runner_of(stores, served := Served(stores), max_concurrent=1)
    if not room:
        served.go_on.clear()
        await runner.accept(incoming(thread_id="t2"))
    name = "accept_and" if room else "accept"
    accept = getattr(stores.inbox, name)

    async def loses(*asked: Any) -> None:
        await accept(*asked)
        monkeypatch.undo()
        raise CommitUnknown("STORE_UNAVAILABLE", "the outcome is unknown")

    monkeypatch.setattr(stores.inbox, name, loses)
    with pytest.raises(CommitUnknown):
        await runner.accept(incoming("request-2"))
    served.go_on.set()
    (kept,) = stores.rows("agent_inbox WHERE message_id = 'request-2'", "turn_id")
    async with asyncio.timeout(ENDS_SECONDS), served.ended:
        await served.ended.wait_for(lambda: kept.turn_id in served.turns)
    await runner.stop()


async def turns_of_the_loop(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("language", ["", "es", "en"])
@pytest.mark.parametrize("text", ["hola", "hello", "lee notas.txt", "read note.txt", "delete everything, don't store"])
async def test_a_message_is_understood_before_it_is_claimed_as_it_is_afterwards(
    stores: Stores, text: str, language: str
) -> None:
    message = incoming(text=text, language=language, do_not_store="store" in text)
    await stores.inbox.accept(message)
    assert classify_incoming(message, stores.tools) == listen(await stores.claimed(), stores.tools)


async def test_what_is_read_while_a_message_is_taken_in_is_what_its_turn_goes_on_with(stores: Stores) -> None:
    bench, read = Bench(stores), list[Any]()
    hydrating = Hydrating(cast("Services", bench.services), bench.delivery, bench.stores.tools)

    async def serve(claim: Claim) -> None:
        read.append(await hydrating.of(claim, await hydrating.heard(claim)))
        await stores.end(claim)

    runner = runner_of(stores, serve, hydrating=hydrating)
    await runner.accept(incoming())
    await runner.idle()
    assert bench.services.hydrated == [("t1", "text_fast_path")]
    await runner.accept(incoming())  # the same once more opens no run
    await runner.idle()
    assert hydrating._begun == {}
    await runner.accept(incoming("request-2"))
    await runner.idle()
    assert len(read) == 2
    assert all(one is not None and not one.degraded for one in read)
    await runner.stop()
