"""AnswerApproval: a yes or no to exactly one approval of the caller's own run, by its id and the hash shown."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import pytest_asyncio
from phylactery.agent.v1 import chat_pb2, event_pb2, run_pb2
from phylactery.riskgate.v1 import approval_pb2
from phylactery_chassis.util.ids import new_id

from tests.support.agent.system import DONE, SUSPENDED, Person, System, open_system, refused, runs_of
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
Code = grpc.StatusCode


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder = tmp_path_factory.mktemp("answers")
    bundle = asks_first(folder / "bundle")
    (bundle / "policies" / "peer.cedar").write_text(_PEER, encoding="utf-8")
    async with open_system(folder, bundle=bundle) as opened:
        yield opened


@pytest.fixture
def ana(system: System) -> Person:
    return system.person(f"ana{next(_numbers)}", "local")


async def asked(person: Person, text: str = 'write "hello" to a.txt', thread_id: str = "t1") -> Any:
    """Have something asked about, and return its card."""
    card = (await person.say(text, thread_id)).pending_approval
    assert card.args_hash
    return card


async def answer(
    person: Person, card: Any, *, approve: bool = True, request_id: str = "", **other: Any
) -> chat_pb2.AnswerApprovalResponse:
    values = {"approval_id": card.approval_id, "args_hash": card.args_hash, "approve": approve, **other}
    request = chat_pb2.AnswerApprovalRequest(request_id=request_id or new_id("request"), **values)
    return await person.chat.AnswerApproval(request, metadata=person.metadata, timeout=60)


def there(system: System, person: Person, name: str) -> bool:
    subject, tenant = (value for _, value in person.metadata)
    return (system.sandbox_of(subject, tenant) / name).exists()


async def refusal(person: Person, card: Any, **values: Any) -> tuple[Code, str, dict[str, str]]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answer(person, card, **values)
    found = refused(caught.value)
    return found.code, found.reason, found.metadata


@pytest.mark.parametrize(
    ("text", "approve", "reply"),
    [
        ('write "hello" to a.txt', True, "Saved"),
        ('write "hello" to a.txt', False, "All right, I won't."),
        ('escribe "hola" en a.txt', True, "Guardado"),
        ('escribe "hola" en a.txt', False, "De acuerdo, no lo hago."),
    ],
)
async def test_an_answer_resumes_the_run_that_asked_in_its_language(
    system: System, ana: Person, text: str, approve: bool, reply: str
) -> None:
    card = await asked(ana, text)
    answered = await answer(ana, card, approve=approve)
    assert (answered.run.id, answered.run.status) == (card.run_id, DONE)
    assert reply in answered.reply.text
    assert there(system, ana, "a.txt") is approve
    assert not answered.HasField("pending_approval")


async def test_a_typed_answer_goes_on_working_beside_it(system: System, ana: Person) -> None:
    card = await asked(ana)
    assert (await ana.say(f"APPROVE {card.approval_id} {card.code}")).run.status == DONE
    assert there(system, ana, "a.txt")


async def test_only_the_approval_that_was_named_is_answered(system: System, ana: Person) -> None:
    first = await asked(ana)
    second = await asked(ana, 'write "two" to b.txt')
    await answer(ana, first)
    assert (there(system, ana, "a.txt"), there(system, ana, "b.txt")) == (True, False)
    await answer(ana, second, approve=False)
    assert not there(system, ana, "b.txt")


async def test_each_call_of_a_card_is_answered_by_itself(system: System, ana: Person) -> None:
    card = await asked(ana, 'write "one" to a.txt and write "two" to b.txt')
    [other] = card.also
    left = await answer(ana, other)
    assert (left.run.status, left.pending_approval.approval_id) == (SUSPENDED, card.approval_id)
    await answer(ana, card, approve=False)
    assert (there(system, ana, "a.txt"), there(system, ana, "b.txt")) == (False, True)


async def test_the_same_request_again_is_the_same_turn_and_another_body_is_a_conflict(
    system: System, ana: Person
) -> None:
    card = await asked(ana, 'append "one line" to log.txt')
    first, again = [await answer(ana, card, request_id="answer-0001") for _ in range(2)]
    assert first == again
    conflict = await refusal(ana, card, request_id="answer-0001", approve=False)
    assert conflict[:2] == (Code.ALREADY_EXISTS, "REQUEST_CONFLICT")
    with pytest.raises(grpc.aio.AioRpcError):
        await ana.say("hello", request_id="answer-0001")
    subject = dict(ana.metadata)["x-phylactery-subject"]
    assert (system.sandbox_of(subject, "local") / "log.txt").read_text().splitlines() == ["one line"]


@pytest.mark.parametrize("both", [(True, True), (True, False), (False, False)])
async def test_of_two_devices_at_once_one_answer_holds(system: System, ana: Person, both: tuple[bool, bool]) -> None:
    card = await asked(ana, 'append "one line" to log.txt')
    answers = [answer(ana, card, approve=approve) for approve in both]
    done = await asyncio.gather(*answers, return_exceptions=True)
    taken = [approve for approve, one in zip(both, done, strict=True) if getattr(one, "run", None) is not None]
    assert taken, "one of them is taken"
    run = await ana.run(card.run_id)
    assert run.status == DONE
    name = system.sandbox_of(dict(ana.metadata)["x-phylactery-subject"], "local") / "log.txt"
    lines = name.read_text().splitlines() if name.exists() else []
    assert lines in (["one line"] * any(both), [] if not all(both) else ["one line"])


async def test_an_answer_that_is_not_waited_for_is_carried_out(system: System, ana: Person) -> None:
    card = await asked(ana)
    assert await answer(ana, card, no_wait=True) == chat_pb2.AnswerApprovalResponse()
    watched = ana.chat.WatchThread(chat_pb2.WatchThreadRequest(thread_id="t1"), metadata=ana.metadata, timeout=60)
    async for told in watched:
        if told.event.run_finished.status == DONE:
            break
    assert there(system, ana, "a.txt")


async def test_nobody_else_answers_not_even_whether_it_exists(system: System, ana: Person) -> None:
    card = await asked(ana)
    eve = system.person(f"eve{next(_numbers)}", "local")
    found = await refusal(eve, card)
    assert found == (Code.NOT_FOUND, "APPROVAL_NOT_FOUND", {"approval_id": card.approval_id})
    unknown = event_pb2.ApprovalRequired(approval_id="ap_none", args_hash=card.args_hash)
    assert (await refusal(eve, unknown))[:2] == found[:2]
    assert not there(system, ana, "a.txt")


@pytest.mark.parametrize("approve", [True, False])
async def test_another_hash_is_another_card(system: System, ana: Person, approve: bool) -> None:
    card = await asked(ana)
    found = await refusal(ana, card, args_hash="sha256:" + "0" * 64, approve=approve)
    assert found[:2] == (Code.FAILED_PRECONDITION, "APPROVAL_CHANGED")
    assert (await ana.run(card.run_id)).status == SUSPENDED


@pytest.mark.parametrize(
    ("how", "state"),
    [("yes", "REDEEMED"), ("no", "REJECTED"), ("withdrawn", "CANCELLED"), ("cancelled", "CANCELLED")],
)
async def test_what_is_decided_or_withdrawn_is_answered_no_more(
    system: System, ana: Person, how: str, state: str
) -> None:
    card = await asked(ana)
    match how:
        case "withdrawn":
            request = approval_pb2.CancelRequest(approval_id=card.approval_id, thread_id="t1")
            await ana.approvals.Cancel(request, metadata=ana.metadata)
        case "cancelled":
            request = run_pb2.CancelRunRequest(run_id=card.run_id)
            await runs_of(system).CancelRun(request, metadata=ana.metadata, timeout=60)
        case _:
            await answer(ana, card, approve=how == "yes")
    for approve in (True, False):
        found = await refusal(ana, card, approve=approve)
        assert found == (Code.FAILED_PRECONDITION, "APPROVAL_NOT_PENDING", {"state": state})
    assert there(system, ana, "a.txt") is (how == "yes")


async def test_what_expired_is_answered_no_more(system: System, ana: Person) -> None:
    card = await asked(ana)
    system.clock.advance(3_600)
    found = await refusal(ana, card)
    assert found == (Code.FAILED_PRECONDITION, "APPROVAL_NOT_PENDING", {"state": "EXPIRED"})


async def test_a_card_withdrawn_while_it_is_being_answered_runs_nothing(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look says PENDING, and RiskGate withdraws it before the turn that brings the answer is served."""
    card = await asked(ana)
    accept = system.agent.edge.accept

    async def withdrawn_first(incoming: Any) -> Any:
        request = approval_pb2.CancelRequest(approval_id=card.approval_id, thread_id="t1")
        await ana.approvals.Cancel(request, metadata=ana.metadata)
        return await accept(incoming)

    monkeypatch.setattr(system.agent.edge, "accept", withdrawn_first)
    answered = await answer(ana, card)
    assert answered.run.reason == "APPROVAL_CANCELLED"
    assert "cancelled" in answered.reply.text
    assert not there(system, ana, "a.txt")


