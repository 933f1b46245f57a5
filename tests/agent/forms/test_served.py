"""Whole forms in the running services: answered, corrected, left and resumed, reviewed, approved and submitted once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.agent.v1 import chat_pb2, form_pb2, form_pb2_grpc
from phylactery_agent.graph.form import closing
from phylactery_agent.runtime.forms.catalog import FormCatalog
from phylactery_agent.runtime.storage.schema import EVENTS
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools import executor
from phylactery_agent.tools.executor import Executor, Reconciled
from phylactery_chassis.errors import StartError
from phylactery_forms.definitions.reading import sample_folder
from pydantic import ValidationError
from sqlalchemy.engine import Connection

from tests.support.agent.system import DONE, FAILED, SUSPENDED, Person, System, approval_of, open_system, refused


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[System]:
    """The services with the sample forms; every write is asked about."""
    async with open_system(tmp_path, asks=True, forms_dir=sample_folder(), time_zone="Europe/Madrid") as opened:
        yield opened


def forms_of(system: System) -> form_pb2_grpc.FormServiceStub:
    return form_pb2_grpc.FormServiceStub(system.agent_channel)


async def state_of(system: System, person: Person, thread_id: str = "t1") -> form_pb2.FormState:
    request = form_pb2.GetFormStateRequest(thread_id=thread_id)
    return (await forms_of(system).GetFormState(request, metadata=person.metadata, timeout=60)).state


async def yes(person: Person, text: str, answer: chat_pb2.SendMessageResponse) -> chat_pb2.SendMessageResponse:
    """Answer the card that an answer shows, in plain words."""
    pending = answer.pending_approval
    shown = chat_pb2.ShownApproval(approval_id=pending.approval_id, args_hash=pending.args_hash)
    return await person.say(text, shown_approvals=[shown])


async def said(person: Person, *texts: str) -> chat_pb2.SendMessageResponse:
    for text in texts:
        answer = await person.say(text)
        print(f"> {text}\n{answer.reply.text}\n")  # noqa: T201
    return answer


async def test_a_complaint_is_filled_in_corrected_left_and_sent_once(served: System) -> None:
    ana = served.person()
    (served.sandbox / "notas.txt").write_text("comprar pan")
    opened = await said(ana, "Hola, quiero poner una queja")
    assert (opened.run.status, opened.run.graph) == (DONE, "form")
    assert "¿Cómo te llamas?" in opened.reply.text
    away = await said(ana, "Me llamo Ana García", "lee notas.txt")
    assert "comprar pan" in away.reply.text
    assert away.reply.text.endswith("¿Cuál es el número de pedido?")
    review = await said(
        ana,
        "AB-12345",
        "llegó roto",
        "La caja venía abierta y el vaso estaba hecho pedazos",
        "ana@exmaple.org",
        "no, mi correo es ana@example.org",
        "sí",
    )
    assert (review.run.status, review.run.graph) == (SUSPENDED, "form")
    assert "ana@example.org" in review.reply.text
    sent = await yes(ana, "sí", review)
    assert sent.run.status == DONE
    [kept] = await ana.submitted()
    assert (kept["name"], kept["email"], kept["order"]) == ("Ana García", "ana@example.org", "AB-12345")
    assert served.written("complaint*") == []
    state = await state_of(served, ana)
    assert (state.status, list(state.values)) == (form_pb2.FORM_STATUS_SUBMITTED, [])
    assert (await ana.say("hola")).run.graph == "secured"


@pytest.fixture
async def with_people(tmp_path: Path) -> AsyncIterator[System]:
    """The services with the sample forms and people who work the queue."""
    async with open_system(tmp_path, asks=True, forms_dir=sample_folder(), handoff="on") as opened:
        yield opened


async def escalations_of(system: System) -> list[tuple[str, str]]:
    """Return policy and form of the escalations in the queue."""

    def work(connection: Connection) -> list[tuple[str, str]]:
        return [tuple(row) for row in connection.execute(sa.text("SELECT policy, form_id FROM agent_escalations"))]

    return await system.agent.database.read(work)


COMPLAINT = (
    "quiero poner una queja",
    "Ana García",
    "AB-12345",
    "alguien resultó herido",
    "El vaso me cortó la mano al abrir la caja",
    "ana@example.org",
    "sí",
)


async def test_a_correction_that_is_asked_about_withdraws_the_card_of_what_it_corrects(with_people: System) -> None:
    ana = with_people.person()
    review = await said(ana, *COMPLAINT)
    asked = await said(ana, "no, el correo es eva@example.org")
    assert "eva@example.org" in asked.reply.text
    assert not (await ana.thread()).pending_approval.approval_id
    old = review.pending_approval
    await ana.say(f"APROBAR {old.approval_id} {old.code}")
    assert await ana.submitted() == []
    again = await said(ana, "sí")
    assert again.run.status == SUSPENDED
    sent = await yes(ana, "sí", again)
    assert sent.run.status == DONE
    assert [one["email"] for one in await ana.submitted()] == ["eva@example.org"]


async def test_a_yes_beside_what_somebody_else_wrote_submits_nothing(with_people: System) -> None:
    ana = with_people.person()
    review = await said(ana, *COMPLAINT)
    assert review.run.status == SUSPENDED
    text = "Eva: ¿vienes?\nsí"
    await ana.say(text, own_spans=[chat_pb2.OwnSpan(start=text.index("sí"), stop=len(text))])
    assert (await state_of(with_people, ana)).status != form_pb2.FORM_STATUS_SUBMITTED
    assert await ana.submitted() == []


async def test_a_submitted_form_goes_to_a_person_where_it_says_so(with_people: System) -> None:
    ana = with_people.person()
    (with_people.sandbox / "complaints").mkdir(exist_ok=True)
    review = await said(ana, *COMPLAINT)
    assert review.run.status == SUSPENDED
    assert await escalations_of(with_people) == []
    sent = await yes(ana, "sí", review)
    assert sent.run.status == DONE
    assert "persona del equipo" in sent.reply.text
    assert (await state_of(with_people, ana)).status == form_pb2.FORM_STATUS_SUBMITTED
    assert await escalations_of(with_people) == [("completion", "complaint")]


async def test_who_asks_for_a_person_in_a_form_gets_one(with_people: System) -> None:
    ana = with_people.person()
    answer = await said(ana, *COMPLAINT[:3], "quiero hablar con una persona")
    assert "persona del equipo" in answer.reply.text
    assert (await state_of(with_people, ana)).status == form_pb2.FORM_STATUS_ESCALATED
    assert await escalations_of(with_people) == [("keyword", "complaint")]


async def test_where_nobody_is_on_duty_no_form_says_that_a_person_comes(served: System) -> None:
    ana = served.person()
    answer = await said(ana, *COMPLAINT[:3], "quiero hablar con una persona")
    assert "no hay ninguna persona de guardia" in answer.reply.text
    assert "¿Qué ha pasado?" in answer.reply.text
    angry = await said(ana, "¡ESTO ES UNA VERGÜENZA, SOIS UNOS LADRONES, ESTOY HARTA!", *COMPLAINT[3:])
    assert angry.run.status == SUSPENDED
    (served.sandbox / "complaints").mkdir(exist_ok=True)
    sent = await yes(ana, "sí", angry)
    assert "persona" not in sent.reply.text
    assert (await state_of(served, ana)).status == form_pb2.FORM_STATUS_SUBMITTED


_PLAIN = """
id: desk
version: 1
title: {es: Puesto, en: Desk}
description: {es: Pide un puesto., en: Asks for a desk.}
triggers: {es: [quiero un puesto], en: [i want a desk]}
fields:
  - id: email
    type: email
    label: {es: correo, en: e-mail}
    ask: {es: "¿Cuál es tu correo?", en: "What is your e-mail?"}
  - id: seats
    type: number
    label: {es: sitios, en: seats}
    ask: {es: "¿Cuántos sitios?", en: "How many seats?"}
