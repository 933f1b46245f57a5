"""The public port: what is taken, what is refused, and what is stored of it."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from phylactery_chassis.errors import StartError
from phylactery_chassis.settings import load
from phylactery_chassis.util.crypto import create_key_file
from phylactery_gateway.app import build
from phylactery_gateway.channels.messages import Received
from phylactery_gateway.http.health import Health
from phylactery_gateway.settings import GatewaySettings
from phylactery_gateway.store import people
from phylactery_gateway.tables import turns
from phylactery_gateway.telegram import payloads as telegram
from phylactery_gateway.whatsapp import payloads as whatsapp
from starlette.applications import Starlette

from tests.support.gateway.running import LIMIT_SECONDS, Desk, open_gateway, open_servers, settings_of
from tests.support.gateway.stores import bodies_of, texts_of
from tests.support.servers import postgres

STICKER = {"type": "sticker", "sticker": {"id": "1", "mime_type": "image/webp"}}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_gateway(tmp_path) as opened:
        yield opened


@pytest.fixture
async def slow_desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A gateway that gives nothing to the agent before its clock is advanced: a text is emptied when it is given."""
    async with open_gateway(tmp_path, debounce_seconds=30) as opened:
        yield opened


def changed(desk: Desk, **value: Any) -> dict[str, Any]:
    return desk.graph.change(value)


def text(wamid: str, body: str, *, sender: str = "34600000001", bsuid: str = "ES.100", **more: Any) -> dict[str, Any]:
    whole = {"id": wamid, "timestamp": str(int(time.time())), "type": "text", "text": {"body": body}, **more}
    return whole | ({"from": sender} if sender else {}) | ({"from_user_id": bsuid} if bsuid else {})


async def states(desk: Desk) -> list[tuple[str, str]]:
    rows = await desk.rows("SELECT state FROM messages ORDER BY position")
    return list(zip(await texts_of(desk.gateway.database), [row.state for row in rows], strict=True))


async def kinds(desk: Desk) -> list[str]:
    return sorted(row.kind for row in await desk.rows("SELECT kind FROM inbox"))


@pytest.mark.parametrize("signature", ["", "sha256=", "sha256=" + 64 * "0", "sha1=abc", "sha256=" + 64 * "é"])
async def test_a_body_without_a_valid_signature_is_refused_and_leaves_nothing(desk: Desk, signature: str) -> None:
    body = json.dumps(changed(desk, messages=[text("wamid.1", "hola")])).encode()
    async with httpx.AsyncClient() as client:
        headers = {"x-hub-signature-256": signature.encode("latin-1")}
        assert (await client.post(desk.graph.webhook, content=body, headers=headers)).status_code == 401
        assert (await client.post(desk.graph.webhook, content=body)).status_code == 401
    assert await desk.rows("SELECT * FROM inbox") == []


async def test_the_signature_is_of_the_raw_body(desk: Desk) -> None:
    payload = changed(desk, messages=[text("wamid.1", "ñandú")])
    raw = json.dumps(payload, ensure_ascii=False, indent=3).encode()
    assert await desk.graph.post(raw) == 200
    assert await desk.graph.post(json.dumps(payload).encode(), signature=desk.graph.sign(raw)) == 401
    assert len(await desk.rows("SELECT * FROM messages")) == 1


async def test_a_replayed_body_changes_nothing(desk: Desk) -> None:
    payload = changed(desk, messages=[text("wamid.1", "hola")])
    assert [await desk.graph.post(payload) for _ in range(3)] == [200, 200, 200]
    assert await desk.rows("SELECT count(*) FROM messages") == [(1,)]


async def test_a_replay_after_its_row_was_removed_is_not_served(desk: Desk) -> None:
    old = text("wamid.1", "hola") | {"timestamp": str(int(time.time()) - 9 * 86_400)}
    assert await desk.graph.post(changed(desk, messages=[old])) == 200
    assert await desk.rows("SELECT * FROM messages") == []
    assert await kinds(desk) == ["received"]


async def test_a_body_that_is_too_large_is_refused_before_it_is_held(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, max_body_bytes=2_000) as desk:
        assert await desk.graph.post(b"x" * 2_001) == 413

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"x" * 1_000

        async with httpx.AsyncClient() as client:
            signed = {"x-hub-signature-256": desk.graph.sign(b"x" * 100_000)}
            assert (await client.post(desk.graph.webhook, content=chunks(), headers=signed)).status_code == 413


