"""`tools:` of a token: RiskGate decides and redeems only for these tools."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
import yaml
from grpc import aio
from phylactery.riskgate.v1 import key_pb2, riskgate_pb2
from phylactery_chassis.auth.identity import token_hash

from tests.support.riskgate.people import Person, tool_call

READ = tool_call("read_file", '{"path":"notes.txt"}')
NARROW = {
    "narrow": {"tenant": "acme", "roles": ["caller"], "tools": ["read_file", "echo"]},
    "shop": {"tenant": "acme", "roles": ["delegate"], "tools": ["read_file"]},
}


@pytest.fixture
async def narrow_gate(gate: Any) -> Any:
    """The running gate, which two more tokens are added to."""
    path = gate.settings.tokens_file
    entries = yaml.safe_load(path.read_text())["tokens"]
    entries += [{"hash": token_hash(f"token-of-{name}"), "subject": name, **entry} for name, entry in NARROW.items()]
    path.write_text(yaml.safe_dump({"tokens": entries}))
    narrow = gate.person("narrow")
    async with asyncio.timeout(20):
        while True:
            try:
                await narrow.keys.ListKeys(key_pb2.ListKeysRequest(), metadata=narrow.metadata)
            except aio.AioRpcError:
                await asyncio.sleep(0.05)
            else:
                return gate


def those(gate: Any) -> list[Person]:
    return [gate.person("narrow"), Person(gate.channel, "shop", "ana", "acme")]


@pytest.mark.slow
async def test_a_tool_that_the_token_does_not_name_is_refused_and_nothing_is_recorded(narrow_gate, refused):
    for person in those(narrow_gate):
        before = len(narrow_gate.records())
        refusal = await refused(person.evaluate())
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "TOOL_NOT_GRANTED")
        assert dict(refusal.metadata) == {"tool": "write_file"}
        assert len(narrow_gate.records()) == before


@pytest.mark.slow
async def test_a_tool_that_the_token_names_is_decided_about_as_ever(narrow_gate):
    for person in those(narrow_gate):
        answer = await person.evaluate(READ)
        assert answer.permit
        assert (await person.redeem(answer.permit, READ, execution=f"execution-{answer.decision_id}")).receipt


@pytest.mark.slow
async def test_a_permit_of_another_token_of_the_same_user_is_not_redeemed_with_it(narrow_gate, refused):
    whole = narrow_gate.through_agent("ana")
    call = tool_call("list_dir", "{}")
    permit = (await whole.evaluate(call)).permit
    assert permit
    refusal = await refused(Person(narrow_gate.channel, "shop", "ana", "acme").redeem(permit, call))
    assert refusal.reason == "TOOL_NOT_GRANTED"
    assert (await whole.redeem(permit, call)).receipt


@pytest.mark.slow
async def test_in_a_batch_each_call_is_held_to_the_tools_of_the_token(narrow_gate):
    person = narrow_gate.person("narrow")
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
