"""Signatures as an attacker would make them, in the spirit of Wycheproof, and tokens in others' place at Redeem."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_riskgate import permits
from phylactery_riskgate.permits import TokenError, TokenType, sign, thumbprint, verify, verify_signature

FIELD = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, FIELD) % FIELD
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
RAW = KEY.public_key().public_bytes_raw()
KID = thumbprint(RAW)


def added(one: tuple[int, int], two: tuple[int, int]) -> tuple[int, int]:
    """Adds two points of edwards25519 (RFC 8032, 5.1.4), in plain fractions."""
    (x1, y1), (x2, y2) = one, two
    product = D * x1 * x2 * y1 * y2 % FIELD
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, FIELD)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, FIELD)
    return x % FIELD, y % FIELD


def point(y: int) -> tuple[int, int]:
    """Answers a point with this y."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, FIELD) % FIELD
    x = pow(square, (FIELD + 3) // 8, FIELD)
    if x * x % FIELD != square:
        x = x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD
    assert x * x % FIELD == square
    return x, y


def test_the_points_that_are_refused_are_those_whose_order_divides_eight():
    found = set()
    for spelling in permits._SMALL_ORDER:
        start = point(int.from_bytes(spelling, "little") % FIELD)
        reached, points = start, {start}
        for _ in range(7):
            reached = added(reached, start)
            points.add(reached)
        assert reached == (0, 1), "eight times the point is the neutral one"
        found |= points
    assert len(found) == 8
    assert len(permits._SMALL_ORDER) == 7


@pytest.mark.parametrize("spelling", sorted(permits._SMALL_ORDER), ids=bytes.hex)
@pytest.mark.parametrize("sign_of_x", [0, 0x80])
def test_no_signature_fits_under_a_key_of_small_order(spelling, sign_of_x):
    public = spelling[:-1] + bytes([spelling[-1] | sign_of_x])
    neutral = b"\x01" + bytes(63)
    assert not any(verify_signature(public, b"message %d" % number, neutral) for number in range(40))


def test_a_signature_has_one_spelling():
    message = b"m"
    good = KEY.sign(message)
    scalar = int.from_bytes(good[32:], "little")
    assert verify_signature(RAW, message, good)
    for other in (scalar + ORDER, scalar + 2 * ORDER, ORDER - scalar, 0):
        assert not verify_signature(RAW, message, good[:32] + (other % 2**256).to_bytes(32, "little"))
    for spelling in permits._SMALL_ORDER:
        assert not verify_signature(RAW, message, spelling + good[32:])
    for cut in (good[:-1], good + b"\x00", b"", good[:32], good[32:]):
        assert not verify_signature(RAW, message, cut)


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
def test_a_key_of_another_length_verifies_nothing(length):
    assert not verify_signature(bytes(length), b"m", KEY.sign(b"m"))


def test_a_token_with_a_shifted_signature_is_refused():
    head, body, signature = sign({"iat": 1}, TokenType.RECEIPT, KID, KEY).split(".")
    raw = permits.decode(signature)
    shifted = raw[:32] + (int.from_bytes(raw[32:], "little") + ORDER).to_bytes(32, "little")
    with pytest.raises(TokenError):
        verify(f"{head}.{body}.{permits.encode(shifted)}", TokenType.RECEIPT, {KID: RAW})


async def test_at_redeem_a_receipt_a_truncated_or_a_padded_permit_is_no_permit_and_the_real_one_still_works(
    gate, ana, refused
):
    allowed = await ana.permitted()
    permit = allowed.permit
    claims = dict(verify(permit, TokenType.PERMIT, gate.keys.verifying).values)
    as_receipt = sign(claims, TokenType.RECEIPT, gate.keys.kid, gate.keys.signer)
    head, body, signature = permit.split(".")
    twice = json.dumps(claims)[:-1] + ', "sub": "eve"}'
    doubled = f"{head}.{permits.encode(twice.encode())}"
    attacks = [
        as_receipt,
        permit[:-1],
        permit + "=",
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{head}..{signature}",
        f".{body}.{signature}",
        f"{permit}.{signature}",
        f"{doubled}.{permits.encode(gate.keys.signer.sign(doubled.encode()))}",
    ]
    for attack in attacks:
        refusal = await refused(ana.redeem(attack))
        assert refusal.reason == "PERMIT_INVALID", attack
    redeemed = await ana.redeem(permit)
    assert (await refused(ana.redeem(redeemed.receipt))).reason == "PERMIT_INVALID"
    assert (await refused(ana.redeem(permit, execution="execution-2"))).reason == "ALREADY_REDEEMED"
