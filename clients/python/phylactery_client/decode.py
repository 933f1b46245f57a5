"""Conversion of protobuf messages into result dataclasses with the same field names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import UTC
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

T = TypeVar("T")

_TIMESTAMP, _DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"


def decode(result: type[T], message: Message) -> T:
    """Return the result dataclass of a message.

    A Timestamp becomes an aware datetime, a Duration a timedelta, a repeated field a tuple, an enum value its name
    without the enum's prefix (an unknown number stays a number, as text). An unset message becomes None if the result's
    type allows None, and otherwise an empty result.
    """
    fields: Mapping[str, Any] = message.DESCRIPTOR.fields_by_name
    return result(**{name: _field(hint, message, fields[name]) for name, hint in _hints(result).items()})  # type: ignore[arg-type]


@cache  # resolving them is slow, and they never change
def _hints(result: type) -> Mapping[str, Any]:
    return get_type_hints(result)


def _field(hint: Any, message: Message, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        return tuple(_single(hint, item, field) for item in value)
    if field.message_type is not None and not message.HasField(field.name) and _optional(hint):
        return None
    return _single(hint, value, field)


def _optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


def _single(hint: Any, value: Any, field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        return enum_word(field.enum_type, value)
    if field.message_type is None:
        return value
    if field.message_type.full_name == _TIMESTAMP:
        return value.ToDatetime(tzinfo=UTC)
    if field.message_type.full_name == _DURATION:
        return value.ToTimedelta()
    return decode(_dataclass_in(hint), value)


def enum_word(enum: EnumDescriptor, number: int) -> str:
    """Return, for example, 'DONE' for RUN_STATUS_DONE."""
    known = enum.values_by_number.get(number)
    return str(number) if known is None else known.name.removeprefix(enum_prefix(enum))


def enum_number(enum: EnumDescriptor, word: str) -> int:
    """Return the number of an enum word, 0 for ''. Raise ValueError that lists the valid words."""
    prefix = enum_prefix(enum)
    value = enum.values_by_name.get(prefix + (word or "UNSPECIFIED"))
    if value is None:
        words = ", ".join(name.removeprefix(prefix) for name in enum.values_by_name)
        raise ValueError(f"'{word}' is not a {enum.name}; known: {words}")
    return int(value.number)


def enum_prefix(enum: EnumDescriptor) -> str:
    """Return, for example, 'RUN_STATUS_' for RunStatus."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", enum.name).upper() + "_"


def _dataclass_in(hint: Any) -> type:
    candidates = [hint, *get_args(hint)]
    return next(kind for kind in candidates if isinstance(kind, type) and is_dataclass(kind))
