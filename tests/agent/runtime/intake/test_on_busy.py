"""on_busy: a message to a busy thread is queued, rejected, interrupts, or is coalesced with waiting ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc import aio
from phylactery.agent.v1 import chat_pb2, event_pb2, run_pb2
from phylactery_agent.adapters.memory import MemoriesAdapter
from phylactery_agent.adapters.riskgate import RiskGateAdapter
from phylactery_agent.ports import LeaseLostError
from phylactery_agent.runtime.dispatch.leases import LEASE_SECONDS
from phylactery_chassis.errors import FailedPrecondition

from tests.support.agent.stores import ANA, T1, Stores
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, refused, runs_of

CANCELLED = event_pb2.RUN_STATUS_CANCELLED
ENQUEUE, REJECT = chat_pb2.ON_BUSY_ENQUEUE, chat_pb2.ON_BUSY_REJECT
INTERRUPT, COALESCE = chat_pb2.ON_BUSY_INTERRUPT, chat_pb2.ON_BUSY_COALESCE
WRITE = 'escribe "hola" en notas.txt'
ENDS_SECONDS = 60


@asynccontextmanager
async def held_turn(
    system: System, person: Person, monkeypatch: pytest.MonkeyPatch, text: str = "hola"
) -> AsyncIterator[asyncio.Task[chat_pb2.SendMessageResponse]]:
    """Say something whose turn stands still until the block ends, and give what will answer it."""
    reached, go = asyncio.Event(), asyncio.Event()
    real = MemoriesAdapter.hydrate

    async def slow(*args: Any, **named: Any) -> Any:
        first = not reached.is_set()
        reached.set()
        if first:
            await go.wait()
        return await real(*args, **named)

    monkeypatch.setattr(MemoriesAdapter, "hydrate", slow)
    saying = asyncio.create_task(person.say(text))
    await asyncio.wait_for(reached.wait(), ENDS_SECONDS)
    try:
        yield saying
    finally:
        go.set()


async def accepted(system: System, count: int) -> None:
    """Wait until the inbox holds so many messages."""
    query = "SELECT count(*) FROM agent_inbox"
    async with asyncio.timeout(ENDS_SECONDS):
        while system.agent.database.read_sync(lambda c: c.exec_driver_sql(query).scalar_one()) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def cancel_times(system: System) -> list[int]:
    """Return when each run was told to end, 0 for one that was not."""
    return list(
        system.agent.database.read_sync(lambda c: c.exec_driver_sql("SELECT cancel_us FROM agent_runs").scalars())
    )


async def say_next(system: System, person: Person, number: int, text: str, **fields: Any) -> asyncio.Task[Any]:
    """Say something beside what runs, and return once it is the inbox's message of that number."""
    task = asyncio.create_task(person.say(text, **fields))
    await accepted(system, number)
    return task


