"""A null for an argument that is not used is left out; one that decides what a call does is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.domain.policy.engine import DecisionEngine

from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, policy, tool

TEXT = {"type": "string"}
ITEM = {"type": "object", "properties": {"name": TEXT, "note": TEXT}, "required": ["name"]}
PAY = tool(
    "pay",
    {
        "to": {"type": "string", "format": "email"},
        "more": {"type": "array", "items": TEXT},
        "amount": {"type": "number"},
        "currency": {"enum": ["EUR", "USD"]},
        "file": TEXT,
        "account": {"type": "object", "properties": {"number": TEXT, "label": TEXT}},
        "note": TEXT,
        "size": {"enum": ["s", "m"]},
        "count": {"type": "integer", "default": 2},
        "either": {"type": ["string", "null"]},
        "items": {"type": "array", "items": ITEM},
        "must": TEXT,
    },
    required=("must",),
    controls=["/account/number"],
    paths=["/file"],
    amount="/amount",
    currency="/currency",
    recipients=["/to", "/more"],
    targets=["/to"],
)


def engine(folder: Path, more: str = "") -> DecisionEngine:
    return DecisionEngine(bundle_of(folder, [PAY], ALLOW_ALL + more))


@pytest.mark.parametrize(
    ("given", "bound"),
    [
        ({"note": None}, {}),
        ({"note": None, "size": None}, {}),
        ({"count": None}, {}),
        ({"either": None, "note": None}, {"either": None}),
        ({"items": [{"name": "a", "note": None}, {"name": "b"}]}, {"items": [{"name": "a"}, {"name": "b"}]}),
        ({"account": {"number": "1", "label": None}}, {"account": {"number": "1"}}),
    ],
)
def test_a_null_of_an_optional_argument_is_as_if_it_had_not_been_written(
    tmp_path: Path, given: dict[str, Any], bound: dict[str, Any]
) -> None:
    decider = engine(tmp_path)
    verdict, without = (decide(decider, "pay", {"must": "x", **one}) for one in (given, bound))
    assert verdict.decision is Decision.ALLOW
    assert verdict.bound is not None
    assert without.bound is not None
    assert verdict.bound.arguments == {"must": "x", "count": 2, **bound}
    assert verdict.bound.args_hash == without.bound.args_hash
    assert verdict.raw_args_hash != without.raw_args_hash


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"to": None}, "/to"),
        ({"more": None}, "/more"),
        ({"amount": None}, "/amount"),
        ({"currency": None}, "/currency"),
        ({"file": None}, "/file"),
        ({"account": None}, "/account"),
        ({"account": {"number": None}}, "/account/number"),
    ],
)
def test_a_null_of_what_decides_what_the_call_does_is_refused_and_the_reason_says_what_to_do(
    tmp_path: Path, given: dict[str, Any], path: str
) -> None:
    verdict = decide(engine(tmp_path), "pay", {"must": "x", "note": None, **given})
    assert verdict.decision is Decision.BLOCKED
    [reason] = verdict.reasons
    assert (reason.code, reason.path) == ("SCHEMA_VIOLATION", path)
    assert reason.message == "May not be null; leave the argument out."
    assert reason.message_es == "No puede ser null; deja el argumento fuera."


@pytest.mark.parametrize("given", [{"must": None}, {"must": "x", "items": [None]}, {"must": "x", "other": None}])
def test_a_null_that_is_required_undeclared_or_an_element_is_a_fault(tmp_path: Path, given: dict[str, Any]) -> None:
    assert decide(engine(tmp_path), "pay", given).decision is Decision.BLOCKED


def test_policies_see_the_null_that_was_left_out(tmp_path: Path) -> None:
    strict = policy("no", 'forbid (principal, action, resource) when { context.nulls.contains("/items/0/note") };')
    decider = engine(tmp_path, strict)
    assert decide(decider, "pay", {"must": "x", "items": [{"name": "a", "note": None}]}).policy_ids == ("no",)
    assert decide(decider, "pay", {"must": "x", "items": [{"name": "a"}], "note": None}).decision is Decision.ALLOW
