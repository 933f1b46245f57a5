"""The lifecycle of an approval without a store: the transition table, the factors, and impossible transitions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_riskgate.approvals.model import (
    Answer,
    Approval,
    ApprovalEvent,
    ApprovalState,
    Factor,
    TransitionError,
    Use,
    advance,
    failed_factors,
    refusal,
    unusable_factors,
)

from tests.support.cases import each_case

FINAL = {ApprovalState.REDEEMED, ApprovalState.REJECTED, ApprovalState.EXPIRED, ApprovalState.CANCELLED}
APPROVAL = Approval(
    id="ap_1",
    tenant="acme",
    state=ApprovalState.PENDING,
    approval_class="self",
    who="requester",
    approvers=1,
    tool="write_file",
    risk="medium",
    args_hash="sha256:a",
    thread_id="t1",
    run_id="r1",
    tool_call_id="c1",
    requester="ana",
    create_us=0,
    expire_us=100,
    decision_id="de_1",
    policy_ids=(),
)
GOOD = Answer("ana", direct=False, approver=False, args_hash="sha256:a", thread_id="t1", code="x")
USE = Use("ana", "t1", "r1", "c1", "write_file", "sha256:a", same_version=True)


@given(st.lists(st.sampled_from(list(ApprovalEvent)), max_size=12))
def test_whatever_happens_an_approval_is_redeemed_at_most_once_and_only_after_a_yes(events):
    state, path = ApprovalState.PENDING, []
    for event in events:
        before = state
        try:
            state = advance(state, event)
        except TransitionError:
            assert state is before
            continue
        assert before not in FINAL
        path.append(event)
    assert path.count(ApprovalEvent.REDEEM) <= 1
    if ApprovalEvent.REDEEM in path:
        assert path[0] is ApprovalEvent.APPROVE


def test_final_states_have_no_way_out_and_every_other_way_is_in_the_table():
    ways = set()
    for state in ApprovalState:
        for event in ApprovalEvent:
            try:
                ways.add((state, event, advance(state, event)))
            except TransitionError:
                continue
    assert not [way for way in ways if way[0] in FINAL]
    assert {way[2] for way in ways if way[0] is ApprovalState.PENDING} == {
        ApprovalState.APPROVED,
        ApprovalState.REJECTED,
        ApprovalState.EXPIRED,
        ApprovalState.CANCELLED,
    }
    assert {way[2] for way in ways if way[0] is ApprovalState.APPROVED} == {
        ApprovalState.REDEEMED,
        ApprovalState.EXPIRED,
        ApprovalState.CANCELLED,
    }


@given(st.data())
def test_a_self_answer_passes_only_when_every_factor_holds(data):
    def draw(*choices):
        return data.draw(st.sampled_from(choices))

    subject, thread, args_hash = draw("ana", "ben"), draw("t1", "t2"), draw("sha256:a", "sha256:b")
    direct, code, now, state = data.draw(st.booleans()), data.draw(st.booleans()), draw(50, 150), draw(*ApprovalState)
    approval = replace(APPROVAL, state=state)
    answer = Answer(subject, direct, approver=True, args_hash=args_hash, thread_id=thread)
    failed = failed_factors(approval, answer, code_matches=code, now_us=now)
    holds = (
        subject == "ana"
        and thread == "t1"
        and args_hash == "sha256:a"
        and code
        and now < 100
        and state is ApprovalState.PENDING
    )
    assert (failed == ()) is holds


@given(st.sampled_from(["ana", "ben"]), st.booleans(), st.booleans())
def test_any_other_class_wants_an_approver_who_speaks_for_themselves_and_is_not_the_requester(subject, direct, role):
    approval = replace(APPROVAL, approval_class="peer", who="not_requester")
    answer = Answer(subject, direct, approver=role, args_hash="sha256:a")
    failed = failed_factors(approval, answer, code_matches=False, now_us=1)
    assert (failed == ()) is (subject == "ben" and direct and role)


@each_case(
    ("change", "factor"),
    [
        ({"subject": "ben"}, Factor.USER),
        ({"run_id": "r2"}, Factor.ID),
        ({"tool_call_id": "c2"}, Factor.ID),
        ({"tool": "echo"}, Factor.ID),
        ({"thread_id": "t2"}, Factor.THREAD),
        ({"args_hash": "sha256:b"}, Factor.ARGUMENT_HASH),
        ({"args_hash": ""}, Factor.ARGUMENT_HASH),
        ({"same_version": False}, Factor.TOOL_VERSION),
    ],
)
def test_an_approval_counts_for_exactly_its_call(change, factor):
    approved = replace(APPROVAL, state=ApprovalState.APPROVED)
    assert unusable_factors(approved, USE, 50) == ()
    assert unusable_factors(approved, replace(USE, **change), 50) == (factor,)
    assert unusable_factors(approved, USE, 100) == (Factor.EXPIRY,)


@pytest.mark.parametrize("state", [ApprovalState.REDEEMED, ApprovalState.REJECTED, ApprovalState.CANCELLED])
def test_a_closed_approval_counts_for_nothing(state):
    assert unusable_factors(replace(APPROVAL, state=state), USE, 50) == (Factor.ONE_TIME,)


def test_every_factor_has_a_reason_a_caller_can_act_on():
    for factor in Factor:
        error = refusal(APPROVAL, factor)
        assert error.metadata["factor"] == factor
        assert error.message