submit: true
"""
_CHANGED = _PLAIN.replace("version: 1", "version: 2").replace("id: seats", "id: chairs")
_SECRET = """
id: claim
version: 1
title: {es: Reintegro, en: Refund}
description: {es: Pide un reintegro., en: Asks for a refund.}
triggers: {es: [quiero un reintegro], en: [i want a refund]}
fields:
  - id: pin
    type: pattern
    sensitive: true
    options: {pattern: "[0-9]{8}Z"}
    label: {es: clave, en: key}
    ask: {es: "¿Cuál es la clave?", en: "What is the key?"}
  - id: email
    type: email
    label: {es: correo, en: e-mail}
    ask: {es: "¿Cuál es tu correo?", en: "What is your e-mail?"}
submit: true
"""
_OTHER = """
id: plan
version: 1
title: {es: Plano, en: Plan}
description: {es: Pide el plano., en: Asks for the plan.}
triggers: {es: [quiero el plano], en: [i want the plan]}
fields:
  - id: seats
    type: number
    label: {es: sitios, en: seats}
    ask: {es: "¿Cuántos sitios?", en: "How many seats?"}
submit: {tool: send_file, args: {path: plan.pdf}}
"""


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[System]:
    """The services with two small forms in a folder that a test may change."""
    folder = tmp_path / "forms"
    folder.mkdir()
    (folder / "desk.yaml").write_text(_PLAIN)
    (folder / "claim.yaml").write_text(_SECRET)
    async with open_system(tmp_path, asks=True, forms_dir=folder) as opened:
        yield opened


async def restarted(system: System) -> None:
    await system.stop("agent")
    await system.start_agent(forms_dir=system.folder / "forms")


@pytest.mark.slow
async def test_a_form_goes_on_the_next_day_in_an_agent_that_was_restarted(own: System) -> None:
    ana = own.person()
    await said(ana, "i want a desk", "ana@example.org")
    own.clock.advance(86_400)
    await restarted(own)
    review = await said(ana, "4")
    assert (review.run.status, "ana@example.org" in review.reply.text) == (SUSPENDED, True)
    await yes(ana, "yes", review)
    assert await ana.submitted() == [{"email": "ana@example.org", "seats": "4"}]


@pytest.mark.slow
async def test_the_question_of_a_submission_says_what_is_sent_and_where_to_without_secrets(own: System) -> None:
    ana = own.person()
    review = await said(ana, "i want a desk", "ana@example.org", "4")
    assert review.reply.text.endswith("May I send “Desk”? Answer yes or no.")
    assert "e-mail: ana@example.org; seats: 4" in review.reply.text
    secret = await said(own.person("ben"), "quiero un reintegro", "73198264Z", "ben@example.org")
    assert secret.reply.text.endswith("¿Puedo enviar «Reintegro»? Responde sí o no.")
    assert "73198264Z" not in secret.reply.text
    (own.folder / "forms" / "plan.yaml").write_text(_OTHER)
    await restarted(own)
    (own.sandbox_of("eva") / "plan.pdf").write_text("a plan")
    other = await said(own.person("eva"), "i want the plan", "4")
    assert other.reply.text.endswith("May I send “Plan” to plan.pdf? Answer yes or no.")


async def test_a_form_begins_by_a_sentence_like_one_of_its_examples(tmp_path: Path) -> None:
    folder = tmp_path / "forms"
    folder.mkdir()
    examples = "examples: {es: [me hace falta un sitio para trabajar], en: [i am looking for a place to work]}\nfields:"
    (folder / "desk.yaml").write_text(_PLAIN.replace("fields:", examples, 1))
    catalog = FormCatalog.from_folder(folder)
    for text in (
        "Hola, me hace falta un sitio para trabajar por favor",
        "Hello, I am looking for a place to work please",
    ):
        assert catalog.begun_by(text) == "desk", text
    for text in ("busco trabajo", "i am looking for my keys", "lee notas.txt", "a place"):
        assert catalog.begun_by(text) == "", text


async def test_a_form_that_is_left_for_now_is_kept_at_a_question_and_at_its_review(own: System) -> None:
    ana = own.person()
    left = await said(ana, "i want a desk", "ana@example.org", "bye for now")
    assert "continue" in left.reply.text
    (own.sandbox / "notes.txt").write_text("buy bread")
    away = await said(ana, "read notes.txt")
    assert "buy bread" in away.reply.text
    assert "How many seats?" not in away.reply.text
    assert "How many seats?" in (await said(ana, "continue")).reply.text
    review = await said(ana, "4")
    kept = await said(ana, "leave it for now")
    assert "continue" in kept.reply.text
    state = await state_of(own, ana)
    assert (state.status, len(state.values)) == (form_pb2.FORM_STATUS_REVIEW, 2)
    again = await said(ana, "continue")
    sent = await yes(ana, "yes", again if again.pending_approval.approval_id else review)
    assert sent.run.status == DONE, (sent.reply.text, again.pending_approval, review.pending_approval)
    assert await ana.submitted() == [{"email": "ana@example.org", "seats": "4"}]


async def test_who_somebody_is_may_be_the_same_as_in_another_form_and_thread(own: System) -> None:
    ana, ben = own.person(), own.person("ben")
    await yes(ana, "yes", await said(ana, "i want a desk", "ana@example.org", "4"))
    for text in ("quiero un puesto", "lo mismo de antes"):
        asked = await ana.say(text, "t2")
    assert "¿Cuántos sitios?" in asked.reply.text
    assert [one.value for one in (await state_of(own, ana, "t2")).values] == ["ana@example.org"]
    still = await ana.say("lo mismo de antes", "t2")
    assert "¿Cuántos sitios?" in still.reply.text
    other = await said(ben, "quiero un puesto", "lo mismo de antes")
    assert "ana@example.org" not in other.reply.text
    assert "¿Cuál es tu correo?" in other.reply.text


async def test_a_form_that_changed_keeps_the_answers_it_still_takes_and_says_so(own: System) -> None:
    ana = own.person()
    await said(ana, "quiero un puesto", "ana@example.org")
    (own.folder / "forms" / "desk.yaml").write_text(_CHANGED.replace("{seats}", "{chairs}"))
    await restarted(own)
    told = await said(ana, "4")
    assert told.reply.text.startswith("El formulario ha cambiado")
    state = await state_of(own, ana)
    assert [(one.field, one.value) for one in state.values] == [("email", "ana@example.org"), ("chairs", "4")]


async def test_a_correction_of_the_review_replaces_the_call_that_waits(own: System) -> None:
    ana = own.person()
    first = await said(ana, "quiero un puesto", "ana@example.org", "4")
    second = await said(ana, "no, mi correo es eva@example.org")
    assert first.pending_approval.approval_id != second.pending_approval.approval_id
    assert (await ana.run(first.run.id)).reason == "SUPERSEDED"
    stale = await yes(ana, "sí", first)
    assert await ana.submitted() == [], stale.reply.text
    await yes(ana, "sí", second)
    assert await ana.submitted() == [{"email": "eva@example.org", "seats": "4"}]


async def test_a_rejected_submission_keeps_the_answers_and_says_so(own: System) -> None:
    ana = own.person()
    review = await said(ana, "quiero un puesto", "ana@example.org", "4")
    refused_ = await yes(ana, "no", review)
    assert "no lo he enviado. Dime qué cambio" in refused_.reply.text
    assert await ana.submitted() == []
    state = await state_of(own, ana)
    assert (state.status, len(state.values)) == (form_pb2.FORM_STATUS_REVIEW, 2)
    cancelled = await said(ana, "cancelar")
    assert cancelled.run.status == DONE
    assert (await state_of(own, ana)).status == form_pb2.FORM_STATUS_CANCELLED


async def test_a_form_sent_in_a_run_that_failed_after_it_is_told_as_sent_and_not_sent_again(
    own: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise RuntimeError("the reply cannot be made")

    ana = own.person()
    review = await said(ana, "i want a desk", "ana@example.org", "4")
    monkeypatch.setattr(closing, "finished", fails)
    assert (await yes(ana, "yes", review)).run.status == FAILED
    monkeypatch.undo()
    assert await ana.submitted() == [{"email": "ana@example.org", "seats": "4"}]
    assert (await state_of(own, ana)).status == form_pb2.FORM_STATUS_SUBMITTING
    told = await said(ana, "yes")
    assert (told.run.status, told.reply.text) == (DONE, "Sent: Desk.")
    assert (await state_of(own, ana)).status == form_pb2.FORM_STATUS_SUBMITTED
    assert len(await ana.submitted()) == 1


async def test_a_submission_whose_effect_is_in_doubt_says_so_and_is_never_sent_again(
    own: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Executor._admit

    async def fails(_invocation: object) -> str:
        raise OSError("the disk went away in the middle")

    async def unknown(*_: object) -> Reconciled:
        return Reconciled("unknown")

    async def admit(self: Executor, *given: Any) -> Any:
        spec, implementation, args = await real(self, *given)
        return spec, replace(implementation, run=fails, reconcile=unknown), args

    ana = own.person()
    review = await said(ana, "i want a desk", "ana@example.org", "4")
    monkeypatch.setattr(executor, "_repeatable", lambda _spec: False)
    monkeypatch.setattr(Executor, "_admit", admit)
    told = await yes(ana, "yes", review)
    assert "do not know" in told.reply.text
    assert (await state_of(own, ana)).status == form_pb2.FORM_STATUS_IN_DOUBT
    assert "phylactery runs unknown" in told.reply.text
    monkeypatch.undo()
    after = await said(ana, "yes")
    assert after.run.graph == "secured"
    assert await ana.submitted() == []


async def test_an_undone_answer_is_asked_again(own: System) -> None:
    ana = own.person()
    undone = await said(ana, "i want a desk", "ana@example.org", "undo")
    assert "What is your e-mail?" in undone.reply.text
    assert list((await state_of(own, ana)).values) == []


async def test_a_sensitive_answer_is_in_no_file_log_or_transcript(
    own: System, capsys: pytest.CaptureFixture[str]
) -> None:
    ana, secret = own.person(), "73198264Z"
    await ana.say("quiero un reintegro")
    asked = await ana.say(secret)
    assert asked.reply.text == "¿Cuál es tu correo?"
    state = await state_of(own, ana)
    assert [(one.field, one.value) for one in state.values] == [("pin", "")]
    assert secret not in str(state)
    review = await ana.say("ana@example.org")
    assert secret not in review.reply.text
    await own.agent.delivery.flush("transcript", "")
    assert secret not in str(await ana.transcript())
    assert secret.encode() not in own.everything_stored()
    captured = capsys.readouterr()
    assert secret not in captured.out + captured.err
    await yes(ana, "sí", review)
    assert await ana.submitted() == [{"email": "ana@example.org"}]
    assert secret.encode() not in own.everything_stored()


@pytest.mark.parametrize(
    ("digression", "files"),
    [
        ('write "{}" to dig.txt', ["dig.txt"]),
        ("write {} to dig.txt and then read dig.txt", ["dig.txt"]),
        ("remind me tomorrow at 10:00 to {}", []),
        ("what does {} mean?", []),
    ],
)
async def test_what_is_done_beside_a_sensitive_form_is_kept_readable_nowhere(
    own: System, capsys: pytest.CaptureFixture[str], digression: str, files: list[str]
) -> None:
    ana, words = own.person(), "zephyr orchard six"
    await ana.say("i want a refund")
    asked = await ana.say(digression.format(words))
    while asked.run.status == SUSPENDED:
        approval_id, code = approval_of(asked)
        assert kept_in(own, words) == []
        asked = await ana.say(f"APPROVE {approval_id} {code}")
    assert [own.written(name)[0].read_text() for name in files] == [words] * len(files)
    await own.agent.delivery.flush_all()
    assert kept_in(own, words) == []
    events = own.agent.database.read_sync(lambda c: c.execute(sa.select(EVENTS.c.kind, EVENTS.c.payload)).all())
    assert [one.payload for one in events if one.kind in {"step", "tool_proposed"} and words in one.payload] == []
    assert not [step for step in (await ana.run(asked.run.id)).plan_steps if words in step.description]
    captured = capsys.readouterr()
    assert words not in captured.out + captured.err


@pytest.mark.slow
@pytest.mark.parametrize("said", ["i keep zephyr orchard six", "zephyr@orchard-six.example"])
async def test_no_reply_within_a_sensitive_form_is_kept_readable_either(own: System, said: str) -> None:
    """Its review quotes the answers, and what is not understood is quoted as well."""
    ana = own.person()
    for text in ("i want a refund", "48213975Z", said):
        await ana.say(text)
    await own.agent.delivery.flush_all()
    assert kept_in(own, said) == []


def kept_in(system: System, words: str) -> list[str]:
    """Return the files of the services in which words lie, but for people's own files."""
    found = (path for path in system.folder.rglob("*") if path.is_file() and "sandbox" not in path.parts)
    return [str(path.relative_to(system.folder)) for path in found if words.encode() in path.read_bytes()]