async def test_messages_wait_by_default_and_are_answered_in_their_order(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held_turn(system, ana, monkeypatch) as first:
        second = await say_next(system, ana, 2, "gracias")
        third = await say_next(system, ana, 3, "adiós", on_busy=ENQUEUE)
    answers = [await first, await second, await third]
    assert [answer.run.status for answer in answers] == [DONE] * 3
    assert [answer.last_sequence for answer in answers] == sorted(answer.last_sequence for answer in answers)
    assert [text for role, text in await ana.transcript() if role == "user"] == ["hola", "gracias", "adiós"]


@pytest.mark.slow
async def test_a_message_that_is_not_to_wait_is_refused_and_its_request_id_stays_free(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held_turn(system, ana, monkeypatch) as first:
        with pytest.raises(aio.AioRpcError) as caught:
            await ana.say("gracias", request_id="request-9", on_busy=REJECT)
        told = refused(caught.value)
        assert (told.code, told.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "THREAD_BUSY")
        assert told.metadata == {"thread_id": "t1"}
        assert (await ana.say("hola", "t2", on_busy=REJECT)).run.status == DONE
        assert (await system.person("ben").say("hola", on_busy=REJECT)).run.status == DONE
    await first
    assert (await ana.say("adiós", request_id="request-9", on_busy=REJECT)).run.status == DONE


async def test_a_suspended_run_is_not_busy_and_is_not_interrupted(system: System, ana: Person) -> None:
    asked = await ana.say(WRITE)
    approval_id, code = approval_of(asked)
    for on_busy in (REJECT, INTERRUPT, COALESCE):
        answer = await ana.say("hola", on_busy=on_busy)
        assert (answer.run.id != asked.run.id, answer.run.status) == (True, DONE)
    assert (await ana.run(asked.run.id)).status == SUSPENDED
    done = await ana.say(f"APROBAR {approval_id} {code}", on_busy=INTERRUPT)
    assert (done.run.id, done.run.status) == (asked.run.id, DONE)
    assert system.sandbox.joinpath("notas.txt").read_text() == "hola"


async def test_an_interrupting_message_cancels_what_runs_and_nothing_that_waits(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held_turn(system, ana, monkeypatch, WRITE) as first:
        second = await say_next(system, ana, 2, "gracias")
        third = await say_next(system, ana, 3, "adiós", on_busy=INTERRUPT)
    stopped, waited, served = await first, await second, await third
    assert (stopped.run.status, stopped.run.reason) == (CANCELLED, "INTERRUPTED")
    assert "otro mensaje de esta conversación" in stopped.reply.text
    assert "como pediste" not in stopped.reply.text
    assert [call.state for call in stopped.run.tool_calls if call.state in ("started", "finished")] == []
    assert waited.run.status == served.run.status == DONE
    assert waited.last_sequence < served.last_sequence
    assert len({stopped.run.id, waited.run.id, served.run.id}) == 3
    assert not system.sandbox.joinpath("notas.txt").exists()


async def test_a_person_who_cancels_what_a_message_interrupts_is_told_that_they_did(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held_turn(system, ana, monkeypatch, WRITE) as first:
        second = await say_next(system, ana, 2, "gracias", on_busy=INTERRUPT)
        [interrupted] = cancel_times(system)
        system.clock.advance(1)
        request = run_pb2.CancelRunRequest(run_id=(await ana.thread()).last_run.id)
        cancelling = runs_of(system).CancelRun(request, metadata=ana.metadata, timeout=60)
        async with asyncio.timeout(ENDS_SECONDS):
            while cancel_times(system) == [interrupted]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    stopped = await first
    await cancelling
    await second
    assert stopped.run.reason == "CANCELLED"
    assert "como pediste" in stopped.reply.text


async def test_messages_that_wait_are_answered_together_and_each_caller_gets_that_answer(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held_turn(system, ana, monkeypatch) as first:
        second = await say_next(system, ana, 2, "lee el archivo", request_id="request-2")
        third = await say_next(system, ana, 3, "notas.txt", request_id="request-3", on_busy=COALESCE)
        stream = asyncio.create_task(ana.stream("por favor", request_id="request-4", on_busy=COALESCE))
        await accepted(system, 4)
    alone, lead, joined, events = await first, await second, await third, await stream
    assert alone.run.id != lead.run.id
    assert joined == lead
    assert [event.run_id for event in events] == [lead.run.id] * len(events)
    assert [events[0].WhichOneof("kind"), events[-1].WhichOneof("kind")] == ["run_started", "run_finished"]
    assert events[-1].sequence == lead.last_sequence
    users = [text for role, text in await ana.transcript() if role == "user"]
    assert users == ["hola", "lee el archivo\nnotas.txt\npor favor"]
    assert await ana.say("notas.txt", request_id="request-3", on_busy=COALESCE) == joined
    assert await ana.stream("por favor", request_id="request-4", on_busy=COALESCE) == events
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.say("notas.txt", request_id="request-3")
    assert refused(caught.value).reason == "REQUEST_CONFLICT"


@pytest.mark.parametrize("changed", [{"on_busy": REJECT}, {"graph": "secured"}, {"text": "adiós"}])
async def test_the_same_request_id_with_another_choice_is_a_conflict(
    system: System, ana: Person, changed: dict[str, Any]
) -> None:
    first = await ana.say("hola", request_id="request-1")
    assert await ana.say("hola", request_id="request-1", on_busy=ENQUEUE) == first
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.say(**{"text": "hola", "request_id": "request-1", **changed})
    assert refused(caught.value).reason == "REQUEST_CONFLICT"


async def test_a_thread_keeps_its_graph_and_an_unknown_one_is_no_graph(system: System, ana: Person) -> None:
    assert (await ana.say("hola", graph="secured")).run.graph == "secured"
    assert (await ana.say("gracias")).run.graph == (await ana.thread()).graph == "secured"
    for graph in ("nonsense", "../secured", "x" * 65):
        with pytest.raises(aio.AioRpcError) as caught:
            await ana.say("hola", "t2", graph=graph)
        told = refused(caught.value)
        assert (told.code, told.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["graph"])
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.say("hola", "t2", on_busy=99)
    assert refused(caught.value).fields == ["on_busy"]
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.thread("t2")
    assert refused(caught.value).reason == "THREAD_NOT_FOUND"


async def test_another_graph_than_the_threads_is_a_conflict(stores: Stores) -> None:
    await stores.accepted("request-1", graph="react")
    await stores.accepted("request-2")
    with pytest.raises(FailedPrecondition) as caught:
        await stores.accepted("request-3", graph="secured")
    assert (caught.value.reason, caught.value.metadata) == ("GRAPH_CONFLICT", {"graph": "react"})
    assert (await stores.claimed()).run.graph == "react"
    assert len(stores.rows("agent_inbox")) == 2


async def test_whoever_claims_decides_who_is_answered_together_and_a_second_claim_finds_the_same(
    stores: Stores,
) -> None:
    await stores.accepted("request-1", text="uno")
    await stores.accepted("request-2", text="dos", on_busy="coalesce")
    claim = await stores.claimed()
    assert (claim.turn.text, len(claim.turn.joined)) == ("uno\ndos", 1)
    late = await stores.accepted("request-3", text="tres", on_busy="coalesce")
    stores.pass_time(LEASE_SECONDS + 1)
    again = await stores.claimed(holder="another")
    assert (again.attempt, again.turn.text, again.turn.joined) == (2, "uno\ndos", claim.turn.joined)
    with pytest.raises(LeaseLostError):
        await stores.end(claim)
    await stores.end(again)
    states = {row.message_id: row.state for row in stores.rows("agent_inbox", "message_id, state")}
    assert states == {"request-1": "handled", "request-2": "handled", "request-3": "waiting"}
    alone = await stores.claimed()
    assert (alone.turn.turn_id, alone.turn.text, alone.turn.joined) == (late.turn_id, "tres", ())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"text": "RECHAZAR ap_abcdef"}, {"text": "hola"}),
        ({"text": "hola"}, {"text": "RECHAZAR ap_abcdef"}),
        ({"text": "RECHAZAR"}, {"text": "ap_abcdef"}),
        ({"text": "hola", "credential_hash": "sha256:1"}, {"text": "hola", "credential_hash": "sha256:2"}),
        ({"text": "hola", "level": "user"}, {"text": "hola", "level": "operator"}),
        ({"text": "x" * 10_000}, {"text": "y" * 10_000}),
    ],
    ids=["after a reply", "a reply", "a reply in two", "another credential", "another level", "too long"],
)
async def test_what_cannot_be_one_stays_apart(stores: Stores, first: dict[str, Any], second: dict[str, Any]) -> None:
    await stores.accepted("request-1", **first)
    await stores.accepted("request-2", **second, on_busy="coalesce")
    claim = await stores.claimed()
    assert (claim.turn.text, claim.turn.joined) == (first["text"], ())
    await stores.end(claim)
    assert (await stores.claimed()).turn.text == second["text"]


async def test_a_message_joins_only_what_waits_right_before_it(stores: Stores) -> None:
    await stores.accepted("request-1", text="uno")
    await stores.accepted("request-2", text="dos")
    await stores.accepted("request-3", text="tres", on_busy="coalesce")
    first = await stores.claimed()
    assert first.turn.text == "uno"
    await stores.end(first)
    assert (await stores.claimed()).turn.text == "dos\ntres"


async def test_of_many_that_are_not_to_wait_one_is_taken(stores: Stores) -> None:
    tries = (stores.accepted(f"request-{number}", on_busy="reject") for number in range(8))
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(answer, FailedPrecondition) for answer in answers) == 7
    assert len(stores.rows("agent_inbox")) == 1


