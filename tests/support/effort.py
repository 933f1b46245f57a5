"""Guards against work that grows out of bounds: processor time only, and one good try of several is enough.

What the machine does beside a test makes a measurement longer and never shorter, so the least of several counts. A real
regression is slow in every try. How fast something is, `make bench` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final

_TRIES: Final = 6
_MARGIN: Final = 5
"""How often in proportion to its length a longer text may cost what a short one does."""
_LEAST_SPREAD: Final = 5 * _MARGIN
"""Quadratic work costs that often in proportion, which is far more than the margin."""
_NEGLIGIBLE_SECONDS: Final = 0.1
"""What a longer text may always take: microseconds say nothing."""


class Attempt:
    """One try: ``with`` it the work runs, and ``seconds`` is the processor time of this process.

    A test that measures something else than the whole of the work says so: ``attempt.seconds = …`` after the block.
    """

    def __init__(self) -> None:
        self.seconds = float("inf")
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.process_time() - self._began


def attempts_within(seconds: float, tries: int = _TRIES) -> Iterator[Attempt]:
    """Yield attempts until one took no more than so many seconds; fail if none of them did."""
    taken: list[float] = []
    for _ in range(tries):
        attempt = Attempt()
        yield attempt
        taken.append(attempt.seconds)
        if attempt.seconds <= seconds:
            return
    raise AssertionError(f"no more than {seconds} s was allowed, and {tries} tries took {_listed(taken)}")


def assert_within(seconds: float, work: Callable[[], object], tries: int = _TRIES) -> None:
    """Fail if the work takes more processor time than that in every one of several tries."""
    for attempt in attempts_within(seconds, tries):
        with attempt:
            work()


def assert_linear(work: Callable[[str], object], unit: str, short: int, long: int, tries: int = _TRIES) -> None:
    """Fail if the work on a long text of repeated units takes far more than in proportion to a short one.

    The sizes are in characters and far apart, so that quadratic work is five times over the limit.
    """
    spread = long / short
    assert spread >= _LEAST_SPREAD, f"{short} and {long} characters are too close to tell growth from noise"
    few, many = ((unit * (size // len(unit) + 1))[:size] for size in (short, long))
    of_few, of_many = [], []
    for _ in range(tries):
        # Before and after: one measurement of the short text that was disturbed would make the limit a wide one
        of_few.append(_seconds(work, few))
        of_many.append(_seconds(work, many))
        of_few.append(_seconds(work, few))
        most = max(_NEGLIGIBLE_SECONDS, _MARGIN * spread * min(of_few))
        if min(of_many) <= most:
            return
    raise AssertionError(f"{most:.3f} s was allowed, and it took {_listed(of_many)}; a short text {_listed(of_few)}")


def _seconds(work: Callable[[str], object], text: str) -> float:
    attempt = Attempt()
    with attempt:
        work(text)
    return attempt.seconds


def _listed(taken: list[float]) -> str:
    return ", ".join(f"{one:.3f} s" for one in taken)
