"""The review of a form: a no asks what to change, and a yes sends what was shown last, whatever was said between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio
from phylactery.agent.v1 import chat_pb2
from phylactery_forms.definitions.reading import sample_folder

from tests.support.agent.system import Person, System, open_system

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
_people = count(1)
ANSWERS = {
    "es": (
        "quiero poner una queja",
        "Ana García",
        "AB-12345",
        "llegó roto",
        "La caja venía abierta",
        "ana@x.example",
        "sí",
    ),
    "en": ("file a complaint", "Ann Smith", "AB-12345", "arrived broken", "The box was open", "ann@x.example", "yes"),
}


class Filling:
    """Somebody at the review of a complaint, as a channel serves them: a yes answers the card on the newest reply."""

    def __init__(self, system: System, language: str) -> None:
        self.subject = f"r{next(_people)}"
        self.person: Person = system.person(self.subject)
        self.language, self.newest = language, chat_pb2.SendMessageResponse()

    async def say(self, *texts: str) -> str:
        for text in texts:
            card = self.newest.pending_approval
            shown = chat_pb2.ShownApproval(approval_id=card.approval_id, args_hash=card.args_hash)
            self.newest = await self.person.say(text, shown_approvals=[shown] if card.approval_id else [])
        return str(self.newest.reply.text)

    async def sent(self) -> str:
        """Return what was submitted, empty if nothing was."""
        return " ".join(value for one in await self.person.submitted() for value in one.values())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder: Path = tmp_path_factory.mktemp("review")
    async with open_system(folder, asks=True, forms_dir=sample_folder(), handoff="on") as opened:
        yield opened


async def at_review(system: System, language: str = "es") -> Filling:
    filling = Filling(system, language)
    await filling.say(*ANSWERS[language])
    assert filling.newest.pending_approval.approval_id
    return filling


@pytest.mark.parametrize(("no", "language"), [("no", "es"), ("no quiero", "es"), ("no", "en"), ("nope", "en")])
async def test_a_no_asks_what_to_change_and_a_yes_after_it_is_asked_anew(
    system: System, no: str, language: str
) -> None:
    filling = await at_review(system, language)
    asked = await filling.say(no)
    assert ("qué cambio" if language == "es" else "what to change") in asked
    assert not filling.newest.pending_approval.approval_id
    assert await filling.say(no) == asked, "again, and nothing is proposed"
    shown = await filling.say("sí" if language == "es" else "yes")
    assert filling.newest.pending_approval.approval_id, shown
    assert await filling.sent() == ""
    await filling.say("sí" if language == "es" else "yes")
    assert "AB-12345" in await filling.sent()


@pytest.mark.parametrize(
    ("language", "words", "value"),
    [
        ("es", ("no", "el nombre", "Eva López"), "Eva López"),
        ("es", ("no", "el nombre es Eva López"), "Eva López"),
        ("es", ("el nombre es Eva López",), "Eva López"),
        ("es", ("cambia el nombre a Eva López",), "Eva López"),
        ("es", ("el correo", "eva@x.example", "sí"), "eva@x.example"),
        ("en", ("no", "the name", "Eve Lee"), "Eve Lee"),
        ("en", ("my name is Eve Lee",), "Eve Lee"),
        ("en", ("the e-mail", "eve@x.example", "yes"), "eve@x.example"),
    ],
)
async def test_a_change_of_one_answer_is_shown_and_sent(
    system: System, language: str, words: tuple[str, ...], value: str
) -> None:
    filling = await at_review(system, language)
    shown = await filling.say(*words)
    assert value in shown
    assert await filling.sent() == ""
    await filling.say("sí" if language == "es" else "yes")
    assert value in await filling.sent()


@pytest.mark.parametrize(
    ("language", "word"),
    [
        *(("es", word) for word in ("hola", "gracias", "¿qué hora es?", "asdf qwer", "espera", "un momento")),
        *(("en", word) for word in ("hello", "thanks", "what time is it?", "asdf qwer", "hold on", "let me think")),
    ],
)
async def test_a_yes_after_any_other_word_sends(system: System, language: str, word: str) -> None:
    filling = await at_review(system, language)
    await filling.say(word)
    assert await filling.sent() == ""
    await filling.say("sí" if language == "es" else "yes")
    assert "AB-12345" in await filling.sent()


async def test_after_a_digression_a_yes_shows_the_card_again_and_the_next_sends(system: System) -> None:
    filling = await at_review(system)
    await filling.say("¿qué recordatorios tengo?", "sí")
    assert await filling.sent() == ""
    await filling.say("sí")
    assert "AB-12345" in await filling.sent()


async def test_a_withdrawn_card_is_shown_no_more(system: System) -> None:
    filling = await at_review(system)
    old = filling.newest.pending_approval
    shown = await filling.say("no, el correo es eva@x.example", "sí")
    new = filling.newest.pending_approval
    assert "eva@x.example" in shown
    cards = [chat_pb2.ShownApproval(approval_id=one.approval_id, args_hash=one.args_hash) for one in (new, old)]
    await filling.person.say("sí", shown_approvals=cards)  # both are on the newest messages, as a channel sees it
    assert "eva@x.example" in await filling.sent()


async def test_a_yes_to_the_withdrawn_card_alone_sends_nothing(system: System) -> None:
    filling = await at_review(system)
    old = filling.newest.pending_approval
    await filling.say("no, el correo es eva@x.example", "sí")
    card = chat_pb2.ShownApproval(approval_id=old.approval_id, args_hash=old.args_hash)
    await filling.person.say("sí", shown_approvals=[card])
    assert await filling.sent() == ""


@pytest.mark.parametrize(
    ("text", "language"),
    [("sí, envíalo", "es"), ("envíalo", "es"), ("sí, está bien", "es"), ("send it", "en"), ("that's right", "en")],
)
async def test_words_that_send_are_a_yes_to_the_card_of_the_review(system: System, text: str, language: str) -> None:
    filling = await at_review(system, language)
    await filling.say(text)
    assert "AB-12345" in await filling.sent()


@pytest.mark.parametrize("text", ["envíalo?", "no lo envíes", "envíalo a Luis"])
async def test_words_beside_those_that_send_send_nothing(system: System, text: str) -> None:
    filling = await at_review(system)
    await filling.say(text)
    assert await filling.sent() == ""


async def test_words_that_send_approve_no_call_outside_of_a_review(system: System) -> None:
    person = system.person("sends")
    card = (await person.say('escribe "hola" en z.txt')).pending_approval
    assert card.approval_id
    shown = [chat_pb2.ShownApproval(approval_id=card.approval_id, args_hash=card.args_hash)]
    await person.say("envíalo", shown_approvals=shown)
    assert not (system.sandbox_of("sends") / "z.txt").exists()
