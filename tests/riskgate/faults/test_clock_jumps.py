"""A clock that jumps an hour back or forward across a restart opens nothing that was closed, and nothing gets stuck."""

from __future__ import annotations

import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_riskgate.cli import app
from typer.testing import CliRunner

ALLOW, AUTH = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED
READ = ("read_file", '{"path":"a.txt"}')
JUMPS = pytest.mark.parametrize("jump", [-3_600, 3_600])


@pytest.fixture
def jumped(make_gate):
    """Restart a gate by a clock that has jumped."""

    async def restart(gate, jump: float):
        gate.clock.advance(jump)
        await gate.stop()
        return await make_gate(clock=gate.clock)

    return restart


@JUMPS
async def test_a_permit_of_before_is_refused_and_another_is_issued_and_redeemed(
    gate, ana, call, jumped, refused, *, jump
):
    before = await ana.evaluate(call(*READ))
    gate = await jumped(gate, jump)
    ana = gate.person("ana")
    assert (await refused(ana.redeem(before.permit, call(*READ)))).reason == "PERMIT_EXPIRED"
    again = await ana.evaluate(call(*READ))
    if jump > 0:  # the decision is as old as the clock says
        assert (again.permit, again.reasons[0].code) == ("", "DECISION_TOO_OLD")
        again = await ana.evaluate(call(*READ, "c2"))
        assert (await ana.redeem(again.permit, call(*READ, "c2"))).receipt
    else:
        assert again.permit
        assert (await ana.redeem(again.permit, call(*READ))).receipt


@JUMPS
async def test_a_redeemed_call_gives_its_receipt_and_runs_once(gate, ana, call, jumped, refused, *, jump):
    before = await ana.evaluate(call(*READ))
    await ana.redeem(before.permit, call(*READ))
    gate = await jumped(gate, jump)
    ana = gate.person("ana")
    again = await ana.evaluate(call(*READ))
    assert (await ana.redeem(again.permit, call(*READ))).repeated_redeem
    assert (await refused(ana.redeem(again.permit, call(*READ), execution="execution-2"))).reason == "ALREADY_REDEEMED"
    await ana.report("SUCCEEDED")


@JUMPS
async def test_an_approval_that_was_rejected_expired_or_answered_stays_so(gate, ana, call, jumped, refused, *, jump):
    rejected = await ana.evaluate(call(call_id="c1"))
    await ana.reject(rejected.approval.id)
    gate = await jumped(gate, jump)
    ana = gate.person("ana")
    if jump < 0:
        refusal = await refused(ana.evaluate(call(call_id="c2")))
        assert refusal.reason == "REJECTED_BEFORE"
    else:
        expired = (await ana.evaluate(call(call_id="c2"))).approval
        gate = await jumped(gate, jump)
        assert (await gate.person("ana").get(expired.id)).state == types_pb2.APPROVAL_STATE_EXPIRED
        gate = await jumped(gate, -jump)
        assert (await gate.person("ana").get(expired.id)).state == types_pb2.APPROVAL_STATE_EXPIRED
    assert (await gate.person("ana").get(rejected.approval.id)).state == types_pb2.APPROVAL_STATE_REJECTED


@JUMPS
async def test_the_log_goes_on_and_verifies(gate, ana, call, jumped, *, jump):
    for number in range(3):
        await ana.evaluate(call(*READ, f"a{number}"))
    gate = await jumped(gate, jump)
    for number in range(3):
        await gate.person("ana").evaluate(call(*READ, f"b{number}"))
    gate = await jumped(gate, -jump)
    await gate.person("ana").evaluate(call(*READ, "c1"))
    await gate.stop()
    found = CliRunner().invoke(app, ["audit", "verify", "--data-dir", str(gate.folder)])
    assert (found.exit_code, "complete and unaltered, consistent" in found.output) == (0, True), found.output
