"""RFC 8785 canonical JSON and the hashes over it."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785


def canonical_bytes(value: Any) -> bytes:
    """Writes a JSON value in its RFC 8785 form, UTF-8.

    Raises:
        ValueError: the value has no such form (NaN, an integer beyond 2^53 - 1, a lone surrogate, another type).
    """
    try:
        return bytes(rfc8785.dumps(value))
    except UnicodeEncodeError as error:
        raise ValueError("a text holds a lone surrogate") from error


def sha256(data: bytes) -> str:
    """Hashes bytes, written "sha256:" and 64 hex digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def hash_json(value: Any) -> str:
    """Hashes the RFC 8785 form of a JSON value.

    Raises:
        ValueError: the value has no such form.
    """
    return sha256(canonical_bytes(value))
