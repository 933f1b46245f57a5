"""Finds what must never be remembered: passwords, payment cards, bank accounts, keys and tokens.

Simple rules that a person can check. They refuse rather than redact: half a secret in a store is a secret in a store.
"""

from __future__ import annotations

import math
from collections import Counter
from enum import StrEnum
from typing import Any, Final

import re2

from phylactery_memory.domain.retrieval.words import plain


class Secret(StrEnum):
    """What was found."""

    PASSWORD = "SECRET_PASSWORD"  # noqa: S105 - the name of a finding
    CARD = "SECRET_CARD"
    KEY = "SECRET_KEY"


_IS: Final = r"\s*(?::|=|\bis\b|\bare\b|\bes\b|\bson\b|\bsera\b|->)\s*"
_OF: Final = r"(?:\s+\w{1,24}){0,6}"
# On plain text (no accents, lower case); the linear engine reads hostile text.
_PASSWORD: Final = re2.compile(
    r"\b(?:pass(?:word|code|phrase|wd)|pwd|contrasenas?)\b" + _OF + _IS + r"[\"'“‘«]?(\S{3,})"
)
_CODE: Final = re2.compile(
    r"\b(?:pin|clave|claves|cvv2?|cvc|otp|codigo de seguridad|security code)\b" + _OF + _IS + r"[\"']?(\S{3,})"
)
_NAMED_KEY: Final = re2.compile(
    r"\b(?:api[ _-]?key|secret[ _-]?key|access[ _-]?key|client[ _-]?secret|auth[ _-]?token|access[ _-]?token|token|"
    r"secret|"
    r"clave (?:de )?api|llave)\b" + _OF + _IS + r"[\"']?([a-z0-9_\-+/=.]{12,})"
)
_CARD: Final = re2.compile(r"(?:^|[^\d])((?:\d[ -]?){12,18}\d)(?:[^\d]|$)")
_IBAN: Final = re2.compile(r"\b([A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?)\b")
# On the text as written: keys tell upper case from lower.
_KEY: Final = re2.compile(
    r"(?:\b(?:sk|pk|rk)[-_](?:live[-_]|test[-_]|proj[-_]|ant[-_])?[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|"
    r"\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\b(?:AKIA|"
    r"ASIA)[0-9A-Z]{16}\b|"
    r"\bAIza[0-9A-Za-z_-]{30,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*|"
    r"\bxapp-[A-Za-z0-9-]{10,}|\bwhsec_[A-Za-z0-9+/=]{20,}|\bhf_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{36}|\bpypi-[\w-]{50,}|"
    r"\bSG\.[\w-]{16,32}\.[\w-]{16,64}|\bGOCSPX-[\w-]{24,}|\bya29\.[\w-]{20,}|\bhv[sbr]\.[\w-]{24,}|\bAccountKey=\S{40,}|"
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\b[Bb]earer\s+[A-Za-z0-9_\-.=]{20,})"
)
_URL: Final = re2.compile(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:\"'<>]*:[^\s/?@\"'<>]+@")
_SEPARATORS: Final = re2.compile(r"[_.:-]+")
_MIN_KEY_ENTROPY: Final = 3.0
"""Bits a character: words and file names stay under it, random keys of twelve characters and more stand above."""
_ADJECTIVES: Final = """
secure secret safe strong weak wrong forgotten lost expired old new required needed important incorrecta correcta
segura secreta debil fuerte olvidada perdida nueva vieja vencida necesaria importante that the too very muy not no
demasiado being been
"""
_NOT_SECRET: Final = frozenset(_ADJECTIVES.split())
_MIN_CARD_DIGITS: Final = 13
_TWO_DIGITS: Final = 9


def find_secret(text: str, name: str = "") -> Secret | None:
    """Answers the first sort of secret found in a text, None where there is none.

    name is what the text is the value of: "wifi_password" says of any value what it is.
    """
    if name:
        text = f"{_SEPARATORS.sub(' ', name)}: {text}"
    if _KEY.search(text):
        return Secret.KEY
    lowered = plain(text)
    if any(_is_card(found) for found in _CARD.findall(lowered)) or any(_is_iban(f) for f in _IBAN.findall(text)):
        return Secret.CARD
    if _URL.search(text) or any(_value(found) not in _NOT_SECRET for found in _found(_PASSWORD, lowered)):
        return Secret.PASSWORD
    if any(any(character.isdigit() for character in found) for found in _found(_CODE, lowered)):
        return Secret.PASSWORD
    if any(_entropy(found) >= _MIN_KEY_ENTROPY for found in _found(_NAMED_KEY, lowered)):
        return Secret.KEY
    return None


def _found(pattern: Any, text: str) -> list[str]:
    return [str(found) for found in pattern.findall(text)]


def _value(found: str) -> str:
    return found.strip("\"'“”‘’«».,;:!?()")


def _is_card(found: str) -> bool:
    digits = [int(character) for character in found if character.isascii() and character.isdigit()]
    if len(digits) < _MIN_CARD_DIGITS or len(set(digits)) == 1:
        return False
    doubled = [2 * digit for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(d - _TWO_DIGITS if d > _TWO_DIGITS else d for d in doubled)) % 10 == 0


def _is_iban(found: str) -> bool:
    compact = found.replace(" ", "")
    return int("".join(str(int(character, 36)) for character in compact[4:] + compact[:4])) % 97 == 1


def _entropy(text: str) -> float:
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values())
