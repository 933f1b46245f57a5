"""Offline verification of receipts, which an executor performs before it runs a call.

A receipt is a JWS (RFC 7515 compact, alg Ed25519 of RFC 9864) whose header is one fixed byte string per key. It does
not expire: it names one execution, which may present it again after a crash. What follows of JWS is also in
phylactery_chassis.auth, which an executor cannot be asked to install: it brings a server and a database.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from phylactery_client.results import BoundCall, Key, Keys

TYPE: Final = "phylactery-receipt+jwt"
AUDIENCE: Final = "executor"
SKEW_SECONDS: Final = 30
"""The maximum clock skew: how far RiskGate's clock may be ahead of the executor's."""
_MAX_CHARACTERS: Final = 8_192
_PARTS: Final = 3
_FIELD: Final = 2**255 - 19
_OF_ORDER_8: Final = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
SMALL_ORDER: Final = frozenset(
    y.to_bytes(32, "little") for y in (0, 1, _FIELD - 1, _FIELD, _FIELD + 1, _OF_ORDER_8, _FIELD - _OF_ORDER_8)
)
"""The y coordinates of the eight points whose order divides 8, in every encoding, without the sign of x."""
_TRUSTED_STATES: Final = frozenset({"ACTIVE", "RETIRING"})
"""Key states that still verify; a state unknown to this client does not."""


class ReceiptError(Exception):
    """The receipt does not cover this call, so nothing may run. factor names what failed, such as a claim."""

    def __init__(self, factor: str, message: str) -> None:
        super().__init__(message)
        self.factor = factor


class MalformedReceiptError(ReceiptError):
    """Not a valid RiskGate receipt: wrong header, type, algorithm or encoding (factor "format" or "header")."""


class UnknownKeyError(ReceiptError):
    """Not signed by a currently trusted key (factor "kid"): fetch the keys again, once."""


class SignatureError(ReceiptError):
    """The signature is invalid (factor "signature")."""


class NotYetValidError(ReceiptError):
    """Issued in the future (factor "iat"): one of the two clocks is wrong."""


class MismatchError(ReceiptError):
    """Genuine, but for another call: factor is the claim that differs."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """A verified receipt: the permitted call, for whom, and the decision and approval behind it."""

    execution_id: str
    tool: str
    args_hash: str
    subject: str
    tenant: str
    thread_id: str
    run_id: str
    tool_call_id: str
    decision_id: str
    approval_id: str
    issue_time: datetime
    kid: str


def verify_receipt(
    receipt: str,
    keys: Keys,
    *,
    call: BoundCall,
    execution_id: str,
    subject: str = "",
    tenant: str = "",
    thread_id: str = "",
    run_id: str = "",
    tool_call_id: str = "",
    now: float | None = None,
) -> Receipt:
    """Return the receipt if it permits this execution to run exactly this call.

    ``keys`` comes from RiskGateClient.list_keys or keys_of_jwk_set, with the trusted issuer. The arguments are hashed
    here, exactly as they are about to be run. Of subject, tenant, thread_id, run_id and tool_call_id, those given must
    match the receipt; empty ones are not compared. ``now`` is the time in seconds since the epoch, None for the
    machine's clock.

    Raise MalformedReceiptError, UnknownKeyError, SignatureError, NotYetValidError or MismatchError.
    """
    kid, claims = _opened(receipt, keys)
    issued = claims.get("iat")
    if not isinstance(issued, int) or isinstance(issued, bool) or issued < 0:
        raise MalformedReceiptError("iat", "the receipt does not say when it was issued")
    if issued > (time.time() if now is None else now) + SKEW_SECONDS:
        raise NotYetValidError("iat", "the receipt comes from the future: compare this clock with RiskGate's")
    given = {"sub": subject, "tenant": tenant, "thread": thread_id, "run": run_id, "tool_call_id": tool_call_id}
    expected = {
        "iss": keys.issuer,
        "aud": AUDIENCE,
        "execution_id": execution_id,
        "tool": call.tool,
        "tool_version": call.tool_version,
        "args_hash": "sha256:" + hashlib.sha256(call.arguments_json.encode()).hexdigest(),
        **{name: value for name, value in given.items() if value},
    }
    for name, value in expected.items():
        if claims.get(name) != value:
            raise MismatchError(name, f"the receipt is for another {name}; it does not cover this call")
    return _receipt(claims, kid, issued)


def keys_of_jwk_set(text: str, *, issuer: str) -> Keys:
    """Return the keys of a JWK Set as printed by `riskgate keys export`, for an executor without access to RiskGate.

    ``issuer`` is the trusted RISKGATE_ISSUER. A revoked key verifies nothing. Raise ValueError.
    """
    try:
        found = json.loads(text)["keys"]
        keys = tuple(
            Key(one["kid"], json.dumps(one), "REVOKED" if "revoked" in one else "ACTIVE")
            for one in found
            if one["kty"] == "OKP"
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("not a JWK Set with a kid for each key") from error
    return Keys(keys, issuer)


def _opened(receipt: str, keys: Keys) -> tuple[str, Mapping[str, Any]]:
    """Return the signing key's id and the claims after checking header and signature."""
    parts = receipt.split(".") if len(receipt) <= _MAX_CHARACTERS else []
    if len(parts) != _PARTS:
        raise MalformedReceiptError("format", "not a receipt: it must have three segments")
    header, payload, signature = parts
    believed = [one for one in keys.keys if one.state in _TRUSTED_STATES]
    key = next((one for one in believed if _header(one.kid) == header), None)
    if key is None:
        if _json(header).get("kid") in [one.kid for one in believed]:
            raise MalformedReceiptError("header", "the header is not the one a receipt of this key has")
        raise UnknownKeyError("kid", "no key in use signed this receipt; ask for the keys again")
    try:
        _public_key(key).verify(_decode(signature), f"{header}.{payload}".encode("ascii"))
    except (InvalidSignature, UnicodeEncodeError):
        raise SignatureError("signature", "the receipt's signature is wrong") from None
    return key.kid, _json(payload)


