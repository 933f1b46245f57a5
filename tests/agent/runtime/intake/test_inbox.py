"""The inbox, claiming turns and ending them, on a real SQLite file."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from phylactery_agent.ports import LeaseLostError
from phylactery_agent.runtime.intake.inbox import MAX_QUEUED
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.runtime.storage.schema import METADATA
from phylactery_chassis.errors import AlreadyExists, NotFound, ResourceExhausted

from tests.support.agent.stores import ANA, BEN, T1, Stores


def test_the_migration_creates_exactly_the_declared_tables(stores: Stores) -> None:
    with stores.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "phylactery_agent_version"})
        differences = compare_metadata(context, METADATA)
    assert [d for d in differences if d[0] != "remove_table"] == []


async def test_the_same_request_again_is_the_same_turn(stores: Stores) -> None:
    first = await stores.accepted()
    again = await stores.accepted()
    assert again.turn_id == first.turn_id
    assert len(stores.rows("agent_inbox")) == 1


async def test_eight_same_requests_at_once_are_one_turn(stores: Stores) -> None:
    turns = await asyncio.gather(*(stores.accepted() for _ in range(8)))
    assert len({turn.turn_id for turn in turns}) == 1


async def test_the_same_request_id_with_another_body_is_a_conflict(stores: Stores) -> None:
    await stores.accepted(text="hola")
    with pytest.raises(AlreadyExists) as caught:
        await stores.accepted(text="adiós")
    assert caught.value.reason == "REQUEST_CONFLICT"
    assert caught.value.metadata == {"request_id": "request-1"}


async def test_the_request_ids_of_two_users_do_not_meet(stores: Stores) -> None:
    first = await stores.accepted(thread_id="t1")
    second = await stores.accepted(owner=BEN, thread_id="t2")
    assert first.turn_id != second.turn_id


@pytest.mark.parametrize("stranger", [BEN, Owner("other", "ana")])
async def test_a_thread_is_its_owners_and_the_same_name_is_another_thread_for_somebody_else(
    stores: Stores, stranger: Owner
) -> None:
    mine = await stores.accepted()
    with pytest.raises(NotFound) as caught:
        await stores.threads.get(stranger, "t1")
    assert caught.value.reason == "THREAD_NOT_FOUND"
    theirs = await stores.accepted(owner=stranger, text="buenas")
    assert (mine.position, theirs.position) == (1, 1)
    assert set(await stores.inbox.threads_with_work()) == {T1, stranger.thread_key("t1")}
    for owner, turn in ((ANA, mine), (stranger, theirs)):
        claim = await stores.claimed(owner=owner)
        assert (claim.turn.turn_id, claim.lease.thread_id, claim.lease.owner) == (turn.turn_id, "t1", owner)
        await stores.end(claim, "suspended", approval_id=f"ap_{owner.tenant}_{owner.user_id}")
        assert [event.sequence for event in await stores.log.of_turn(turn.turn_id)] == [1, 2, 3]
        assert (await stores.threads.get(owner, "t1")).last_sequence == 3
        [parcel] = await stores.outbox.waiting("transcript", owner.thread_key("t1"))
        assert (parcel.owner, parcel.payload["messages"][0]["text"]) == (owner, turn.text)
        newest = await stores.runs.newest(owner, "t1")
        assert newest is not None
        assert newest.approval_id == f"ap_{owner.tenant}_{owner.user_id}"


def test_no_choice_of_names_lets_two_owners_share_a_thread() -> None:
    keys = {
        Owner(*owner).thread_key(thread)
        for owner, thread in [(("a", "b"), "c"), (("a", "b:c"), ""), (("a:b", "c"), ""), (("a", "c"), "b")]
    }
    assert len(keys) == 4


async def test_too_many_waiting_messages_are_refused(stores: Stores) -> None:
    for number in range(MAX_QUEUED):
        await stores.accepted(f"request-{number}")
    with pytest.raises(ResourceExhausted) as caught:
        await stores.accepted("request-more")
    assert caught.value.reason == "TOO_MANY_QUEUED"


async def test_a_text_with_nul_and_every_plane_comes_back_as_it_was(stores: Stores) -> None:
    text = "a\x00b\u202e𝒳\r\n"
    turn = await stores.accepted(text=text)
    assert (await stores.inbox.get(turn.turn_id)).text == text


async def test_turns_of_a_thread_are_claimed_strictly_in_order(stores: Stores) -> None:
    for number in (1, 2, 3):
        await stores.accepted(f"request-{number}", text=f"m{number}")
    texts = []
    for _ in range(3):
        claim = await stores.claimed()
        texts.append(claim.turn.text)
        await stores.end(claim)
    assert texts == ["m1", "m2", "m3"]
    assert await stores.claims.claim_next(T1, "me") is None


async def test_a_message_opens_a_queued_run_and_the_next_one_waits_for_its_own(stores: Stores) -> None:
    first = await stores.accepted("request-1")
    second = await stores.accepted("request-2")
    assert (await stores.runs.get(ANA, first.run_id)).status == "queued"
    assert second.run_id == ""
    await stores.end(await stores.claimed())
    claim = await stores.claimed()
    assert claim.run.run_id != first.run_id
    assert claim.turn.resumed is False


@pytest.mark.parametrize(
    ("approval_id", "text"), [("", "hola"), ("ap_waiting1", "APROBAR ap_waiting1 ________"), ("ap_waiting1", "sí")]
)
async def test_an_answer_re_enters_the_suspended_run(stores: Stores, approval_id: str, text: str) -> None:
    await stores.accepted("request-1")
    first = await stores.claimed()
    await stores.end(first, "suspended", approval_id=approval_id)
    await stores.accepted("request-2", text=text)
    second = await stores.claimed()
    assert second.run.run_id == first.run.run_id
    assert second.turn.resumed is True
    assert second.lease.fence > first.lease.fence


async def test_the_database_itself_allows_one_run_per_thread_that_is_served(stores: Stores) -> None:
    await stores.accepted()
    columns = ", ".join(c.name for c in METADATA.tables["agent_runs"].columns if c.name != "run_id")
    copy = f"INSERT INTO agent_runs (run_id, {columns}) SELECT 'other', {columns}"
    with pytest.raises(sa.exc.IntegrityError):
        await stores.database.write(lambda connection: connection.execute(sa.text(f"{copy} FROM agent_runs")))


async def test_another_process_cannot_claim_a_held_run_until_the_lease_is_over(stores: Stores) -> None:
    await stores.accepted()
    first = await stores.claimed(holder="a")
    with pytest.raises(LeaseLostError):
        await stores.claims.claim_next(T1, "b")
    stores.pass_time(31)
    second = await stores.claimed(holder="b")
    assert second.turn.turn_id == first.turn.turn_id
    assert (second.lease.fence, second.attempt) == (first.lease.fence + 1, 2)


async def test_the_end_of_a_turn_is_written_whole_and_drops_the_sealed_code(stores: Stores) -> None:
    turn = await stores.accepted(sealed_code=b"sealed")
    claim = await stores.claimed()
    assert claim.turn.sealed_code == b"sealed"
    await stores.end(claim, "suspended", reason="AWAITING_APPROVAL", approval_id="ap_1")
    stored = await stores.inbox.get(turn.turn_id)
    run = await stores.runs.get(ANA, turn.run_id)
    assert (stored.handled, stored.sealed_code, stored.reply_text) == (True, None, "listo")
    assert (run.status, run.reason, run.approval_id) == ("suspended", "AWAITING_APPROVAL", "ap_1")
    told = [event.kind for event in await stores.log.of_turn(turn.turn_id)]
    assert told == ["run_started", "message", "run_finished"]
    [parcel] = await stores.outbox.waiting("transcript", T1)
    assert [(m["role"], m["text"]) for m in parcel.payload["messages"]] == [("user", "hola"), ("assistant", "listo")]


async def test_a_reply_longer_than_memory_takes_is_cut_in_the_transcript_alone(stores: Stores) -> None:
    turn = await stores.accepted()
    await stores.end(await stores.claimed(), reply_text="x" * 100_001)
    [parcel] = await stores.outbox.waiting("transcript", T1)
    assert parcel.payload["messages"][1]["text"] == "x" * 99_999 + "…"
    assert len((await stores.inbox.get(turn.turn_id)).reply_text) == 100_001


async def test_a_stale_holder_cannot_end_a_turn(stores: Stores) -> None:
    turn = await stores.accepted()
    old = await stores.claimed(holder="a")
    stores.pass_time(31)
    await stores.claimed(holder="b")
    with pytest.raises(LeaseLostError):
        await stores.end(old)
    assert (await stores.inbox.get(turn.turn_id)).handled is False
    assert stores.rows("agent_events", "kind") == [("run_started",)]
    assert stores.rows("agent_outbox") == []


async def test_a_start_frees_what_a_dead_process_held(stores: Stores) -> None:
    await stores.accepted()
    await stores.claimed(holder="dead")
    assert await stores.claims.release_all() == 1
    assert list(await stores.inbox.threads_with_work()) == [T1]
    assert (await stores.claimed(holder="alive")).attempt == 2


async def test_a_decided_approval_is_noted_once_and_claimed_as_a_return(stores: Stores) -> None:
    await stores.accepted()
    await stores.end(await stores.claimed(), "suspended", approval_id="ap_1")
    [run] = await stores.runs.awaiting_approval()
    assert await stores.inbox.note_approval_decided(run, "APPROVED") is not None
    assert await stores.inbox.note_approval_decided(run, "APPROVED") is None
    claim = await stores.claimed()
    assert (claim.turn.kind, claim.turn.resumed, claim.run.run_id) == ("approval_decided", True, run.run_id)


async def test_a_decided_approval_that_a_chat_reply_overtook_does_nothing(stores: Stores) -> None:
    await stores.accepted("request-1")
    await stores.end(await stores.claimed(), "suspended", approval_id="ap_waiting1")
    [run] = await stores.runs.awaiting_approval()
    await stores.accepted("request-2", text="APROBAR ap_waiting1 ________")
    note = await stores.inbox.note_approval_decided(run, "APPROVED")
    assert note is not None
    reply = await stores.claimed()
    assert reply.turn.text == "APROBAR ap_waiting1 ________"
    await stores.end(reply)
    assert await stores.claims.claim_next(T1, "me") is None
    assert (await stores.inbox.get(note.turn_id)).handled is True


async def test_nobody_else_sees_a_run(stores: Stores) -> None:
    turn = await stores.accepted()
    with pytest.raises(NotFound) as caught:
        await stores.runs.get(BEN, turn.run_id)
    assert caught.value.reason == "RUN_NOT_FOUND"
    assert await stores.runs.newest(BEN, "t1") is None
