"""The types of facts, and the lossless encoding of their values for Cedar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """Cedar's simple types."""

    STRING = "String"
    LONG = "Long"
    BOOL = "Boolean"
    DECIMAL = "decimal"
    DATETIME = "datetime"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One simple value and its possible range: RiskGate never produces another, or refuses the call that would.

    A number is between ``low`` and ``high``, a value is one of ``values``, and a ``folded`` text has no capital letter;
    None or False means unconstrained.
    """

    kind: Kind
    low: Decimal | None = None
    high: Decimal | None = None
    values: frozenset[str | Decimal] | None = None
    folded: bool = False

    def can_be(self, value: str | Decimal) -> bool:
        """Return True if a literal is a possible value."""
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
    """One attribute of a record; a required one is always present."""

    type: FactType
    required: bool


@dataclass(frozen=True, slots=True)
class RecordOf:
    """A record with named attributes."""

    fields: Mapping[str, Field]


@dataclass(frozen=True, slots=True)
class EntityOf:
    """A reference to an entity of one type, given by its id."""

    entity_type: str


COUNT = Scalar(Kind.LONG, low=Decimal(0))
"""A non-negative count."""

FactType = Scalar | SetOf | RecordOf | EntityOf


@dataclass(slots=True)
class Mentions:
    """The parts of a record that policies look at: the whole record, or named parts."""

    whole: bool = False
    parts: dict[str, Mentions] = field(default_factory=dict)

    def add(self, path: tuple[str, ...], *, whole: bool) -> None:
        """Add one path; with ``whole`` everything below it is looked at, otherwise only its presence."""
        node = self
        for name in path:
            node = node.parts.setdefault(name, Mentions())
        node.whole = node.whole or whole

    def part(self, name: str) -> Mentions | None:
        """Return what is looked at in a part, or None if nothing is."""
        return _EVERYTHING if self.whole else self.parts.get(name)


_EVERYTHING = Mentions(whole=True)


class NotRepresentableError(Exception):
    """A value used by a policy that Cedar cannot hold exactly; gives the place, never the value."""

    def __init__(self, place: tuple[str, ...]) -> None:
        super().__init__(pointer(place))
        self.place = place


Writer = Callable[[Any], Any]
"""A function that encodes one value in Cedar's JSON."""


def writer(fact: FactType, mentions: Mentions, place: tuple[str, ...] = ()) -> Writer:
    """Return an encoder for values of a type, limited to the attributes that policies look at.

    A null attribute is omitted. ``place`` is the value's place, for error messages.

    Raises:
        NotRepresentableError: (by the encoder) the value cannot be represented exactly.
    """
    if isinstance(fact, RecordOf):
        return _record_writer(fact, mentions, place)
    if isinstance(fact, SetOf):
        return _set_writer(writer(fact.element, _EVERYTHING, place), place)
    if isinstance(fact, EntityOf):
        return lambda value: {"__entity": {"type": fact.entity_type, "id": value}}
    return _SCALARS[fact.kind](place)


def _record_writer(fact: RecordOf, mentions: Mentions, place: tuple[str, ...]) -> Writer:
    looked_at = [
        (name, fact.fields[name].type, inside)
        for name in (fact.fields if mentions.whole else mentions.parts)
        if name in fact.fields and (inside := mentions.part(name)) is not None
    ]
    parts = [(name, writer(kind, inside, (*place, name))) for name, kind, inside in looked_at]

    def write(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise NotRepresentableError(place)
        written = {}
        for name, part in parts:
            attribute = value.get(name)
            if attribute is not None:
                written[name] = part(attribute)
        return written

    return write


def _set_writer(element: Writer, place: tuple[str, ...]) -> Writer:
    def write(value: Any) -> list[Any]:
        if not isinstance(value, list | tuple | set | frozenset):
            raise NotRepresentableError(place)
        return [element(item) for item in value]

    return write


def _plain(fits: Callable[[Any], bool]) -> Callable[[tuple[str, ...]], Writer]:
    def at(place: tuple[str, ...]) -> Writer:
        def write(value: Any) -> Any:
            if not fits(value):
                raise NotRepresentableError(place)
            return value

        return write

    return at


def _is_long(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LONG_LIMIT


def _decimal(value: Any, place: tuple[str, ...]) -> str:
    """Encode a number as a Cedar decimal: four decimal places, 64 bits in total."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise NotRepresentableError(place)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not abs(exact) <= _DECIMAL_LIMIT or exact % _DECIMAL_PLACES:
        raise NotRepresentableError(place)
    text = f"{exact.normalize() + 0:f}"
    return text if "." in text else f"{text}.0"


def _datetime(value: Any, place: tuple[str, ...]) -> str:
    """Encode an RFC 3339 date-time in UTC with milliseconds, Cedar's only form."""
    if not isinstance(value, str):
        raise NotRepresentableError(place)
    digits = value.partition(".")[2]
    fraction = digits[: len(digits) - len(digits.lstrip("0123456789"))]
    try:
        # Python keeps six digits of the fraction; a significant seventh digit would be lost silently.
        moment = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise NotRepresentableError(place) from error
    if fraction[6:].strip("0") or moment.microsecond % _MILLISECOND_US:
        raise NotRepresentableError(place)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // _MILLISECOND_US:03d}Z".rjust(24, "0")


_SCALARS: Mapping[Kind, Callable[[tuple[str, ...]], Writer]] = {
    Kind.STRING: _plain(lambda value: isinstance(value, str)),
    Kind.BOOL: _plain(lambda value: isinstance(value, bool)),
    Kind.LONG: _plain(_is_long),
    Kind.DECIMAL: lambda place: lambda value: {"__extn": {"fn": "decimal", "arg": _decimal(value, place)}},
    Kind.DATETIME: lambda place: lambda value: {"__extn": {"fn": "datetime", "arg": _datetime(value, place)}},
}
