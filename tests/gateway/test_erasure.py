"""Erasing a person at the gateway: nothing of them is left, nothing of others is missing, nothing is taken twice."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_chassis.errors import FailedPrecondition, NotFound
from phylactery_gateway.__main__ import erase_person
from phylactery_gateway.store.erasure import erase
from phylactery_gateway.tables import metadata

from tests.support.gateway.running import Desk, environment_of, open_gateway, open_servers, settings_of
from tests.support.processes import commands

STICKER = {"type": "sticker", "sticker": {"id": "1", "mime_type": "image/webp"}}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_gateway(tmp_path) as opened:
        yield opened


async def stored(desk: Desk) -> str:
    """Return every value of every table, but for the ids of received elements."""
    found = []
    for table in metadata.sorted_tables:
        for row in await desk.rows(f"SELECT * FROM {table.name}"):
            values = row._mapping.items()
            found += [str(value) for name, value in values if (table.name, name) != ("inbox", "element_id")]
    return "\n".join(found)


async def erased(desk: Desk, value: str, channel: str = "whatsapp") -> Any:
    return await erase(desk.gateway.database, channel, value, desk.clock.now_us())


@pytest.mark.parametrize("value", ["34600000001", "ES.100"])
async def test_nothing_of_a_person_is_left_and_nothing_of_another_is_missing(desk: Desk, value: str) -> None:
    ana, ben = desk.phone(), desk.phone("ES.200", "34600000002")
    for phone in (ana, ben):
        await phone.send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent' AND delivery = 3", 2)
    users = {row.value: row.user_id for row in await desk.rows("SELECT * FROM identities WHERE kind = 'bsuid'")}
    done = await erased(desk, value)
    assert (done.subjects, done.received, done.sent) == ((f"wa:{users['ES.100']}",), 1, 1)
    left = await stored(desk)
    assert [one for one in ("34600000001", "ES.100", users["ES.100"]) if one in left] == []
    assert [one for one in ("34600000002", "ES.200", users["ES.200"]) if one not in left] == []
    with pytest.raises(NotFound, match="nobody is known on whatsapp as"):
        await erased(desk, value)


async def test_a_webhook_delivered_again_is_not_taken_and_a_new_message_is_of_a_new_person(desk: Desk) -> None:
    ana = desk.phone()
    await ana.send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent' AND delivery = 3", 1)
    before = await desk.rows("SELECT * FROM inbox WHERE kind = 'message'") or await desk.rows("SELECT * FROM inbox")
    [old] = (await desk.rows("SELECT user_id FROM users"))[0]
    await erased(desk, "ES.100")
    assert {row.element_id for row in await desk.rows("SELECT * FROM inbox")} >= {row.element_id for row in before}
    await ana.send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent' AND delivery = 3", 1)
    [new] = (await desk.rows("SELECT user_id FROM users"))[0]
    assert new != old


async def test_a_person_whose_message_is_being_answered_is_not_erased_until_it_is(desk: Desk) -> None:
    await desk.phone().send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent' AND delivery = 3", 1)
    until = desk.clock.now_us() + 60_000_000
    serve = sa.text("UPDATE conversations SET turn_owner = 'gw_1', turn_until_us = :until")
    await desk.gateway.database.write(lambda connection: connection.execute(serve, {"until": until}))
    with pytest.raises(FailedPrecondition, match="run the command again"):
        await erased(desk, "ES.100")
    assert len(await desk.rows("SELECT * FROM identities")) == 2
    desk.clock.advance(61)
    assert (await erased(desk, "ES.100")).received == 1


@pytest.mark.slow
async def test_while_a_large_webhook_is_not_read_yet_nobody_is_erased_who_may_be_in_it(desk: Desk) -> None:
    await desk.phone().send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent' AND delivery = 3", 1)

    def keep(connection: Any, until_us: int) -> None:
        connection.execute(sa.text("DELETE FROM backlog"))
        row = {
            "webhook_id": "w",
            "channel": "whatsapp",
            "body": b"{}",
            "done": 0,
            "receive_us": 0,
            "until_us": until_us,
        }
        connection.execute(sa.insert(metadata.tables["backlog"]).values(**row))

    await desk.gateway.database.write(lambda connection: keep(connection, 2**62))  # another process reads it
    with pytest.raises(FailedPrecondition, match="a large webhook of the channel is still being read"):
        await erased(desk, "ES.100")
    await desk.gateway.database.write(lambda connection: keep(connection, 0))  # which died
    await desk.until_rows("SELECT * FROM backlog", 0)
    assert (await erased(desk, "ES.100")).received == 1


@pytest.mark.slow
async def test_the_command_says_what_it_did_and_how_the_agent_knows_the_person(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as desk:
        await desk.phone().send(STICKER)
        await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent' AND delivery = 3", 1)
        [user] = (await desk.rows("SELECT user_id FROM users"))[0]
    async with open_servers() as (graph, bot):
        environment = os.environ | environment_of(settings_of(tmp_path, graph, bot, "127.0.0.1:1"))

        def run(*arguments: str) -> commands.Finished:
            return commands.run("phylactery_gateway", *arguments, environment=environment)

        done = run("erase", "whatsapp", "34600000001")
        assert (done.returncode, done.stderr) == (0, "")
        assert "1 received and 1 sent message erased" in done.stdout
        assert f"phylactery erase wa:{user}\n" in done.stdout
        again = run("erase", "whatsapp", "34600000001")
        assert (again.returncode, again.stderr) == (2, "gateway: nobody is known on whatsapp as '34600000001'\n")
        assert run("erase", "whatsapp").returncode == 2


_REFUSED = (
    ("whatsapp", "158 1234 5678", "a phone number with its country"),
    ("whatsapp", "(158) 1234-5678", "a phone number with its country"),
    ("whatsapp", "158.1234.5678", "a phone number with its country"),
    ("whatsapp", "Ana", "names are not accepted"),
    ("telegram", "158 1234 5678", "this is no id of telegram"),
    ("fax", "15812345678", "there is no channel 'fax'"),
)


async def test_the_command_takes_no_number_without_its_country(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """How a number is written at home is how another's is written with a country: here, one's in Canada."""
    async with open_gateway(tmp_path) as desk:
        await desk.phone("CA.100", "15812345678").send(STICKER)
        await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent' AND delivery = 3", 1)
    async with open_servers() as (graph, bot):
        for name, one in environment_of(settings_of(tmp_path, graph, bot, "127.0.0.1:1")).items():
            monkeypatch.setenv(name, one)
        for channel, value, said in _REFUSED:
            with pytest.raises(SystemExit):
                await asyncio.to_thread(erase_person, channel, value)
            assert said in capsys.readouterr().err
        await asyncio.to_thread(erase_person, "whatsapp", "+1 (581) 234-5678")
        assert "1 received and 1 sent message erased" in capsys.readouterr().out
