"""Permits and receipts: JWS compact (RFC 7515) with Ed25519 (RFC 8037, named by RFC 9864).

The header of a key and a type is one fixed byte string: the RFC 8785 form of alg, kid and typ, in that order. A token
with any other header segment is refused, so a wrong alg, kid or typ, an embedded key, b64 or crit, a duplicate name or
a padded segment has no effect. RiskGate signs and verifies with this module; the agent's executor verifies with it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MAX_TOKEN_CHARACTERS = 8_192
SKEW_SECONDS = 30
"""How far the issuer's clock may run ahead of the verifier's. There is no grace after the end."""

Genuine = Callable[[bytes, bytes, bytes], bool]
"""Function of a raw public key, a message and a signature that returns True if the signature is valid."""

Noted = Callable[[bytes, bytes], None]
"""Callback with a signed message and its signature."""

_KEY_BYTES = 32
_FIELD = 2**255 - 19
_OF_ORDER_8 = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
SMALL_ORDER: Final = frozenset(
    y.to_bytes(_KEY_BYTES, "little") for y in (0, 1, _FIELD - 1, _FIELD, _FIELD + 1, _OF_ORDER_8, _FIELD - _OF_ORDER_8)
)
"""The y coordinates of the eight points whose order divides 8, in every encoding, without the sign of x.

phylactery_client has the same list and the same rule because it does not depend on this package; a test checks both
against one set of vectors.
"""

_PARTS = 3
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def is_safe_key(public_key: bytes) -> bool:
    """Return True if signatures under the raw public key are meaningful.

    Under a key of small order one signature fits every message, and OpenSSL accepts it.
    """
    return len(public_key) == _KEY_BYTES and public_key[:31] + bytes([public_key[31] & 0x7F]) not in SMALL_ORDER


def verify_signature(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return True if an Ed25519 signature (RFC 8032) is valid for the message under a raw public key.

    Under a key of small order none is valid.
    """
    if not is_safe_key(public_key):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


class TokenType(StrEnum):
    """The type of a token; a permit is never accepted as a receipt, nor the reverse."""

    PERMIT = "phylactery-permit+jwt"
    RECEIPT = "phylactery-receipt+jwt"


class TokenError(ValueError):
    """The token is not genuine or not valid now.

    factor names the failed check: "format", "header", "signature", "claims" or "expiry".
    """

    def __init__(self, factor: str, message: str) -> None:
        super().__init__(message)
        self.factor = factor
        self.message = message


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a token with a valid signature, not yet compared with the call."""

    values: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a claim that must be text. Raise TokenError."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise TokenError("claims", f"the token has no claim {name}")
        return value

    def number(self, name: str) -> int:
        """Return a claim that must be an integer. Raise TokenError."""
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise TokenError("claims", f"the token has no claim {name}")
        return value


def public_jwk(public_key: bytes) -> dict[str, str]:
    """Return the raw public key as a JWK (RFC 8037)."""
    return {"crv": "Ed25519", "kty": "OKP", "x": encode(public_key)}


def thumbprint(public_key: bytes) -> str:
    """Return the key's RFC 7638 thumbprint, which is its kid."""
    return encode(hashlib.sha256(_compact(public_jwk(public_key))).digest())


@lru_cache(maxsize=64)
def header(kid: str, kind: TokenType) -> str:
    """Return the only header segment that tokens of this key and type can have."""
    return encode(_compact({"alg": "Ed25519", "kid": kid, "typ": str(kind)}))


def sign(
    claims: Mapping[str, Any], kind: TokenType, kid: str, key: Ed25519PrivateKey, *, noted: Noted | None = None
) -> str:
    """Return the token. The same claims under the same key always give the same token (RFC 8032)."""
    body = f"{header(kid, kind)}.{encode(_compact(claims))}"
    message = body.encode()
    signature = key.sign(message)
    if noted is not None:
        noted(message, signature)
    return f"{body}.{encode(signature)}"


def verify(token: str, kind: TokenType, keys: Mapping[str, bytes], *, genuine: Genuine = verify_signature) -> Claims:
    """Return the claims of a token of this type that one of the keys (raw public key by kid) signed.

    Raise TokenError. Time, issuer, audience and binding are left to check_times and the caller. The issuer passes its
    own ``genuine``, which recognizes its signatures without verifying them again.
    """
    head, payload, signature = _segments(token)
    key = next((key for kid, key in keys.items() if header(kid, kind) == head), None)
    if key is None:
        raise TokenError("header", f"not a {kind} of a key in use")
    if not genuine(key, f"{head}.{payload}".encode(), decode(signature)):
        raise TokenError("signature", "the signature is wrong")
    return Claims(_object(decode(payload)))


def claimed_kid(token: str) -> str:
    """Return the key id in a token's header, unverified: it only selects the key for verify().

    Raise TokenError with factor "format".
    """
    try:
        kid = json.loads(decode(_segments(token)[0]))["kid"]
    except (ValueError, KeyError, TypeError, RecursionError):
        kid = None
    if not isinstance(kid, str):
        raise TokenError("format", "this token names no key")
    return kid


def check_times(claims: Claims, now_us: int) -> None:
    """Raise TokenError with factor "expiry" outside [nbf - 30 s, exp); a receipt without exp has no end."""
    now = now_us / 1_000_000
    if claims.number("iat") > now + SKEW_SECONDS or (
        "nbf" in claims.values and claims.number("nbf") > now + SKEW_SECONDS
    ):
        raise TokenError("expiry", "the token is not valid yet")
    if "exp" in claims.values and now >= claims.number("exp"):
        raise TokenError("expiry", "the token's time is over")


def encode(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode(text: str) -> bytes:
    """Decode base64url without padding, in canonical form only. Raise TokenError with factor "format"."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise TokenError("format", "a segment is not base64url") from None
    if encode(data) != text:
        raise TokenError("format", "a segment is not base64url in its one spelling")
    return data


def _segments(token: str) -> tuple[str, str, str]:
    parts = token.split(".") if len(token) <= MAX_TOKEN_CHARACTERS and token.isascii() else []
    if len(parts) != _PARTS:
        raise TokenError("format", "not a token of this issuer")
    return parts[0], parts[1], parts[2]


def _compact(value: Mapping[str, Any]) -> bytes:
    """Return JSON with sorted names and no space: for the names and values used here, the RFC 8785 form."""
    return _JSON.encode(value).encode()


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise TokenError("claims", "the claims are not one JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name is repeated")
    return names
