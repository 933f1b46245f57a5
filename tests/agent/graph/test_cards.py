"""Calls of one plan that wait for the same person: one card, each call answered by its own id, hash and code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.agent.graph import Chat, Died, dies_at, ended, said

TWO = 'escribe "uno" en one.txt y escribe "dos" en two.txt'
THREE = f'{TWO} y escribe "tres" en three.txt'
FIRST, SECOND = "ap_waiting0", "ap_waiting1"
YES = f"APROBAR {FIRST} code-0-right"


def cards(chat: Chat) -> list[list[str]]:
    return [
        [one["approval_id"] for one in (card, *card.get("also", []))] for card in chat.events.of("approval_required")
    ]


def files(chat: Chat) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(chat.sandbox.iterdir())}


def asked(chat: Chat) -> list[str]:
    return [what for method, what in chat.gate.calls if method == "approve"]


@pytest.fixture
async def chat(tmp_path: Path) -> Chat:
    made = Chat(tmp_path)
    await made.say(TWO)
    return made


async def test_two_writes_stand_on_one_card_and_nothing_has_run(chat: Chat) -> None:
    assert cards(chat) == [[FIRST, SECOND]]
    assert files(chat) == {}
    assert "2 cosas" in said(await chat.values())
    assert not {FIRST, SECOND} & set(said(await chat.values()).split())
    assert [row.state for row in chat.ledger.rows.values()] == ["proposed", "proposed"]


async def test_no_code_and_no_argument_is_in_the_card_or_in_the_state(chat: Chat) -> None:
    stored = f"{chat.events.told}{await chat.values()}"
    assert "code-0-right" not in stored
    assert "code-1-right" not in stored
    assert not any("arguments" in one for card in chat.events.of("approval_required") for one in card["also"])


async def test_one_answer_to_the_card_answers_each_by_its_own_id_and_code(chat: Chat) -> None:
    chat.also_answered = {SECOND: "code-1-right"}
    state = await chat.say(YES)
    assert ended(state) == ("done", "ANSWERED")
    assert files(chat) == {"one.txt": "uno", "two.txt": "dos"}
    assert asked(chat) == [FIRST, SECOND]
    assert {one.state for one in chat.gate.approvals.values()} == {"REDEEMED"}


async def test_a_wrong_code_of_one_runs_the_others_and_asks_again_for_that_one(chat: Chat) -> None:
    chat.also_answered = {SECOND: "code-9-wrong"}
    state = await chat.say(YES)
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert (state["approval_id"], state["awaiting_approval"]) == (SECOND, True)
    assert files(chat) == {"one.txt": "uno"}
    chat.also_answered = {}
    assert ended(await chat.say(f"APROBAR {SECOND} code-1-right")) == ("done", "ANSWERED")
    assert files(chat) == {"one.txt": "uno", "two.txt": "dos"}


async def test_a_strict_yes_answers_the_first_alone_and_the_rest_is_shown_again(chat: Chat) -> None:
    state = await chat.say(YES)
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert files(chat) == {"one.txt": "uno"}
    assert cards(chat) == [[FIRST, SECOND], [SECOND]]
    assert len(chat.gate.approvals) == 2, "nobody is asked a second time about the same call"


async def test_the_second_is_approved_first_and_runs_in_its_place(chat: Chat) -> None:
    state = await chat.say(f"APROBAR {SECOND} code-1-right")
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert (state["approval_id"], files(chat)) == (FIRST, {})
    assert said(state) == (
        'Anotado, sí a esto: «escribe "dos" en two.txt». Aún espero tu sí o tu no: «escribe "uno" en one.txt».'
    )
    assert ended(await chat.say(YES)) == ("done", "ANSWERED")
    assert files(chat) == {"one.txt": "uno", "two.txt": "dos"}


async def test_the_second_is_rejected_and_the_first_runs(chat: Chat) -> None:
    assert ended(await chat.say(f"RECHAZAR {SECOND}")) == ("suspended", "AWAITING_APPROVAL")
    state = await chat.say(YES)
    assert ended(state) == ("done", "APPROVAL_REJECTED")
    assert files(chat) == {"one.txt": "uno"}


async def test_the_first_is_rejected_and_the_second_is_still_asked_about(chat: Chat) -> None:
    assert ended(await chat.say(f"RECHAZAR {FIRST}")) == ("suspended", "AWAITING_APPROVAL")
    assert cards(chat)[-1] == [SECOND]
    state = await chat.say(f"APROBAR {SECOND} code-1-right")
    assert ended(state) == ("done", "APPROVAL_REJECTED")
    assert files(chat) == {"two.txt": "dos"}


async def test_a_no_to_the_card_rejects_each_of_it(chat: Chat) -> None:
    chat.also_answered = {SECOND: "code-1-right"}
    state = await chat.say(f"RECHAZAR {FIRST}")
    assert ended(state) == ("done", "APPROVAL_REJECTED")
    assert {one.state for one in chat.gate.approvals.values()} == {"REJECTED"}
    assert files(chat) == {}


async def test_another_text_answers_none_of_them(chat: Chat) -> None:
    state = await chat.say("sí")
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert (asked(chat), files(chat)) == ([], {})


async def test_a_call_that_needs_nobody_does_not_split_the_card(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    await chat.say('escribe "uno" en one.txt y lee one.txt y escribe "dos" en two.txt')
    assert cards(chat) == [[FIRST, SECOND]]


async def test_only_what_waits_for_the_same_person_stands_on_it(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    chat.gate.approval_class = "peer"
    await chat.say(TWO)
    assert cards(chat) == [[FIRST]]
    assert len(chat.gate.approvals) == 1


async def test_where_riskgate_takes_no_more_questions_the_rest_is_asked_later(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    evaluate = chat.gate.evaluate

    async def full(call, where):
        if len(chat.gate.approvals) == 2 and not where.approval_id:
            chat.gate.refusals["evaluate"] = "TOO_MANY_PENDING"
        try:
            return await evaluate(call, where)
        finally:
            chat.gate.refusals.clear()

    chat.gate.evaluate = full  # type: ignore[method-assign]
    await chat.say(THREE)
    assert cards(chat) == [[FIRST, SECOND]]
    chat.gate.evaluate = evaluate  # type: ignore[method-assign]
    chat.also_answered = {SECOND: "code-1-right"}
    state = await chat.say(YES)
    assert (ended(state), state["approval_id"]) == (("suspended", "AWAITING_APPROVAL"), "ap_waiting2")
    assert files(chat) == {"one.txt": "uno", "two.txt": "dos"}


@pytest.mark.parametrize("point", ["agent.6", "agent.7", "agent.8", "agent.9", "agent.10"])
async def test_a_crash_while_a_card_is_carried_out_repeats_and_loses_nothing(chat: Chat, point: str) -> None:
    chat.also_answered = {SECOND: "code-1-right"}
    with dies_at(point), pytest.raises(Died):
        await chat.say(YES)
    assert ended(await chat.go_on()) == ("done", "ANSWERED")
    assert files(chat) == {"one.txt": "uno", "two.txt": "dos"}
    assert len(chat.gate.redemptions) == 2
