"""Who has a phone number: one person in every spelling of it, and another once it was not seen for 90 days."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.migrations import _config
from phylactery_chassis.errors import InvalidArgument, NotFound
from phylactery_gateway.channels.messages import Echoed, Identity, Outgoing, Renamed, Sender
from phylactery_gateway.channels.phones import normal
from phylactery_gateway.channels.port import SECOND_US
from phylactery_gateway.store import lifts, people
from phylactery_gateway.store.erasure import erase
from phylactery_gateway.store.sealing import Sealer

from tests.support.cases import each_case
from tests.support.gateway.stores import DAY, START_US, Stores, open_stores, whatsapp
from tests.support.servers import postgres


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(tmp_path) as opened:
        yield opened


SAME = (
    ("5215512345678", "525512345678", "+52 1 55 1234 5678", "0052 55 1234 5678", "+52 (55) 1234-5678"),
    ("5213312345678", "+52 33 1234 5678"),
    ("5491123456789", "541123456789", "+54 9 11 2345-6789", "+54 11 15 2345 6789"),
    ("5493512345678", "+54 351 234-5678"),
    ("5521987654321", "552187654321", "+55 (21) 98765-4321", "+55 21 8765 4321"),
    (
        "34600000001",
        "+34 600 000 001",
        "0034600000001",
        "+34-600-00-00-01",
        "\u202a+34\u00a0600 000001\u202c",
    ),
    ("390612345678", "+39 06 1234 5678", "0039 06 12345678"),
    ("442071234567", "+44 (0)20 7123 4567", "+44 20 7123 4567"),
    ("4915112345678", "+49 (0) 151 12345678"),
    ("12015550123", "+1 (201) 555-0123", "001 201 555 0123"),
    ("22912345678", "+229 12 34 56 78"),
)
OTHERS = (
    ("525512345678", "525512345679"),
    ("552132345678", "5521932345678"),  # eight digits that begin with 3 are a landline's
    ("390612345678", "39612345678"),
    ("22997123456", "2290197123456"),  # whether a renumbering kept the holder is not guessed
    ("34600000001", "33600000001"),
    ("5215512345678", "15512345678"),
)


@pytest.mark.parametrize("spellings", SAME, ids=lambda one: one[0])
def test_every_spelling_of_a_number_has_one_form(spellings: tuple[str, ...]) -> None:
    forms = {normal(one) for one in spellings}
    assert len(forms) == 1
    [form] = forms
    assert form is not None
    assert normal(form) == form, "it is its own form"


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_two_numbers_have_two_forms(one: str, other: str) -> None:
    assert normal(one) != normal(other)


@each_case(
    "text",
    ["", "Ana", "ES.100", "600", "+", "0600000001", "034600000001", "wa:usr_1", "12 ab 34567", "１２３４５６７８"],
)
def test_what_is_no_number_has_no_form(text: str) -> None:
    assert normal(text) is None


def number(spelled: str, bsuid: str = "") -> Sender:
    names = (("bsuid", bsuid), ("phone", spelled))
    return Sender(tuple(Identity(kind, value) for kind, value in names if value))


def moved(before: str, after: str, changed_us: int = 0) -> Renamed:
    return Renamed((Identity("phone", before),), (Identity("phone", after),), changed_us)


async def users(stores: Stores) -> int:
    return len(await stores.rows("SELECT user_id FROM users"))


async def test_a_person_is_one_in_whatever_spelling_they_write_and_is_written_to_in_the_newest(stores: Stores) -> None:
    for spelled in ("5215512345678", "525512345678", "+52 1 55 1234 5678"):
        await stores.say("hola", sender=number(spelled))
    assert (await users(stores), len(await stores.rows("SELECT * FROM conversations"))) == (1, 1)
    assert await stores.rows("SELECT renamed FROM users") == [(0,)], "a spelling is no change, so no lift ends"
    await stores.told(Outgoing("buenas"))
    parcel = await stores.claim()
    assert parcel is not None
    assert parcel.address.identities == {"phone": "+52 1 55 1234 5678"}


@pytest.mark.parametrize("spellings", SAME[:6], ids=lambda one: one[0])
@pytest.mark.parametrize("bsuid", ["", "MX.1"])
async def test_a_colleague_who_answers_by_phone_silences_the_agent(
    stores: Stores, spellings: tuple[str, ...], bsuid: str
) -> None:
    await stores.say("hola", sender=number(spellings[0], bsuid))
    for spelled in spellings[1:]:
        await stores.told(Outgoing("from the agent"))
        await stores.receive(Echoed(number(spelled)))
        stores.seconds += 3_700  # its hour is over
    assert set(await stores.states()) == {"silenced"}
    assert await users(stores) == 1
    await stores.receive(Echoed(number(spellings[-1])))
    await stores.say("gracias", sender=number(spellings[0], bsuid))
    assert (await stores.rows("SELECT state FROM messages ORDER BY position DESC"))[0] == ("human",)


async def test_an_echo_to_nobody_makes_nobody_and_the_agent_does_not_answer_over_it(stores: Stores) -> None:
    await stores.receive(Echoed(number("5491123456789")))
    assert (await users(stores), await stores.rows("SELECT * FROM identities")) == (0, [])
    await stores.say("gracias", sender=number("541123456789"))
    await stores.say("hola", sender=number("34600000001"))
    states = (
        "SELECT m.state FROM messages m JOIN conversations c ON c.conversation_id = m.conversation_id ORDER BY m.rowid"
    )
    assert await stores.rows(states) == [("human",), ("waiting",)]
    stores.seconds += 3_601
    await stores.say("otra cosa", sender=number("541123456789"))
    assert (await stores.rows(states))[-1] == ("waiting",)


async def test_what_was_written_by_hand_to_somebody_nobody_knows_is_erased(stores: Stores) -> None:
    await stores.receive(Echoed(number("5491123456789")))
    done = await erase(stores.database, "whatsapp", "+54 11 2345 6789", stores.now_us)
    assert done.subjects == ()
    assert await stores.rows("SELECT * FROM echoes") == []
    with pytest.raises(NotFound):
        await erase(stores.database, "whatsapp", "+54 11 2345 6789", stores.now_us)


@pytest.mark.parametrize("spellings", SAME, ids=lambda one: one[0])
async def test_an_operator_names_a_person_in_any_spelling(stores: Stores, spellings: tuple[str, ...]) -> None:
    await stores.say("hola", sender=number(spellings[0]))
    [(subject,)] = await stores.rows("SELECT 'wa:' || user_id FROM users")
    for spelled in spellings:
        identity = lifts.identity_of("whatsapp", spelled)
        assert await lifts.to_lift(stores.database, identity, "whatsapp", stores.now_us) == (subject, 0)
        assert await lifts.subjects_of(stores.database, identity, "whatsapp") == [subject]
    known = await lifts.known_as(stores.database, subject)
    assert known is not None
    assert known.identities == {"phone": spellings[0]}, "as the channel writes it, which is how they are reached"
    done = await erase(stores.database, "whatsapp", spellings[-1], stores.now_us)
    assert done.subjects == (subject,)
    assert await users(stores) == 0


@pytest.mark.parametrize("spelled", ["600 000 001", "34.600.000.001", "(34) 600000001"])
def test_a_number_spelled_as_at_home_is_nobodys_to_an_operator(spelled: str) -> None:
    with pytest.raises(InvalidArgument, match="with its country"):
        lifts.identity_of("whatsapp", spelled)


async def test_a_number_not_seen_for_90_days_is_a_new_persons(stores: Stores) -> None:
    await stores.say("hola", sender=number("34600000001"))
    stores.seconds += 89 * DAY
    await stores.say("sigo aquí", sender=number("34600000001"))
    assert await users(stores) == 1
    stores.seconds += 91 * DAY
    await stores.told(Outgoing("a reminder of the old one"))
    await stores.say("hola", sender=number("+34 600 000 001"))
    assert (await users(stores), len(await stores.rows("SELECT * FROM conversations"))) == (2, 2)
    await stores.say("otra", sender=number("34600000001"))
    assert await users(stores) == 2
    parcel = await stores.claim()
    assert parcel is None or parcel.address.identities == {}, "what was for the old one reaches nobody"


async def test_the_old_one_is_erased_by_the_number_and_a_lift_of_theirs_is_revoked(stores: Stores) -> None:
    await stores.say("hola", sender=number("34600000001"))
    [(old,)] = await stores.rows("SELECT 'wa:' || user_id FROM users")
    stores.seconds += 91 * DAY
    await stores.say("hola", sender=number("34600000001"))
    identity = lifts.identity_of("whatsapp", "34600000001")
    assert old in await lifts.subjects_of(stores.database, identity, "whatsapp")
    assert (await lifts.to_lift(stores.database, identity, "whatsapp", stores.now_us))[0] != old
    known = await lifts.known_as(stores.database, old)
    assert known is not None
    assert known.left
    done = await erase(stores.database, "whatsapp", "34600000001", stores.now_us)
    assert old in done.subjects
    for table in ("users", "identities", "former", "conversations", "messages"):
        assert await stores.rows(f"SELECT * FROM {table}") == []


async def test_who_has_an_id_of_the_channels_own_is_the_same_person_after_any_time(stores: Stores) -> None:
    await stores.say("hola", sender=number("34600000001", "ES.1"))
    stores.seconds += 400 * DAY
    await stores.say("hola", sender=number("34600000001", "ES.1"))
    assert await users(stores) == 1
    stores.seconds += 91 * DAY
    await stores.say("hola", sender=number("34600000001"))  # the number alone tells nothing now
    assert await users(stores) == 2
    await stores.say("hola", sender=Sender((Identity("bsuid", "ES.1"),)))
    assert await users(stores) == 2
    done = await erase(stores.database, "whatsapp", "34600000001", stores.now_us)
    assert len(done.subjects) == 1, "whoever is known by another id is not erased by a number that is another's"


@pytest.mark.parametrize("bsuid", ["", "ES.9"])
async def test_neither_an_echo_nor_a_changed_number_nor_an_id_brings_back_who_was_away(
    stores: Stores, bsuid: str
) -> None:
    await stores.say("hola", sender=number("34600000001"))
    [(old,)] = await stores.rows("SELECT user_id FROM users")
    stores.seconds += 91 * DAY
    await stores.receive(
        Renamed((Identity("phone", "34600000001"),), (Identity("phone", "34600000002"),), stores.now_us)
    )
    await stores.receive(Echoed(number("34600000001")))
    await stores.say("hola", sender=number("34600000001", bsuid))
    await stores.say("hola", sender=number("34600000002"))
    rows = await stores.rows("SELECT DISTINCT c.user_id FROM messages m JOIN conversations c USING (conversation_id)")
    assert len(rows) == 3
    identities = await stores.rows(f"SELECT * FROM identities WHERE user_id = '{old}'")
    assert identities == []


async def test_a_window_that_the_channel_calls_closed_is_no_absence(stores: Stores) -> None:
    await stores.say("hola", sender=number("34600000001"))
    closed = sa.text("UPDATE conversations SET last_inbound_us = 0")
    await stores.database.write(lambda connection: connection.execute(closed).close())
    stores.seconds += DAY
    await stores.say("hola", sender=number("34600000001"))
    assert await users(stores) == 1


async def test_a_changed_number_goes_on_in_the_same_conversation(stores: Stores) -> None:
    await stores.say("uno", sender=number("5215512345678"))
    await stores.receive(moved("525512345678", "+34 600 000 009", stores.now_us))
    await stores.say("dos", sender=number("34600000009"))
    assert (await users(stores), len(await stores.rows("SELECT * FROM conversations"))) == (1, 1)
    assert await stores.rows("SELECT renamed FROM users") == [(1,)], "a lift was for the number of then"
    await stores.say("somebody else has the old one", sender=number("525512345678"))
    assert await users(stores) == 2


async def test_a_change_to_another_spelling_is_none(stores: Stores) -> None:
    await stores.say("uno", sender=number("5215512345678"))
    await stores.receive(moved("5215512345678", "525512345678", stores.now_us))
    await stores.say("dos", sender=number("525512345678"))
    assert await stores.rows("SELECT renamed FROM users") == [(0,)]
    assert await users(stores) == 1


async def test_a_message_that_overtakes_the_news_of_its_number_is_the_same_persons(stores: Stores) -> None:
    await stores.say("uno", sender=number("34600000001"))
    stores.seconds = 2 * DAY
    changed_us = stores.now_us
    stores.seconds += 5
    await stores.say("dos", sender=number("34600000002"))
    await stores.receive(moved("34600000001", "34600000002", changed_us))
    await stores.say("tres", sender=number("34600000002"))
    rows = await stores.rows("SELECT conversation_id FROM messages ORDER BY rowid")
    assert rows[0] == rows[2] != rows[1]
    reached = [
        await stores.database.read(lambda connection, one=row[0]: people.identities_of(connection, one))
        for row in await stores.rows("SELECT user_id FROM users")
    ]
    assert reached == [{"phone": "34600000002"}] * 2, "a reply in either conversation reaches the person"


async def test_who_had_a_number_before_it_was_given_to_another_is_not_that_other(stores: Stores) -> None:
    await stores.say("uno", sender=number("34600000001"))
    await stores.say("Eve, who gives the number up", sender=number("34600000002"))
    [_, (eve,)] = await stores.rows("SELECT user_id FROM users ORDER BY rowid")
    stores.seconds = 2 * DAY
    await stores.receive(moved("34600000001", "34600000002", stores.now_us))
    assert await stores.rows("SELECT user_id FROM users WHERE merged_into <> ''") == []
    assert await stores.database.read(lambda connection: people.identities_of(connection, eve)) == {}
    done = await erase(stores.database, "whatsapp", "34600000002", stores.now_us)
    assert len(done.subjects) == 2, "she can still be erased"


@pytest.mark.slow
async def test_two_gateways_at_once_know_one_person(tmp_path: Path, postgres_url: str) -> None:
    url = postgres.create_database(postgres_url, "one_person")
    databases = [Database(url, options=Sealer(bytes(32)).options) for _ in range(2)]
    await asyncio.to_thread(databases[0].migrate, "phylactery_gateway")
    async with open_stores(tmp_path) as stores:
        gateways = [Stores(one, stores.channel, numbers=1_000 * place) for place, one in enumerate(databases)]
        spellings = ("5215512345678", "525512345678", "+52 1 55 1234 5678", "0052 55 1234 5678")

        async def written(gateway: Stores) -> None:
            for _ in range(4):
                for spelled in spellings:
                    await gateway.say("hola", sender=number(spelled))

        for day in (0, 91, 182):
            for gateway in gateways:
                gateway.seconds = day * DAY
            await asyncio.gather(*(written(one) for one in gateways))
            assert await users(gateways[0]) == 1 + day // 91
        assert len(await gateways[0].rows("SELECT * FROM identities")) == 1
        done = await erase(databases[0], "whatsapp", "525512345678", gateways[0].now_us)
        assert len(done.subjects) == 3
    for one in databases:
        await asyncio.to_thread(one.close)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Return an empty database as it was before numbers had one form."""
    if request.param == "postgres":
        url = postgres.create_database(request.getfixturevalue("postgres_url"), "old_numbers")
    else:
        url = f"sqlite:///{tmp_path}/gateway.db"
    database = Database(url)
    _upgrade(database, "0004")
    return database


