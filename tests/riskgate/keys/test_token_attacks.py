"""Signatures shifted by the group order, and tokens substituted for others at Redeem."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.auth import jws
from phylactery_chassis.auth.jws import TokenError, TokenType, sign, thumbprint, verify

ORDER = 2**252 + 27742317777372353535851937790883648493
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
RAW = KEY.public_key().public_bytes_raw()
KID = thumbprint(RAW)


def test_a_token_with_a_shifted_signature_is_refused():
    head, body, signature = sign({"iat": 1}, TokenType.RECEIPT, KID, KEY).split(".")
    raw = jws.decode(signature)
    shifted = raw[:32] + (int.from_bytes(raw[32:], "little") + ORDER).to_bytes(32, "little")
    with pytest.raises(TokenError):
        verify(f"{head}.{body}.{jws.encode(shifted)}", TokenType.RECEIPT, {KID: RAW})


async def test_at_redeem_a_receipt_a_truncated_or_a_padded_permit_is_no_permit_and_the_real_one_still_works(
    gate, ana, refused
):
    allowed = await ana.permitted()
    permit = allowed.permit
    claims = dict(verify(permit, TokenType.PERMIT, gate.keys.verifying).values)
    as_receipt = sign(claims, TokenType.RECEIPT, gate.keys.kid, gate.keys.signer)
    head, body, signature = permit.split(".")
    twice = json.dumps(claims)[:-1] + ', "sub": "eve"}'
    doubled = f"{head}.{jws.encode(twice.encode())}"
    attacks = [
        as_receipt,
        permit[:-1],
        permit + "=",
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{head}..{signature}",
        f".{body}.{signature}",
        f"{permit}.{signature}",
        f"{doubled}.{jws.encode(gate.keys.signer.sign(doubled.encode()))}",
    ]
    for attack in attacks:
        refusal = await refused(ana.redeem(attack))
        factor = "claims" if attack is attacks[-1] else "signature"
        assert (refusal.reason, refusal.metadata["factor"]) == ("PERMIT_INVALID", factor), attack
    redeemed = await ana.redeem(permit)
    assert (await refused(ana.redeem(redeemed.receipt))).reason == "PERMIT_INVALID"
    assert (await refused(ana.redeem(permit, execution="execution-2"))).reason == "ALREADY_REDEEMED"
