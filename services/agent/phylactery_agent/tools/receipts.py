"""Receipts: RiskGate's signed statement that one execution may run exactly one bound call (docs/effects.md, 9).

A receipt is verified offline: its signature, its header byte for byte, and every claim against the requested execution.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import rfc8785
from phylactery_chassis.auth.signatures import is_safe_key, verify_signature

from phylactery_agent.ports import BoundCall

AUDIENCE: Final = "executor"
RECEIPT_TYPE: Final = "phylactery-receipt+jwt"
_PARTS: Final = 3


class ReceiptRefusedError(Exception):
    """Error for a receipt that is invalid or for another call. Holds the factor that failed; nothing ran."""

    def __init__(self, factor: str) -> None:
        super().__init__(f"the receipt was refused: {factor}")
        self.factor = factor


class ReceiptKeys(Protocol):
    """The source of public keys and the issuer's name; phylactery_agent.ports.Gate is one."""

    async def public_keys(self, *, fresh: bool = False) -> Mapping[str, Mapping[str, str]]:
        """Return public keys as JWK by kid."""
        ...

    async def issuer(self) -> str:
        """Return the expected iss."""
        ...


@dataclass(frozen=True, slots=True)
class Execution:
    """The execution about to run, and its user: every field must match the receipt exactly."""

    execution_id: str
    effect_key: str
    tool_call_id: str
    tenant: str
    user_id: str
    thread_id: str
    run_id: str


async def verify_receipt(receipt: str, bound: BoundCall, execution: Execution, keys: ReceiptKeys) -> None:
    """Verify a receipt against a bound call and its execution.

    The JWS (RFC 7515 compact, alg Ed25519 of RFC 9864) must have exactly the one header that a known key produces. A
    receipt does not expire: it names one execution, which may present it again after a crash.

    Raises:
        ReceiptRefusedError: Verification failed; the error holds the factor that failed.
    """
    parts = receipt.split(".")
    if len(parts) != _PARTS:
        raise ReceiptRefusedError("format")
    header, payload, signature = parts
    kid = _kid_of(header)
    key = await _key(kid, keys)
    if header != expected_header(kid):
        raise ReceiptRefusedError("header")
    if not payload.isascii() or not verify_signature(key, f"{header}.{payload}".encode(), _decode(signature)):
        raise ReceiptRefusedError("signature")
    claims = _json_object(payload)
    expected = {
        "iss": await keys.issuer(),
        "aud": AUDIENCE,
        "tenant": execution.tenant,
        "sub": execution.user_id,
        "thread": execution.thread_id,
        "run": execution.run_id,
        "tool_call_id": execution.tool_call_id,
        "tool": bound.tool,
        "tool_version": bound.tool_version,
        "args_hash": bound.args_hash,
        "execution_id": execution.execution_id,
    }
    for name, value in expected.items():
        if claims.get(name) != value:
            raise ReceiptRefusedError(name)


def expected_header(kid: str) -> str:
    """Return the only valid header segment for a receipt of this key: RFC 8785 JSON, base64url without padding."""
    header = {"alg": "Ed25519", "kid": kid, "typ": RECEIPT_TYPE}
    return base64.urlsafe_b64encode(rfc8785.dumps(header)).rstrip(b"=").decode()


def canonical_arguments(bound: BoundCall) -> dict[str, Any]:
    """Return the arguments if the text is canonical and matches the signed hash.

    Raises:
        ReceiptRefusedError: The text is not canonical or does not match.
    """
    raw = bound.arguments_json.encode()
    if "sha256:" + hashlib.sha256(raw).hexdigest() != bound.args_hash:
        raise ReceiptRefusedError("args_hash")
    try:
        arguments = json.loads(raw)
        canonical = rfc8785.dumps(arguments)
    except (ValueError, RecursionError, rfc8785.CanonicalizationError):
        raise ReceiptRefusedError("arguments") from None
    if not isinstance(arguments, dict) or canonical != raw:
        raise ReceiptRefusedError("arguments")
    return arguments


def _kid_of(header: str) -> str:
    kid = _json_object(header).get("kid")
    if not isinstance(kid, str) or not kid:
        raise ReceiptRefusedError("kid")
    return kid


async def _key(kid: str, keys: ReceiptKeys) -> bytes:
    jwk = (await keys.public_keys()).get(kid) or (await keys.public_keys(fresh=True)).get(kid)
    if jwk is None or jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519":
        raise ReceiptRefusedError("kid")
    key = _decode(jwk.get("x", ""))
    if not is_safe_key(key):
        raise ReceiptRefusedError("kid")
    return key


def _json_object(segment: str) -> dict[str, Any]:
    try:
        value = json.loads(_decode(segment))
    except (ValueError, RecursionError):
        raise ReceiptRefusedError("format") from None
    if not isinstance(value, dict):
        raise ReceiptRefusedError("format")
    return value


def _decode(segment: str) -> bytes:
    """Decode base64url strictly: no padding, no other alphabet, no unused bits, so each value has one encoding."""
    try:
        raw = base64.b64decode(segment + "=" * (-len(segment) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise ReceiptRefusedError("format") from None
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != segment:
        raise ReceiptRefusedError("format")
    return raw
