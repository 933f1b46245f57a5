"""Concurrent answers: what was read before the transaction never decides."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from phylactery.riskgate.v1 import types_pb2

from tests.riskgate.bundles.test_activation import activate


@pytest.fixture
def before_the_next_write(gate, monkeypatch) -> Callable[[Callable[[], Awaitable[Any]]], None]:
    """Let something happen after a use case has read and before what it writes."""

    def arrange(meanwhile: Callable[[], Awaitable[Any]]) -> None:
        write, waiting = gate.database.write, [meanwhile]

        async def later(work: Any) -> Any:
            while waiting:
                await waiting.pop()()
            return await write(work)

        monkeypatch.setattr(gate.database, "write", later)

    return arrange


async def test_a_yes_that_comes_while_evaluate_decides_counts_and_nobody_is_asked_again(
    gate, ana, before_the_next_write
):
    approval = (await ana.evaluate()).approval
    before_the_next_write(lambda: ana.approve(approval))
    answer = await ana.evaluate(approval=approval.id)
    assert answer.decision == types_pb2.DECISION_ALLOW
    assert answer.permit
    assert gate.count("approvals") == 1


async def test_an_approver_who_lost_the_right_is_named_for_a_call_that_a_budget_counts_too(
    make_gate, bundle_with, call, refused
):
    budgets = [{"name": "pays", "tools": ["pay"], "per": ["tenant"], "window_seconds": 60}]
    gate = await make_gate(bundle=bundle_with(budgets=budgets))
    ana, pay = gate.person("ana"), call("pay", '{"to":"x","note":"n"}')
    approval = (await ana.evaluate(pay)).approval
    await gate.person("dora").approve(approval)
    later = bundle_with(budgets=budgets, revision=2)
    fired = {"groups": [], "users": [{"tenant": "acme", "id": "dora", "approver": False}]}
    (later / "entities.json").write_text(json.dumps(fired))
    await activate(gate.person("petra"), later)
    assert (await refused(ana.evaluate(pay, approval=approval.id))).reason == "APPROVER_NOT_ELIGIBLE"
    assert gate.count("approvals") == 1


async def test_who_may_not_approve_may_not_reject_but_the_requester_may(make_gate, bundle_with, call, refused):
    later = bundle_with()
    users = [{"tenant": "acme", "id": "dora", "approver": False}]
    (later / "entities.json").write_text(json.dumps({"groups": [], "users": users}))
    gate = await make_gate(bundle=later)
    ana = gate.person("ana")
    approval = (await ana.evaluate(call("pay", '{"to":"x","note":"n"}'))).approval
    fired = await refused(gate.person("dora").reject(approval.id))
    assert (fired.reason, fired.metadata["factor"]) == ("NOT_ELIGIBLE", "approver")
    delegate = await refused(gate.person("robot").reject(approval.id))
    assert (delegate.reason, delegate.metadata["factor"]) == ("NOT_ELIGIBLE", "user")
    assert (await ana.get(approval.id)).state == types_pb2.APPROVAL_STATE_PENDING
    assert (await ana.reject(approval.id)).state == types_pb2.APPROVAL_STATE_REJECTED
