"""PINs, card and door codes, and one-time codes: digits next to a word that names them."""

from __future__ import annotations

from collections.abc import Iterator

from phylactery_chassis.inspection.candidates import Candidate, Sight, digits_of
from phylactery_chassis.inspection.expressions import Match, expression
from phylactery_chassis.inspection.kinds import Confidence, FindingKind

_WHAT = (
    r"security|verification|unlock|alarm|door|gate|access|entry|safe|lock|2fa|mfa|two-factor|one-time|login|log-in|sign-in"
    r"|confirmation|authentication|auth|sms|recovery|phone|ipad|iphone|tablet|laptop|luggage|locker|keypad|garage"
)
_DE_QUE = (
    r"de (?:(?:la|el|un|mi|tu|su) )?(?:seguridad|verificacion|desbloqueo|acceso|alarma|puerta|entrada|portal|garaje"
    r"|caja(?: fuerte)?|confirmacion|autenticacion|recuperacion|solo uso|firma|sms|pin)"
    r"|del? (?:(?:mi|la) )?(?:portal|garaje|edificio|candado|telefono|movil|sms|ipad|iphone|tablet|portatil"
    r"|ordenador|maleta|taquilla)"
)
_CARDS = r"\bcvv2?\b|\bcvc2?\b|\bcv2\b|\bsecurity code\b|\bcodigo de seguridad\b"
_PINS = r"\bpin(?:[ _-]?(?:code|number))?\b|_pin\b|\botp\b|\bpasscode\b"
_CODES = (
    rf"\b(?:{_WHAT})(?: unlock)? codes?\b|\bone[- ]time (?:password|pin)\b|\b(?:codigos?|clave) (?:{_DE_QUE})\b"
    r"|\b(?:safe|lock|locker|vault) combination\b|\bcombinacion de (?:la caja(?: fuerte)?|el candado)\b"
    r"|\bcombinacion del candado\b"
)
_WORD = expression(rf"(?i)(?:({_CARDS})|{_PINS}|{_CODES})")
"""Group 1: a card's security code, of three or four digits."""
_CARD = 1
_VALUE = expression(
    r"""(?i)^[\\"']{0,2}((?:(?: [\w().,-]+?){0,7}?(?: (?:is|are|was|es|son|era|sera)| ?[:=]|[:=]))|)"""
    r"""(?: (?:el|the|now|ahora))?[ :]{0,2}[\\"'*]{0,3}([0-9](?:[ -]?[0-9]){2,9})([*#]?)"""
)
"""Groups: 1 the link, empty if only a space; 2 the digits; 3 the key that some doors require."""
_AFTER = expression(
    r"(?i)^(?:[0-9]|[A-Za-z_]|[.,/:][0-9]|-[A-Za-z]| ?%| ?\$"
    r"| (?:characters?|digits?|times?|minutes?|seconds?|hours?|days?|years?|caracteres|digitos|letras|veces|minutos"
    r"|horas|dias|anos|mm|cm|km|kg|eur|euros)\b)"
)
_BEFORE = expression(
    rf"(?i)\b(?:[A-Z]-)?([0-9](?:[ -]?[0-9]){{3,7}}) (?:is|es) (?:your|the|my|su|tu|mi|el|la) (?:[\w-]+ ){{0,4}}?"
    rf"(?:codes?|pin|otp|passcode|codigo (?:{_DE_QUE}))\b"
)
_TO_ENTER = expression(
    r"(?i)\b(?:code|codigo)(?: is| es|:)? ([0-9](?:[ -]?[0-9]){3,7}) (?:to|para) (?:verify|confirm|sign|log|enter"
    r"|unlock|open|verificar|confirmar|iniciar|entrar|acceder|abrir|desbloquear)\b"
)
_ERROR_WORDS = expression(r"(?i)\b(?:error|zip|postal|country|area|discount|promo|product|exit|status)\b")
_REACH = 96
_MIN_CARD, _MIN_DIGITS = 3, 4


def codes(sight: Sight) -> Iterator[Candidate]:
    """Find all PINs and codes named by a nearby word."""
    data = sight.data
    for word in _WORD.finditer(data):
        value = _VALUE.match(data[word.end() : word.end() + _REACH])
        if value is not None and _is_code(data, word, value):
            start, end = word.end() + value.start(2), word.end() + value.end(3)
            yield Candidate(start, end, FindingKind.PASSWORD, Confidence.MEDIUM, "code")
    for found in _TO_ENTER.finditer(data):
        yield Candidate(*found.span(1), FindingKind.PASSWORD, Confidence.MEDIUM, "code")
    for found in _BEFORE.finditer(data):
        if _ERROR_WORDS.search(found.group() or b"") is None:
            yield Candidate(*found.span(1), FindingKind.PASSWORD, Confidence.MEDIUM, "code")


def names_code(name: bytes) -> bool:
    """Return True if a folded name names a PIN or a code."""
    return _WORD.search(name) is not None


def _is_code(data: bytes, word: Match, value: Match) -> bool:
    digits = len(digits_of(value.group(2) or b""))
    linked = bool(value.group(1))
    if digits < (_MIN_CARD if word.start(_CARD) >= 0 else _MIN_DIGITS):
        return False
    if (
        not linked
        and not data[word.end() : word.end() + 1].isspace()
        and data[word.end() : word.end() + 1] not in b"\"'\\"
    ):
        return False
    return _AFTER.search(data[word.end() + value.end(3) : word.end() + value.end(3) + 16]) is None
