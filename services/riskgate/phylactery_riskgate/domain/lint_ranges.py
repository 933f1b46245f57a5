"""Finds literals a fact can never be: the comparison then always comes out the same, and nothing says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

from cedarpy import pst

from phylactery_riskgate.domain.approval_syntax import context_path
from phylactery_riskgate.domain.fact_types import RecordOf, Scalar, SetOf
from phylactery_riskgate.domain.policies import children

_COMPARES = frozenset(
    {"eq", "not_eq", "less", "less_eq", "greater", "greater_eq"}
    | {"decimal_less_than", "decimal_less_eq", "decimal_greater", "decimal_greater_eq"}
)
_ASKS_SET = frozenset({"contains", "contains_all", "contains_any"})

Literal = str | Decimal


def impossible_literals(node: Any, contexts: list[RecordOf]) -> Iterator[str]:
    """Answers a sentence for every literal that no tool the policy covers could ever have in its place."""
    if isinstance(node, pst.BinaryOp) and node.op in _COMPARES | _ASKS_SET:
        for fact, other in ((node.left, node.right), (node.right, node.left)):
            path = context_path(fact)
            for literal in _literals(other) if path else ():
                yield from _judged(path or (), literal, contexts)
    elif isinstance(node, pst.Like):
        path = context_path(node.base)
        text = "".join(part.value for part in node.pattern if isinstance(part, pst.Char))
        scalars = _scalars(path, contexts) if path else []
        if path and scalars and text != text.lower() and all(one.folded for one in scalars):
            yield f"like asks for capital letters, and {_named(path)} has none"
    for child in children(node):
        yield from impossible_literals(child, contexts)


def _judged(path: tuple[str, ...], literal: Literal, contexts: list[RecordOf]) -> Iterator[str]:
    scalars = _scalars(path, contexts)
    if scalars and not any(one.can_be(literal) for one in scalars):
        yield f"{_named(path)} is never {literal!s}: {_range(scalars[0], literal)}"


def _scalars(path: tuple[str, ...] | None, contexts: list[RecordOf]) -> list[Scalar]:
    """Answers what stands at a path, or is an element of what stands there, for every tool that has it."""
    found: list[Scalar] = []
    for context in contexts:
        fact: Any = context
        for name in path or ():
            field = fact.fields.get(name) if isinstance(fact, RecordOf) else None
            fact = None if field is None else field.type
        fact = fact.element if isinstance(fact, SetOf) else fact
        if isinstance(fact, Scalar):
            found.append(fact)
    return found


def _literals(node: Any) -> Iterator[Literal]:
    if isinstance(node, pst.StringLit):
        yield node.value
    elif isinstance(node, pst.LongLit):
        yield Decimal(node.value)
    elif isinstance(node, pst.UnaryOp) and node.op == "decimal" and isinstance(node.arg, pst.StringLit):
        with suppress(InvalidOperation):  # no decimal at all, which Cedar's own validation tells
            yield Decimal(node.arg.value)
    elif isinstance(node, pst.Set):
        for element in node.elements:
            yield from _literals(element)


def _range(scalar: Scalar, literal: Literal) -> str:
    if scalar.values is not None:
        return "it is one of " + ", ".join(sorted(map(str, scalar.values))[:10])
    if isinstance(literal, str):
        return "it has no capital letter"
    low, high = scalar.low, scalar.high
    if low is not None and high is not None:
        return f"it lies between {low} and {high}"
    return f"it is at least {low}" if low is not None else f"it is at most {high}"


def _named(path: tuple[str, ...]) -> str:
    return "context." + ".".join(path)
