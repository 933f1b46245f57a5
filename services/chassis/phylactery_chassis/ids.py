"""Opaque ids: a prefix that says what it is, and 128 random bits."""

from __future__ import annotations

import base64
import secrets

_BITS_128 = 16


def new_id(prefix: str) -> str:
    """Answers for example 'ap_' and 26 characters of [a-z2-7]; prefix without the underscore."""
    return f"{prefix}_{base64.b32encode(secrets.token_bytes(_BITS_128)).decode().rstrip('=').lower()}"
