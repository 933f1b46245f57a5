"""A table of alike cases as one test, whose cases are subtests.

An item of its own costs every worker its collection, and then set-up, teardown and three reports: several times what
most of the cases of our tables take. All cases of a table are tried, whichever fail, and each that fails is named.
Cases that need a fixture of their own, or a mark, remain items of ``pytest.mark.parametrize``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import pytest


def each_case(
    names: str | Sequence[str], table: Iterable[Any], *, ids: Iterable[object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that takes what ``pytest.mark.parametrize`` takes; several make every combination."""
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    bare = isinstance(names, str) and len(keys) == 1
    rows = [dict(zip(keys, (row,) if bare else row, strict=True)) for row in table]
    named = list(zip([""] * len(rows) if ids is None else map(str, ids), rows, strict=True))

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        below = getattr(test, "cases", [("", {})])
        function = getattr(test, "one_case", test)
        cases = [(" ".join(filter(None, (a, b))), row | rest) for a, row in named for b, rest in below]

        @wraps(function)
        def every(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for name, case in cases:
                with subtests.test(name or None, **case):
                    function(**case, **fixtures)

        own = [one for one in inspect.signature(function).parameters.values() if one.name not in cases[0][1]]
        fixture = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        asked = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
        every.__signature__ = inspect.Signature([*asked, fixture])  # type: ignore[attr-defined]
        every.cases, every.one_case = cases, function  # type: ignore[attr-defined]
        return every

    return decorate
