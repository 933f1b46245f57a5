"""What is sent: in which order, how fast, and what is done about each error of a channel."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from phylactery_gateway.channels.messages import Option, Outgoing
from phylactery_gateway.channels.port import Action
from phylactery_gateway.channels.presentation import form_of, parts
from phylactery_gateway.loopback.graph_api import Fault, problem
from phylactery_gateway.store import outbox
from phylactery_gateway.telegram.channel import LIMITS as TELEGRAM
from phylactery_gateway.whatsapp.channel import LIMITS, _buttons, _rows
from phylactery_gateway.whatsapp.errors import error_of_code

from tests.support.cases import each_case
from tests.support.gateway.running import Desk, open_gateway

STICKER = {"type": "sticker", "sticker": {"id": "1", "mime_type": "image/webp"}}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_gateway(tmp_path, api_seconds=1, lease_seconds=2) as opened:
        yield opened


async def queue(desk: Desk, *texts: str, source: str = "test") -> None:
    """Put messages to the only person into the outbox."""
    [row] = await desk.rows("SELECT conversation_id FROM conversations")
    messages = [Outgoing(text) for text in texts]
    now_us = desk.clock.now_us()
    await desk.gateway.database.write(
        lambda connection: outbox.add(connection, row.conversation_id, source, messages, now_us)
    )
    desk.gateway.sender.loop.wake()


async def state(desk: Desk) -> tuple[str, str, int]:
    [row] = await desk.rows("SELECT state, error_code, tries FROM outbox")
    return row.state, row.error_code, row.tries


@each_case(
    ("code", "action"),
    [
        (131047, Action.WINDOW),
        (131056, Action.SLOW_DOWN),
        (130429, Action.PAUSE),
        (131026, Action.FAIL),
        (131048, Action.PAUSE),
        (131049, Action.FAIL),
        (131050, Action.OPTED_OUT),
        (130472, Action.FAIL),
        (131031, Action.PAUSE),
        (368, Action.PAUSE),
        (190, Action.PAUSE),
        (131051, Action.WITHOUT_OPTIONS),
        (131052, Action.FAIL),
        (131053, Action.FAIL),
        (131057, Action.PAUSE),
        (131062, Action.FAIL),
        (131064, Action.NO_TEMPLATES),
        (80007, Action.PAUSE),
        (999999, Action.FAIL),
    ],
)
def test_every_named_error_has_its_action(code: int, action: Action) -> None:
    assert error_of_code(code).action is action
    assert error_of_code(str(code)).action is action


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [Fault(400, 131056), Fault(400, 2), Fault(400, 131000), Fault(503, 131016)],
    ids=lambda fault: str(fault.code),
)
async def test_what_passes_is_sent_again(desk: Desk, fault: Fault) -> None:
    desk.graph.faults.append(fault)
    await desk.phone().send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE tries = 1 AND state = 'pending' AND error_code != ''", 1)
    desk.clock.advance(20)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent'", 1)
    assert len(desk.phone().inbox) == 1


@pytest.mark.parametrize("fault", [Fault(429, 80007), Fault(400, 130429), Fault(401, 190), Fault(429)])
async def test_what_concerns_the_account_pauses_all_of_it(desk: Desk, fault: Fault) -> None:
    desk.graph.faults.append(fault)
    await desk.phone().send(STICKER)
    await desk.until_rows("SELECT * FROM accounts WHERE pause_code != ''", 1)
    await desk.phone("ES.7", "347").send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'pending'", 2)
    assert desk.graph.sent == []
    desk.clock.advance(70)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent'", 2)


@pytest.mark.parametrize("code", [131026, 131049, 130472, 131053])
async def test_what_cannot_be_delivered_is_not_tried_again(desk: Desk, code: int) -> None:
    desk.graph.faults.append(Fault(400, code))
    await desk.phone().send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'failed'", 1)
    desk.clock.advance(4_000)
    await queue(desk, "the next one")
    await desk.until(lambda: desk.graph.sent, "the next one")
    assert [one.text for one in desk.graph.sent] == ["the next one"]
    assert [row.error_code for row in await desk.rows("SELECT error_code FROM outbox WHERE state = 'failed'")] == [
        str(code)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault(500, delivered=True), Fault(200, delivered=True, seconds=1.5)])
async def test_a_lost_response_does_not_send_a_message_twice(desk: Desk, fault: Fault) -> None:
    """The message was delivered; its status says so under our own id before it would be sent again."""
    desk.graph.faults.append(fault)
    await desk.phone().send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent' AND delivery = 3", 1)
    desk.clock.advance(100)
    await queue(desk, "the next one")
    await desk.until(lambda: len(desk.graph.sent) == 2, "the next one")
    assert [one.text for one in desk.graph.sent][1] == "the next one"


@pytest.mark.slow
async def test_a_message_nobody_knows_of_is_sent_again_after_a_while(desk: Desk) -> None:
    desk.graph.faults.append(Fault(500))
    await desk.phone().send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'uncertain'", 1)
    desk.clock.advance(30)
    await desk.until(lambda: desk.graph.sent, "the message")
    assert len(desk.graph.sent) == 1


@pytest.mark.slow
async def test_a_failure_that_arrives_later_is_treated_like_any_other(desk: Desk) -> None:
    desk.graph.statuses = False
    await desk.phone().send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'sent'", 1)
    [sent] = desk.graph.sent
    assert await desk.graph.post(desk.graph.status(sent, "failed", 131056)) == 200
    desk.clock.advance(20)
    await desk.until(lambda: len(desk.graph.sent) == 2, "the same message again")
    assert await desk.graph.post(desk.graph.status(desk.graph.sent[1], "failed", 131026)) == 200
    assert await state(desk) == ("failed", "131026", 2)


async def test_after_24_hours_a_message_waits_until_the_person_writes(desk: Desk) -> None:
    phone = desk.phone()
    await phone.send(STICKER)
    await desk.until(lambda: desk.graph.sent, "the reply")
    desk.clock.advance(24 * 3_600)
    await queue(desk, "a reminder")
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'window'", 1)
    assert len(desk.graph.sent) == 1
    await phone.send(STICKER, at=desk.clock.now_us() / 1e6)
    await desk.until(lambda: len(desk.graph.sent) == 3, "both")
    assert desk.graph.sent[1].text == "a reminder"


async def test_after_24_hours_a_template_asks_the_person_to_write_once(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, whatsapp_template="news") as desk:
        phone = desk.phone()
        await phone.send(STICKER)
        await desk.until(lambda: desk.graph.sent, "the reply")
        desk.clock.advance(24 * 3_600)
        await queue(desk, "one", "two")
        await desk.until_rows("SELECT * FROM outbox WHERE state = 'window'", 1)
        assert [one.text for one in desk.graph.sent[1:]] == ["[news]"]
        assert desk.graph.sent[1].body["template"]["language"] == {"code": "es"}
        await phone.send(STICKER, at=desk.clock.now_us() / 1e6)
        await desk.until(lambda: len(desk.graph.sent) == 5, "the rest")
        assert [one.text for one in desk.graph.sent[2:4]] == ["one", "two"]


async def test_the_channels_word_on_the_window_counts_more_than_our_clock(desk: Desk) -> None:
    desk.graph.faults.append(Fault(400, 131047))
    phone = desk.phone()
    await phone.send(STICKER)
    await desk.until_rows("SELECT * FROM outbox WHERE state = 'window' AND error_code = '131047'", 1)
    await phone.send(STICKER)
    await desk.until(lambda: len(desk.graph.sent) == 2, "both")


async def test_who_opted_out_gets_no_template(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, whatsapp_template="news") as desk:
        phone = desk.phone()
        await phone.send(STICKER)
        await desk.until(lambda: desk.graph.sent, "the reply")
        desk.clock.advance(24 * 3_600)
        desk.graph.faults.append(Fault(400, 131050))
        await queue(desk, "one")
        await desk.until_rows("SELECT * FROM outbox WHERE state = 'window'", 1)
        desk.clock.advance(48 * 3_600)
        await queue(desk, "two", source="more")
        await desk.until_rows("SELECT * FROM conversations WHERE opted_out", 1)
        assert len(desk.graph.sent) == 1


@pytest.mark.slow
async def test_messages_of_a_conversation_are_sent_in_order_whatever_fails(desk: Desk) -> None:
    await desk.phone().send(STICKER)
    await desk.until(lambda: desk.graph.sent, "the reply")
    desk.graph.faults.extend([Fault(400, 131000), Fault(400, 131000)])
    await queue(desk, *(str(place) for place in range(5)))
    await desk.until(lambda: len(desk.graph.sent) == 6, "all of them")
    assert [one.text for one in desk.graph.sent[1:]] == ["0", "1", "2", "3", "4"]


@pytest.mark.slow
async def test_a_person_gets_no_more_than_the_pair_rate_allows(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, whatsapp_pair_seconds=0.4, whatsapp_pair_burst=2) as desk:
        await desk.phone().send(STICKER)
        await desk.until(lambda: desk.graph.sent, "the reply")
        began = time.monotonic()
        await queue(desk, *(str(place) for place in range(4)))
        await desk.until(lambda: len(desk.graph.sent) == 5, "all of them")
        assert time.monotonic() - began > 0.9


@pytest.mark.slow
async def test_both_directions_count_for_the_number(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, whatsapp_number_rate=2) as desk:
        began = time.monotonic()  # before the first that counts, however long they take
        for place in range(6):
            await desk.phone(f"ES.{place}", f"34{place}").send({"type": "text", "text": {"body": "hola"}})
        await desk.phone("ES.9", "349").send(STICKER)
        await desk.until(lambda: desk.graph.sent, "the reply")
        assert time.monotonic() - began > 2


@pytest.mark.slow
async def test_what_the_channel_does_not_take_goes_as_plain_text(desk: Desk) -> None:
    await desk.phone().send(STICKER)
    await desk.until(lambda: desk.graph.sent, "the reply")
    [row] = await desk.rows("SELECT conversation_id FROM conversations")
    chosen = Outgoing("¿Sí o no?", (Option("Sí", {"say": "sí"}), Option("No", {"say": "no"})))
    desk.graph.faults.append(Fault(400, 131051))
    now_us = desk.clock.now_us()
    await desk.gateway.database.write(
        lambda connection: outbox.add(connection, row.conversation_id, "choice", [chosen], now_us)
    )
    await desk.until_rows("SELECT * FROM outbox WHERE error_code = '131051'", 1)
    desk.clock.advance(10)
    await desk.until(lambda: len(desk.graph.sent) == 2, "the text")
    assert desk.graph.sent[1].body["type"] == "text"


def options(count: int, title: str = "Opción {}") -> tuple[Option, ...]:
    return tuple(Option(title.format(place), {"say": str(place)}) for place in range(count))


@pytest.mark.parametrize(
    ("count", "title", "form"),
    [(2, "Sí {}", "buttons"), (3, "Una opción larguísima {}", "list"), (10, "{}", "list"), (11, "{}", "text")],
)
def test_options_are_buttons_a_list_or_numbers(count: int, title: str, form: str) -> None:
    message = Outgoing("¿Cuál?", options(count, title), "Elegir")
    [cut] = parts(message, LIMITS)
    assert form_of(cut, LIMITS) == form
    assert (f"{count}. " in cut.text) == (form != "buttons")
    assert parts(message, TELEGRAM)[0].options


@each_case("length", [1, 1_024, 1_025, 4_096, 4_097, 30_000])
@each_case("count", [0, 2, 7, 15])
def test_no_message_is_longer_than_the_channel_takes(length: int, count: int) -> None:
    message = Outgoing("palabra " * (length // 8) + "x" * (length % 8 or 1), options(count), "Elegir")
    cut = parts(message, LIMITS)
    assert [one.options for one in cut[:-1]] == [()] * (len(cut) - 1)
    for one in cut:
        body: dict[str, Any] = {"text": {"body": one.text}}
        match form_of(one, LIMITS):
            case "buttons":
                body = {"interactive": _buttons(one, "out_1")}
            case "list":
                body = {"interactive": _rows(one, "out_1", LIMITS)}
        assert not problem(body)
    assert sum(one.text.count("palabra") for one in cut) == length // 8
