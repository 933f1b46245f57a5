"""Retries, backoff and the circuit breaker of an endpoint."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from phylactery_agent.llm_client import errors
from phylactery_agent.llm_client.breaker import Breaker
from phylactery_agent.llm_client.errors import ModelFault, of_status
from phylactery_agent.llm_client.retry import LONGEST_HOLD, RetryPolicy, moment, retry_after

from tests.support.cases import each_case

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


@each_case(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:09 GMT"}, 9.0),
        ({"retry-after": "Sun, 22 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Sunday, 22-Nov-26 12:00:05 GMT"}, 5.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Sun, 99 Nov 2026 12:00:09 GMT"}, None),
    ],
)
def test_what_an_endpoint_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


def test_a_date_counts_from_the_endpoints_own_clock_whatever_ours_says() -> None:
    headers = {"retry-after": "Sun, 22 Nov 2026 08:00:05 GMT", "date": "Sun, 22 Nov 2026 08:00:00 GMT"}
    assert retry_after(headers, NOW) == 5.0
    assert retry_after(headers, moment(0)) == 5.0


def test_a_clock_beyond_all_dates_is_no_error() -> None:
    assert moment(1e20).year == 1970


def policy(attempts: int = 4, longest_wait: float = 20.0) -> RetryPolicy:
    return RetryPolicy(attempts=attempts, backoff_seconds=1.0, longest_wait=longest_wait, random=Random(1))


def test_pauses_double_with_chance_in_them_and_end() -> None:
    pauses = [policy(20).pause(made, ModelFault(errors.SERVER_ERROR)) for made in range(1, 8)]
    for pause, wanted in zip(pauses, (1, 2, 4, 8, 8, 8, 8), strict=True):
        assert pause is not None
        assert wanted / 2 <= pause <= wanted
    assert policy(3).pause(3, ModelFault(errors.SERVER_ERROR)) is None


def test_two_processes_do_not_come_back_at_the_same_moment() -> None:
    first, second = (
        RetryPolicy(attempts=3, backoff_seconds=1.0, longest_wait=20.0, random=Random(seed)) for seed in (1, 2)
    )
    fault = ModelFault(errors.SERVER_ERROR)
    assert first.pause(1, fault) != second.pause(1, fault)


def test_an_endpoint_that_says_how_long_is_given_that_time() -> None:
    pause = policy().pause(1, ModelFault(errors.RATE_LIMITED, retry_after=7.0))
    assert pause is not None
    assert 7.0 <= pause <= 7.1
    assert policy().hold(ModelFault(errors.RATE_LIMITED, retry_after=7.0)) == 0.0


def test_nobody_waits_longer_than_the_setting_and_the_endpoint_is_left_alone_for_a_bounded_time() -> None:
    day = ModelFault(errors.RATE_LIMITED, retry_after=86_400.0)
    assert policy().pause(1, day) is None
    assert policy().hold(day) == LONGEST_HOLD
    assert policy().hold(ModelFault(errors.RATE_LIMITED, retry_after=21.0)) == 21.0


@each_case(
    ("status", "code", "reason", "retried"),
    [
        (400, "", "MODEL_BAD_REQUEST", False),
        (400, "context_length_exceeded", "MODEL_CONVERSATION_TOO_LONG", False),
        (401, "", "MODEL_REFUSED_KEY", False),
        (403, "", "MODEL_FORBIDDEN", False),
        (404, "", "MODEL_NOT_FOUND", False),
        (408, "", "MODEL_TIMEOUT", True),
        (409, "", "MODEL_SERVER_ERROR", True),
        (413, "", "MODEL_CONVERSATION_TOO_LONG", False),
        (422, "", "MODEL_BAD_REQUEST", False),
        (429, "", "MODEL_RATE_LIMITED", True),
        (429, "insufficient_quota", "MODEL_QUOTA_EXHAUSTED", False),
        (500, "", "MODEL_SERVER_ERROR", True),
        (503, "invalid_api_key", "MODEL_SERVER_ERROR", True),
        (529, "", "MODEL_SERVER_ERROR", True),
        (302, "", "MODEL_REDIRECTED", False),
    ],
)
def test_what_a_status_means(status: int, code: str, reason: str, retried: bool) -> None:
    fault = of_status(status, {"error": {"code": code}}, secret="sk-1")
    assert (fault.reason, fault.retried) == (reason, retried)


@pytest.mark.parametrize("code", ["sk-secret", "x-sk-secret-y", "A person said this", "x" * 65, 7, None, {"a": 1}])
def test_of_a_body_nothing_is_told_but_a_word_that_is_not_the_key(code: Any) -> None:
    assert of_status(400, {"error": {"code": code}}, secret="sk-secret").code == ""
    assert of_status(400, {"code": code}, secret="sk-secret").code == ""
    assert of_status(400, [code], secret="sk-secret").code == ""


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def admitted(breaker: Breaker) -> Any:
    ticket = breaker.admit()
    assert ticket is not None
    return ticket


def opened(time: Time) -> Breaker:
    breaker = Breaker(3, 30.0, time)
    for _ in range(3):
        breaker.failed(admitted(breaker))
    assert breaker.state == "open"
    return breaker


def test_failures_in_a_row_open_it_and_an_answer_between_them_starts_the_count_again() -> None:
    breaker = Breaker(3, 30.0, Time())
    for _ in range(5):
        assert not breaker.failed(admitted(breaker))
        assert not breaker.failed(admitted(breaker))
        assert not breaker.succeeded(admitted(breaker))
    assert not breaker.failed(admitted(breaker))
    assert not breaker.failed(admitted(breaker))
    assert breaker.failed(admitted(breaker))
    assert breaker.admit() is None


def test_after_its_time_one_call_tries_and_an_answer_closes_it() -> None:
    time = Time()
    breaker = opened(time)
    time.now += 29.9
    assert breaker.admit() is None
    time.now += 0.1
    assert breaker.state == "half_open"
    probe = admitted(breaker)
    assert breaker.admit() is None
    assert breaker.succeeded(probe)
    assert breaker.state == "closed"
    assert admitted(breaker)
    assert admitted(breaker)


def test_a_probe_that_fails_opens_it_for_as_long_again() -> None:
    time = Time()
    breaker = opened(time)
    time.now += 30
    assert breaker.failed(admitted(breaker))
    time.now += 29.9
    assert breaker.admit() is None
    time.now += 0.1
    assert breaker.succeeded(admitted(breaker))


def test_a_probe_nobody_waited_for_lets_the_next_call_try() -> None:
    time = Time()
    breaker = opened(time)
    time.now += 30
    breaker.abandoned(admitted(breaker))
    assert breaker.succeeded(admitted(breaker))


def test_what_was_asked_before_it_opened_neither_closes_nor_prolongs_it() -> None:
    time = Time()
    breaker = Breaker(1, 30.0, time)
    early, late = admitted(breaker), admitted(breaker)
    assert breaker.failed(admitted(breaker))
    time.now += 30
    probe = admitted(breaker)
    assert not breaker.succeeded(early)
    assert not breaker.failed(late)
    breaker.abandoned(early)
    assert breaker.admit() is None
    assert breaker.succeeded(probe)


def test_an_endpoint_that_wants_to_be_left_alone_is_at_once() -> None:
    time = Time()
    breaker = Breaker(5, 30.0, time)
    assert breaker.failed(admitted(breaker), hold_seconds=60.0)
    time.now += 59
    assert breaker.admit() is None
    time.now += 1
    assert admitted(breaker).probe
