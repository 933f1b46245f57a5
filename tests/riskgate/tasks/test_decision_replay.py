"""A replay uses the task facts recorded with the calls: the tasks may have ended long ago."""

from __future__ import annotations

import json

import pytest

from tests.riskgate.tasks.test_decision_evaluate import book, transfer
from tests.support.riskgate.tasks import ASKED, IBAN, UNASKED, with_tasks


@pytest.fixture
def bundle(bundle_with):
    return with_tasks(bundle_with())


@pytest.mark.slow
async def test_a_replay_under_the_same_bundle_flips_nothing_and_under_others_by_the_recorded_facts(
    gate,
    remote,
    ana,
    call,
    bundle_with,
):
    task, other = await ana.begin(ASKED), await ana.begin(UNASKED, request="request-2")
    await ana.evaluate(transfer(call), task_id=task)
    await ana.evaluate(transfer(call, IBAN, "c2"), task_id=task)
    await book(ana, task)
    asked = await ana.evaluate(transfer(call, IBAN, "c3"), task_id=task)
    await ana.evaluate(transfer(call, call_id="c4"), task_id=other)
    await ana.evaluate(transfer(call, call_id="c5"))
    approval = await ana.approve(asked.approval)
    await ana.evaluate(transfer(call, IBAN, "c3"), approval=approval.id)
    for one in (task, other):
        await ana.end_task(one)

    async def flips(bundle) -> dict:
        words = ("policy", "replay", "--bundle", bundle, "--since", "all", "--target", f"127.0.0.1:{gate.server.port}")
        return json.loads((await remote("petra", *words, "--json")).stdout)

    same = await flips(gate.settings.bundle)
    assert (same["replayed"], same["flipped"]) == (6, 0)
    unaware = await flips(with_tasks(bundle_with(revision=2), without=("asks", "roles", "registry", "output")))
    assert (unaware["replayed"], unaware["flipped"]) == (6, 0), "another catalog computes no recorded fact anew"
    strict = bundle_with(
        policies='@id("own-words") @title("t") forbid (principal, action, resource) '
        "when { context.task.shown && context.origin.worst == 1 };\n",
        revision=3,
    )
    changed = await flips(with_tasks(strict))
    assert changed["counts"] == [
        {"before": "ALLOW", "after": "BLOCKED", "calls": 1},
        {"before": "AUTH_REQUIRED(self)", "after": "BLOCKED", "calls": 1},
    ]
    assert {tuple(one["policy_ids"]) for one in changed["flips"]} == {("own-words",)}
