"""The guards of `tests.support.effort`: what is slow fails them, and what was slow once does not."""

from __future__ import annotations

import time

import pytest

from tests.support.effort import assert_linear, assert_within, attempts_within


def additions(text: str) -> int:
    """Do work that is linear in the text."""
    return sum(ord(char) for char in text * 10)


def pairs(text: str) -> int:
    """Do work that is quadratic in the text."""
    return sum(sum(range(len(text))) for _ in text)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The processor time, as one number that a test changes."""
    now = [0.0]
    monkeypatch.setattr(time, "process_time", lambda: now[0])
    return now


def test_linear_work_is_linear_and_quadratic_work_is_not():
    assert_linear(additions, "ab", 10_000, 300_000)
    with pytest.raises(AssertionError, match=r"s was allowed, and it took .* s, .* s; a short text "):
        assert_linear(pairs, "ab", 150, 4_500, tries=2)


def test_sizes_that_noise_alone_could_set_apart_are_refused():
    with pytest.raises(AssertionError, match="too close"):
        assert_linear(additions, "ab", 10_000, 100_000)


def test_a_short_text_that_was_measured_badly_changes_nothing(clock: list[float]):
    quadratic = iter([900.0, 900.0, 1.0])

    def work(text: str) -> None:
        clock[0] += next(quadratic)

    with pytest.raises(AssertionError, match=r"150\.000 s was allowed"):
        assert_linear(work, "ab", 200, 6_000, tries=1)


def test_work_over_the_bound_in_every_try_fails():
    tries = []
    with pytest.raises(AssertionError, match="3 tries took"):
        assert_within(0.001, lambda: tries.append(additions("ab" * 20_000)), tries=3)
    assert len(tries) == 3


def test_one_try_within_the_bound_is_enough(clock: list[float]):
    seconds = iter([9.0, 9.0, 1.0, 9.0])

    def work() -> None:
        clock[0] += next(seconds)

    assert_within(2, work)
    assert list(seconds) == [9.0]


def test_a_try_that_measures_nothing_fails():
    with pytest.raises(AssertionError, match="inf"):
        for _ in attempts_within(60):
            pass


def test_a_try_may_have_its_own_measure():
    own = [9.0, 9.0, 1.0]
    for attempt in attempts_within(2):
        attempt.seconds = own.pop(0)
    assert own == []
