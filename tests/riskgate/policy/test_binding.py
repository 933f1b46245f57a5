from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.model import Decision, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine

from tests.support.effort import attempts_within
from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, policy, tool

ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string"}, "country": {"type": "string", "default": "ES"}},
    "required": ["street"],
    "additionalProperties": False,
}
ORDER = tool(
    "order",
    {
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
        "address": {**ADDRESS, "default": {"street": "Mayor 1"}},
        "stops": {"type": "array", "items": ADDRESS},
        "code": {"type": "string", "pattern": "^(a+)+$", "maxLength": 40},
        "mail": {"type": "string", "format": "email"},
        "site": {"type": "string", "format": "uri"},
        "size": {"enum": ["s", "m"]},
    },
    required=(),
)


@pytest.fixture
def engine(tmp_path: Path) -> DecisionEngine:
    return DecisionEngine(
        bundle_of(tmp_path, [ORDER, tool("strict", {"a": {"type": "string"}}, required=("a",))], ALLOW_ALL)
    )


def arguments_of(verdict: Verdict) -> dict[str, Any]:
    assert verdict.bound is not None
    return verdict.bound.arguments


def hash_of(verdict: Verdict) -> str:
    assert verdict.bound is not None
    return verdict.bound.args_hash


def test_defaults_are_written_out_at_every_depth(engine: DecisionEngine) -> None:
    bound = arguments_of(
        decide(engine, "order", {"stops": [{"street": "Sol 3"}, {"street": "Luna 4", "country": "PT"}]})
    )
    assert bound == {
        "count": 2,
        "address": {"street": "Mayor 1", "country": "ES"},
        "stops": [{"street": "Sol 3", "country": "ES"}, {"street": "Luna 4", "country": "PT"}],
    }


def test_an_omitted_default_and_a_spelled_out_one_are_one_call(engine: DecisionEngine) -> None:
    omitted = decide(engine, "order", {})
    spelled = decide(engine, "order", '{"count": 2.0, "address": {"country": "ES", "street": "Mayor 1"}}')
    assert hash_of(omitted) == hash_of(spelled)
    assert omitted.raw_args_hash != spelled.raw_args_hash


def test_a_text_and_the_number_in_it_are_two_calls(tmp_path: Path) -> None:
    engine = DecisionEngine(bundle_of(tmp_path, [tool("any", {"a": {"type": ["string", "integer"]}})], ALLOW_ALL))
    assert hash_of(decide(engine, "any", {"a": "2"})) != hash_of(decide(engine, "any", {"a": 2}))


def test_a_struct_and_the_same_text_are_one_call(engine: DecisionEngine) -> None:
    from phylactery_riskgate.domain.model import Caller, CallSite, RawCall

    struct = RawCall("order", "call-1", arguments_struct={"count": 3.0})
    verdict = engine.decide(struct, Caller("ana", "acme"), CallSite("thread-1", "run-1"))
    assert hash_of(verdict) == hash_of(decide(engine, "order", '{"count":3}'))


def test_what_is_returned_is_what_was_hashed(engine: DecisionEngine) -> None:
    bound = decide(engine, "order", {"count": 3}).bound
    assert bound is not None
    assert json.loads(bound.arguments_json) == bound.arguments


@pytest.mark.parametrize(
    ("arguments", "path", "message"),
    [
        ({"count": 0}, "/count", "Must be at least 1."),
        ({"count": 10}, "/count", "Must be at most 9."),
        ({"count": "2"}, "/count", "Must be of type integer."),
        ({"count": 2.5}, "/count", "Must be of type integer."),
        ({"count": True}, "/count", "Must be of type integer."),
        ({"stops": [{"street": "x"}, {}]}, "/stops/1", "The argument street is missing."),
        ({"stops": [{"street": 1}]}, "/stops/0/street", "Must be of type string."),
        ({"a/b": 1}, "/?", "The schema has no such argument."),
        ({"code": "b"}, "/code", "Does not have the form the schema requires."),
        ({"code": "a" * 41}, "/code", "Must have at most 40 characters."),
        ({"mail": "ana"}, "/mail", "Is not a valid email."),
        ({"mail": "Ana <ana@example.org>"}, "/mail", "Is not a valid email."),
        ({"site": "not a uri"}, "/site", "Is not a valid uri."),
        ({"size": "xl"}, "/size", "Is not one of the values the schema allows."),
    ],
)
def test_a_violation_says_where_and_what_in_both_languages(
    engine: DecisionEngine, arguments: dict[str, Any], path: str, message: str
) -> None:
    verdict = decide(engine, "order", arguments)
    reason = verdict.reasons[0]
    assert (verdict.decision, verdict.bound, reason.code) == (Decision.BLOCKED, None, "SCHEMA_VIOLATION")
    assert (reason.path, reason.message) == (path, message)
    assert reason.message_es not in {"", message}


def test_a_missing_argument_is_named(engine: DecisionEngine) -> None:
    assert decide(engine, "strict", {}).reasons[0].message_es == "Falta el argumento a."


