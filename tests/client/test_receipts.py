"""A receipt verifies offline in a few lines; forged, altered, foreign or malformed ones do not."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc import jws
from joserfc.jwk import OKPKey
from phylactery_client import ReceiptError, keys_of_jwk_set, verify_receipt
from phylactery_client.receipts import (
    SMALL_ORDER,
    MalformedReceiptError,
    MismatchError,
    NotYetValidError,
    SignatureError,
    UnknownKeyError,
)
from phylactery_client.results import BoundCall, Key, Keys

from tests.support.cases import each_case

ROOT = Path(__file__).resolve().parents[2]
ORDER = 2**252 + 27742317777372353535851937790883648493


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def compact(value: object) -> str:
    return encode(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


PRIVATE = Ed25519PrivateKey.from_private_bytes(b"\x05" * 32)
JWK = {"crv": "Ed25519", "kty": "OKP", "x": encode(PRIVATE.public_key().public_bytes_raw())}
KID = encode(hashlib.sha256(json.dumps(JWK, separators=(",", ":")).encode()).digest())
KEYS = Keys((Key(KID, json.dumps(JWK), "ACTIVE"),), "riskgate")
CALL = BoundCall("pay", "v1", '{"to":"ana"}', "sha256:" + hashlib.sha256(b'{"to":"ana"}').hexdigest())
HEADER = {"alg": "Ed25519", "kid": KID, "typ": "phylactery-receipt+jwt"}
CLAIMS = {
    "iss": "riskgate",
    "aud": "executor",
    "jti": "rc_1",
    "iat": 1_000,
    "sub": "ana",
    "tenant": "acme",
    "thread": "t1",
    "run": "r1",
    "tool_call_id": "c1",
    "tool": "pay",
    "tool_version": "v1",
    "args_hash": CALL.args_hash,
    "execution_id": "execution-1",
    "decision_id": "de_1",
    "approval_id": "",
}
PLACE = {"subject": "ana", "tenant": "acme", "thread_id": "t1", "run_id": "r1", "tool_call_id": "c1"}


def signed(header: str, payload: str, key: Ed25519PrivateKey = PRIVATE) -> str:
    return f"{header}.{payload}.{encode(key.sign(f'{header}.{payload}'.encode()))}"


def receipt(header: dict | None = None, **claims: object) -> str:
    return signed(compact(header or HEADER), compact(CLAIMS | claims))


def check(token: str, *, keys: Keys = KEYS, call: BoundCall = CALL, execution_id: str = "execution-1", **place: str):
    return verify_receipt(token, keys, call=call, execution_id=execution_id, now=1_000, **(PLACE | place))


def refused(token: str, kind: type[ReceiptError], **how: object) -> str:
    with pytest.raises(ReceiptError) as caught:
        check(token, **how)
    assert type(caught.value) is kind
    return caught.value.factor


def test_a_genuine_receipt_says_what_may_run_and_for_whom():
    found = check(receipt())
    assert (found.execution_id, found.tool, found.args_hash) == ("execution-1", "pay", CALL.args_hash)
    assert (found.subject, found.tenant, found.decision_id, found.kid) == ("ana", "acme", "de_1", KID)
    assert found.issue_time.timestamp() == 1_000
    assert verify_receipt(receipt(), KEYS, call=CALL, execution_id="execution-1") == found


@pytest.mark.parametrize("claim", ["iss", "aud", "execution_id", "tool", "tool_version", "args_hash"])
def test_a_claim_that_is_other_missing_or_of_another_type_is_named(claim):
    assert refused(receipt(**{claim: "other"}), MismatchError) == claim
    assert refused(receipt(**{claim: None}), MismatchError) == claim
    assert refused(receipt(**{claim: [CLAIMS[claim]]}), MismatchError) == claim


@pytest.mark.parametrize(
    ("given", "claim"),
    [
        ("subject", "sub"),
        ("tenant", "tenant"),
        ("thread_id", "thread"),
        ("run_id", "run"),
        ("tool_call_id", "tool_call_id"),
    ],
)
def test_a_receipt_of_another_place_or_person_is_refused_where_the_executor_says_who_and_where(given, claim):
    assert refused(receipt(), MismatchError, **{given: "other"}) == claim
    assert check(receipt(**{claim: "other"}), **{given: ""})


def test_the_arguments_are_hashed_as_they_would_run_not_as_somebody_says_they_hash():
    lying = replace(CALL, arguments_json='{"to":"eve"}')
    assert refused(receipt(), MismatchError, call=lying) == "args_hash"
    assert refused(receipt(), MismatchError, execution_id="execution-2") == "execution_id"


@pytest.mark.parametrize(
    "change",
    [
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "EdDSA"},
        {"typ": "phylactery-permit+jwt"},
        {"typ": "JWT"},
        {"jwk": JWK},
        {"b64": False, "crit": ["b64"]},
        {"crit": ["exp"]},
        {"x5u": "https://keys.example"},
    ],
    ids=str,
)
def test_any_other_header_is_refused_though_its_signature_is_good(change):
    assert refused(receipt(HEADER | change), MalformedReceiptError) == "header"


@each_case("sign_of_x", [0, 0x80])
@each_case("spelling", sorted(SMALL_ORDER))
def test_no_receipt_is_believed_under_a_key_of_small_order(spelling, sign_of_x):
    public = spelling[:-1] + bytes([spelling[-1] | sign_of_x])
    keys = Keys((Key(KID, json.dumps(JWK | {"x": encode(public)}), "ACTIVE"),), "riskgate")
    for number in range(40):  # one in eight fits the point, where OpenSSL takes it at all
        forged = f"{compact(HEADER)}.{compact(CLAIMS | {'jti': f'rc_{number}'})}.{encode(bytes([1]) + bytes(63))}"
        assert refused(forged, UnknownKeyError, keys=keys) == "kid"


def test_the_same_header_in_another_spelling_is_refused():
    text = json.dumps(HEADER, separators=(",", ":"))
    spellings = [
        json.dumps(HEADER),
        json.dumps(dict(reversed(HEADER.items())), separators=(",", ":")),
        '{"alg":"none",' + text[1:],
        text[:-1] + f',"kid":"{KID}"}}',
        text.replace("kid", "\\u006bid"),
    ]
    for spelling in spellings:
        assert refused(signed(encode(spelling.encode()), compact(CLAIMS)), MalformedReceiptError) == "header"


def test_a_key_that_is_unknown_revoked_or_no_key_verifies_nothing():
    stranger = Ed25519PrivateKey.from_private_bytes(b"\x06" * 32)
    assert refused(receipt(HEADER | {"kid": "other"}), UnknownKeyError) == "kid"
    assert refused(signed(compact(HEADER), compact(CLAIMS), stranger), SignatureError) == "signature"
    assert (
        refused(receipt(), UnknownKeyError, keys=Keys((replace(KEYS.keys[0], state="REVOKED"),), "riskgate")) == "kid"
    )
    assert refused(receipt(), UnknownKeyError, keys=Keys((), "riskgate")) == "kid"
    for jwk in ({**JWK, "kty": "EC"}, {**JWK, "crv": "X25519"}, {**JWK, "x": "AA"}, {**JWK, "x": 1}, [], {}):
        bad = Keys((Key(KID, json.dumps(jwk), "ACTIVE"),), "riskgate")
        assert refused(receipt(), UnknownKeyError, keys=bad) == "kid"
    assert check(receipt(), keys=Keys((replace(KEYS.keys[0], state="RETIRING"),), "riskgate"))


@pytest.mark.parametrize("state", ["", "UNSPECIFIED", "SUSPENDED", "active"])
def test_a_key_in_a_state_this_client_does_not_know_verifies_nothing(state):
    keys = Keys((replace(KEYS.keys[0], state=state),), "riskgate")
    assert refused(receipt(), UnknownKeyError, keys=keys) == "kid"


@pytest.mark.parametrize("kid", [[KID], {}, None, 1])
def test_a_kid_that_is_no_text_is_a_key_nobody_knows(kid):
    assert refused(receipt(HEADER | {"kid": kid}), UnknownKeyError) == "kid"


def test_a_signature_that_is_cut_padded_shifted_by_the_group_order_or_of_nothing_is_refused():
    header, payload, signature = receipt().split(".")
    raw = base64.urlsafe_b64decode(signature + "==")
    scalar = int.from_bytes(raw[32:], "little")
    malleable = raw[:32] + (scalar + ORDER).to_bytes(32, "little")
    forged = [malleable, bytes(64), b"\x01" + bytes(63), raw[:63], raw + b"\x00", raw[32:] + raw[:32], b""]
    for one in forged:
        assert refused(f"{header}.{payload}.{encode(one)}", SignatureError) == "signature"
    for spelling in (signature + "==", signature + "=", signature[:-1], signature[:-1] + "_", " " + signature):
        with pytest.raises(ReceiptError):
            check(f"{header}.{payload}.{spelling}")


@each_case("token", ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "é.é.é", "." * 9_000, "A" * 9_000])
def test_text_that_is_no_receipt_is_refused_with_a_type(token):
    with pytest.raises(MalformedReceiptError):
        check(token)


@pytest.mark.parametrize("payload", [b"[]", b"x", b"[" * 3_000, b"\xff", b"null"])
def test_signed_claims_that_are_no_object_are_refused(payload):
    assert refused(signed(compact(HEADER), encode(payload)), MalformedReceiptError) == "format"


@pytest.mark.parametrize("issued", [1_031, 10**30])
def test_a_receipt_from_the_future_is_refused_and_half_a_minute_is_believed(issued):
    assert refused(receipt(iat=issued), NotYetValidError) == "iat"
    assert check(receipt(iat=1_030))


@pytest.mark.parametrize("issued", [None, "1", 1.5, True, -1, -(10**30)])
def test_a_receipt_without_a_time_is_refused(issued):
    assert refused(receipt(iat=issued), MalformedReceiptError) == "iat"


def test_every_character_of_a_receipt_counts():
    token = receipt()
    for position in range(0, len(token), 3):
        for character in "Aa0_.= ":
            if token[position] != character:
                with pytest.raises(ReceiptError):
                    check(token[:position] + character + token[position + 1 :])


def test_a_jwk_set_serves_an_executor_without_a_way_to_riskgate():
    text = json.dumps({"keys": [{**JWK, "kid": KID, "alg": "Ed25519", "use": "sig"}]})
    assert check(receipt(), keys=keys_of_jwk_set(text, issuer="riskgate"))
    assert refused(receipt(), MismatchError, keys=keys_of_jwk_set(text, issuer="other")) == "iss"
    revoked = json.dumps({"keys": [{**JWK, "kid": KID, "revoked": {"revoked_at": 1}}]})
    assert refused(receipt(), UnknownKeyError, keys=keys_of_jwk_set(revoked, issuer="riskgate")) == "kid"
    for bad in ("", "[]", "{}", '{"keys":[{}]}', '{"keys":1}'):
        with pytest.raises(ValueError, match=r".+"):
            keys_of_jwk_set(bad, issuer="riskgate")


def test_an_independent_library_reads_the_same():
    opened = jws.deserialize_compact(receipt(), OKPKey.import_key(JWK), algorithms=["Ed25519"])
    assert json.loads(opened.payload) == CLAIMS


def test_the_documented_program_of_the_standard_library_and_cryptography_agrees(tmp_path):
    page = (ROOT / "docs" / "receipts.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(# check_receipt\.py.+?)```", page, re.DOTALL)
    (tmp_path / "check_receipt.py").write_text(program)
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [{**JWK, "kid": KID}]}))

    def says(token: str, arguments: str = CALL.arguments_json) -> tuple[int, str]:
        words = [sys.executable, "check_receipt.py", "keys.json", "riskgate", "execution-1", arguments]
        done = subprocess.run(words, input=token, capture_output=True, text=True, cwd=tmp_path, check=False)
        return done.returncode, done.stdout + done.stderr

    assert says(receipt()) == (0, "pay may run\n")
    for token, arguments in (
        (receipt(HEADER | {"typ": "phylactery-permit+jwt"}), CALL.arguments_json),
        (receipt(HEADER | {"kid": "other"}), CALL.arguments_json),
        (receipt(aud="riskgate"), CALL.arguments_json),
        (receipt(execution_id="execution-2"), CALL.arguments_json),
        (receipt()[:-2], CALL.arguments_json),
        (receipt(), '{"to":"eve"}'),
    ):
        code, said = says(token, arguments)
        assert (code, "may run" in said) == (1, False), said
