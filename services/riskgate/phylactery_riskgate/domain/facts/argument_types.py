"""Cedar types of arguments, derived from the tool's JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from phylactery_riskgate.domain.facts.types import FactType, Field, Kind, RecordOf, Scalar, SetOf
from phylactery_riskgate.domain.pointers import pointer

_SIMPLE = {"string": Kind.STRING, "integer": Kind.LONG, "boolean": Kind.BOOL, "number": Kind.DECIMAL}
_NULL_FORM = {"type": "null"}


def record_type(schema: Mapping[str, Any]) -> RecordOf:
    """Return the type of an object schema's properties; one with a default is always present once bound."""
    fields: dict[str, Field] = {}
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        fact, nullable = argument_type(part)
        if fact is not None:
            present = name in required or "default" in part
            fields[name] = Field(fact, required=present and not nullable)
    return RecordOf(fields)


def argument_type(schema: Any) -> tuple[FactType | None, bool]:
    """Return the single type of a schema's values (None if there is none) and whether they may be null."""
    form, name, nullable = one_form(schema)
    if name is None:
        return None, nullable
    if name == "object":
        return record_type(form), nullable
    if name == "array":
        element, holds_null = argument_type(form.get("items"))
        if "prefixItems" in form or holds_null or not isinstance(element, Scalar):
            return None, nullable
        return SetOf(element), nullable
    if name == "string" and form.get("format") == "date-time":
        return Scalar(Kind.DATETIME), nullable
    return _bounded(_SIMPLE[name], form), nullable


def _bounded(kind: Kind, form: Mapping[str, Any]) -> Scalar:
    """Return a simple type with the bounds of its schema; values outside them were refused earlier."""
    listed = form.get("enum", [form["const"]] if "const" in form else None)
    values = None if listed is None else frozenset(map(_literal, filter(_comparable, listed)))
    if kind not in {Kind.LONG, Kind.DECIMAL}:
        return Scalar(kind, values=values if kind is Kind.STRING else None)
    low, high = (
        [Decimal(repr(form[name])) for name in names if _comparable(form.get(name))]
        for names in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
    )
    return Scalar(kind, max(low, default=None), min(high, default=None), values)


def _comparable(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _literal(value: str | float) -> str | Decimal:
    return value if isinstance(value, str) else Decimal(repr(value))


def one_form(schema: Any) -> tuple[Mapping[str, Any], str | None, bool]:
    """Return the single form a value has apart from null.

    That is its schema, its type (None if there are several) and whether null is allowed too.
    """
    if not isinstance(schema, Mapping):
        return {}, None, True
    forms = schema.get("anyOf", schema.get("oneOf"))
    if forms is not None and "type" not in schema:
        others = [form for form in forms if form != _NULL_FORM]
        if len(others) != 1:
            return schema, None, True
        form, name, nullable = one_form(others[0])
        return form, name, nullable or len(others) < len(forms)
    names = _type_names(schema)
    nullable = "null" in names
    names.discard("null")
    return schema, names.pop() if len(names) == 1 else None, nullable


def unseen_arguments(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return, as JSON Pointers, the arguments that policies cannot inspect in ``context.args``.

    These are unions, lists of objects, and properties that an open object may have beyond its named ones ("*").
    """
    return tuple(sorted(_unseen(schema, ())))


def _unseen(schema: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for name, part in schema.get("properties", {}).items():
        here = (*place, name)
        fact, _ = argument_type(part)
        if fact is None:
            found.append(pointer(here))
        elif isinstance(fact, RecordOf):
            found += _unseen(one_form(part)[0], here)
    if schema.get("additionalProperties") is not False:
        found.append(pointer((*place, "*")))
    return found


def _type_names(schema: Mapping[str, Any]) -> set[str]:
    named = schema.get("type")
    if named is None:
        values = schema.get("enum", [schema["const"]] if "const" in schema else [])
        return {_type_name(value) for value in values}
    return {named} if isinstance(named, str) else set(named)


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names: dict[type, str] = {int: "integer", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")
