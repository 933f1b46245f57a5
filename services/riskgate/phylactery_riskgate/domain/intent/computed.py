"""A decorator for lazily computed attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class computed(Generic[Value]):  # noqa: N801 - a decorator, as functools' own
    """A cached_property without a lock.

    Python 3.11's has one lock for all instances, so while one thread reads a large task, readers of the smallest would
    block. Two threads may compute the same value of an instance twice, with the same result.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute, self._name = compute, ""
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Store the attribute name under which the value is cached."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> Self | Value:
        """Return the value, and cache it in the instance."""
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