async def test_of_what_another_person_approves_the_requester_says_no_alone(system: System, ana: Person) -> None:
    card = await asked(ana, 'write "hello" to plans.txt')
    assert card.approval_class == "peer"
    found = await refusal(ana, card)
    assert found[:2] == (Code.FAILED_PRECONDITION, "APPROVAL_OF_ANOTHER")
    assert (await ana.run(card.run_id)).status == SUSPENDED
    answered = await answer(ana, card, approve=False)
    assert answered.run.status == DONE, answered.reply.text
    assert not there(system, ana, "plans.txt")


@pytest.mark.parametrize(
    "text", ["remind me tomorrow at 9 am to call Ana", "recuérdame mañana a las 9 am llamar a Ana"]
)
async def test_a_guest_answers_what_is_asked_of_them(system: System, text: str) -> None:
    guest = system.person(f"wa:usr_{next(_numbers)}", "local")
    card = await asked(guest, text)
    assert (await answer(guest, card)).run.status == DONE
    assert "Ana" in (await guest.say("what reminders do I have?")).reply.text


async def test_no_code_is_kept_or_told(system: System, ana: Person) -> None:
    card = await asked(ana)
    answered = await answer(ana, card)
    assert card.code not in f"{answered}{await ana.transcript()}"
    assert card.code.encode() not in system.everything_stored()


