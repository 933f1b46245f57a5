"""A form at its review on a phone: a typed yes answers the card that is shown, whatever was said between."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from phylactery_forms.definitions.reading import sample_folder

from tests.support.agent.system import System, open_system
from tests.support.gateway.running import Desk, open_gateway

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
FILLED = ("quiero una cita", "Ana García", "ana@ejemplo.com", "612 345 678", "primera visita", "30/11/2027", "10:00")


@dataclass
class Whole:
    system: System
    desk: Desk
    numbers: Any = field(default_factory=lambda: count(1))
    seconds: float = 0.0

    async def told(self, phone: Any, text: str, *, press: str = "") -> Any:
        """Say something, or press a button of the newest card, and return the message that answers it."""
        before = len(phone.inbox)
        self.seconds += 5  # nobody answers what they have had before them for less than a moment
        at = time.time() + self.seconds
        if press:
            await phone.press(next(one for one in reversed(phone.inbox) if one.choices), press, at=at)
        else:
            await phone.say(text, at=at)
        await self.desk.until(lambda: len(phone.inbox) > before, f"an answer to {text or press}")
        return phone.inbox[-1]

    async def at_review(self) -> Any:
        number = next(self.numbers)
        await self.desk.lift(self.system.target("agent"), ("whatsapp", f"ES.{number}"))
        phone = self.desk.phone(f"ES.{number}", f"3460000{number:04}")
        for text in FILLED:
            newest = await self.told(phone, text)
        await self.desk.until(lambda: phone.inbox[-1].choices, "the card")
        assert "10:00" in newest.text or "10:00" in phone.inbox[-1].text
        return phone


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    folder: Path = tmp_path_factory.mktemp("review")
    async with (
        open_system(folder, asks=True, forms_dir=sample_folder()) as system,
        open_gateway(folder, system.target("agent")) as desk,
    ):
        yield Whole(system, desk)


@pytest.mark.parametrize(
    "words",
    [
        ("a las 11:30", "sí"),
        ("la hora es a las 11:30", "sí"),
        ("a las 11:30", "gracias", "sí"),
        ("no", "la hora", "11:30", "sí"),
    ],
)
async def test_a_typed_yes_sends_the_newest_card(whole: Whole, words: tuple[str, ...]) -> None:
    phone = await whole.at_review()
    for text in words:
        await whole.told(phone, text)
    await whole.desk.until(lambda: any("Listo" in one.text for one in phone.inbox), "the thanks")
    assert "11:30" in next(one.text for one in phone.inbox if "Listo" in one.text)


async def test_after_the_button_no_the_form_is_changed_and_sent(whole: Whole) -> None:
    phone = await whole.at_review()
    asked = await whole.told(phone, "", press="No")
    assert "qué cambio" in asked.text
    for text in ("a las 11:30", "sí"):
        await whole.told(phone, text)
    await whole.desk.until(lambda: any("Listo" in one.text for one in phone.inbox), "the thanks")


@pytest.mark.parametrize("words", ["cancelar", "cancel", "cancélalo", "quiero cancelar", "no, cancela", "olvídalo"])
async def test_a_word_that_cancels_cancels_the_form_at_its_review(whole: Whole, words: str) -> None:
    phone = await whole.at_review()
    card = next(one for one in reversed(phone.inbox) if one.choices)
    told = await whole.told(phone, words)
    assert "cambio" not in told.text
    assert not told.choices
    await whole.told(phone, "Sí", press="Sí")
    assert card is next(one for one in reversed(phone.inbox) if one.choices)
    assert not any("Listo" in one.text for one in phone.inbox)
    assert "¿Cómo te llamas?" in (await whole.told(phone, "quiero una cita")).text  # nothing of it is open
