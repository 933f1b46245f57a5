"""Strict Ed25519 verification (RFC 8032) that rejects keys of small order.

phylactery_client has the same list of keys and the same rule because it does not depend on this package; a test checks
both against one set of vectors.
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_KEY_BYTES = 32
_FIELD = 2**255 - 19
_OF_ORDER_8 = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
SMALL_ORDER: Final = frozenset(
    y.to_bytes(_KEY_BYTES, "little") for y in (0, 1, _FIELD - 1, _FIELD, _FIELD + 1, _OF_ORDER_8, _FIELD - _OF_ORDER_8)
)
"""The y coordinates of the eight points whose order divides 8, in every encoding, without the sign of x."""


def is_safe_key(public_key: bytes) -> bool:
    """Return True if signatures under the raw public key are meaningful.

    Under a key of small order one signature fits every message, and OpenSSL accepts it.
    """
    return len(public_key) == _KEY_BYTES and public_key[:31] + bytes([public_key[31] & 0x7F]) not in SMALL_ORDER


def verify_signature(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return True if the signature is valid for the message under a raw public key that is not of small order."""
    if not is_safe_key(public_key):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
