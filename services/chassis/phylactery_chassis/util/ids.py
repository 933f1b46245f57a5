"""Opaque ids: a type prefix and 130 random bits."""

from __future__ import annotations

import secrets

_ID_CHARACTERS = 26
_LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8
"""A letter for each byte value. Each of the 32 letters maps from eight values, so all are equally likely."""


def new_id(prefix: str) -> str:
    """Return, for example, 'ap_' followed by 26 characters of [a-z2-7]; ``prefix`` is given without the underscore."""
    return f"{prefix}_{secrets.token_bytes(_ID_CHARACTERS).translate(_LETTERS).decode()}"
