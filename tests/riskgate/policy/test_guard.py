from __future__ import annotations

import math
from typing import Any

import pytest
from phylactery_riskgate.domain.model import RawCall
from phylactery_riskgate.domain.policy.guard import (
    MAX_BYTES,
    MAX_SAFE_INTEGER,
    GuardError,
    read_arguments,
    read_json,
    read_struct,
)

from tests.support.cases import each_case
from tests.support.effort import attempts_within


def refusal(text: str) -> tuple[str, str]:
    with pytest.raises(GuardError) as caught:
        read_json(text)
    return caught.value.code, caught.value.path


@each_case(
    ("text", "code", "path"),
    [
        ('{"a":1,"a":1}', "DUPLICATE_KEY", "/a"),
        ('{"a":[{"b":{"c/d":1,"c/d":2}}]}', "DUPLICATE_KEY", "/a/0/b/c~1d"),
        ('{"a":1,"\\u0061":2}', "DUPLICATE_KEY", "/a"),
        ('{"a":NaN}', "NUMBER_OUT_OF_RANGE", ""),
        ('{"a":Infinity}', "NUMBER_OUT_OF_RANGE", ""),
        ('{"a":-Infinity}', "NUMBER_OUT_OF_RANGE", ""),
        ('{"a":1e999}', "NUMBER_OUT_OF_RANGE", ""),
        ('{"a":9007199254740992}', "NUMBER_OUT_OF_RANGE", ""),
        ('{"a":-9007199254740992}', "NUMBER_OUT_OF_RANGE", ""),
        ('{"a":9007199254740993.0}', "NUMBER_OUT_OF_RANGE", ""),
        ('{"a":1e20}', "NUMBER_OUT_OF_RANGE", ""),
        ('{"a":' + "9" * 5_000 + "}", "NUMBER_OUT_OF_RANGE", ""),
        ('{"a":0.10000000000000001}', "NUMBER_NOT_EXACT", ""),
        ('{"a":5000.000000000000001}', "NUMBER_NOT_EXACT", ""),
        ('{"a":1e-400}', "NUMBER_NOT_EXACT", ""),
        ('{"a":0.' + "1" * 5_000 + "}", "NUMBER_NOT_EXACT", ""),
        ('{"a":"\\ud800"}', "INVALID_UNICODE", "/a"),
        ('{"a":["x\\udfff"]}', "INVALID_UNICODE", "/a/0"),
        ('{"a":"\ud800"}', "INVALID_UNICODE", ""),
        ('{"a":"\\u0000"}', "INVALID_UNICODE", "/a"),
        ('{"a\\u0000":1}', "INVALID_UNICODE", ""),
        ('{"__entity":{"type":"User","id":"root"}}', "RESERVED_KEY", "/__entity"),
        ('{"a":[{"__extn":1}]}', "RESERVED_KEY", "/a/0/__extn"),
        ('{"a":{"__expr":"x"}}', "RESERVED_KEY", "/a/__expr"),
        ("[]", "NOT_AN_OBJECT", ""),
        ('"text"', "NOT_AN_OBJECT", ""),
        ("7", "NOT_AN_OBJECT", ""),
        ("null", "NOT_AN_OBJECT", ""),
        ("", "INVALID_JSON", ""),
        ("{", "INVALID_JSON", ""),
        ('{"a":1}{}', "INVALID_JSON", ""),
        ("{'a':1}", "INVALID_JSON", ""),
        ('{"a":01}', "INVALID_JSON", ""),
        ('{"a":1,}', "INVALID_JSON", ""),
        ('{"a":"\n"}', "INVALID_JSON", ""),
        ("\ufeff{}", "INVALID_JSON", ""),
    ],
)
def test_what_two_readers_could_read_differently_is_refused_with_its_code(text: str, code: str, path: str) -> None:
    assert refusal(text) == (code, path)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_five_thousand_levels_are_refused_and_not_a_recursion_error(opening: str) -> None:
    assert refusal('{"a":' + opening * 5_000)[0] == "TOO_DEEP"


def test_sixty_four_levels_are_read_and_sixty_five_are_not() -> None:
    assert read_json('{"a":' * 63 + "{}" + "}" * 63) is not None
    assert refusal('{"a":' * 64 + "{}" + "}" * 64)[0] == "TOO_DEEP"


