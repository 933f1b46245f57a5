"""The stakes of a call, in what RiskGate answers, signs and records."""

from __future__ import annotations

import json

import pytest
from phylactery.riskgate.v1 import explain_pb2, types_pb2

READ = ("read_file", '{"path":"a.txt"}')
FILE = '{"path":"a.txt","content":"x"}'
MAKEFILE = '{"path":"Makefile","content":"x"}'


async def test_a_decision_and_its_approval_and_its_record_have_the_stakes(gate, ana, call):
    low, high = await ana.evaluate(call("write_file", FILE)), await ana.evaluate(call("write_file", MAKEFILE, "c2"))
    assert (low.stakes, low.approval.stakes) == (types_pb2.STAKES_LOW, types_pb2.STAKES_LOW)
    assert (high.stakes, high.approval.stakes) == (types_pb2.STAKES_HIGH, types_pb2.STAKES_HIGH)
    assert [record["stakes"] for record in gate.records("decision")] == ["low", "high"]
    again = await ana.evaluate(call("write_file", MAKEFILE, "c2"))
    assert (again.replayed, again.stakes) == (True, types_pb2.STAKES_HIGH)


async def test_a_receipt_says_the_stakes_and_says_them_again(gate, ana, call):
    approval = await ana.approved()
    first = await ana.redeem((await ana.evaluate(approval=approval.id)).permit)
    again = await ana.redeem((await ana.evaluate(approval=approval.id)).permit)
    assert (first.stakes, first.low_stakes) == (types_pb2.STAKES_LOW, False), "somebody approved it"
    assert (again.stakes, again.low_stakes) == (first.stakes, first.low_stakes)
    assert gate.records("redeemed")[0]["stakes"] == "low"


async def test_what_is_unknown_has_no_stakes(ana, call):
    answer = await ana.evaluate(call("nothing_like_it", "{}"))
    assert (answer.decision, answer.stakes) == (types_pb2.DECISION_BLOCKED, types_pb2.STAKES_UNSPECIFIED)


async def test_an_explanation_says_why(ana, call):
    async def explained(path: str) -> explain_pb2.ExplainResponse:
        asked = call("write_file", json.dumps({"path": path, "content": "x"}))
        request = explain_pb2.ExplainRequest(call=asked)
        return await ana.decisions.Explain(request, metadata=ana.metadata, timeout=60)

    low, high = await explained("a.txt"), await explained("AGENTS.md")
    assert (low.stakes, list(low.stakes_reasons)) == (types_pb2.STAKES_LOW, ["reach: own", "undo: ours"])
    assert high.stakes == types_pb2.STAKES_HIGH
    assert list(high.stakes_reasons) == ["/path: other programs run or obey a file of this name"]


@pytest.mark.parametrize("name", ["write_file", "create_reminder"])
async def test_a_bundle_that_reads_no_stakes_decides_as_before(gate, ana, call, name):
    arguments = FILE if name == "write_file" else '{"text":"x","when":"tomorrow"}'
    answer = await ana.evaluate(call(name, arguments))
    assert (answer.decision, answer.approval.approval_class) == (types_pb2.DECISION_AUTH_REQUIRED, "self")
