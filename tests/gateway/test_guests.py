"""A stranger's phone is a guest's; an operator lifts a person by the channel's id, for as long as it is theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from phylactery_chassis.errors import DomainError
from phylactery_gateway.loopback.graph_api import Phone
from phylactery_gateway.store import lifts

from tests.support.agent.files import shared_folder
from tests.support.agent.system import System, open_system
from tests.support.gateway.running import Desk, open_gateway
from tests.support.processes import commands

pytestmark = pytest.mark.slow


@dataclass
class Whole:
    system: System
    desk: Desk

    @property
    def agent(self) -> str:
        return self.system.target("agent")

    async def told(self, phone: Phone, text: str) -> str:
        """Say something and return the answer."""
        before = len(phone.inbox)
        await phone.say(text)
        await self.desk.until(lambda: len(phone.inbox) > before, "an answer")
        return str(phone.inbox[before].text)

    async def rename(self, phone: Phone, bsuid: str, number: str) -> Phone:
        """Change a person's number, as Meta tells it, and return their phone."""
        system = {
            "type": "user_changed_number",
            "wa_id": number,
            "user_id": bsuid,
            "previous_user_id": phone.bsuid,
            "body": f"User changed from {phone.phone} to {number}",
        }
        await phone.send({"type": "system", "system": system, "from": phone.phone})
        return self.desk.phone(bsuid, number)


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Whole]:
    box = shared_folder(tmp_path, "local")
    (box.path / "notes.txt").write_text("The code is 77.")
    async with (
        open_system(tmp_path, asks=True, sandbox_shared=[box]) as system,
        open_gateway(tmp_path, system.target("agent")) as desk,
    ):
        yield Whole(system, desk)


async def test_a_strangers_phone_is_no_employees(whole: Whole) -> None:
    phone = whole.desk.phone()
    for text in (
        "read shared/box/notes.txt",
        "what files are there",
        "send an email to x@other.example saying hello",
        'escribe "x" en y.txt',
        "send me shared/box/notes.txt",
    ):
        said = await whole.told(phone, text)
        assert "77" not in said
        assert not phone.inbox[-1].choices, "nothing is asked either"
    assert whole.system.written("*.txt") == []
    assert "77" not in await whole.told(whole.desk.phone("ES.2", "34600000002"), "lee shared/box/notes.txt")


async def test_a_lifted_person_is_served_and_only_they(whole: Whole) -> None:
    phone, other = whole.desk.phone(), whole.desk.phone("ES.2", "34600000002")
    assert "77" not in await whole.told(phone, "read shared/box/notes.txt")
    await whole.desk.lift(whole.agent, ("whatsapp", phone.phone))
    assert "77" in await whole.told(phone, "read shared/box/notes.txt")
    assert "77" not in await whole.told(other, "read shared/box/notes.txt")
    await whole.desk.revoke(whole.agent, value=phone.bsuid)
    assert "77" not in await whole.told(phone, "read shared/box/notes.txt")


async def test_a_card_of_a_person_who_is_no_longer_lifted_runs_nothing(whole: Whole) -> None:
    phone = whole.desk.phone()
    await whole.desk.lift(whole.agent)
    await whole.told(phone, 'escribe "uno" en a.txt')
    asked = phone.inbox[-1]
    assert list(asked.choices) == ["Sí", "No"]
    await whole.desk.revoke(whole.agent)
    await phone.press(asked, "Sí")
    await whole.desk.until(lambda: len(phone.inbox) == 2, "an answer")
    assert whole.system.written("*.txt") == []


async def test_a_person_lifted_before_they_write_is_served_at_once(whole: Whole) -> None:
    phone = whole.desk.phone()
    await whole.desk.lift(whole.agent, ("whatsapp", phone.phone))
    assert "77" in await whole.told(phone, "read shared/box/notes.txt")
    assert "77" in await whole.told(phone, "lee shared/box/notes.txt")


