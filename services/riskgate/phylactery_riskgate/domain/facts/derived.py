"""Facts that RiskGate derives from arguments, so that no policy has to parse text.

Policies that compare text can be bypassed: ``like "*.bank.com"`` matches ``evil.com/?x=.bank.com``. So hosts, path
segments and the sums of lists are facts. ``context.derived`` has the shape of the arguments, with a record where
something can be derived:

- a text of format uri or email: ``host`` and ``domains`` (the host and each of its parent domains);
- a file path (the catalog's ``paths``): ``outside``, and ``hidden``, ``key_material`` and ``suffixes`` over all of its
  segments;
- a list: ``count``; of texts ``values``; of numbers ``sum`` and, unless it is empty, ``min`` and ``max``; of addresses
  ``hosts`` and ``domains``; of objects ``each`` with the same for every text and number field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any
from urllib.parse import urlsplit

from phylactery_chassis.util.file_names import folded, is_hidden, is_key_material

from phylactery_riskgate.domain.facts.argument_types import one_form
from phylactery_riskgate.domain.facts.types import (
    COUNT,
    FactType,
    Field,
    Kind,
    Mentions,
    NotRepresentableError,
    RecordOf,
    Scalar,
    SetOf,
)
from phylactery_riskgate.domain.model import CatalogTool
from phylactery_riskgate.domain.pointers import parse

Place = tuple[str, ...]

_SUM_DIGITS = 800
"""Enough precision to add doubles below 2^53 without rounding: the smallest has at most 767 significant digits."""

_TEXT = Scalar(Kind.STRING)
_TEXTS = SetOf(_TEXT)
_FOLDED = Scalar(Kind.STRING, folded=True)
"""Hosts, domains and suffixes: always lower case."""
_LABEL = "[a-z0-9_]++(?:-++[a-z0-9_]++)*"
"""Possessive within its group, so it is linear on any text."""
_HOST_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, slots=True)
class Plan:
    """The derivation for a value: its type, and how to derive the parts that policies look at."""

    type: RecordOf
    value: Callable[[Any, Mentions, Place], Any]


def plan(tool: CatalogTool) -> Plan:
    """Return what can be derived from a tool's arguments."""
    return _object(tool.schema, (), frozenset(parse(text) for text in tool.paths))


def _object(schema: Mapping[str, Any], place: Place, paths: frozenset[Place]) -> Plan:
    found = {name: _any(part, (*place, name), paths) for name, part in schema.get("properties", {}).items()}
    parts = {name: part for name, part in found.items() if part is not None}

    def value(arguments: Any, mentions: Mentions, here: Place) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for name, part in parts.items():
            inside = mentions.part(name)
            if inside is not None and arguments.get(name) is not None:
                read[name] = part.value(arguments[name], inside, (*here, name))
        return read

    return Plan(RecordOf({name: Field(part.type, required=False) for name, part in parts.items()}), value)


def _any(schema: Any, place: Place, paths: frozenset[Place]) -> Plan | None:
    form, name, _ = one_form(schema)
    if name == "object":
        inside = _object(form, place, paths)
        return inside if inside.type.fields else None
    if name == "array":
        return _list(form)
    if name == "string" and place in paths:
        return Plan(
            _record(
                outside=Scalar(Kind.BOOL),
                hidden=Scalar(Kind.BOOL),
                key_material=Scalar(Kind.BOOL),
                suffixes=SetOf(_FOLDED),
            ),
            lambda value, _mentions, _here: path_facts(value),
        )
    find = _HOST_FINDERS.get(form.get("format", "")) if name == "string" else None
    if find is not None:
        return Plan(
            _record(host=_FOLDED, domains=SetOf(_FOLDED)), lambda value, _mentions, here: _host_facts(find, value, here)
        )
    return None


def _record(**fields: FactType) -> RecordOf:
    return RecordOf({name: Field(fact, required=name not in {"min", "max"}) for name, fact in fields.items()})


def _list(schema: Mapping[str, Any]) -> Plan:
    """Return the derivation of a list; Cedar itself can only test whether a list contains a whole element."""
    form, name, _ = one_form(schema.get("items"))
    summary = _summary(form, name)
    columns: dict[str, Plan] = {}
    if name == "object":
        for field, part in form.get("properties", {}).items():
            column = _summary(*one_form(part)[:2])
            if column is not None:
                columns[field] = column
    fields: dict[str, FactType] = {"count": COUNT}
    if columns:
        fields["each"] = _record(**{field: column.type for field, column in columns.items()})
    elif summary is not None:
        fields |= {field: inside.type for field, inside in summary.type.fields.items()}

    def value(items: Any, mentions: Mentions, here: Place) -> dict[str, Any]:
        read: dict[str, Any] = {"count": len(items)}
        each = mentions.part("each") if columns else None
        if each is not None:
            read["each"] = {
                field: column.value([item.get(field) for item in items], inside, (*here, "each", field))
                for field, column in columns.items()
                if (inside := each.part(field)) is not None
            }
        elif summary is not None:
            read |= summary.value(items, mentions, here)
        return read

    return Plan(_record(**fields), value)


