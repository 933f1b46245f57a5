"""EvaluateBatch: independent requests in one transaction, and no answer without a record."""

from __future__ import annotations

import asyncio
import sqlite3
from functools import partial

import grpc
import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.riskgate.v1 import error_reason_pb2, riskgate_pb2, types_pb2
from phylactery_riskgate.audit.export import export_log, verify_export

from tests.riskgate.faults.test_storage import Child

READ = ("read_file", '{"path":"a.txt"}')
ALLOW, AUTH, BLOCKED = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED, types_pb2.DECISION_BLOCKED


def ask(call: types_pb2.ToolCall, **fields: str) -> riskgate_pb2.EvaluateRequest:
    return riskgate_pb2.EvaluateRequest(call=call, **{"thread_id": "t1", "run_id": "r1", **fields})


async def batch(person, *requests: riskgate_pb2.EvaluateRequest) -> list[riskgate_pb2.EvaluateResult]:
    request = riskgate_pb2.EvaluateBatchRequest(requests=requests)
    return list((await person.decisions.EvaluateBatch(request, metadata=person.metadata, timeout=60)).results)


async def test_each_request_gets_what_evaluate_answers_in_order(gate, ana, call):
    calls = [
        call(*READ),
        call(call_id="c2"),
        call("read_file", '{"path":".ssh/id"}', "c3"),
        call("nothing", "{}", "c4"),
    ]
    results = await batch(ana, *(ask(one) for one in calls))
    assert [one.response.decision for one in results] == [ALLOW, AUTH, BLOCKED, BLOCKED]
    assert [one.response.audit_index for one in results] == [0, 1, 2, 3]
    assert results[1].response.approval.code
    assert (await ana.redeem(results[0].response.permit, calls[0])).receipt
    for one, result in zip(calls[1:], results[1:], strict=True):
        again = await ana.evaluate(one)
        assert (again.replayed, again.decision_id) == (True, result.response.decision_id)


async def test_a_bad_request_fails_alone_with_the_error_it_would_have_had(gate, ana, call, refused):
    await ana.evaluate(call(*READ, "taken"))
    bad = {
        "field": ask(call(*READ, "c2"), thread_id="no spaces here"),
        "conflict": ask(call("read_file", '{"path":"b.txt"}', "taken")),
        "approval": ask(call(*READ, "c3"), approval_id="ap_nobody_has_this"),
        "policy": ask(call(*READ, "c4")),
    }
    bad["policy"].min_bundle_revision = 99
    good, *results = await batch(ana, ask(call(*READ, "c1")), *bad.values())
    assert good.response.permit
    for (name, request), result in zip(bad.items(), results, strict=True):
        alone = await refused(ana.decisions.Evaluate(request, metadata=ana.metadata, timeout=60))
        assert result.WhichOneof("result") == "error", name
        assert result.error.code == alone.code.value[0], name
        assert error_reason_pb2.ErrorReason.Name(result.error.reason) == f"ERROR_REASON_{alone.reason}", name
        assert (result.error.message, dict(result.error.metadata)) == (alone.message, alone.metadata), name
        assert [one.field for one in result.error.field_violations] == alone.fields, name
    assert gate.count("decisions") == 2


async def test_the_same_call_twice_in_a_batch_is_one_decision_and_another_call_in_its_place_conflicts(gate, ana, call):
    other = call("read_file", '{"path":"b.txt"}')
    results = await batch(
        ana, ask(call(*READ)), ask(call(*READ)), ask(other), ask(call(call_id="c2")), ask(call(call_id="c2"))
    )
    first, second, conflict, waits, waits_too = results
    assert (first.response.replayed, second.response.replayed) == (False, True)
    assert (first.response.decision_id, first.response.permit) == (second.response.decision_id, second.response.permit)
    assert second.response.bound_call == first.response.bound_call
    assert conflict.error.reason == error_reason_pb2.ERROR_REASON_CALL_CONFLICT
    assert waits.response.approval == waits_too.response.approval
    assert (gate.count("decisions"), gate.count("approvals"), len(gate.records("decision"))) == (2, 1, 2)


@pytest.mark.parametrize("number", [0, 101])
async def test_no_request_or_too_many_is_refused_whole(gate, ana, call, refused, number):
    refusal = await refused(batch(ana, *(ask(call(*READ, f"c{i}")) for i in range(number))))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["requests"])
    assert gate.count("decisions") == 0


