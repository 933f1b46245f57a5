"""Argument values at rest: encrypted with AES-256-GCM, and bound to the log by salted commitments.

The commitment is in the Merkle leaf; the value and its salt are sealed outside the log. Erasing the sealed bytes leaves
a leaf that reveals nothing about the value and still verifies.
"""

from __future__ import annotations

import secrets
from typing import Any

from phylactery_chassis.errors import DataLoss
from phylactery_chassis.util.crypto import Box, keyed_hash

from phylactery_riskgate.domain.canonical import canonical_bytes

SALT_BYTES = 32


class Vault:
    """Authenticated encryption with the data key; ``place`` binds sealed bytes to their location."""

    def __init__(self, key: bytes) -> None:
        """Set up the cipher with the data key of 32 bytes."""
        self._box = Box(key)

    def seal(self, plain: bytes, place: str) -> bytes:
        """Return nonce, ciphertext and tag."""
        return self._box.seal(plain, place.encode())

    def open(self, sealed: bytes, place: str) -> bytes:
        """Return the plain bytes. Raise DataLoss if they were altered, moved, or sealed under another key."""
        plain = self._box.open(sealed, place.encode())
        if plain is None:
            raise DataLoss(
                "INTERNAL", "a stored argument cannot be opened: it was altered, or the data key is another one"
            )
        return plain


def new_salt() -> bytes:
    """Return a fresh salt."""
    return secrets.token_bytes(SALT_BYTES)


def committed(value: Any) -> tuple[bytes, str]:
    """Return a fresh salt and the commitment to a JSON value with it."""
    salt = new_salt()
    return salt, commitment(salt, value)


def commitment(salt: bytes, value: Any) -> str:
    """Return "hmac-sha256:" and 64 hex digits over the RFC 8785 form of a JSON value, keyed with the salt."""
    return keyed_hash(salt, canonical_bytes(value))
