"""What became of an undo, and of the line that tells what ran without a question, as facts of later decisions."""

from __future__ import annotations

import grpc
import pytest
from phylactery.riskgate.v1 import control_pb2, control_pb2_grpc, riskgate_pb2, types_pb2
from phylactery_riskgate.app import PACKAGE

from tests.support.riskgate.earlier import turn_back

FILE = ("write_file", '{"path":"a.txt","content":"x"}')
ALLOW, ASKS = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED
_LOW = """
@id("low") @title("What can be taken back") @allows("low_stakes")
permit (principal, action in Action::"effect:write", resource)
when { context.stakes == "low" && context.usage.line_delivered };
"""
UNDONE, LEFT, FAILED = (
    riskgate_pb2.REVERSAL_RESULT_UNDONE,
    riskgate_pb2.REVERSAL_RESULT_LEFT,
    riskgate_pb2.REVERSAL_RESULT_FAILED,
)


@pytest.fixture
async def gate(make_gate, bundle_with, shared_database):
    more = {"database_url": shared_database} if shared_database else {}
    return await make_gate(bundle=bundle_with(policies=_LOW), **more)


async def ran(ana, call, number):
    """Evaluate and redeem a call of low stakes in a run of its own; return the decision and the redemption."""
    asked = call(*FILE, f"c{number}")
    answer = await ana.evaluate(asked, run=f"run-{number}")
    if answer.decision != ALLOW:
        return answer, None
    return answer, await ana.redeem(answer.permit, asked, execution=f"execution-{number}", run=f"run-{number}")


async def report(ana, execution, outcome=riskgate_pb2.OUTCOME_SUCCEEDED, **fields):
    request = riskgate_pb2.ReportOutcomeRequest(execution_id=execution, outcome=outcome, **fields)
    return await ana.decisions.ReportOutcome(request, metadata=ana.metadata, timeout=60)


async def told(ana, *executions):
    request = riskgate_pb2.ReportToldRequest(execution_ids=executions)
    return await ana.decisions.ReportTold(request, metadata=ana.metadata, timeout=60)


async def test_nothing_more_runs_for_its_stakes_until_the_person_was_told_of_what_did(gate, ana, call, refused):
    first, redeemed = await ran(ana, call, 1)
    assert (first.reasons[0].code, redeemed.low_stakes) == ("LOW_STAKES", True)
    again, _ = await ran(ana, call, 2)
    assert (again.decision, again.stakes) == (ASKS, types_pb2.STAKES_LOW)
    assert (await gate.person("ben").evaluate(call(*FILE))).decision == ALLOW  # another person's line is theirs
    refusal = await refused(told(ana, "execution-1", "execution-9"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "EXECUTION_NOT_FOUND")
    assert (await ran(ana, call, 3))[0].decision == ASKS
    await told(ana, "execution-1")
    await told(ana, "execution-1")
    assert (await ran(ana, call, 4))[0].decision == ALLOW
    await report(ana, "execution-4", riskgate_pb2.OUTCOME_FAILED, error_code="IO_ERROR")  # nothing to tell
    assert (await ran(ana, call, 5))[0].decision == ALLOW


async def test_a_permit_is_worth_nothing_once_another_runs_line_is_owed(gate, ana, call, refused):
    early, late = call(*FILE, "c1"), call(*FILE, "c2")
    first, second = await ana.evaluate(early, run="run-1"), await ana.evaluate(late, run="run-2")
    await ana.redeem(first.permit, early, execution="execution-1", run="run-1")
    refusal = await refused(ana.redeem(second.permit, late, execution="execution-2", run="run-2"))
    assert refusal.reason == "POLICY_CHANGED"


async def test_a_failed_undo_makes_its_tool_medium_until_an_operator_clears_it(gate, ana, call, refused):
    await ran(ana, call, 1)
    await told(ana, "execution-1")
    reversals = [
        riskgate_pb2.Reversal(execution_id="execution-9", result=FAILED, error_code="UNDO_LOST"),  # of nobody here
        riskgate_pb2.Reversal(execution_id="execution-1", result=FAILED, error_code="UNDO_FAILED"),
    ]
    await ran(ana, call, 2)
    await report(ana, "execution-2", reversals=reversals)
    await report(ana, "execution-2", reversals=reversals)
    (outcome,) = gate.records("outcome")
    assert [(one["execution_id"], one["result"]) for one in outcome["reversals"]] == [
        ("execution-9", "FAILED"),
        ("execution-1", "FAILED"),
    ]
    assert [(one["tool"], one["subject"]) for one in gate.records("undo_failed")] == [("write_file", "ana")]
    await told(ana, "execution-2")
    asked, _ = await ran(ana, call, 3)
    assert (asked.decision, asked.stakes) == (ASKS, types_pb2.STAKES_MEDIUM)
    ben = gate.person("ben")
    assert (await ben.evaluate(call(*FILE))).stakes == types_pb2.STAKES_LOW  # one user's word is of their own calls
    await ran(ben, call, 7)
    await report(ben, "execution-7", riskgate_pb2.OUTCOME_FAILED, error_code="UNDO_NOT_KEPT")
    carla = gate.person("carla")
    assert (await carla.evaluate(call(*FILE))).stakes == types_pb2.STAKES_MEDIUM  # of the whole tenant
    assert (await gate.person("zoe").evaluate(call(*FILE))).stakes == types_pb2.STAKES_LOW  # and of no other

    control = control_pb2_grpc.ControlServiceStub(gate.channel)
    clear = control_pb2.ClearUndoFailureRequest(tool="write_file", tenant="acme", reason="looked at it")
    refusal = await refused(control.ClearUndoFailure(clear, metadata=ana.metadata, timeout=60))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "ROLE_REQUIRED")
    ines = gate.person("ines")
    listing = control_pb2.ListUndoFailuresRequest(tenant="acme")
    listed = await control.ListUndoFailures(listing, metadata=ines.metadata, timeout=60)
    assert [(one.tool, one.subject, one.execution_id, one.error_code) for one in listed.failures] == [
        ("write_file", "", "execution-7", "UNDO_NOT_KEPT"),
        ("write_file", "ana", "execution-1", "UNDO_FAILED"),
    ]
    assert (await control.ClearUndoFailure(clear, metadata=ines.metadata, timeout=60)).cleared
    assert not (await control.ClearUndoFailure(clear, metadata=ines.metadata, timeout=60)).cleared
    assert (await ran(ana, call, 4))[0].decision == ALLOW
    kinds = [one["kind"] for one in gate.records("undo_failed", "undo_cleared")]
    assert kinds[:2] == ["undo_failed", "undo_failed"]
    assert set(kinds[2:]) == {"undo_cleared"}


