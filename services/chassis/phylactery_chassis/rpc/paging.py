"""Opaque page tokens: the position after the last row in URL-safe base64. They hold no secrets."""

from __future__ import annotations

import base64
import binascii
import json

from phylactery_chassis.errors import InvalidArgument, Violation

_MAX_TOKEN = 1_000
_MAX_INTEGER = 2**63 - 1
"""The largest integer a database column holds."""


def encode_token(*parts: int | str) -> str:
    """Return the token for a position."""
    return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_token(token: str, *types: type) -> tuple[int | str, ...]:
    """Return the position. Raise InvalidArgument INVALID_REQUEST if the token is not valid.

    ``types`` are the types of the parts, for example int, str.
    """
    try:
        parts = json.loads(base64.urlsafe_b64decode(token[:_MAX_TOKEN] + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        parts = None
    if (
        not isinstance(parts, list)
        or (types and len(parts) != len(types))
        or not all(type(part) in (types or (int, str)) for part in parts)
        or any(type(part) is not wanted for part, wanted in zip(parts, types, strict=False))
        or not all(_storable(part) for part in parts)
    ):
        raise InvalidArgument(
            "INVALID_REQUEST",
            "page_token was not answered by this RPC; start again without it",
            violations=[Violation("page_token", "not a token of this list")],
        )
    return tuple(parts)


def _storable(part: int | str) -> bool:
    """Return True if a query can compare with it: a forged position must not become a store failure."""
    return part.isprintable() if isinstance(part, str) else abs(part) <= _MAX_INTEGER