def _upgrade(database: Database, revision: str) -> None:
    """Bring a database to a revision."""
    with as_file(files("phylactery_gateway") / "migrations" / "versions") as versions:
        config = _config(versions)
        with database._engine.begin() as connection:
            config.attributes.update(connection=connection, version_table="phylactery_gateway_version")
            command.upgrade(config, revision)


NEVER = 2**62


def _fill(database: Database, *people: tuple[str, str, str, float, float]) -> None:
    """Write people as they were: id, phone, business-scoped id, days since they wrote, hours a colleague keeps them."""

    def work(connection: sa.Connection) -> None:
        def put(table: str, **values: Any) -> None:
            names = ", ".join(values)
            marks = ", ".join(f":{one}" for one in values)
            connection.execute(sa.text(f"INSERT INTO {table} ({names}) VALUES ({marks})"), values)

        for user_id, phone, bsuid, days, hours in people:
            seen_us = START_US - round(days * DAY * SECOND_US) if days >= 0 else 0
            put("users", user_id=user_id, channel="whatsapp", create_us=seen_us or START_US)
            for kind, value in (("phone", phone), ("bsuid", bsuid)):
                if value:
                    put("identities", channel="whatsapp", kind=kind, value=value, user_id=user_id, current=True)
            whole = dict.fromkeys(("last_position", "turn_until_us", "event_after", "pair_us", "template_us"), 0)
            put(
                "conversations",
                conversation_id=f"cnv_{user_id}",
                user_id=user_id,
                channel="whatsapp",
                account="1",
                language="es",
                last_inbound_us=seen_us,
                work_us=NEVER,
                turn_owner="",
                check_us=NEVER,
                human_until_us=START_US + round(hours * 3_600 * SECOND_US),
                opted_out=False,
                **whole,
            )

    database.write_sync(work)