BOTH = 'write "one" to a.txt and write "two" to b.txt'


def shown_as(card: Any) -> chat_pb2.ShownApproval:
    return chat_pb2.ShownApproval(approval_id=card.approval_id, args_hash=card.args_hash)


@pytest.mark.parametrize("approve", [True, False])
@pytest.mark.parametrize("turned", [False, True])
async def test_a_whole_card_is_answered_in_one_turn(system: System, ana: Person, approve: bool, turned: bool) -> None:
    card = await asked(ana, BOTH)
    first, other = (card.also[0], card) if turned else (card, card.also[0])
    answered = await answer(ana, first, approve=approve, also=[shown_as(other)])
    assert (answered.run.id, answered.run.status) == (card.run_id, DONE)
    assert [there(system, ana, name) for name in ("a.txt", "b.txt")] == [approve, approve]


@pytest.mark.parametrize("what", ["another card", "another hash", "one is answered", "one hash twice"])
async def test_what_is_not_exactly_the_card_that_was_shown_is_answered_not_even_in_part(
    system: System, ana: Person, what: str
) -> None:
    card = await asked(ana, BOTH)
    also = shown_as(card.also[0])
    reason = "APPROVAL_CHANGED"
    match what:
        case "another card":
            also = shown_as(await asked(ana, 'write "three" to c.txt'))
        case "another hash":
            also.args_hash = "sha256:" + "0" * 64
        case "one hash twice":
            also = chat_pb2.ShownApproval(approval_id=card.approval_id, args_hash="sha256:" + "0" * 64)
        case _:
            await answer(ana, card.also[0], approve=False)
            reason = "APPROVAL_NOT_PENDING"
    assert (await refusal(ana, card, also=[also]))[:2] == (Code.FAILED_PRECONDITION, reason)
    assert (await ana.run(card.run_id)).status == SUSPENDED
    assert not any(there(system, ana, name) for name in ("a.txt", "b.txt", "c.txt"))


