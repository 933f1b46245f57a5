"""Schemas in the subset that endpoints enforce while a model writes (``strict``), and what came of them.

In the subset an object lists all of its properties as required and takes no others; what may be left out is null
instead. Bounds of a value are left out: not every endpoint knows them, and what a model writes is checked anyway.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from phylactery_agent.llm_client.request import Question
from phylactery_agent.llm_client.response import Heard, HeardCall, arguments_of

_KEPT: Final = ("type", "description", "enum", "const")
_OUTSIDE: Final = ("$ref", "oneOf", "allOf", "not", "if", "patternProperties", "prefixItems")


def enforced(question: Question) -> Question:
    """Return a question whose form and tools are to be enforced, as far as that can be said of each."""
    form = question.form
    if form is not None and (schema := strict_schema(form["schema"])) is not None:
        form = {**form, "schema": schema, "strict": True}
    return replace(question, form=form, tools=[_strict_tool(one) for one in question.tools])


def loosened(heard: Heard, question: Question) -> Heard:
    """Return a reply to an enforced question as one to the question itself."""
    schemas = {
        one["function"]["name"]: one["function"]["parameters"]
        for one, strict in zip(question.tools, enforced(question).tools, strict=True)
        if one is not strict
    }
    return replace(heard, calls=tuple(_loose(call, schemas.get(call.name)) for call in heard.calls))


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema in the subset, or None if it cannot be said there: an object that takes any property."""
    if any(word in schema for word in _OUTSIDE):
        return None
    kept: dict[str, Any] = {name: schema[name] for name in _KEPT if name in schema}
    kind = schema.get("type")
    if "anyOf" in schema:
        forms = [strict_schema(one) for one in schema["anyOf"]]
        return None if None in forms else {**kept, "anyOf": forms}
    if kind == "array":
        items = strict_schema(schema.get("items") or {})
        return None if items is None else {**kept, "items": items}
    if kind == "object":
        return _strict_object(schema, kept)
    return kept if isinstance(kind, str) or "enum" in schema else None


def _strict_object(schema: Mapping[str, Any], kept: dict[str, Any]) -> dict[str, Any] | None:
    properties: dict[str, Any] = {}
    for name, one in schema.get("properties", {}).items():
        own = strict_schema(one)
        if own is None:
            return None
        properties[name] = _or_null(own) if _is_optional(schema, name) else own
    if schema.get("additionalProperties") is not False:
        return None
    return {**kept, "properties": properties, "required": [*properties], "additionalProperties": False}


def without_nulls(schema: Mapping[str, Any], value: Any) -> Any:
    """Return a value without the nulls that the strict form of its schema has for what is left out."""
    if isinstance(value, list) and isinstance(items := schema.get("items"), Mapping):
        return [without_nulls(items, one) for one in value]
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, Mapping):
        return value
    return {
        name: without_nulls(properties.get(name, {}), one)
        for name, one in value.items()
        if one is not None or not _is_optional(schema, name) or _takes_null(properties.get(name, {}))
    }


def _is_optional(schema: Mapping[str, Any], name: str) -> bool:
    return name in schema.get("properties", {}) and name not in schema.get("required", ())


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return schema if _takes_null(schema) else {"anyOf": [schema, {"type": "null"}]}


def _takes_null(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "null" or any(_takes_null(one) for one in schema.get("anyOf", ()))


def _strict_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool["function"]
    schema = strict_schema(function["parameters"])
    return tool if schema is None else {**tool, "function": {**function, "parameters": schema, "strict": True}}


def _loose(call: HeardCall, schema: Mapping[str, Any] | None) -> HeardCall:
    arguments = None if schema is None else arguments_of(call.raw)
    if schema is None or arguments is None or (left := without_nulls(schema, arguments)) == arguments:
        return call
    return replace(call, raw=json.dumps(left, ensure_ascii=False))
