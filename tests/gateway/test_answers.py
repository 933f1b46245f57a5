"""Which question an answer is for: only one that the person had before them when they wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery_gateway.channels.messages import Kind

from tests.support.gateway.stores import DAY, Stores, card, open_stores


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(tmp_path) as opened:
        await opened.say("hola")
        await opened.turn()
        yield opened


@pytest.mark.parametrize("state", ["window", "pending", "failed", "silenced", "sending"])
async def test_a_number_answers_no_question_that_was_never_sent(stores: Stores, state: str) -> None:
    await stores.told(card())
    await stores.database.write(
        lambda connection: connection.exec_driver_sql(f"UPDATE outbox SET state = '{state}'").close()
    )
    stores.seconds = 100
    await stores.say("1")
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id) == ("1", "")


@pytest.mark.parametrize("word", ["1", "Sí"])
async def test_a_word_answers_no_question_that_was_sent_after_it_was_written(stores: Stores, word: str) -> None:
    stores.seconds = 100
    await stores.told(card())
    await stores.send()
    await stores.say(word, at=100)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id, list(turn.shown)) == (word, "", [])


async def test_a_word_answers_the_question_before_it_whatever_came_after(stores: Stores) -> None:
    await stores.told(card("ap_1"))
    await stores.send()
    stores.seconds = 100
    await stores.told(card("ap_2"))
    await stores.send()
    await stores.say("Sí", at=50)
    turn = await stores.turn()
    assert turn is not None
    assert list(turn.shown) == [("ap_1", "hash of ap_1")]
    await stores.say("2", at=51)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.approval_id, turn.approve) == ("ap_1", False)


@pytest.mark.parametrize("option", ["out_removed.0", "unknown", "out_removed.99"])
async def test_a_button_whose_message_is_gone_is_refused_and_says_nothing(stores: Stores, option: str) -> None:
    await stores.told(card())
    await stores.send()
    stores.seconds = 40 * DAY
    await stores.say("Sí", kind=Kind.CHOICE, option=option)
    turn = await stores.turn()
    assert turn is not None
    assert turn.stale
    assert (turn.text, turn.approval_id, list(turn.shown)) == ("", "", [])


async def test_a_templates_own_button_answers_no_question(stores: Stores) -> None:
    await stores.told(card())
    await stores.send()
    stores.seconds = 100
    await stores.say("Sí", kind=Kind.QUICK_REPLY)
    turn = await stores.turn()
    assert turn is not None
    assert (turn.text, turn.approval_id, list(turn.shown)) == ("Sí", "", [])
