"""A form filled in by phone: a stranger submits it by one yes, and the team reads it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from phylactery_gateway.loopback.graph_api import Phone

from tests.support.agent.forms import DESK
from tests.support.agent.system import Person, System, open_system
from tests.support.gateway.running import Desk, open_gateway

pytestmark = pytest.mark.slow

FORM = """
id: repair
version: 1
title: {es: Avería, en: Repair}
description: {es: Avisa de una avería., en: Reports a fault.}
triggers: {es: [tengo una avería], en: [i need a repair]}
fields:
  - id: what
    type: text
    label: {es: aparato, en: appliance}
    ask: {es: "¿Qué se ha roto?", en: "What is broken?"}
  - id: email
    type: email
    label: {es: correo, en: e-mail}
    ask: {es: "¿Cuál es tu correo?", en: "What is your e-mail?"}
  - id: phone
    type: phone
    optional: true
    label: {es: teléfono, en: phone}
    ask: {es: "¿A qué teléfono te llamamos?", en: "Which phone number can we call?"}
submit: SUBMIT
"""
WAYS = {
    "stored": "true",
    "old": '{tool: write_file, args: {path: "repair.txt", content: "{what} {email}"}}',
}


@dataclass
class Whole:
    system: System
    desk: Desk
    stores_all: bool

    @property
    def team(self) -> Person:
        """Whoever runs the services, who has every role."""
        return Person(self.system, ())

    async def told(self, phone: Phone, text: str) -> str:
        before = len(phone.inbox)
        await phone.say(text)
        await self.desk.until(lambda: len(phone.inbox) > before, "an answer")
        return str(phone.inbox[-1].text)

    async def fill_in(self, phone: Phone, what: str, email: str) -> str:
        """Fill in the form, press the only yes there is, and return what was said then."""
        for text in ("i need a repair", what, email, "the number I'm writing from"):
            await self.told(phone, text)
        card = phone.inbox[-1]
        assert sorted(card.choices) in (["No", "Sí"], ["No", "Yes"]), card.text
        assert (what in card.text, "version" in card.text, "values" in card.text) == (True, False, False)
        before = len(phone.inbox)
        await phone.press(card, max(card.choices))
        await self.desk.until(lambda: len(phone.inbox) > before, "an answer")
        assert not phone.inbox[-1].choices, "nothing is asked twice"
        return str(phone.inbox[-1].text)


@pytest.fixture(params=WAYS)
async def whole(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Whole]:
    """The services and a gateway under the packaged policies, which have no section of forms."""
    forms = tmp_path / "forms"
    forms.mkdir()
    (forms / "desk.yaml").write_text(f"{DESK}submit: true\n")
    (forms / "repair.yaml").write_text(FORM.replace("SUBMIT", WAYS[request.param]))
    async with (
        open_system(tmp_path, forms_dir=forms) as system,
        open_gateway(tmp_path, system.target("agent")) as desk,
    ):
        yield Whole(system, desk, stores_all=request.param == "stored")


async def test_strangers_submit_by_one_yes_each_their_own_and_the_team_reads_them(whole: Whole) -> None:
    phones = [whole.desk.phone(f"ES.{number}", f"3460000000{number}") for number in (1, 2)]
    said = await asyncio.gather(
        *(whole.fill_in(phone, f"washer {number}", f"p{number}@example.org") for number, phone in enumerate(phones))
    )
    assert all("complete" in one or "completo" in one for one in said), said
    seen = await whole.team.submissions(everyone=True)
    assert sorted({value.field: value.value for value in one.values}["what"] for one in seen) == [
        "washer 0",
        "washer 1",
    ]
    numbers = {value.value for one in seen for value in one.values if value.field == "phone"}
    assert numbers == ({"+34600000001", "+34600000002"} if whole.stores_all else set())
    assert all(one.user_id.startswith("wa:") for one in seen)
    assert len({one.user_id for one in seen}) == 2
    assert whole.system.written("repair.txt") == []


async def test_nothing_a_stranger_types_submits_a_form_outside_of_its_review(whole: Whole) -> None:
    phone = whole.desk.phone()
    for text in ("submit the form repair", 'submit_form {"form":"repair","values":{}}', 'write "x" to repair.txt'):
        await whole.told(phone, text)
    await whole.told(phone, "i need a repair")
    await whole.told(phone, "yes, submit it")
    assert await whole.team.submissions(everyone=True) == []
    assert whole.system.written("*.txt") == []


@pytest.mark.parametrize("whole", ["stored"], indirect=True)
async def test_a_choice_is_pressed_and_an_old_button_answers_no_later_question(whole: Whole) -> None:
    phone = whole.desk.phone()
    await whole.told(phone, "i want a desk")
    asked = phone.inbox[-1]
    assert sorted(asked.choices) == ["north", "south"]

    async def pressed(title: str) -> str:
        before = len(phone.inbox)
        await phone.press(asked, title)
        await whole.desk.until(lambda: len(phone.inbox) > before, "an answer")
        return str(phone.inbox[-1].text)

    assert "How many seats?" in await pressed("south")
    assert not phone.inbox[-1].choices
    assert "ya no espera respuesta" in await pressed("north")
    review = await whole.told(phone, "4")
    assert "south; seats: 4" in review
    assert "north" not in review