async def test_what_a_delegate_reports_of_a_tool_concerns_the_whole_tenant(gate, ana, call):
    agent = gate.through_agent("ana")
    await ran(agent, call, 1)
    await report(agent, "execution-1", riskgate_pb2.OUTCOME_FAILED, error_code="UNDO_NOT_KEPT")
    assert (await gate.person("ben").evaluate(call(*FILE))).stakes == types_pb2.STAKES_MEDIUM


async def test_one_user_cannot_take_the_undo_from_everybody_however_often_they_say_so(gate, ana, call):
    for number in range(3):
        await ran(ana, call, number)
        await told(ana, f"execution-{number}")
    for number in range(3):
        await report(ana, f"execution-{number}", riskgate_pb2.OUTCOME_FAILED, error_code="UNDO_NOT_KEPT")
    assert (await ran(ana, call, 4))[0].decision == ASKS
    assert (await gate.person("ben").evaluate(call(*FILE))).decision == ALLOW
    assert len(gate.records("undo_failed")) == 1


async def test_failures_of_an_earlier_version_concern_the_tenant_as_before(gate, ana, call):
    turn_back(
        gate.database, "0018", "INSERT INTO undo_failures VALUES ('acme', 'write_file', 1, 'execution-0', 'LOST')"
    )
    gate.database.migrate(PACKAGE)
    assert (await ana.evaluate(call(*FILE))).stakes == types_pb2.STAKES_MEDIUM


async def test_what_could_not_be_kept_and_what_stays_for_a_reason_are_told_apart(gate, ana, call):
    await ran(ana, call, 1)
    left = [
        riskgate_pb2.Reversal(execution_id="execution-1", result=LEFT, error_code="CHANGED_SINCE"),
        riskgate_pb2.Reversal(execution_id="execution-1", result=UNDONE),
    ]
    await report(ana, "execution-1", reversals=left)
    await told(ana, "execution-1")
    assert (await ran(ana, call, 2))[0].decision == ALLOW
    await report(ana, "execution-2", riskgate_pb2.OUTCOME_FAILED, error_code="UNDO_NOT_KEPT")
    assert (await ran(ana, call, 3))[0].decision == ASKS


async def test_an_operator_sees_and_clears_a_failure_by_a_command(gate, ana, call, remote):
    await ran(ana, call, 1)
    await report(ana, "execution-1", riskgate_pb2.OUTCOME_FAILED, error_code="UNDO_NOT_KEPT")
    assert "write_file" in (await remote("olga", "undo", "list")).output
    assert "trusted again" in (await remote("olga", "undo", "clear", "write_file", "--reason", "a full disk")).output
    assert "no undo of it has failed" in (await remote("olga", "undo", "clear", "write_file")).output
    assert "no undo has failed" in (await remote("olga", "undo", "list")).output