async def test_a_sensitive_form_speaks_the_language_it_was_begun_in(served: System) -> None:
    ana = served.person()
    for thread, words, *asked in (
        ("t1", "report an expense", "What kind of expense is it?", "How much was it?"),
        ("t2", "nota de gastos", "¿Qué tipo de gasto es?", "¿Cuánto fue?"),
    ):
        told = [(await ana.say(text, thread)).reply.text for text in (words, "taxi")]
        assert all(question in text for question, text in zip(asked, told, strict=True)), told


async def test_two_threads_and_two_people_have_sessions_of_their_own(own: System) -> None:
    ana, ben = own.person(), own.person("ben")
    await said(ana, "quiero un puesto", "ana@example.org")
    other = await said(ben, "quiero un puesto")
    assert "correo" in other.reply.text
    with pytest.raises(aio.AioRpcError) as caught:
        await state_of(own, ben, "t2")
    assert refused(caught.value).reason == "FORM_NOT_OPEN"
    assert [one.value for one in (await state_of(own, ana)).values] == ["ana@example.org"]
    assert list((await state_of(own, ben)).values) == []


async def test_messages_sent_at_once_fill_the_form_in_their_order(own: System) -> None:
    ana = own.person()
    await ana.say("quiero un puesto")
    first = asyncio.create_task(ana.say("ana@example.org"))
    async with asyncio.timeout(30):
        while own.agent.database.read_sync(_positions) < 2:  # noqa: ASYNC110 - the row is all there is to see
            await asyncio.sleep(0.01)
    second = await ana.say("4")
    await first
    assert second.run.status == SUSPENDED
    assert [one.value for one in (await state_of(own, ana)).values] == ["ana@example.org", "4"]


