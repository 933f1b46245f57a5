"""Payment card numbers: issuer prefix and length, Luhn digit, and no sign that the number is something else."""

from __future__ import annotations

from collections.abc import Iterator

from phylactery_chassis.inspection import checks
from phylactery_chassis.inspection.candidates import OTHER_NUMBERS, Candidate, Sight, digits_of
from phylactery_chassis.inspection.expressions import Expression, Match, expression, overlapping
from phylactery_chassis.inspection.kinds import Confidence, FindingKind

_S = "(?: ?[-./] ?| {1,3})"
_SOLID = expression(r"\b[0-9]{13,19}\b")
_SHAPES = (
    (expression(rf"\b[0-9]{{4}}({_S})[0-9]{{4}}({_S})[0-9]{{4}}({_S})[0-9]{{4}}({_S})[0-9]{{3}}\b"), 4),
    (expression(rf"\b[0-9]{{4}}({_S})[0-9]{{4}}({_S})[0-9]{{4}}({_S})[0-9]{{1,4}}\b"), 3),
    (expression(rf"\b[0-9]{{4}}({_S})[0-9]{{6}}({_S})[0-9]{{4,5}}\b"), 2),
)
"""The ways cards are printed and their number of separators: 4-4-4-4-3, 4-4-4-4 (or a shorter end), 4-6-5 and 4-6-4.
One expression for each, because "4-4-4-4 123" may be a card followed by its security code."""
_GROUPED = expression(rf"\b[0-9]{{4}}{_S}(?:[0-9]{{4}}{_S}[0-9]{{4}}{_S}[0-9]|[0-9]{{6}}{_S}[0-9]{{4}})")
_POINT_BEFORE = expression(r"[0-9][.,]$")
_POINT_AFTER = expression(r"[.,][0-9]")
_JOINED_BEFORE = expression(r"[A-Z0-9][-/.]$")
_JOINED_AFTER = expression(r"[-.,][A-Z0-9]")

_CARD_WORDS = expression(
    r"\b(?:TARJETAS?|CARDS?|VISA|MASTERCARD|MAESTRO|AMEX|AMERICAN EXPRESS|DINERS|DISCOVER|JCB|CREDIT[OA]?|DEBIT[OA]?|"
    r"PAN|CC|CCN|CARTE|KREDITKARTE|CARTAO|CARTA|CARDNUMBER)\b"
)
_MIN_DIGITS, _MAX_DIGITS = 13, 19


def cards(sight: Sight) -> Iterator[Candidate]:
    """Find all card numbers."""
    data = sight.numbers
    for found in _SOLID.finditer(data):
        start, end = found.span()
        if not _valid(data[start:end]) or _beside(data, start, end, _POINT_BEFORE, _POINT_AFTER):
            continue
        yield Candidate(start, end, FindingKind.CARD, _solid(sight, start, end), "card-digits")
    if _GROUPED.search(data) is None:
        return
    for shape, separators in _SHAPES:
        for found in overlapping(shape, data):
            start, end = found.span()
            if _valid(data[start:end]) and _alike(data, found, separators):
                yield Candidate(start, end, FindingKind.CARD, _grouped(sight, start, end), "card-groups")


def _alike(data: bytes, found: Match, separators: int) -> bool:
    return len({data[slice(*found.span(number))].strip() for number in range(1, separators + 1)}) == 1


def _valid(written: bytes) -> bool:
    digits = digits_of(written)
    return _MIN_DIGITS <= len(digits) <= _MAX_DIGITS and checks.card_scheme(digits) and checks.luhn(digits)


def _solid(sight: Sight, start: int, end: int) -> Confidence:
    """Rate an unseparated number.

    One number in ten passes Luhn, and 13 digits are more often an article number than a card.
    """
    if sight.said_before(start, _CARD_WORDS):
        return Confidence.HIGH
    other = sight.said_before(start, OTHER_NUMBERS) or end - start == _MIN_DIGITS
    joined = _JOINED_BEFORE.search(sight.numbers[max(0, start - 2) : start]) is not None
    return Confidence.LOW if other or joined else Confidence.MEDIUM


def _grouped(sight: Sight, start: int, end: int) -> Confidence:
    if _beside(sight.numbers, start, end, _JOINED_BEFORE, _JOINED_AFTER):
        return Confidence.LOW
    return Confidence.MEDIUM if sight.said_before(start, OTHER_NUMBERS) else Confidence.HIGH


def _beside(data: bytes, start: int, end: int, before: Expression, after: Expression) -> bool:
    return before.search(data[max(0, start - 2) : start]) is not None or after.match(data, end) is not None
