"""Messages as JSON. Reading is strict: what a request does not say exactly as its contract does is refused.

ProtoJSON allows much that can mean two things: numbers in texts, texts for numbers, enums by number, a key twice, of
which the last counts. A gate that decides about a request must not have read another one than its caller meant.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from phylactery_chassis.errors import InvalidArgument, Violation

MAX_DEPTH: Final = 30
"""Levels of objects and lists. An object in a Struct takes three levels of a message, which has at most 100."""
_MAX_NAME: Final = 100
_MAX_DIGITS: Final = 20
_EXACT: Final = 2**53
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_DURATION: Final = re.compile(r"-?\d{1,12}(\.\d{1,9})?s", re.ASCII)
_MASK: Final = re.compile(r"([A-Za-z][A-Za-z0-9.]*(,[A-Za-z][A-Za-z0-9.]*)*)?", re.ASCII)
_INTEGER: Final = re.compile(r"0|-?[1-9]\d{0,19}", re.ASCII)
_AS_TEXT: Final = {
    "google.protobuf.Timestamp": (_TIME, 'is not a time such as "2026-01-31T09:30:00Z"'),
    "google.protobuf.Duration": (_DURATION, 'is not a duration such as "1.5s"'),
    "google.protobuf.FieldMask": (_MASK, 'is not a list of fields such as "text,validAt"'),
}
_STRUCT: Final = "google.protobuf.Struct"
_RANGES: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_WIDE: Final = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)
_MAX_FLOAT: Final = 3.4028234663852886e38


class _Fault(Exception):
    """What is wrong, and the path of the field where it is."""

    def __init__(self, path: str, description: str) -> None:
        super().__init__(description)
        self.path, self.description = path, description


class _Doubled(dict[str, Any]):
    """An object with a key that was given twice: this one."""

    key = ""


class _NoNumber:
    """What stands where a number was written that JSON does not have, or that is too long to be one."""


def read(kind: type[Message], body: bytes, *, ignore_unknown: bool = False) -> Message:
    """Return the message in a body of JSON. Raise InvalidArgument INVALID_REQUEST, which names the field at fault.

    With ``ignore_unknown`` fields that the message does not have are left out instead of being refused.
    """
    message = kind()
    try:
        _fill(message, _parsed(body), "", 1, ignore_unknown=ignore_unknown)
    except _Fault as fault:
        where = fault.path[:_MAX_NAME]
        said = f"{where} {fault.description}" if where else f"the body {fault.description}"
        violations = [Violation(where, fault.description[:_MAX_NAME])] if where else []
        raise InvalidArgument("INVALID_REQUEST", f"the request is not valid: {said}", violations=violations) from None
    return message


def write(message: Message) -> bytes:
    """Return a message as JSON on one line."""
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()


def _parsed(body: bytes) -> Any:
    if not body.strip():
        raise _Fault("", "is empty; a request without fields is {}")
    try:
        text = body.decode("utf-8")
        return json.loads(text, object_pairs_hook=_object, parse_constant=lambda _: _NoNumber(), parse_int=_integer)
    except UnicodeDecodeError:
        raise _Fault("", "is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise _Fault("", f"is not JSON: line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise _Fault("", f"has more than {MAX_DEPTH} levels of objects and lists") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    counts = Counter(key for key, _ in pairs)
    doubled = _Doubled(found)
    doubled.key = next(key for key, count in counts.items() if count > 1)
    return doubled


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) <= _MAX_DIGITS else _NoNumber()


def _fill(message: Any, value: Any, path: str, depth: int, *, ignore_unknown: bool) -> None:
    """Set the fields of a message from a value of JSON."""
    kind = message.DESCRIPTOR.full_name
    if kind in _AS_TEXT:
        _fill_from_text(message, value, path)
        return
    if kind.startswith("google.protobuf.") and kind != _STRUCT:
        raise _Fault(path, "has a type that JSON cannot be read into here")
    if not isinstance(value, dict):
        raise _Fault(path, f"is {_named(value)} instead of an object")
    if kind == _STRUCT:
        _check_free(value, path, depth)
        message.update(value)
        return
    if depth > MAX_DEPTH:
        raise _Fault(path, f"has more than {MAX_DEPTH} levels of objects and lists")
    fields = {name: field for field in message.DESCRIPTOR.fields for name in (field.name, field.json_name)}
    doubled = fields.get(value.key) if isinstance(value, _Doubled) else None
    if doubled is not None:
        raise _Fault(_inside(path, doubled.name), "is given twice")
    _refuse_doubled(value, path)
    given: set[str] = set()
    for name, item in value.items():
        field = fields.get(name)
        if field is None:
            if ignore_unknown:
                continue
            raise _Fault(
                _inside(path, name if _NAME.fullmatch(name) else "(a name that is not shown)"), "is not a field here"
            )
        where = _inside(path, field.name)
        if field.name in given:
            raise _Fault(where, "is given twice")
        given.add(field.name)
        _refuse_second(field, given, where)
        _set(message, field, item, where, depth, ignore_unknown=ignore_unknown)


def _refuse_second(field: FieldDescriptor, given: Iterable[str], where: str) -> None:
    """Refuse a second member of a group of which one may be given."""
    group = field.containing_oneof
    if group is not None:
        others = [one.name for one in group.fields if one.name in given and one.name != field.name]
        if others:
            raise _Fault(where, f"cannot be given beside {others[0]}")


def _set(message: Any, field: FieldDescriptor, item: Any, where: str, depth: int, *, ignore_unknown: bool) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        _set_map(message, field, item, where)
    elif field.is_repeated:
        if not isinstance(item, list):
            raise _Fault(where, f"is {_named(item)} instead of a list")
        values = getattr(message, field.name)
        for index, one in enumerate(item):
            if field.message_type is not None:
                _fill(values.add(), one, f"{where}.{index}", depth + 2, ignore_unknown=ignore_unknown)
            else:
                values.append(_scalar(field, one, f"{where}.{index}"))
    elif field.message_type is not None:
        inner = getattr(message, field.name)
        inner.SetInParent()
        _fill(inner, item, where, depth + 1, ignore_unknown=ignore_unknown)
    else:
        setattr(message, field.name, _scalar(field, item, where))


def _set_map(message: Any, field: FieldDescriptor, item: Any, where: str) -> None:
    assert field.message_type is not None, "a map has a type for its entries"
    key_field, value_field = field.message_type.fields
    if key_field.type != FieldDescriptor.TYPE_STRING or value_field.message_type is not None:
        raise _Fault(where, "has a type that JSON cannot be read into here")
    if not isinstance(item, dict):
        raise _Fault(where, f"is {_named(item)} instead of an object")
    _refuse_doubled(item, where)
    for key, value in item.items():
        getattr(message, field.name)[_scalar(key_field, key, where)] = _scalar(value_field, value, where)


def _fill_from_text(message: Any, value: Any, path: str) -> None:
    form, description = _AS_TEXT[message.DESCRIPTOR.full_name]
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise _Fault(path, description)
    try:
        message.FromJsonString(value)
    except (ValueError, json_format.ParseError):
        raise _Fault(path, description) from None


def _scalar(field: FieldDescriptor, value: Any, path: str) -> Any:  # noqa: PLR0911 - one case for each type
    """Return the value of a field that is no message."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            if isinstance(value, bool):
                return value
            raise _Fault(path, f"is {_named(value)} instead of true or false")
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return _bytes(value, path)
        case FieldDescriptor.CPPTYPE_STRING:
            return _text(value, path)
        case FieldDescriptor.CPPTYPE_ENUM:
            return _enum(field, value, path)
        case FieldDescriptor.CPPTYPE_DOUBLE:
            return _number(value, path)
        case FieldDescriptor.CPPTYPE_FLOAT:
            number = _number(value, path)
            if abs(number) > _MAX_FLOAT:
                raise _Fault(path, "is a number out of range")
            return number
        case _:
            return _whole(field, value, path)


