"""A revocation sticks: the same call does not run under another id, and its ask is used up."""

from __future__ import annotations

import pytest
from phylactery.riskgate.v1 import types_pb2

from tests.support.riskgate.tasks import ASKED, KNOWN, UNASKED, arguments, with_tasks

ALLOW, AUTH, BLOCKED = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED, types_pb2.DECISION_BLOCKED


@pytest.fixture
def bundle(bundle_with):
    return with_tasks(bundle_with())


@pytest.fixture
async def gate(make_gate, shared_database):
    return await make_gate(**({"database_url": shared_database} if shared_database else {}))


def transfer(call, call_id: str = "c1", **more: str) -> types_pb2.ToolCall:
    return call("transfer", arguments(KNOWN, **more), call_id)


def told(answer) -> tuple[int, str, str]:
    return answer.decision, answer.reasons[0].code, answer.permit


REVOKED = (BLOCKED, "DECISION_REVOKED", "")


async def test_a_revoked_call_is_blocked_under_every_id_and_in_every_run_of_its_task(gate, ana, call):
    task = await ana.begin(ASKED)
    first = await ana.evaluate(transfer(call), task_id=task)
    await gate.person("olga").revoke(first.decision_id)
    assert told(await ana.evaluate(transfer(call), task_id=task)) == REVOKED
    for run, call_id in (("r1", "c2"), ("r2", "c1"), ("r2", "c9")):
        assert told(await ana.evaluate(transfer(call, call_id), task_id=task, run=run)) == REVOKED
    spaced = call("transfer", arguments(KNOWN).replace(":", " :  "), "c3")
    assert told(await ana.evaluate(spaced, task_id=task)) == REVOKED


async def test_a_revocation_uses_up_the_ask_and_a_new_request_is_a_new_one(gate, ana, call):
    task = await ana.begin(ASKED)
    first = await ana.evaluate(transfer(call), task_id=task)
    await gate.person("olga").revoke(first.decision_id)
    assert (await ana.evaluate(transfer(call, "c2", note="again"), task_id=task)).decision == AUTH
    confirmed = await ana.begin("yes", request="request-2", continues=task)
    assert (await ana.evaluate(transfer(call, "c3"), task_id=confirmed)).decision != ALLOW
    anew = await ana.begin(ASKED, request="request-3", continues=confirmed)
    answer = await ana.evaluate(transfer(call, "c4"), task_id=anew)
    assert answer.decision == ALLOW
    assert (await ana.redeem(answer.permit, transfer(call, "c4"))).receipt


async def test_a_permit_for_the_same_call_under_another_id_is_void_too(gate, ana, call, refused):
    task = await ana.begin(ASKED)
    first, second = [await ana.evaluate(transfer(call, one), task_id=task) for one in ("c1", "c2")]
    await gate.person("olga").revoke(first.decision_id)
    refusal = await refused(ana.redeem(second.permit, transfer(call, "c2")))
    assert (refusal.reason, refusal.metadata) == ("DECISION_REVOKED", {"factor": "revocation"})
    assert told(await ana.evaluate(transfer(call, "c2"), task_id=task)) == REVOKED
    assert gate.count("redemptions") == 0


async def test_a_question_that_was_revoked_is_not_asked_again(gate, ana, call):
    task = await ana.begin(UNASKED)
    wire = [call("wire", arguments(KNOWN), one) for one in ("c1", "c2")]
    asked = await ana.evaluate(wire[0], task_id=task)
    if asked.decision != AUTH:
        task = await ana.begin(ASKED, request="request-2")
        wire = [call("wire", arguments(KNOWN), one) for one in ("c3", "c4")]
        asked = await ana.evaluate(wire[0], task_id=task)
    assert asked.decision == AUTH
    await gate.person("olga").revoke(asked.decision_id)
    assert told(await ana.evaluate(wire[0], task_id=task)) == REVOKED
    again = await ana.evaluate(wire[1], task_id=task)
    assert (told(again), again.HasField("approval")) == (REVOKED, False)


@pytest.mark.parametrize("tool", ["read_file", "write_file"])
async def test_without_a_task_the_thread_is_the_request(gate, ana, call, tool):
    proposed = [
        call(tool, '{"path":"a.txt"}' if tool == "read_file" else '{"path":"a.txt","content":"x"}', one)
        for one in ("c1", "c2")
    ]
    first = await ana.evaluate(proposed[0])
    assert first.decision != BLOCKED
    await gate.person("olga").revoke(first.decision_id)
    assert told(await ana.evaluate(proposed[1], run="r2")) == REVOKED
    assert (await ana.evaluate(proposed[1], thread="t2")).decision == first.decision
    assert (await gate.person("ben").evaluate(proposed[1])).decision == first.decision


async def test_a_restart_forgets_no_revocation(make_gate, call):
    gate = await make_gate("kept")
    ana = gate.person("ana")
    read = [call("read_file", '{"path":"a.txt"}', one) for one in ("c1", "c2")]
    await gate.person("olga").revoke((await ana.evaluate(read[0])).decision_id)
    await gate.stop()
    again = (await make_gate("kept")).person("ana")
    assert told(await again.evaluate(read[1])) == REVOKED
