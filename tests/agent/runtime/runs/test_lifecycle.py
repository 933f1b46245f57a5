"""The one end of a run: what goes with it is the same, whoever ends it."""

from __future__ import annotations

from typing import Any

import pytest
from phylactery_agent.ports import ApprovalRequest
from phylactery_agent.runtime.runs.cancellation import Cancellations
from phylactery_agent.runtime.runs.lifecycle import end
from phylactery_agent.runtime.runs.status import RunStatus, RunTransitionError
from phylactery_agent.runtime.storage.records import Claim, Ending

from tests.support.agent.stores import ANA, BOUND, Stores, call

KINDS = ("outcome", "withdrawal", "task_end", "transcript", "memory")


async def begun(stores: Stores, request_id: str) -> Claim:
    """A run with one effect under way, one proposal, a step that runs and a task."""
    await stores.accepted(request_id)
    claim = await stores.claimed()
    ledger = stores.ledger(claim.lease)
    for name in ("started", "proposed"):
        await ledger.propose(call(name), plan_step="s1")
    await ledger.start("started", execution_id=f"ex_{claim.run.run_id}", effect_key=request_id, bound=BOUND)
    step = '[{"step_id": "s1", "description": "", "status": "running", "tries": 1}]'

    def work(connection: Any) -> None:
        run_id, turn_id = claim.run.run_id, claim.turn.turn_id
        connection.exec_driver_sql(f"UPDATE agent_runs SET steps = '{step}' WHERE run_id = '{run_id}'")
        connection.exec_driver_sql(f"UPDATE agent_inbox SET task_id = 'ta_{run_id}' WHERE turn_id = '{turn_id}'")

    await stores.database.write(work)
    return claim


def left(stores: Stores, claim: Claim) -> dict[str, Any]:
    """What a run left behind, without its own names, in the order in which it was written."""
    run_id = claim.run.run_id
    mine = f"WHERE run_id = '{run_id}'"
    columns = "status, reason, approval_id, card, lease_owner, lease_until_us, steps"
    queued = [
        (row.kind, row.once.replace(run_id, "RUN")) for row in stores.rows(f"agent_outbox {mine} ORDER BY outbox_id")
    ]
    return {
        "run": [tuple(row) for row in stores.rows(f"agent_runs {mine}", columns)],
        "ledger": [tuple(row) for row in stores.rows(f"agent_tool_calls {mine} ORDER BY ordinal", "state, error_code")],
        "events": [row.kind for row in stores.rows(f"agent_events {mine} ORDER BY sequence")],
        "told": [(kind, once) for kind, once in queued if kind != "transcript"],
    }


async def test_a_run_that_waits_is_cancelled_as_one_that_is_served(stores: Stores) -> None:
    cancellations = Cancellations(stores.database, stores.clock, stores.tools)
    waiting = await begun(stores, "request-1")
    card = (ApprovalRequest("ap_1", "write_file", "self"),)
    step = {"step_id": "s1", "description": "", "status": "running", "tries": 1}
    await stores.end(waiting, RunStatus.SUSPENDED, approval_id="ap_1", card=card, steps=(step,))
    await cancellations.request(ANA, waiting.run.run_id)
    served = await begun(stores, "request-2")
    await cancellations.request(ANA, served.run.run_id)
    await stores.end(served, RunStatus.DONE)
    one, other = left(stores, waiting), left(stores, served)
    assert one["events"][:3] == ["run_started", "message", "run_finished"]
    one["events"][1:3] = []
    assert one == other
    assert one["ledger"] == [("in_doubt", "RUN_ENDED"), ("denied", "CANCELLED")]
    assert one["events"] == ["run_started", "step", "message", "run_finished"]
    assert [kind for kind, _ in one["told"]] == ["outcome", "withdrawal", "task_end"]
    assert {row.kind for row in stores.rows("agent_outbox")} <= set(KINDS)


async def test_a_run_that_has_ended_does_not_end_again_and_nothing_is_written(stores: Stores, claim: Claim) -> None:
    await stores.end(claim, RunStatus.DONE)
    before = left(stores, claim)
    ending = Ending(RunStatus.CANCELLED, "CANCELLED", "r2", "no")
    with pytest.raises(RunTransitionError):
        await stores.database.write(
            lambda connection: end(
                connection, claim.lease, RunStatus.DONE, ending, stores.clock.now_us(), tools=stores.tools
            )
        )
    assert left(stores, claim) == before
