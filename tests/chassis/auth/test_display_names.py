"""The name under which others see a handler is their token's, whatever name they want."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery_chassis.auth.identity import Principal, Role, TokenAuthenticator, TokensFileError
from phylactery_chassis.auth.tokens import add_token


def principal(subject: str, *, name: str = "", token: bool = True, actor: str = "") -> Principal:
    credential = "sha256:" + "0" * 64 if token else ""
    return Principal(
        subject, "acme", frozenset({Role.HANDLER}), actor=actor, credential_hash=credential, display_name=name
    )


@pytest.mark.parametrize("wanted", ["Phylactery", "Agent", "Support", "", "Marta", "👤 Marta"])
def test_a_tokens_name_is_shown_whatever_is_wanted(wanted: str):
    assert principal("handler-7", name="Marta López").shown_as(wanted) == "Marta López"


@pytest.mark.parametrize(
    ("subject", "wanted", "shown"),
    [
        ("marta", "Marta", "Marta"),
        ("marta.lopez", "Marta López", "Marta López"),
        ("marta@acme.es", "marta", "marta"),
        ("marta", "Phylactery", ""),
        ("marta", "Pablo", ""),
        ("marta", "Marta, your bank", ""),
        ("marta", "", ""),
    ],
)
def test_without_one_only_the_subjects_own_name_is_shown(subject: str, wanted: str, shown: str):
    assert principal(subject).shown_as(wanted) == shown


def test_without_tokens_the_name_is_as_wanted():
    assert principal("local", token=False).shown_as("Marta") == "Marta"


def test_a_tokens_file_holds_the_name(tmp_path: Path):
    file = tmp_path / "tokens.yaml"
    roles = [Role.HANDLER]
    token = add_token(file, subject="h7", tenant="acme", roles=roles, display_name="Marta López")
    found = TokenAuthenticator(file).authenticate({"authorization": f"Bearer {token}"})
    assert found.shown_as("Phylactery") == "Marta López"
    with pytest.raises(TokensFileError):
        add_token(file, subject="h8", tenant="acme", roles=roles, display_name="Marta\nLópez")
