"""Budget usage over time: a call counts once, when it is redeemed, and is never refunded."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa
from phylactery.riskgate.v1 import riskgate_pb2, types_pb2
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_riskgate.decisions.usage import KEEP_SECONDS, recorded_usage
from phylactery_riskgate.domain.bundle.bundle import load_bundle
from phylactery_riskgate.domain.model import Caller, CallSite, RawCall
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.store import usage as usage_rows
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.decisions import find_decision

MONEY = Path(__file__).parents[1] / "money_bundle"
DAY = 86_400
ALLOW, BLOCKED = types_pb2.DECISION_ALLOW, types_pb2.DECISION_BLOCKED

Paying = Callable[..., Awaitable[riskgate_pb2.RedeemResponse]]


def transfer(number: int, amount: float = 100, to: str = "bob", **more: str) -> types_pb2.ToolCall:
    arguments = json.dumps({"to": to, "amount": amount, **more})
    return types_pb2.ToolCall(tool="transfer", tool_call_id=f"c{number}", arguments_json=arguments)


def notify(number: int, *to: str) -> types_pb2.ToolCall:
    return types_pb2.ToolCall(tool="notify", tool_call_id=f"n{number}", arguments_json=json.dumps({"to": list(to)}))


@pytest.fixture
async def gate(make_gate):
    return await make_gate(bundle=MONEY)


@pytest.fixture
def pay(ana) -> Paying:
    """Propose a transfer and redeem what it got, each in a thread of its own, which only the daily budget spans."""

    async def run(number: int, amount: float = 100, to: str = "bob", **more: Any) -> riskgate_pb2.RedeemResponse:
        who = more.pop("who", ana)
        asked, place = transfer(number, amount, to, **more), {"thread": f"t{number}", "run": f"r{number}"}
        answer = await who.evaluate(asked, **place)
        assert answer.decision == ALLOW, answer.reasons
        return await who.redeem(answer.permit, asked, execution=f"execution-{number}", **place)

    return run


async def blocked_by(who, asked, **place: str) -> list[tuple[str, str]]:
    """Return why a call is blocked, empty where it is not."""
    answer = await who.evaluate(asked, **place)
    return [(one.code, one.message) for one in answer.reasons] if answer.decision == BLOCKED else []


NO_ROOM = [("BUDGET_EXCEEDED", "The budget daily does not cover this amount.")]


# ---- when a call counts ---------------------------------------------------------------------------------------------


async def test_a_permit_counts_nothing_and_the_second_redeem_over_the_budget_is_refused(gate, ana, refused):
    asked = [transfer(number, 450) for number in range(3)]
    answers = [await ana.evaluate(one) for one in asked]
    assert [answer.decision for answer in answers] == [ALLOW] * 3
    assert gate.count("usage_calls") == 0
    await ana.redeem(answers[0].permit, asked[0], execution="execution-0")
    # with one counted, the policy over the sum wants somebody else: the decision of before does not stand
    refusal = await refused(ana.redeem(answers[1].permit, asked[1], execution="execution-1"))
    assert (refusal.reason, refusal.metadata["decision"]) == ("POLICY_CHANGED", "AUTH_REQUIRED")
    assert gate.count("redemptions") == 1


async def test_a_redeem_past_a_limit_says_which_budget_and_is_recorded_with_what_it_was_told(gate, ana, refused):
    asked = [notify(number, "bob") for number in range(5)]
    answers = [await ana.evaluate(one) for one in asked]
    for number in range(4):
        await ana.redeem(answers[number].permit, asked[number], execution=f"execution-{number}")
    refusal = await refused(ana.redeem(answers[4].permit, asked[4], execution="execution-4"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "BUDGET_EXCEEDED")
    assert refusal.metadata == {"factor": "budget", "budget": "pace"}
    assert "The budget pace has no calls left." in refusal.message
    record = gate.records("redeem_refused")[-1]
    assert (record["failed"], record["reason"]) == (["budget"], "BUDGET_EXCEEDED")
    assert list(record["values"]) == ["/usage/pace"]


async def test_a_call_redeemed_with_its_decision_counts_and_one_past_the_limit_is_blocked(gate, ana):
    for number, amount, decision in ((1, 100, ALLOW), (2, 901, BLOCKED), (3, 100, ALLOW)):
        place = {"thread": f"t{number}", "run": f"r{number}", "execution_id": f"execution-{number}"}
        answer = await ana.evaluate(transfer(number, amount), **place)
        assert (answer.decision, answer.HasField("redemption")) == (decision, decision == ALLOW)
    assert gate.count("redemptions") == len(gate.records("redeemed")) == 2
    assert await blocked_by(ana, transfer(4, 801), thread="t4", run="r4") == NO_ROOM


async def test_the_same_execution_redeems_again_and_counts_once(gate, ana, pay):
    first = await pay(1)
    answer = await ana.evaluate(transfer(1), thread="t1", run="r1")
    assert answer.replayed
    again = await ana.redeem(answer.permit, transfer(1), execution="execution-1", thread="t1", run="r1")
    assert again.receipt == first.receipt
    assert (gate.count("usage_calls"), gate.count("usage_recipients")) == (2, 2)  # in two budgets each


async def test_an_evaluate_asked_twice_and_a_permit_that_expired_count_nothing(gate, ana, refused):
    answer = await ana.evaluate(transfer(1))
    assert (await ana.evaluate(transfer(1))).decision_id == answer.decision_id
    gate.clock.advance(61)
    assert (await refused(ana.redeem(answer.permit, transfer(1)))).reason == "PERMIT_EXPIRED"
    assert gate.count("usage_calls") == 0
    fresh = await ana.evaluate(transfer(1))
    await ana.redeem(fresh.permit, transfer(1))
    assert gate.count("usage_calls") == 2


async def test_what_failed_or_is_in_doubt_stays_counted(gate, ana, pay):
    for number, outcome in enumerate(("FAILED", "IN_DOUBT")):
        await pay(number, 250)
        await ana.report(outcome, execution=f"execution-{number}")
    assert await blocked_by(ana, transfer(9, 500.01), thread="t9") == NO_ROOM


async def test_an_approval_that_waited_does_not_open_a_budget_that_was_used_up_meanwhile(gate, ana, pay, refused):
    waiting = (await ana.evaluate(transfer(1, 600), thread="t1", run="r1")).approval
    assert waiting.approval_class == "peer"
    await gate.person("carla").approve(waiting)
    permitted = await ana.evaluate(transfer(1, 600), thread="t1", run="r1", approval=waiting.id)
    assert permitted.decision == ALLOW
    await pay(2, 401)
    refusal = await refused(ana.redeem(permitted.permit, transfer(1, 600), thread="t1", run="r1"))
    assert (refusal.reason, refusal.metadata["budget"]) == ("BUDGET_EXCEEDED", "daily")
    assert (await ana.get(waiting.id)).state == types_pb2.APPROVAL_STATE_APPROVED
    other = (await ana.evaluate(transfer(3, 599), thread="t3", run="r3")).approval
    await gate.person("carla").approve(other)
    await pay(4, 1)
    late = await ana.evaluate(transfer(3, 599), thread="t3", run="r3", approval=other.id)
    assert late.decision == BLOCKED
    assert [reason.code for reason in late.reasons] == ["BUDGET_EXCEEDED"]


async def test_a_store_that_fails_when_it_counts_redeems_nothing(gate, ana, refused):
    answer = await ana.evaluate(transfer(1))
    gate.fail_writes("usage_calls")
    assert (await refused(ana.redeem(answer.permit, transfer(1)))).code == grpc.StatusCode.UNAVAILABLE
    assert gate.count("redemptions") == gate.count("usage_calls") == gate.count("usage_recipients") == 0
    gate.database.write_sync(lambda c: c.execute(sa.text("DROP TRIGGER no_rows")))
    assert (await ana.redeem(answer.permit, transfer(1))).receipt
    assert gate.count("usage_calls") == 2


# ---- whose it is ----------------------------------------------------------------------------------------------------


async def test_users_and_tenants_have_counters_of_their_own(gate, ana, pay):
    await pay(1, 500)
    assert await blocked_by(ana, transfer(2, 600), thread="t2") == NO_ROOM
    for person in (gate.person("ben"), gate.person("zoe"), gate.through_agent("ana", tenant="zeta")):
        assert await blocked_by(person, transfer(3, 600), thread="t3") == []
    through = gate.through_agent("ana")
    assert await blocked_by(through, transfer(4, 600), thread="t4") == NO_ROOM


async def test_a_thread_is_its_users_and_a_budget_counts_all_its_tools_together(gate, ana):
    ben = gate.person("ben")
    for number in range(4):
        asked = transfer(number, 1) if number % 2 else notify(number, "bob")
        answer = await ana.evaluate(asked)
        await ana.redeem(answer.permit, asked, execution=f"execution-{number}")
    assert await blocked_by(ana, notify(9, "bob")) == [("BUDGET_EXCEEDED", "The budget pace has no calls left.")]
    assert await blocked_by(ana, notify(9, "bob"), thread="t2", run="r2") == []
    assert await blocked_by(ben, notify(9, "bob")) == []


async def test_every_currency_has_a_sum_of_its_own_and_calls_count_together(gate, ana, pay):
    await pay(1, 500)
    await pay(2, 500, currency="USD")
    assert await blocked_by(ana, transfer(3, 600), thread="t3") == NO_ROOM
    assert await blocked_by(ana, transfer(4, 600, currency="USD"), thread="t4") == NO_ROOM
    for number in range(5, 8):
        await pay(number, 0)
    assert await blocked_by(ana, transfer(9, 0), thread="t9") == [
        ("BUDGET_EXCEEDED", "The budget daily has no calls left.")
    ]


async def test_a_recipient_counts_once_and_one_too_many_is_refused(gate, ana, pay):
    for number, name in enumerate(("bob", "eve", "kim")):
        answer = await ana.evaluate(transfer(number, 1, name), thread=f"t{number}", run=f"r{number}")
        if number:
            approval = await ana.approve(answer.approval)
            answer = await ana.evaluate(
                transfer(number, 1, name), thread=f"t{number}", run=f"r{number}", approval=approval.id
            )
        place = {"thread": f"t{number}", "run": f"r{number}"}
        await ana.redeem(answer.permit, transfer(number, 1, name), execution=f"execution-{number}", **place)
    await pay(4, 1, "eve")
    assert gate.count("usage_recipients WHERE budget = 'daily'") == 3
    assert await blocked_by(ana, transfer(5, 1, "max"), thread="t5") == [
        ("BUDGET_EXCEEDED", "The budget daily allows no more recipients.")
    ]


# ---- time -----------------------------------------------------------------------------------------------------------


async def test_a_window_rolls_to_the_microsecond(gate, ana, pay):
    await pay(1, 500)
    gate.clock.advance(DAY - 1 / MICROSECONDS)
    assert await blocked_by(ana, transfer(2, 501), thread="t2") == NO_ROOM
    gate.clock.advance(1 / MICROSECONDS)
    assert await blocked_by(ana, transfer(3, 501), thread="t3") == []
    await pay(4, 500)
    assert gate.count("usage_calls") == 3  # the day's first call is forgotten, and the thread's is its own


async def test_a_clock_that_is_set_back_gives_nothing_back_and_frees_nothing_early(gate, ana, pay):
    await pay(1, 500)
    gate.clock.advance(-3600)
    assert await blocked_by(ana, transfer(2, 501), thread="t2") == NO_ROOM
    await pay(3, 0)
    gate.clock.advance(DAY)
    assert await blocked_by(ana, transfer(4, 501), thread="t4") == NO_ROOM
    gate.clock.advance(3600)
    assert await blocked_by(ana, transfer(5, 501), thread="t5") == []


async def test_a_clock_that_ran_ahead_and_was_set_right_has_not_opened_the_window_again(gate, ana, pay):
    await pay(1, 500)
    gate.clock.advance(DAY - 3600)
    await pay(2, 0)
    await gate.riskgate.housekeeping.prune_usage()
    gate.clock.advance(-DAY)
    assert await blocked_by(ana, transfer(3, 501), thread="t3") == NO_ROOM


# ---- what is kept ---------------------------------------------------------------------------------------------------


async def test_who_was_paid_and_how_much_is_in_no_record_and_no_row_in_plain_text(gate, ana, pay):
    await pay(1, 77.25, "sesame-bob")
    stored = b"".join(path.read_bytes() for path in gate.folder.glob("riskgate.db*"))
    assert b"sesame-bob" not in stored
    assert b"77.25" not in stored
    rows = gate.database.read_sync(lambda c: c.execute(sa.text("SELECT * FROM usage_recipients")).mappings().all())
    assert [len(row["recipient"]) for row in rows] == [64, 64]
    for record in gate.records("decision", "redeemed"):
        assert {"/usage/daily", "/usage/pace"} <= set(record["values"])


async def test_one_recipient_is_hashed_apart_under_every_key(gate, pay):
    await pay(1, 1, "eve")
    await pay(2, 1, "eve", who=gate.person("ben"))
    rows = gate.database.read_sync(
        lambda c: c.execute(sa.text("SELECT recipient FROM usage_recipients")).scalars().all()
    )
    assert len(rows) == len(set(rows)) == 4


async def test_the_recorded_facts_decide_the_same_again(gate, ana, pay):
    await pay(1, 450)
    answer = await ana.evaluate(transfer(2, 100), thread="t2", run="r2")
    assert answer.approval.approval_class == "peer"
    record = gate.records("decision")[-1]
    stored = gate.database.read_sync(lambda c: find_decision(c, "acme", answer.decision_id))
    place = Place(stored.audit_log, stored.audit_index)
    values = gate.database.read_sync(lambda c: gate.riskgate.audit.values(c, "acme", place))
    counted = recorded_usage(values)
    assert (counted["daily"].calls, counted["daily"].amount) == (1, 4_500_000)
    verdict = DecisionEngine(load_bundle(MONEY)).decide(
        RawCall("transfer", "c2", arguments_json='{"to":"bob","amount":100}'),
        Caller("ana", "acme"),
        CallSite("t2", "r2"),
        usage=lambda _tool, _charge: counted,
    )
    assert (str(verdict.decision), list(verdict.policy_ids)) == (record["decision"], record["policy_ids"])


async def test_what_left_its_window_a_day_ago_is_pruned_and_nothing_else(gate, pay):
    await pay(1)
    assert gate.count("usage_calls") == 2
    gate.clock.advance(60 + KEEP_SECONDS)
    assert await gate.riskgate.housekeeping.prune_usage() == 0
    gate.clock.advance(1)
    # the call and its recipient, which the pace of a minute counted
    assert await gate.riskgate.housekeeping.prune_usage() == 2
    gate.clock.advance(DAY)
    assert await gate.riskgate.housekeeping.prune_usage() == 2
    assert gate.count("usage_calls") == gate.count("usage_recipients") == 0


async def test_sums_of_the_largest_amounts_do_not_overflow(gate):
    at = usage_rows.CounterKey("acme", "daily", "k")
    largest = 2**63 - 1

    def count(connection: sa.Connection) -> usage_rows.Counted:
        for number in range(5):
            call = usage_rows.CallCount(f"rc-{number}", 10, 20, "eur", largest)
            usage_rows.count_call(connection, at, call, ["a", "b"])
        return usage_rows.counted_since(connection, at, 0, "eur", ["b", "c"])

    assert gate.database.write_sync(count) == usage_rows.Counted(5, 5 * largest, 2, 1)


# ---- what is asked about together -----------------------------------------------------------------------------------


async def test_a_call_that_the_budget_does_not_cover_beside_what_waits_is_not_asked_about_yet(gate, ana, refused, pay):
    await pay(0, 100)
    place = {"thread": "t", "run": "r"}
    first = await ana.evaluate(transfer(1, 450, "eve"), **place)
    assert first.decision == types_pb2.DECISION_AUTH_REQUIRED
    for number, amount in ((2, 460), (3, 900)):
        refusal = await refused(ana.evaluate(transfer(number, amount, "joe"), **place))
        assert (refusal.reason, refusal.metadata["per"]) == ("TOO_MANY_PENDING", "run")
    # what fits, and what another run proposes, is asked about as ever
    for number, asked in enumerate((transfer(4, 300, "joe"), transfer(5, 461, "joe"), transfer(6, 462, "joe")), 1):
        at = place if number == 1 else {"thread": f"t{number}", "run": f"r{number}"}
        assert (await ana.evaluate(asked, **at)).decision == types_pb2.DECISION_AUTH_REQUIRED
        await ana.reject((await ana.evaluate(asked, **at)).approval.id, thread=at["thread"])
    await ana.reject(first.approval.id, thread="t")
    assert (await ana.evaluate(transfer(2, 460, "joe"), **place)).decision == types_pb2.DECISION_AUTH_REQUIRED
