"""A batch answers and records each request as Evaluate would, whatever the other requests are."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from grpc import aio
from phylactery.riskgate.v1 import error_reason_pb2, riskgate_pb2, types_pb2
from phylactery_riskgate.store import decisions as decision_rows
from phylactery_riskgate.store.locks import BusyError
from sqlalchemy.engine import Connection

from tests.support.clock import FakeClock
from tests.support.contracts.refusals import refusal_of

MONEY = Path(__file__).parents[1] / "money_bundle"
OWN = {
    "decisionId",
    "permit",
    "decision_id",
    "permit_id",
    "approval_id",
    "receipt_id",
    "nonce",
    "values",
    "args_commitment",
}
"""What is another one every time: ids, what is signed, and commitments under salts of their own."""


def requests(seed: int) -> Iterator[riskgate_pb2.EvaluateRequest]:
    """Yield questions of every kind: allowed, blocked, approvable, over a budget, asked twice, in conflict, bad."""
    chance = random.Random(seed)
    for number in range(40):
        tool, arguments = chance.choice(
            [
                (
                    "transfer",
                    {"to": chance.choice(["bob", "eve"]), "amount": chance.choice([5, 60, 450, 900, 0.00001])},
                ),
                ("transfer", {"to": "bob"}),
                ("notify", {"to": chance.sample(["bob", "eve", "kim", "lou", "max"], chance.randint(1, 4))}),
                ("nothing", {"é": [1.5, {"x": None}]}),
            ]
        )
        call = types_pb2.ToolCall(tool=tool, tool_call_id=f"c{chance.randint(0, 30)}")
        if chance.random() < 0.2:
            struct = Struct()
            struct.update(arguments)
            call.arguments_struct.CopyFrom(struct)
        else:
            call.arguments_json = chance.choice([json.dumps(arguments)] * 8 + ["{", '{"to":"bob","to":"eve"}'])
        thread, run = f"t{number % 3}", f"r{chance.randint(0, 2)}"
        request = riskgate_pb2.EvaluateRequest(call=call, thread_id=thread, run_id=run)
        spoiled = chance.random()
        if spoiled < 0.05:
            request.thread_id = "no spaces here"
        elif spoiled < 0.1:
            request.approval_id = "ap_nobody_has_this"
        elif spoiled < 0.15:
            request.task_id = "ta_nobody_has_this"
        elif spoiled < 0.2:
            request.min_bundle_revision = 99
        yield request


async def asked_alone(person, request: riskgate_pb2.EvaluateRequest) -> riskgate_pb2.EvaluateResult:
    """Return what Evaluate says, in the form in which a batch says it."""
    try:
        answer = await person.decisions.Evaluate(request, metadata=person.metadata, timeout=60)
    except aio.AioRpcError as error:
        refusal = refusal_of(error)
        reason = error_reason_pb2.ErrorReason.Value(f"ERROR_REASON_{refusal.reason}")
        told = riskgate_pb2.RequestError(
            code=refusal.code.value[0], reason=reason, message=refusal.message, metadata=refusal.metadata
        )
        return riskgate_pb2.EvaluateResult(error=told)
    return riskgate_pb2.EvaluateResult(response=answer)


def same(result: riskgate_pb2.EvaluateResult) -> dict[str, Any]:
    """Return what must be the same of two answers to one question."""
    told = MessageToDict(result)
    told.get("error", {}).pop("fieldViolations", None)  # tests/riskgate/decisions/test_batch.py compares these
    answer = told.get("response", {})
    told["permitted"] = bool(answer.get("permit"))
    if "approval" in answer:
        answer["approval"] = {name: answer["approval"].get(name) for name in ("state", "toolName", "argsHash", "call")}
    told["response"] = {name: value for name, value in answer.items() if name not in OWN}
    return told


@pytest.mark.parametrize("seed", range(6))
async def test_a_batch_answers_and_records_what_its_questions_get_one_by_one(make_gate, seed):
    gates = [await make_gate(name, bundle=MONEY, clock=FakeClock()) for name in ("alone", "together")]
    for gate in gates:  # so that budgets have counted something
        ana, call = gate.person("ana"), types_pb2.ToolCall(tool="transfer", tool_call_id="c")
        call.arguments_json = '{"to":"bob","amount":450}'
        await ana.redeem((await ana.evaluate(call)).permit, call)
    asked = list(requests(seed))
    people = [gate.person("ana") for gate in gates]
    alone = [await asked_alone(people[0], one) for one in asked]
    batch = riskgate_pb2.EvaluateBatchRequest(requests=asked)
    together = await people[1].decisions.EvaluateBatch(batch, metadata=people[1].metadata, timeout=60)
    assert [same(one) for one in together.results] == [same(one) for one in alone]
    assert {one.response.decision for one in alone} >= {types_pb2.DECISION_ALLOW, types_pb2.DECISION_BLOCKED}
    logs = [
        [{name: value for name, value in record.items() if name not in OWN} for record in gate.records()]
        for gate in gates
    ]
    assert logs[1] == logs[0]


async def test_whom_another_replica_keeps_from_its_place_is_answered_all_the_same_and_nobody_beside_it_waits(
    make_gate, monkeypatch
):
    gate = await make_gate(bundle=MONEY)
    ana = gate.person("ana")
    insert, busy = decision_rows.insert_decision, ["c1", "c1", "c3"]

    def insert_or_not(connection: Connection, record: decision_rows.DecisionRecord) -> None:
        if record.tool_call_id in busy:
            busy.remove(record.tool_call_id)
            raise BusyError
        insert(connection, record)

    monkeypatch.setattr(decision_rows, "insert_decision", insert_or_not)
    asked = [
        riskgate_pb2.EvaluateRequest(
            call=types_pb2.ToolCall(
                tool="transfer", tool_call_id=f"c{number}", arguments_json='{"to":"bob","amount":5}'
            ),
            thread_id="t1",
            run_id="r1",
        )
        for number in range(5)
    ]
    batch = riskgate_pb2.EvaluateBatchRequest(requests=asked)
    answer = await asyncio.wait_for(ana.decisions.EvaluateBatch(batch, metadata=ana.metadata, timeout=60), 60)
    assert [one.response.audit_index for one in answer.results] == [0, 3, 1, 4, 2]
    assert all(one.response.permit for one in answer.results)
    assert (busy, gate.count("decisions"), gate.count("audit_entries")) == ([], 5, 5)
