"""Strict reading of raw arguments: refuses input that parsers could read differently.

Two parsers of one JSON text must never see two different calls. So a repeated key, a number that would be rounded, and
text that is not Unicode are refused. Keys with a special meaning in Cedar are refused too: a record with ``__entity``
in it would become a real entity.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.model import Json, RawCall
from phylactery_riskgate.domain.pointers import pointer

MAX_BYTES = 1_048_576
MAX_DEPTH = 64
MAX_SAFE_INTEGER = 2**53 - 1
RESERVED_KEYS = frozenset({"__entity", "__extn", "__expr"})

_MAX_NUMBER_LITERAL = 128
"""The maximum length of a literal: no exactly representable number needs more, and reading them takes long."""

# Possessive, and a string may be unterminated: linear on any text, however many quotes it escapes.
_BRACKET_OR_STRING = re.compile(r'[\[{]|[\]}]|"[^"\\]*+(?:\\.[^"\\]*+)*"?', re.DOTALL)


class GuardError(Exception):
    """Refused arguments: a code and the place (a JSON Pointer), never the value."""

    def __init__(self, code: str, place: tuple[str | int, ...] = ()) -> None:
        super().__init__(code)
        self.code = code
        self.place = place

    @property
    def path(self) -> str:
        """The place as a JSON Pointer, with the caller's own names in it."""
        return pointer(self.place)


class _Repeated(dict[str, Any]):
    """An object with a repeated key, kept until the walk knows its place."""

    key = ""


def read_arguments(call: RawCall) -> Json:
    """Read the arguments of a call, in either form, with whole numbers as integers.

    Raises:
        GuardError: the arguments are refused.
    """
    if call.arguments_json is not None and call.arguments_struct is not None:
        raise GuardError("INVALID_JSON")
    if call.arguments_json is not None:
        return read_json(call.arguments_json)
    return read_struct(call.arguments_struct or {})


def read_json(text: str) -> Json:
    """Read one JSON object from text.

    Raises:
        GuardError: the text is refused.
    """
    _check_size(text)
    check_depth(text)
    try:
        value = _DECODER.decode(text)
    except ValueError as error:
        raise GuardError("INVALID_JSON") from error
    return _object(value)


def read_struct(value: Any) -> Json:
    """Read one JSON object from Python values, as given by a google.protobuf.Struct.

    Raises:
        GuardError: the value is refused.
    """
    read = _object(value)
    if len(canonical_bytes(read)) > MAX_BYTES:
        raise GuardError("TOO_LARGE")
    return read


def _check_size(text: str) -> None:
    if len(text) > MAX_BYTES:
        raise GuardError("TOO_LARGE")
    if text.isascii():
        return
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise GuardError("INVALID_UNICODE") from error
    if size > MAX_BYTES:
        raise GuardError("TOO_LARGE")


def check_depth(text: str) -> None:
    """Check the nesting before the recursive standard parser runs. Raise GuardError TOO_DEEP."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    depth = 0
    for match in _BRACKET_OR_STRING.finditer(text):
        mark = match.group()
        if mark in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise GuardError("TOO_DEEP")
        elif mark in "}]":
            depth -= 1


def _pairs(pairs: list[tuple[str, Any]]) -> Json:
    read = dict(pairs)
    if len(read) == len(pairs):
        return read
    seen: set[str] = set()
    repeated = _Repeated(read)
    for key, _ in pairs:
        if key in seen:
            repeated.key = key
        seen.add(key)
    return repeated


def _integer(literal: str) -> int:
    # 2^53 has 16 digits; int() itself refuses very long literals with another error.
    if len(literal) > len("-9007199254740991") or abs(int(literal)) > MAX_SAFE_INTEGER:
        raise GuardError("NUMBER_OUT_OF_RANGE")
    return int(literal)


def _fraction(literal: str) -> float:
    if len(literal) > _MAX_NUMBER_LITERAL:
        raise GuardError("NUMBER_NOT_EXACT")
    number = float(literal)
    if repr(number) == literal:
        return number
    if abs(number) > MAX_SAFE_INTEGER:
        raise GuardError("NUMBER_OUT_OF_RANGE")
    try:
        exact = Decimal(literal) == Decimal(repr(number))
    except InvalidOperation as error:
        raise GuardError("NUMBER_OUT_OF_RANGE") from error
    if not exact:
        raise GuardError("NUMBER_NOT_EXACT")
    return number


def _constant(_literal: str) -> NoReturn:
    raise GuardError("NUMBER_OUT_OF_RANGE")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)


def _object(value: Any) -> Json:
    if not isinstance(value, dict):
        raise GuardError("NOT_AN_OBJECT")
    read: Json = _walk(value, ())
    return read


def _walk(value: Any, path: tuple[str | int, ...]) -> Any:
    """Check and copy one value; the recursion ends at MAX_DEPTH."""
    if isinstance(value, str):
        return _text(value, path)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return _number(value, path)
    if len(path) >= MAX_DEPTH:
        raise GuardError("TOO_DEEP")
    if isinstance(value, list):
        return [_walk(item, (*path, index)) for index, item in enumerate(value)]
    if isinstance(value, dict):
        if isinstance(value, _Repeated):
            raise GuardError("DUPLICATE_KEY", (*path, value.key))
        return {_key(key, path): _walk(item, (*path, key)) for key, item in value.items()}
    raise GuardError("INVALID_JSON", path)


def _key(key: Any, path: tuple[str | int, ...]) -> str:
    if not isinstance(key, str):
        raise GuardError("INVALID_JSON", path)
    if key in RESERVED_KEYS:
        raise GuardError("RESERVED_KEY", (*path, key))
    return _text(key, path)


def _text(text: str, path: tuple[str | int, ...]) -> str:
    if "\x00" in text:
        raise GuardError("INVALID_UNICODE", path)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise GuardError("INVALID_UNICODE", path) from error
    return text


def _number(number: float, path: tuple[str | int, ...]) -> int | float:
    """Normalize a number, so that 2 and 2.0 are the same. "not >" also refuses NaN, which compares false."""
    if not abs(number) <= MAX_SAFE_INTEGER:
        raise GuardError("NUMBER_OUT_OF_RANGE", path)
    return int(number) if isinstance(number, float) and number.is_integer() else number
