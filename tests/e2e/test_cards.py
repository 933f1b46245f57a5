"""One card for the calls of one turn, answered in a person's own words, over the real services."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import grpc
import pytest
from phylactery.agent.v1 import event_pb2, run_pb2, run_pb2_grpc
from phylactery.riskgate.v1 import approval_pb2, approval_pb2_grpc, types_pb2
from phylactery_cli.supervisor import Stack, running

from tests.support.processes.shared import Tenant
from tests.support.processes.stack import (
    FREE_PORTS,
    ForkedStack,
    Person,
    await_death,
    lines,
    relaunch,
    sandbox,
)
from tests.support.riskgate.asking_bundle import asks_first

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cards"), pytest.mark.timeout(300)]
WAITS, DONE = event_pb2.RUN_STATUS_SUSPENDED, event_pb2.RUN_STATUS_DONE
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("cards")
    asking = {"riskgate": {"RISKGATE_BUNDLE": str(asks_first(folder / "bundle"))}}
    with running(ForkedStack(folder / "data", FREE_PORTS, extra_env=asking)) as started:
        yield started


@pytest.fixture
def ana(stack: Stack) -> Iterator[Person]:
    with Person(stack, "local", thread=f"cards-{next(_NUMBERS)}") as person:
        yield person


def two(person: Person) -> tuple[event_pb2.ApprovalRequired, str, str]:
    """Ask for two writes; return the card and the files they go to."""
    one, other = f"{person.thread}-a.txt", f"{person.thread}-b.txt"
    card = person.say(f'append "one" to {one} and append "two" to {other}').pending_approval
    return card, one, other


def shown(card: event_pb2.ApprovalRequired) -> dict[str, str]:
    return {one.approval_id: one.args_hash for one in (card, *card.also)}


def there(person: Person, *names: str) -> list[str]:
    return [name for name in names if (sandbox(person.stack, person.subject) / name).exists()]


def states(person: Person, card: event_pb2.ApprovalRequired) -> set[str]:
    stub = approval_pb2_grpc.ApprovalServiceStub(person.channel("riskgate"))
    found = [
        stub.GetApproval(approval_pb2.GetApprovalRequest(approval_id=name), metadata=person.metadata, timeout=60)
        for name in shown(card)
    ]
    return {types_pb2.ApprovalState.Name(one.approval.state).removeprefix("APPROVAL_STATE_") for one in found}


@pytest.mark.parametrize("words", ["sí, dale", "yes please", "👍"])
def test_one_clear_yes_runs_every_call_of_the_card_once(ana: Person, words: str):
    card, one, other = two(ana)
    assert [argument.display for argument in card.arguments if argument.path == "/path"] == [f'"{one}"']
    assert [argument.display for argument in card.also[0].arguments if argument.path == "/path"] == [f'"{other}"']
    assert there(ana, one, other) == []
    answer = ana.say(words, shown=shown(card))
    assert (answer.run.status, answer.HasField("pending_approval")) == (DONE, False)
    assert (lines(ana.stack, one, ana.subject), lines(ana.stack, other, ana.subject)) == (["one"], ["two"])
    assert states(ana, card) == {"REDEEMED"}


def test_the_same_request_again_answers_the_same_and_answers_nothing_a_second_time(ana: Person):
    card, one, other = two(ana)
    first = ana.say("ok", shown=shown(card), request_id=f"again-{ana.thread}")
    again = ana.say("ok", shown=shown(card), request_id=f"again-{ana.thread}")
    assert (first.run.id, first.reply.text) == (again.run.id, again.reply.text)
    assert (lines(ana.stack, one, ana.subject), lines(ana.stack, other, ana.subject)) == (["one"], ["two"])
    with pytest.raises(grpc.RpcError) as caught:
        ana.say("ok", request_id=f"again-{ana.thread}")
    assert caught.value.code() == grpc.StatusCode.ALREADY_EXISTS


def test_one_clear_no_rejects_every_call_of_the_card(ana: Person):
    card, one, other = two(ana)
    assert ana.say("mejor no", shown=shown(card)).run.status == DONE
    assert (there(ana, one, other), states(ana, card)) == ([], {"REJECTED"})


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (
            "yes, but make it 5",
            "2 actions are waiting for your yes or no: “append",
        ),
        ("sí, mañana", "2 acciones esperan tu sí o tu no"),
        ("jajaja sí claro", "2 acciones esperan tu sí o tu no"),
        ("thanks", "You're welcome.\n\n2 actions are waiting for your yes or no"),
        ("yes?", "2 actions are waiting for your yes or no"),
    ],
)
def test_an_unclear_answer_changes_nothing_and_says_what_waits(ana: Person, words: str, asked: str):
    card, one, other = two(ana)
    answer = ana.say(words, shown=shown(card))
    assert asked in answer.reply.text
    assert "ap_" not in answer.reply.text
    assert shown(ana.standing().pending_approval) == shown(card)
    assert (there(ana, one, other), states(ana, card)) == ([], {"PENDING"})


def test_a_yes_answers_nothing_where_the_caller_does_not_say_what_it_showed(ana: Person):
    card, one, other = two(ana)
    assert ana.say("yes").run.status == WAITS
    assert (there(ana, one, other), states(ana, card)) == ([], {"PENDING"})


def test_a_yes_answers_nothing_but_all_that_waits_with_the_hashes_it_has(ana: Person):
    card, one, other = two(ana)
    whole, wrong = shown(card), "sha256:" + "0" * 64
    for told in (
        {card.approval_id: whole[card.approval_id]},  # one of two
        {**whole, card.approval_id: wrong},  # other arguments
        {**whole, "ap_of_another_card": wrong},  # something that is not on it
    ):
        assert ana.say("yes", shown=told).run.status == WAITS
    assert (there(ana, one, other), states(ana, card)) == ([], {"PENDING"})


def test_a_card_that_is_not_the_newest_is_answered_by_nothing(ana: Person):
    card, one, other = two(ana)
    left = ana.say(f"APPROVE {card.approval_id} {card.code}").pending_approval
    assert there(ana, one, other) == [one]
    assert list(shown(left)) == [card.also[0].approval_id]
    assert ana.say("yes", shown=shown(card)).run.status == WAITS
    assert ana.say("yes", shown=shown(left)).run.status == DONE
    assert there(ana, one, other) == [one, other]


def test_nobody_answers_for_somebody_else(stack: Stack, ana: Person):
    card, one, other = two(ana)
    with Person(stack, "eve", thread=ana.thread) as eve:
        eve.say("yes", shown=shown(card))
    assert (there(ana, one, other), states(ana, card)) == ([], {"PENDING"})


def test_a_rejected_call_leaves_the_others_of_the_card_to_be_answered(ana: Person):
    card, one, other = two(ana)
    left = ana.say(f"REJECT {card.approval_id}").pending_approval
    assert list(shown(left)) == [card.also[0].approval_id]
    assert ana.say("dale", shown=shown(left)).run.status == DONE
    assert there(ana, one, other) == [other]


def test_a_run_that_is_cancelled_withdraws_the_whole_card(ana: Person):
    card, _one, _other = two(ana)
    stub = run_pb2_grpc.RunServiceStub(ana.channel("agent"))
    run_id = ana.standing().last_run.id
    stub.CancelRun(run_pb2.CancelRunRequest(run_id=run_id), metadata=ana.metadata, timeout=60)
    ana.await_status(event_pb2.RUN_STATUS_CANCELLED)
    limit = time.monotonic() + 30
    while states(ana, card) != {"CANCELLED"}:  # RiskGate is told through the outbox
        assert time.monotonic() < limit, states(ana, card)
        time.sleep(0.05)


def test_no_code_of_a_card_is_in_the_agents_folder(stack: Stack, ana: Person):
    card, _one, _other = two(ana)
    codes = [one.code.encode() for one in (card, *card.also)]
    ana.say("yes", shown=shown(card))
    kept = [path for path in Path(stack.data_dir / "agent").rglob("*") if path.is_file()]
    assert all(code not in path.read_bytes() for path in kept for code in codes)


def test_shown_approvals_are_bounded(ana: Person):
    with pytest.raises(grpc.RpcError) as caught:
        ana.say("yes", shown={f"ap_{number}": "sha256:" + "0" * 64 for number in range(21)})
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("point", ["agent.5#2", "agent.8", "agent.10"])
def test_an_agent_killed_while_it_carries_a_card_out_does_each_of_it_once(
    new_tenant: Callable[..., Tenant], point: str
):
    tenant = new_tenant()
    dying = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as person:
        card, one, other = two(person)
        request_id = person.new_request_id()
        person.say_and_lose("sí, dale", request_id, shown=shown(card))
        await_death(dying, "agent")
        relaunch(dying, "agent")
        person.await_status(DONE)
        assert (tenant.lines(one), tenant.lines(other)) == (["one"], ["two"])
        again = person.say("sí, dale", request_id=request_id, shown=shown(card))
        assert [call.state for call in person.run(again.run.id).tool_calls] == ["finished", "finished"]
        assert states(person, card) == {"REDEEMED"}
