"""Identity numbers: DNI, NIE and CIF in every written form, IBANs, US social security numbers."""

from __future__ import annotations

from collections.abc import Iterator

from phylactery_chassis.inspection import checks
from phylactery_chassis.inspection.candidates import Candidate, Sight, digits_of, text_of
from phylactery_chassis.inspection.expressions import Match, expression, overlapping
from phylactery_chassis.inspection.kinds import Confidence, FindingKind

_LETTER = f"[{''.join(sorted(checks.DNI_LETTERS))}]"
_THREES = r"(?:[0-9]{6}|\.[0-9]{3}\.[0-9]{3}| [0-9]{3} [0-9]{3})"
"""The last six digits: together, or in groups of three with points or spaces."""
_CONTROL = r"[ .]?-? ?"

_DNI = expression(rf"(?:\b|DNI|NIF|N)([0-9]{{1,2}}{_THREES}){_CONTROL}({_LETTER})\b")
_NIE = expression(rf"(?:\b|NIE|NIF)([XYZ])[ .]?-? ?0?([0-9]{_THREES}){_CONTROL}({_LETTER})\b")
_NIF = expression(rf"(?:\b|NIF)[KLM][ .-]?([0-9]{_THREES}){_CONTROL}({_LETTER})\b")
_CIF = expression(
    r"(?:\b|CIF|NIF)([ABCDEFGHJNPQRSUVW])[ .]?-? ?"
    r"([0-9]{7}|[0-9]{2}\.[0-9]{3}\.[0-9]{2}|[0-9]{2} [0-9]{3} [0-9]{2})[ -]?([0-9A-J])\b"
)
_IBAN = expression(r"(?:\b|IBAN)([A-Z]{2})[0-9]{2}(?:[ .-]?[A-Z0-9]){11}")
_SSN = expression(r"\b([0-9]{3})-([0-9]{2})-([0-9]{4})\b")

_IDENTITY_WORDS = expression(r"\b(?:DNI|NIF|NIE|CIF|IDENTI[A-Z]+|DOCUMENTO|EMPRESA|SOCIEDAD)\b")
_SSN_WORDS = expression(r"\b(?:SSN|SOCIAL SECURITY)\b")

_DNI_DIGITS = 8
_SEPARATORS = b" .-"


def identities(sight: Sight) -> Iterator[Candidate]:
    """Find all identity numbers."""
    yield from _dnis(sight)
    yield from _nies(sight)
    yield from _cifs(sight)
    yield from _ibans(sight)
    for found in overlapping(_SSN, sight.numbers):
        if checks.ssn(*(_text(found, group) for group in (1, 2, 3))):
            sure = Confidence.HIGH if sight.said_before(found.start(), _SSN_WORDS) else Confidence.MEDIUM
            yield Candidate(*found.span(), FindingKind.US_SSN, sure, "us-ssn")


def _dnis(sight: Sight) -> Iterator[Candidate]:
    for found in overlapping(_DNI, sight.numbers):
        digits = digits_of(found.group(1) or b"")
        if not checks.dni(digits, _text(found, 2)):
            continue
        sure = _sure(sight, found.start(1), found.end(2))
        if len(digits) < _DNI_DIGITS and sure is not Confidence.HIGH:
            sure = Confidence.LOW
        yield Candidate(found.start(1), found.end(2), FindingKind.ES_DNI, sure, "es-dni")


def _nies(sight: Sight) -> Iterator[Candidate]:
    for found in overlapping(_NIE, sight.numbers):
        if checks.nie(_text(found, 1), digits_of(found.group(2) or b""), _text(found, 3)):
            sure = _sure(sight, found.start(1), found.end(3))
            yield Candidate(found.start(1), found.end(3), FindingKind.ES_NIE, sure, "es-nie")


def _cifs(sight: Sight) -> Iterator[Candidate]:
    for found in overlapping(_CIF, sight.numbers):
        if checks.cif(_text(found, 1), digits_of(found.group(2) or b""), _text(found, 3)):
            said = sight.said_before(found.start(1), _IDENTITY_WORDS)
            spaced = b" " in sight.numbers[found.start(1) : found.end(3)]
            sure = Confidence.HIGH if said else Confidence.LOW if spaced else Confidence.MEDIUM
            yield Candidate(found.start(1), found.end(3), FindingKind.ES_CIF, sure, "es-cif")
    for found in overlapping(_NIF, sight.numbers):
        if checks.dni(digits_of(found.group(1) or b""), _text(found, 2)):
            said = sight.said_before(found.start(1), _IDENTITY_WORDS)
            sure = Confidence.HIGH if said else Confidence.MEDIUM
            yield Candidate(found.start(1) - 1, found.end(2), FindingKind.ES_DNI, sure, "es-nif-klm")


def _sure(sight: Sight, start: int, end: int) -> Confidence:
    """Rate a match.

    A lower-case letter may follow a number by chance; a capital or the name of the document is strong evidence.
    """
    said = sight.said_before(start, _IDENTITY_WORDS)
    capital = chr(sight.data[end - 1]).isupper() and sight.data[end - 2] != ord(" ")
    return Confidence.HIGH if said or capital else Confidence.MEDIUM


def _ibans(sight: Sight) -> Iterator[Candidate]:
    for found in overlapping(_IBAN, sight.numbers):
        end = _iban_end(sight.numbers, found.start(1), checks.IBAN_LENGTH.get(_text(found, 1), 0))
        written = sight.numbers[found.start(1) : end]
        if end and checks.iban(text_of(written.translate(None, _SEPARATORS))):
            yield Candidate(found.start(1), end, FindingKind.IBAN, Confidence.HIGH, "iban")


def _iban_end(data: bytes, start: int, length: int) -> int:
    """Return the end of an IBAN of that length, 0 if none fits."""
    place, count, apart = start, 0, False
    while count < length and place < len(data):
        if data[place : place + 1].isalnum():
            count, apart = count + 1, False
        elif apart or data[place] not in _SEPARATORS:
            return 0
        else:
            apart = True
        place += 1
    whole = count == length > 0 and not data[place : place + 1].isalnum()
    return place if whole else 0


def _text(found: Match, group: int) -> str:
    return text_of(found.group(group) or b"")
