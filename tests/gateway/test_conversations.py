"""Whole conversations: a phone, the gateway, and the real agent, RiskGate and memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.adapters.memory import MemoriesAdapter

from tests.support.agent.system import System, open_system
from tests.support.gateway.running import Desk, open_gateway

ENDS_SECONDS = 60
LATER = 5.0
"""A person reads a question before they answer it."""


@dataclass
class Whole:
    system: System
    desk: Desk

    @property
    def sandbox(self) -> Path:
        return self.system.phone_sandbox()


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Whole]:
    async with open_system(tmp_path, asks=True) as system, open_gateway(tmp_path, system.target("agent")) as desk:
        await desk.lift(system.target("agent"))
        yield Whole(system, desk)


@pytest.mark.slow
async def test_a_message_is_answered(whole: Whole) -> None:
    phone = whole.desk.phone()
    await phone.say("remember that I have to buy bread")
    await whole.desk.until(lambda: phone.inbox, "a reply")
    assert "buy bread" in phone.inbox[0].text
    assert phone.inbox[0].receiver == phone.bsuid
    assert whole.desk.graph.typed, "typing was shown"


@pytest.mark.slow
async def test_the_same_message_three_times_is_one_turn(whole: Whole) -> None:
    phone = whole.desk.phone()
    await phone.say('append "once" to log.txt', times=3)
    asked = await whole.desk.until(lambda: phone.inbox, "a question")
    await phone.press(asked[0], "Yes")
    await whole.desk.until(lambda: len(phone.inbox) == 2, "a reply")
    assert (whole.sandbox / "log.txt").read_text().splitlines() == ["once"]
    assert len(await whole.desk.rows("SELECT * FROM turns")) == 2


@pytest.mark.slow
async def test_a_button_answers_exactly_its_approval(whole: Whole) -> None:
    phone = whole.desk.phone()
    await phone.say('write "uno" to a.txt')
    first = (await whole.desk.until(lambda: phone.inbox, "a question"))[0]
    assert "a.txt" in first.text
    assert list(first.choices) == ["Yes", "No"]
    await phone.say('write "dos" to b.txt')
    await whole.desk.until(lambda: any("b.txt" in one.text for one in phone.inbox), "another question")
    await phone.press(first, "Yes")
    await whole.desk.until(lambda: whole.system.written("a.txt"), "the write")
    assert not (whole.sandbox / "b.txt").exists()


@pytest.mark.slow
async def test_a_button_pressed_again_changes_nothing(whole: Whole) -> None:
    phone = whole.desk.phone()
    await phone.say('append "x" to log.txt')
    asked = (await whole.desk.until(lambda: phone.inbox, "a question"))[0]
    await phone.press(asked, "Yes")
    await whole.desk.until(lambda: len(phone.inbox) == 2, "a reply")
    await phone.press(asked, "Yes")  # tapped twice: the same press
    await phone.press(asked, "Yes", at=time.time() + 11)
    await whole.desk.until(lambda: len(phone.inbox) == 3, "another reply")
    assert phone.inbox[2].text == "Eso ya está aprobado. No he cambiado nada."
    assert (whole.sandbox / "log.txt").read_text().splitlines() == ["x"]


@pytest.mark.slow
@pytest.mark.parametrize("second", ["Yes", "No"])
async def test_of_two_devices_of_one_person_the_first_answer_holds_and_the_other_is_told(
    whole: Whole, second: str
) -> None:
    phone = whole.desk.phone()
    await phone.say('append "x" to log.txt')
    asked = (await whole.desk.until(lambda: phone.inbox, "a question"))[0]
    at = time.time() + LATER
    await phone.press(asked, "Yes", at=at)
    await phone.press(asked, second, at=at + 11)
    await whole.desk.until(lambda: len(phone.inbox) == 3, "both answers")
    assert (whole.sandbox / "log.txt").read_text().splitlines() == ["x"]
    late = ("Eso ya está aprobado. No he cambiado nada.", "has already been used")
    assert any(words in one.text for one in phone.inbox for words in late)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("withdrawn", "Eso se retiró. No he cambiado nada."),
        ("expired", "Eso ha caducado. No he cambiado nada. Escribe «otra vez» si todavía lo quieres."),
    ],
)
async def test_a_question_that_is_gone_while_it_is_answered_runs_nothing(whole: Whole, how: str, told: str) -> None:
    phone = whole.desk.phone()
    await phone.say('append "x" to log.txt')
    asked = (await whole.desk.until(lambda: phone.inbox, "a question"))[0]
    if how == "expired":
        whole.system.clock.advance(3_600)
    else:
        [row] = await whole.desk.rows("SELECT * FROM conversations")
        client = whole.desk.gateway.agent._client.acting_for(f"wa:{row.user_id}")
        thread = await client.get_thread(row.conversation_id)
        await client.cancel_run(thread.pending_approval.run_id)
    await phone.press(asked, "Yes", at=time.time() + LATER)
    await whole.desk.until(lambda: told in [one.text for one in phone.inbox], told)
    assert whole.system.written("log.txt") == []


@pytest.mark.slow
async def test_a_typed_yes_answers_the_buttons(whole: Whole) -> None:
    phone = whole.desk.phone()
    for place, word in enumerate(("sí", "ok, dale")):
        await phone.say(f'write "x" to file{place}.txt')
        await whole.desk.until(lambda place=place: len(phone.inbox) == 2 * place + 1, "a question")
        await whole.desk.until_rows("SELECT * FROM outbox WHERE state = 'sent'", 2 * place + 1)
        await phone.say(word, at=time.time() + LATER)
        await whole.desk.until(lambda place=place: (whole.sandbox / f"file{place}.txt").exists(), "the write")
        await whole.desk.until(lambda place=place: len(phone.inbox) == 2 * place + 2, "a reply")
        assert (whole.sandbox / f"file{place}.txt").read_text() == "x"


@pytest.mark.slow
@pytest.mark.parametrize(("command", "written"), [("/approve", True), ("/reject", False)])
async def test_what_the_agent_says_to_answer_with_answers_the_question_that_waits(
    whole: Whole, command: str, written: bool
) -> None:
    phone = whole.desk.phone()
    await phone.say('write "x" to a.txt')
    await whole.desk.until(lambda: phone.inbox, "a question")
    await phone.say("hola")
    await whole.desk.until(lambda: len(phone.inbox) == 2, "a reply")
    await whole.desk.until_rows("SELECT * FROM outbox WHERE state = 'sent'", 2)
    await phone.say(command, at=time.time() + LATER)
    await whole.desk.until(lambda: len(phone.inbox) == 3, "the end")
    assert (whole.sandbox / "a.txt").exists() == written


@pytest.mark.slow
async def test_with_two_questions_a_bare_command_answers_neither(whole: Whole) -> None:
    phone = whole.desk.phone()
    for place, messages in enumerate((1, 3)):  # that the first still waits is said before the second question
        await phone.say(f'write "x" to file{place}.txt')
        await whole.desk.until(lambda messages=messages: len(phone.inbox) == messages, "a question")
    await whole.desk.until_rows("SELECT * FROM outbox WHERE state = 'sent'", 3)
    await phone.say("/approve", at=time.time() + LATER)
    await whole.desk.until(lambda: len(phone.inbox) == 4, "a reply")
    assert whole.system.written("file*.txt") == []


@pytest.mark.slow
async def test_a_button_of_another_conversation_answers_nothing_not_even_ones_own_question(whole: Whole) -> None:
    ana, bob = whole.desk.phone("ES.1", "341"), whole.desk.phone("ES.2", "342")
    for one in (ana, bob):
        await whole.desk.lift(whole.system.target("agent"), ("whatsapp", one.bsuid))
    await ana.say('write "x" to a.txt')
    asked = (await whole.desk.until(lambda: ana.inbox, "a question"))[0]
    await bob.say('write "x" to b.txt')
    await whole.desk.until(lambda: bob.inbox, "a question")
    await whole.desk.until_rows("SELECT * FROM outbox WHERE sent_us > 0", 2)
    await bob.press(asked, "Yes", at=time.time() + LATER)
    await whole.desk.until(lambda: len(bob.inbox) == 2, "a reply")
    assert bob.inbox[1].text == "Eso ya no espera respuesta. No he cambiado nada."
    assert whole.system.written("[ab].txt") == []


@pytest.mark.slow
async def test_two_people_never_see_each_other(whole: Whole) -> None:
    ana, bob = whole.desk.phone("ES.1", "341"), whole.desk.phone("ES.2", "342")
    for one in (ana, bob):
        await whole.desk.lift(whole.system.target("agent"), ("whatsapp", one.bsuid))
    await ana.say("remember that my dog is called Rex")
    asked = await whole.desk.until(lambda: ana.inbox, "a reply")
    await bob.say("what do you remember about me?")
    told = await whole.desk.until(lambda: bob.inbox, "a reply")
    assert asked
    assert "Rex" not in told[0].text


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Let the first turn stand still; return what says that it does, and what lets it go."""
    reached, go, real = asyncio.Event(), asyncio.Event(), MemoriesAdapter.hydrate

    async def slow(*args: Any, **named: Any) -> Any:
        first = not reached.is_set()
        reached.set()
        if first:
            await go.wait()
        return await real(*args, **named)

    monkeypatch.setattr(MemoriesAdapter, "hydrate", slow)
    return reached, go


