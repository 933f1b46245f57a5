"""A result counts by what RiskGate knows of its call: a write that was never redeemed produced nothing."""

from __future__ import annotations

import json

import pytest
from phylactery_riskgate.store.audit import Place

REMINDER = {"text": "call Bob", "when": "2027-01-04T09:00:00Z"}
MADE = json.dumps(
    {"id": "rm_7f3a9c21", "text": "call Bob", "due": "2027-01-04T09:00:00Z", "repeat": "", "time_zone": ""}
)
NOTES = json.dumps({"path": "notes.txt"})


def remind(call, call_id: str = "c1"):
    return call("create_reminder", json.dumps(REMINDER), call_id)


async def redeemed(person, call, *, call_id: str = "c1", run: str = "r1", thread: str = "t1") -> str:
    """Have a reminder approved and redeemed, and return its bound arguments."""
    proposed = remind(call, call_id)
    approval = await person.approve((await person.evaluate(proposed, run=run, thread=thread)).approval)
    permit = (await person.evaluate(proposed, run=run, thread=thread, approval=approval.id)).permit
    answer = await person.redeem(permit, proposed, execution=f"execution-{run}-{call_id}", run=run, thread=thread)
    return str(answer.bound_call.arguments_json)


async def facts(gate, person, call, task: str) -> dict:
    """Return what the task tells of a call with the id that the reminder got."""
    cancel = call("cancel_reminder", json.dumps({"reminder": "rm_7f3a9c21"}), "later")
    answer = await person.evaluate(cancel, task_id=task)
    core = gate.riskgate.core
    values = gate.database.read_sync(lambda c: core.audit.values(c, "acme", Place("riskgate", answer.audit_index)))
    return values["/task"]["facts"]


async def test_the_result_of_a_redeemed_write_made_what_it_names(gate, ana, call):
    task = await ana.begin("Cancel the reminder")
    bound = await redeemed(ana, call)
    answer = await ana.observe(task, tool="create_reminder", arguments_json=bound, result_json=MADE, run_id="r1")
    assert not answer.unproven
    assert answer.values
    assert (await facts(gate, ana, call, task))["worst"] == 0


async def test_no_arguments_are_those_of_the_decision(gate, ana, call):
    task = await ana.begin("Send it to rm_7f3a9c21 and dora@acme.es")
    read = call("read_file", NOTES, "c2")
    await ana.evaluate(read, task_id=task)
    other = await ana.begin("Read notes.txt and cancel the reminder it names", request="request-2")
    assert not (await ana.observe(other, "c2", result_text="cancel rm_7f3a9c21")).unproven
    assert (await facts(gate, ana, call, other))["worst"] == 2
    await redeemed(ana, call)
    assert not (await ana.observe(task, tool="create_reminder", result_json=MADE)).unproven


@pytest.mark.parametrize("asked", ["never", "not redeemed", "in another thread", "by another user", "in another run"])
async def test_nothing_is_believed_of_a_write_that_was_never_redeemed(gate, ana, call, asked):
    shown, run = json.dumps(REMINDER), ""
    if asked == "not redeemed":
        shown = (await ana.evaluate(remind(call))).bound_call.arguments_json
    elif asked == "in another thread":
        shown = await redeemed(ana, call, thread="t2")
    elif asked == "by another user":
        shown = await redeemed(gate.person("ben"), call)
    elif asked == "in another run":
        shown, run = await redeemed(ana, call), "r2"
    task = await ana.begin("Remind me to call Bob and cancel the reminder")
    claimed = {"tool": "create_reminder", "arguments_json": shown, "result_json": MADE, "run_id": run}
    first, again = await ana.observe(task, **claimed), await ana.observe(task, **claimed)
    assert (first.unproven, first.replayed) == (True, False)
    assert (again.unproven, again.replayed) == (True, True)
    assert first.values == 0
    told = await facts(gate, ana, call, task)
    assert told["worst"] == 3
    assert told["arguments"] == [["/reminder", 3, "other text of create_reminder, which no redemption proves"]]
    await ana.end_task(task)
    assert gate.records("task_ended")[-1]["unproven"] == 1


async def test_what_is_shown_of_a_call_must_be_what_was_decided(gate, ana, call, refused):
    bound = await redeemed(ana, call)
    task = await ana.begin("Cancel the reminder")
    other = json.dumps(REMINDER | {"text": "call Eve"})
    for more in (
        {"arguments_json": other},
        {"arguments_json": bound, "tool": "cancel_reminder"},
        {"tool": "read_file"},
    ):
        refusal = await refused(ana.observe(task, **{"tool": "create_reminder", "result_json": MADE} | more))
        assert (refusal.code.name, refusal.reason) == ("FAILED_PRECONDITION", "ARGS_MISMATCH")
        assert "call Eve" not in refusal.message
    unbound = await ana.observe(task, tool="create_reminder", arguments_json=json.dumps(REMINDER), result_json=MADE)
    assert not unbound.unproven


async def test_a_read_must_be_what_was_decided_and_needs_no_decision(gate, ana, call, refused):
    task = await ana.begin("Read notes.txt")
    await ana.evaluate(call("read_file", NOTES, "c2"), task_id=task)
    shown = {"arguments_json": json.dumps({"path": "other.txt"}), "result_text": "x"}
    assert (await refused(ana.observe(task, "c2", **shown))).reason == "ARGS_MISMATCH"
    assert not (await ana.observe(task, "c3", **shown)).unproven


async def test_a_tool_nobody_knows_answers_free_text_that_needs_no_proof(gate, ana, call):
    task = await ana.begin("Cancel the reminder")
    answer = await ana.observe(task, tool="no_such_tool", result_json=MADE)
    assert not answer.unproven
    assert (await facts(gate, ana, call, task))["worst"] == 3


async def test_a_call_id_that_runs_share_is_that_of_any_of_them_or_of_the_one_named(gate, ana, call, refused):
    task = await ana.begin("Read notes.txt and other.txt")
    for run, path in (("r1", "notes.txt"), ("r2", "other.txt")):
        await ana.evaluate(call("read_file", json.dumps({"path": path}), "c2"), run=run, task_id=task)
    refusal = await refused(ana.observe(task, "c2", arguments_json=NOTES, result_text="x", run_id="r2"))
    assert refusal.reason == "ARGS_MISMATCH"
    assert not (await ana.observe(task, "c2", arguments_json=NOTES, result_text="x")).replayed