def _positions(connection: Connection) -> int:
    return int(connection.execute(sa.text("SELECT max(last_position) FROM agent_threads")).scalar() or 0)


async def test_the_service_lists_validates_simulates_and_starts(own: System) -> None:
    ana, forms = own.person(), forms_of(own)
    listed = await forms.ListForms(form_pb2.ListFormsRequest(), metadata=ana.metadata)
    assert [form.id for form in listed.forms] == ["claim", "desk"]
    one = await forms.GetForm(form_pb2.GetFormRequest(form="claim"), metadata=ana.metadata)
    assert [(field.id, field.sensitive) for field in one.form.fields] == [("pin", True), ("email", False)]
    dry = form_pb2.ValidateFormRequest(form="desk", field="email", text="mi correo es ANA@example.org")
    read = await forms.ValidateForm(dry, metadata=ana.metadata)
    assert (read.valid, read.value) == (True, "ANA@example.org")
    bad = await forms.ValidateForm(
        form_pb2.ValidateFormRequest(form="desk", field="email", text="ana@@x"), metadata=ana.metadata
    )
    assert (bad.valid, bool(bad.problem)) == (False, True)
    played = await forms.SimulateForm(
        form_pb2.SimulateFormRequest(form="desk", messages=["ana@example.org", "4"]), metadata=ana.metadata
    )
    assert [turn.state.status for turn in played.turns][-1] == form_pb2.FORM_STATUS_REVIEW
    assert played.turns[1].nodes[0] == "check_escalation"
    started = await forms.StartForm(
        form_pb2.StartFormRequest(form="desk", thread_id="t9", language="en"), metadata=ana.metadata
    )
    assert started.question == "What is your e-mail?"
    answered = await ana.say("ana@example.org", "t9")
    assert (answered.run.graph, answered.reply.text) == ("form", "How many seats?")
    with pytest.raises(aio.AioRpcError) as caught:
        await forms.StartForm(form_pb2.StartFormRequest(form="claim", thread_id="t9"), metadata=ana.metadata)
    assert refused(caught.value).reason == "FORM_OPEN"
    review = await ana.say("4", "t9")
    pages = await forms.ListSubmissions(form_pb2.ListSubmissionsRequest(), metadata=ana.metadata)
    assert [(one.form, one.run_id) for one in pages.submissions] == [("desk", review.run.id)]


