"""Guesses the output kinds of a tool's fields from its output JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.catalog.drafting.schemas import without_references
from phylactery_riskgate.domain.catalog.drafting.vocabulary import singular, words_of
from phylactery_riskgate.domain.facts.argument_types import one_form
from phylactery_riskgate.domain.facts.catalog_facts import ANY, MAX_OUTPUTS
from phylactery_riskgate.domain.model import OutputKind

MAX_DEPTH: Final = 10

_LISTS: Final[dict[OutputKind, str]] = {
    "private": "salary phone mobile address iban ssn passport dni nie nif birth birthday dob password secret token card"
    " cvv income medical diagnosis health credential nationality",
    "system": "id uuid guid uid hash etag",
    "naming": "name title subject filename file path label username user sender from to recipient participant author"
    " owner email channel attendee member contact",
    "orderable": "date time day datetime timestamp created updated modified sent received start end due price amount"
    " total rating score size count balance quantity cost fee duration distance age at",
    "free": "text body content description message note comment summary snippet html review answer reason detail",
}
_KIND_OF: Final = {word: kind for kind, words in _LISTS.items() for word in words.split()}
_FORMATS: Final[dict[str, OutputKind]] = {
    "uuid": "system",
    "date": "orderable",
    "date-time": "orderable",
    "time": "orderable",
    "uri": "free",
    "email": "naming",
}
_TYPES: Final[dict[str, OutputKind]] = {"boolean": "system", "integer": "orderable", "number": "orderable"}


def guess_outputs(schema: Any) -> dict[str, OutputKind]:
    """Return the kind of every field, by pointer, in schema order; empty if the schema defines none.

    Raises:
        DraftError: its references cannot be resolved.
    """
    if not isinstance(schema, dict):
        return {}
    return dict(islice(_fields(without_references(schema), (), ""), MAX_OUTPUTS))


def _fields(schema: Any, above: tuple[str, ...], name: str) -> Iterator[tuple[str, OutputKind]]:
    form, kind, _ = one_form(schema)
    if kind == "array" and len(above) < MAX_DEPTH:
        yield from _fields(form.get("items"), (*above, ANY), name)
        return
    below = _below(form) if kind == "object" and len(above) < MAX_DEPTH else {}
    for key, part in below.items():
        yield from _fields(part, (*above, key), key if key != ANY else name)
    place = pointers.pointer(above)
    if not below and len(place) <= pointers.MAX_POINTER and all(ANY not in token or token == ANY for token in above):
        yield place, _kind(form, kind, name)


def _below(form: Any) -> dict[str, Any]:
    properties, others = form.get("properties"), form.get("additionalProperties")
    found = dict(properties) if isinstance(properties, dict) else {}
    if isinstance(others, dict):
        found.setdefault(ANY, others)
    return found


def _kind(form: Any, kind: str | None, name: str) -> OutputKind:
    """Return the kind of one field; an unknown field is free text that anyone may have written."""
    if "enum" in form or "const" in form or kind == "boolean":
        return "system"
    words = tuple(singular(word) for word in words_of(name))
    kinds = [_KIND_OF[word] for word in reversed(words) if word in _KIND_OF] if kind != "object" else []
    if kinds[:1] == ["system"]:
        return "system"
    said = form.get("format")
    if isinstance(said, str) and said in _FORMATS:
        return _FORMATS[said]
    if "email" in words or "private" in kinds:
        return "naming" if "email" in words else "private"
    return kinds[0] if kinds else _TYPES.get(kind or "", "free")
