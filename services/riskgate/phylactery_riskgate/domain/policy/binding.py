"""Binding of a raw call to the catalog: validation, insertion of defaults, and one spelling for names of files."""

from __future__ import annotations

import copy
import unicodedata
from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import jsonschema_rs
from phylactery_chassis.util.crypto import sha256

from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.catalog.catalog import compile_validator
from phylactery_riskgate.domain.model import BoundCall, CatalogTool, Json, Reason
from phylactery_riskgate.domain.pointers import MAX_POINTER, declared_names, declared_pointer, parse, pointer
from phylactery_riskgate.domain.policy.guard import MAX_BYTES
from phylactery_riskgate.domain.policy.reasons import MAX_REASONS, reason, violation_reason
from phylactery_riskgate.domain.views.visible import make_visible

_LIMITS = ("limit", "format", "multiple_of", "property")
"""Fields of jsonschema-rs errors that contain the schema's requirement; all others may contain the value."""


class BindingError(Exception):
    """Arguments that do not fit the tool's schema, with a reason for each violation."""

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        super().__init__(", ".join(one.code for one in reasons))
        self.reasons = reasons


class Binder:
    """A binder for calls of one tool; compiled once."""

    def __init__(self, tool: CatalogTool) -> None:
        self._tool = tool
        self._validator = compile_validator(tool.schema)
        self._defaults = _defaults_of(tool.schema)
        self._paths = tuple(map(parse, tool.paths))
        counted = (tool.amount, tool.currency, *tool.recipients, *tool.targets, *tool.sends)
        self._meant = tuple(parse(one) for one in (*tool.controls, *tool.paths, *counted) if one)
        self.declared = declared_names(tool.schema)

    def bind(self, arguments: Json, canonical: bytes | None = None) -> BoundCall:
        """Bind checked arguments; binding is idempotent.

        The arguments must be valid as given, and again with their defaults, which a rule over several arguments could
        forbid. Where they are not, a null of an optional property that takes none is left out, as if it had not been
        written: models write one for an argument they do not use. One that decides what the call does, such as a
        control, is not. Paths are written in NFC: a file has one name for policies, people and tools. ``canonical`` is
        the RFC 8785 form of the arguments, if already computed.

        Raises:
            BindingError: the arguments are not valid.
        """
        given, nulls = self._without_nulls(arguments)
        bound: Json = given
        if self._defaults is not None:
            bound = self._defaults.written_into(given)
            if bound is not given:
                self._check(bound)
        text = canonical if canonical is not None and bound is arguments else canonical_bytes(bound)
        former = self._call(bound, text)._replace(nulls=nulls)
        if former.arguments_json.isascii():
            return former
        named = bound
        for path in self._paths:
            named = _in_nfc(named, path)
        if named is bound:
            return former
        self._check(named)
        return self._call(named, canonical_bytes(named))._replace(former=former, nulls=nulls)

    def _without_nulls(self, arguments: Json) -> tuple[Json, tuple[str, ...]]:
        """Return valid arguments and the pointers of the nulls left out of them. Raise BindingError."""
        if self._validator.is_valid(arguments):
            return arguments, ()
        left_out, meant = list[str](), set[str]()
        rest = self._left(arguments, self._tool.schema, (), left_out, meant)
        self._check(rest, meant)
        return rest, tuple(sorted(left_out))

    def _left(self, value: Any, schema: Any, place: tuple[str, ...], left_out: list[str], meant: set[str]) -> Any:
        """Return a value without its superfluous nulls, and collect their pointers and those of the others."""
        if not isinstance(schema, Mapping):
            return value
        if isinstance(value, list):
            items = schema.get("items")
            return [self._left(item, items, (*place, str(at)), left_out, meant) for at, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        properties, required, kept = schema.get("properties", {}), schema.get("required", ()), {}
        for name, item in value.items():
            below, form = (*place, name), properties.get(name)
            if item is None and form is not None and name not in required and not _takes_null(form):
                decides = any(_overlap(one, below) for one in self._meant)
                (meant.add if decides else left_out.append)(pointer(below))
                if not decides:
                    continue
            kept[name] = self._left(item, form, below, left_out, meant)
        return kept

    def _call(self, arguments: Json, text: bytes) -> BoundCall:
        if len(text) > MAX_BYTES:
            raise BindingError((reason("TOO_LARGE", limit=MAX_BYTES),))
        return BoundCall(self._tool.name, self._tool.version, arguments, text.decode(), sha256(text))

    def _check(self, arguments: Json, meant: Container[str] = ()) -> None:
        if not self._validator.is_valid(arguments):
            found = islice(self._validator.iter_errors(arguments), MAX_REASONS)
            unique = {_violation(error, self.declared, meant) for error in found}
            raise BindingError(tuple(sorted(unique, key=lambda one: (one.path, one.message))))


def _in_nfc(value: Any, path: tuple[str, ...]) -> Any:
    """Return a value with the text at a path, or the texts of a list there, in NFC; the same object if it is so."""
    if isinstance(value, str) and not path:
        return value if unicodedata.is_normalized("NFC", value) else unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        items = [_in_nfc(item, path) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, dict) and path and path[0] in value:
        inside = _in_nfc(value[path[0]], path[1:])
        return value if inside is value[path[0]] else {**value, path[0]: inside}
    return value


def _takes_null(form: Any) -> bool:
    """Return True if a property's schema takes null, or cannot be asked alone."""
    try:
        return not isinstance(form, Mapping) or compile_validator(form).is_valid(None)
    except ValueError:
        return True


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return True if one place is at, above or below the other."""
    return all(a == b for a, b in zip(one, other, strict=False))


def _violation(error: jsonschema_rs.ValidationError, declared: frozenset[str], meant: Container[str]) -> Reason:
    kind = error.kind
    place = list(error.instance_path)
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        place.append(min(kind.unexpected))
    path = make_visible(declared_pointer(place, declared), MAX_POINTER).text
    if pointer(place) in meant:
        return violation_reason("null", path, "")
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Type):
        return violation_reason(kind.name, path, "/".join(kind.types))
    limit = next((getattr(kind, name) for name in _LIMITS if hasattr(kind, name)), "")
    return violation_reason(kind.name, path, limit)


@dataclass(frozen=True, slots=True)
class _Defaults:
    """The defaults of a schema, computed once.

    ``missing`` are the defaults of an object's properties, including nested ones, so that omitting an object and
    spelling it out give the same call. ``inside`` and ``items`` are the defaults for the properties and elements that
    are present. ``fixed`` elements at the start of a list are not ``items``.
    """

    missing: Mapping[str, Any]
    inside: Mapping[str, _Defaults]
    items: _Defaults | None
    fixed: int

    def written_into(self, value: Any) -> Any:
        """Return the value with all missing defaults; the same object if none is missing."""
        if isinstance(value, dict):
            written = {name: copy.deepcopy(default) for name, default in self.missing.items() if name not in value}
            for name, part in self.inside.items():
                if name in value:
                    item = part.written_into(value[name])
                    if item is not value[name]:
                        written[name] = item
            return {**value, **written} if written else value
        if isinstance(value, list) and self.items is not None:
            items = [self.items.written_into(item) for item in value[self.fixed :]]
            same = all(new is old for new, old in zip(items, value[self.fixed :], strict=True))
            return value if same else [*value[: self.fixed], *items]
        return value


def _defaults_of(schema: Any) -> _Defaults | None:
    """Return the defaults of a schema, or None if it has none."""
    if not isinstance(schema, Mapping):
        return None
    properties = schema.get("properties", {})
    inside = {name: part for name, form in properties.items() if (part := _defaults_of(form)) is not None}
    missing: dict[str, Any] = {}
    for name, form in properties.items():
        if isinstance(form, Mapping) and "default" in form:
            part = inside.get(name)
            missing[name] = form["default"] if part is None else part.written_into(form["default"])
    items = _defaults_of(schema.get("items"))
    if not (missing or inside or items):
        return None
    return _Defaults(missing, inside, items, len(schema.get("prefixItems", ())))