def test_no_reason_ever_holds_a_value(engine: DecisionEngine) -> None:
    secret = "hunter2-hunter2"
    verdict = decide(
        engine, "order", dict.fromkeys(("count", "address", "stops", "code", "mail", "site", "size"), secret)
    )
    assert len(verdict.reasons) == 7
    assert secret not in repr(verdict)


def test_at_most_twenty_reasons_are_given(engine: DecisionEngine) -> None:
    verdict = decide(engine, "order", {"stops": [{"street": index} for index in range(1_000)]})
    assert len(verdict.reasons) == 20


@pytest.mark.timing
def test_a_pattern_costs_linear_time(engine: DecisionEngine) -> None:
    for attempt in attempts_within(1):
        with attempt:
            verdict = decide(engine, "order", {"code": "a" * 39 + "!"})
        assert verdict.decision is Decision.BLOCKED


def test_a_name_nobody_declared_is_in_no_path(engine: DecisionEngine) -> None:
    assert decide(engine, "order", {"x\u202ey\u001b[2J": 1}).reasons[0].path == "/?"
    assert decide(engine, "order", {"hunter2": {"__entity": 1}}).reasons[0].path == "/?/?"
    assert decide(engine, "order", '{"stops": [{"street": "a", "street": "b"}]}').reasons[0].path == "/stops/0/street"
    assert decide(engine, "order", '{"7": 1, "7": 2}').reasons[0].path == "/?"


def test_a_declared_name_with_hostile_characters_is_made_visible(tmp_path: Path) -> None:
    engine = DecisionEngine(bundle_of(tmp_path, [tool("odd", {"x\u202ey": {"type": "integer"}})], ALLOW_ALL))
    assert decide(engine, "odd", {"x\u202ey": "1"}).reasons[0].path == "/x\\u202ey"


def test_defaults_that_break_a_rule_over_several_arguments_are_a_violation(tmp_path: Path) -> None:
    entry = tool("pair", {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}})
    entry["schema"]["maxProperties"] = 1
    engine = DecisionEngine(bundle_of(tmp_path, [entry], ALLOW_ALL))
    assert decide(engine, "pair", {"a": 1}).reasons[0].code == "SCHEMA_VIOLATION"


def test_binding_does_not_touch_the_catalog_s_defaults(engine: DecisionEngine) -> None:
    first = arguments_of(decide(engine, "order", {}))
    first["address"]["street"] = "changed"
    assert arguments_of(decide(engine, "order", {}))["address"]["street"] == "Mayor 1"


COMPOSED, DECOMPOSED = "caf\u00e9.txt", "cafe\u0301.txt"
MOVE = tool(
    "move",
    {
        "path": {"type": "string", "maxLength": 40},
        "options": {"type": "object", "properties": {"to": {"type": "string"}}},
        "text": {"type": "string"},
    },
    paths=["/path", "/options/to"],
)


def test_names_of_files_are_bound_in_nfc_and_nothing_else_is(tmp_path: Path) -> None:
    engine = DecisionEngine(bundle_of(tmp_path, [MOVE], ALLOW_ALL))
    given = {"path": DECOMPOSED, "options": {"to": DECOMPOSED}, "text": DECOMPOSED}
    verdict = decide(engine, "move", given)
    assert verdict.bound is not None
    assert verdict.bound.arguments == {"path": COMPOSED, "options": {"to": COMPOSED}, "text": DECOMPOSED}
    again = decide(engine, "move", verdict.bound.arguments)
    assert again.bound is not None
    assert (again.bound.args_hash, again.bound.former) == (verdict.bound.args_hash, None)
    assert verdict.bound.former is not None
    assert verdict.bound.former.arguments == given
    assert verdict.raw_args_hash == verdict.bound.former.args_hash, "what was proposed is on record"


def test_a_policy_on_a_name_holds_for_every_spelling_of_it(tmp_path: Path) -> None:
    statement = (
        f'forbid (principal, action, resource) when {{ context.args has path && context.args.path == "{COMPOSED}" }};'
    )
    engine = DecisionEngine(bundle_of(tmp_path, [MOVE], ALLOW_ALL + policy("no", statement)))
    for path in (COMPOSED, DECOMPOSED, unicodedata.normalize("NFD", COMPOSED)):
        assert decide(engine, "move", {"path": path}).decision is Decision.BLOCKED
    assert decide(engine, "move", {"path": "cafe.txt"}).decision is Decision.ALLOW


def test_a_name_that_fits_the_schema_only_as_it_was_written_is_refused(tmp_path: Path) -> None:
    growing = "\U0001d15e"  # one character that NFC writes as two
    engine = DecisionEngine(bundle_of(tmp_path, [MOVE], ALLOW_ALL))
    assert decide(engine, "move", {"path": growing * 20}).decision is Decision.ALLOW
    assert decide(engine, "move", {"path": growing * 21}).reasons[0].code == "SCHEMA_VIOLATION"