def _enum(field: FieldDescriptor, value: Any, path: str) -> int:
    assert field.enum_type is not None, "an enum field has its type"
    if isinstance(value, str) and (named := field.enum_type.values_by_name.get(value)) is not None:
        return named.number
    said = "is none of its names" if isinstance(value, str) else f"is {_named(value)} instead of a name"
    raise _Fault(path, f"{said}, such as {field.enum_type.values[-1].name}")


def _whole(field: FieldDescriptor, value: Any, path: str) -> int:
    """Return an integer. One of 64 bits may be in a text, as ProtoJSON writes it."""
    if field.cpp_type in _WIDE and isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Fault(path, f"is {_named(value)} instead of a whole number")
    least, most = _RANGES[field.cpp_type]
    if not least <= value <= most:
        raise _Fault(path, f"is out of range: from {least} to {most}")
    return value


def _number(value: Any, path: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _Fault(path, f"is {_named(value)} instead of a number")
    if not math.isfinite(value):
        raise _Fault(path, "is a number out of range")
    return float(value)


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise _Fault(path, f"is {_named(value)} instead of a text")
    if not _is_unicode(value):
        raise _Fault(path, "has half of a pair of surrogates")
    return value


def _bytes(value: Any, path: str) -> bytes:
    if not isinstance(value, str):
        raise _Fault(path, f"is {_named(value)} instead of base64 in a text")
    standard = value.translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _Fault(path, "is not base64") from None


def _check_free(value: Any, path: str, depth: int) -> None:
    """Refuse what a Struct cannot hold as it was written. Keys in it are the caller's data, so no error names them."""
    if isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            raise _Fault(path, f"has more than {MAX_DEPTH} levels of objects and lists")
        if isinstance(value, dict):
            _refuse_doubled(value, path)
            for key in value:
                _text(key, path)
        for item in value.values() if isinstance(value, dict) else value:
            _check_free(item, path, depth + 1)
    elif isinstance(value, str):
        _text(value, path)
    elif isinstance(value, int | float):
        if not math.isfinite(value):
            raise _Fault(path, "has a number out of range")
        if isinstance(value, int) and abs(value) > _EXACT:
            raise _Fault(path, "has a whole number beyond 2^53, which is not kept exactly; write it as a text")
    elif value is not None:
        raise _Fault(path, f"has {_named(value)}")


def _refuse_doubled(value: Mapping[str, Any], path: str) -> None:
    if isinstance(value, _Doubled):
        raise _Fault(path, "has a key twice")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "true or false",
    str: "a text",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    _Doubled: "an object",
    _NoNumber: "NaN, Infinity or a number of too many digits",
}


def _named(value: Any) -> str:
    """Return what kind of value of JSON this is, never the value."""
    return _KINDS[type(value)]
