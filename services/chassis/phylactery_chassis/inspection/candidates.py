"""What every search shares: the text it looks at, and what it hands on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from phylactery_chassis.inspection.expressions import Expression, expression
from phylactery_chassis.inspection.kinds import Confidence, FindingKind

_REACH = 40
"""How many characters before a number are read for a word that says what it is."""

OTHER_NUMBERS = expression(
    r"\b(?:PEDIDOS?|ORDERS?|REF|REFERENCIA|REFERENCE|FACTURAS?|INVOICES?|TICKETS?|TRACKING|SEGUIMIENTO|ENVIO|SERIAL|"
    r"SERIE|IMEI|ISBN|EAN|GTIN|SKU|LOTE|ALBARAN|EXPEDIENTE|TIMESTAMP|EPOCH|UID|ID|ORD)\b[^0-9\n]{0,12}$"
)
"""Words right before a number that say it is nobody's."""

_NO_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789")
_WORDS_APART = bytes(ord(" ") if char == ord("_") else char for char in range(256))


class Candidate(NamedTuple):
    """A part of the folded text that one rule takes for something; what it holds is not in it."""

    start: int
    end: int
    kind: FindingKind
    confidence: Confidence
    rule: str


@dataclass(frozen=True)
class Sight:
    """Folded text as the searches look at it."""

    data: bytes

    @cached_property
    def numbers(self) -> bytes:
        """Return it in capitals with "_" as a space, where "dni_12345678z" shows its number."""
        return self.data.translate(_WORDS_APART).upper()

    def said_before(self, start: int, words: Expression) -> bool:
        """Return whether one of some words stands shortly before a place."""
        return words.search(self.numbers[max(0, start - _REACH) : start]) is not None

    def __repr__(self) -> str:
        """Return how much it holds, never what."""
        return f"Sight({len(self.data)} characters)"


def text_of(data: bytes) -> str:
    """Return folded bytes as text."""
    return data.decode("latin-1")


def digits_of(data: bytes) -> str:
    """Return the digits of folded bytes."""
    return data.translate(None, _NO_DIGITS).decode("ascii")
