"""Binds a raw call to the catalog: checks the arguments against the schema, and writes out its defaults."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from itertools import islice
from typing import Any

import jsonschema_rs

from phylactery_riskgate.domain.canonical import canonical_bytes, sha256
from phylactery_riskgate.domain.catalog import compile_validator
from phylactery_riskgate.domain.guard import MAX_BYTES
from phylactery_riskgate.domain.model import BoundCall, CatalogTool, Json, Reason
from phylactery_riskgate.domain.pointers import MAX_POINTER, pointer
from phylactery_riskgate.domain.reasons import MAX_REASONS, reason, violation_reason
from phylactery_riskgate.domain.visible import make_visible

_LIMITS = ("limit", "format", "multiple_of", "property")
"""Where jsonschema-rs keeps what the schema asks for; everything else it says may hold the value."""


class BindingError(Exception):
    """Arguments that do not fit the tool's schema, with a reason for each misfit."""

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        super().__init__(", ".join(one.code for one in reasons))
        self.reasons = reasons


class Binder:
    """Binds calls of one tool; compiled once."""

    def __init__(self, tool: CatalogTool) -> None:
        self._tool = tool
        self._validator = compile_validator(tool.schema)
        self._has_defaults = _has_defaults(tool.schema)

    def bind(self, arguments: Json, canonical: bytes | None = None) -> BoundCall:
        """Binds guarded arguments; binding bound arguments again changes nothing.

        The arguments must fit as they are, and again with the defaults in them, which a rule over several arguments
        could forbid. ``canonical`` is their RFC 8785 form, where it has been written already.

        Raises:
            BindingError: they do not fit.
        """
        self._check(arguments)
        bound: Json = arguments
        if self._has_defaults:
            bound = _with_defaults(self._tool.schema, arguments)
            if bound is not arguments:
                self._check(bound)
        text = canonical if canonical is not None and bound is arguments else canonical_bytes(bound)
        if len(text) > MAX_BYTES:
            raise BindingError((reason("TOO_LARGE", limit=MAX_BYTES),))
        return BoundCall(self._tool.name, self._tool.version, bound, text.decode(), sha256(text))

    def _check(self, arguments: Json) -> None:
        if not self._validator.is_valid(arguments):
            found = islice(self._validator.iter_errors(arguments), MAX_REASONS)
            unique = {_violation(error) for error in found}
            raise BindingError(tuple(sorted(unique, key=lambda one: (one.path, one.message))))


def _violation(error: jsonschema_rs.ValidationError) -> Reason:
    kind = error.kind
    place = list(error.instance_path)
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        place.append(min(kind.unexpected))
    path = make_visible(pointer(place), MAX_POINTER).text
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Type):
        return violation_reason(kind.name, path, "/".join(kind.types))
    limit = next((getattr(kind, name) for name in _LIMITS if hasattr(kind, name)), "")
    return violation_reason(kind.name, path, limit)


def _with_defaults(schema: Any, value: Any) -> Any:
    """Answers the value with every missing property that has a default; the value itself where nothing is missing.

    An object inside a default gets its own defaults too, so that leaving it out and spelling it out are one call.
    """
    if not isinstance(schema, Mapping):
        return value
    filled: Any = value
    if isinstance(value, dict):
        filled = dict(value)
        for name, part in schema.get("properties", {}).items():
            if name in value:
                filled[name] = _with_defaults(part, value[name])
            elif isinstance(part, Mapping) and "default" in part:
                filled[name] = _with_defaults(part, copy.deepcopy(part["default"]))
    elif isinstance(value, list) and "items" in schema:
        fixed = len(schema.get("prefixItems", ()))
        filled = [*value[:fixed], *(_with_defaults(schema["items"], item) for item in value[fixed:])]
    return value if filled == value else filled


def _has_defaults(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    parts = [*schema.get("properties", {}).values(), schema.get("items")]
    return any(isinstance(part, Mapping) and ("default" in part or _has_defaults(part)) for part in parts)
