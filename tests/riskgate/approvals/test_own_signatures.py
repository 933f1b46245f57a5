"""A permit signed by this process is not verified twice, with the same results as any verifier."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_chassis.auth.jws import TokenError, TokenType, verify
from phylactery_riskgate.keys import live as live_keys
from phylactery_riskgate.keys import rotation
from phylactery_riskgate.keys.live import LiveKeys
from phylactery_riskgate.keys.ring import KeyRing

NOW = 1_790_000_000_000_000
CHANGES = ("flip", "cut", "repeat", "swap", "none")
CLAIMS = {"iss": "riskgate", "iat": 7, "sub": "ana"}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> LiveKeys:
    return LiveKeys.open(tmp_path_factory.mktemp("keys"))


def told(ring: KeyRing, token: str, kind: TokenType) -> object:
    """Return what a verifier that knows the public keys alone says."""
    try:
        return verify(token, kind, ring.verifying).values
    except TokenError as error:
        return error.factor, error.message


def said(live: LiveKeys, token: str, kind: TokenType) -> object:
    try:
        return live.verify(token, kind).values
    except TokenError as error:
        return error.factor, error.message


@given(st.integers(0, 400), st.integers(0, 9), st.sampled_from(CHANGES), st.booleans())
def test_whatever_is_done_to_a_token_who_signed_it_says_what_any_verifier_says(
    live: LiveKeys, at: int, claim: int, change: str, receipt: bool
) -> None:
    token = live.sign({**CLAIMS, "iat": claim}, TokenType.PERMIT)
    other = live.sign({**CLAIMS, "iat": claim + 1}, TokenType.PERMIT)
    at %= len(token)
    changed = {
        "flip": token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :],
        "cut": token[:at],
        "repeat": token + token[at:],
        "swap": token.rpartition(".")[0] + "." + other.rpartition(".")[2],
        "none": token,
    }[change]
    kind = TokenType.RECEIPT if receipt else TokenType.PERMIT
    assert said(live, changed, kind) == told(live.ring, changed, kind)


def test_a_permit_of_its_own_takes_no_second_look_and_that_of_another_process_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bytes] = []
    real = live_keys.verify_signature

    def counted(key: bytes, message: bytes, signature: bytes) -> bool:
        looked.append(key)
        return real(key, message, signature)

    monkeypatch.setattr(live_keys, "verify_signature", counted)
    one, two = LiveKeys.open(tmp_path), LiveKeys.open(tmp_path)
    permit = one.sign(CLAIMS, TokenType.PERMIT)
    assert one.verify(permit, TokenType.PERMIT).values == CLAIMS
    assert not looked
    assert two.verify(permit, TokenType.PERMIT).values == CLAIMS
    assert looked == [one.ring.public[0].raw]


def test_what_is_remembered_is_worth_nothing_once_its_key_is_revoked(tmp_path: Path) -> None:
    live = LiveKeys.open(tmp_path)
    permit = live.sign(CLAIMS, TokenType.PERMIT)
    rotation.revoke(tmp_path / "signing.json", live.ring.kid, NOW)
    with pytest.raises(TokenError, match="not a phylactery-permit"):
        live.verify(permit, TokenType.PERMIT)


def test_only_the_newest_are_remembered_and_older_ones_count_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_keys, "_MAX_SIGNED", 4)
    live = LiveKeys.open(tmp_path)
    permits = [live.sign({**CLAIMS, "iat": number}, TokenType.PERMIT) for number in range(20)]
    assert len(live._signed._new) + len(live._signed._old) <= 8
    assert [live.verify(one, TokenType.PERMIT).number("iat") for one in permits] == list(range(20))
