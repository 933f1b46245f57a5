"""Targets of a call: the hosts it reaches out to, and whether the bundle lists them.

A target is a text of format uri or email that tools.yaml declares. The list is in riskgate.yaml: a host, or every host
below a domain ("*.example.org", which does not include example.org itself).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from phylactery_riskgate.domain.facts.argument_types import one_form
from phylactery_riskgate.domain.facts.derived import domains_of, host_of_email, host_of_uri
from phylactery_riskgate.domain.facts.types import COUNT, Kind, NotRepresentableError, RecordOf, Scalar, SetOf
from phylactery_riskgate.domain.facts.types import Field as Attribute
from phylactery_riskgate.domain.model import BoundCall, CatalogTool
from phylactery_riskgate.domain.pointers import parse, value_at

_FINDERS = {"uri": host_of_uri, "email": host_of_email}
_PATTERN = re.compile(r"(?:\*\.)?[a-z0-9_]++(?:-++[a-z0-9_]++)*(?:\.[a-z0-9_]++(?:-++[a-z0-9_]++)*)*")
_NUMBER, _TEXTS = COUNT, SetOf(Scalar(Kind.STRING, folded=True))

TARGETS_TYPE = RecordOf(
    {
        name: Attribute(fact, required=True)
        for name, fact in (
            ("count", _NUMBER),
            ("listed", _NUMBER),
            ("unlisted", _NUMBER),
            ("hosts", _TEXTS),
            ("domains", _TEXTS),
        )
    }
)
"""The type of ``context.targets``, the same for every tool: a tool without targets has zero."""


def _checked(pattern: str) -> str:
    if _PATTERN.fullmatch(pattern) is None:
        raise ValueError("neither a host (api.example.org) nor every host below a domain (*.example.org)")
    return pattern


_Pattern = Annotated[str, Field(max_length=253), AfterValidator(_checked)]


class TargetsEntry(BaseModel):
    """The list in riskgate.yaml, in lower case."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    allow: Annotated[list[_Pattern], Field(max_length=10_000)] = []


def allowing(tools: Mapping[str, CatalogTool], entry: TargetsEntry) -> dict[str, CatalogTool]:
    """Return the tools, each with the list of targets it may reach."""
    allowed = frozenset(entry.allow)
    return {name: replace(tool, allowed_targets=allowed) for name, tool in tools.items()}


def target_fault(schema: Mapping[str, Any]) -> str:
    """Return why a property cannot be a target, or an empty string."""
    form, name, _ = _text_form(schema)
    known = name == "string" and form.get("format") in _FINDERS
    return "" if known else "is neither a text of format uri or email nor a list of such texts"


def targets_value(tool: CatalogTool, bound: BoundCall) -> dict[str, Any]:
    """Return how many different targets a call has, how many of them are listed, and their hosts.

    A target without a host (mailto:) is not listed.

    Raises:
        NotRepresentableError: parsers could disagree about a host.
    """
    hosts: dict[str, str] = {}
    for text in tool.targets:
        find = _FINDERS[_form(tool.schema, text)["format"]]
        value = value_at(bound.arguments, text)
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            try:
                hosts[one] = find(one)
            except ValueError as error:
                raise NotRepresentableError(("targets", *parse(text))) from error
    listed = sum(_lists(tool.allowed_targets, host) for host in hosts.values())
    return {
        "count": len(hosts),
        "listed": listed,
        "unlisted": len(hosts) - listed,
        "hosts": sorted({host for host in hosts.values() if host}),
        "domains": sorted({domain for host in hosts.values() for domain in domains_of(host)}),
    }


def _text_form(schema: Any) -> tuple[Mapping[str, Any], str | None, bool]:
    form, name, nullable = one_form(schema)
    return one_form(form.get("items")) if name == "array" else (form, name, nullable)


def _form(schema: Any, text: str) -> Mapping[str, Any]:
    for token in parse(text):
        schema = schema["properties"][token]
    return _text_form(schema)[0]


def _lists(allowed: frozenset[str], host: str) -> bool:
    return host in allowed or any(f"*.{domain}" in allowed for domain in domains_of(host)[1:])
