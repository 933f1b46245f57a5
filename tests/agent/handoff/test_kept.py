"""What is kept of what is said in an escalation: sealed while it lasts, read by who has it, empty once it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
import sqlalchemy as sa
from phylactery_agent.ports.handoff import EscalationRequest
from phylactery_agent.runtime.handoff.records import Handler, QueueEntry, StoredEscalation
from phylactery_agent.runtime.handoff.texts import empty_former
from phylactery_agent.runtime.storage.clear_texts import seal_clear_texts
from phylactery_chassis.errors import AlreadyExists, FailedPrecondition
from sqlalchemy.engine import Connection

from tests.support.agent.handoff import CLAIM_SECONDS, MARTA, PABLO, called, lists_of, queue_of
from tests.support.agent.stores import SEALER, Stores

CANARY = "zarzuela"


async def talked(stores: Stores, end: str = "") -> StoredEscalation:
    """Return an escalation under whose claim everybody said something; it ended in a way, if one is named."""
    await stores.accepted("first", thread_id="t1")
    wanted = EscalationRequest("keyword", f"{CANARY} reason", "desk", f'{{"a": "{CANARY} state"}}')
    await stores.end(await stores.claimed("t1"), escalation=wanted)
    (row,) = stores.rows("agent_escalations", "escalation_id")
    queue = queue_of(stores)
    one = await queue.claim(MARTA, row.escalation_id, "Marta")
    await stores.accepted("second", f"{CANARY} message", thread_id="t1")
    await stores.end(await stores.claimed("t1"))
    await queue.reply(MARTA, one.escalation_id, "reply-0001", f"{CANARY} reply")
    await queue.add_note(MARTA, one.escalation_id, "note-0001", f"{CANARY} note")
    if end == "release":
        await queue.release(MARTA, one.escalation_id, "agent", f"{CANARY} summary")
    elif end == "queue":
        await queue.release(MARTA, one.escalation_id, "queue", f"{CANARY} summary")
    elif end in ("expiry", "closed"):
        stores.pass_time(CLAIM_SECONDS + 1)
        assert await queue.expire(wait_seconds=0) == 1
    if end == "closed":
        stores.pass_time(601)
        assert await queue.expire(wait_seconds=600) == 1
    return one


def in_clear(stores: Stores) -> list[str]:
    """Return which columns of the queue hold the canary in clear."""
    found = []
    for table in ("agent_escalations", "agent_escalation_entries"):
        stored = sa.text(f"SELECT * FROM {table}")
        for row in stores.database.read_sync(lambda c, stored=stored: c.execute(stored).mappings().all()):
            found += [
                f"{table}.{name}"
                for name, value in row.items()
                if CANARY.encode() in (bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode())
            ]
    return found


def texts_of(entries: Sequence[QueueEntry]) -> list[str]:
    return [entry.text for entry in entries if entry.text]


async def started_twice(stores: Stores) -> None:
    """Do what an agent does at its start before it serves anybody, two times."""
    for _ in range(2):
        await asyncio.to_thread(empty_former, stores.database)
        await seal_clear_texts(stores.database, SEALER)


SAID = [f"{CANARY} message", f"{CANARY} reply", f"{CANARY} note"]


async def test_during_the_claim_only_who_has_it_reads_what_is_said_and_nothing_is_in_clear(stores: Stores) -> None:
    one = await talked(stores)
    assert in_clear(stores) == []
    for handler, wanted in ((MARTA, [f"{CANARY} reason", *SAID]), (PABLO, [f"{CANARY} reason"])):
        _, entries = await lists_of(stores).get(handler, one.escalation_id)
        assert texts_of(entries) == wanted
        assert texts_of((await lists_of(stores).after(handler, 0)).entries) == wanted
        assert len(entries) == 5, "that something was said is seen by all"


@pytest.mark.parametrize("end", ["queue", "expiry"])
async def test_who_takes_it_over_gets_what_was_said_before(stores: Stores, end: str) -> None:
    one = await talked(stores, end)
    summary = [f"{CANARY} summary"] if end == "queue" else []
    await queue_of(stores).claim(PABLO, one.escalation_id, "Pablo")
    found, entries = await lists_of(stores).get(PABLO, one.escalation_id)
    assert texts_of(entries) == [f"{CANARY} reason", *SAID, *summary]
    assert found.form_state == f'{{"a": "{CANARY} state"}}'
    _, entries = await lists_of(stores).get(MARTA, one.escalation_id)
    assert texts_of(entries) == [f"{CANARY} reason", *summary], "it is not hers any more"
    assert in_clear(stores) == []


@pytest.mark.parametrize("end", ["release", "closed"])
async def test_once_it_has_ended_nobody_reads_it_and_nothing_is_left(stores: Stores, end: str) -> None:
    one = await talked(stores, end)
    for handler in (MARTA, PABLO):
        found, entries = await lists_of(stores).get(handler, one.escalation_id)
        assert [text for text in texts_of(entries) if text != "TIMEOUT"] == []
        assert (found.reason, found.form_state, found.summary) == ("", "", "")
    assert in_clear(stores) == []
    rows = stores.rows("agent_escalation_entries", "text, kind")
    assert {len(row.text) for row in rows if row.kind != "closed"} <= {0, 39}, "a hash, and no sealed text"


async def test_a_request_that_comes_again_after_the_end_is_known_and_another_with_its_id_is_refused(
    stores: Stores,
) -> None:
    one, queue = await talked(stores, "release"), queue_of(stores)
    before = len(stores.rows("agent_escalation_entries"))
    replied = await queue.reply(MARTA, one.escalation_id, "reply-0001", f"{CANARY} reply")
    noted = await queue.add_note(MARTA, one.escalation_id, "note-0001", f"{CANARY} note")
    assert (replied.text, noted.text) == ("", "")
    for call in (queue.reply, queue.add_note):
        with pytest.raises(AlreadyExists, match="REQUEST_CONFLICT"):
            await call(MARTA, one.escalation_id, "reply-0001" if call == queue.reply else "note-0001", "another")
    assert len(stores.rows("agent_escalation_entries")) == before
    again = await queue.release(MARTA, one.escalation_id, "agent", f"{CANARY} summary")
    assert again.summary == f"{CANARY} summary"


@pytest.mark.parametrize(
    ("before", "by", "reason"),
    [
        ("open", MARTA, "CLAIM_REQUIRED"),
        ("claimed", PABLO, "CLAIM_TAKEN"),
        ("expired", MARTA, "CLAIM_EXPIRED"),
        ("requeued", MARTA, "CLAIM_REQUIRED"),
        ("released", MARTA, "ESCALATION_ENDED"),
    ],
)
async def test_a_note_needs_the_claim(stores: Stores, before: str, by: Handler, reason: str) -> None:
    one, queue = await called(stores), queue_of(stores)
    if before != "open":
        await queue.claim(MARTA, one.escalation_id, "Marta")
    if before == "expired":
        stores.pass_time(CLAIM_SECONDS + 1)
    if before in ("requeued", "released"):
        await queue.release(MARTA, one.escalation_id, "queue" if before == "requeued" else "agent", "")
    with pytest.raises(FailedPrecondition, match=reason):
        await queue.add_note(by, one.escalation_id, "note-0002", CANARY)
    assert "note" not in [row.kind for row in stores.rows("agent_escalation_entries", "kind")]


async def test_texts_of_an_agent_that_stored_them_in_clear_are_sealed_or_emptied_at_the_start(
    stores: Stores, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = await talked(stores, "release")
    going = await called(stores, "t2")

    def clear(connection: Connection) -> None:
        for table in ("agent_escalation_entries", "agent_escalations"):
            column = "text" if table.endswith("entries") else "reason"
            connection.execute(sa.text(f"UPDATE {table} SET {column} = :text"), {"text": CANARY.encode()})

    await stores.database.write(clear)
    assert in_clear(stores)
    await started_twice(stores)
    assert in_clear(stores) == []
    told = capsys.readouterr()
    assert f"{told.out}{told.err}".count("stored in clear are emptied now") == 1
    found, entries = await lists_of(stores).get(MARTA, going.escalation_id)
    assert (found.reason, texts_of(entries)) == (CANARY, [CANARY])
    found, entries = await lists_of(stores).get(MARTA, ended.escalation_id)
    assert (found.reason, texts_of(entries)) == ("", [])


@pytest.mark.parametrize("end", ["", "queue", "release"])
async def test_a_start_changes_nothing_of_what_is_sealed_or_emptied(stores: Stores, end: str) -> None:
    one, queue = await talked(stores, end), queue_of(stores)
    before = await lists_of(stores).get(MARTA, one.escalation_id)
    await asyncio.wait_for(started_twice(stores), 60)
    assert await lists_of(stores).get(MARTA, one.escalation_id) == before
    replied = await queue.reply(MARTA, one.escalation_id, "reply-0001", f"{CANARY} reply")
    assert replied.text == ("" if end == "release" else f"{CANARY} reply"), "it is still the same request"


async def test_one_text_that_cannot_be_opened_does_not_keep_the_others(stores: Stores) -> None:
    one = await talked(stores)

    def swap(connection: Connection) -> None:
        broken = sa.text("UPDATE agent_escalation_entries SET text = :text WHERE kind = 'reply'")
        connection.execute(broken, {"text": b"\x00sealed1\x00" + b"x" * 60})

    await stores.database.write(swap)
    _, entries = await lists_of(stores).get(MARTA, one.escalation_id)
    assert texts_of(entries) == [f"{CANARY} reason", f"{CANARY} message", f"{CANARY} note"]
    await queue_of(stores).release(MARTA, one.escalation_id, "agent", "")
