"""Forged signatures: the services' verifier and the client's refuse the same ones."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.auth.jws import SMALL_ORDER, is_safe_key, verify_signature
from phylactery_client import receipts
from phylactery_client.results import Key

FIELD = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, FIELD) % FIELD
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
RAW = KEY.public_key().public_bytes_raw()

Verify = Callable[[bytes, bytes, bytes], bool]


def by_the_client(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Verify as an executor does that has the client's package alone."""
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": receipts._encode(public_key)}
    try:
        receipts._public_key(Key("kid", json.dumps(jwk), "ACTIVE")).verify(signature, message)
    except (InvalidSignature, receipts.UnknownKeyError):
        return False
    return True


@pytest.fixture(params=[verify_signature, by_the_client], ids=["services", "client"])
def verifies(request: pytest.FixtureRequest) -> Verify:
    return request.param


def added(one: tuple[int, int], two: tuple[int, int]) -> tuple[int, int]:
    """Add two points of edwards25519 (RFC 8032, 5.1.4), in plain fractions."""
    (x1, y1), (x2, y2) = one, two
    product = D * x1 * x2 * y1 * y2 % FIELD
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, FIELD)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, FIELD)
    return x % FIELD, y % FIELD


def point(y: int) -> tuple[int, int]:
    """Return a point with this y."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, FIELD) % FIELD
    x = pow(square, (FIELD + 3) // 8, FIELD)
    if x * x % FIELD != square:
        x = x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD
    assert x * x % FIELD == square
    return x, y


def test_the_points_that_are_refused_are_those_whose_order_divides_eight():
    found = set()
    for spelling in SMALL_ORDER:
        start = point(int.from_bytes(spelling, "little") % FIELD)
        reached, points = start, {start}
        for _ in range(7):
            reached = added(reached, start)
            points.add(reached)
        assert reached == (0, 1), "eight times the point is the neutral one"
        found |= points
    assert len(found) == 8
    assert len(SMALL_ORDER) == 7


@pytest.mark.parametrize("spelling", sorted(SMALL_ORDER), ids=bytes.hex)
@pytest.mark.parametrize("sign_of_x", [0, 0x80])
def test_no_signature_fits_under_a_key_of_small_order(verifies, spelling, sign_of_x):
    public = spelling[:-1] + bytes([spelling[-1] | sign_of_x])
    neutral = b"\x01" + bytes(63)
    assert not is_safe_key(public)
    assert not any(verifies(public, b"message %d" % number, neutral) for number in range(40))


def test_a_signature_has_one_spelling(verifies):
    message = b"m"
    good = KEY.sign(message)
    scalar = int.from_bytes(good[32:], "little")
    assert verifies(RAW, message, good)
    for other in (scalar + ORDER, scalar + 2 * ORDER, ORDER - scalar, 0):
        assert not verifies(RAW, message, good[:32] + (other % 2**256).to_bytes(32, "little"))
    for spelling in SMALL_ORDER:
        assert not verifies(RAW, message, spelling + good[32:])
    for cut in (good[:-1], good + b"\x00", b"", good[:32], good[32:]):
        assert not verifies(RAW, message, cut)


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
def test_a_key_of_another_length_verifies_nothing(verifies, length):
    assert not verifies(bytes(length), b"m", KEY.sign(b"m"))


def test_every_wycheproof_signature_gets_its_verdict(verifies, data_folder):
    suite = json.loads((data_folder / "conformance" / "ed25519" / "ed25519_test.json").read_text())
    count = 0
    for group in suite["testGroups"]:
        raw = bytes.fromhex(group["publicKey"]["pk"])
        for case in group["tests"]:
            verdict = verifies(raw, bytes.fromhex(case["msg"]), bytes.fromhex(case["sig"]))
            assert verdict is (case["result"] == "valid"), case["tcId"]
            count += 1
    assert count == suite["numberOfTests"] == 151


def test_the_services_and_the_client_refuse_the_same_keys():
    assert receipts.SMALL_ORDER == SMALL_ORDER
