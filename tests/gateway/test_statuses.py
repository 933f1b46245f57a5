"""What a channel says of messages later: of which try, of a template, and what follows from a failure."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery_chassis.errors import StoreFull
from phylactery_gateway.channels.messages import Delivery, Outgoing, Status
from phylactery_gateway.channels.port import Action, SendError
from phylactery_gateway.store import inbox as inbox_module
from phylactery_gateway.tables import outbox
from phylactery_gateway.telegram.bot_api import _error
from phylactery_gateway.telegram.payloads import parse
from phylactery_gateway.whatsapp.errors import error_of_code

from tests.support.gateway.stores import DAY, Stores, bodies_of, card, open_stores

MESSAGE = Outgoing("a message")


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(tmp_path, template=True) as opened:
        await opened.say("hola")
        yield opened


def failed(wamid: str, code: int, outbox_id: str = "") -> Status:
    return Status(wamid, Delivery.UNKNOWN, str(code), outbox_id)


@pytest.mark.parametrize("early", [True, False])
async def test_what_is_said_of_a_template_is_not_said_of_its_message(stores: Stores, early: bool) -> None:
    stores.seconds = 2 * DAY
    await stores.told(MESSAGE)
    parcel = await stores.claim()
    assert parcel is not None
    assert parcel.template
    callback = f"t:{parcel.outbox_id}"
    if not early:
        await stores.outbox.sent(parcel, "wamid.template", stores.now_us)
    for delivery in (Delivery.SENT, Delivery.DELIVERED, Delivery.READ):
        await stores.status(Status("wamid.template", delivery, "", callback))
    if early:
        await stores.outbox.sent(parcel, "wamid.template", stores.now_us)
    assert await stores.rows("SELECT state, delivery, external_id FROM outbox") == [("window", 0, "")]
    await stores.status(failed("wamid.template", 131049, callback))
    assert await stores.states() == ["window"]
    await stores.say("aquí estoy")
    await stores.send()
    assert await stores.states() == ["sent"]


async def test_a_template_of_a_process_that_died_is_not_sent_again(stores: Stores) -> None:
    stores.seconds = 2 * DAY
    await stores.told(MESSAGE)
    parcel = await stores.claim()
    assert parcel is not None
    await stores.status(Status("wamid.template", Delivery.SENT, "", f"t:{parcel.outbox_id}"))
    for _ in range(2):
        stores.seconds += 100
        assert await stores.claim() is None
    assert await stores.states() == ["window"]


@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize(
    ("code", "query", "state"),
    [
        (131050, "SELECT 1 FROM conversations WHERE opted_out", "failed"),
        (131048, "SELECT 1 FROM accounts WHERE pause_code = '131048'", "pending"),
        (131064, "SELECT 1 FROM accounts WHERE templates_from_us > 0", "failed"),
        (131047, "SELECT 1 FROM conversations WHERE last_inbound_us = 0", "pending"),
        (131051, "", "pending"),
        (10, "SELECT 1 FROM accounts WHERE pause_code = '10'", "pending"),
        (200, "SELECT 1 FROM accounts WHERE pause_code = '200'", "pending"),
    ],
)
async def test_an_error_means_the_same_whether_it_comes_at_once_or_later(
    stores: Stores, code: int, query: str, state: str, later: bool
) -> None:
    await stores.told(card())
    if later:
        await stores.status(failed(await stores.send(), code))
    else:
        await stores.send(error_of_code(code))
    if query:
        assert len(await stores.rows(query)) == 1
    else:
        assert (await bodies_of(stores.database, outbox))[0]["plain"]
    assert await stores.states() == [state]


async def test_a_failure_of_an_earlier_try_does_not_send_a_message_again(stores: Stores) -> None:
    await stores.told(MESSAGE)
    first = await stores.send()
    await stores.status(failed(first, 131056))
    stores.seconds = 60
    second = await stores.send()
    [(outbox_id,)] = await stores.rows("SELECT outbox_id FROM outbox")
    assert first != second
    await stores.status(failed(first, 131000, outbox_id))
    assert await stores.states() == ["sent"]


async def test_what_is_said_of_a_failed_try_does_not_keep_the_next_from_being_sent(stores: Stores) -> None:
    await stores.told(MESSAGE)
    first = await stores.send()
    await stores.status(failed(first, 131056))
    await stores.status(Status(first, Delivery.SENT))
    assert await stores.states() == ["pending"]


async def test_a_failure_that_is_told_before_the_response_counts(stores: Stores) -> None:
    await stores.told(MESSAGE)
    parcel = await stores.claim()
    assert parcel is not None
    await stores.status(failed("wamid.quick", 131056, parcel.outbox_id))
    await stores.outbox.sent(parcel, "wamid.quick", stores.now_us)
    assert await stores.states() == ["pending"]


async def test_a_template_that_is_not_taken_leaves_its_message_as_it_was(stores: Stores) -> None:
    stores.seconds = 2 * DAY
    await stores.told(card())
    await stores.send(error_of_code(131009))
    assert await stores.rows("SELECT state FROM outbox WHERE CAST(body AS TEXT) NOT LIKE '%plain%'") == [("window",)]


async def test_an_account_that_may_send_no_templates_sends_none_for_a_time(stores: Stores) -> None:
    stores.seconds = 2 * DAY
    await stores.told(MESSAGE)
    await stores.send(error_of_code(131064))
    assert await stores.rows("SELECT opted_out FROM conversations") == [(0,)]
    await stores.say("hola")
    await stores.send()
    stores.seconds += DAY + 60
    await stores.told(MESSAGE)
    parcel = await stores.claim()
    assert parcel is not None
    assert parcel.template


async def test_who_writes_again_has_not_opted_out(stores: Stores) -> None:
    await stores.told(MESSAGE)
    await stores.send(error_of_code(131050))
    assert await stores.rows("SELECT opted_out FROM conversations") == [(1,)]
    await stores.say("¿sigues ahí?")
    assert await stores.rows("SELECT opted_out FROM conversations") == [(0,)]


async def test_a_longer_pause_is_not_shortened(stores: Stores) -> None:
    await stores.told(MESSAGE)
    first, channels = await stores.claim(), {"whatsapp": stores.channel}
    assert first is not None
    for pause in (3_600.0, 5.0):
        await stores.outbox.failed(first, SendError(Action.PAUSE, "131048", retry_after=pause), stores.now_us)
    [(until_us,)] = await stores.rows("SELECT paused_until_us FROM accounts")
    assert until_us == stores.now_us + 3_600_000_000
    assert await stores.outbox.due(stores.now_us, 9, channels) == []


async def test_a_channel_that_is_not_configured_keeps_no_other_from_sending(stores: Stores) -> None:
    await stores.told(MESSAGE)
    assert await stores.outbox.due(stores.now_us, 1, ["telegram"]) == []
    assert len(await stores.outbox.due(stores.now_us, 1, ["telegram", "whatsapp"])) == 1


async def test_a_message_without_its_buttons_says_what_they_said(stores: Stores) -> None:
    await stores.told(card())
    await stores.send(error_of_code(131009))
    stores.seconds = 10
    parcel = await stores.claim()
    assert parcel is not None
    assert parcel.message == Outgoing("May I?\n\n1. Sí\n2. No")


async def test_a_full_disk_acknowledges_nothing(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bool:
        raise StoreFull

    monkeypatch.setattr(inbox_module, "_add", full)
    with pytest.raises(StoreFull):
        await stores.say("hola")


@pytest.mark.parametrize("status", [401, 404])
def test_a_wrong_token_of_a_bot_pauses_its_account(status: int) -> None:
    assert _error(status, None).action is Action.PAUSE


def test_two_edits_in_a_second_are_two_and_a_press_has_no_time_of_its_own() -> None:
    chat, person = {"id": 7, "type": "private"}, {"id": 7}
    message = {"message_id": 1, "date": 1_700_000_000, "chat": chat, "from": person, "text": "a"}
    found = []
    for update_id in (1, 2):
        edited = {"update_id": update_id, "edited_message": message | {"edit_date": 1_700_000_001}}
        found += parse("bot", json.dumps(edited).encode())
    assert len({element.content.external_id for element in found}) == 2
    query = {"id": "9", "from": person, "data": "out.0", "message": message}
    [pressed] = parse("bot", json.dumps({"update_id": 3, "callback_query": query}).encode())
    assert pressed.content.sent_us == 0
