"""Conversion of JSON Schemas to a form that a catalog accepts: references resolved, refused keywords removed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.catalog.catalog import LISTED_SCHEMAS, NAMED_SCHEMAS, ONE_SCHEMA, compile_validator
from phylactery_riskgate.domain.policy.guard import MAX_DEPTH, MAX_SAFE_INTEGER

MAX_PARTS: Final = 20_000
"""The number of subschemas allowed once references are resolved."""

MAX_NAME: Final = 200
"""The maximum length of a property name, in characters; YAML does not read keys of a thousand."""

_DEFINITIONS: Final = frozenset({"$defs", "definitions"})
_ABOUT: Final = frozenset({"title", "description", "default", "examples", "deprecated"})
"""Keywords that are allowed alongside a reference and take precedence over its target."""
_BOUND: Final = re.compile(r"(?:min|max)[A-Z]\w+|minimum|maximum|exclusiveM(?:in|ax)imum|multipleOf")
Place = tuple[str | int, ...]


class DraftError(Exception):
    """No entry can be drafted; the message gives the reason and may contain the tool's own text."""


def usable(schema: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the schema in a form a catalog accepts, and one sentence per change.

    Raises:
        DraftError: the schema cannot be converted.
    """
    if not isinstance(schema, dict):
        raise DraftError("its schema is not a JSON object")
    notes: list[str] = []
    whole = without_references(schema)
    if whole is not schema:
        notes.append("references are written out")
    cleaned: dict[str, Any] = _cleaned(whole, (), notes, reached=True, depth=0)
    if "type" not in cleaned:
        cleaned = {"type": "object", **cleaned}
        notes.append('"type: object" is added')
    if cleaned["type"] != "object":
        raise DraftError("its schema is not one of an object")
    return cleaned, tuple(notes)


def without_references(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with every reference resolved; unchanged if it has none.

    Raises:
        DraftError: a reference is dangling, external or circular, or the schema becomes too large.
    """
    return _Writer(schema).whole() if _has_reference(schema, 0) else schema


def mapped(schema: Mapping[str, Any], change: Callable[[Any, Place], Any]) -> dict[str, Any]:
    """Return a schema with a function applied to each direct subschema; the place is relative to this schema.

    Raises:
        DraftError: a catalog cannot hold the name of a property.
    """
    changed: dict[str, Any] = {}
    for keyword, held in schema.items():
        if keyword in NAMED_SCHEMAS and isinstance(held, dict):
            if any(len(name) > MAX_NAME for name in held):
                raise DraftError(f"a property's name is longer than {MAX_NAME} characters")
            changed[keyword] = {name: change(part, (keyword, name)) for name, part in held.items()}
        elif keyword in LISTED_SCHEMAS and isinstance(held, list):
            changed[keyword] = [change(part, (keyword, index)) for index, part in enumerate(held)]
        elif keyword in ONE_SCHEMA:
            changed[keyword] = change(held, (keyword,))
        else:
            changed[keyword] = held
    return changed


def _has_reference(schema: Any, depth: int) -> bool:
    if not isinstance(schema, dict):
        return False
    _check_depth(depth)
    found = ["$ref" in schema or "$dynamicRef" in schema]
    mapped(schema, lambda part, _place: found.append(_has_reference(part, depth + 1)))
    return any(found)


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise DraftError(f"its schema is nested deeper than {MAX_DEPTH} levels")


class _Writer:
    """A resolver for one schema's references, within bounds."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._parts = 0

    def whole(self) -> dict[str, Any]:
        """Return the schema without references and without definitions only they used."""
        bare = {keyword: held for keyword, held in self._root.items() if keyword not in _DEFINITIONS}
        written: dict[str, Any] = self._written(bare, (), 0)
        return written

    def _written(self, schema: Any, trail: tuple[str, ...], depth: int) -> Any:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise DraftError(f"its schema holds more than {MAX_PARTS} parts once references are written out")
        _check_depth(depth)
        if not isinstance(schema, dict):
            return schema
        if "$dynamicRef" in schema:
            raise DraftError("its schema uses $dynamicRef; write the schema out")
        if "$ref" not in schema:
            return mapped(schema, lambda part, _place: self._written(part, trail, depth + 1))
        name = schema["$ref"]
        if not isinstance(name, str) or name in trail:
            raise DraftError(f"its schema refers to itself: $ref {name!r}; write out as many levels as are used")
        target = self._written(self._target(name), (*trail, name), depth + 1)
        beside = {keyword: held for keyword, held in schema.items() if keyword != "$ref"}
        if not isinstance(target, dict) or not beside.keys() <= _ABOUT:
            raise DraftError(f"its schema says more beside $ref {name!r}; write the schema out")
        return {**target, **beside}

    def _target(self, name: str) -> Any:
        if not name.startswith("#"):
            raise DraftError(f"its schema refers to another document: $ref {name!r}")
        found: Any = self._root
        try:
            for token in pointers.parse(name[1:]):
                found = found[int(token)] if isinstance(found, list) else found[token]
        except (ValueError, KeyError, IndexError, TypeError):
            raise DraftError(f"its schema refers to what is not there: $ref {name!r}") from None
        return found


def _cleaned(schema: Any, place: Place, notes: list[str], *, reached: bool, depth: int) -> Any:
    """Remove keywords that a catalog refuses; arguments are then checked less, which a note says."""
    if not isinstance(schema, dict):
        return schema
    _check_depth(depth)
    kept = {}
    for keyword, held in schema.items():
        fault = _keyword_fault(keyword, held)
        if fault:
            notes.append(f"{_where(place)}{keyword} is left out: {fault}")
        else:
            kept[keyword] = held
    clean = mapped(
        kept,
        lambda part, below: _cleaned(
            part,
            (*place, *below),
            notes,
            reached=reached and below[0] in {"properties", "items"},
            depth=depth + 1,
        ),
    )
    if "default" in clean:
        fault = _default_fault(clean, reached=reached)
        if fault:
            notes.append(f"{_where(place)}default is left out: {fault}")
            del clean["default"]
    return clean


def _where(place: Place) -> str:
    return f"{pointers.pointer(place)}/" if place else "/"


def _keyword_fault(keyword: str, held: Any) -> str:
    if _BOUND.fullmatch(keyword) and isinstance(held, int | float) and abs(held) > MAX_SAFE_INTEGER:
        return "no number is kept exactly there"
    if keyword in {"pattern", "format"} and isinstance(held, str) and not _compiles({keyword: held}):
        return "it needs backtracking" if keyword == "pattern" else "no such format"
    return ""


def _default_fault(schema: dict[str, Any], *, reached: bool) -> str:
    if not reached:
        return "below a condition or a choice it is never applied"
    try:
        fits = compile_validator({keyword: held for keyword, held in schema.items() if keyword != "default"})
        return "" if fits.is_valid(schema["default"]) else "it does not fit its own schema"
    except ValueError:
        return "its own schema cannot be used"


def _compiles(schema: dict[str, Any]) -> bool:
    try:
        compile_validator(schema)
    except ValueError:
        return False
    return True
