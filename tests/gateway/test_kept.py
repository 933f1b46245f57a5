"""What the gateway keeps of what people write and are told: sealed while it is needed, and empty from then on."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import StartError
from phylactery_gateway.app import prepare_database
from phylactery_gateway.channels.messages import (
    Delivery,
    Echoed,
    Element,
    Kept,
    Kind,
    Media,
    Option,
    Outgoing,
    Received,
    Status,
)
from phylactery_gateway.delivery.housekeeping import Housekeeping
from phylactery_gateway.loopback.graph_api import Phone
from phylactery_gateway.store.inbox import Inbox, InboxRules
from phylactery_gateway.store.sealing import KEY_FILE, SEALED, Sealer, note_key
from phylactery_gateway.store.turns import Threads, TurnState
from phylactery_gateway.tables import metadata

from tests.gateway.test_numbers import _upgrade
from tests.support.agent.system import open_system
from tests.support.clock import FakeClock
from tests.support.gateway.process import one_gateway
from tests.support.gateway.running import until
from tests.support.gateway.stores import ACCOUNT, DAY, START_US, Stores, card, open_stores, person, texts_of, whatsapp
from tests.support.processes import commands
from tests.support.servers import postgres

CANARY = "PhoneCanary61x"


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(tmp_path) as opened:
        yield opened


def in_clear(folder: Path, *texts: str) -> dict[str, list[str]]:
    """Return which files hold which of the texts, in UTF-8."""
    wanted = texts or (CANARY,)
    found = {path.name: [one for one in wanted if one.encode() in path.read_bytes()] for path in files_of(folder)}
    return {name: one for name, one in found.items() if one}


def files_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


async def stored(database: Database) -> Mapping[str, list[bytes]]:
    """Return every sealed value that is left, by its table."""

    def work(connection: sa.Connection) -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        for table in metadata.sorted_tables:
            for row in connection.execute(sa.select(table)):
                values = [bytes(one) for one in row if isinstance(one, bytes | memoryview)]
                found.setdefault(table.name, []).extend(one for one in values if one)
        return found

    return await database.read(work)


async def written(stores: Stores, kind: str) -> None:
    """Receive a message with canaries, of a kind."""
    if kind == "text":
        await stores.say(f"my password is {CANARY}")
    elif kind == "passed on":
        await stores.say("", passed_on=f"look: {CANARY}")
    elif kind == "file":
        named = Media("m1", "document", "text/plain", name=f"{CANARY}.txt")
        words = f"the key of {CANARY}"
        await stores.receive(Received(person(), Kind.MEDIA, words, stores.now_us, "wamid.f", media=named))
    elif kind == "edit":
        await stores.say("no")
        await stores.say(f"I mean {CANARY}", kind=Kind.EDIT, refers_to="wamid.1")
    elif kind == "button":
        await stores.say(CANARY, kind=Kind.QUICK_REPLY, option="news")


@pytest.mark.parametrize("kind", ["text", "passed on", "file", "edit", "button"])
async def test_what_a_person_writes_is_sealed_until_it_is_given_and_then_empty(
    stores: Stores, tmp_path: Path, kind: str
) -> None:
    await written(stores, kind)
    assert in_clear(tmp_path) == {}
    assert (await stored(stores.database))["messages"], "it is there to be given"
    conversation_id = await stores.conversation()
    await stores.turns.claim(conversation_id, stores.now_us)
    turn = await stores.turns.next(conversation_id, stores.now_us)
    assert turn is not None
    assert CANARY in f"{turn.text}{turn.passed_on}{turn.media}"
    left = await stored(stores.database)
    assert (left["messages"], left.get("media", [])) == ([], []), "the turn has it"
    assert await stores.rows("SELECT * FROM media") == []
    assert in_clear(tmp_path) == {}
    again = await stores.turns.next(conversation_id, stores.now_us)
    assert again == turn, "whoever asks again asks for the same"
    await stores.turns.given(conversation_id, turn, TurnState.GIVEN, stores.now_us)
    assert (await stored(stores.database))["turns"] == []
    assert in_clear(tmp_path) == {}


@pytest.mark.parametrize("state", ["human", "withdrawn", "noted", "echoed", "refused"])
async def test_what_the_agent_does_not_get_is_not_kept(stores: Stores, tmp_path: Path, state: str) -> None:
    if state == "human":
        await stores.say("hola")
        until_us = stores.now_us + 10**9
        held = sa.text("UPDATE conversations SET human_until_us = :until")
        await stores.database.write(lambda connection: connection.execute(held, {"until": until_us}))
        await stores.turn()
        await stores.say(CANARY)
    elif state == "withdrawn":
        await stores.say(CANARY)
        await stores.say("", kind=Kind.REVOKE, refers_to="wamid.1")
    elif state == "noted":
        await stores.say(CANARY, kind=Kind.STICKER)
    elif state == "echoed":
        await stores.say(CANARY)
        await stores.receive(Echoed(person()))
    else:
        await stores.say(CANARY)
        conversation_id = await stores.conversation()
        await stores.turns.claim(conversation_id, stores.now_us)
        turn = await stores.turns.next(conversation_id, stores.now_us)
        assert turn is not None
        await stores.turns.given(conversation_id, turn, TurnState.REFUSED, stores.now_us, [Outgoing("no")])
    left = await stored(stores.database)
    assert (left["messages"], left.get("turns", [])) == ([], [])
    assert in_clear(tmp_path) == {}


async def test_a_webhook_that_comes_again_after_its_text_was_emptied_does_nothing(stores: Stores) -> None:
    inbox = Inbox(stores.database, InboxRules(0, 0, "es"))
    message = Received(person(), Kind.TEXT, CANARY, stores.now_us, "wamid.1")
    element = Element(ACCOUNT, "wamid.1", message)
    assert await inbox.receive(stores.channel, [element], stores.now_us) == 1
    assert (await stores.turn()) is not None
    for _ in range(2):
        assert await inbox.receive(stores.channel, [element], stores.now_us) == 0
    assert await stores.turn() is None
    assert await texts_of(stores.database) == [""]
    assert len(await stores.rows("SELECT * FROM turns")) == 1


async def test_of_an_element_that_is_not_served_only_its_id_and_kind_are_kept(stores: Stores, tmp_path: Path) -> None:
    await stores.receive(Kept("group"))
    assert await stores.rows("SELECT element_id, kind FROM inbox") == [("element 1", "kept:group")]
    assert "body" not in metadata.tables["inbox"].c


async def test_what_a_person_is_told_is_sealed_until_it_is_delivered_and_its_card_still_answers(
    stores: Stores, tmp_path: Path
) -> None:
    await stores.say("hola")
    await stores.turn()
    await stores.told(card(text=f"May I write {CANARY}?"))
    wamid = await stores.send()
    assert in_clear(tmp_path) == {}
    await stores.status(Status(wamid, Delivery.SENT))
    sealed = (await stored(stores.database))["outbox"]
    await stores.status(Status(wamid, Delivery.DELIVERED))
    [left] = (await stored(stores.database))["outbox"]
    assert left not in sealed
    assert len(left) < len(sealed[0])
    await stores.status(Status(wamid, Delivery.READ))
    assert (await stored(stores.database))["outbox"] == [left]
    stores.seconds = 100
    await stores.say("sí")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.args_hash, turn.approve) == ("ap_1", "hash of ap_1", True)
    stores.seconds = 200
    [(outbox_id,)] = await stores.rows("SELECT outbox_id FROM outbox")
    await stores.say("No", kind=Kind.CHOICE, option=f"{outbox_id}.1")
    pressed = await stores.turn()
    assert pressed is not None
    assert (pressed.approval_id, pressed.approve) == ("ap_1", False)
    await stores.say("/approve", at=201)
    typed = await stores.turn()
    assert typed is not None
    assert typed.approval_id == "", "the card was answered, as its turn still knows"


@pytest.mark.parametrize("numbered", [True, False])
async def test_a_number_is_typed_for_what_was_delivered_if_its_numbers_were_shown(
    stores: Stores, numbered: bool
) -> None:
    await stores.say("hola")
    await stores.turn()
    asked = Outgoing(f"Where? {CANARY}", (Option("Norte", {"say": "norte"}), Option("Sur", {"say": "sur"})))
    await stores.told(asked.with_lines() if numbered else asked)
    await stores.status(Status(await stores.send(), Delivery.READ))
    stores.seconds = 100
    await stores.say("2")
    turn = await stores.turn()
    assert turn is not None
    assert turn.text == ("sur" if numbered else "2")


@pytest.mark.parametrize(
    ("code", "seconds", "state"), [("131026", 60, "failed"), ("131047", 60, "pending"), ("131047", 2 * DAY, "failed")]
)
async def test_a_message_that_failed_later_is_sent_again_only_while_its_text_is_kept(
    stores: Stores, tmp_path: Path, code: str, seconds: int, state: str
) -> None:
    await stores.say("hola")
    await stores.turn()
    await stores.told(Outgoing(f"a reply {CANARY}"))
    wamid = await stores.send()
    stores.seconds = seconds
    await stores.outbox.empty_untold(stores.now_us)
    await stores.status(Status(wamid, Delivery.SENT, code))
    assert await stores.states() == [state]
    assert bool((await stored(stores.database))["outbox"]) == (state == "pending")


async def test_what_is_silenced_is_empty_at_once(stores: Stores) -> None:
    await stores.say("hola")
    await stores.turn()
    await stores.told(Outgoing(CANARY))
    threads = Threads(stores.database)
    said = [("event:more", [Outgoing(CANARY)])]
    await threads.told(await stores.conversation(), 9, said, stores.now_us, claimed=True)
    assert await stores.states() == ["silenced", "silenced"]
    assert (await stored(stores.database))["outbox"] == []


async def test_a_text_that_was_altered_is_told_to_nobody_and_stops_nothing(stores: Stores) -> None:
    await stores.say("hola")
    await stores.turn()
    await stores.told(Outgoing("one"))
    await stores.told(Outgoing("two"))
    await stores.say("uno")
    broken = sa.text("UPDATE outbox SET body = :body WHERE position = (SELECT min(position) FROM outbox)")
    await stores.database.write(lambda connection: connection.execute(broken, {"body": SEALED + b"x" * 60}))
    assert await stores.claim() is None
    assert await stores.states() == ["failed", "pending"]
    parcel = await stores.claim()
    assert parcel is not None
    assert parcel.message.text == "two"
    conversation_id = await stores.conversation()
    await stores.turns.claim(conversation_id, stores.now_us)
    assert await stores.turns.next(conversation_id, stores.now_us) is not None
    moved = sa.text("UPDATE turns SET body = :body WHERE state = 'open'")
    await stores.database.write(lambda connection: connection.execute(moved, {"body": SEALED + b"x" * 60}))
    assert await stores.turns.next(conversation_id, stores.now_us) is None


# -- before -----------------------------------------------------------------------------------------------------------


def fill_in_clear(database: Database) -> None:
    """Write rows as a gateway of revision 0007 did."""

    def work(connection: sa.Connection) -> None:
        connection.execute(
            sa.text("INSERT INTO users (user_id, channel, create_us, seen_us) VALUES ('usr_1', 'whatsapp', 1, 1)")
        )
        connection.execute(
            sa.text(
                "INSERT INTO conversations (conversation_id, user_id, channel, account, language, last_position,"
                " last_inbound_us, work_us, turn_owner, turn_until_us, event_after, check_us, human_until_us, pair_us,"
                " template_us, opted_out) VALUES ('cnv_1', 'usr_1', 'whatsapp', '1', 'es', 9, :now, 0, '', 0, 0, 0, 0,"
                " 0, 0, :no)"
            ),
            {"now": START_US, "no": False},
        )
        connection.execute(
            sa.text(
                "INSERT INTO identities (channel, kind, value, user_id, current) VALUES ('whatsapp', 'bsuid', 'ES.1',"
                " 'usr_1', :yes)"
            ),
            {"yes": True},
        )
        for place, state in enumerate(("waiting", "given", "human", "withdrawn", "noted"), 1):
            connection.execute(
                sa.text(
                    "INSERT INTO messages (message_id, conversation_id, position, external_id, kind, text, option,"
                    " sent_us, receive_us, state, passed_on) VALUES (:id, 'cnv_1', :place, :id, 'media', :text, '',"
                    " :now, :now, :state, :others)"
                ),
                {
                    "id": f"msg_{place}",
                    "place": place,
                    "text": f"{CANARY} {state}".encode(),
                    "others": f"{CANARY} passed on".encode(),
                    "now": START_US,
                    "state": state,
                },
            )
            connection.execute(
                sa.text(
                    "INSERT INTO media (media_id, message_id, reference, kind, mime, sha256, name, create_us)"
                    " VALUES (:id, :message, 'm', 'document', 'text/plain', '', :name, :now)"
                ),
                {"id": f"med_{place}", "message": f"msg_{place}", "name": f"{CANARY}.txt", "now": START_US},
            )
        body = {"text": CANARY, "shown": [], "approval_id": "", "passed_on": ""}
        for place, state in enumerate(("given", "refused")):
            connection.execute(
                sa.text(
                    "INSERT INTO turns (turn_id, conversation_id, body, state, tries, create_us) VALUES"
                    " (:id, 'cnv_1', :body, :state, 1, :now)"
                ),
                {
                    "id": f"gw-{place}",
                    "body": json.dumps(body | {"approval_id": f"ap_{place}"}).encode(),
                    "state": state,
                    "now": START_US,
                },
            )
        sent = card(text=CANARY).stored()
        for place, (state, delivery) in enumerate(
            (("sent", 3), ("sent", 1), ("failed", 0), ("silenced", 0), ("pending", 0), ("window", 0)), 1
        ):
            connection.execute(
                sa.text(
                    "INSERT INTO outbox (outbox_id, conversation_id, position, source, body, state, tries, next_us,"
                    " external_id, delivery, error_code, create_us, sent_us) VALUES (:id, 'cnv_1', :place, :id, :body,"
                    " :state, 1, :now, :id, :delivery, '', :now, :now)"
                ),
                {
                    "id": f"out_{place}",
                    "place": place,
                    "body": json.dumps(sent).encode(),
                    "state": state,
                    "now": START_US,
                    "delivery": delivery,
                },
            )
        connection.execute(
            sa.text(
                "INSERT INTO inbox (channel, account, element_id, kind, body, receive_us) VALUES ('whatsapp', '1',"
                " 'wamid.1', 'received', :body, 1)"
            ),
            {"body": f'{{"text": "{CANARY}"}}'.encode()},
        )
        connection.execute(
            sa.text(
                "INSERT INTO backlog (webhook_id, channel, body, done, receive_us, until_us) VALUES ('w', 'whatsapp',"
                " :body, 0, 1, :never)"
            ),
            {"body": CANARY.encode(), "never": 2**62},
        )

    database.write_sync(work)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Return a database of a gateway that stored texts in clear."""
    if request.param == "postgres":
        url = postgres.create_database(request.getfixturevalue("postgres_url"), "texts_in_clear")
    else:
        url = f"sqlite:///{tmp_path}/gateway.db"
    database = Database(url, options=Sealer.from_file(tmp_path, None).options)
    _upgrade(database, "0007")
    fill_in_clear(database)
    if request.param == "postgres":
        database.migrate("phylactery_gateway")
    yield database
    database.close()


