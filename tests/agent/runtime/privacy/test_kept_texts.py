"""What the agent keeps of words, outputs and arguments: sealed while it is needed, emptied after, never run again."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_agent.checkpoints.saver import Checkpoints
from phylactery_agent.checkpoints.tables import BLOBS, CHECKPOINTS
from phylactery_agent.llm_client.config import RunLimits
from phylactery_agent.ports import ModelReply
from phylactery_agent.runtime.privacy import retention as retention_module
from phylactery_agent.runtime.privacy.retention import Retention
from phylactery_agent.runtime.storage import clear_texts
from phylactery_agent.runtime.storage.clear_texts import seal_clear_texts
from phylactery_agent.runtime.storage.schema import METADATA
from phylactery_agent.runtime.storage.sealing import Sealer
from phylactery_agent.runtime.turn.model_calls import ModelCallStore, Usage
from phylactery_chassis.db.sealed import SealedBytes, SealedText, in_clear
from phylactery_chassis.errors import DataLoss, StartError
from phylactery_chassis.util.crypto import sha256

from tests.agent.checkpoints.test_saver import checkpoint_of, head, put
from tests.agent.forms.test_submissions import reviewed, submit, write_forms
from tests.support.agent.documents import document
from tests.support.agent.stores import BOUND, SEALER, Stores, call, opened
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, open_system
from tests.support.agent.threads import watched

DAY = 86_400
NO_LIMITS = RunLimits(9, 9_999, 0)
SERVICES = ("agent", "riskgate", "memory")
SEALED = [
    column
    for table in METADATA.sorted_tables
    for column in table.columns
    if isinstance(column.type, SealedBytes | SealedText)
]

# nothing in these has the form of a secret: whatever is not recognised must not lie in a table either
OUTPUT = "heron-quay-eleven"
ARGUMENT = "lantern-willow-nine"
ATTACHED = "ember-harbour-seven"
REMINDED = "cobalt-meadow-four"


async def read_a_file(system: System, ana: Person) -> None:
    (system.sandbox / "creds.txt").write_text(f"the portal takes {OUTPUT}")
    assert OUTPUT in (await ana.say("read creds.txt")).reply.text


async def write_a_file(_system: System, ana: Person) -> None:
    waiting = await ana.say(f'write "{ARGUMENT}" to held.txt')
    assert waiting.run.status == SUSPENDED, "its checkpoint, its card and its proposal are stored"


async def attach_a_text(_system: System, ana: Person) -> None:
    said = await ana.say("what does it say?", attachments=[document(ATTACHED.encode(), "text/plain", "note.txt")])
    assert ATTACHED in said.reply.text


async def set_a_reminder(_system: System, ana: Person) -> None:
    waiting = await ana.say(f"remind me tomorrow at 10:00 am to call {REMINDED}")
    approval_id, code = approval_of(waiting)
    assert (await ana.say(f"APPROVE {approval_id} {code}")).run.status == DONE


@pytest.mark.parametrize("graph", ["secured", "react"])
async def test_what_is_read_attached_written_or_said_is_in_no_file_in_clear(
    system: System, ana: Person, graph: str
) -> None:
    await ana.say("hola", graph=graph)
    for does in (read_a_file, attach_a_text, set_a_reminder, write_a_file):
        await does(system, ana)
    assert [found_in(system, canary) for canary in (OUTPUT, ATTACHED, REMINDED, ARGUMENT)] == [[]] * 4
    await system.agent.delivery.flush_all()
    assert [found_in(system, canary) for canary in (OUTPUT, ATTACHED, REMINDED, ARGUMENT)] == [[]] * 4
    assert rows(system, "SELECT DISTINCT state FROM agent_outbox") == [("delivered",)]


async def test_with_the_other_services_away_what_waits_for_them_is_sealed(system: System, ana: Person) -> None:
    (system.sandbox / "creds.txt").write_text(f"the portal takes {OUTPUT}")
    await ana.say("hola")
    await system.stop("memory")
    await ana.say("read creds.txt")
    assert ("waiting",) in rows(system, "SELECT state FROM agent_outbox WHERE kind = 'transcript'")
    assert found_in(system, OUTPUT) == []


async def test_the_ledger_keeps_hash_and_size_of_an_output_and_no_output_after_its_run(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    ledger = stores.ledger(claim.lease)
    await finished(stores, ledger, output=OUTPUT)
    row = await stores.ledger(claim.lease).find("c1")
    assert row is not None
    assert row.output == OUTPUT, "a resume, or another process, is given the result and runs nothing again"
    await stores.end(claim)
    (kept,) = stores.rows("agent_tool_calls", "output, size_chars, output_hash, state, status")
    assert tuple(kept) == (None, len(OUTPUT), sha256(OUTPUT.encode()), "finished", "success")


async def test_a_models_reply_is_sealed_and_dropped_with_the_end_of_its_run(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    calls, most = ModelCallStore(stores.database, stores.clock), Usage(1, 10, 10)
    assert await calls.begin(claim.lease, "plan", "h", most=most, limits=NO_LIMITS) is None
    await calls.settle(claim.lease, "plan", counted=most, took=most, reply=ModelReply(OUTPUT, (), "stop", "m"))
    raw = sa.text("SELECT reply FROM agent_model_calls")
    stored = stores.database.read_sync(lambda c: bytes(c.execute(raw).scalar_one()))
    assert OUTPUT.encode() not in stored
    again = await calls.begin(claim.lease, "plan", "h", most=most, limits=NO_LIMITS)
    assert again is not None
    assert again.text == OUTPUT, "a node that runs again is given the same reply"
    await stores.end(claim)
    assert stores.rows("agent_model_calls", "reply") == [(None,)]


async def test_what_handlers_are_shown_is_sealed(system: System, ana: Person) -> None:
    await system.stop("agent")
    await system.start_agent(handoff="on")
    await ana.say(f"I want to talk to a person about {ARGUMENT}")
    await ana.say(f"it is about {OUTPUT}")
    assert [row for row in rows(system, "SELECT reason FROM agent_escalations") if row[0]]
    assert [found_in(system, word) for word in (ARGUMENT, OUTPUT)] == [[]] * 2


async def test_a_run_that_waits_keeps_its_outputs_however_old_it_is(stores: Stores) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    await finished(stores, stores.ledger(claim.lease), output=OUTPUT)
    await stores.end(claim, "suspended", approval_id="ap_abcdef")
    stores.clock.advance(365 * DAY)
    assert await retention(stores).empty_texts() == 0
    assert stores.rows("agent_tool_calls", "output") == [(OUTPUT.encode(),)]
    assert stores.rows("agent_inbox", "text, reply_text") == [(b"hola", b"listo")]


async def test_old_rows_in_clear_are_sealed_at_start_and_outputs_of_ended_runs_emptied(
    stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clear_texts, "_AT_ONCE", 2)  # a page ends among them
    for number in range(5):
        await stores.accepted(f"request-{number}", text=f"{ARGUMENT} {number}", thread_id=f"t{number}")
        claim = await stores.claimed(f"t{number}")
        await finished(stores, stores.ledger(claim.lease), output=f"{OUTPUT} {number}")
        await put(Checkpoints(stores.database), checkpoint_of("c1", {"long": ATTACHED * 50}), thread=claim.lease.run_id)
        if number:
            await stores.end(claim, "suspended", reply_text=f"{REMINDED} {number}", reason="NEED_INFO")
    ended = stores.rows("agent_runs", "run_id")[-1].run_id
    await in_clear_again(stores)
    stores.database.write_sync(
        lambda c: c.execute(sa.text(f"UPDATE agent_runs SET status = 'done' WHERE run_id = '{ended}'"))
    )
    before = {name: sorted(map(str, stores.rows(name))) for name in TEXTS}
    assert clear_values(stores)
    changed = await seal_clear_texts(stores.database, SEALER)
    assert changed > 20
    assert clear_values(stores) == []
    assert (
        "".join(capsys.readouterr()).count("kept in clear") == 1
    )  # a service may have moved the log to standard error
    after = {name: sorted(map(str, stores.rows(name))) for name in TEXTS}
    assert after == before, "everybody reads what they read before"
    outputs = {row.run_id: row.output for row in stores.rows("agent_tool_calls", "run_id, output")}
    assert outputs.pop(ended) is None
    assert sorted(bytes(one)[:-2].decode() for one in outputs.values()) == [OUTPUT] * 4
    found = await head(Checkpoints(stores.database, keep_writes=False, cover=SEALER), thread=claim.lease.run_id)
    assert found.checkpoint["channel_values"] == {"long": ATTACHED * 50}
    assert await seal_clear_texts(stores.database, SEALER) == 0
    if not stores.database.dialect.is_server:
        names = ("agent.db", "agent.db-wal", "agent.db-shm")
        files = b"".join((tmp_path / name).read_bytes() for name in names if (tmp_path / name).is_file())
        assert not [word for word in (OUTPUT, ARGUMENT, ATTACHED, REMINDED) if word.encode() in files]


async def test_a_process_killed_while_it_seals_goes_on_at_its_next_start(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stores.accepted(text=ARGUMENT)
    await stores.end(await stores.claimed(), reply_text=OUTPUT)
    await in_clear_again(stores)
    done = 0

    async def killed(*_given: Any) -> bool:
        raise SystemExit(137)

    monkeypatch.setattr(clear_texts, "scrub_removed", killed)
    with pytest.raises(SystemExit):
        await seal_clear_texts(stores.database, SEALER)
    monkeypatch.undo()
    stores.database.write_sync(
        lambda c: c.execute(sa.text("UPDATE agent_inbox SET text = :text"), {"text": ARGUMENT.encode()})
    )
    done = await seal_clear_texts(stores.database, SEALER)
    assert done == 1, "what was sealed before it was killed is not sealed twice"
    assert stores.rows("agent_inbox", "text, reply_text") == [(ARGUMENT.encode(), OUTPUT.encode())]


async def test_two_agents_that_start_at_once_over_an_old_database_both_start(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stores.accepted(text=ARGUMENT)
    await stores.end(await stores.claimed())
    await in_clear_again(stores)
    other = opened(stores.database.engine.url.render_as_string(hide_password=False))
    both, note = threading.Barrier(2), clear_texts._note

    def together(connection: sa.Connection, *, value: str) -> None:
        if stores.database.dialect.is_server:  # SQLite has one writer at a time
            both.wait(30)
        note(connection, value=value)

    monkeypatch.setattr(clear_texts, "_note", together)
    try:
        await asyncio.gather(*(seal_clear_texts(one, SEALER) for one in (stores.database, other)))
    finally:
        other.close()
    assert clear_values(stores) == []
    assert [row.name for row in stores.rows("agent_marks", "name")] == ["sealed"]


async def test_of_a_key_that_was_given_up_what_it_sealed_is_emptied_and_the_rest_goes_on(stores: Stores) -> None:
    await stores.accepted(text=ARGUMENT)
    await stores.end(await stores.claimed())
    await seal_clear_texts(stores.database, SEALER)
    other = Sealer(b"\x01" * 32)
    database = opened(stores.database.engine.url.render_as_string(hide_password=False), other)
    try:
        text = METADATA.tables["agent_inbox"].c.text
        with pytest.raises(DataLoss, match="restore the key file"):
            database.read_sync(lambda c: c.execute(sa.select(text)).all())
        await seal_clear_texts(database, other)
        assert database.read_sync(lambda c: c.execute(sa.select(text)).all()) == [(b"",)]
        waits = sa.text("SELECT DISTINCT state, refusal FROM agent_outbox")
        assert database.read_sync(lambda c: c.execute(waits).all()) == [("refused", "KEY_LOST")], "not tried for ever"
    finally:
        database.close()


async def test_after_a_key_was_given_up_every_thread_goes_on(tmp_path: Path) -> None:
    forms = write_forms(tmp_path / "forms", {"desk": "true", "vault": "{fields: [email, key]}"})
    async with open_system(tmp_path, asks=True, forms_dir=forms) as system:
        ana = system.person()
        await submit(ana, "desk", "ana@example.org", "t1")
        await reviewed(ana, "vault", "ana@example.org", "t2")
        assert (await ana.say(f'write "{ARGUMENT}" to held.txt', "t3")).run.status == SUSPENDED
        await system.stop("agent")
        (system.folder / "agent" / "seal.key").unlink()
        database = sqlite3.connect(system.folder / "agent" / "agent.db")
        database.execute("DELETE FROM agent_marks WHERE name = 'seal_key'")
        database.commit()
        database.close()
        await system.start_agent(forms_dir=forms)
        for thread in ("t1", "t2", "t3"):
            await ana.thread(thread)
            await ana.say("sí", thread)
            assert (await ana.say("hola", thread)).run.status == DONE
        assert await ana.submissions() == []
        await submit(ana, "desk", "ana@example.org", "t2")
        assert await ana.submitted() == [{"email": "ana@example.org"}]
        assert not system.written("held.txt"), "what waited without its words is not done"


async def test_an_agent_does_not_start_with_another_key_than_its_database(system: System, ana: Person) -> None:
    await ana.say("hola")
    await system.stop("agent")
    (system.folder / "agent" / "seal.key").write_bytes(b"\x01" * 32)
    with pytest.raises(StartError, match="does not belong to the key"):
        await system.start_agent()


@pytest.mark.parametrize("private", [False, True], ids=["plain", "not-stored"])
async def test_a_repeat_after_its_texts_were_emptied_is_the_same_run_and_says_so(
    system: System, ana: Person, private: bool
) -> None:
    (system.sandbox / "creds.txt").write_text(f"the portal takes {OUTPUT}")
    text = "read creds.txt" + (", do not store this" if private else "")
    first = await ana.say(text, request_id="request-0001")
    assert OUTPUT in first.reply.text
    days = 1 if private else 7
    system.clock.advance(days * DAY - 10)
    assert await system.agent.retention.empty_texts() == 0
    assert (await ana.say(text, request_id="request-0001")).reply == first.reply
    system.clock.advance(20)
    assert await system.agent.retention.empty_texts() == 1
    again = await ana.say(text, request_id="request-0001")
    assert (again.run.id, again.reply.id, again.last_sequence) == (first.run.id, first.reply.id, first.last_sequence)
    assert (again.reply.text, again.reply.text_erased, first.reply.text_erased) == ("", True, False)
    assert {step.description for step in again.run.plan_steps} <= {""}
    told = await ana.stream(text, request_id="request-0001")
    (said,) = (event.message for event in told if event.WhichOneof("kind") == "message")
    assert (said.text, said.text_erased, said.message_id) == ("", True, first.reply.id)
    async with watched(ana, "t1", after=0) as watch:
        behind = await watch.until(first.last_sequence)
    assert [event.sequence for event in behind] == [event.sequence for event in told]
    assert OUTPUT not in str(behind)
    assert rows(system, "SELECT count(*) FROM agent_runs") == [(1,)]
    assert await system.agent.retention.empty_texts() == 0
    if not private:
        assert ("assistant", first.reply.text) in await ana.transcript(), "memory has the transcript"


@pytest.mark.parametrize(
    ("wish", "told"),
    [("please don't keep it", "erased a day after"), ("no quiero que guardes esto", "se borra un día después")],
)
async def test_of_a_file_and_an_attachment_that_are_not_to_be_stored_nothing_is_kept_in_clear_or_past_a_day(
    system: System, ana: Person, wish: str, told: str
) -> None:
    (system.sandbox / "creds.txt").write_text(f"the portal takes {OUTPUT}")
    language = "es" if "no " in wish[:3] else "en"
    read = await ana.say(f"read creds.txt, {wish}", language=language)
    note = document(ATTACHED.encode(), "text/plain", "note.txt")
    attached = await ana.say(f"what does it say? {wish}", attachments=[note], language=language)
    assert (OUTPUT in read.reply.text, ATTACHED in attached.reply.text) == (True, True)
    assert (told in read.reply.text, told in attached.reply.text) == (True, True)
    waits = await ana.say(f'write "{ARGUMENT}" to held.txt, {wish}', language=language)
    assert waits.run.status == SUSPENDED
    await system.agent.delivery.flush_all()
    assert [found_in(system, word, of=SERVICES) for word in (OUTPUT, ATTACHED, ARGUMENT)] == [[]] * 3
    assert await ana.transcript() == []
    system.clock.advance(DAY + 1)
    assert await system.agent.retention.empty_texts() == 2, "what waits for an answer still needs its words"
    texts = rows(system, "SELECT text, reply_text, others FROM agent_inbox WHERE text_erased ORDER BY position")
    assert texts == [(b"", b"", None)] * 2


async def test_a_failed_run_whose_words_were_emptied_is_not_begun_once_more(stores: Stores) -> None:
    await stores.accepted(text=ARGUMENT)
    await stores.end(await stores.claimed(), "failed", reason="STEP_LIMIT")
    stores.clock.advance(7 * DAY + 1)
    assert await retention(stores).empty_texts() == 1
    (kept,) = stores.rows("agent_inbox", "text, reply_text, others, text_erased, body_hash")
    assert tuple(kept)[:3] == (b"", b"", None)
    assert kept.text_erased
    assert kept.body_hash


async def test_many_turns_are_emptied_page_by_page_across_a_kill_and_what_is_not_old_stays(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention_module, "_TURNS_AT_ONCE", 2)
    for number in range(5):
        await stores.accepted(f"request-{number}")
        await stores.end(await stores.claimed())
    stores.clock.advance(8 * DAY)
    await stores.accepted("request-new")
    await stores.end(await stores.claimed())
    await stores.accepted("request-waits")

    def killed(_point: str) -> None:
        raise SystemExit(137)

    with monkeypatch.context() as during:
        during.setattr(retention_module, "reach", killed)
        with pytest.raises(SystemExit):
            await retention(stores).empty_texts()
    emptied = [bool(row.text_erased) for row in stores.rows("agent_inbox ORDER BY position", "text_erased")]
    assert emptied == [True] * 2 + [False] * 5
    assert await retention(stores).empty_texts() == 3, "the next start goes on"
    texts = [row.text for row in stores.rows("agent_inbox ORDER BY position", "text")]
    assert texts == [b""] * 5 + [b"hola"] * 2


TEXTS = ("agent_inbox", "agent_events", "agent_outbox", "agent_runs")


def retention(stores: Stores) -> Retention:
    return Retention(stores.database, stores.clock, days=30)


async def finished(_stores: Stores, ledger: Any, *, output: str) -> None:
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id=f"ex_{output[-2:]}", effect_key="k", bound=BOUND)
    await ledger.finish("c1", arguments_json="{}", status="success", output=output, error_code="")


def rows(system: System, query: str) -> list[tuple[Any, ...]]:
    return system.agent.database.read_sync(lambda c: [tuple(row) for row in c.execute(sa.text(query))])


def found_in(system: System, canary: str, of: Sequence[str] = ("agent", "riskgate")) -> list[str]:
    """Return the files of services in which a text lies, but for the person's own files.

    Of what may be stored memory has the transcript.
    """
    return [
        str(path.relative_to(system.folder))
        for name in of
        for path in sorted((system.folder / name).rglob("*"))
        if path.is_file() and "sandbox" not in path.parts and canary.encode() in path.read_bytes()
    ]


def clear_values(stores: Stores) -> list[str]:
    """Return the columns that hold a value in clear."""

    def work(connection: sa.Connection) -> list[str]:
        found = [
            str(column)
            for column in SEALED
            if connection.execute(sa.select(column.table).where(in_clear(column))).first()
        ]
        for table in (CHECKPOINTS, BLOBS):
            bodies = connection.execute(sa.select(table.c.body)).scalars()
            found += [str(table.c.body) for body in bodies if ATTACHED.encode() in bytes(body)]
        return found

    return stores.database.read_sync(work)


async def in_clear_again(stores: Stores) -> None:
    """Store every sealed value as an earlier version did."""

    def work(connection: sa.Connection) -> None:
        for column in SEALED:
            keys = list(column.table.primary_key)
            kind = column.type.impl_instance
            for row in connection.execute(sa.select(*keys, column.label("value")).where(column.is_not(None))).all():
                this = sa.and_(*(key == value for key, value in zip(keys, row, strict=False)))
                clear = sa.type_coerce(sa.literal(row.value, kind), kind)
                connection.execute(sa.update(column.table).where(this).values({column: clear}))
        connection.execute(sa.text("DELETE FROM agent_marks WHERE name = 'sealed'"))

    await stores.database.write(work)
