"""The types a fact can have, and how a value is written for Cedar without losing anything of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from phylactery_riskgate.domain.pointers import pointer

_DECIMAL_PLACES = Decimal("0.0001")
_DECIMAL_LIMIT = Decimal(2**63 - 1).scaleb(-4)
_LONG_LIMIT = 2**63 - 1
_MILLISECOND_US = 1_000


class Kind(StrEnum):
    """Cedar's own simple types."""

    STRING = "String"
    LONG = "Long"
    BOOL = "Boolean"
    DECIMAL = "decimal"
    DATETIME = "datetime"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One simple value, and what it can be at all: RiskGate never makes another, or refuses the call that would.

    A number lies between ``low`` and ``high``, a value is one of ``values``, and a ``folded`` text has no capital
    letter; None, and False, say nothing.
    """

    kind: Kind
    low: Decimal | None = None
    high: Decimal | None = None
    values: frozenset[str | Decimal] | None = None
    folded: bool = False

    def can_be(self, value: str | Decimal) -> bool:
        """Says whether a literal is a value this can have."""
        if isinstance(value, str):
            return (self.values is None or value in self.values) and not (self.folded and value != value.lower())
        if self.values is not None and value not in self.values:
            return False
        return not (self.low is not None and value < self.low) and not (self.high is not None and value > self.high)


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set of values of one type."""

    element: FactType


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute of a record; a required one is always there."""

    type: FactType
    required: bool


@dataclass(frozen=True, slots=True)
class RecordOf:
    """A record with named attributes."""

    fields: Mapping[str, Field]


@dataclass(frozen=True, slots=True)
class EntityOf:
    """A reference to an entity of one type, written as its id."""

    entity_type: str


COUNT = Scalar(Kind.LONG, low=Decimal(0))
"""How many of something there are."""

FactType = Scalar | SetOf | RecordOf | EntityOf


@dataclass(slots=True)
class Mentions:
    """Which parts of a record some policies look at: the whole, or named parts of it."""

    whole: bool = False
    parts: dict[str, Mentions] = field(default_factory=dict)

    def add(self, path: tuple[str, ...], *, whole: bool) -> None:
        """Adds one path; with ``whole`` everything below it is looked at, without only that it is there."""
        node = self
        for name in path:
            node = node.parts.setdefault(name, Mentions())
        node.whole = node.whole or whole

    def part(self, name: str) -> Mentions | None:
        """Answers what is looked at in a part, or None where nothing is."""
        return _EVERYTHING if self.whole else self.parts.get(name)


_EVERYTHING = Mentions(whole=True)


class NotRepresentableError(Exception):
    """A value some policy looks at that Cedar cannot hold exactly; says the place, never the value."""

    def __init__(self, place: tuple[str, ...]) -> None:
        super().__init__(pointer(place))
        self.place = place


def to_cedar(fact: FactType, value: Any, mentions: Mentions, place: tuple[str, ...] = ()) -> Any:
    """Writes a value in Cedar's JSON, with only the attributes that are looked at; a null attribute is left out.

    Raises:
        NotRepresentableError: the value cannot be held exactly.
    """
    if isinstance(fact, RecordOf):
        return _record(fact, value, mentions, place)
    if isinstance(fact, SetOf):
        if not isinstance(value, list | tuple | set | frozenset):
            raise NotRepresentableError(place)
        return [to_cedar(fact.element, item, _EVERYTHING, place) for item in value]
    if isinstance(fact, EntityOf):
        return {"__entity": {"type": fact.entity_type, "id": value}}
    return _scalar(fact.kind, value, place)


def _record(fact: RecordOf, value: Any, mentions: Mentions, place: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise NotRepresentableError(place)
    written: dict[str, Any] = {}
    for name in fact.fields if mentions.whole else mentions.parts:
        attribute = fact.fields.get(name)
        inside = mentions.part(name)
        if attribute is None or inside is None or value.get(name) is None:
            continue
        written[name] = to_cedar(attribute.type, value[name], inside, (*place, name))
    return written


def _scalar(kind: Kind, value: Any, place: tuple[str, ...]) -> Any:
    if kind is Kind.STRING and isinstance(value, str):
        return value
    if kind is Kind.BOOL and isinstance(value, bool):
        return value
    if kind is Kind.LONG and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LONG_LIMIT:
        return value
    if kind is Kind.DECIMAL:
        return {"__extn": {"fn": "decimal", "arg": _decimal(value, place)}}
    if kind is Kind.DATETIME:
        return {"__extn": {"fn": "datetime", "arg": _datetime(value, place)}}
    raise NotRepresentableError(place)


def _decimal(value: Any, place: tuple[str, ...]) -> str:
    """Writes a number as Cedar's decimal: four places after the point, 64 bits in all."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise NotRepresentableError(place)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not abs(exact) <= _DECIMAL_LIMIT or exact % _DECIMAL_PLACES:
        raise NotRepresentableError(place)
    text = f"{exact.normalize() + 0:f}"
    return text if "." in text else f"{text}.0"


def _datetime(value: Any, place: tuple[str, ...]) -> str:
    """Writes an RFC 3339 date-time in UTC with milliseconds, Cedar's only form."""
    if not isinstance(value, str):
        raise NotRepresentableError(place)
    digits = value.partition(".")[2]
    fraction = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    try:
        # Python keeps six digits of the fraction; a seventh that says something would be lost unseen.
        moment = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise NotRepresentableError(place) from error
    if fraction[6:].strip("0") or moment.microsecond % _MILLISECOND_US:
        raise NotRepresentableError(place)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // _MILLISECOND_US:03d}Z".rjust(24, "0")