@pytest.mark.slow
async def test_others_are_answered_between_the_messages_of_a_long_transcript(own: System) -> None:
    ana, ben, forms = own.person(), own.person("ben"), forms_of(own)
    long = form_pb2.SimulateFormRequest(form="desk", messages=[("4 ana@@x.org, monday at 5 " * 800)[:20_000]] * 100)

    async def play() -> form_pb2.SimulateFormResponse:
        return await forms.SimulateForm(long, metadata=ana.metadata)

    playing = asyncio.create_task(play())
    answered = 0
    while not playing.done():
        await forms.GetForm(form_pb2.GetFormRequest(form="desk"), metadata=ben.metadata)
        answered += not playing.done()
    turns = len((await playing).turns)
    assert answered >= min(20, turns)


async def test_an_invalid_form_file_stops_the_start_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(_PLAIN.replace("type: email", "type: e_mail"))
    with pytest.raises(StartError, match=r"AGENT_FORMS_DIR: .*bad\.yaml:\d+: "):
        FormCatalog.from_folder(tmp_path)


@pytest.mark.slow
async def test_the_configured_country_reads_a_number_without_its_code(tmp_path: Path) -> None:
    folder = tmp_path / "forms"
    folder.mkdir()
    (folder / "desk.yaml").write_text(_PLAIN.replace("id: email\n    type: email", "id: email\n    type: phone"))
    async with open_system(tmp_path, asks=True, forms_dir=folder, region="mx") as system:
        ana = system.person()
        await said(ana, "i want a desk", "55 1234 5678")
        assert [one.value for one in (await state_of(system, ana)).values] == ["+525512345678"]
        dry = form_pb2.ValidateFormRequest(form="desk", field="email", text="55 1234 5678")
        assert (await forms_of(system).ValidateForm(dry, metadata=ana.metadata)).value == "+525512345678"


