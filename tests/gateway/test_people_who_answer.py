"""A person of the business has the conversation: what is said then, and what becomes of what they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery_gateway.channels.messages import Echoed, Kind, Media, Outgoing, Received
from phylactery_gateway.store.turns import Threads, TurnState

from tests.support.gateway.stores import Stores, open_stores, person


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    async with open_stores(tmp_path) as opened:
        await opened.say("hola")
        await opened.turn()
        yield opened


async def hand(stores: Stores, *, claimed: bool) -> None:
    await Threads(stores.database).told(await stores.conversation(), 9, [], stores.now_us, claimed=claimed)


async def test_a_claim_silences_what_waits_and_what_the_agent_still_says(stores: Stores) -> None:
    await stores.told(Outgoing("from the agent"))
    await stores.told(Outgoing("Marta: hola"), source="human::m1")
    await hand(stores, claimed=True)
    await stores.told(Outgoing("from the agent, late"))
    await stores.told(Outgoing("Marta: sigo aquí"), source="human::m2")
    assert await stores.states() == ["silenced", "pending", "silenced", "pending"]
    await stores.send()
    await stores.send()
    await hand(stores, claimed=False)
    await stores.told(Outgoing("from the agent again"))
    assert await stores.states() == ["silenced", "sent", "silenced", "sent", "pending"]


async def test_after_a_claim_files_and_stickers_reach_the_person_and_nothing_is_said(stores: Stores) -> None:
    await hand(stores, claimed=True)
    await stores.say("", kind=Kind.STICKER)
    photo = Media("1", "image", "image/jpeg")
    await stores.receive(Received(person(), Kind.MEDIA, "mi recibo", stores.now_us, "wamid.photo", media=photo))
    turn = await stores.turn()
    assert turn is not None
    assert turn.text == "[sticker]\n[foto] mi recibo"
    assert await stores.states() == []


@pytest.mark.slow
async def test_after_a_claim_a_refused_turn_is_not_told(stores: Stores) -> None:
    await hand(stores, claimed=True)
    await stores.say("Sí", kind=Kind.CHOICE, option="out_removed.0")
    conversation_id = await stores.conversation()
    await stores.turns.claim(conversation_id, stores.now_us)
    turn = await stores.turns.next(conversation_id, stores.now_us)
    assert turn is not None
    await stores.turns.given(conversation_id, turn, TurnState.REFUSED, stores.now_us, [Outgoing("no longer waiting")])
    assert await stores.states() == []


async def test_an_answer_by_phone_silences_the_agent_and_nobody_else(stores: Stores) -> None:
    await stores.told(Outgoing("from the agent"))
    await stores.told(Outgoing("Marta: hola"), source="human::m1")
    await stores.receive(Echoed(person()))
    await stores.told(Outgoing("Marta: sigo aquí"), source="human::m2")
    assert await stores.states() == ["silenced", "pending", "pending"]
    await stores.send()
    await stores.send()
    assert await stores.states() == ["silenced", "sent", "sent"]
