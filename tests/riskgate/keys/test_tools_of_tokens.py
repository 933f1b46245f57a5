"""`tools:` of a token: RiskGate decides and redeems only for these tools."""

from __future__ import annotations

from typing import Any

import grpc
from phylactery.riskgate.v1 import riskgate_pb2

from tests.support.riskgate.people import Person, tool_call

READ = tool_call("read_file", '{"path":"notes.txt"}')


def those(gate: Any) -> list[Person]:
    return [gate.person("narrow"), Person(gate.channel, "shop", "ana", "acme")]


async def test_a_tool_that_the_token_does_not_name_is_refused_and_nothing_is_recorded(gate, refused):
    for person in those(gate):
        before = len(gate.records())
        refusal = await refused(person.evaluate())
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "TOOL_NOT_GRANTED")
        assert dict(refusal.metadata) == {"tool": "write_file"}
        assert len(gate.records()) == before


async def test_a_tool_that_the_token_names_is_decided_about_as_ever(gate):
    for person in those(gate):
        answer = await person.evaluate(READ)
        assert answer.permit
        assert (await person.redeem(answer.permit, READ, execution=f"execution-{answer.decision_id}")).receipt


async def test_a_permit_of_another_token_of_the_same_user_is_not_redeemed_with_it(gate, refused):
    whole = gate.through_agent("ana")
    call = tool_call("list_dir", "{}")
    permit = (await whole.evaluate(call)).permit
    assert permit
    refusal = await refused(Person(gate.channel, "shop", "ana", "acme").redeem(permit, call))
    assert refusal.reason == "TOOL_NOT_GRANTED"
    assert (await whole.redeem(permit, call)).receipt


async def test_in_a_batch_each_call_is_held_to_the_tools_of_the_token(gate):
    person = gate.person("narrow")
    requests = [
        riskgate_pb2.EvaluateRequest(call=call, thread_id="t1", run_id="r1")
        for call in (tool_call(call_id="c2"), tool_call("read_file", '{"path":"notes.txt"}', "c3"))
    ]
    answer = await person.decisions.EvaluateBatch(
        riskgate_pb2.EvaluateBatchRequest(requests=requests), metadata=person.metadata
    )
    first, second = answer.results
    assert "TOOL_NOT_GRANTED" in str(first.error)
    assert second.response.permit
