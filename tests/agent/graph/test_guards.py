"""Loop guards: what counts as a loop, and what only looks like one."""

from __future__ import annotations

import json

import pytest
from phylactery_agent.graph.core.guards import (
    CALLS_KEPT,
    MAX_SUPERSTEPS,
    MAX_TOOL_CALLS,
    CallRecord,
    budget_spent,
    call_record,
    judge,
    with_call,
)


def record(name: str, result: str = "same") -> CallRecord:
    return call_record("echo", {"text": name}, result)


def verdict(*calls: CallRecord) -> tuple[str, str]:
    judged = judge(calls)
    return judged.kind, judged.reason


def test_nothing_called_and_one_call_are_fine() -> None:
    assert verdict() == ("ok", "")
    assert verdict(record("a")) == ("ok", "")


def test_the_same_call_with_the_same_result_is_a_hint_the_second_and_a_loop_the_third_time() -> None:
    assert verdict(record("a"), record("a")) == ("hint", "REPEATED_CALL")
    assert verdict(record("a"), record("a"), record("a")) == ("loop", "REPEATED_CALL")


def test_what_stands_between_the_same_calls_changes_nothing() -> None:
    assert verdict(record("a"), record("b"), record("a")) == ("hint", "REPEATED_CALL")
    assert verdict(record("a"), record("b"), record("a"), record("c"), record("a")) == ("loop", "REPEATED_CALL")


def test_the_same_call_with_another_result_is_somebody_waiting() -> None:
    assert verdict(*(record("a", f"{number}") for number in range(5))) == ("ok", "")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (call_record("echo", {"text": "a"}, "x"), call_record("count", {"text": "a"}, "x")),
        (call_record("echo", {"text": "a"}, "x"), call_record("echo", {"text": "b"}, "x")),
        (call_record("echo", {"text": "a"}, "x"), call_record("echo", {"text": "a"}, "y")),
        (call_record("a", {"b": 1}, ""), call_record("a", {"b": "1"}, "")),
    ],
)
def test_another_tool_argument_or_result_is_another_call(first: CallRecord, second: CallRecord) -> None:
    assert verdict(first, second, first)[0] == "hint"
    assert verdict(first, second) == ("ok", "")


def test_the_order_of_arguments_makes_no_other_call() -> None:
    assert call_record("t", {"a": 1, "b": 2}, "") == call_record("t", {"b": 2, "a": 1}, "")


def test_two_calls_that_take_turns_over_six_are_a_loop_though_their_results_change() -> None:
    calls = [record("ab"[number % 2], f"{number}") for number in range(6)]
    assert [verdict(*calls[: length + 1])[0] for length in range(6)] == ["ok"] * 5 + ["loop"]
    assert verdict(*calls)[1] == "ALTERNATING_CALLS"
    assert verdict(*calls[:5], record("c", "5")) == ("ok", "")


def test_one_call_whose_results_change_does_not_take_turns_with_itself() -> None:
    assert verdict(*(record("a", f"{number}") for number in range(6))) == ("ok", "")


def test_arguments_no_json_can_hold_are_told_apart_and_stop_nothing() -> None:
    odd = {"text": "\ud800", "n": float("nan")}
    assert call_record("echo", odd, "x") == call_record("echo", odd, "x")
    assert call_record("echo", odd, "x") != call_record("echo", {**odd, "n": 1}, "x")


def test_a_record_holds_no_value_and_survives_json() -> None:
    made = call_record("echo", {"text": "secreto-de-ana"}, "respuesta-de-ana")
    assert "-de-ana" not in json.dumps(made)
    assert json.loads(json.dumps(made)) == made


def test_so_many_records_are_kept_that_no_call_of_a_run_is_forgotten() -> None:
    calls: list[CallRecord] = []
    for number in range(CALLS_KEPT + 5):
        calls = with_call(calls, record(f"{number}"))
    assert len(calls) == CALLS_KEPT > MAX_TOOL_CALLS
    assert calls[-1] == record(f"{CALLS_KEPT + 4}")


def test_a_budget_names_why_nothing_new_is_begun() -> None:
    assert budget_spent(supersteps=0, tool_calls=0, needed=6) == ""
    assert budget_spent(supersteps=MAX_SUPERSTEPS - 6, tool_calls=0, needed=6) == ""
    assert budget_spent(supersteps=MAX_SUPERSTEPS - 5, tool_calls=0, needed=6) == "STEP_LIMIT"
    assert budget_spent(supersteps=0, tool_calls=MAX_TOOL_CALLS, needed=0) == "TOOL_CALL_LIMIT"
