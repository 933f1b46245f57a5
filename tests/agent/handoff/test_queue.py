"""The queue of escalations in the database: claims, silence, replies, expiry, kills and races."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_agent.ports import Told
from phylactery_agent.ports.handoff import EscalationRequest
from phylactery_agent.runtime.handoff import store as handoff_store
from phylactery_agent.runtime.handoff.queue import HANDED_OFF, STOPPED_FOR_PERSON, HandoffOverError
from phylactery_agent.runtime.handoff.records import Handler, StoredEscalation
from phylactery_agent.runtime.handoff.status import EscalationStatus, EscalationTransitionError, advance
from phylactery_agent.runtime.privacy.erasure_store import Erasure, ErasureCounts, ErasureStore
from phylactery_agent.runtime.privacy.retention import Retention
from phylactery_agent.runtime.runs.cancellation import Cancellations
from phylactery_agent.runtime.runs.status import RunStatus
from phylactery_agent.runtime.storage.records import Owner
from phylactery_chassis.errors import AlreadyExists, FailedPrecondition, NotFound

from tests.support.agent.handoff import CLAIM_SECONDS, MARTA, PABLO, called, dying_at, lists_of, queue_of
from tests.support.agent.stores import ANA, BEN, T1, Stores, opened

DAY_SECONDS = 86_400


def said(stores: Stores) -> list[str]:
    """The kinds of events by which somebody says something, in the order of the thread."""
    rows = stores.rows("agent_events", "kind, sequence, thread_key")
    kinds = ("message", "message_delta", "approval_required", "human_message", "handoff")
    return [row.kind for row in sorted(rows, key=lambda row: row.sequence) if row.kind in kinds]


async def kinds(stores: Stores, handler: Handler = MARTA) -> list[str]:
    return [entry.kind for entry in (await lists_of(stores).after(handler, 0)).entries]


async def _shorten_claim(stores: Stores) -> None:
    """Let the claim expire while the leases of runs hold."""
    await stores.database.write(
        lambda connection: connection.execute(sa.text("UPDATE agent_escalations SET claim_until_us = 1"))
    )


def test_an_escalation_goes_only_where_its_table_says() -> None:
    assert advance(EscalationStatus.OPEN, EscalationStatus.CLAIMED) == EscalationStatus.CLAIMED
    for wrong in (
        (EscalationStatus.CLAIMED, EscalationStatus.CLAIMED),
        (EscalationStatus.RELEASED, EscalationStatus.OPEN),
        (EscalationStatus.CLOSED, EscalationStatus.CLAIMED),
        (EscalationStatus.OPEN, EscalationStatus.RELEASED),
    ):
        with pytest.raises(EscalationTransitionError):
            advance(*wrong)


async def test_of_eight_who_claim_at_once_one_wins_and_the_others_are_told_who(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    people = [Handler("acme", f"h{number}") for number in range(8)]
    found = await asyncio.gather(
        *(queue.claim(person, one.escalation_id, "") for person in people), return_exceptions=True
    )
    won = [each for each in found if not isinstance(each, BaseException)]
    lost = [each for each in found if isinstance(each, FailedPrecondition)]
    assert (len(won), len(lost)) == (1, 7)
    assert {(each.reason, each.metadata["handler"]) for each in lost} == {("CLAIM_TAKEN", won[0].handler)}
    assert await kinds(stores) == ["opened", "claimed"]


async def test_of_two_processes_that_claim_at_once_one_wins(stores: Stores) -> None:
    one = await called(stores)
    url = stores.database.engine.url.render_as_string(hide_password=False)
    other = opened(url)
    try:
        elsewhere = queue_of(stores)
        elsewhere._database = other
        found = await asyncio.gather(
            queue_of(stores).claim(MARTA, one.escalation_id, ""),
            elsewhere.claim(PABLO, one.escalation_id, ""),
            return_exceptions=True,
        )
    finally:
        other.close()
    assert sorted(type(each).__name__ for each in found) == ["FailedPrecondition", "StoredEscalation"]


async def test_a_thread_has_one_escalation_at_a_time_however_often_it_is_asked_for(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    again = await asyncio.gather(*(queue.open(ANA, "t1", f"request-{number}", "") for number in range(8)))
    assert {each.escalation_id for each in again} == {one.escalation_id}
    assert await kinds(stores) == ["opened", *["requested"] * 8]
    with pytest.raises(NotFound, match="THREAD_NOT_FOUND"):
        await queue.open(BEN, "t1", "request-9", "")
    await stores.accepted("other", thread_id="t2")
    with pytest.raises(AlreadyExists, match="REQUEST_CONFLICT"):
        await queue.open(ANA, "t2", "request-t1", "")


async def test_a_repeated_request_for_a_person_calls_nobody_again_even_after_the_end(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    joined = await asyncio.gather(*(queue.open(ANA, "t1", "request-2", "still waiting") for _ in range(4)))
    assert {each.escalation_id for each in joined} == {one.escalation_id}
    entries = (await lists_of(stores).after(MARTA, 0)).entries
    assert [(entry.kind, entry.text) for entry in entries] == [
        ("opened", "wants a person"),
        ("requested", "still waiting"),
    ]
    await queue.claim(MARTA, one.escalation_id, "")
    await queue.release(MARTA, one.escalation_id, "agent", "")
    for request_id in ("request-t1", "request-2"):
        repeated = await queue.open(ANA, "t1", request_id, "still waiting")
        assert (repeated.escalation_id, repeated.status) == (one.escalation_id, EscalationStatus.RELEASED)
    await stores.accepted("other", thread_id="t2")
    with pytest.raises(AlreadyExists, match="REQUEST_CONFLICT"):
        await queue.open(ANA, "t2", "request-2", "still waiting")
    assert await kinds(stores) == ["opened", "requested", "claimed", "released"]


async def test_another_tenants_handler_finds_nothing_and_changes_nothing(stores: Stores) -> None:
    one, queue, stranger = await called(stores), queue_of(stores), Handler("globex", "marta")
    for call in (
        queue.claim(stranger, one.escalation_id, ""),
        queue.renew(stranger, one.escalation_id),
        queue.reply(stranger, one.escalation_id, "request-1", "hola"),
        queue.add_note(stranger, one.escalation_id, "request-1", "hola"),
        queue.release(stranger, one.escalation_id, "agent", ""),
        lists_of(stores).get(stranger, one.escalation_id),
    ):
        with pytest.raises(NotFound, match="ESCALATION_NOT_FOUND"):
            await call
    assert await kinds(stores, stranger) == []
    assert await kinds(stores) == ["opened"]


async def test_a_message_that_comes_while_a_person_has_the_thread_is_passed_on_and_not_answered(
    stores: Stores,
) -> None:
    one = await called(stores)
    await queue_of(stores).claim(MARTA, one.escalation_id, "Marta")
    before = said(stores)
    await stores.accepted("request-2", "¿hay alguien?")
    claim = await stores.claimed()
    assert claim.silent
    await stores.end(claim, reason=HANDED_OFF, reply_text="")
    assert said(stores)[len(before) :] == ["handoff"]
    entries = (await lists_of(stores).after(MARTA, 0)).entries
    assert [(entry.kind, entry.text) for entry in entries][-1] == ("message", "¿hay alguien?")
    spoken = [each for parcel in await stores.outbox.waiting("transcript", T1) for each in parcel.payload["messages"]]
    assert ("user", "¿hay alguien?") in [(each["role"], each["text"]) for each in spoken]


@pytest.mark.parametrize("claimed_first", [True, False])
async def test_a_turn_that_runs_when_the_claim_comes_says_nothing_after_it(stores: Stores, claimed_first: bool) -> None:
    one, queue = await called(stores), queue_of(stores)
    await stores.accepted("request-2", "sigue")
    claim = await stores.claimed()
    assert not claim.silent
    writes = stores.writes(claim.lease)
    if claimed_first:
        await queue.claim(MARTA, one.escalation_id, "")
        await stores.events(claim.lease).emit(Told("message_delta", {"text": "ho"}, "delta"))
        await stores.end(claim, writes=writes, reply_text="una respuesta tardía")
        after = said(stores)[said(stores).index("handoff") :]
        assert "message" not in after[2:]
        assert "message_delta" not in after
        (run,) = stores.rows("agent_runs WHERE run_id = '" + claim.lease.run_id + "'", "status, reason")
        assert tuple(run) == (RunStatus.CANCELLED, STOPPED_FOR_PERSON)
        assert await kinds(stores) == ["opened", "claimed", "message"]
        kept = stores.rows("agent_outbox", "payload")
        assert "tard" not in json.dumps([row.payload for row in kept])
    else:
        await stores.end(claim, writes=writes, reply_text="a tiempo")
        await queue.claim(MARTA, one.escalation_id, "")
        assert said(stores)[-2:] == ["message", "handoff"]


async def test_however_a_claim_and_the_end_of_a_turn_interleave_no_word_of_the_agent_follows_the_claim(
    stores: Stores,
) -> None:
    queue = queue_of(stores)
    for number in range(12):
        thread_id = f"race-{number}"
        key = ANA.thread_key(thread_id)
        one = await called(stores, thread_id)
        await stores.accepted(f"race-message-{number}", "sigue", thread_id=thread_id)
        claim = await stores.claimed(thread_id)
        await asyncio.gather(queue.claim(MARTA, one.escalation_id, ""), stores.end(claim, reply_text="hola"))
        rows = sorted(
            (
                row
                for row in stores.rows("agent_events", "kind, sequence, thread_key, payload")
                if row.thread_key == key
            ),
            key=lambda row: row.sequence,
        )
        states = [(row.kind, json.loads(row.payload).get("state")) for row in rows]
        at = states.index(("handoff", "CLAIMED"))
        assert "message" not in [kind for kind, _ in states[at:]]


async def test_a_message_passed_on_while_the_thread_is_handed_back_is_claimed_again_and_answered(
    stores: Stores,
) -> None:
    one, queue = await called(stores), queue_of(stores)
    await queue.claim(MARTA, one.escalation_id, "")
    await stores.accepted("request-2", "¿y ahora?")
    claim = await stores.claimed()
    await queue.release(MARTA, one.escalation_id, "agent", "")
    with pytest.raises(HandoffOverError):
        await stores.end(claim, reason=HANDED_OFF, reply_text="")
    await stores.claims.give_back(claim, pause_seconds=0)
    again = await stores.claimed()
    assert (again.lease.turn_id, again.silent) == (claim.lease.turn_id, False)
    await stores.end(again, reply_text="aquí estoy")
    assert said(stores)[-1] == "message"


@pytest.mark.parametrize("gone", ["release", "queue", "expiry"])
async def test_a_turn_cut_short_for_a_person_who_has_gone_is_served_again_and_not_called_cancelled(
    stores: Stores, gone: str
) -> None:
    one, queue = await called(stores), queue_of(stores)
    await stores.accepted("request-2", "¿y mi pedido?")
    claim = await stores.claimed()
    await queue.claim(MARTA, one.escalation_id, "")
    if gone == "expiry":
        await _shorten_claim(stores)
        assert await queue.expire(wait_seconds=0) == 1
    else:
        await queue.release(MARTA, one.escalation_id, "agent" if gone == "release" else "queue", "")
    with pytest.raises(HandoffOverError):
        await stores.end(claim, RunStatus.CANCELLED, reason="CANCELLED", reply_text="lo he cancelado")
    await stores.claims.give_back(claim, pause_seconds=0)
    again = await stores.claimed()
    assert (again.lease.turn_id, again.silent) == (claim.lease.turn_id, False)
    writes = stores.writes(again.lease)
    await writes.write(lambda _connection, _now: writes.require_wanted())
    await stores.end(again, writes=writes, reply_text="está en camino")
    (run,) = stores.rows("agent_runs WHERE run_id = '" + claim.lease.run_id + "'", "status, reason")
    assert tuple(run) == (RunStatus.DONE, "ANSWERED")
    assert said(stores)[-1] == "message"


async def test_a_turn_that_ends_well_after_the_person_has_gone_says_its_reply(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    await stores.accepted("request-2", "¿y mi pedido?")
    claim = await stores.claimed()
    await queue.claim(MARTA, one.escalation_id, "")
    await queue.release(MARTA, one.escalation_id, "agent", "")
    await stores.end(claim, reply_text="está en camino")
    (run,) = stores.rows("agent_runs WHERE run_id = '" + claim.lease.run_id + "'", "status, reason")
    assert tuple(run) == (RunStatus.DONE, "ANSWERED")
    assert said(stores)[-1] == "message"


async def test_a_turn_that_waits_after_the_person_has_gone_is_not_stopped_by_the_next_claim(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    await stores.accepted("request-2", "borra notas.txt")
    claim = await stores.claimed()
    await queue.claim(MARTA, one.escalation_id, "")
    await queue.release(MARTA, one.escalation_id, "queue", "")
    await stores.end(claim, RunStatus.SUSPENDED, reason="AWAITING_APPROVAL", approval_id="ap_waiting1")
    await queue.claim(PABLO, one.escalation_id, "")
    await stores.accepted("request-3", "APROBAR ap_waiting1 abcdef")
    approved = await stores.claimed()
    assert (approved.lease.run_id, approved.silent) == (claim.lease.run_id, True)
    writes = stores.writes(approved.lease)
    await writes.write(lambda _connection, _now: writes.require_wanted())
    await stores.end(approved, writes=writes)
    (run,) = stores.rows("agent_runs WHERE run_id = '" + claim.lease.run_id + "'", "status")
    assert run.status == RunStatus.DONE


@pytest.mark.parametrize("first", ["claim", "cancellation"])
async def test_a_run_that_its_user_cancels_stays_cancelled_whoever_has_the_thread(stores: Stores, first: str) -> None:
    one, queue = await called(stores), queue_of(stores)
    await stores.accepted("request-2", "sigue")
    claim = await stores.claimed()
    cancellations = Cancellations(stores.database, stores.clock, stores.tools)
    if first == "claim":
        await queue.claim(MARTA, one.escalation_id, "")
        await cancellations.request(ANA, claim.lease.run_id)
    else:
        await cancellations.request(ANA, claim.lease.run_id)
        await queue.claim(MARTA, one.escalation_id, "")
    await queue.release(MARTA, one.escalation_id, "agent", "")
    await stores.end(claim, reply_text="tarde")
    (run,) = stores.rows("agent_runs WHERE run_id = '" + claim.lease.run_id + "'", "status, reason")
    assert tuple(run) == (RunStatus.CANCELLED, "CANCELLED")


@pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.DEAD])
async def test_a_message_whose_turn_fails_under_a_claim_is_passed_on(stores: Stores, status: RunStatus) -> None:
    one, queue = await called(stores), queue_of(stores)
    await stores.accepted("request-2", "¿y mi pedido?")
    claim = await stores.claimed()
    await queue.claim(MARTA, one.escalation_id, "")
    await stores.end(claim, status, reason="INTERNAL_ERROR", reply_text="lo siento")
    entries = (await lists_of(stores).after(MARTA, 0)).entries
    assert (entries[-1].kind, entries[-1].text) == ("message", "¿y mi pedido?")
    assert said(stores)[-1] == "handoff"


async def test_a_cancelled_turn_calls_nobody(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    await Cancellations(stores.database, stores.clock, stores.tools).request(ANA, claim.lease.run_id)
    await stores.end(claim, escalation=EscalationRequest("keyword", "hablar con alguien"))
    assert not stores.rows("agent_escalations")


async def test_a_reply_is_in_the_thread_the_transcript_and_the_queue_once_per_request(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    await queue.claim(MARTA, one.escalation_id, "Marta")
    first = await queue.reply(MARTA, one.escalation_id, "request-1", "Hola, soy Marta")
    again = await queue.reply(MARTA, one.escalation_id, "request-1", "Hola, soy Marta")
    assert first == again
    with pytest.raises(AlreadyExists, match="REQUEST_CONFLICT"):
        await queue.reply(MARTA, one.escalation_id, "request-1", "otra cosa")
    (event,) = [row for row in stores.rows("agent_events", "kind, payload") if row.kind == "human_message"]
    told = json.loads(event.payload)
    assert (told["text"], told["display_name"], told["escalation_id"]) == (
        "Hola, soy Marta",
        "Marta",
        one.escalation_id,
    )
    spoken = [each for parcel in await stores.outbox.waiting("transcript", T1) for each in parcel.payload["messages"]]
    (kept,) = [each for each in spoken if each["id"] == told["message_id"]]
    assert (kept["role"], kept["text"]) == ("assistant", "[Marta, una persona de nuestro equipo] Hola, soy Marta")
    assert await kinds(stores) == ["opened", "claimed", "reply"]


@pytest.mark.parametrize("writes", ["reply", "release", "renew"])
async def test_a_claim_that_expires_while_the_person_types_refuses_what_they_send(stores: Stores, writes: str) -> None:
    one, queue = await called(stores), queue_of(stores)
    await queue.claim(MARTA, one.escalation_id, "")
    stores.pass_time(CLAIM_SECONDS + 1)
    before = said(stores)

    async def send(handler: Handler) -> Any:
        if writes == "reply":
            return await queue.reply(handler, one.escalation_id, "request-1", "tarde")
        if writes == "release":
            return await queue.release(handler, one.escalation_id, "agent", "tarde")
        return await queue.renew(handler, one.escalation_id)

    with pytest.raises(FailedPrecondition, match="CLAIM_EXPIRED"):
        await send(MARTA)
    await queue.claim(PABLO, one.escalation_id, "")
    with pytest.raises(FailedPrecondition, match="CLAIM_TAKEN"):
        await send(MARTA)
    assert "human_message" not in said(stores)[len(before) :]
    assert await kinds(stores) == ["opened", "claimed", "expired", "claimed"]
    assert await send(PABLO)


async def test_without_a_claim_nothing_is_said(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    with pytest.raises(FailedPrecondition, match="CLAIM_REQUIRED"):
        await queue.reply(MARTA, one.escalation_id, "request-1", "hola")
    await queue.claim(MARTA, one.escalation_id, "")
    await queue.release(MARTA, one.escalation_id, "agent", "")
    for call in (queue.reply(MARTA, one.escalation_id, "request-2", "x"), queue.claim(PABLO, one.escalation_id, "")):
        with pytest.raises(FailedPrecondition, match="ESCALATION_ENDED"):
            await call
    assert "human_message" not in said(stores)


async def test_a_renewal_and_a_reply_keep_the_claim(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    await queue.claim(MARTA, one.escalation_id, "")
    stores.pass_time(CLAIM_SECONDS - 10)
    await queue.renew(MARTA, one.escalation_id)
    stores.pass_time(CLAIM_SECONDS - 10)
    await queue.reply(MARTA, one.escalation_id, "request-1", "sigo aquí")
    stores.pass_time(CLAIM_SECONDS - 10)
    await queue.reply(MARTA, one.escalation_id, "request-2", "y aquí")
    assert await queue.expire(wait_seconds=0) == 0


async def test_an_expired_claim_goes_back_to_the_queue_and_the_agent_answers_again(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    await queue.claim(MARTA, one.escalation_id, "")
    stores.pass_time(CLAIM_SECONDS + 1)
    assert sum(await asyncio.gather(*(queue.expire(wait_seconds=0) for _ in range(4)))) == 1
    assert await kinds(stores) == ["opened", "claimed", "expired"]
    await stores.accepted("request-2")
    assert not (await stores.claimed()).silent


async def test_who_waits_too_long_is_told_so_once_and_may_ask_again(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    assert await queue.expire(wait_seconds=0) == 0
    stores.pass_time(601)
    assert sum(await asyncio.gather(*(queue.expire(wait_seconds=600) for _ in range(4)))) == 1
    assert said(stores)[-2:] == ["handoff", "message"]
    assert (await kinds(stores))[-1] == "closed"
    again = await queue.open(ANA, "t1", "request-again", "")
    assert again.escalation_id != one.escalation_id


async def test_a_summary_is_kept_in_the_transcript_under_the_handlers_name_and_the_agent_goes_on(
    stores: Stores,
) -> None:
    one, queue = await called(stores), queue_of(stores)
    await queue.claim(MARTA, one.escalation_id, "Marta")
    done = await queue.release(MARTA, one.escalation_id, "agent", "Le envío otro pedido.")
    assert await queue.release(MARTA, one.escalation_id, "agent", "Le envío otro pedido.") == done
    assert await kinds(stores) == ["opened", "claimed", "released"]
    spoken = [each for parcel in await stores.outbox.waiting("transcript", T1) for each in parcel.payload["messages"]]
    assert [each["text"] for each in spoken if "Marta" in each["text"]] == [
        "[La conversación con Marta, una persona de nuestro equipo, ha terminado. Su resumen: Le envío otro pedido.]"
    ]
    await stores.accepted("request-2")
    assert not (await stores.claimed()).silent


async def test_back_in_the_queue_another_handler_may_take_it_and_the_time_to_claim_is_the_first(
    stores: Stores,
) -> None:
    one, queue = await called(stores), queue_of(stores)
    first = await queue.claim(MARTA, one.escalation_id, "Marta")
    await queue.release(MARTA, one.escalation_id, "queue", "es para ventas")
    second = await queue.claim(PABLO, one.escalation_id, "Pablo")
    assert (second.handler, second.display_name, second.claimed_us) == ("pablo", "Pablo", first.claimed_us)
    assert await kinds(stores) == ["opened", "claimed", "requeued", "claimed"]


async def test_putting_back_is_repeated_without_an_error_until_the_handler_claims_again(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    await queue.claim(MARTA, one.escalation_id, "Marta")
    await queue.release(MARTA, one.escalation_id, "queue", "es para ventas")
    again = await queue.release(MARTA, one.escalation_id, "queue", "es para ventas")
    assert again.status is EscalationStatus.OPEN
    with pytest.raises(FailedPrecondition, match="CLAIM_REQUIRED"):
        await queue.release(MARTA, one.escalation_id, "queue", "something else")
    with pytest.raises(FailedPrecondition, match="CLAIM_REQUIRED"):
        await queue.release(PABLO, one.escalation_id, "queue", "es para ventas")
    await queue.claim(PABLO, one.escalation_id, "Pablo")
    late = await queue.release(MARTA, one.escalation_id, "queue", "es para ventas")
    assert (late.status, late.handler) == (EscalationStatus.CLAIMED, "pablo")
    assert await kinds(stores) == ["opened", "claimed", "requeued", "claimed"]
    await queue.release(PABLO, one.escalation_id, "queue", "")
    await queue.claim(MARTA, one.escalation_id, "Marta")
    await queue.release(MARTA, one.escalation_id, "queue", "es para ventas")
    assert (await kinds(stores))[-2:] == ["claimed", "requeued"]


async def test_one_claim_that_cannot_be_ended_does_not_keep_the_others(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = queue_of(stores)
    ids = [(await called(stores, f"t{number}")).escalation_id for number in range(1, 4)]
    for escalation_id in ids:
        await queue.claim(MARTA, escalation_id, "")
    stores.pass_time(CLAIM_SECONDS + 1)
    requeue = handoff_store.requeue

    def broken(connection: Any, escalation: StoredEscalation, *arguments: Any, **options: Any) -> StoredEscalation:
        if escalation.escalation_id == ids[0]:
            raise sa.exc.DataError("UPDATE", {}, ValueError("a broken row"))
        return requeue(connection, escalation, *arguments, **options)

    monkeypatch.setattr(handoff_store, "requeue", broken)
    assert await queue.expire(wait_seconds=0) == 2
    monkeypatch.undo()
    assert await queue.expire(wait_seconds=0) == 1
    assert (await kinds(stores)).count("expired") == 3


async def test_looking_for_what_expires_reads_nothing_that_has_ended(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    asked: list[tuple[str, Any]] = []
    engine = stores.database.engine

    def listen(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "ORDER BY agent_escalations.queued_us" in statement:
            asked.append((statement, parameters))

    sa.event.listen(engine, "before_cursor_execute", listen)
    try:
        await queue.expire(wait_seconds=600)
    finally:
        sa.event.remove(engine, "before_cursor_execute", listen)
    ((statement, parameters),) = asked
    how = "EXPLAIN QUERY PLAN " if engine.dialect.name == "sqlite" else "EXPLAIN "

    def work(connection: Any) -> str:
        if how == "EXPLAIN ":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # a table of one row is read whole otherwise
        return "\n".join(str(tuple(row)) for row in connection.exec_driver_sql(how + statement, parameters))

    assert "agent_escalations_one_active" in await stores.database.read(work), one.escalation_id


@pytest.mark.parametrize(
    ("point", "happened"),
    [
        ("agent.handoff.claim.before", False),
        ("agent.handoff.claim", True),
        ("agent.handoff.reply.before", False),
        ("agent.handoff.reply", True),
        ("agent.handoff.release.before", False),
        ("agent.handoff.release", True),
    ],
)
async def test_a_process_that_dies_around_a_write_leaves_it_done_or_not_and_the_same_request_ends_it(
    stores: Stores, point: str, happened: bool
) -> None:
    one, queue = await called(stores), queue_of(stores)

    async def steps() -> None:
        await queue.claim(MARTA, one.escalation_id, "")
        await queue.reply(MARTA, one.escalation_id, "request-1", "hola")
        await queue.release(MARTA, one.escalation_id, "agent", "listo")

    with dying_at(point), pytest.raises(RuntimeError, match=point):
        await steps()
    word = {"claim": "claimed", "reply": "reply", "release": "released"}[point.split(".")[2]]
    assert (word in await kinds(stores)) is happened
    if word == "released" and happened:
        await queue.release(MARTA, one.escalation_id, "agent", "listo")
    else:
        await steps()
    assert await kinds(stores) == ["opened", "claimed", "reply", "released"]


async def test_a_turn_that_ends_with_an_escalation_opens_it_in_the_same_transaction(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    wanted = EscalationRequest("sentiment", "está enfadada", "complaint", '{"order": "A1"}')
    await stores.end(claim, escalation=wanted)
    (row,) = stores.rows("agent_escalations")
    assert (row.policy, row.form_id, row.status, row.run_id) == ("sentiment", "complaint", "open", claim.lease.run_id)
    assert said(stores) == ["handoff", "message"]
    found, _ = await lists_of(stores).get(MARTA, row.escalation_id)
    assert (found.reason, found.form_state, found.language) == ("está enfadada", '{"order": "A1"}', "es")


@pytest.mark.parametrize("what", ["user", "thread"])
async def test_everything_of_an_escalation_goes_with_its_person(stores: Stores, what: str) -> None:
    one, queue = await called(stores), queue_of(stores)
    theirs = await called(stores, "t9", BEN)
    await queue.claim(MARTA, one.escalation_id, "Marta")
    await queue.add_note(MARTA, one.escalation_id, "request-1", "secreto")
    if what == "user":

        def done(counts: ErasureCounts) -> Erasure:
            return Erasure("er_1", "", "", "acme", False, 0, "", counts, False, 1)  # noqa: FBT003

        assert await ErasureStore(stores.database, stores.clock).erase(ANA, {T1}, done) is not None
    else:
        from phylactery_agent.runtime.privacy.delete_thread import DeletionStore

        await DeletionStore(stores.database, stores.clock, stores.tools).remove(ANA, "t1")
    assert [row.escalation_id for row in stores.rows("agent_escalations", "escalation_id")] == [theirs.escalation_id]
    left = (await lists_of(stores).after(MARTA, 0)).entries
    assert {entry.escalation_id for entry in left} == {theirs.escalation_id}
    with pytest.raises(NotFound, match="ESCALATION_NOT_FOUND"):
        await queue.reply(MARTA, one.escalation_id, "request-2", "hola")


async def test_what_ended_is_removed_after_its_retention_and_what_waits_is_not(stores: Stores) -> None:
    one, queue = await called(stores), queue_of(stores)
    waiting = await called(stores, "t2")
    await queue.claim(MARTA, one.escalation_id, "")
    await queue.release(MARTA, one.escalation_id, "agent", "")
    stores.clock.advance(400 * DAY_SECONDS)  # also past the database's own clock
    stores.clock.advance(40 * 365 * DAY_SECONDS)
    await Retention(stores.database, stores.clock, days=30).sweep()
    left = stores.rows("agent_escalations", "escalation_id")
    assert [row.escalation_id for row in left] == [waiting.escalation_id]
    assert {row.escalation_id for row in stores.rows("agent_escalation_entries")} == {waiting.escalation_id}


async def test_pages_are_complete_and_of_one_tenant(stores: Stores) -> None:
    made = [(await called(stores, f"p{number}")).escalation_id for number in range(5)]
    await called(stores, "x", Owner("globex", "eva"))
    found: list[str] = []
    token = ""
    while True:
        page, last = await lists_of(stores).page(MARTA, statuses=["open"], mine=False, policy="", size=2, token=token)
        found += [one.escalation_id for one in page.rows]
        token = page.next_page_token
        if not token:
            break
    assert (sorted(found), last) == (sorted(made), 5)
