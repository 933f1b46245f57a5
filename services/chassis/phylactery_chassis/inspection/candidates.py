"""Types shared by all searches: the text they read and the candidates they return."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from phylactery_chassis.inspection.expressions import Expression, expression
from phylactery_chassis.inspection.kinds import Confidence, FindingKind

_REACH = 40
"""How many characters before a number are searched for a word that says what it is."""

OTHER_NUMBERS = expression(
    r"\b(?:PEDIDOS?|ORDERS?|REF|REFERENCIA|REFERENCE|FACTURAS?|INVOICES?|TICKETS?|TRACKING|SEGUIMIENTO|ENVIO|SERIAL|"
    r"SERIE|IMEI|ISBN|EAN|GTIN|SKU|LOTE|ALBARAN|EXPEDIENTE|TIMESTAMP|EPOCH|UID|ID|ORD)\b[^0-9\n]{0,12}$"
)
"""Words directly before a number that say it is not personal."""

_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")
_WORDS_APART = bytes(ord(" ") if char == ord("_") else char for char in range(256))


class Candidate(NamedTuple):
    """A part of the folded text matched by one rule; it does not hold the matched text."""

    start: int
    end: int
    kind: FindingKind
    confidence: Confidence
    rule: str


@dataclass(frozen=True)
class Sight:
    """Folded text as the searches read it."""

    data: bytes

    @cached_property
    def numbers(self) -> bytes:
        """The text in capitals with "_" as a space, so that "dni_12345678z" shows its number."""
        return self.data.translate(_WORDS_APART).upper()

    def said_before(self, start: int, words: Expression) -> bool:
        """Return True if one of some words occurs shortly before a position."""
        return words.search(self.numbers[max(0, start - _REACH) : start]) is not None

    def __repr__(self) -> str:
        """Return the size, never the content."""
        return f"Sight({len(self.data)} characters)"


def text_of(data: bytes) -> str:
    """Return folded bytes as text."""
    return data.decode("latin-1")


def digits_of(data: bytes) -> str:
    """Return the digits of folded bytes."""
    return data.translate(None, _NO_DIGITS).decode("ascii")
