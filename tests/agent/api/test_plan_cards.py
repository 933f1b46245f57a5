"""One question a turn: the calls that wait for one person are one card, and exactly what was said yes to runs."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio
from phylactery.agent.v1 import chat_pb2
from phylactery.riskgate.v1 import approval_pb2
from phylactery_chassis.util.ids import new_id
from phylactery_client.cards import in_order
from phylactery_client.decode import decode
from phylactery_client.results import PendingApproval

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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("plans")
    bundle = asks_first(folder / "bundle")
    (bundle / "policies" / "peer.cedar").write_text(_PEER, encoding="utf-8")
    async with open_system(folder, bundle=bundle) as opened:
        yield opened


@pytest.fixture
def ana(system: System) -> Person:
    return system.person(f"ana{next(_numbers)}", "local")


def writes(*names: str) -> str:
    return " and ".join(f'write "{name}" to {name}.txt' for name in names)


def calls(card: Any) -> list[Any]:
    return [card, *card.also]


def paths(card: Any) -> list[str]:
    return [next(one.display.strip('"') for one in call.arguments if one.path == "/path") for call in calls(card)]


def shown(each: Sequence[Any], **changed: str) -> list[chat_pb2.ShownApproval]:
    return [
        chat_pb2.ShownApproval(approval_id=one.approval_id, args_hash=changed.get(one.approval_id, one.args_hash))
        for one in each
    ]


def files(system: System, person: Person) -> set[str]:
    subject, tenant = (value for _, value in person.metadata)
    folder = system.sandbox_of(subject, tenant)
    found = folder.rglob("*") if folder.exists() else ()
    return {path.stem for path in found if path.is_file() and path.name != "welcome.txt"}


async def asked(person: Person, text: str) -> Any:
    return (await person.say(text)).pending_approval


async def withdraw(person: Person, call: Any) -> None:
    request = approval_pb2.CancelRequest(approval_id=call.approval_id)
    await person.approvals.Cancel(request, metadata=person.metadata, timeout=60)


# ---- what is one card -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 5, 8])
async def test_up_to_eight_calls_are_one_question_and_a_yes_runs_each_once(
    system: System, ana: Person, count: int
) -> None:
    names = "abcdefgh"[:count]
    card = await asked(ana, writes(*names))
    assert paths(card) == [f"{name}.txt" for name in names]
    assert len({one.args_hash for one in calls(card)}) == count
    answered = await ana.say("yes", shown_approvals=shown(calls(card)))
    assert answered.run.status == DONE
    assert files(system, ana) == set(names)


async def test_more_than_eight_are_asked_about_one_by_one(system: System, ana: Person) -> None:
    card = await asked(ana, writes(*"abcdefghi"))
    assert paths(card) == ["a.txt"]
    assert paths((await ana.say("yes", shown_approvals=shown(calls(card)))).pending_approval)[0] == "b.txt"
    assert files(system, ana) == {"a"}


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_what_is_not_shown_whole_makes_each_a_question_of_its_own(
    system: System, ana: Person, place: int
) -> None:
    asks = [f'write "{name}" to {name}.txt' for name in "abc"]
    asks[place] = f'write "{"long text " * 300}" to {"abc"[place]}.txt'
    turn = await ana.say(" and ".join(asks))
    for names in ("a", "bc") if place == 0 else "abc":  # behind the long one the rest is one question again
        card = turn.pending_approval
        assert paths(card) == [f"{name}.txt" for name in names]
        assert files(system, ana) == set("abc"[: "abc".index(names[0])])
        turn = await ana.say("yes", shown_approvals=shown(calls(card)))
    assert files(system, ana) == set("abc")


@pytest.mark.parametrize("between", ["remember that I prefer tea", "list my files"])
async def test_what_needs_no_answer_does_not_split_the_question(system: System, ana: Person, between: str) -> None:
    card = await asked(ana, f'write "a" to a.txt, then {between}, then write "b" to b.txt')
    assert paths(card) == ["a.txt", "b.txt"]
    answered = await ana.say("yes", shown_approvals=shown(calls(card)))
    assert (answered.run.status, files(system, ana)) == (DONE, {"a", "b"})


async def test_nothing_is_asked_about_behind_what_a_policy_refuses(system: System, ana: Person) -> None:
    card = await asked(ana, 'write "a" to a.txt and write "x" to ../outside.txt and write "b" to b.txt')
    assert paths(card) == ["a.txt"]
    told = await ana.say("yes", shown_approvals=shown(calls(card)))
    assert not told.HasField("pending_approval")
    assert files(system, ana) == {"a"}
    assert "b.txt" in told.reply.text


async def test_what_somebody_else_approves_is_on_no_card_of_the_person(system: System, ana: Person) -> None:
    card = await asked(ana, 'write "a" to a.txt and write "p" to plans.txt and write "b" to b.txt')
    assert paths(card) == ["a.txt"]
    after = await ana.say("yes", shown_approvals=shown(calls(card)))
    assert (after.pending_approval.approval_class, after.run.status) == ("peer", SUSPENDED)
    assert files(system, ana) == {"a"}


async def test_what_is_of_high_stakes_is_shown_first_and_places_are_those_that_were_shown(
    system: System, ana: Person
) -> None:
    card = await asked(ana, 'write "a" to a.txt and write "all:" to Makefile and write "b" to b.txt')
    assert paths(card) == ["a.txt", "Makefile", "b.txt"]
    assert [one.stakes for one in calls(card)] == ["low", "high", "low"]
    order = in_order(decode(PendingApproval, card))
    assert [one.approval_id for one in order] == [calls(card)[at].approval_id for at in (1, 0, 2)]
    told = await ana.say("yes to the first, no to the second", shown_approvals=shown(order))
    assert files(system, ana) == {"Makefile"}
    assert paths(told.pending_approval) == ["b.txt"]


@pytest.mark.parametrize("later", [False, True])
async def test_what_waits_is_named_in_the_order_in_which_it_is_shown(ana: Person, later: bool) -> None:
    await asked(ana, 'write "a" to a.txt and write "all:" to Makefile and write "b" to b.txt')
    if later:
        await ana.say("what time is it?")
    told = (await ana.say("what is waiting?" if later else "both")).reply.text
    assert told.index("Makefile") < told.index("a.txt") < told.index("b.txt")


async def test_places_name_nothing_where_the_order_is_another_than_the_agents(system: System, ana: Person) -> None:
    card = await asked(ana, 'write "a" to a.txt and write "all:" to Makefile')
    told = await ana.say("yes to the first, no to the second", shown_approvals=shown(calls(card)))
    assert files(system, ana) == set()
    assert told.pending_approval.approval_id


# ---- answered in part -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "run"),
    [
        ("yes to a.txt and c.txt, no to b.txt", {"a", "c"}),
        ("no to a.txt, yes to b.txt and c.txt", {"b", "c"}),
        ("yes to the first, no to the second and the third", {"a"}),
        ("no to all", set()),
    ],
)
async def test_a_plan_that_is_answered_in_part_runs_that_part_and_names_the_rest(
    system: System, ana: Person, words: str, run: set[str]
) -> None:
    card = await asked(ana, writes(*"abc"))
    told = await ana.say(words, shown_approvals=shown(calls(card)))
    assert files(system, ana) == run
    for name in {"a", "b", "c"} - run if run else ():
        assert f"{name}.txt" in told.reply.text


@pytest.mark.parametrize("gone", [0, 1, 2])
async def test_what_was_withdrawn_does_not_run_and_is_named(system: System, ana: Person, gone: int) -> None:
    card = await asked(ana, writes(*"abc"))
    await withdraw(ana, calls(card)[gone])
    told = await ana.say("yes", shown_approvals=shown(calls(card)))
    assert "abc"[gone] not in files(system, ana)
    # withdrawn behind the agent's back, the call that the run waits for leaves the answer unclear
    assert files(system, ana) == ({*"abc"} - {"abc"[gone]} if gone else set())
    assert f"{'abc'[gone]}.txt" in told.reply.text


@pytest.mark.parametrize("which", [0, 1, 2])
async def test_a_step_that_is_another_than_the_one_that_was_shown_takes_no_yes(
    system: System, ana: Person, which: int
) -> None:
    card = await asked(ana, writes(*"abc"))
    changed = {calls(card)[which].approval_id: "sha256:" + 64 * "0"}
    told = await ana.say("yes", shown_approvals=shown(calls(card), **changed))
    assert (files(system, ana), told.run.status) == (set(), SUSPENDED)


async def test_a_yes_to_some_of_it_by_a_button_is_no_yes_to_the_rest(system: System, ana: Person) -> None:
    card = await asked(ana, writes(*"abc"))
    first, second, third = calls(card)
    request = chat_pb2.AnswerApprovalRequest(
        request_id=new_id("request"),
        approval_id=first.approval_id,
        args_hash=first.args_hash,
        approve=True,
        also=shown([second]),
    )
    with pytest.raises(Exception, match="not what was shown"):
        await ana.chat.AnswerApproval(request, metadata=ana.metadata, timeout=60)
    assert files(system, ana) == set()
    assert third.approval_id


async def test_what_expired_does_not_run_whatever_was_said_to_it(system: System, ana: Person) -> None:
    card = await asked(ana, writes(*"abc"))
    system.clock.advance(601)
    told = await ana.say("yes", shown_approvals=shown(calls(card)))
    assert files(system, ana) == set()
    assert "a.txt" in told.reply.text
    for one in calls(card):
        await ana.say(f"APPROVE {one.approval_id} {one.code}")
    assert files(system, ana) == set()


# ---- why ------------------------------------------------------------------------------------------------------------


async def test_each_call_says_why_it_asks_in_the_language_of_its_card(system: System, ana: Person) -> None:
    card = await asked(ana, 'escribe "pagado con 4111 1111 1111 1111" en a.txt y escribe "dos" en b.txt')
    assert [one.language for one in calls(card)] == ["es", "es"]
    assert "Contiene un número de tarjeta." in list(card.why)
    assert "Contiene un número de tarjeta." not in list(card.also[0].why)
    assert list(card.also[0].why) == ["Antes de escribir siempre se pregunta."]
    assert not any("There is" in one for call in calls(card) for one in call.why)


async def test_why_it_asks_is_stored_nowhere_by_the_agent(system: System, ana: Person) -> None:
    card = await asked(ana, 'write "paid with 4111 1111 1111 1111" to a.txt')
    assert list(card.why)
    stored = b"".join(path.read_bytes() for path in (system.folder / "agent").rglob("*") if path.is_file())
    assert b"card number in it" not in stored
