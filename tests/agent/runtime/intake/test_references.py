"""Messages that refer to what an earlier one named, through the default bundle."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery.agent.v1 import chat_pb2

from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system


@pytest.fixture
async def chatting(tmp_path: Path) -> AsyncIterator[System]:
    async with open_system(tmp_path) as opened:
        yield opened


@pytest.fixture
def ana(chatting: System) -> Person:
    return chatting.person("ana")


async def agree(person: Person, answer: chat_pb2.SendMessageResponse) -> chat_pb2.SendMessageResponse:
    """Say yes to all that was asked."""
    card = answer.pending_approval
    assert card.approval_id, answer.reply.text
    shown = [chat_pb2.ShownApproval(approval_id=one.approval_id, args_hash=one.args_hash) for one in (card, *card.also)]
    return await person.say("yes", shown_approvals=shown)


def asked(answer: chat_pb2.SendMessageResponse) -> list[str]:
    card = answer.pending_approval
    return [one.tool for one in (card, *card.also)] if card.approval_id else []


async def reminders(person: Person) -> str:
    return (await person.say("what reminders do I have?")).reply.text


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [("add milk to a.txt", "read it"), ("anotá leche en a.txt", "leémelo")])
async def test_the_file_of_the_request_before_is_read(chatting, ana, first, then):
    await ana.say(first)
    answer = await ana.say(then)
    assert answer.run.status == DONE
    assert "a.txt" in answer.reply.text


async def test_the_other_file_is_the_one_before_where_there_are_two(chatting, ana):
    for name in ("a", "b", "c"):
        chatting.sandbox.joinpath(f"{name}.txt").write_text(f"text of {name}")
    await ana.say("read a.txt")
    assert "which file" in (await ana.say("the other one")).reply.text
    await ana.say("read b.txt")
    assert "text of a" in (await ana.say("ok now the other one")).reply.text
    await ana.say("read c.txt")
    assert "which file" in (await ana.say("the other one")).reply.text


@pytest.mark.parametrize(
    ("first", "then", "line"),
    [
        ("read list.txt", "add milk to it", "milk"),
        ("lee list.txt", "agregale leche", "leche"),
        ("add bread to list.txt", "and milk too", "milk"),
        ("añade pan a list.txt", "y tmb leche", "leche"),
    ],
)
async def test_what_is_added_to_it_is_asked_about_and_then_added(chatting, ana, first, then, line):
    file = chatting.sandbox / "list.txt"
    file.write_text("eggs\n")
    await ana.say(first)
    before = file.read_text()
    answer = await ana.say(then)
    assert asked(answer) == ["write_file"]
    assert file.read_text() == before
    assert (await agree(ana, answer)).run.status == DONE
    assert file.read_text() == f"{before}{line}\n"


async def test_nothing_is_written_to_a_file_whose_name_was_guessed(chatting, ana):
    chatting.sandbox.joinpath("ideas.txt").write_text("x\n")
    assert "ideas.txt" in (await ana.say("abrime el ideas")).reply.text
    answer = await ana.say("agregale y")
    assert not asked(answer)
    assert [one.name for one in chatting.sandbox.iterdir() if one.is_file()] == ["ideas.txt"]


async def test_words_that_were_not_understood_stand_not_in_the_way(ana):
    await ana.say("remind me tomorrow at 8 am to call mom")
    await ana.say("xyzzy plugh")
    assert asked(await ana.say("cancel it")) == ["cancel_reminder"]


@pytest.mark.slow
async def test_a_small_word_after_a_list_adds_nothing(ana):
    await ana.say("add bread to list.txt")
    for text in ("and thanks", "and what time is it", "and you?"):
        assert not asked(await ana.say(text)), text


CANCELLED = [
    ("remind me tomorrow at 8 am to call mom", "cancel it"),
    ("remind me tomorrow at 8 am to call mom", "scratch that"),
    ("recordame mañana a las 9 de la mañana llamar a mama", "cancelalo"),
]


@pytest.mark.parametrize(("first", "then"), CANCELLED)
async def test_a_reminder_that_was_just_set_is_cancelled_after_a_yes(ana, first, then):
    await ana.say(first)
    answer = await ana.say(then)
    assert asked(answer) == ["cancel_reminder"]
    await agree(ana, answer)
    assert "mom" not in (left := await reminders(ana))
    assert "mama" not in left


async def test_a_change_of_a_file_is_undone_after_a_yes(chatting, ana):
    await ana.say("write hello to a.txt")
    answer = await ana.say("cancel that")
    assert asked(answer) == ["undo_write"]
    await agree(ana, answer)
    assert not chatting.sandbox.joinpath("a.txt").exists()


async def test_where_nothing_was_done_there_is_nothing_to_take_back(ana):
    await ana.say("read nothing.txt")
    answer = await ana.say("cancel it")
    assert (answer.run.status, asked(answer)) == (DONE, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "then", "when"),
    [
        ("wake me up in 20 mins", "actually make it 30", ""),
        ("recuérdame el lunes a las 8 de la mañana llamar a Ana", "no, perdona, el jueves", "Thursday"),
        ("recuérdame llamar a Ana a las 8 de la mañana", "no, perdona, el jueves", "Thursday"),
        ("ponme un recordatorio para el jueves: pagar la luz", "a las 5 d la tarde", "17:00"),
        ("remind me tomorrow at 8 am to call mom", "no, better at 9", "09:00"),
        ("acordame el viernes a las 8 de la noche la cena", "uy no, era el sabado", "Saturday"),
        ("acordame el sabado a las 8 de la noche la cena", "a las 9 y media", "21:30"),
    ],
)
async def test_another_time_is_put_in_the_place_of_the_first(ana, first, then, when):
    answer = await ana.say(first)
    if asked(answer):
        await agree(ana, answer)
    answer = await ana.say(then)
    assert asked(answer) == ["cancel_reminder", "create_reminder"]
    assert (await agree(ana, answer)).run.status == DONE
    left = await reminders(ana)
    assert len([line for line in left.splitlines() if line.startswith("- ")]) == 1
    assert when in left


@pytest.mark.slow
async def test_a_reminder_that_is_over_is_not_cancelled_again(ana):
    await ana.say("remind me tomorrow at 8 am to call mom")
    await ana.say("cancel the reminder to call mom")
    answer = await ana.say("remind me tomorrow at 10 am to call mom")
    assert answer.run.status == DONE
    answer = await ana.say("cancel the one about mom")
    assert answer.run.status in (DONE, SUSPENDED)


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        ("write hello to a.txt", "no, I meant b.txt", "What I wrote to “a.txt” is still there"),
        ("write hello to a.txt", "never mind", "What I wrote to “a.txt” is still there"),
        ("escribe hola en a.txt", "déjalo", "Lo que escribí en «a.txt» sigue ahí"),
        ("recuérdame mañana a las 9 de la mañana llamar", "mejor no", "El recordatorio «llamar» sigue puesto"),
    ],
)
async def test_what_was_done_and_stays_is_said(ana, first, then, said):
    await ana.say(first)
    assert said in (await ana.say(then)).reply.text


async def test_never_mind_leaves_no_run_that_waits(ana):
    await ana.say("xyzzy plugh")
    answer = await ana.say("never mind")
    assert (answer.run.status, answer.reply.text) == (DONE, "All right, I leave it at that.")
    assert (await ana.thread()).last_run.status == DONE


async def test_help_is_a_few_lines_and_has_topics(ana):
    lines = (await ana.say("what can you do?")).reply.text.splitlines()
    assert len(lines) <= 6
    assert "“help files”" in lines[-1]
    topic = (await ana.say("help files")).reply.text
    assert "search the files" in topic
    assert "remind" not in topic