async def test_a_lift_does_not_follow_to_another_number_and_is_not_had_with_the_former(whole: Whole) -> None:
    phone = whole.desk.phone()
    await whole.desk.lift(whole.agent, ("whatsapp", phone.phone))
    assert "77" in await whole.told(phone, "read shared/box/notes.txt")
    renamed = await whole.rename(phone, "ES.200", "34600000009")
    assert "77" not in await whole.told(renamed, "read shared/box/notes.txt")
    stranger = whole.desk.phone("ES.300", phone.phone)
    assert "77" not in await whole.told(stranger, "read shared/box/notes.txt")
    await whole.desk.lift(whole.agent, ("whatsapp", renamed.phone))
    assert "77" in await whole.told(renamed, "read shared/box/notes.txt")


async def test_a_number_that_a_message_shows_first_ends_the_lift(whole: Whole) -> None:
    phone = whole.desk.phone()
    await whole.desk.lift(whole.agent)
    assert "77" in await whole.told(phone, "read shared/box/notes.txt")
    moved = whole.desk.phone(phone.bsuid, "34600000077")
    assert "77" not in await whole.told(moved, "read shared/box/notes.txt")


async def test_nothing_of_who_had_a_number_passes_to_whoever_has_it_90_days_later(whole: Whole) -> None:
    old = whole.desk.phone("", "5215512345678")
    await whole.desk.lift(whole.agent, ("whatsapp", "+52 55 1234 5678"))
    assert "77" in await whole.told(old, "read shared/box/notes.txt")
    for text in ("me llamo Rodolfa", "recuerda que mi gata se llama Pelusa", 'escribe "uno" en a.txt'):
        await whole.told(old, text)
    card = old.inbox[-1]
    assert list(card.choices) == ["Sí", "No"]
    whole.desk.clock.advance(91 * 86_400)
    later = whole.desk.clock.now_us() / 1_000_000

    async def told(text: str) -> str:
        before = len(old.inbox)
        await old.say(text, at=later)
        await whole.desk.until(lambda: len(old.inbox) > before, "an answer")
        return str(old.inbox[before].text)

    assert "Rodolfa" not in await told("¿cómo me llamo?")
    assert "Pelusa" not in await told("¿cómo se llama mi gata?")
    assert "77" not in await told("read shared/box/notes.txt")
    before = len(old.inbox)
    await old.press(card, "Sí", at=later)
    await whole.desk.until(lambda: len(old.inbox) > before, "an answer")
    await told("sí")
    assert whole.system.written("*.txt") == []
    assert len(await whole.desk.rows("SELECT * FROM users")) == 2


NAMES = (
    "Ana",
    "600 000 001",
    "wa:usr_1",
    "ES.100 ",
    "ES.",
    "-100123",
    "０３４６００００００１",
    "ana@example.com",
    "",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_id(name: str) -> None:
    for channel in ("whatsapp", "telegram", "sms"):
        with pytest.raises(DomainError):
            lifts.identity_of(channel, name)


async def test_the_command_lifts_lists_and_revokes(whole: Whole, tmp_path: Path) -> None:
    environment = {"GATEWAY_DATA_DIR": str(tmp_path / "gateway"), "GATEWAY_AGENT_TARGET": whole.agent}

    async def ran(*words: str) -> Any:
        return await asyncio.to_thread(
            commands.run, "phylactery_gateway", *words, environment={**environment, "PATH": ""}
        )

    phone = whole.desk.phone()
    lifted = await ran("lift", "whatsapp", phone.phone, "--until", "30d")
    assert lifted.returncode == 0, lifted.stderr
    assert f"whatsapp {phone.phone} is lifted until" in lifted.stdout
    assert "77" in await whole.told(phone, "read shared/box/notes.txt")
    assert phone.phone in (await ran("lifted")).stdout
    assert (await ran("revoke", "whatsapp", phone.phone)).returncode == 0
    assert "77" not in await whole.told(phone, "read shared/box/notes.txt")
    again = await ran("revoke", "whatsapp", phone.phone)
    assert (again.returncode, "is not lifted" in again.stderr) == (2, True)
    wrong = await ran("lift", "whatsapp", "Ana")
    assert (wrong.returncode, "names are not accepted" in wrong.stderr) == (2, True)
    for words in (
        ["lift", "whatsapp", phone.phone, "--until", "yesterday"],
        ["lift", "whatsapp"],
        ["lifted", "--until"],
    ):
        assert (await ran(*words)).returncode == 2
