"""Receipts: RiskGate's signed statement that one execution may run exactly one bound call (docs/effects.md, 9).

A receipt is verified offline: its signature, its header byte for byte, and every claim against the requested execution.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import rfc8785
from phylactery_chassis.auth.jws import TokenError, TokenType, claimed_kid, decode, is_safe_key, verify
from phylactery_chassis.util.crypto import sha256

from phylactery_agent.ports import BoundCall

AUDIENCE: Final = "executor"


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
    try:
        kid = claimed_kid(receipt)
        key = await _key(kid, keys)
        claims = verify(receipt, TokenType.RECEIPT, {kid: key}).values
    except TokenError as error:
        raise ReceiptRefusedError(error.factor) from None
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


def canonical_arguments(bound: BoundCall) -> dict[str, Any]:
    """Return the arguments if the text is canonical and matches the signed hash.

    Raises:
        ReceiptRefusedError: The text is not canonical or does not match.
    """
    raw = bound.arguments_json.encode()
    if sha256(raw) != bound.args_hash:
        raise ReceiptRefusedError("args_hash")
    try:
        arguments = json.loads(raw)
        canonical = rfc8785.dumps(arguments)
    except (ValueError, RecursionError, rfc8785.CanonicalizationError):
        raise ReceiptRefusedError("arguments") from None
    if not isinstance(arguments, dict) or canonical != raw:
        raise ReceiptRefusedError("arguments")
    return arguments


async def _key(kid: str, keys: ReceiptKeys) -> bytes:
    jwk = (await keys.public_keys()).get(kid) or (await keys.public_keys(fresh=True)).get(kid)
    if jwk is None or jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519":
        raise ReceiptRefusedError("kid")
    key = decode(jwk.get("x", ""))
    if not is_safe_key(key):
        raise ReceiptRefusedError("kid")
    return key
