"""Amendments of the previous message in the next run of the thread, through the default bundle."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from phylactery.agent.v1 import chat_pb2

from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, open_system


@pytest.fixture
async def changing(tmp_path: Path) -> AsyncIterator[System]:
    async with open_system(tmp_path) as opened:
        yield opened


@pytest.fixture
def ana(changing: System) -> Person:
    return changing.person("ana")


async def approved(person: Person, answer: chat_pb2.SendMessageResponse) -> chat_pb2.SendMessageResponse:
    """Approve what an answer asks for in the chat."""
    approval_id, code = approval_of(answer)
    return await person.say(f"APPROVE {approval_id} {code}")


def in_box(system: System) -> dict[str, str]:
    return {one.name: one.read_text() for one in system.sandbox.iterdir() if one.is_file()}


def tasks(system: System) -> list[tuple[str, bool]]:
    """Return of every task at RiskGate whether it goes on from another, and whether another may go on from it."""
    with closing(sqlite3.connect(system.folder / "riskgate" / "riskgate.db")) as database:
        rows = database.execute("SELECT continues_id != '', end_us FROM tasks ORDER BY continues_id != ''").fetchall()
    now_us = system.clock.now_us()
    return [(bool(goes_on), end_us > now_us) for goes_on, end_us in rows]


def pieces(system: System) -> int:
    """Return how many pieces of tasks RiskGate keeps."""
    with closing(sqlite3.connect(system.folder / "riskgate" / "riskgate.db")) as database:
        return int(database.execute("SELECT count(*) FROM task_pieces").fetchone()[0])


async def told_all(system: System) -> None:
    await system.agent.runner.idle()
    while not await system.agent.delivery.flush_all():
        pass


ADDED = [
    ("write hello to a.txt", "and in b.txt too", {"a.txt": "hello", "b.txt": "hello"}),
    ("escribe hola en a.txt", "y también en b.txt", {"a.txt": "hola", "b.txt": "hola"}),
    ("escribe hola en a.txt", "y en b.txt", {"a.txt": "hola", "b.txt": "hola"}),
    ("write hello to a.txt", "same for b.txt", {"a.txt": "hello", "b.txt": "hello"}),
]


@pytest.mark.parametrize(("first", "then", "files"), ADDED)
async def test_what_is_asked_for_too_is_done_and_nobody_is_asked(changing, ana, first, then, files):
    assert (await ana.say(first)).run.status == DONE
    answer = await ana.say(then)
    assert answer.run.status == DONE
    assert in_box(changing) == files


CORRECTED = [
    ("write hello to a.txt", "no, I meant b.txt", {"a.txt": "hello", "b.txt": "hello"}),
    ("escribe hola en a.txt", "no, quería decir b.txt", {"a.txt": "hola", "b.txt": "hola"}),
    ('write "hello" to a.txt', "sorry, b.txt", {"a.txt": "hello", "b.txt": "hello"}),
]


@pytest.mark.parametrize(("first", "then", "files"), CORRECTED)
async def test_what_was_done_is_done_in_another_way_only_after_a_yes(changing, ana, first, then, files):
    assert (await ana.say(first)).run.status == DONE
    before = in_box(changing)
    answer = await ana.say(then)
    assert answer.run.status == SUSPENDED
    assert in_box(changing) == before
    assert (await approved(ana, answer)).run.status == DONE
    assert in_box(changing) == files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "then", "when"),
    [
        ("recuérdame mañana a las 10 de la mañana llamar al dentista", "no, mejor a las 5", "05:00"),
        ("remind me to call mom tomorrow at 8 am", "no, better at 9", "09:00"),
        ("remind me in 5 minutes to stretch", "actually make it 10 minutes", ""),
    ],
)
async def test_another_time_is_asked_about_and_then_set(changing, ana, first, then, when):
    assert (await ana.say(first)).run.status == DONE
    answer = await ana.say(then)
    assert answer.run.status == SUSPENDED
    cards = (answer.pending_approval, *answer.pending_approval.also)
    shown = [chat_pb2.ShownApproval(approval_id=one.approval_id, args_hash=one.args_hash) for one in cards]
    done = await ana.say("yes", shown_approvals=shown)
    assert done.run.status == DONE
    assert when in done.reply.text


@pytest.mark.slow
async def test_a_read_of_another_file_is_just_read(changing, ana):
    changing.sandbox.joinpath("a.txt").write_text("text of a")
    changing.sandbox.joinpath("b.txt").write_text("text of b")
    await ana.say("read a.txt")
    assert "text of b" in (await ana.say("and b.txt")).reply.text
    assert "text of a" in (await ana.say("no, a.txt")).reply.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "then"), [("add milk to list.txt", "do it again"), ("añade leche a lista.txt", "otra vez")]
)
async def test_what_is_asked_for_once_more_is_asked_about_and_done_once(changing, ana, first, then):
    await ana.say(first)
    [(name, once)] = in_box(changing).items()
    answer = await ana.say(then)
    assert answer.run.status == SUSPENDED
    assert in_box(changing) == {name: once}
    await approved(ana, answer)
    assert in_box(changing) == {name: once * 2}


async def test_changes_follow_one_another_and_small_talk_stands_between(changing, ana):
    await ana.say("write hello to a.txt")
    assert (await ana.say("thanks!")).run.status == DONE
    assert (await ana.say("and in b.txt too")).run.status == DONE
    answer = await ana.say("and in c.txt too")
    assert answer.run.status == DONE
    assert set(in_box(changing)) == {"a.txt", "b.txt", "c.txt"}


@pytest.mark.parametrize("between", ["what reminders do I have?", "xyzzy plugh"])
async def test_only_the_request_right_before_can_be_changed(changing, ana, between):
    await ana.say("write hello to a.txt")
    await ana.say(between)
    answer = await ana.say("no, I meant b.txt")
    assert not answer.pending_approval.approval_id
    assert not answer.run.tool_calls
    assert set(in_box(changing)) == {"a.txt"}


async def test_another_thread_and_another_user_change_nothing(changing, ana):
    await ana.say("write hello to a.txt")
    for answer in (
        await ana.say("and in b.txt too", "t2"),
        await changing.person("eva").say("and in b.txt too"),
    ):
        assert not answer.run.tool_calls
    assert set(in_box(changing)) == {"a.txt"}


async def test_a_request_of_long_ago_is_not_changed_and_nothing_is_kept_of_it(changing, ana):
    await ana.say("write hello to a.txt")
    await told_all(changing)
    assert tasks(changing) == [(False, True)]
    changing.clock.advance(901)
    assert tasks(changing) == [(False, False)]
    answer = await ana.say("and in b.txt too")
    assert not answer.run.tool_calls
    assert set(in_box(changing)) == {"a.txt"}


async def test_riskgate_joins_the_words_by_itself_and_the_change_ends_with_its_run(changing, ana):
    await ana.say("write hello to a.txt")
    await ana.say("and in b.txt too")
    await told_all(changing)
    assert tasks(changing) == [(False, True), (True, True)]
    changing.clock.advance(901)
    assert tasks(changing) == [(False, False), (True, False)]


async def test_a_refusal_in_the_next_message_reaches_riskgate(changing, ana):
    await ana.say("write hello to a.txt")
    await ana.say("never mind")
    await told_all(changing)
    with closing(sqlite3.connect(changing.folder / "riskgate" / "riskgate.db")) as database:
        [(count,)] = database.execute("SELECT count(*) FROM retractions").fetchall()
    assert count == 1


async def test_of_words_that_are_not_to_be_kept_nothing_can_be_changed(changing, ana):
    await ana.say("write hello to a.txt. Do not store this")
    await told_all(changing)
    assert tasks(changing) in ([], [(False, False)])
    answer = await ana.say("and in b.txt too")
    assert not answer.run.tool_calls


async def test_with_the_thread_goes_what_was_kept_for_a_correction(changing, ana):
    await ana.say("write hello to a.txt")
    await told_all(changing)
    assert tasks(changing) == [(False, True)]
    await ana.chat.DeleteThread(chat_pb2.DeleteThreadRequest(thread_id="t1"), metadata=ana.metadata, timeout=60)
    await told_all(changing)
    assert pieces(changing) == 0


async def test_where_nothing_may_be_changed_nothing_is_kept(tmp_path):
    async with open_system(tmp_path, change_seconds=0) as system:
        person = system.person("ana")
        await person.say("write hello to a.txt")
        await told_all(system)
        assert (tasks(system), pieces(system)) == ([(False, False)], 0)
        assert not (await person.say("and in b.txt too")).run.tool_calls
