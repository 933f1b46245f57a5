"""What a card says is what an answer may name it by, and an amount in it is not taken for its place."""

from __future__ import annotations

import json

import pytest
from phylactery_agent.ports import ApprovalInfo
from phylactery_agent.ports.gate import GateArgument
from phylactery_agent.runtime.approvals.answers import values_of
from phylactery_understanding.replies.choices import Question, read_choices


def paid(to: str, amount: float) -> Question:
    told = {"to": to, "amount": amount, "urgent": True, "note": None}
    arguments = tuple(GateArgument(path=f"/{name}", display=json.dumps(value)) for name, value in told.items())
    info = ApprovalInfo(
        "ap_1", "PENDING", "self", "pay", "HIGH", "sha256:0", "t1", "run_1", "tc_1", 0, "", 0, "", arguments
    )
    return Question(values_of(info), "pay")


@pytest.mark.parametrize("text", ["yes to 1", "yes to 2", "sí a la 1", "1 yes, 2 no", "yes to #2"])
def test_a_number_that_is_the_amount_of_another_names_neither(text: str):
    read = read_choices(text, [paid("Ana", 2), paid("Bob", 1)])
    assert read is not None
    assert not read.clear
    assert not read.answers


@pytest.mark.parametrize("text", ["yes to the first, no to the second", "yes to Ana, no to Bob", "yes to 1, no to 2"])
def test_any_other_number_is_a_place(text: str):
    read = read_choices(text, [paid("Ana", 50), paid("Bob", 30.5)])
    assert read is not None
    assert read.answers == {0: "yes", 1: "no"}