@pytest.mark.slow
@pytest.mark.parametrize(
    "messages", [["STOP!!!"], ["hola", "para"], ['escribe "b" en b.txt', "cancela todo"], ["gracias", "hold on"]]
)
async def test_a_stop_overtakes_what_was_said_before_it_and_waits(
    whole: Whole, messages: list[str], held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    phone, (reached, go) = whole.desk.phone(), held
    await phone.say('escribe "a" en a.txt')
    await asyncio.wait_for(reached.wait(), ENDS_SECONDS)
    for place, one in enumerate(messages, 2):
        await phone.say(one)
        await whole.desk.until_rows("SELECT * FROM turns WHERE state = 'given'", place)
    go.set()
    [told, *_] = await whole.desk.until(lambda: [one.text for one in phone.inbox if "a.txt" in one.text], "the end")
    assert told.startswith(("De acuerdo, cancelado", "All right, cancelled"))
    assert whole.system.written("*.txt") == []


@pytest.mark.slow
async def test_a_stop_that_comes_with_a_request_stops_both_that_and_what_is_being_done(
    whole: Whole, held: tuple[asyncio.Event, asyncio.Event]
) -> None:
    phone, (reached, go) = whole.desk.phone(), held
    await phone.say('escribe "a" en a.txt')
    await asyncio.wait_for(reached.wait(), ENDS_SECONDS)
    await asyncio.gather(phone.say('escribe "b" en b.txt'), phone.say("¡para!", at=time.time() + 1))
    await whole.desk.until_rows("SELECT * FROM messages WHERE state = 'given'", 3)
    go.set()
    await whole.desk.until_rows("SELECT * FROM turns WHERE state = 'open'", 0)
    await whole.desk.until(lambda: len(phone.inbox) >= 2, "what came of both")
    assert not [one for one in phone.inbox if one.choices], "nothing is asked about"
    assert whole.system.written("*.txt") == []


@pytest.mark.slow
async def test_messages_wait_while_the_agent_is_away_and_are_answered_in_order(tmp_path: Path) -> None:
    async with open_system(tmp_path) as system, open_gateway(tmp_path, system.target("agent")) as desk:
        await desk.lift(system.target("agent"))
        phone = desk.phone()
        await phone.say("hola")
        await desk.until(lambda: phone.inbox, "a reply")
        port = int(system.target("agent").rpartition(":")[2])
        await system.stop("agent")
        for place in range(3):
            await phone.say(f'append "{place}" to log.txt')
            await asyncio.sleep(0)
        await desk.until_rows("SELECT * FROM turns WHERE state = 'open'", 1)
        await system.start_agent(port=port)
        await desk.until(lambda: any("2" in one.read_text() for one in system.written("log.txt")), "all three")
        assert (system.phone_sandbox() / "log.txt").read_text().splitlines() == ["0", "1", "2"]


@pytest.mark.slow
async def test_a_reminder_reaches_the_phone(tmp_path: Path) -> None:
    async with open_system(tmp_path) as system, open_gateway(tmp_path, system.target("agent")) as desk:
        await desk.lift(system.target("agent"))
        phone = desk.phone()
        await phone.say("recuérdame en 10 minutos llamar a mamá")
        await desk.until(lambda: phone.inbox, "a reply")
        system.clock.advance(700)
        await desk.until(lambda: any("mamá" in one.text for one in phone.inbox[1:]), "the reminder")
        assert sum("mamá" in one.text for one in phone.inbox[1:]) == 1


@pytest.mark.slow
async def test_after_somebody_answered_by_hand_the_agent_is_silent(whole: Whole) -> None:
    phone = whole.desk.phone()
    await phone.say("hola")
    await whole.desk.until(lambda: phone.inbox, "a reply")
    echo = {"id": "wamid.echo", "timestamp": "1790000000", "type": "text", "to_user_id": phone.bsuid, "to": phone.phone}
    assert (
        await whole.desk.graph.post(whole.desk.graph.change({"message_echoes": [echo]}, name="smb_message_echoes"))
        == 200
    )
    await phone.say('write "x" to a.txt')
    await whole.desk.until_rows("SELECT * FROM messages WHERE state = 'human'", 1)
    assert len(phone.inbox) == 1
    whole.desk.clock.advance(3_700)
    await phone.say("hola otra vez")
    await whole.desk.until(lambda: len(phone.inbox) == 2, "a reply after the pause")
    assert not (whole.sandbox / "a.txt").exists()


@pytest.mark.slow
async def test_replies_arrive_after_the_thread_was_deleted(whole: Whole) -> None:
    phone = whole.desk.phone()
    await phone.say("hola")
    await whole.desk.until(lambda: phone.inbox, "a reply")
    [row] = await whole.desk.until_rows("SELECT * FROM conversations WHERE event_after > 0 AND thread_us > 0", 1)
    await whole.desk.gateway.agent._client.acting_for(f"wa:{row.user_id}").delete_thread(row.conversation_id)
    whole.system.clock.advance(1)  # the agent's clock, by which a thread is a new one, does not move by itself
    for count in (2, 3):
        await phone.say("hola")
        await whole.desk.until(lambda count=count: len(phone.inbox) == count, "a reply")


@pytest.mark.slow
async def test_telegram_has_buttons_too(whole: Whole) -> None:
    bot = whole.desk.bot
    assert await bot.say('escribe "hola" en a.txt') == 200
    asked = (await whole.desk.until(lambda: bot.sent, "a question"))[0]
    assert "a.txt" in asked["text"]
    await bot.press(asked, "Sí")
    await whole.desk.until(lambda: whole.system.written("a.txt"), "the write")
    await whole.desk.until(lambda: len(bot.sent) == 2, "a reply")
    assert "answerCallbackQuery" in bot.calls


@pytest.mark.slow
async def test_what_was_masked_is_said_on_a_phone_once_before_what_was_done_with_it(whole: Whole) -> None:
    phone = whole.desk.phone()
    await phone.say('escribe "mi contraseña es Gato99Perro" en a.txt')
    await whole.desk.until(lambda: any(one.choices for one in phone.inbox), "a question")
    said = "\n".join(one.text for one in phone.inbox)
    assert said.startswith("No guardo contraseñas, PIN ni claves: donde has escrito una")
    assert said.count("No guardo contraseñas") == 1
    await phone.press(phone.inbox[-1], "Sí")
    await whole.desk.until(lambda: "a.txt" in phone.inbox[-1].text and not phone.inbox[-1].choices, "a reply")
    assert (whole.sandbox / "a.txt").read_text().strip() == "mi contraseña es «password»"
