"""Decisions, approvals and permits made before paths were bound in NFC stay valid, for the same file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from phylactery.riskgate.v1 import types_pb2

COMPOSED, DECOMPOSED = "caf\u00e9.txt", "cafe\u0301.txt"


def of(call, tool: str, path: str):
    more = {"content": "x", "append": True} if tool == "write_file" else {}
    return call(tool, json.dumps({"path": path, **more}, ensure_ascii=False))


@contextmanager
def as_before(gate, tool: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bind as earlier versions did."""
    with monkeypatch.context() as patched:
        patched.setattr(gate.riskgate.core.engine._prepared[tool].binder, "_paths", ())
        yield


def path_of(bound: types_pb2.BoundCall) -> str:
    return json.loads(bound.arguments_json)["path"]


async def test_an_approval_of_the_former_spelling_counts(gate, ana, call, monkeypatch):
    proposed = of(call, "write_file", DECOMPOSED)
    with as_before(gate, "write_file", monkeypatch):
        asked = await ana.evaluate(proposed)
        assert path_of(asked.bound_call) == DECOMPOSED
        approval = await ana.approve(asked.approval)
    answer = await ana.evaluate(proposed, approval=approval.id)
    assert answer.decision == types_pb2.DECISION_ALLOW
    assert path_of(answer.bound_call) == COMPOSED
    redeemed = await ana.redeem(answer.permit, proposed)
    assert path_of(redeemed.bound_call) == COMPOSED


async def test_a_former_permit_is_redeemed_and_its_answer_repeated(gate, ana, call, monkeypatch):
    proposed = of(call, "read_file", DECOMPOSED)
    with as_before(gate, "read_file", monkeypatch):
        answer = await ana.evaluate(proposed)
    again = await ana.evaluate(proposed)
    assert (again.decision_id, path_of(again.bound_call)) == (answer.decision_id, DECOMPOSED)
    redeemed = await ana.redeem(answer.permit, proposed)
    assert path_of(redeemed.bound_call) == DECOMPOSED
    assert (await ana.redeem(answer.permit, proposed)).receipt == redeemed.receipt


async def test_a_new_call_in_either_spelling_is_the_same_call(ana, call, refused):
    first = await ana.evaluate(of(call, "write_file", DECOMPOSED))
    approval = await ana.approve(first.approval)
    answer = await ana.evaluate(of(call, "write_file", DECOMPOSED), approval=approval.id)
    assert path_of(answer.bound_call) == COMPOSED
    other = await refused(ana.redeem(answer.permit, of(call, "write_file", "cafe.txt")))
    assert other.reason == "ARGS_MISMATCH"