@pytest.mark.parametrize("region", ["", "Spain", "XX", "001"])
def test_a_region_that_is_no_country_stops_the_start(tmp_path: Path, region: str) -> None:
    with pytest.raises(ValidationError, match="is not an ISO 3166 code"):
        AgentSettings(data_dir=tmp_path, region=region)


async def test_a_deleted_thread_takes_its_form_along(own: System) -> None:
    ana = own.person()
    await ana.say("quiero un puesto")
    await ana.chat.DeleteThread(chat_pb2.DeleteThreadRequest(thread_id="t1"), metadata=ana.metadata, timeout=60)
    with pytest.raises(aio.AioRpcError) as caught:
        await state_of(own, ana)
    assert refused(caught.value).reason == "FORM_NOT_OPEN"


async def test_sessions_nobody_goes_on_with_are_removed_with_old_events(own: System) -> None:
    ana = own.person()
    await ana.say("quiero un puesto")
    assert await own.agent.retention.forget_forms() == 0
    own.clock.advance(31 * 86_400)
    assert await own.agent.retention.forget_forms() == 1


@pytest.mark.parametrize(
    "words", ["cancelar", "cancel", "cancélalo", "quiero cancelar", "cancela todo", "stop", "olvídalo", "never mind"]
)
async def test_words_that_cancel_said_to_the_review_that_was_shown_cancel_the_form(own: System, words: str) -> None:
    ana = own.person(f"ana-{words.replace(' ', '-').replace('é', 'e').replace('í', 'i')}")
    review = await said(ana, "quiero un puesto", "ana@example.org", "4")
    cancelled = await yes(ana, words, review)
    assert "cambio" not in cancelled.reply.text
    assert (await state_of(own, ana)).status == form_pb2.FORM_STATUS_CANCELLED, cancelled.reply.text
    assert not (await ana.thread()).pending_approvals
    assert await ana.submitted() == []
