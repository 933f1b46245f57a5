"""Whole conversations in the compiled form graph."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from phylactery_forms.definitions.reading import read_form, sample_folder

from tests.support.agent.forms import FormTalk


@pytest.fixture
def talk(tmp_path: Path) -> FormTalk:
    return FormTalk(tmp_path)


CHECKS = ["check_escalation", "check_correction", "check_off_topic"]


async def test_an_answer_goes_through_the_nodes_of_the_happy_path(talk: FormTalk) -> None:
    assert await talk.say("Mi nombre es Juan") == "¿Cuál es tu correo?"
    assert talk.nodes == [*CHECKS, "extract_field", "validate", "prompt_next"]
    assert talk.values == {"name": "Juan"}


async def test_the_last_answer_completes_the_form(talk: FormTalk) -> None:
    await talk.say("Mi nombre es Juan")
    await talk.say("juan@ejemplo.com")
    reply = await talk.say("electricista")
    assert talk.nodes == [*CHECKS, "extract_field", "validate", "complete"]
    assert talk.conversation["status"] == "submitted"
    assert "Gracias" in reply


async def test_a_correction_updates_the_field_and_asks_for_the_next(talk: FormTalk) -> None:
    await talk.say("Juan")
    await talk.say("juan@ejemplo.com")
    reply = await talk.say("No, mi email es juan.nuevo@ejemplo.com")
    assert talk.nodes == ["check_escalation", "check_correction", "extract_field", "validate", "prompt_next"]
    assert talk.values["email"] == "juan.nuevo@ejemplo.com"
    assert reply.endswith("¿Cuál es tu puesto?")


async def test_a_digression_is_led_back_and_costs_no_attempt(talk: FormTalk) -> None:
    await talk.say("Juan")
    reply = await talk.say("¿Cómo está el clima?")
    assert talk.nodes == [*CHECKS, "prompt_next"]
    assert reply.endswith("¿Cuál es tu correo?")
    assert talk.conversation["attempts"] == {}


async def test_who_asks_for_a_human_is_handed_over(talk: FormTalk) -> None:
    await talk.say("Necesito hablar con un humano")
    assert talk.nodes == ["check_escalation", "escalate"]
    assert talk.conversation["status"] == "escalated"


async def test_an_undo_takes_the_last_answer_back(talk: FormTalk) -> None:
    await talk.say("Juan")
    await talk.say("juan@ejemplo.com")
    reply = await talk.say("deshacer")
    assert talk.values == {"name": "Juan"}
    assert reply == "Deshecho: correo. ¿Cuál es tu correo?"


async def test_a_field_may_be_skipped_only_if_it_is_optional(talk: FormTalk) -> None:
    assert "Necesito" in await talk.say("saltar")
    await talk.say("Juan")
    await talk.say("juan@ejemplo.com")
    await talk.say("saltar")
    assert talk.conversation["status"] == "submitted"
    assert talk.values == {"name": "Juan", "email": "juan@ejemplo.com"}


async def test_what_was_said_so_far_is_told(talk: FormTalk) -> None:
    await talk.say("Juan")
    assert await talk.say("¿qué he dicho hasta ahora?") == "Hasta ahora tengo: nombre: Juan. ¿Cuál es tu correo?"


async def test_one_message_fills_several_fields(talk: FormTalk) -> None:
    talk.form = read_form(sample_folder() / "appointment.yaml")
    talk.__post_init__()
    await talk.say("Ana García")
    await talk.say("ana@ejemplo.com y mi teléfono es 612 345 678")
    assert talk.values == {"name": "Ana García", "email": "ana@ejemplo.com", "phone": "+34612345678"}


async def test_the_ladder_explains_then_gives_an_example_then_offers_a_person(talk: FormTalk) -> None:
    await talk.say("Juan")
    first, second, third = [await talk.say(text) for text in ("abc", "def", "ghi")]
    assert "Lleva un nombre, una @ y un dominio" in first
    assert "Por ejemplo" in second
    assert "persona" in third
    await talk.say("jkl")
    assert "persona" in await talk.say("mno")
    assert talk.conversation["escalation"] == {"policy": "sentiment", "reason": "repeated_failure"}


async def test_a_cancelled_form_sends_nothing(talk: FormTalk) -> None:
    await talk.say("Juan")
    assert "No se ha enviado nada" in await talk.say("cancelar")
    assert talk.conversation["status"] == "cancelled"


async def test_the_next_day_a_greeting_is_answered_with_where_we_are(talk: FormTalk) -> None:
    await talk.say("Juan")
    reply = await talk.say("hola", after=timedelta(hours=9))
    assert reply == "Hola de nuevo. Estábamos con «Contacto»: nombre: Juan. ¿Cuál es tu correo?"


async def test_a_language_changes_only_with_three_words(talk: FormTalk) -> None:
    await talk.say("Juan")
    await talk.say("the mail")
    assert talk.conversation["language"] == "es"
    reply = await talk.say("I don't understand what you want from me")
    assert talk.conversation["language"] == "en"
    assert "What is your e-mail?" in reply


@pytest.mark.parametrize("text", ["🙂🙂", "\0", "\u202e", "   ", "¿?", "a" * 100_000, "palabra " * 12_500])
async def test_a_message_without_an_answer_is_asked_again(talk: FormTalk, text: str) -> None:
    await talk.say("Juan")
    assert (await talk.say(text)).endswith("¿Cuál es tu correo?")
    assert talk.values == {"name": "Juan"}


async def test_a_timeout_hands_over(talk: FormTalk) -> None:
    await talk.say("Juan")
    await talk.say("juan@ejemplo.com", after=timedelta(hours=11))
    assert talk.conversation["escalation"] == {"policy": "timeout", "reason": "time_exceeded"}


async def test_a_review_is_sent_only_after_a_yes_and_changes_before_it(talk: FormTalk) -> None:
    talk.form = read_form(sample_folder() / "appointment.yaml")
    talk.__post_init__()
    for text in ("Ana García", "ana@ejemplo.com", "saltar", "revisión", "30/11/2026", "a las 10:00"):
        reply = await talk.say(text)
    assert talk.conversation["status"] == "review"
    assert "a las 10:00" in reply
    reply = await talk.say("mejor a las 11:30")
    assert talk.conversation["status"] == "review"
    assert "a las 11:30" in reply
    await talk.say("sí")
    assert talk.conversation["status"] == "submitting"


async def test_a_form_for_the_peer_hides_sensitive_values_in_every_reply(talk: FormTalk) -> None:
    talk.form = read_form(sample_folder() / "expense.yaml")
    talk.__post_init__()
    account = "ES9121000418450200051332"
    replies = [
        await talk.say(text)
        for text in ("taxi", "25,50 euros", "20/11/2026", account, "qué llevo", "saltar", "resumen")
    ]
    assert talk.values["account"] == account
    assert not any(account in reply for reply in replies)