async def test_people_of_two_spellings_become_one_and_their_conversation_goes_on(old: Database) -> None:
    _fill(
        old,
        ("usr_a", "5215512345678", "MX.1", 2, 0),
        ("usr_echo", "525512345678", "", -1, 5),  # made by an echo: never wrote
        ("usr_b", "5491123456789", "", 1, 0),
        ("usr_older", "541123456789", "", 40, 0),
        ("usr_now", "552187654321", "", 1, 0),
        ("usr_long_ago", "5521987654321", "", 200, 0),
        ("usr_alone", "34600000001", "", 300, 0),
    )
    _upgrade(old, "head")
    whole = await old.read(lambda c: dict(c.execute(sa.text("SELECT user_id, merged_into FROM users")).all()))
    assert whole == {
        **dict.fromkeys(("usr_a", "usr_b", "usr_now", "usr_long_ago", "usr_alone"), ""),
        "usr_echo": "usr_a",
        "usr_older": "usr_b",
    }

    def found(spelled: str) -> Any:
        return old.read(lambda c: people.find(c, "whatsapp", (Identity("phone", spelled),), START_US))

    for spelled, user_id in (
        ("525512345678", "usr_a"),
        ("5215512345678", "usr_a"),
        ("541123456789", "usr_b"),
        ("5521987654321", "usr_now"),
        ("+34 600 000 001", None),
    ):
        assert await found(spelled) == user_id, spelled
    reached = await old.read(lambda c: [people.identities_of(c, one) for one in ("usr_a", "usr_echo", "usr_now")])
    assert reached == [
        {"phone": "5215512345678", "bsuid": "MX.1"},
        {"phone": "5215512345678", "bsuid": "MX.1"},
        {"phone": "552187654321"},
    ]
    kept = "SELECT human_until_us FROM conversations WHERE user_id = 'usr_a'"
    until = await old.read(lambda c: c.execute(sa.text(kept)).scalar())
    assert until == START_US + 5 * 3_600 * SECOND_US, "a colleague who answered keeps the conversation"
    stores = Stores(old, whatsapp())
    await stores.say("sigo aquí", sender=number("525512345678"))
    assert await stores.rows("SELECT conversation_id FROM messages") == [("cnv_usr_a",)]
    for spelled, count in (
        ("5215512345678", 2),
        ("+54 9 11 2345-6789", 2),
        ("+55 21 8765-4321", 2),
        ("34600000001", 1),
    ):
        done = await erase(old, "whatsapp", spelled, START_US)
        assert len(done.subjects) == count, spelled
    old.close()


CHATS = (("4402079460", "442079460"), ("5215512345678", "525512345678"), ("3490612345678", "003490612345678"))


@pytest.mark.parametrize("chats", CHATS, ids=lambda one: one[0])
async def test_two_chats_are_never_one_by_how_phone_numbers_are_spelled(stores: Stores, chats: tuple[str, str]) -> None:
    def wrote(connection: sa.Connection, chat: str) -> str:
        user_id = people.user_of(connection, "telegram", Sender((Identity("chat", chat),)), stores.now_us)
        return people.subject_of("telegram", user_id)

    named, other = [await stores.database.write(lambda c, one=one: wrote(c, one)) for one in chats]
    assert await lifts.subjects_of(stores.database, Identity("chat", chats[0]), "telegram") == [named]
    assert (await erase(stores.database, "telegram", chats[0], stores.now_us)).subjects == (named,)
    assert await stores.rows("SELECT value FROM identities") == [(chats[1],)]
    assert await lifts.subjects_of(stores.database, Identity("chat", chats[1]), "telegram") == [other]
