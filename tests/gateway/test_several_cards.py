"""A phone with two questions before it, and one message that says which gets a yes and which a no."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from phylactery_gateway.app import build
from phylactery_gateway.settings import GatewaySettings

from tests.support.agent.system import System, open_system
from tests.support.gateway.running import Desk, RealClock, open_servers, settings_of

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
_numbers = count(1)


class House:
    """The services, a loopback Graph API, and a gateway that can be started again over its database."""

    def __init__(self, system: System, folder: Path, graph: Any, bot: Any) -> None:
        self.system, self.folder, self.graph, self.bot = system, folder, graph, bot
        self.desk: Any = None

    async def start(self) -> None:
        clock = RealClock()
        settings = settings_of(self.folder, self.graph, self.bot, self.system.target("agent"))
        gateway = await build(GatewaySettings(**settings), clock=clock)
        await gateway.start()
        self.graph.webhook = f"http://127.0.0.1:{gateway.port}/webhooks/whatsapp"
        self.desk = Desk(gateway, self.graph, self.bot, clock, self.folder)

    async def phone(self) -> Any:
        number = next(_numbers)
        await self.desk.lift(self.system.target("agent"), ("whatsapp", f"ES.{number}"))
        return self.desk.phone(f"ES.{number}", f"3460000{number:04}")

    async def asked(self, phone: Any, *requests: str) -> None:
        for number, text in enumerate(requests, 1):
            await phone.say(text, at=time.time() + number * 5)
            await self.desk.until(lambda n=number: sum(bool(one.choices) for one in phone.inbox) == n, "a question")
        await self.desk.until_rows("SELECT * FROM outbox WHERE state NOT IN ('sent', 'silenced')", 0)

    def written(self, name: str) -> int:
        return len(self.system.written(name))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    folder = tmp_path_factory.mktemp("several")
    async with open_system(folder, asks=True) as system, open_servers() as (graph, bot):
        opened = House(system, folder, graph, bot)
        await opened.start()
        try:
            yield opened
        finally:
            await opened.desk.gateway.stop()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("requests", "words", "yes", "no"),
    [
        (('escribe "pan" en {}', 'escribe "té" en {}'), "sí a la primera y no a la segunda", 0, 1),
        (('write "x" to {}', 'write "y" to {}'), "the first no, the second yes", 1, 0),
    ],
)
async def test_each_question_gets_its_answer_also_after_the_gateway_was_restarted(
    house: House, *, requests: tuple[str, str], words: str, yes: int, no: int, restarts: bool
) -> None:
    names = [f"{'ab'[at]}{next(_numbers)}.txt" for at in range(2)]
    phone = await house.phone()
    await house.asked(phone, *(text.format(name) for text, name in zip(requests, names, strict=True)))
    if restarts:
        await house.desk.gateway.stop()
        await house.start()
    await phone.say(words, at=time.time() + 30)
    await house.desk.until(lambda: house.written(names[yes]), "the write")
    assert not house.written(names[no])
    before = len(phone.inbox)
    await phone.say("¿qué está esperando?", at=time.time() + 40)
    await house.desk.until(lambda: len(phone.inbox) > before, "an answer")
    assert names[no] not in phone.inbox[-1].text


@pytest.mark.parametrize("words", ["las dos", "both", "1"])
async def test_words_that_only_name_them_write_nothing(house: House, words: str) -> None:
    names = [f"{'cd'[at]}{next(_numbers)}.txt" for at in range(2)]
    phone = await house.phone()
    await house.asked(phone, *(f'escribe "x" en {name}' for name in names))
    before = len(phone.inbox)
    await phone.say(words, at=time.time() + 30)
    await house.desk.until(lambda: len(phone.inbox) > before, "a question")
    assert all(name in phone.inbox[-1].text for name in names)
    assert "ap_" not in phone.inbox[-1].text
    assert not any(map(house.written, names))


async def react(phone: Any, sign: str, sent: Any) -> None:
    reaction = {"message_id": sent.wamid, "emoji": sign}
    await phone.send({"type": "reaction", "reaction": reaction}, at=time.time() + 30)


async def planned(house: House, phone: Any, names: list[str]) -> Any:
    """Ask for several writes at once, and return the one message that asks about them."""
    await house.asked(phone, " y ".join(f'escribe "x" en {name}' for name in names))
    [asks] = [one for one in phone.inbox if one.choices]
    assert all(name in asks.text for name in names)
    return asks


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("how", ["press", "press twice", "react", "words", "restart"])
async def test_a_plan_is_one_message_and_one_answer_runs_all_of_it_once(house: House, how: str, count: int) -> None:
    names = [f"p{next(_numbers)}.txt" for _ in range(count)]
    phone = await house.phone()
    asks = await planned(house, phone, names)
    if how == "restart":
        await house.desk.gateway.stop()
        await house.start()
    if how == "words":
        await phone.say("sí", at=time.time() + 30)
    elif how == "react":
        await react(phone, "\U0001f44d", asks)
    else:
        for _ in range(2 if how == "press twice" else 1):
            await phone.press(asks, "Sí")
    await house.desk.until(lambda: all(map(house.written, names)), "the writes")
    assert [house.written(name) for name in names] == [1] * count


@pytest.mark.parametrize("how", ["press", "react", "words"])
async def test_a_no_to_a_plan_runs_nothing_of_it(house: House, how: str) -> None:
    names = [f"n{next(_numbers)}.txt" for _ in range(3)]
    phone = await house.phone()
    asks = await planned(house, phone, names)
    before = len(phone.inbox)
    if how == "words":
        await phone.say("no", at=time.time() + 30)
    elif how == "react":
        await react(phone, "\U0001f44e", asks)
    else:
        await phone.press(asks, "No")
    await house.desk.until(lambda: len(phone.inbox) > before, "an answer")
    assert not any(map(house.written, names))


async def test_words_answer_a_part_of_a_plan_and_its_button_nothing_any_more(house: House) -> None:
    names = [f"w{next(_numbers)}.txt" for _ in range(3)]
    phone = await house.phone()
    asks = await planned(house, phone, names)
    await phone.say(f"sí a {names[0]}, no a {names[1]}", at=time.time() + 30)
    await house.desk.until(lambda: house.written(names[0]), "the write")
    before = len(phone.inbox)
    await phone.press(asks, "Sí")  # of all three, and one of them waits
    await house.desk.until(lambda: len(phone.inbox) > before, "an answer")
    assert [house.written(name) for name in names] == [1, 0, 0]


async def test_what_is_of_high_stakes_has_a_button_of_its_own_and_is_first(house: House) -> None:
    number = next(_numbers)
    phone = await house.phone()
    low, high = f"l{number}.txt", f"h{number}/Makefile"
    await phone.say(f'escribe "x" en {low} y escribe "all:" en {high}', at=time.time() + 5)
    await house.desk.until(lambda: sum(bool(one.choices) for one in phone.inbox) == 2, "two questions")
    first, second = [one for one in phone.inbox if one.choices]
    assert (high in first.text, low in second.text) == (True, True)
    assert "Otros programas ejecutan u obedecen un archivo con este nombre." in first.text
    before = len(phone.inbox)
    await react(phone, "\U0001f44d", first)
    await house.desk.until(lambda: len(phone.inbox) > before, "an answer")
    assert not house.written(low)