async def test_one_broken_element_loses_none_beside_it(slow_desk: Desk) -> None:
    broken = [None, 7, {}, {"id": "wamid.x"}, {"id": 5, "type": "text"}, text("wamid.y", "", text=None), [[]]]
    payload = changed(slow_desk, messages=[text("wamid.1", "uno"), *broken, text("wamid.2", "dos")])
    payload["entry"].insert(0, "no entry")
    payload["entry"][1]["changes"].insert(0, {"field": "messages", "value": None})
    assert await slow_desk.graph.post(payload) == 200
    assert [one for one, _ in await states(slow_desk)] == ["uno", "dos"]
    assert len(await slow_desk.rows("SELECT * FROM inbox WHERE kind LIKE 'kept:%'")) == len(broken) + 2


ODD = (
    None,
    5,
    -1,
    True,
    "",
    "x" * 5_000,
    [],
    {},
    [[]],
    [{}],
    1.5,
    float("inf"),
    float("nan"),
    10**400,
    "\ud800",
    "\x00",
)
MESSAGES: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": {"body": "hola"}, "context": {"id": "wamid.0", "forwarded": True}},
    {"type": "image", "image": {"id": "1", "mime_type": "image/png", "sha256": "x", "caption": "a"}},
    {"type": "interactive", "interactive": {"type": "button_reply", "button_reply": {"id": "a", "title": "b"}}},
    {"type": "edit", "edit": {"original_message_id": "wamid.0", "message": {"type": "text", "text": {"body": "a"}}}},
    {"type": "revoke", "revoke": {"original_message_id": "wamid.0"}},
    {"type": "reaction", "reaction": {"message_id": "wamid.0", "emoji": "👍"}},
    {"type": "system", "system": {"type": "user_changed_number", "wa_id": "346", "previous_user_id": "ES.1"}},
)
PRIVATE = {"chat": {"id": 7, "type": "private"}, "message_id": 3, "date": 1}
UPDATES: tuple[dict[str, Any], ...] = (
    {"message": {**PRIVATE, "from": {"id": 7}, "text": "a", "reply_to_message": {"message_id": 1}}},
    {"message": {**PRIVATE, "from": {"id": 7}, "photo": [{"file_id": "f", "file_size": 3}], "caption": "a"}},
    {"message": {**PRIVATE, "from": {"id": 7}, "document": {"file_id": "f", "mime_type": "text/plain"}}},
    {"edited_message": {**PRIVATE, "from": {"id": 7}, "edit_date": 2, "text": "a"}},
    {"callback_query": {"id": "1", "from": {"id": 7}, "data": "x", "message": PRIVATE}},
    {"message_reaction": {**PRIVATE, "user": {"id": 7}, "new_reaction": [{"type": "emoji", "emoji": "👍"}]}},
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the path of every value within a value."""
    yield at
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(one, (*at, key))


def spoilt(whole: Any) -> Iterator[Any]:
    """Return copies of a value, each with something odd in one place."""
    for at in places(whole):
        for odd in ODD:
            copied = {"": copy.deepcopy(whole)}
            holder: Any = copied
            for key in ("", *at)[:-1]:
                holder = holder[key]
            holder[("", *at)[-1]] = odd
            yield copied[""]


def test_a_value_of_any_other_shape_keeps_its_element_and_loses_none_beside_it() -> None:
    beside = text("wamid.beside", "hola")
    for message in MESSAGES:
        for one in spoilt(text("wamid.1", "", **message)):
            value = {"metadata": {"phone_number_id": "1"}, "messages": [one, beside]}
            elements = whatsapp.parse(json.dumps({"entry": [{"changes": [{"value": value}]}]}).encode())
            assert len(elements) == 2
            assert isinstance(elements[1].content, Received)
    for update in UPDATES:
        for one in spoilt({"update_id": 1, **update}):
            assert len(telegram.parse("bot", json.dumps(one).encode())) == 1


@pytest.mark.parametrize("timestamp", ["1e999", "-Infinity", "NaN", "1" + "0" * 400 + ".5"])
async def test_a_number_without_end_is_acknowledged_and_kept(slow_desk: Desk, timestamp: str) -> None:
    messages = [text("wamid.1", "uno", timestamp="WHEN"), text("wamid.2", "dos")]
    body = json.dumps(changed(slow_desk, messages=messages)).replace('"WHEN"', timestamp).encode()
    assert await slow_desk.graph.post(body) == 200
    assert [one for one, _ in await states(slow_desk)] == ["dos"]
    assert await slow_desk.bot.post({"update_id": 1, "message": slow_desk.bot.message({"photo": []})}) == 200


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{", b'{"entry": 5}', b"\xff\xfe", b'{"entry": [' + b"[" * 20_000]
)
async def test_a_signed_body_of_an_unknown_shape_is_acknowledged_and_noted(desk: Desk, body: bytes) -> None:
    assert await desk.graph.post(body) == 200
    assert await kinds(desk) == ["kept:unknown_body"]


async def test_unknown_types_and_fields_are_acknowledged_and_kept(desk: Desk) -> None:
    unknown = text("wamid.1", "x", type="hologram", hologram={"depth": 3})
    assert await desk.graph.post(changed(desk, messages=[unknown])) == 200
    assert await desk.graph.post(changed(desk, holograms=[{"id": 1}])) == 200
    assert await kinds(desk) == ["kept:type:hologram", "kept:unknown_field"]


async def test_what_is_not_a_message_gets_no_reply(desk: Desk) -> None:
    reaction = text("wamid.1", "", type="reaction", reaction={"message_id": "wamid.0", "emoji": "👍"})
    identity = text("wamid.2", "", type="system", system={"type": "customer_identity_changed"})
    group = text("wamid.3", "hola a todos", group_id="g1")
    assert await desk.graph.post(changed(desk, messages=[reaction, identity, group])) == 200
    assert await desk.graph.post(desk.graph.change({"standby": [text("wamid.4", "hola")]}, name="standby")) == 200
    assert await kinds(desk) == ["kept:group", "kept:standby", "kept:system", "received"]
    assert await desk.rows("SELECT * FROM messages") == await desk.rows("SELECT * FROM outbox") == []


async def test_messages_to_another_number_are_only_kept(desk: Desk) -> None:
    payload = changed(desk, messages=[text("wamid.1", "hola")])
    payload["entry"][0]["changes"][0]["value"]["metadata"]["phone_number_id"] = "999"
    assert await desk.graph.post(payload) == 200
    assert await kinds(desk) == ["kept:other_number"]


async def test_a_sticker_gets_an_honest_reply(desk: Desk) -> None:
    phone = desk.phone()
    await phone.send(STICKER)
    await desk.until(lambda: phone.inbox, "a reply")
    assert phone.inbox[0].text == "No puedo ver stickers; escríbemelo con palabras."
    assert (await states(desk)) == [("", "noted")]


async def test_a_filled_flow_is_read(slow_desk: Desk) -> None:
    answers = {"flow_token": "secret", "full_name": "Ana", "rating": 4, "comment": "bien"}
    reply = {"type": "nfm_reply", "nfm_reply": {"name": "flow", "body": "Sent", "response_json": json.dumps(answers)}}
    await slow_desk.phone().send({"type": "interactive", "interactive": reply})
    assert [one for one, _ in await states(slow_desk)] == ["full name: Ana\nrating: 4\ncomment: bien"]


async def test_an_edit_changes_a_message_that_nobody_has_read_yet(slow_desk: Desk) -> None:
    phone = slow_desk.phone()
    wamid = await phone.say("mañana a las 5")
    edit = {"original_message_id": wamid, "message": {"type": "text", "text": {"body": "mañana a las 6"}}}
    await phone.send({"type": "edit", "edit": edit})
    assert await states(slow_desk) == [("mañana a las 6", "waiting")]
    await phone.send({"type": "revoke", "revoke": {"original_message_id": wamid}})
    assert await states(slow_desk) == [("", "withdrawn")]


async def test_an_edit_of_a_message_that_was_read_is_a_correction(slow_desk: Desk) -> None:
    phone = slow_desk.phone()
    wamid = await phone.say("mañana a las 5")
    slow_desk.clock.advance(31)
    await slow_desk.until_rows("SELECT * FROM messages WHERE state = 'given'", 1)
    edit = {"original_message_id": wamid, "message": {"type": "text", "text": {"body": "a las 6"}}}
    await phone.send({"type": "edit", "edit": edit})
    assert (await states(slow_desk))[1][0] == "Corrección: a las 6"
    await phone.send({"type": "revoke", "revoke": {"original_message_id": wamid}})
    assert (await states(slow_desk))[2][1] == "noted"


@pytest.mark.slow
async def test_messages_that_arrive_out_of_order_are_one_turn_in_order(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, debounce_seconds=3) as desk:
        phone, now = desk.phone(), time.time()
        await phone.say("tres", at=now)
        await phone.say("uno", at=now - 2)
        await phone.say("dos", at=now - 1)
        await desk.until_rows("SELECT * FROM turns", 1)
        [turn] = await bodies_of(desk.gateway.database, turns)
        assert turn["text"] == "uno\ndos\ntres"


async def test_a_person_is_known_by_the_business_scoped_id_first(desk: Desk) -> None:
    first = [text("wamid.1", "a", bsuid=""), text("wamid.2", "b"), text("wamid.3", "c", sender="")]
    other = [text("wamid.4", "d", bsuid="ES.200")]  # the number belongs to somebody else now
    assert await desk.graph.post(changed(desk, messages=[*first, *other])) == 200
    rows = await desk.rows("SELECT external_id, conversation_id FROM messages ORDER BY external_id")
    assert len({row.conversation_id for row in rows[:3]}) == 1
    assert rows[3].conversation_id != rows[0].conversation_id


@pytest.mark.parametrize("kind", ["user_changed_number", "user_changed_user_id"])
async def test_a_changed_id_keeps_the_conversation(desk: Desk, kind: str) -> None:
    assert await desk.graph.post(changed(desk, messages=[text("wamid.1", "antes")])) == 200
    system = {"type": kind, "previous_user_id": "ES.100", "user_id": "ES.900", "wa_id": "34999"}
    told = text("wamid.2", "", bsuid="", type="system", system=system)
    assert await desk.graph.post(changed(desk, messages=[told])) == 200
    late = text("wamid.3", "tarde", sender="")
    new = text("wamid.4", "nuevo", sender="34999", bsuid="ES.900")
    stranger = text("wamid.5", "otra persona", bsuid="ES.300")
    assert await desk.graph.post(changed(desk, messages=[late, new, stranger])) == 200
    rows = await desk.rows("SELECT external_id, conversation_id FROM messages ORDER BY external_id")
    assert [row.external_id for row in rows] == ["wamid.1", "wamid.3", "wamid.4", "wamid.5"]
    assert len({row.conversation_id for row in rows[:3]}) == 1
    assert rows[3].conversation_id != rows[0].conversation_id
    current = await desk.rows(
        "SELECT value FROM identities WHERE current AND user_id = (SELECT user_id FROM "
        "identities WHERE value = 'ES.900') ORDER BY value"
    )
    assert [row.value for row in current] == ["34999", "ES.900"]


def changed_id(wamid: str, *, before: str, after: str, sender: str = "", number: str = "") -> dict[str, Any]:
    system = {"type": "user_changed_user_id", "previous_user_id": before, "user_id": after, "wa_id": number}
    return text(wamid, "", sender=sender, bsuid="", type="system", system=system)


async def conversations_by_message(desk: Desk) -> dict[str, str]:
    rows = await desk.rows("SELECT external_id, conversation_id FROM messages")
    return {row.external_id: row.conversation_id for row in rows}


async def test_a_former_phone_number_finds_nobody(desk: Desk) -> None:
    moved = [text("wamid.1", "a", sender="341"), text("wamid.2", "b", sender="342")]
    assert await desk.graph.post(changed(desk, messages=[*moved, text("wamid.3", "c", sender="341", bsuid="")])) == 200
    of = await conversations_by_message(desk)
    assert of["wamid.1"] == of["wamid.2"] != of["wamid.3"]


async def test_a_late_message_under_a_former_id_takes_no_number_back(desk: Desk) -> None:
    said = [
        text("wamid.1", "a", sender="341", bsuid="ES.1"),
        changed_id("wamid.2", before="ES.1", after="ES.2", sender="341", number="342"),
        text("wamid.3", "a stranger with the number", sender="341", bsuid="ES.3"),
        text("wamid.4", "late", sender="341", bsuid="ES.1"),
        text("wamid.5", "the stranger again", sender="341", bsuid=""),
    ]
    assert await desk.graph.post(changed(desk, messages=said)) == 200
    of = await conversations_by_message(desk)
    assert of["wamid.1"] == of["wamid.4"] != of["wamid.3"] == of["wamid.5"]
    query = "SELECT value FROM identities WHERE current AND user_id = "
    query += "(SELECT user_id FROM identities WHERE value = 'ES.2') ORDER BY value"
    assert [row.value for row in await desk.rows(query)] == ["342", "ES.2"]


async def test_a_change_of_somebody_not_known_alters_nobody_who_has_the_number(desk: Desk) -> None:
    said = [
        text("wamid.1", "a", sender="341", bsuid="ES.1"),
        changed_id("wamid.2", before="ES.8", after="ES.9", sender="341", number="349"),
        text("wamid.3", "b", sender="349", bsuid="ES.9"),
        text("wamid.4", "c", sender="341", bsuid=""),
    ]
    assert await desk.graph.post(changed(desk, messages=said)) == 200
    of = await conversations_by_message(desk)
    assert of["wamid.1"] == of["wamid.4"] != of["wamid.3"]


async def test_a_person_who_wrote_under_the_new_id_before_its_change_was_told_is_one_person(desk: Desk) -> None:
    said = [
        text("wamid.1", "a", sender="", bsuid="ES.1"),
        text("wamid.2", "b", sender="", bsuid="ES.2"),
        changed_id("wamid.3", before="ES.1", after="ES.2"),
        text("wamid.4", "c", sender="", bsuid="ES.2"),
        text("wamid.5", "late", sender="", bsuid="ES.1"),
    ]
    assert await desk.graph.post(changed(desk, messages=said)) == 200
    of = await conversations_by_message(desk)
    assert of["wamid.1"] == of["wamid.4"] == of["wamid.5"] != of["wamid.2"]
    users = await desk.rows("SELECT user_id FROM users")
    reached = [
        await desk.gateway.database.read(lambda connection, one=row.user_id: people.identities_of(connection, one))
        for row in users
    ]
    assert reached == [{"bsuid": "ES.2"}] * 2, "a reply in either conversation reaches the person"


async def test_conversations_of_a_channel_that_is_not_configured_wait(desk: Desk) -> None:
    await desk.phone().say("hola")
    await desk.until_rows("SELECT * FROM turns", 1)

    def move(connection: Any) -> None:
        # no worker owns it any more either, so none gives it back later
        change = "UPDATE conversations SET channel = 'pigeon', turn_owner = '', turn_until_us = 0, work_us = 0"
        connection.execute(sa.text(change))

    await desk.gateway.database.write(move)
    await desk.phone("ES.200", "342").say("hola")
    await desk.until_rows("SELECT * FROM turns", 2)
    [row] = await desk.rows("SELECT work_us, turn_until_us FROM conversations WHERE channel = 'pigeon'")
    assert (row.work_us, row.turn_until_us) == (0, 0)


async def test_a_status_only_ever_goes_forward(desk: Desk) -> None:
    phone = desk.phone()
    desk.graph.statuses = False
    await phone.send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent'", 1)
    [sent] = phone.inbox
    for status, code in (("read", 0), ("delivered", 0), ("failed", 131026), ("sent", 0)):
        assert await desk.graph.post(desk.graph.status(sent, status, code)) == 200
    [row] = await desk.rows("SELECT state, delivery FROM outbox")
    assert (row.state, row.delivery) == ("sent", 3)


async def test_the_challenge_is_answered_for_our_token_only(desk: Desk) -> None:
    async with httpx.AsyncClient() as client:
        asked = {"hub.mode": "subscribe", "hub.challenge": "1158201444"}
        told = await client.get(desk.graph.webhook, params={**asked, "hub.verify_token": "verify-me"})
        assert (told.status_code, told.text) == (200, "1158201444")
        for token in ("", "verify-m", "ñ"):
            assert (
                await client.get(desk.graph.webhook, params={**asked, "hub.verify_token": token})
            ).status_code == 403
        page = {**asked, "hub.challenge": "<script>", "hub.verify_token": "verify-me"}
        assert (await client.get(desk.graph.webhook, params=page)).status_code == 403
        assert (await client.post(desk.graph.webhook.replace("whatsapp", "pigeon"))).status_code == 404
        assert (await client.get(desk.bot.webhook)).status_code == 403


async def test_telegram_updates_need_the_secret(desk: Desk) -> None:
    update = {"update_id": 1, "message": desk.bot.message({"text": "hola"})}
    assert await desk.bot.post(update, secret="wrong") == 401
    assert await desk.bot.post(update) == await desk.bot.post(update) == 200
    group = desk.bot.message({"text": "hola"}) | {"chat": {"id": -5, "type": "group"}}
    assert await desk.bot.post({"update_id": 2, "message": group}) == 200
    assert await desk.bot.post({"update_id": 3, "poll": {}}) == 200
    assert await kinds(desk) == ["kept:group", "kept:update", "received"]


async def test_the_database_is_written_before_the_acknowledgement(desk: Desk) -> None:
    await asyncio.to_thread(desk.gateway.database.close)
    assert await desk.graph.post(changed(desk, messages=[text("wamid.1", "hola")])) == 503
    base = desk.graph.webhook.removesuffix("/webhooks/whatsapp")
    async with httpx.AsyncClient(base_url=base) as client:
        assert (await client.get("/healthz")).json() == {"status": "SERVING"}, "a process that lives is not restarted"
        limit = time.monotonic() + LIMIT_SECONDS
        while (answer := await client.get("/readyz")).status_code != 503:
            assert time.monotonic() < limit
            await asyncio.sleep(0.05)
        assert answer.json() == {"status": "NOT_SERVING"}


@pytest.mark.slow
@pytest.mark.parametrize("many", [20, 400], ids=["in the request", "afterwards"])
async def test_two_gateways_at_once_store_a_message_once(tmp_path: Path, postgres_url: str, many: int) -> None:
    url = postgres.create_database(postgres_url, f"two_gateways_{many}")
    key = tmp_path / "seal.key"
    create_key_file(key, lambda: bytes(32))
    async with open_servers() as (graph, bot):
        settings = [
            GatewaySettings(
                **settings_of(
                    tmp_path / name, graph, bot, "127.0.0.1:1", database_url=url, seal_key_file=key, debounce_seconds=3
                )
            )
            for name in ("a", "b")
        ]
        await asyncio.to_thread(_migrate, settings[0])
        gateways = [await build(one) for one in settings]
        for gateway in gateways:
            await gateway.start()
        try:
            payload = graph.change({"messages": [text(f"wamid.{place}", str(place)) for place in range(many)]})
            hooks = [f"http://127.0.0.1:{gateway.port}/webhooks/whatsapp" for gateway in gateways]
            body = json.dumps(payload).encode()
            async with httpx.AsyncClient(timeout=60) as client:
                posts = [
                    client.post(hook, content=body, headers={"x-hub-signature-256": graph.sign(body)})
                    for hook in hooks * 3
                ]
                assert {one.status_code for one in await asyncio.gather(*posts)} == {200}
            desk = Desk(gateways[0], graph, bot, None, tmp_path)  # type: ignore[arg-type]
            counts = {"backlog": 0, "messages": many, "inbox": many, "users": 1, "conversations": 1, "turns": 1}
            if many > 20:
                del counts["turns"]
            for table, count in counts.items():
                await desk.until_rows(f"SELECT * FROM {table}", count)
        finally:
            for gateway in gateways:
                await gateway.stop()


def _migrate(settings: GatewaySettings) -> None:
    from phylactery_chassis.db.database import Database

    database = Database(settings.url)
    database.migrate("phylactery_gateway")
    database.close()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"GATEWAY_WHATSAPP_APP_SECRET_FILE": None}, "GATEWAY_WHATSAPP_APP_SECRET_FILE"),
        ({"GATEWAY_WHATSAPP_NUMBERS": "[]"}, "GATEWAY_WHATSAPP_NUMBERS"),
        ({"GATEWAY_TELEGRAM_SECRET_FILE": None}, "GATEWAY_TELEGRAM_SECRET_FILE"),
        ({"GATEWAY_HOST": "0.0.0.0"}, "plain text"),
    ],
)
async def test_the_gateway_does_not_start_without_what_makes_it_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, str | None], said: str
) -> None:
    from tests.support.gateway.running import environment_of

    async with open_servers() as (graph, bot):
        environment: dict[str, str | None] = dict(environment_of(settings_of(tmp_path, graph, bot, "127.0.0.1:1")))
    for name, value in (environment | changes).items():
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(StartError, match=said):
        load(GatewaySettings)


async def test_an_empty_secret_and_no_channel_at_all_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="no channel is configured"):
        load(GatewaySettings)
    async with open_servers() as (graph, bot):
        settings = GatewaySettings(**settings_of(tmp_path, graph, bot, "127.0.0.1:1"))
        (tmp_path / "secrets" / "app_secret").write_text("\n")
        with pytest.raises(StartError, match="GATEWAY_WHATSAPP_APP_SECRET_FILE: the file is empty"):
            await build(settings)


@pytest.mark.parametrize("name", ["whatsapp_api_url", "telegram_api_url"])
@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://graph.example/v26.0", True),
        ("http://127.0.0.1:9/v26.0", True),
        ("http://localhost:9", True),
        ("http://[::1]:9/v26.0", True),
        ("http://graph.facebook.com/v26.0", False),
        ("http://10.0.0.1", False),
        ("http://0.0.0.0:9", False),
        ("http://127.0.0.1.evil.example", False),
        ("http://localhost.evil.example", False),
        ("http://2130706433/", False),
        ("http://[::ffff:10.0.0.1]/", False),
        ("http://user:password@127.0.0.1/", False),
        ("http://evil.example#@127.0.0.1", False),
        ("https://", False),
        ("https:///v26.0", False),
        ("https://graph.example:99999", False),
        ("ftp://127.0.0.1", False),
        ("graph.facebook.com", False),
    ],
)
async def test_a_channels_token_goes_by_https_or_stays_on_this_machine(
    tmp_path: Path, name: str, url: str, taken: bool
) -> None:
    async with open_servers() as (graph, bot):
        options = settings_of(tmp_path, graph, bot, "127.0.0.1:1") | {name: url}
    if taken:
        assert getattr(load(GatewaySettings, **options), name) == url
        return
    with pytest.raises(StartError, match=f"GATEWAY_{name.upper()}") as caught:
        load(GatewaySettings, **options)
    assert "password@" not in str(caught.value)


@pytest.mark.parametrize("fails", [False, True], ids=["hangs", "fails unforeseen"])
async def test_a_gateway_whose_database_says_nothing_is_not_ready_until_it_does(fails: bool) -> None:
    """Neither from its first look on, nor after it answered."""
    answers = asyncio.Event()

    async def probe() -> bool:
        if fails and not answers.is_set():
            raise RuntimeError
        return await answers.wait()

    health = Health(probe, look_seconds=0.02)
    transport = httpx.ASGITransport(Starlette(routes=health.routes()))
    async with httpx.AsyncClient(transport=transport, base_url="http://gate") as client:

        async def until(status: int) -> None:
            async with asyncio.timeout(LIMIT_SECONDS):
                while (await client.get("/readyz")).status_code != status:  # noqa: ASYNC110 - as a probe asks
                    await asyncio.sleep(0.01)

        health.loop.start()
        try:
            for _ in range(2):
                answers.clear()
                await until(503)
                assert (await client.get("/healthz")).status_code == 200
                answers.set()
                await until(200)
        finally:
            await health.loop.stop()


@pytest.mark.parametrize("name", ["app_secret", "verify", "token", "bot_token", "bot_secret"])
async def test_a_gateway_whose_secrets_others_may_read_does_not_start(tmp_path: Path, name: str) -> None:
    async with open_servers() as (graph, bot):
        settings = GatewaySettings(**settings_of(tmp_path, graph, bot, "127.0.0.1:1"))
        (tmp_path / "secrets" / name).chmod(0o644)
        with pytest.raises(StartError, match=r"GATEWAY_[A-Z_]+_FILE: .* chmod 600"):
            await build(settings)
