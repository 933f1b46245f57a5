"""RFC 8785 canonical JSON, and hashes over it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import orjson
import rfc8785
from phylactery_chassis.util.crypto import sha256

_MAX_INTEGER = 2**53 - 1
_LEAVES = frozenset({str, bool, type(None)})
_PLAIN = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def canonical_bytes(value: Any) -> bytes:
    """Return the RFC 8785 form of a JSON value, in UTF-8.

    Raises:
        ValueError: the value has no such form (NaN, an integer beyond 2^53 - 1, a lone surrogate, another type).
    """
    try:
        return _plain_bytes(value) if _is_plain(value) else bytes(rfc8785.dumps(value))
    except UnicodeEncodeError as error:
        raise ValueError("a text holds a lone surrogate") from error


def _plain_bytes(value: Any) -> bytes:
    """Encode a plain value, with the standard encoder if the fast one fails (deep nesting, a lone surrogate)."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return _PLAIN.encode(value).encode()


def _is_plain(value: Any) -> bool:
    """Return True if ordinary encoders, many times faster, produce exactly the RFC 8785 form of a value.

    They do if every name is ASCII, so that all sort orders agree, and every number is a small integer. Both escape
    strings alike.
    """
    kind = type(value)
    if kind is int:
        return bool(-_MAX_INTEGER <= value <= _MAX_INTEGER)
    if kind is dict:
        try:
            ascii_names = "".join(value).isascii()
        except TypeError:  # a name is not a string
            return False
        return ascii_names and _all_plain(value.values())
    return _all_plain(value) if kind is list else kind in _LEAVES


def _all_plain(values: Iterable[Any]) -> bool:
    for value in values:
        kind = type(value)
        if kind in _LEAVES or (kind is int and -_MAX_INTEGER <= value <= _MAX_INTEGER):
            continue
        if not _is_plain(value):
            return False
    return True


def hash_json(value: Any) -> str:
    """Return the hash of the RFC 8785 form of a JSON value.

    Raises:
        ValueError: the value has no such form.
    """
    return sha256(canonical_bytes(value))