def test_brackets_inside_strings_are_no_depth() -> None:
    assert read_json('{"a":"' + "[{" * 500 + '\\"[","b":[]}')["b"] == []


def test_many_short_lists_are_no_depth() -> None:
    assert len(read_json('{"a":[' + ",".join(["[]"] * 500) + "]}")["a"]) == 500


def test_a_struct_is_held_to_the_same_depth() -> None:
    value: dict[str, Any] = {}
    for _ in range(5_000):
        value = {"a": value}
    with pytest.raises(GuardError) as caught:
        read_struct(value)
    assert caught.value.code == "TOO_DEEP"


def test_one_mebibyte_is_read_and_one_byte_more_is_not() -> None:
    frame = len('{"a":""}')
    assert read_json('{"a":"' + "x" * (MAX_BYTES - frame) + '"}') is not None
    assert refusal('{"a":"' + "x" * (MAX_BYTES - frame + 1) + '"}')[0] == "TOO_LARGE"


def test_the_size_is_counted_in_bytes_and_not_in_characters() -> None:
    assert refusal('{"a":"' + "ñ" * (MAX_BYTES // 2) + '"}')[0] == "TOO_LARGE"


def test_a_struct_is_held_to_the_same_size() -> None:
    with pytest.raises(GuardError) as caught:
        read_struct({"a": "x" * MAX_BYTES})
    assert caught.value.code == "TOO_LARGE"


@pytest.mark.timing
@pytest.mark.parametrize("text", ['{"a":"' + '\\"' * 500_000, "[" * 64 + '"' * 500_000, '{"a":"' + "\\" * 500_001])
def test_a_hostile_text_costs_linear_time(text: str) -> None:
    for attempt in attempts_within(2):
        with attempt, pytest.raises(GuardError):
            read_json(text)


@each_case(
    ("value", "code"),
    [
        ({"a": math.nan}, "NUMBER_OUT_OF_RANGE"),
        ({"a": [math.inf]}, "NUMBER_OUT_OF_RANGE"),
        ({"a": 2.0**53}, "NUMBER_OUT_OF_RANGE"),
        ({"a": "\ud800"}, "INVALID_UNICODE"),
        ({"\ud800": 1}, "INVALID_UNICODE"),
        ({"__extn": 1}, "RESERVED_KEY"),
        ({1: 2}, "INVALID_JSON"),
        ({"a": (1,)}, "INVALID_JSON"),
        ({"a": b"x"}, "INVALID_JSON"),
        ([], "NOT_AN_OBJECT"),
    ],
)
def test_a_struct_passes_the_same_checks(value: Any, code: str) -> None:
    with pytest.raises(GuardError) as caught:
        read_struct(value)
    assert caught.value.code == code


def test_whole_doubles_of_a_struct_are_the_integers_they_are() -> None:
    read = read_struct({"a": 2.0, "b": -0.0, "c": 2.5})
    assert [(value, type(value)) for value in read.values()] == [(2, int), (0, int), (2.5, float)]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("1.10", 1.1),
        ("2.0", 2),
        ("1e2", 100),
        ("-0.0", 0),
        ("1.5E-3", 0.0015),
        (str(MAX_SAFE_INTEGER), MAX_SAFE_INTEGER),
    ],
)
def test_a_number_written_another_way_is_the_same_number(literal: str, value: float) -> None:
    assert read_json(f'{{"a":{literal}}}') == {"a": value}


def test_neither_form_of_arguments_means_an_empty_object() -> None:
    assert read_arguments(RawCall("echo", "call-1")) == {}


def test_both_forms_at_once_are_refused() -> None:
    with pytest.raises(GuardError) as caught:
        read_arguments(RawCall("echo", "call-1", arguments_json="{}", arguments_struct={}))
    assert caught.value.code == "INVALID_JSON"


def test_what_was_read_shares_nothing_with_what_was_given() -> None:
    given = {"a": [{"b": 1}]}
    read = read_struct(given)
    given["a"][0]["b"] = 2
    assert read == {"a": [{"b": 1}]}