def _header(kid: str) -> str:
    """Return the only valid header segment for this key; no value in a received header is trusted."""
    return _encode(json.dumps({"alg": "Ed25519", "kid": kid, "typ": TYPE}, separators=(",", ":")).encode())


def _public_key(key: Key) -> Ed25519PublicKey:
    try:
        jwk = json.loads(key.jwk)
        if (jwk["kty"], jwk["crv"]) == ("OKP", "Ed25519"):
            raw = _decode(jwk["x"])
            # one signature fits every message under such a key, and OpenSSL accepts it
            if raw[:31] + bytes(last & 0x7F for last in raw[31:]) not in SMALL_ORDER:
                return Ed25519PublicKey.from_public_bytes(raw)
    except (ValueError, KeyError, TypeError, AttributeError, MalformedReceiptError):
        pass
    raise UnknownKeyError("kid", "the key is not a valid Ed25519 public key")


def _receipt(claims: Mapping[str, Any], kid: str, issued: int) -> Receipt:
    def text(name: str) -> str:
        value = claims.get(name, "")
        if not isinstance(value, str):
            raise MalformedReceiptError(name, f"the receipt's {name} is not a string")
        return value

    return Receipt(
        execution_id=text("execution_id"),
        tool=text("tool"),
        args_hash=text("args_hash"),
        subject=text("sub"),
        tenant=text("tenant"),
        thread_id=text("thread"),
        run_id=text("run"),
        tool_call_id=text("tool_call_id"),
        decision_id=text("decision_id"),
        approval_id=text("approval_id"),
        issue_time=datetime.fromtimestamp(issued, UTC),
        kid=kid,
    )


def _json(segment: str) -> Mapping[str, Any]:
    try:
        value = json.loads(_decode(segment))
    except (ValueError, RecursionError):
        raise MalformedReceiptError("format", "a segment is not a JSON object") from None
    if not isinstance(value, dict):
        raise MalformedReceiptError("format", "a segment is not a JSON object")
    return value


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(segment: str) -> bytes:
    """Decode base64url without padding, in its canonical encoding only."""
    try:
        data = base64.b64decode(segment + "=" * (-len(segment) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise MalformedReceiptError("format", "a segment is not base64url") from None
    if _encode(data) != segment:
        raise MalformedReceiptError("format", "a segment is not base64url in its one spelling")
    return data