def _summary(form: Mapping[str, Any], name: str | None) -> Plan | None:
    """Summarize many values of one simple type; nulls and absent values are ignored."""
    if name in {"integer", "number"}:
        kind = Scalar(Kind.LONG if name == "integer" else Kind.DECIMAL)
        return Plan(_record(sum=kind, min=kind, max=kind), lambda items, _mentions, _here: _number_facts(items))
    if name != "string":
        return None
    find = _HOST_FINDERS.get(form.get("format", ""))
    if find is None:
        return Plan(_record(values=_TEXTS), lambda items, _mentions, _here: {"values": _known(items)})
    return Plan(
        _record(values=_TEXTS, hosts=SetOf(_FOLDED), domains=SetOf(_FOLDED)),
        lambda items, mentions, here: _many_hosts(find, _known(items), mentions, here),
    )


def _known(items: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(item for item in items if item is not None))


def _number_facts(items: Sequence[Any]) -> dict[str, Any]:
    exact = [Decimal(repr(item)) if isinstance(item, float) else item for item in items if item is not None]
    with localcontext(prec=_SUM_DIGITS):
        numbers = {"sum": sum(exact)}
    return numbers | {"min": min(exact), "max": max(exact)} if exact else numbers


def _host_facts(find: Callable[[str], str], value: str, here: Place) -> dict[str, Any]:
    try:
        host = find(value)
    except ValueError as error:
        raise NotRepresentableError(here) from error
    return {"host": host, "domains": domains_of(host)}


def _many_hosts(
    find: Callable[[str], str], values: Sequence[str], mentions: Mentions, here: Place
) -> dict[str, list[str]]:
    read = {"values": list(values)}
    if mentions.part("hosts") is not None or mentions.part("domains") is not None:
        facts = [_host_facts(find, value, here) for value in values]
        read["hosts"] = sorted({fact["host"] for fact in facts if fact["host"]})
        read["domains"] = sorted({domain for fact in facts for domain in fact["domains"]})
    return read


def host_of_uri(value: str) -> str:
    """Return the host of a URI in lower case, or "" if the URI has none (mailto:, data:).

    Raises:
        ValueError: parsers could disagree about the host: it contains a backslash, an escape or a non-ASCII letter, or
            a number that some parsers read as an IPv4 address (WHATWG URL, "ends in a number").
    """
    if "\\" in value or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("no readers agree on this URI")
    parts = urlsplit(value)
    if not parts.netloc:
        return ""
    return _host(parts.hostname or "")


def host_of_email(value: str) -> str:
    """Return the domain of a mail address in lower case.

    Raises:
        ValueError: it has no domain that every parser agrees on.
    """
    return _host(value.rpartition("@")[2].lower())


def _host(host: str) -> str:
    host = host.removesuffix(".")
    if ":" in host:
        return IPv6Address(host).compressed
    if _HOST_NAME.fullmatch(host) is None:
        raise ValueError("no host name")
    if _NUMBER_LABEL.fullmatch(host.rpartition(".")[2]) is not None:
        try:
            return str(IPv4Address(host))
        except AddressValueError as error:
            raise ValueError("a number that is not a plain IPv4 address") from error
    return host


def domains_of(host: str) -> list[str]:
    """Return the host and each of its parent domains, longest first; for an IP address, only the address."""
    if not host:
        return []
    if ":" in host or host.rpartition(".")[2].isdigit():
        return [host]
    labels = host.split(".")
    return [".".join(labels[index:]) for index in range(len(labels))]


_HOST_FINDERS: dict[str, Callable[[str], str]] = {"uri": host_of_uri, "email": host_of_email}


def path_facts(path: str) -> dict[str, Any]:
    """Return whether a path leads outside, is hidden or names key material, and every segment's suffix in lower case.

    Outside is a path that begins at a root, a home (~) or a drive (C:), on any operating system, or that goes up
    (".."). A segment is hidden if it begins with a dot; "." alone is the same folder. A path is key material if a
    segment has the name of a key or password file, also as a copy or a stream. A backslash is a separator too. Spaces
    and dots at the end of a segment are ignored, because some systems ignore them, as are look-alike and invisible
    characters.
    """
    segments = folded(path).replace("\\", "/").split("/")
    first = segments[0].strip()
    rooted = first.startswith("~") or first[1:2] == ":" or (not first and len(segments) > 1)
    outside = rooted or any(segment.strip() == ".." for segment in segments)
    hidden = any(map(is_hidden, segments))
    key_material = any(map(is_key_material, segments))
    trimmed = [segment.rstrip(" .") for segment in segments]
    suffixes = {f".{segment.rpartition('.')[2].casefold()}" for segment in trimmed if "." in segment}
    return {"outside": outside, "hidden": hidden, "key_material": key_material, "suffixes": sorted(suffixes)}
