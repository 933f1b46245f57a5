"""Commands to the conversation while runs wait: a stop, a request for help, a wish for a person, a form's words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery_agent.ports import ApprovalRequest
from phylactery_agent.runtime.runs.cancellation import Cancellations
from phylactery_forms.definitions.reading import sample_folder

from tests.support.agent.stores import ANA, Stores
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, open_system
from tests.support.servers.model_server import model_server, says

T1 = ANA.thread_key("t1")
CANCELLED = event_pb2.RUN_STATUS_CANCELLED
WRITE = 'escribe "hola" en {}.txt'
LEFT = "lee a.txt, lee b.txt, lee c.txt, lee d.txt, lee e.txt y lee f.txt"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[System]:
    """The services with the sample forms and people on duty; every write is asked about."""
    async with open_system(tmp_path, asks=True, forms_dir=sample_folder(), handoff="on") as opened:
        yield opened


async def told(person: Person, thread_id: str, *texts: str) -> list[chat_pb2.SendMessageResponse]:
    return [await person.say(text, thread_id) for text in texts]


async def called(system: System) -> int:
    """Return how often a person was called."""
    query = sa.text("SELECT count(*) FROM agent_escalations")
    return await system.agent.database.read(lambda connection: int(connection.execute(query).scalar_one()))


def files(system: System) -> list[str]:
    return sorted(path.name for path in system.sandbox.iterdir())


async def test_after_words_that_were_not_understood_a_person_a_form_and_a_stop_are_heard(desk: System) -> None:
    ana = desk.person("ana")
    for number, text in enumerate(
        (
            "quiero hablar con una persona",
            "Quiero hablar con una persona, se me ha roto la lavadora",
            "I want to talk to a person, my order is lost",
        )
    ):
        lost, asked = await told(ana, f"person{number}", "asdf qwer", text)
        assert (lost.run.reason, asked.run.status, asked.run.reason) == ("AWAITING_USER_INPUT", DONE, "ESCALATED")
        assert await called(desk) == number + 1
        over = await ana.run(lost.run.id)
        assert (over.status, over.reason) == (CANCELLED, "SUPERSEDED"), "it keeps the thread no longer"
    lost, denied = await told(ana, "denied", "asdf qwer", "no quiero hablar con una persona")
    assert (denied.run.id, denied.run.status, await called(desk)) == (lost.run.id, DONE, 3)
    lost, form = await told(ana, "form", "asdf qwer", "Hola, quiero poner una queja")
    assert (form.run.graph, form.run.status) == ("form", DONE)
    assert "¿Cómo te llamas?" in form.reply.text
    assert "¿Cuál es el número de pedido?" in (await ana.say("Ana García", "form")).reply.text
    _, stopped = await told(ana, "stop", "asdf qwer", "¡Para!")
    assert (stopped.run.reason, stopped.reply.text) == ("STOPPED", "De acuerdo, lo dejo así.")
    _, helped = await told(ana, "help", "asdf qwer", "ayuda, por favor")
    assert (helped.run.status, "espero" in helped.reply.text) == (DONE, False)
    lost, plain = await told(ana, "plain", "asdf qwer", "recuérdame cancelar el gimnasio")
    assert (plain.run.id, plain.run.reason) == (lost.run.id, plain.run.reason), "what only contains a command is none"


async def test_who_does_not_want_a_form_does_not_get_it(desk: System) -> None:
    ana = desk.person("ana")
    for number, text in enumerate(("no quiero poner una queja", "I don't want to file a complaint")):
        assert (await ana.say(text, f"t{number}")).run.graph == "secured"
    both = await ana.say("Quiero poner una queja. Quiero hablar con una persona", "t3")
    assert (both.run.reason, await called(desk)) == ("ESCALATED", 1)
    assert (await ana.say("hola", "t3")).run.graph == "secured", "no form was left open"


async def test_a_stop_cancels_the_card_and_names_it_and_nothing_of_it_ever_runs(desk: System) -> None:
    ana = desk.person("ana")
    for number, text in enumerate(("para", "cancela todo, por favor", "STOP!!!", "I changed my mind", "no hagas nada")):
        card, stopped = await told(ana, f"t{number}", WRITE.format(f"f{number}"), text)
        approval_id, code = approval_of(card)
        assert stopped.run.reason == "STOPPED"
        assert f'escribe "hola" en f{number}.txt' in stopped.reply.text
        assert ((await ana.run(card.run.id)).status, list((await ana.thread(f"t{number}")).pending_approvals)) == (
            CANCELLED,
            [],
        )
        late = await ana.say(f"APROBAR {approval_id} {code}", f"t{number}")
        assert late.run.reason == "NOTHING_WAITS"
        again = await ana.say(text, f"t{number}")
        assert (again.run.status, "f{number}" in again.reply.text) == (DONE, False)
    assert files(desk) == []


async def test_help_and_holding_on_leave_the_card_which_its_code_still_answers(desk: System) -> None:
    ana = desk.person("ana")
    texts = (
        "ayuda",
        "espera un momento",
        "no pares",
        "no quiero cancelar",
        "please don't cancel",
        "don't stop",
        "hold on",
    )
    card, *answers = await told(ana, "t1", WRITE.format("a"), *texts)
    reminds = ["espero tu sí" in one.reply.text or "need your yes" in one.reply.text for one in answers]
    # once, and where the words only resemble a no: nothing is left then, and what waits is asked about
    assert reminds == [at == 0 or text == "don't stop" for at, text in enumerate(texts)]
    assert (await ana.run(card.run.id)).status == SUSPENDED
    approval_id, code = approval_of(card)
    assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE
    assert files(desk) == ["a.txt"]


async def test_a_person_is_called_beside_a_card_which_waits_on_and_says_so(desk: System) -> None:
    ana = desk.person("ana")
    card, asked = await told(ana, "t1", WRITE.format("a"), "quiero hablar con una persona")
    assert (asked.run.reason, await called(desk)) == ("ESCALATED", 1)
    assert "Aún espero tu sí o tu no" in asked.reply.text
    assert ((await ana.run(card.run.id)).status, files(desk)) == (SUSPENDED, [])
    both = await ana.say(f"{WRITE.format('b')}, y quiero hablar con una persona", "t2")
    assert 'Queda sin hacer: escribe "hola" en b.txt' in both.reply.text, "what else was asked for is not lost silently"


async def test_a_stop_in_a_form_is_for_the_card_that_was_shown_last_and_otherwise_for_the_form(desk: System) -> None:
    ana = desk.person("ana")
    _, _, card = await told(ana, "t1", "quiero poner una queja", "luego sigo", WRITE.format("a"))
    shown = card.pending_approval
    stopped = await ana.say(
        "para", shown_approvals=[chat_pb2.ShownApproval(approval_id=shown.approval_id, args_hash=shown.args_hash)]
    )
    assert (stopped.run.id, stopped.run.reason) == (card.run.id, "APPROVAL_REJECTED")
    assert "¿Cómo te llamas?" in (await ana.say("seguir")).reply.text
    review = ("Ana García", "AB-12345", "llegó roto", "La caja venía abierta", "ana@example.org", "sí")
    *_, asked = await told(ana, "t1", *review)
    over = await ana.say("para")
    assert (asked.run.status, over.reply.text.count("\n")) == (SUSPENDED, 0), "its card is not said to wait"
    assert (await ana.run(asked.run.id)).reason == "SUPERSEDED"
    assert files(desk) == []


async def test_two_cards_are_stopped_together_and_a_newer_action_is_taken_back_alone(desk: System) -> None:
    ana = desk.person("ana")
    *_, stopped = await told(ana, "t1", WRITE.format("a"), WRITE.format("b"), "asdf qwer", "cancela")
    assert stopped.reply.text == 'De acuerdo, cancelado: «escribe "hola" en a.txt», «escribe "hola" en b.txt».'
    assert list((await ana.thread("t1")).pending_approvals) == []
    older, newer = await told(ana, "t2", WRITE.format("a"), "recuérdame mañana a las 9 de la mañana llamar a Ana")
    approval_id, code = approval_of(newer)
    assert (await ana.say(f"APROBAR {approval_id} {code}", "t2")).run.status == DONE
    back = await ana.say("cancélalo", "t2")
    assert [call.tool for call in back.run.tool_calls] == ["cancel_reminder"]
    assert (await ana.run(older.run.id)).status == SUSPENDED
    assert files(desk) == []


async def test_what_was_not_done_yet_survives_help_thanks_a_person_and_a_form(desk: System) -> None:
    ana = desk.person("ana")
    for name in "abcdef":
        (desk.sandbox / f"{name}.txt").write_text(f"contenido {name}")
    begun, helped, thanked, asked = await told(ana, "t1", LEFT, "ayuda", "gracias", "quiero hablar con una persona")
    assert begun.run.reason == "STEP_LIMIT"
    for answer in (helped, thanked, asked):
        assert "lee e.txt" in answer.reply.text
    form, over = await told(ana, "t1", "quiero poner una queja", "cancela")
    assert ("lee e.txt" in form.reply.text, "lee e.txt" in over.reply.text) == (False, True)
    more = await ana.say("continúa")
    assert (more.run.id, "contenido f" in more.reply.text) == (begun.run.id, True)
    begun, stopped = await told(ana, "t2", LEFT, "para")
    assert stopped.reply.text.startswith(
        "De acuerdo, cancelado: «lee e.txt», «lee f.txt». Ya estaba hecho: «lee a.txt»"
    )
    begun, other = await told(ana, "t3", LEFT, "lee a.txt")
    assert other.reply.text.startswith("Queda sin hacer: lee e.txt; lee f.txt")


async def test_a_question_of_a_model_waits_on_after_help_and_is_named_when_it_is_stopped(tmp_path: Path) -> None:
    with model_server() as endpoint:
        options: dict[str, Any] = {"model_base_url": endpoint.url, "model": "m", "model_attempts": 1, "handoff": "on"}
        async with open_system(tmp_path, asks=True, **options) as thinking:
            ana = thinking.person("ana")
            endpoint.script(says('{"question": "¿Qué nombre le pongo?"}'))
            asked = await ana.say("haz una lista de la compra")
            for text in ("ayuda", "quiero hablar con una persona", "espera"):
                answer = await ana.say(text)
                assert answer.run.id != asked.run.id
                assert answer.reply.text.endswith("Aún espero tu respuesta a esto: «¿Qué nombre le pongo?»")
            assert (await ana.run(asked.run.id)).status == SUSPENDED
            endpoint.script(says("Vale, compra.txt."))
            named = await ana.say("compra.txt")
            assert (named.run.id, named.reply.text) == (asked.run.id, "Vale, compra.txt.")
            endpoint.script(says('{"question": "¿De qué color?"}'))
            await ana.say("pinta la casa", "t2")
            stopped = await ana.say("para", "t2")
            assert stopped.reply.text == "De acuerdo, cancelado: «pinta la casa»."


async def waiting(stores: Stores, *names: str) -> list[str]:
    """Have runs wait for approvals, and return their ids."""
    found = []
    for name in names:
        await stores.accepted(name, text=f"haz {name}")
        claim = await stores.claimed()
        asked = (ApprovalRequest(f"ap_{name}", "write_file", "self"),)
        steps = ({"step_id": "s1", "description": f"haz {name}", "status": "running", "tries": 1},)
        await stores.end(claim, "suspended", approval_id=f"ap_{name}", card=asked, steps=steps)
        found.append(claim.run.run_id)
    return found


async def test_a_stop_and_a_cancellation_at_once_end_each_run_once(stores: Stores) -> None:
    runs = await waiting(stores, "number1", "number2")
    await stores.accepted("stop", text="para")
    claim = await stores.claimed()
    assert ([run.run_id for run in claim.beside], claim.turn.resumed) == (runs, False)
    cancelling = Cancellations(stores.database, stores.clock, stores.tools)
    await asyncio.gather(
        stores.end(claim, tells_others=True, stops=True), *(cancelling.request(ANA, run_id) for run_id in runs)
    )
    states = {run_id: (await stores.runs.get(ANA, run_id)).status for run_id in runs}
    assert states == dict.fromkeys(runs, "cancelled")
    events = (await stores.log.of_thread(T1, after=0)).events
    over = [event.run_id for event in events if event.kind == "run_finished" and "CANCELLED" in str(event.payload)]
    assert sorted(over) == sorted(runs)
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))


async def test_a_stop_whose_process_dies_is_served_again_and_stops_once(stores: Stores) -> None:
    runs = await waiting(stores, "number1")
    await stores.accepted("stop", text="para")
    await stores.claimed(holder="dead")
    assert (await stores.runs.get(ANA, runs[0])).status == "suspended", "nothing is ended before the turn is"
    stores.pass_time(31)
    again = await stores.claimed(holder="alive")
    await stores.end(again, tells_others=True, stops=True)
    assert (await stores.runs.get(ANA, runs[0])).status == "cancelled"
    reply = (await stores.inbox.get(again.turn.turn_id)).reply_text
    assert "haz number1" in reply
    assert await stores.claims.claim_next(T1, "me") is None


async def test_a_command_is_not_joined_with_the_messages_around_it(stores: Stores) -> None:
    for name, text in (("m1", "una cosa"), ("m2", "otra cosa"), ("m3", "para"), ("m4", "y otra")):
        await stores.accepted(name, text=text, on_busy="coalesce")
    served = []
    while (claim := await stores.claims.claim_next(T1, "me")) is not None:
        served.append(claim.turn.text)
        await stores.end(claim)
    assert served == ["una cosa\notra cosa", "para", "y otra"]
