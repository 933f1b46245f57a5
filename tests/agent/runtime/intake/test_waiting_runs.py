"""Runs that wait for an approval while other requests of their thread are served."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
import sqlalchemy as sa
from phylactery.agent.v1 import chat_pb2, run_pb2
from phylactery_agent.checkpoints import rows
from phylactery_agent.checkpoints.rows import Place, Row
from phylactery_agent.i18n.texts import waiting_line
from phylactery_agent.ports import ApprovalRequest, LeaseLostError
from phylactery_agent.runtime.intake.waiting import MAX_WAITING, card_json, run_for
from phylactery_agent.runtime.privacy.delete_thread import DeletionStore
from phylactery_agent.runtime.runs.cancellation import Cancellations
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.storage.schema import RUNS, THREADS
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_chassis.util.ids import new_id

from tests.agent.runtime.runs.test_steps import insert_old, postgres_or_sqlite, upgrade_to
from tests.support.agent.stores import ANA, Stores
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, runs_of
from tests.support.cases import each_case
from tests.support.databases.invariants import broken

__all__ = ["postgres_or_sqlite"]

T1 = ANA.thread_key("t1")
WRITE = 'escribe "hola" en notas.txt'
OTHER = 'añade "línea" a lista.txt'
LINE = 'Aún espero tu sí o tu no: «escribe "hola" en notas.txt».'


def active(
    run_id: str, status: str = "suspended", *, approval_id: str = "", spoke: int = 0, also: str = "", reply: str = ""
) -> Any:
    card = card_json([ApprovalRequest(name, "write_file", "self") for name in (approval_id, also) if name])
    told = {"spoke_at": spoke, "last_reply": reply.encode(), "steps": "[]"}
    return SimpleNamespace(run_id=run_id, status=status, approval_id=approval_id, card=card, **told)


def said(text: str, kind: str = "message", run_id: str = "", form: str = "") -> Any:
    said = {"text": text, "kind": kind, "run_id": run_id, "form": form}
    return SimpleNamespace(**said, attachments=(), do_not_store=False, over_share="")


ONE = active("one", approval_id="ap_number1", spoke=1, also="ap_number1b")
TWO = active("two", approval_id="ap_number2", spoke=3)
ASKS = active("asks", spoke=2)
UNCLEAR = (
    "No he entendido «zas zas»; «ayuda» muestra lo que puedo hacer.",
    "I didn't get “zas zas”; “help” shows what I can do.",
    f"No está claro a qué respondes, así que no he cambiado nada.\n\n{LINE}",
    "It is not clear what you are answering, so I changed nothing.",
)


@each_case(
    ("turn", "runs", "found"),
    [
        (said("lee a.txt"), [], None),
        (said("lee a.txt"), [ONE], None),
        (said("sí, pero mañana"), [ONE], None),
        (said("lee a.txt"), [ONE, TWO], None),
        (said("lee a.txt"), [ONE, ASKS, TWO], "asks"),
        (said("lee a.txt"), [ONE, active("served", "running")], "served"),
        (said("APROBAR ap_number1 ________"), [ONE, ASKS, TWO], "one"),
        (said("RECHAZAR ap_number1b"), [TWO, ONE], "one"),
        (said("REJECT ap_number2"), [ONE, TWO], "two"),
        (said("REJECT ap_unknown"), [ONE, ASKS, TWO], "two"),
        (said("REJECT ap_unknown"), [ASKS], "asks"),
        (said("REJECT ap_unknown"), [], None),
        (said("sí"), [ONE, TWO], "two"),
        (said("no"), [TWO, ONE], "two"),
        (said("sí"), [ONE, ASKS], "asks"),
        (said("sí"), [ASKS, TWO], "two"),
        (said("sí"), [], None),
        *(
            (said(text), [ONE, ASKS, TWO], None)
            for text in ("para", "cancel", "ayuda", "quiero hablar con una persona")
        ),
        *((said(text), [ASKS], None) for text in ("Stop!", "espera", "I want a human, my order is lost")),
        *(
            (said(text), [ASKS], "asks")
            for text in ("no pares", "no sé", "no quiero hablar con una persona", "stop.txt")
        ),
        (said("quiero poner una queja", form="complaint"), [ASKS, TWO], None),
        (said("para"), [active("served", "running"), ASKS], "served"),
        (said("", "approval_decided", "one"), [ONE, ASKS, TWO], "one"),
        (said("", "approval_decided", "gone"), [ONE, TWO], None),
    ],
)
def test_a_message_is_for_the_run_it_answers_and_otherwise_for_one_of_its_own(turn: Any, runs: list[Any], found: Any):
    run = run_for(turn, runs)
    assert (run and run.run_id) == found


@each_case("reply", UNCLEAR)
@each_case("words", ["sí", "yes, please", "no", "mejor no", "👍", "/approve", "/reject"])
def test_an_answer_is_for_no_run_that_only_did_not_understand_where_another_asked(words: str, reply: str):
    lost, asks = active("lost", spoke=9, reply=reply), active("asks", spoke=7, reply="¿En qué archivo?")
    for runs, found in (([lost, ONE, TWO], TWO), ([lost, asks, ONE], asks), ([lost, ONE], ONE)):
        assert run_for(said(words), runs) is found
    assert run_for(said("lee a.txt"), [lost, ONE]) is lost


def test_a_thread_in_which_as_many_wait_as_may_opens_no_other_run():
    full = [active(f"run{n}", approval_id=f"ap_number{n}", spoke=n) for n in range(MAX_WAITING)]
    assert run_for(said("lee a.txt"), full[1:]) is None
    assert run_for(said("lee a.txt"), full).run_id == f"run{MAX_WAITING - 1}"


@pytest.mark.parametrize(
    ("asked", "english"),
    [
        ([("write_file", "self")], "I still need your yes or no: write a file, or append whole lines to it."),
        (
            [("write_file", "self")] * 3,
            "3 actions are waiting for your yes or no: write a file, or append whole lines to it (×3).",
        ),
        ([("", "self")], "I still need your yes or no: do what I asked you about."),
        ([("send_email", "peer")], "Another person still has to approve this: send an e-mail"),
    ],
)
def test_the_line_names_everything_that_waits_and_the_way_out_and_no_id(asked: list[tuple[str, str]], english: str):
    line = waiting_line([ApprovalRequest(f"ap_{n}", *one) for n, one in enumerate(asked)], "en", ToolRegistry())
    assert line.startswith(english)
    assert "ap_" not in line
    assert "\n" not in line


def test_while_a_form_is_open_no_run_that_asked_takes_what_is_said_in_it():
    assert run_for(said("Ana García"), [ASKS, ONE], form_open=True) is None
    assert run_for(said("APROBAR ap_number1 ________"), [ASKS, ONE], form_open=True) is ONE


async def waits(stores: Stores, number: int, *, language: str = "") -> Claim:
    """Have a message open a run that waits for an approval, with a checkpoint, and return its claim."""
    await stores.accepted(f"waits-{number}", text=f"haz {number}", language=language)
    claim = await stores.claimed()
    place = Place(claim.lease.run_id, "")
    stores.database.write_sync(lambda c: rows.put(c, Row(place, 0, f"c{number}", "", "", b"state", b""), {}))
    asked = (ApprovalRequest(f"ap_number{number}", "write_file", "self"),)
    await stores.end(claim, "suspended", approval_id=asked[0].approval_id, card=asked)
    return claim


async def served(stores: Stores, text: str, status: str = "done", **changes: Any) -> Claim:
    await stores.accepted(new_id("request"), text=text)
    claim = await stores.claimed()
    await stores.end(claim, status, tells_others=bool(claim.beside), **changes)
    return claim


async def test_a_request_opens_a_run_of_its_own_and_the_one_that_waits_keeps_its_state(stores: Stores) -> None:
    first = await waits(stores, 1)
    other = await served(stores, "lee a.txt")
    assert (other.run.run_id != first.run.run_id, other.turn.resumed) == (True, False)
    assert [run.run_id for run in other.beside] == [first.run.run_id]
    assert stores.rows("agent_checkpoints", "thread_id") == [(first.run.run_id,)]
    answer = await served(stores, "APROBAR ap_number1 ________")
    assert (answer.run.run_id, answer.turn.resumed, answer.beside) == (first.run.run_id, True, ())
    assert stores.rows("agent_checkpoints") == []
    events = (await stores.log.of_thread(T1, after=0)).events
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))


async def test_one_run_of_a_thread_is_executed_at_a_time_and_the_answered_one_comes_after(stores: Stores) -> None:
    first = await waits(stores, 1)
    await stores.accepted("other", text="lee a.txt")
    beside = await stores.claimed(holder="a")
    await stores.accepted("yes", text="APROBAR ap_number1 ________")
    assert await stores.inbox.note_approval_decided(await stores.runs.get(ANA, first.run.run_id), "APPROVED")
    with pytest.raises(LeaseLostError):
        await stores.claims.claim_next(T1, "b")
    await stores.end(beside)
    answer = await stores.claimed(holder="b")
    assert answer.run.run_id == first.run.run_id
    with pytest.raises(LeaseLostError):
        await stores.claims.claim_next(T1, "a")
    await stores.end(answer)
    assert await stores.claims.claim_next(T1, "a") is None, "what was decided elsewhere too was answered already"


async def test_eight_at_once_claim_a_request_beside_a_waiting_run_once(stores: Stores) -> None:
    await waits(stores, 1)
    await stores.accepted("other", text="lee a.txt")
    holders = [f"h{number}" for number in range(8)]
    found = await asyncio.gather(*(stores.claims.claim_next(T1, one) for one in holders), return_exceptions=True)
    assert sum(isinstance(one, Claim) for one in found) == 1
    assert len(stores.rows("agent_runs")) == 2


async def test_a_claim_waits_for_nobody_who_ends_one_of_the_runs_that_wait(stores: Stores) -> None:
    if not stores.database.dialect.is_server:
        pytest.skip("one writer writes to a file")
    first = await waits(stores, 1)
    await waits(stores, 2)
    await stores.accepted("other", text="lee a.txt")
    with stores.database._engine.begin() as ending:  # as whoever ends a run: first the run, then its thread
        for query in (
            sa.select(RUNS.c.run_id).where(RUNS.c.run_id == first.run.run_id),
            sa.select(THREADS.c.thread_key).where(THREADS.c.thread_key == T1),
        ):
            ending.execute(query.with_for_update()).all()
        async with asyncio.timeout(60):  # where it waits, it waits for the end of this block
            with pytest.raises(LeaseLostError, match="written by another process"):
                await stores.claims.claim_next(T1, "me")
    assert len((await stores.claimed()).beside) == 2


async def test_a_claim_that_a_dead_process_left_goes_on_in_the_run_it_opened(stores: Stores) -> None:
    await waits(stores, 1)
    await stores.accepted("other", text="lee a.txt")
    before = await stores.claimed(holder="dead")
    stores.pass_time(31)
    again = await stores.claimed(holder="alive")
    assert (again.run.run_id, again.attempt, again.turn.resumed) == (before.run.run_id, 2, False)
    with pytest.raises(LeaseLostError):
        await stores.end(before)
    await stores.end(again)
    assert len(stores.rows("agent_runs")) == 2


async def test_several_wait_and_each_answer_reaches_its_own(stores: Stores) -> None:
    claims = [await waits(stores, number) for number in (1, 2, 3)]
    for run in reversed(await stores.runs.awaiting_approval()):
        assert await stores.inbox.note_approval_decided(run, "APPROVED") is not None
    reached = []
    while (claim := await stores.claims.claim_next(T1, "me")) is not None:
        reached.append((claim.run.run_id, claim.turn.resumed))
        await stores.end(claim)
    assert reached == [(claim.run.run_id, True) for claim in reversed(claims)]


async def test_the_ninth_request_is_told_so_by_the_run_that_spoke_last(stores: Stores) -> None:
    claims = [await waits(stores, number) for number in range(MAX_WAITING)]
    last = await served(stores, "lee a.txt", "suspended", approval_id=f"ap_number{MAX_WAITING - 1}")
    assert (last.run.run_id, last.turn.resumed) == (claims[-1].run.run_id, True)
    await served(stores, "RECHAZAR ap_number0")
    assert (await served(stores, "lee a.txt")).turn.resumed is False


async def test_a_reply_ends_with_what_another_run_asks_once_for_each_and_a_cancellation_does_not_again(
    stores: Stores,
) -> None:
    first = await waits(stores, 1, language="es")
    assert first.turn.language == "es"
    second = await waits(stores, 2)
    reply = await served(stores, "lee a.txt")
    newest = "Aún espero tu sí o tu no: escribir un archivo o añadirle líneas al final."
    assert (await stores.inbox.get(reply.turn.turn_id)).reply_text == f"listo\n\n{newest}"
    await Cancellations(stores.database, stores.clock, stores.tools).request(ANA, second.run.run_id)
    told = [e.payload["text"] for e in (await stores.log.of_thread(T1, after=0)).events if e.kind == "message"]
    assert "espero" not in told[-1]
    assert stores.rows("agent_checkpoints", "thread_id") == [(first.run.run_id,)]
    await served(stores, "RECHAZAR ap_number1")
    last = await served(stores, "lee a.txt")
    assert (await stores.inbox.get(last.turn.turn_id)).reply_text == "listo"


async def test_a_run_that_asks_takes_the_next_words_while_another_waits(stores: Stores) -> None:
    first = await waits(stores, 1)
    asks = await served(stores, "algo", "suspended")
    again = await served(stores, "lee a.txt", "suspended")
    assert (again.run.run_id, again.turn.resumed) == (asks.run.run_id, True)
    assert (await served(stores, "APROBAR ap_number1 ________")).run.run_id == first.run.run_id
    assert (await served(stores, "lee b.txt")).run.run_id == asks.run.run_id


async def test_deleting_a_thread_ends_every_run_that_waits_and_removes_every_state(stores: Stores) -> None:
    claims = [await waits(stores, number) for number in (1, 2)]
    deletions = DeletionStore(stores.database, stores.clock, stores.tools)
    await deletions.begin(ANA, "t1")
    assert [(await stores.runs.get(ANA, claim.run.run_id)).status for claim in claims] == ["cancelled"] * 2
    await stores.outbox.waiting("withdrawal", T1)
    withdrawn = {parcel.run_id for parcel in await stores.outbox.waiting("withdrawal", T1)}
    assert withdrawn == {claim.run.run_id for claim in claims}
    await deletions.remove(ANA, "t1")
    for table in ("agent_runs", "agent_checkpoints", "agent_inbox"):
        assert stores.rows(table) == []


async def test_a_state_that_is_committed_together_with_its_threads_removal_goes_with_it(stores: Stores) -> None:
    claim = await waits(stores, 1)
    row = Row(Place(claim.lease.run_id, ""), 0, "c2", "c1", "", b"state", b"")
    await asyncio.gather(
        stores.database.write(lambda connection: rows.put(connection, row, {("plan", "1"): b"state"})),
        DeletionStore(stores.database, stores.clock, stores.tools).remove(ANA, "t1"),
    )
    assert stores.rows("agent_checkpoints") == stores.rows("agent_checkpoint_blobs") == []


async def test_what_waited_before_an_update_keeps_its_state_under_its_run(postgres_or_sqlite: str) -> None:
    engine = sa.create_engine(postgres_or_sqlite)
    upgrade_to(engine, "0014")
    with engine.begin() as connection:
        for key, run_id, status in (("k1", "run_1", "suspended"), ("k2", "run_2", "done")):
            insert_old(connection, "agent_threads", thread_key=key)
            insert_old(connection, "agent_runs", run_id=run_id, thread_key=key, status=status, approval_id="ap_old")
            for table in ("agent_checkpoints", "agent_checkpoint_blobs", "agent_checkpoint_writes"):
                connection.execute(sa.text(_STATE[table]), {"key": key, "body": b"state"})
    upgrade_to(engine, "head")
    with engine.connect() as connection:
        for table in ("agent_checkpoints", "agent_checkpoint_blobs", "agent_checkpoint_writes"):
            assert connection.execute(sa.text(f"SELECT thread_id FROM {table}")).scalars().all() == ["run_1"]
        assert connection.execute(sa.text("SELECT card FROM agent_runs")).scalars().all() == ["[]", "[]"]
    engine.dispose()


_STATE = {
    "agent_checkpoints": "INSERT INTO agent_checkpoints (thread_id, checkpoint_ns, sequence, checkpoint_id, parent_id,"
    " run_id, body, metadata) VALUES (:key, '', 1, 'c', '', '', :body, :body)",
    "agent_checkpoint_blobs": "INSERT INTO agent_checkpoint_blobs (thread_id, checkpoint_ns, channel, version, body)"
    " VALUES (:key, '', 'plan', '1', :body)",
    "agent_checkpoint_writes": "INSERT INTO agent_checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id,"
    " position, task_path, channel, body) VALUES (:key, '', 'c', 't', 0, '', 'plan', :body)",
}


def shown(response: chat_pb2.SendMessageResponse, *, quoted: bool = False) -> list[chat_pb2.ShownApproval]:
    card = response.pending_approval
    return [
        chat_pb2.ShownApproval(approval_id=one.approval_id, args_hash=one.args_hash, quoted=quoted)
        for one in (card, *card.also)
    ]


def waiting_ids(thread: chat_pb2.Thread) -> list[str]:
    return [card.approval_id for card in thread.pending_approvals]


async def test_another_request_is_done_while_one_waits_and_then_the_first_goes_on(system: System, ana: Person) -> None:
    system.sandbox.joinpath("a.txt").write_text("contenido")
    asked = await ana.say(WRITE)
    approval_id, code = approval_of(asked)
    assert approval_id not in asked.reply.text
    read = await ana.say("lee a.txt")
    assert (read.run.status, read.run.id != asked.run.id) == (DONE, True)
    assert read.reply.text == f"Contenido de «a.txt»:\ncontenido\n\n{LINE}"
    assert not read.HasField("pending_approval")
    assert (await ana.run(asked.run.id)).status == SUSPENDED
    thread = await ana.thread()
    assert (thread.pending_approval.approval_id, waiting_ids(thread)) == (approval_id, [approval_id])
    assert thread.pending_approval.code == code
    done = await ana.say(f"APROBAR {approval_id} {code}")
    assert (done.run.id, done.run.status) == (asked.run.id, DONE)
    assert "espero tu" not in done.reply.text
    assert system.sandbox.joinpath("notas.txt").read_text() == "hola"
    assert [role for role, _ in await ana.transcript()] == ["user", "assistant"] * 3
    assert (await ana.transcript())[-1] == ("assistant", done.reply.text)
    assert waiting_ids(await ana.thread()) == []
    assert broken(f"sqlite:///{system.folder / 'agent' / 'agent.db'}") == []


async def test_a_thread_in_which_a_run_waits_does_not_stand_at_a_later_one_that_is_done(
    system: System, ana: Person
) -> None:
    async def stands() -> tuple[str, int]:
        one = await ana.thread()
        (other,) = (
            await ana.chat.ListThreads(chat_pb2.ListThreadsRequest(), metadata=ana.metadata, timeout=60)
        ).threads
        assert (other.last_run.id, other.last_run.status) == (one.last_run.id, one.last_run.status)
        return one.last_run.id, one.last_run.status

    first, second = await ana.say(WRITE), await ana.say(OTHER)
    assert await stands() == (second.run.id, SUSPENDED)
    read = await ana.say("hola")
    assert (read.run.status, await stands()) == (DONE, (second.run.id, SUSPENDED))
    await ana.say(f"RECHAZAR {second.pending_approval.approval_id}")
    assert await stands() == (first.run.id, SUSPENDED)
    last = await ana.say(f"RECHAZAR {first.pending_approval.approval_id}")
    assert await stands() == (last.run.id, last.run.status) == (first.run.id, DONE)


async def test_with_two_cards_a_yes_changes_nothing_and_names_both_and_each_is_answered_by_its_id(
    system: System, ana: Person
) -> None:
    first, second = await ana.say(WRITE), await ana.say(OTHER)
    assert first.run.id != second.run.id
    unclear = await ana.say("sí", shown_approvals=shown(second))
    assert unclear.run.status == SUSPENDED
    assert unclear.reply.text == (
        "No está claro a qué respondes, así que no he cambiado nada. 2 acciones esperan tu sí o tu no:"
        ' «escribe "hola" en notas.txt»; «añade "línea" a lista.txt». Di a cuál, por ejemplo: «sí a la primera,'
        " no a la segunda», «sí a todas» o «no a todas»."
    )
    assert waiting_ids(await ana.thread()) == [
        second.pending_approval.approval_id,
        first.pending_approval.approval_id,
    ]
    assert list(system.sandbox.iterdir()) == []
    for asked, name in ((first, "notas.txt"), (second, "lista.txt")):
        approval_id, code = approval_of(asked)
        done = await ana.say(f"APROBAR {approval_id} {code}")
        assert (done.run.id, done.run.status) == (asked.run.id, DONE)
        assert system.sandbox.joinpath(name).exists()
    assert sorted(path.name for path in system.sandbox.iterdir()) == ["lista.txt", "notas.txt"]


async def test_with_two_cards_a_yes_that_quotes_one_answers_that_one(system: System, ana: Person) -> None:
    first, second = await ana.say(WRITE), await ana.say(OTHER)
    done = await ana.say("sí", shown_approvals=shown(first, quoted=True))
    assert (done.run.id, done.run.status) == (first.run.id, DONE)
    assert [path.name for path in system.sandbox.iterdir()] == ["notas.txt"]
    again = await ana.say("sí", shown_approvals=shown(first, quoted=True))  # it was answered: nothing else is meant
    assert waiting_ids(await ana.thread()) == [second.pending_approval.approval_id]
    assert again.reply.text.startswith("No está claro a qué respondes")
    await ana.say("hola")
    refused = await ana.say("mejor no", shown_approvals=shown(second, quoted=True))
    assert refused.run.id == second.run.id
    assert [path.name for path in system.sandbox.iterdir()] == ["notas.txt"]


async def test_a_quotation_of_other_arguments_or_of_one_among_others_answers_nothing(ana: Person) -> None:
    first, second = await ana.say(WRITE), await ana.say(OTHER)
    [one], [other] = shown(first, quoted=True), shown(second, quoted=True)
    one.args_hash = other.args_hash
    await ana.say("sí", shown_approvals=[one])
    assert len(waiting_ids(await ana.thread())) == 2
    with pytest.raises(grpc.aio.AioRpcError, match="name only those that were quoted"):
        await ana.say("sí", shown_approvals=[*shown(first, quoted=True), *shown(second)])


async def test_a_yes_after_something_else_was_said_counts_only_once_it_is_clear_to_what(
    system: System, ana: Person
) -> None:
    asked = await ana.say(WRITE)
    assert (await ana.say("hola")).reply.text == f"¡Hola! ¿En qué te ayudo?\n\n{LINE}"
    unclear = await ana.say("sí", shown_approvals=shown(asked))
    assert unclear.reply.text.startswith("No está claro a qué respondes")
    assert list(system.sandbox.iterdir()) == []
    done = await ana.say("sí", shown_approvals=shown(asked))
    assert (done.run.id, done.run.status) == (asked.run.id, DONE)
    assert system.sandbox.joinpath("notas.txt").read_text() == "hola"


@pytest.mark.parametrize("lost", ["zas zas", "sí, pero en otro archivo", "quizás", "only if Ana agrees"])
@pytest.mark.parametrize(("answer", "written"), [("sí", True), ("no", False)])
async def test_a_yes_or_no_after_what_was_not_understood_is_asked_about_once_with_the_card(
    system: System, ana: Person, lost: str, answer: str, written: bool
) -> None:
    asked = await ana.say(WRITE)
    assert (await ana.say(lost)).run.reason == "AWAITING_USER_INPUT"
    unclear = await ana.say(answer, shown_approvals=shown(asked))
    assert unclear.reply.text.startswith("No está claro a qué respondes, así que no he cambiado nada.")
    assert unclear.reply.text.count("notas.txt") == 1
    assert unclear.pending_approval.approval_id == asked.pending_approval.approval_id, "what it may be for is shown"
    assert list(system.sandbox.iterdir()) == []
    ended = await ana.say(answer, shown_approvals=shown(unclear))
    assert (ended.run.id, ended.run.status) == (asked.run.id, DONE)
    assert [path.name for path in system.sandbox.iterdir()] == ["notas.txt"] * written


async def test_one_of_two_is_cancelled_and_the_other_goes_on(system: System, ana: Person) -> None:
    first, second = await ana.say(WRITE), await ana.say(OTHER)
    cancelled = await runs_of(system).CancelRun(
        run_pb2.CancelRunRequest(run_id=first.run.id), metadata=ana.metadata, timeout=60
    )
    assert cancelled.run.id == first.run.id
    assert waiting_ids(await ana.thread()) == [second.pending_approval.approval_id]
    approval_id, code = approval_of(second)
    assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE
    assert [path.name for path in system.sandbox.iterdir()] == ["lista.txt"]


async def test_an_agent_that_was_started_again_goes_on_with_each(system: System, ana: Person) -> None:
    first, second = await ana.say(WRITE), await ana.say(OTHER)
    await system.restart_agent()
    for asked in (second, first):
        approval_id, code = approval_of(asked)
        done = await ana.say(f"APROBAR {approval_id} {code}")
        assert (done.run.id, done.run.status) == (asked.run.id, DONE)
    assert sorted(path.name for path in system.sandbox.iterdir()) == ["lista.txt", "notas.txt"]
