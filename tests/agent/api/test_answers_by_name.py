"""Several cards, and words that say which gets a yes and which a no: exactly that is done, the rest is asked."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest
import pytest_asyncio
from phylactery.agent.v1 import chat_pb2
from phylactery.riskgate.v1 import approval_pb2, types_pb2
from phylactery_chassis.util.ids import new_id

from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system
from tests.support.riskgate.asking_bundle import asks_first

pytestmark = pytest.mark.asyncio(loop_scope="module")
_PEER = """
@id("tests.ask-peer")
@title("Somebody else is asked about these")
@title_es("Sobre estos se pregunta a otra persona")
forbid (principal, action == Action::"write_file", resource)
when { context.args.path like "*plans*" }
unless { context.approved.contains(Class::"peer") };
"""
_numbers = itertools.count(1)
A, B, C = 'write "milk" to a.txt', 'write "bread" to b.txt', 'write "eggs" to c.txt'
EA, EB = 'escribe "leche" en a.txt', 'escribe "pan" en b.txt'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("named")
    bundle = asks_first(folder / "bundle")
    (bundle / "policies" / "peer.cedar").write_text(_PEER, encoding="utf-8")
    async with open_system(folder, bundle=bundle) as opened:
        yield opened


@pytest.fixture
def ana(system: System) -> Person:
    return system.person(f"ana{next(_numbers)}", "local")


def shown(*cards: Any, **more: Any) -> list[chat_pb2.ShownApproval]:
    """Return cards as they were shown, the oldest first: all but the newest are marked as earlier."""
    return [
        chat_pb2.ShownApproval(
            approval_id=one.approval_id, args_hash=one.args_hash, earlier=card is not cards[-1], **more
        )
        for card in cards
        for one in (card, *card.also)
    ]


async def asked(person: Person, *requests: str, graph: str = "") -> list[Any]:
    return [(await person.say(one, graph=graph)).pending_approval for one in requests]


def written(system: System, person: Person) -> str:
    """Return the names of the files that were written, without their ending."""
    subject, tenant = (value for _, value in person.metadata)
    folder = system.sandbox_of(subject, tenant)
    return "".join(sorted(one.stem for one in folder.glob("*.txt"))) if folder.exists() else ""


async def open_ones(person: Person) -> int:
    return sum(1 + len(card.also) for card in (await person.thread()).pending_approvals)


BOTH_WAYS: Sequence[tuple[str, str]] = (
    ("yes to the first, no to the second", "a"),
    ("no to the first, yes to the second", "b"),
    ("sí a la primera y no a la segunda", "a"),
    ("la primera no, la segunda sí", "b"),
    ("yes to a.txt and no to b.txt", "a"),
    ("no a a.txt, sí a b.txt", "b"),
    ("yes to both", "ab"),
    ("sí a las dos", "ab"),
    ("no to both", ""),
    ("ninguna", ""),
    ("yes to all but the second", "a"),
)


@pytest.mark.parametrize(("words", "files"), BOTH_WAYS)
async def test_each_call_of_one_card_gets_the_answer_that_names_it(
    system: System, ana: Person, words: str, files: str
) -> None:
    card = (await ana.say(f"{A} and {B}")).pending_approval
    assert len(card.also) == 1
    answered = await ana.say(words, shown_approvals=shown(card))
    assert answered.run.status == DONE
    assert (written(system, ana), await open_ones(ana)) == (files, 0)


@pytest.mark.parametrize(("words", "files"), BOTH_WAYS)
@pytest.mark.parametrize(("requests", "graph"), [((A, B), ""), ((EA, EB), ""), ((A, EB), "react")])
async def test_each_of_two_cards_gets_the_answer_that_names_it(
    system: System, ana: Person, *, words: str, files: str, requests: tuple[str, str], graph: str
) -> None:
    cards = await asked(ana, *requests, graph=graph)
    answered = await ana.say(words, shown_approvals=shown(*cards))
    assert answered.run.status == DONE
    assert (written(system, ana), await open_ones(ana)) == (files, 0)


@pytest.mark.parametrize(
    ("words", "at_once", "left", "files"),
    [
        ("yes to the second", "", 2, "b"),
        ("no to the second", "", 2, ""),
        ("no to b.txt and c.txt", "", 1, ""),
        ("yes to a.txt, no to c.txt", "a", 1, "a"),
        ("yes to b.txt and c.txt", "", 1, "bc"),
        ("no to the first, yes to the rest", "bc", 0, "bc"),
        ("la tercera no, las demás sí", "ab", 0, "ab"),
    ],
)
async def test_what_an_answer_does_not_name_still_waits(
    system: System, ana: Person, *, words: str, at_once: str, left: int, files: str
) -> None:
    card = (await ana.say(f"{A} and {B} and {C}")).pending_approval
    assert len(card.also) == 2
    await ana.say(words, shown_approvals=shown(card))
    assert (written(system, ana), await open_ones(ana)) == (at_once, left)
    while waiting := (await ana.thread()).pending_approvals:
        await ana.say(f"REJECT {waiting[0].approval_id}")
    assert written(system, ana) == files


@pytest.mark.parametrize(
    "words",
    [
        *("both", "las dos", "all of them", "1", "2", "the first", "la segunda", "todas", "no, the second"),
        *("don't skip the second", "yes to the first or the second", "yes to the third", "sí a c.txt", "yes to c.txt"),
        *("sí a la primera no, a la segunda", "yes to the first. No. To the second", "do it first", "yes to the rest"),
    ],
)
@pytest.mark.parametrize("apart", [True, False])
async def test_words_that_only_name_some_approve_nothing_and_are_asked_about_by_name(
    system: System, ana: Person, words: str, apart: bool
) -> None:
    cards = await asked(ana, A, B) if apart else await asked(ana, f"{A} and {B}")
    told = await ana.say(words, shown_approvals=shown(*cards))
    assert (written(system, ana), await open_ones(ana)) == ("", 2)
    assert "a.txt" in told.reply.text
    assert "b.txt" in told.reply.text
    assert "yes to the first" in told.reply.text
    assert told.run.status == SUSPENDED
    again = (await ana.thread()).pending_approvals
    await ana.say("yes to the first, no to the second", shown_approvals=shown(*reversed(again)))
    assert (written(system, ana), await open_ones(ana)) == ("a", 0)


async def test_only_one_of_several_runs_that_one_and_other_words_with_only_run_nothing(
    system: System, subtests: pytest.Subtests
) -> None:
    doubtful = ("only b.txt, no wait", "only not b.txt", "only b.txt if Ana agrees", "solo b.txt y nada más")
    unnamed = ("only d.txt", "only b.txt?", "only all but b.txt")
    for words in ("only b.txt", "solo b.txt, por favor", *doubtful, *unnamed):
        with subtests.test(words):
            ana = system.person(f"only{next(_numbers)}", "local")
            card = (await ana.say(f"{A} and {B} and {C}")).pending_approval
            await ana.say(words, shown_approvals=shown(card))
            sure = words not in doubtful + unnamed
            assert (written(system, ana), await open_ones(ana)) == (("b", 0) if sure else ("", 3))


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(
    "words", ["maybe a.txt, no to the second", "sí a la primera pero con cuidado, no a la segunda", "ok, no to b.txt"]
)
async def test_where_a_part_is_unclear_the_no_counts_and_the_rest_is_asked_about(
    system: System, ana: Person, words: str, apart: bool
) -> None:
    cards = await asked(ana, A, B) if apart else await asked(ana, f"{A} and {B}")
    told = await ana.say(words, shown_approvals=shown(*cards))
    assert (written(system, ana), await open_ones(ana)) == ("", 1)
    asks = told.reply.text.rpartition("yes or no: ")[2]
    assert "a.txt" in asks
    assert "b.txt" not in asks


async def test_a_yes_counts_only_for_what_was_shown_as_it_is(system: System, ana: Person) -> None:
    first, second = await asked(ana, A, B)
    another = chat_pb2.ShownApproval(approval_id=first.approval_id, args_hash="sha256:" + 64 * "0", earlier=True)
    told = await ana.say("yes to a.txt and yes to b.txt", shown_approvals=[another, *shown(second)])
    assert (written(system, ana), await open_ones(ana)) == ("b", 1)
    assert "a.txt" in told.reply.text
    unseen = await ana.say("yes to a.txt", shown_approvals=shown(second))
    assert (written(system, ana), await open_ones(ana)) == ("b", 1)
    assert "a.txt" in unseen.reply.text
    await ana.say("no to a.txt", shown_approvals=shown(second))  # a no counts whatever was shown
    assert (written(system, ana), await open_ones(ana)) == ("b", 0)


async def test_the_place_of_what_was_not_all_shown_names_nothing(system: System, ana: Person) -> None:
    _, second, third = await asked(ana, A, B, C)
    told = await ana.say("yes to the first", shown_approvals=shown(second, third))
    assert (written(system, ana), await open_ones(ana)) == ("", 3)
    assert "b.txt" in told.reply.text
    wrong_order = await ana.say("yes to the last", shown_approvals=shown(third, second))
    assert (written(system, ana), await open_ones(ana)) == ("", 3)
    assert "c.txt" in wrong_order.reply.text


async def test_a_number_that_was_drawn_is_what_is_meant(system: System, ana: Person) -> None:
    first, second = await asked(ana, A, B)
    drawn = [*shown(first, number=4), *shown(second, number=5)]
    drawn[0].earlier = True
    await ana.say("yes to 1, no to 5", shown_approvals=drawn)
    assert (written(system, ana), await open_ones(ana)) == ("", 1)
    await ana.say("yes to 4", shown_approvals=drawn)
    assert (written(system, ana), await open_ones(ana)) == ("a", 0)


async def test_what_another_person_approves_takes_a_no_and_no_yes(system: System, ana: Person) -> None:
    own, plans = await asked(ana, A, 'write "x" to plans.txt')
    assert plans.approval_class == "peer"
    await ana.say("yes to plans.txt, yes to a.txt", shown_approvals=shown(own, plans))
    assert (written(system, ana), await open_ones(ana)) == ("a", 1)
    await ana.say("no to plans.txt", shown_approvals=shown(plans))
    assert (written(system, ana), await open_ones(ana)) == ("a", 0)
    request = approval_pb2.GetApprovalRequest(approval_id=plans.approval_id)
    answer = await ana.approvals.GetApproval(request, metadata=ana.metadata)
    assert answer.approval.state == types_pb2.APPROVAL_STATE_CANCELLED


async def test_an_earlier_card_takes_no_plain_yes(system: System, ana: Person) -> None:
    first, second = await asked(ana, A, B)
    await ana.say("no to b.txt", shown_approvals=shown(first, second))
    left = shown(first)
    left[0].earlier = True
    await ana.say("yes", shown_approvals=left)
    assert (written(system, ana), await open_ones(ana)) == ("", 1)


async def test_the_same_message_again_is_the_same_turn_and_another_text_a_conflict(system: System, ana: Person) -> None:
    cards = await asked(ana, A, B)
    request_id = new_id("request")
    words = {"shown_approvals": shown(*cards), "request_id": request_id}
    one, other = [await ana.say("no to b.txt, yes to a.txt", **words) for _ in range(2)]
    assert one == other
    assert written(system, ana) == "a"
    with pytest.raises(grpc.aio.AioRpcError):
        await ana.say("yes to b.txt, no to a.txt", **words)


@pytest.mark.parametrize(
    "words",
    ["no to the second and write c.txt", 'write "yes to the first" to d.txt', "what is the first one?", "lee a.txt"],
)
async def test_words_about_something_else_answer_no_card(system: System, ana: Person, words: str) -> None:
    cards = await asked(ana, A, B)
    await ana.say(words, shown_approvals=shown(*cards))
    assert await open_ones(ana) >= 2 - words.startswith("no to the second")
    assert "a" not in written(system, ana)
    assert "b" not in written(system, ana)


async def test_another_persons_approval_is_not_answered_by_its_name(system: System, ana: Person) -> None:
    [other] = await asked(system.person(f"eve{next(_numbers)}", "local"), 'write "x" to e.txt')
    cards = await asked(ana, A, B)
    await ana.say("yes to e.txt, no to b.txt", shown_approvals=[*shown(other), *shown(*cards)])
    assert (written(system, ana), await open_ones(ana)) == ("", 1)


@pytest.mark.parametrize(
    ("requests", "words"), [((A, B), "yes to both"), ((EA, EB), "no a la primera, sí a la segunda")]
)
async def test_what_the_same_message_answers_is_not_asked_about(
    system: System, ana: Person, requests: tuple[str, str], words: str
) -> None:
    cards = await asked(ana, *requests)
    count = len(await ana.transcript())
    await ana.say(words, shown_approvals=shown(*cards))
    told = [text for _, text in (await ana.transcript())[count:]]
    assert not [text for text in told if "still need" in text or "Aún espero" in text]


@pytest.mark.parametrize("words", ["yes to the file, no to the email", "sí a la segunda", "yes to 2"])
async def test_an_unclear_answer_to_the_only_one_is_asked_about_wherever_it_stands(
    system: System, ana: Person, words: str
) -> None:
    [card] = await asked(ana, A)
    await ana.say("send an email to ana@example.org saying hi")  # a later run, which asks nothing that a yes is for
    told = await ana.say(words, shown_approvals=shown(card))
    assert (written(system, ana), await open_ones(ana)) == ("", 1)
    assert "a.txt" in told.reply.text
    await ana.say("yes to a.txt", shown_approvals=shown(card))
    assert written(system, ana) == "a"