async def show(person: Person, card: Any, **other: Any) -> event_pb2.ApprovalRequired:
    values = {"approval_id": card.approval_id, "args_hash": card.args_hash, **other}
    request = chat_pb2.ReadApprovalRequest(**values)
    return (await person.chat.ReadApproval(request, metadata=person.metadata, timeout=60)).approval


async def test_what_a_card_leaves_out_is_counted_and_shown_whole(system: System, ana: Person) -> None:
    value = "".join(f"line {number} " for number in range(600)) + "FIN"
    card = await asked(ana, f'write "{value}" to a.txt')
    by_path = {one.path: one for one in card.arguments}
    assert by_path["/path"].left_out == 0
    assert f"{by_path['/content'].left_out:,} characters left out" in by_path["/content"].display
    whole = await show(ana, card)
    assert [one.left_out for one in whole.arguments] == [0] * len(card.arguments)
    assert {one.path: one.display for one in whole.arguments}["/content"] == f'"{value}"'
    same = ("approval_id", "tool", "risk", "approval_class", "action", "run_id", "args_hash", "expire_time")
    assert [getattr(whole, name) for name in same] == [getattr(card, name) for name in same]
    assert (whole.code, list(whole.also)) == ("", [])
    assert (await ana.run(card.run_id)).status == SUSPENDED


async def test_each_call_of_a_card_is_shown_by_itself(system: System, ana: Person) -> None:
    card = await asked(ana, BOTH)
    for one, name in ((card, "a.txt"), (card.also[0], "b.txt")):
        whole = await show(ana, one)
        assert {argument.path: argument.display for argument in whole.arguments}["/path"] == f'"{name}"'


@pytest.mark.parametrize("who", ["another person", "another hash", "unknown"])
async def test_nothing_is_shown_of_what_was_not_shown_to_the_caller(system: System, ana: Person, who: str) -> None:
    card = await asked(ana)
    eve = system.person(f"eve{next(_numbers)}", "local")
    other = {"another hash": {"args_hash": "sha256:" + "0" * 64}, "unknown": {"approval_id": "ap_none"}}.get(who, {})
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await show(eve if who == "another person" else ana, card, **other)
    reason = "APPROVAL_CHANGED" if who == "another hash" else "APPROVAL_NOT_FOUND"
    assert refused(caught.value).reason == reason


@pytest.mark.parametrize("how", ["yes", "no", "expired", "withdrawn"])
async def test_what_waits_no_more_is_not_shown_any_more(how: str, system: System, ana: Person) -> None:
    card = await asked(ana)
    match how:
        case "expired":
            system.clock.advance(3_600)
        case "withdrawn":
            await runs_of(system).CancelRun(run_pb2.CancelRunRequest(run_id=card.run_id), metadata=ana.metadata)
        case _:
            await answer(ana, card, approve=how == "yes")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await show(ana, card)
    found = refused(caught.value)
    state = {"yes": "REDEEMED", "no": "REJECTED", "expired": "EXPIRED", "withdrawn": "CANCELLED"}[how]
    assert (found.reason, found.metadata) == ("APPROVAL_NOT_PENDING", {"state": state})
