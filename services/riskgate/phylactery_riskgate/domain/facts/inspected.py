"""Inspection findings in a call's arguments, as policy inputs: kinds and counts, never the values.

An example:

    @id("secret.ask-peer")
    @title("Text with a secret in it leaves only with somebody else's word")
    forbid (principal, action in Action::"effect:write", resource)
    when { context.inspection.secrets > 0 }
    unless { context.approved.contains(Class::"peer") };

    @id("card.never-in-a-message")
    @title("A card's number is never sent")
    forbid (principal, action == Action::"send_message", resource)
    when { context.inspection.by.text.kinds.contains(Finding::"card") };

Kinds are an enumerated entity type, so that an unknown kind is an error when the bundle is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phylactery_chassis.inspection import Category, Finding, inspect, named

from phylactery_riskgate.domain.facts.types import COUNT, EntityOf, Field, Mentions, RecordOf, SetOf
from phylactery_riskgate.domain.model import BoundCall, CatalogTool

FINDING = "Finding"
"""The entity type of finding kinds."""

_BY = "by"
_FOUND = {
    "kinds": Field(SetOf(EntityOf(FINDING)), required=True),
    "secrets": Field(COUNT, required=True),
    "personal": Field(COUNT, required=True),
}


def inspection_type(tool: CatalogTool) -> RecordOf:
    """Return the type of the findings: over all arguments, and ``by`` each argument in the tool's schema."""
    by = RecordOf({name: Field(RecordOf(_FOUND), required=True) for name in tool.schema.get("properties", {})})
    return RecordOf({**_FOUND, _BY: Field(by, required=True)})


def inspection_value(tool: CatalogTool, bound: BoundCall, mentions: Mentions) -> dict[str, Any]:
    """Inspect each argument that policies look at, or all of them if a policy looks at the total."""
    by = mentions.part(_BY)
    whole = any(mentions.part(name) is not None for name in _FOUND)
    found = {
        name: findings_in(name, value)
        for name, value in bound.arguments.items()
        if whole or (by is not None and by.part(name) is not None)
    }
    told = _told(tuple(one for findings in found.values() for one in findings))
    if by is None:
        return told
    return {**told, _BY: {name: _told(found.get(name, ())) for name in tool.schema.get("properties", {})}}


def _told(findings: tuple[Finding, ...]) -> dict[str, Any]:
    secrets = sum(one.kind.category is Category.SECRET for one in findings)
    return {
        "kinds": sorted({str(one.kind) for one in findings}),
        "secrets": secrets,
        "personal": len(findings) - secrets,
    }


def findings_in(name: str, value: Any) -> tuple[Finding, ...]:
    """Inspect one argument and everything inside it as one text, with one line for each text and number."""
    text = "\n".join(_lines(name, value))
    return inspect(text) if text else ()


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _lines(key, item)
    elif isinstance(value, list):
        for item in value:
            yield from _lines(name, item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield named(name, value)