async def test_an_interruption_is_noted_once_and_never_on_a_run_that_only_waits(stores: Stores) -> None:
    await stores.accepted("request-1")
    await stores.accepted("request-2", on_busy="interrupt")
    assert [row.cancel_us for row in stores.rows("agent_runs")] == [0]
    await stores.claimed()
    await stores.accepted("request-3", on_busy="interrupt")
    [noted] = stores.rows("agent_runs", "cancel_us")
    assert noted.cancel_us == stores.clock.now_us()
    stores.clock.advance(1)
    await stores.accepted("request-3", on_busy="interrupt")
    await stores.accepted("request-4", on_busy="interrupt")
    assert stores.rows("agent_runs", "cancel_us") == [noted]
    assert await stores.inbox.threads_with_work() == [T1]


STOPS = [
    *("para", "STOP!!!", "espera", "no hagas nada", "hold on", "cancela todo", "¡para ya!", "stop it please"),
    *("wait", "detente", "basta", "don't do anything", "never mind", "olvídalo", "cancel everything"),
]
NO_STOPS = ["gracias", "no", "para mañana", "stop the music?", "don't stop", "no pares", "espera a Ana", "holds on",
            "ahora vuelvo", "brb", "déjame ver", "un rato", "one minute", "give me a minute"]  # fmt: skip