async def test_texts_of_before_are_sealed_or_emptied_at_the_start_and_the_log_says_so(
    old: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        await asyncio.to_thread(prepare_database, old)
    told = capsys.readouterr()
    assert f"{told.out}{told.err}".count("texts that were stored in clear are sealed or emptied now") == 1
    left = await stored(old)
    assert {name: len(found) for name, found in left.items() if found} == {
        "messages": 2,  # the text that waits, and what was passed on with it
        "outbox": 6,  # of three, what their buttons do
        "backlog": 1,
    }
    assert all(one.startswith(SEALED) for found in left.values() for one in found)
    stores = Stores(old, whatsapp())
    rows = await stores.rows("SELECT turn_id, approval_id FROM turns ORDER BY turn_id")
    assert rows == [("gw-0", "ap_0"), ("gw-1", "ap_1")]
    await stores.turns.claim("cnv_1", START_US)
    turn = await stores.turns.next("cnv_1", START_US)
    assert turn is not None
    assert (turn.text, turn.passed_on, turn.media[0].name) == (
        f"{CANARY} waiting",
        f"{CANARY} passed on",
        f"{CANARY}.txt",
    )
    parcel = await stores.outbox.claim("out_5", {"whatsapp": stores.channel}, START_US)
    assert parcel is not None
    assert parcel.message.text == CANARY
    if not old.dialect.is_server:
        await Housekeeping(old, stores.outbox, FakeClock(), 30).tidy()
        assert in_clear(tmp_path) == {}, "not in free pages, nor in the log"


# -- the key ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["lost", "another", "short", "exposed", "unnamed"])
async def test_with_another_key_the_gateway_does_not_start_and_says_what_to_do(tmp_path: Path, change: str) -> None:
    async with open_stores(tmp_path) as stores:
        await stores.say(CANARY)
    key, named, wanted = tmp_path / KEY_FILE, None, "forget-sealed"
    if change == "lost":
        key.unlink()
    elif change == "another":
        key.write_bytes(bytes(32))
    elif change == "short":
        key.write_bytes(b"short")
        wanted = "restore it from a backup"
    elif change == "exposed":
        key.chmod(0o644)
        wanted = "chmod 600"
    else:
        named, wanted = tmp_path / "nowhere", "GATEWAY_SEAL_KEY_FILE"
    with pytest.raises(StartError, match=wanted):
        _open(tmp_path, named)


def _open(folder: Path, named: Path | None) -> None:
    database = Database(f"sqlite:///{folder}/gateway.db", options=Sealer.from_file(folder, named).options)
    try:
        note_key(database)
    finally:
        database.close()


@pytest.mark.slow
async def test_what_a_lost_key_sealed_is_given_up_by_a_command_and_the_next_start_takes_a_new_key(
    tmp_path: Path,
) -> None:
    async with open_stores(tmp_path) as stores:
        await stores.say("hola")
        await stores.turn()
        await stores.told(Outgoing("one"))
        await stores.say(CANARY)
    (tmp_path / KEY_FILE).unlink()
    environment = {**os.environ, "GATEWAY_DATA_DIR": str(tmp_path)}
    done = await asyncio.to_thread(commands.run, "phylactery_gateway", "forget-sealed", environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 messages that were not delivered yet are given up" in done.stdout
    async with open_stores(tmp_path) as stores:
        assert await stores.states() == ["failed"]
        assert await stores.turn() is None
        stores.numbers = 100
        await stores.say("again")
        stores.seconds = 1
        assert (await stores.turn()) is not None


# -- files and processes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [None, 0o644, 0o666])
async def test_nobody_else_may_read_the_database_its_log_and_its_key(tmp_path: Path, before: int | None) -> None:
    if before is not None:
        async with open_stores(tmp_path):
            pass
        (tmp_path / "gateway.db").chmod(before)
    async with open_stores(tmp_path) as stores:
        await stores.say(CANARY)
        assert {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in files_of(tmp_path)} == dict.fromkeys(
            ("gateway.db", "gateway.db-shm", "gateway.db-wal", KEY_FILE), "0o600"
        )


@pytest.mark.slow
@pytest.mark.parametrize("point", ["received", "turn", "accepted", "recorded"])
async def test_a_gateway_killed_at_any_write_leaves_no_text_in_clear_and_none_after_it_is_given(
    tmp_path: Path, point: str
) -> None:
    async with open_system(tmp_path) as system, one_gateway(tmp_path, system.target("agent")) as (process, graph):
        await process.start(f"gateway.{point}")
        phone = Phone(graph)
        payload = phone.webhook({"type": "text", "text": {"body": f"my dog is {CANARY}"}}, wamid="wamid.k")
        with suppress(httpx.HTTPError):
            await graph.post(payload)
        await process.died()
        assert in_clear(tmp_path / "gateway") == {}
        await process.start()
        for _ in range(2):
            assert await graph.post(payload) == 200
        await until(lambda: phone.inbox, "a reply")

        def rows(query: str) -> list[tuple[Any, ...]]:
            with closing(sqlite3.connect(tmp_path / "gateway" / "gateway.db")) as database:
                return database.execute(query).fetchall()

        await until(lambda: rows("SELECT body FROM turns") == [(b"",)], "the turn to be emptied")
        assert rows("SELECT text FROM messages") == [(b"",)]
        assert in_clear(tmp_path / "gateway") == {}
        assert len(phone.inbox) == 1


@pytest.mark.slow
async def test_on_postgresql_nothing_is_in_clear_either(tmp_path: Path, postgres_url: str) -> None:
    url = postgres.create_database(postgres_url, "kept_texts")
    database = Database(url, options=Sealer(bytes(32)).options)
    await asyncio.to_thread(database.migrate, "phylactery_gateway")
    await asyncio.to_thread(prepare_database, database)
    stores = Stores(database, whatsapp())
    await written(stores, "file")
    [(conversation_id,)] = await stores.rows("SELECT conversation_id FROM conversations")
    assert all(one.startswith(SEALED) for found in (await stored(database)).values() for one in found)
    await stores.turns.claim(conversation_id, stores.now_us)
    turn = await stores.turns.next(conversation_id, stores.now_us)
    assert turn is not None
    assert turn.media[0].name == f"{CANARY}.txt"
    await stores.turns.given(conversation_id, turn, TurnState.GIVEN, stores.now_us)
    assert not any((await stored(database)).values())
    other = Database(url, options=Sealer(b"x" * 32).options)
    with pytest.raises(StartError, match="all gateways over one database share"):
        await asyncio.to_thread(note_key, other)
    await asyncio.to_thread(other.close)
    await asyncio.to_thread(database.close)