async def test_a_hundred_are_recorded_in_one_transaction_before_one_is_answered(gate, ana, call):
    commits: list[sa.Connection] = []
    sa.event.listen(gate.database._write_engine, "commit", commits.append)
    results = await batch(ana, *(ask(call(*READ, f"c{i}")) for i in range(100)))
    assert [one.response.audit_index for one in results] == list(range(100))
    assert gate.count("decisions") == gate.count("audit_entries") == gate.count("audit_values") == 100
    assert len(commits) <= 2  # health may have asked for one of its own


async def test_a_batch_looks_for_a_later_bundle_once_and_is_recorded_in_one_transaction_all_the_same(gate, ana, call):
    live, policies = gate.riskgate.core.live, gate.riskgate.policies
    looks: list[int] = []
    commits: list[sa.Connection] = []

    async def look() -> None:
        looks.append(len(looks))
        await policies.refresh()

    live.follow(look, -1.0)  # whatever is known of the active bundle is older than that
    sa.event.listen(gate.database._write_engine, "commit", commits.append)
    results = await batch(ana, *(ask(call(*READ, f"c{i}")) for i in range(100)))
    assert [one.response.audit_index for one in results] == list(range(100))
    assert looks == [0]
    assert len(commits) <= 2  # health may have asked for one of its own


async def test_where_no_bundle_may_decide_each_question_that_could_be_read_says_so(gate, ana, call):
    gate.riskgate.core.live.suspend(7, "it cannot be read")
    results = await batch(ana, ask(call(*READ, "c1"), thread_id="no spaces here"), ask(call(*READ, "c2")))
    reasons = [error_reason_pb2.ERROR_REASON_INVALID_REQUEST, error_reason_pb2.ERROR_REASON_BUNDLE_NOT_LOADED]
    assert [one.error.reason for one in results] == reasons
    assert gate.count("decisions") == 0


async def test_a_store_that_takes_no_record_fails_the_whole_batch_and_leaves_nothing(gate, ana, call, refused):
    gate.fail_writes()
    refusal = await refused(batch(ana, ask(call(*READ)), ask(call(call_id="c2"))))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    assert gate.count("decisions") == gate.count("approvals") == gate.count("audit_entries") == 0


@pytest.mark.slow
async def test_killed_after_the_commit_a_batch_asked_again_gets_the_same_decisions(tmp_path, call):
    requests = [ask(call(*READ, f"c{i}")) for i in range(20)]
    child = Child(tmp_path, "riskgate.2")
    with pytest.raises(aio.AioRpcError):
        await child.decisions.EvaluateBatch(riskgate_pb2.EvaluateBatchRequest(requests=requests), timeout=60)
    await child.died()
    with sqlite3.connect(tmp_path / "riskgate.db") as database:
        kept = {one for (one,) in database.execute("SELECT id FROM decisions")}
    again = Child(tmp_path)
    answer = await again.decisions.EvaluateBatch(riskgate_pb2.EvaluateBatchRequest(requests=requests), timeout=60)
    assert {one.response.decision_id for one in answer.results} == kept
    assert all(one.response.replayed and one.response.permit for one in answer.results)
    await again.stop()


@pytest.mark.parametrize("names", [("", ""), ("one", "two")], ids=["one name by mistake", "a name each"])
async def test_replicas_asked_the_same_at_once_make_one_decision_each_and_logs_that_verify(
    make_gate, shared_database, call, tmp_path, names
):
    gates = [await make_gate(database_url=shared_database, instance=name) for name in names]
    people = [gate.person("ana") for gate in gates]
    rounds = [[ask(call(*READ, f"c{n}-{i}")) for i in range(30)] for n in range(4)]
    answers = await asyncio.gather(*(batch(person, *asked) for asked in rounds for person in people))
    for one, two in zip(answers[::2], answers[1::2], strict=True):
        assert [each.response.decision_id for each in one] == [each.response.decision_id for each in two]
    assert gates[0].count("decisions") == len(gates[0].records("decision")) == 120
    keys = gates[0].keys
    for name in {gate.settings.log_name for gate in gates}:
        out = tmp_path / f"{len(name)}.jsonl"
        export = partial(export_log, name=name, out=out, keys=keys.public, signer=keys.signer, heads=gates[0].heads)
        gates[0].database.read_sync(export)
        assert verify_export(out, list(keys.public)).ok
