"""Two people on two phones: neither sees, changes, takes back or is sent what the other's agent keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from phylactery_gateway.loopback.graph_api import Phone

from tests.support.agent.system import System, open_system
from tests.support.gateway.running import Desk, open_gateway

PRIVATE = "my medical report"


@dataclass
class Street:
    system: System
    desk: Desk

    async def say(self, phone: Phone, text: str) -> str:
        """Send a message and return everything the phone gets for it."""
        before = len(phone.inbox)
        await phone.say(text)
        await self.desk.until(lambda: len(phone.inbox) > before, "a reply")
        await self.desk.until_rows("SELECT * FROM outbox WHERE state <> 'sent'", 0)
        return "\n".join(one.text for one in phone.inbox[before:])


@pytest.fixture
async def street(tmp_path: Path) -> AsyncIterator[Street]:
    async with open_system(tmp_path) as system, open_gateway(tmp_path, system.target("agent")) as desk:
        await desk.lift(system.target("agent"), ("whatsapp", "ES.1"), ("whatsapp", "ES.2"))
        yield Street(system, desk)


@pytest.mark.slow
async def test_what_one_phone_writes_no_other_phone_reads_finds_is_sent_or_takes_back(street: Street) -> None:
    ana, eve = street.desk.phone("ES.1", "34600000001"), street.desk.phone("ES.2", "34600000002")
    await street.say(ana, f'write "{PRIVATE}" to private.txt')
    for asked in (
        "what files are there",
        "read private.txt",
        "send me private.txt",
        "search for medical",
        "deshaz eso",
        "undo",
        "restore the previous version of private.txt",
        "does private.txt exist?",
    ):
        told = await street.say(eve, asked)
        assert PRIVATE not in told
        assert not any(one.media_id for one in eve.inbox), asked
    assert "private.txt" not in await street.say(eve, "what files are there")
    assert PRIVATE in await street.say(ana, "read private.txt")


@pytest.mark.slow
async def test_the_same_name_on_two_phones_is_two_files(street: Street) -> None:
    ana, eve = street.desk.phone("ES.1", "34600000001"), street.desk.phone("ES.2", "34600000002")
    await street.say(ana, 'write "the text of ana" to notes.txt')
    await street.say(eve, 'write "the text of eve" to notes.txt')
    await street.say(eve, 'append "eve again" to notes.txt')
    assert "the text of ana" in (told := await street.say(ana, "read notes.txt"))
    assert "eve" not in told
    await street.say(ana, "undo")
    assert "eve again" in await street.say(eve, "read notes.txt")
