"""The detector shared by RiskGate and memory: secrets to their last character, and look-alikes."""

from __future__ import annotations

import pytest
from phylactery_chassis.inspection import redact
from phylactery_memory.memories.write_policy import Secret, find_secret

from benchmarks.labelled_secrets import covered, detect_secrets, labelled, memorys, ours, scored
from tests.support.cases import each_case


@each_case(
    ("text", "left"),
    [
        ("mi contraseña es Gato&Perro99", "mi contraseña es «password»"),
        ("the wifi password is Sunny-Day 2024!", "the wifi password is «password»"),
        ("pwd: Xy7;drop", "pwd: «password»"),
        ("my pin is 4321", "my pin is «password»"),
        ("password: Tr0ub4dor&3zzSECRETTAIL", "password: «password»"),
        ("mi contraseña es Tr0ub4dor&3zzSECRETTAIL, no la pierdas", "mi contraseña es «password», no la pierdas"),
        ("https://h/login?user=ana&password=Qw3rtyUiop&next=/", "https://h/login?user=ana&password=«password»&next=/"),
        ("Contraseña:\nZx9&kd;w\nUn saludo", "Contraseña:\n«password»\nUn saludo"),
        ("Server=db;User Id=sa;Password=Passw0rd!x;App=y", "Server=db;User Id=sa;Password=«connection_password»;App=y"),
        ("the passwd is r00t<toor>", "the passwd is «password»"),
        ("<password>hunter22</password>", "<password>«password»</password>"),
        ("Gato&Perro99 es mi contraseña", "«password» es mi contraseña"),
        ("G-482913 is your Google verification code.", "G-«password» is your Google verification code."),
        ("tarjeta de acceso, código de la puerta: 2468#", "tarjeta de acceso, código de la puerta: «password»"),
        ("curl -u ana:S3cretPw1 https://api", "curl -u ana:«password» https://api"),
        ("frase semilla: lago ancla tostada orbita limon deriva", "frase semilla: «password»"),
        ("mi contrase\u200bña es Gato\u200b&Perro99", "mi contrase\u200bña es «password»"),
        ("ｐａｓｓｗｏｒｄ： Ｇａｔｏ＆Ｐｅｒｒｏ９９", "ｐａｓｓｗｏｒｄ： «password»"),
    ],
)
def test_a_secret_is_masked_to_its_last_character_and_nothing_else_is(text: str, left: str):
    assert redact(text) == left
    assert redact(left) == left
    assert find_secret(text) is find_secret(left) is Secret.PASSWORD


@pytest.mark.parametrize(("name", "recall", "whole"), [("tuned", 0.95, 0.95), ("unseen", 0.88, 0.88)])
def test_most_labelled_secrets_are_found_and_what_only_looks_like_one_is_not(name: str, recall: float, whole: float):
    lines = labelled(name)
    score = scored(lines, ours(lines))
    assert score.recall >= recall, score.missed
    assert (score.whole or 0) >= whole
    assert score.precision >= 0.98, score.wrong
    baseline = scored(lines, detect_secrets(lines))
    assert score.recall > baseline.recall + 0.5
    remembered = scored(lines, memorys(lines))
    assert (remembered.recall, remembered.precision) == (score.recall, score.precision)


def test_the_labels_say_where_each_secret_is():
    lines = [line for line in labelled("tuned") + labelled("unseen") if line.secrets]
    assert len(lines) > 300
    for line in lines:
        for start, end in line.secrets:
            assert 0 <= start < end <= len(line.text)
            assert not covered((start, end), [(start, end - 1)])
    assert not any(mark in line.text for line in lines for mark in "⟦⟧{}" if mark not in "{}")
    assert [line.text for line in labelled("unseen")] == [line.text for line in labelled("unseen")]


@pytest.mark.parametrize(
    "text",
    [
        "hunter2",
        "use admin / Pr1mavera for the portal",
        "the password is secured",
        "mi contraseña es dorada",
        "my password is red car",
        "la clave es tortuga-verde",
        "the keypad takes 8842",
    ],
)
def test_what_the_page_on_secrets_says_is_not_found_is_not(text: str):
    """A rule that finds one of them now has to change docs/secrets.md."""
    assert redact(text) == text
    assert find_secret(text) is None


@pytest.mark.parametrize(
    "text",
    ["I changed my password to N3w,Pass", "usa la contraseña Cebra!77", "my password is dragonfly", "CVV 804"],
)
def test_what_the_page_on_secrets_says_is_found_is(text: str):
    assert "«password»" in redact(text)


def test_a_secret_longer_than_what_is_judged_is_masked_whole():
    value = "".join(chr(97 + (place * place + place // 7) % 26) + str(place % 10) for place in range(5_000))
    assert redact(f"token={value} y más") == "token=«token» y más"
