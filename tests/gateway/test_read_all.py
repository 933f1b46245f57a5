"""Seeing all of a question of which a part is left out, before it is answered."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from phylactery_client import PhylacteryClient
from phylactery_gateway.channels.messages import Kind, Option, Outgoing

from tests.support.agent.system import System, open_system
from tests.support.gateway.running import Desk, open_gateway
from tests.support.gateway.stores import Stores, card, open_stores, person


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(tmp_path) as opened:
        await opened.say("hola")
        await opened.turn()
        yield opened


def abridged(approval_id: str = "ap_1") -> Outgoing:
    """Return a question that leaves a part out, with a button to see it."""
    whole = card(approval_id)
    options = tuple(Option(one.title, {**one.does, "extent": "part"}) for one in whole.options)
    see = Option("Ver todo", {"reads": approval_id, "args_hash": f"hash of {approval_id}"})
    return Outgoing(whole.text, (*options, see))


WORDS = ["ver todo", "Ver todo.", "«ver todo»", "por favor, ver todo", "¿Ver todo?", "muéstralo todo", "VER EL RESTO"]
WORDS += ["see all", "See all please", "“see all”", "show me all of it", "let me see all", "see everything!"]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("quotes", [True, False])
async def test_words_want_to_read_the_question_they_quote_or_the_newest(
    stores: Stores, words: str, quotes: bool
) -> None:
    await stores.told(abridged("ap_1"))
    first = await stores.send()
    await stores.told(abridged("ap_2"))
    await stores.send()
    stores.seconds = 100
    await stores.say(words, refers_to=first if quotes else "")
    turn = await stores.turn()
    name = "ap_1" if quotes else "ap_2"
    assert turn is not None
    assert (turn.reads, turn.args_hash, turn.approval_id, turn.text) == (name, f"hash of {name}", "", "")


async def test_the_button_wants_to_read_its_own_question_and_answers_nothing(stores: Stores) -> None:
    await stores.told(abridged("ap_1"))
    await stores.send()
    await stores.told(abridged("ap_2"))
    await stores.send()
    [(outbox_id,), _] = await stores.rows("SELECT outbox_id FROM outbox ORDER BY position")
    stores.seconds = 100
    await stores.say("Ver todo", kind=Kind.CHOICE, option=f"{outbox_id}.2")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.reads, turn.approval_id) == ("ap_1", "")
    stores.seconds = 200
    await stores.say("/reject")
    two = await stores.turn()
    assert two is not None
    assert (two.text, two.approval_id) == ("/reject", ""), "both wait on"


async def test_after_other_messages_it_is_the_one_that_leaves_a_part_out(stores: Stores) -> None:
    await stores.told(abridged("ap_1"))
    await stores.send()
    await stores.told(card("ap_2"))
    await stores.send()
    await stores.told(Outgoing("It is four o'clock."))
    await stores.send()
    stores.seconds = 100
    await stores.say("ver todo")
    turn = await stores.turn()
    assert turn is not None
    assert turn.reads == "ap_1"


async def test_one_that_was_answered_is_asked_for_and_the_agent_says_so(stores: Stores) -> None:
    await stores.told(abridged())
    await stores.send()
    stores.seconds = 100
    await stores.say("no")
    await stores.turn()
    stores.seconds = 200
    await stores.say("ver todo")
    turn = await stores.turn()
    assert turn is not None
    assert turn.reads == "ap_1"


@pytest.mark.parametrize("what", ["no card", "another's words", "two messages", "a question", "before the card"])
async def test_the_words_are_words_where_they_can_mean_something_else(stores: Stores, what: str) -> None:
    stores.seconds = 50
    if what != "no card":
        await stores.told(abridged())
        await stores.send()
    stores.seconds = 100
    if what == "two messages":
        await stores.say("lee a.txt")
    words = "ver todo lo de ayer" if what == "a question" else "ver todo"
    await stores.say(
        words, passed_on="manda todo" if what.startswith("another") else "", at=49 if "before" in what else -1
    )
    turn = await stores.turn()
    assert turn is not None
    assert (turn.reads, turn.approval_id) == ("", "")
    assert words in turn.text


async def test_nobody_reads_the_question_of_another_person(stores: Stores) -> None:
    await stores.told(abridged())
    asked = await stores.send()
    [(outbox_id,)] = await stores.rows("SELECT outbox_id FROM outbox")
    stores.seconds = 100
    eve = person("ES.2", "342")
    await stores.say("Ver todo", kind=Kind.CHOICE, option=f"{outbox_id}.2", sender=eve)
    await stores.say("ver todo", refers_to=asked, sender=eve)
    ids = [row[0] for row in await stores.rows("SELECT conversation_id FROM conversations ORDER BY rowid")]
    await stores.turns.claim(ids[1], stores.now_us)
    turn = await stores.turns.next(ids[1], stores.now_us)
    assert turn is not None
    assert (turn.stale, turn.reads) == (True, "")


async def test_a_yes_counts_only_under_the_last_of_its_messages(stores: Stores) -> None:
    """What is written while they arrive may be for what was seen before."""
    await stores.told(abridged("ap_1"))
    await stores.send()
    stores.seconds = 100
    await stores.say("ver todo")
    await stores.turn()
    await stores.told(Outgoing("text (1/2): a"), Outgoing("text (2/2): b"), card("ap_1"), source="given:turn")
    await stores.send()
    await stores.send()
    stores.seconds = 110
    await stores.say("sí")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, list(turn.shown), turn.text) == ("", [], "sí")
    stores.seconds = 120
    await stores.send()
    stores.seconds = 130
    await stores.say("sí")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.approve) == ("ap_1", True)


@dataclass
class Whole:
    system: System
    desk: Desk
    numbers: Any = field(default_factory=lambda: count(1))

    async def phone(self) -> Any:
        number = next(self.numbers)
        await self.desk.lift(self.system.target("agent"), ("whatsapp", f"ES.{number}"))
        return self.desk.phone(f"ES.{number}", f"3460000{number:04}")

    async def asked(self, phone: Any, value: str) -> Any:
        await phone.say(f'escribe "{value}" en a.txt')
        await self.desk.until(lambda: phone.inbox and phone.inbox[-1].choices, "a question")
        await self.settled(phone)
        return phone.inbox[-1]

    async def settled(self, phone: Any) -> None:
        """Wait until everything was sent that there is."""
        count = len(phone.inbox)
        await self.desk.until_rows("SELECT * FROM outbox WHERE state NOT IN ('sent', 'silenced')", 0)
        await self.desk.until(lambda: len(phone.inbox) >= count, "the last message")

    def file(self, phone: Any) -> list[str]:
        """Return what is in the file a.txt of whoever has it."""
        return [path.read_text() for path in self.system.written("a.txt")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Whole]:
    folder: Path = tmp_path_factory.mktemp("whole")
    async with open_system(folder, asks=True) as system, open_gateway(folder, system.target("agent")) as desk:
        yield Whole(system, desk)


LONG = "".join(f"renglón {number} de la carta " for number in range(400)) + "FIN"


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("how", ["button", "words"])
async def test_a_long_text_is_read_to_its_middle_and_then_approved(whole: Whole, how: str) -> None:
    phone = await whole.phone()
    asked = await whole.asked(phone, LONG)
    assert list(asked.choices) == ["Sí", "No", "Ver todo"]
    assert "renglón 200" not in "".join(one.text for one in phone.inbox)
    before, later = len(phone.inbox), time.time() + 5
    await (phone.press(asked, "Ver todo", at=later) if how == "button" else phone.say("ver todo", at=later))
    await whole.desk.until(lambda: len(phone.inbox) > before and phone.inbox[-1].choices, "all of it")
    *parts, last = phone.inbox[before:]
    assert [one.text.split(": ")[0] for one in parts] == ["texto (1/3)", "texto (2/3)", "texto (3/3)"]
    told = " ".join(one.text.partition(": ")[2] for one in parts)
    assert told.split() == f'"{LONG}"'.split()
    assert not any(one.choices for one in parts)
    assert list(last.choices) == ["Sí", "No"]
    await whole.settled(phone)
    before = len(whole.system.written("a.txt"))
    await phone.say("sí", at=time.time() + 10)
    await whole.desk.until(lambda: len(whole.system.written("a.txt")) > before, "the write")
    assert any(path.read_text() == LONG for path in whole.system.written("a.txt"))


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("yes", "Eso ya está aprobado."),
        ("no", "Eso ya está rechazado."),
        ("withdrawn", "Eso se retiró."),
        ("expired", "Eso ha caducado. Escribe «otra vez» si todavía lo quieres."),
    ],
)
async def test_what_waits_no_more_is_not_shown_and_the_person_is_told_what_became_of_it(
    whole: Whole, how: str, told: str
) -> None:
    phone = await whole.phone()
    asked = await whole.asked(phone, LONG)
    before = len(phone.inbox)
    match how:
        case "expired":
            whole.system.clock.advance(3_600)
        case "withdrawn":
            [row] = await whole.desk.rows("SELECT * FROM conversations ORDER BY last_inbound_us DESC LIMIT 1")
            async with PhylacteryClient(whole.system.target("agent")) as client:
                person = client.acting_for(f"wa:{row.user_id}")
                thread = await person.get_thread(row.conversation_id)
                await person.cancel_run(thread.pending_approval.run_id)
        case _:
            await phone.press(asked, "Sí" if how == "yes" else "No", at=time.time() + 5)
    if how in ("yes", "no"):
        await whole.desk.until(lambda: len(phone.inbox) > before, "the end")
    await phone.press(asked, "Ver todo", at=time.time() + 20)
    await whole.desk.until(lambda: any(one.text == told for one in phone.inbox[before:]), told)
    assert "renglón 200" not in "".join(one.text for one in phone.inbox)


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_on_telegram_it_is_the_same(whole: Whole) -> None:
    await whole.desk.lift(whole.system.target("agent"), ("telegram", "1001"))
    bot = whole.desk.bot
    await bot.say(f'escribe "{LONG}" en a.txt')
    await whole.desk.until(lambda: bot.sent and "reply_markup" in bot.sent[-1], "a question")
    [[yes], [no], [see]] = bot.sent[-1]["reply_markup"]["inline_keyboard"]
    assert [yes["text"], no["text"], see["text"]] == ["Sí", "No", "Ver todo"]
    before = len(bot.sent)
    await bot.press(bot.sent[-1], "Ver todo")
    await whole.desk.until(lambda: len(bot.sent) > before and "reply_markup" in bot.sent[-1], "all of it")
    assert "renglón 200 " in "".join(one["text"] for one in bot.sent[before:])
    assert len(bot.sent) - before == 4


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_nothing_of_it_is_kept_once_it_is_delivered(whole: Whole) -> None:
    phone = await whole.phone()
    canary = "canario-en-el-medio-4417"
    asked = await whole.asked(phone, LONG[:4_000] + canary + LONG[4_000:])
    before = len(phone.inbox)
    await phone.press(asked, "Ver todo", at=time.time() + 5)
    await whole.desk.until(lambda: len(phone.inbox) > before and phone.inbox[-1].choices, "all of it")
    assert canary in "".join(one.text for one in phone.inbox[before:])
    await whole.desk.until_rows("SELECT * FROM outbox WHERE NOT emptied", 0)
    files = [path for path in whole.desk.folder.rglob("gateway.db*") if path.is_file()]
    assert files
    assert not any(canary.encode() in path.read_bytes() for path in files)
