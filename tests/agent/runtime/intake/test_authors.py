"""Rows of the inbox keep what others wrote beside the person's words, over a restart, and old rows have no author."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from phylactery_agent.runtime.intake.authorship import said_together
from phylactery_agent.runtime.intake.coalescing import as_one
from phylactery_agent.runtime.storage.records import NO_WORDS

from tests.support.agent.stores import Stores


async def _of_before(stores: Stores, **values: str) -> None:
    await stores.database.write(
        lambda connection: connection.execute(
            sa.text("UPDATE agent_inbox SET others = NULL, message_starts = NULL, task_id = :task"),
            {"task": "", **values},
        ).close()
    )


async def test_a_row_gives_back_what_others_wrote_and_where_messages_begin(stores: Stores) -> None:
    turn = await stores.accepted(text="uno\ndos", others="de Eva\x00 \ud800", message_starts=(4,))
    for known in (turn, await stores.inbox.get(turn.turn_id), (await stores.claimed()).turn):
        assert (known.text, known.others, known.message_starts) == ("uno\ndos", "de Eva\x00 \ud800", (4,))


async def test_the_text_of_a_row_from_before_that_waits_counts_as_others(stores: Stores) -> None:
    turn = await stores.accepted(text="sí")
    await _of_before(stores)
    known = await stores.inbox.get(turn.turn_id)
    assert (known.text, known.others, known.wordless) == (NO_WORDS, "sí", True)
    assert said_together([(known.text, known)]).own == ""


async def test_one_that_riskgate_was_shown_goes_on_with_the_same_words(stores: Stores) -> None:
    turn = await stores.accepted(text='escribe "x" en a.txt')
    await _of_before(stores, task="ta_1")
    known = await stores.inbox.get(turn.turn_id)
    assert (known.text, known.others) == ('escribe "x" en a.txt', "")


@pytest.mark.parametrize(
    ("parts", "own", "others", "starts"),
    [
        ([("uno", ""), ("dos", "")], "uno\ndos", "", (4,)),
        ([("uno", "a"), (NO_WORDS, "b"), ("dos", "")], "uno\ndos", "a\nb", (4,)),
        ([(NO_WORDS, "a"), ("uno", "")], "uno", "a", ()),
        ([(NO_WORDS, "a"), (NO_WORDS, "b")], "", "a\nb", ()),
    ],
)
async def test_messages_answered_together_stay_apart_by_author(
    stores: Stores, parts: list[tuple[str, str]], own: str, others: str, starts: tuple[int, ...]
) -> None:
    turns = [
        await stores.accepted(message_id=f"request-{place}", text=words, others=passed_on)
        for place, (words, passed_on) in enumerate(parts)
    ]
    joined = as_one(tuple(turns))
    assert (joined.text, joined.others) == (own or NO_WORDS, others)
    said = said_together([(one.text, one) for one in turns])
    assert (said.own, said.others, said.starts) == (own, others, starts)
    assert said.text[said.own_spans[0][0] : said.own_spans[0][1]] == own if own else said.own_spans == ()
