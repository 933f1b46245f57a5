"""Permits, receipts, checkpoints and codes: what is signed, and every attempt to substitute something else."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws as jose
from joserfc.jwk import OKPKey
from phylactery_chassis.auth import jws
from phylactery_chassis.auth.jws import TokenError, TokenType, header, sign, thumbprint, verify
from phylactery_chassis.util.crypto import hmac_sha256
from phylactery_riskgate.approvals.model import approval_code, same_code
from phylactery_riskgate.audit.checkpoint import Checkpoint, NoteError, Verifier, open_note, sign_note

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
RAW = KEY.public_key().public_bytes_raw()
KID = thumbprint(RAW)
KEYS = {KID: RAW}
CLAIMS = {"iss": "riskgate", "iat": 100, "nbf": 100, "exp": 160}
PERMIT = sign(CLAIMS, TokenType.PERMIT, KID, KEY)


def with_header(fields: dict[str, object] | str, *, padded: bool = False) -> str:
    text = fields if isinstance(fields, str) else json.dumps(fields, separators=(",", ":"))
    segment = base64.urlsafe_b64encode(text.encode()).decode()
    body = f"{segment if padded else segment.rstrip('=')}.{PERMIT.split('.')[1]}"
    return f"{body}.{jws.encode(KEY.sign(body.encode()))}"


GOOD = {"alg": "Ed25519", "kid": KID, "typ": "phylactery-permit+jwt"}


def test_an_independent_library_agrees_with_the_token_the_kid_and_the_signature():
    key = OKPKey.import_key(jws.public_jwk(RAW))
    assert key.thumbprint() == KID
    opened = jose.deserialize_compact(PERMIT, key, algorithms=["Ed25519"])
    assert json.loads(opened.payload) == CLAIMS
    assert opened.headers() == GOOD


def test_a_header_is_one_fixed_string_and_every_other_is_refused_though_its_signature_is_good():
    assert with_header(GOOD) == PERMIT
    bad = [
        GOOD | {"alg": "none"},
        GOOD | {"alg": "EdDSA"},
        GOOD | {"alg": "HS256"},
        GOOD | {"kid": "other"},
        GOOD | {"typ": "JWT"},
        GOOD | {"typ": "phylactery-receipt+jwt"},
        GOOD | {"jwk": jws.public_jwk(RAW)},
        GOOD | {"b64": False, "crit": ["b64"]},
        {"typ": GOOD["typ"], "kid": KID, "alg": "Ed25519"},
        json.dumps(GOOD),
        '{"alg":"none",' + json.dumps(GOOD, separators=(",", ":"))[1:],
        "",
    ]
    for fields in bad:
        with pytest.raises(TokenError) as caught:
            verify(with_header(fields), TokenType.PERMIT, KEYS)
        assert caught.value.factor == "header"
    with pytest.raises(TokenError):
        verify(with_header(GOOD | {"x": "yz"}, padded=True), TokenType.PERMIT, KEYS)


def test_a_permit_is_no_receipt_and_a_revoked_key_verifies_nothing():
    with pytest.raises(TokenError):
        verify(PERMIT, TokenType.RECEIPT, KEYS)
    with pytest.raises(TokenError):
        verify(PERMIT, TokenType.PERMIT, {})
    assert verify(PERMIT, TokenType.PERMIT, KEYS).number("exp") == 160


@given(st.integers(0, len(PERMIT) - 1), st.sampled_from("ABab01-_.=+/ é"))
def test_a_token_with_any_character_changed_is_refused(position, character):
    changed = PERMIT[:position] + character + PERMIT[position + 1 :]
    if changed != PERMIT:
        with pytest.raises(TokenError):
            verify(changed, TokenType.PERMIT, KEYS)


@given(st.text(max_size=200))
def test_text_that_is_no_token_is_refused(text):
    with pytest.raises(TokenError):
        verify(text, TokenType.PERMIT, KEYS)


@pytest.mark.parametrize(
    ("now", "good"), [(69, False), (70, True), (100, True), (159.999, True), (160, False), (1_000, False)]
)
def test_a_permit_holds_from_thirty_seconds_before_its_start_to_its_end(now, good):
    claims = verify(PERMIT, TokenType.PERMIT, KEYS)
    if good:
        jws.check_times(claims, round(now * 1_000_000))
        return
    with pytest.raises(TokenError) as caught:
        jws.check_times(claims, round(now * 1_000_000))
    assert caught.value.factor == "expiry"


@pytest.mark.parametrize("payload", [b"[]", b"x", b'{"iat":1,"iat":2}', b"[" * 5_000])
def test_signed_claims_that_are_no_object_are_refused(payload):
    body = f"{header(KID, TokenType.PERMIT)}.{jws.encode(payload)}"
    with pytest.raises(TokenError):
        verify(f"{body}.{jws.encode(KEY.sign(body.encode()))}", TokenType.PERMIT, KEYS)


def test_claims_of_another_type_than_expected_are_refused():
    claims = verify(sign({"a": 1, "b": "x", "c": True}, TokenType.PERMIT, KID, KEY), TokenType.PERMIT, KEYS)
    assert (claims.text("b"), claims.number("a")) == ("x", 1)
    for read in (lambda: claims.text("a"), lambda: claims.number("c"), lambda: claims.text("none")):
        with pytest.raises(TokenError):
            read()


def test_every_wycheproof_mac_gets_its_verdict(data_folder):
    suite = json.loads((data_folder / "conformance" / "hmac" / "hmac_sha256_test.json").read_text())
    count = 0
    for group in suite["testGroups"]:
        for case in group["tests"]:
            mac = hmac_sha256(bytes.fromhex(case["key"]), bytes.fromhex(case["msg"]))[: group["tagSize"] // 8]
            assert (mac.hex() == case["tag"]) is (case["result"] == "valid"), case["tcId"]
            count += 1
    assert count == suite["numberOfTests"] == 174


def test_a_code_fits_the_grammar_of_a_reply_and_depends_on_everything_it_is_bound_to():
    bound = {
        "approval_id": "ap_1",
        "args_hash": "sha256:0",
        "tenant": "acme",
        "thread_id": "t1",
        "requester": "ana",
        "expire_us": 1,
    }
    codes = {approval_code(b"k" * 32, **bound), approval_code(b"l" * 32, **bound)}
    for name, value in bound.items():
        codes.add(approval_code(b"k" * 32, **{**bound, name: 2 if name == "expire_us" else f"{value}x"}))
    assert len(codes) == 8
    assert all(len(code) == 10 and set(code) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for code in codes)
    assert all(same_code("ABC", typed) for typed in ("ABC", "abc", " A-b c "))
    assert not any(same_code("ABC", typed) for typed in ("abd", "ABCD", "", "ÁBC", "\ud800"))


def test_a_checkpoint_is_a_signed_note_with_the_key_id_of_the_specification():
    # the vkey and the note of the example in golang.org/x/mod/sumdb/note's documentation
    vkey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    note = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
        "\n"
        "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
    )
    verifier = Verifier.parse(vkey)
    assert verifier.text == vkey
    assert open_note(note, [verifier]).startswith("If you think")
    with pytest.raises(NoteError):
        open_note(note.replace("answer", "Answer"), [verifier])


def test_a_signed_checkpoint_opens_to_what_was_signed_and_nothing_else():
    checkpoint = Checkpoint("riskgate", 12, b"r" * 32)
    note = sign_note(checkpoint.text, "riskgate", KEY)
    verifier = Verifier("riskgate", RAW)
    assert Checkpoint.parse(open_note(note, [verifier])) == checkpoint
    other = Verifier("riskgate", Ed25519PrivateKey.generate().public_key().public_bytes_raw())
    two = note + sign_note(checkpoint.text, "witness", Ed25519PrivateKey.generate()).rpartition("\n\n")[2]
    assert open_note(two, [verifier]) == checkpoint.text
    for bad in (note.replace("\n12\n", "\n13\n"), note[:-1], note.replace("\n\n", "\n"), note + "x", "", "\n\n"):
        with pytest.raises(NoteError):
            open_note(bad, [verifier])
    with pytest.raises(NoteError):
        open_note(note, [other])


@pytest.mark.parametrize("text", ["", "a\n1\n", "a\n01\nAAAA\n", "a\n-1\nAAAA\n", "a\n1\nAAAA\n", "a\n١\nAAAA\n"])
def test_what_is_no_checkpoint_is_refused(text):
    with pytest.raises(NoteError):
        Checkpoint.parse(text)


@pytest.mark.parametrize(
    "text", ["", "a", "a+b", "a+00000000+AAAA", "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"]
)
def test_what_is_no_vkey_is_refused(text):
    with pytest.raises(NoteError):
        Verifier.parse(text)