@pytest.mark.parametrize("word", STOPS)
async def test_a_lone_stop_word_ends_what_is_being_done_and_one_reply_says_what_was_and_was_not(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    async with held_turn(system, ana, monkeypatch, text=WRITE) as first:
        saying = await say_next(system, ana, 2, word)
    cut, stopped = await first, await saying
    assert (cut.run.status, cut.run.reason, cut.reply.text) == (CANCELLED, "CANCELLED", "")
    assert stopped.run.reason == "STOPPED"
    assert "notas.txt" in stopped.reply.text
    assert stopped.reply.text.startswith(("De acuerdo, cancelado", "All right, cancelled"))
    assert list(system.sandbox.iterdir()) == []


@pytest.mark.parametrize("word", NO_STOPS)
async def test_other_words_wait_for_their_turn(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    async with held_turn(system, ana, monkeypatch, text="hola") as first:
        saying = await say_next(system, ana, 2, word)
    await saying
    assert (await first).run.status == DONE


@pytest.fixture
def held_second_call(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Let the second call that RiskGate is asked about wait; return what says that it does, and what lets it go."""
    reached, go, asked = asyncio.Event(), asyncio.Event(), 0
    real = RiskGateAdapter.evaluate

    async def slow(*args: Any, **named: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 2:
            reached.set()
            await go.wait()
        return await real(*args, **named)

    monkeypatch.setattr(RiskGateAdapter, "evaluate", slow)
    return reached, go


async def test_what_was_done_before_the_stop_is_said_to_be_done(
    system: System, ana: Person, held_second_call: tuple[asyncio.Event, asyncio.Event]
) -> None:
    reached, go = held_second_call
    for name in ("a.txt", "b.txt", "c.txt"):
        system.sandbox.joinpath(name).write_text(name)
    first = asyncio.create_task(ana.say("lee a.txt y lee b.txt y lee c.txt"))
    await asyncio.wait_for(reached.wait(), ENDS_SECONDS)
    saying = await say_next(system, ana, 2, "¡para!")
    go.set()
    cut, stopped = await first, await saying
    assert (cut.run.status, cut.reply.text) == (CANCELLED, "")
    left, done = stopped.reply.text.split(" Ya estaba hecho: ")
    assert ("b.txt" in left, "c.txt" in left, "a.txt" in left) == (True, True, False)
    assert "a.txt" in done


async def test_a_stop_is_for_all_that_was_said_before_it_and_for_nothing_after(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held_turn(system, ana, monkeypatch) as first:
        second = await say_next(system, ana, 2, WRITE)
        stop = await say_next(system, ana, 3, "para")
        last = await say_next(system, ana, 4, 'escribe "hola" en otra.txt')
    assert [(await one).run.status for one in (first, second)] == [CANCELLED, CANCELLED]
    assert "notas.txt" in (await stop).reply.text
    assert (await last).run.status in (SUSPENDED, DONE)
    assert not system.sandbox.joinpath("notas.txt").exists()


async def test_a_stop_beside_a_file_or_for_an_explicit_refusal_is_as_before(stores: Stores) -> None:
    await stores.accepted("request-1")
    await stores.claimed()
    with pytest.raises(FailedPrecondition):
        await stores.accepted("request-2", text="para", on_busy="reject")
    await stores.accepted("request-3", text="para", attachments=("document:out_1",))
    assert [row.cancel_us for row in stores.rows("agent_runs", "cancel_us")] == [0]


async def test_a_wait_leaves_the_cards_that_wait(system: System, ana: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = await ana.say(WRITE)
    assert asked.run.status == SUSPENDED
    async with held_turn(system, ana, monkeypatch, text='escribe "x" en otra.txt') as first:
        saying = await say_next(system, ana, 3, "espera")
    assert (await first).run.status == CANCELLED
    assert "otra.txt" in (await saying).reply.text
    assert (await ana.run(asked.run.id)).status == SUSPENDED


async def test_a_stop_behind_a_message_that_was_to_go_first_stops_both(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with held_turn(system, ana, monkeypatch) as first:
        second = await say_next(system, ana, 2, WRITE, on_busy=INTERRUPT)
        stop = await say_next(system, ana, 3, "para")
    assert (await first).run.status == CANCELLED
    assert (await second).run.status == CANCELLED
    assert "notas.txt" in (await stop).reply.text


async def test_what_somebody_else_approved_is_not_begun_after_a_stop(stores: Stores) -> None:
    await stores.accepted("request-1", text=WRITE)
    claim = await stores.claimed()
    await stores.end(claim, status="suspended", approval_id="ap_1")
    await stores.accepted("request-2", text="hola")
    second = await stores.claimed()
    waiting = await stores.runs.get(ANA, claim.run.run_id)
    assert await stores.inbox.note_approval_decided(waiting, "APPROVED") is not None
    await stores.accepted("request-3", text="para")
    await stores.end(second)
    resumed = await stores.claimed()
    assert resumed.run.run_id == claim.run.run_id
    [row] = [one for one in stores.rows("agent_runs", "run_id, cancel_us") if one.run_id == claim.run.run_id]
    assert row.cancel_us > 0
