"""Numbers as people write and say them."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

_UNITS: Final = (
    "one un uno una ein eine uma um",
    "two dos zwei deux dois duas due",
    "three tres drei trois tre",
    "four cuatro vier quatre quatro",
    "five cinco funf cinq cinque",
    "six seis sechs sei",
    "seven siete sieben sept sete sette",
    "eight ocho acht huit oito otto",
    "nine nueve neun neuf nove",
    "ten diez zehn dix dez dieci",
    "eleven once",
    "twelve doce",
    "thirteen trece",
    "fourteen catorce",
    "fifteen quince",
    "sixteen dieciseis",
    "seventeen diecisiete",
    "eighteen dieciocho",
    "nineteen diecinueve",
    "twenty veinte",
)
_TENS: Final = {
    "thirty": 30,
    "treinta": 30,
    "forty": 40,
    "cuarenta": 40,
    "fifty": 50,
    "cincuenta": 50,
    "sixty": 60,
    "sesenta": 60,
    "seventy": 70,
    "setenta": 70,
    "eighty": 80,
    "ochenta": 80,
    "ninety": 90,
    "noventa": 90,
    "hundred": 100,
    "cien": 100,
    "thousand": 1000,
    "mil": 1000,
    "dozen": 12,
    "docena": 12,
    "couple": 2,
    "par": 2,
    "zero": 0,
    "cero": 0,
    "both": 2,
}
_WORDS: Final = {**{name: value + 1 for value, names in enumerate(_UNITS) for name in names.split()}, **_TENS}
_THOUSANDS: Final = 3
_LONGEST: Final = 24


def value_of(word: str) -> float | None:
    """Return the number a word says in letters, None where it says none."""
    return _WORDS.get(word)


def readings(written: str) -> frozenset[Decimal]:
    """Return what a written number can mean: 1.234 is a thousand and something, or one and something."""
    plain = written.strip().lstrip("$€£¥#+").rstrip("%€$£.,:")
    if not plain or len(plain) > _LONGEST or not plain[0].isdigit():
        said = value_of(plain)
        return frozenset() if said is None else frozenset({Decimal(str(said))})
    found = {_decimal(plain.replace(",", ""))} if _grouped(plain, ",") else set()
    found |= {_decimal(plain.replace(".", "").replace(",", "."))} if _grouped(plain, ".") or "." not in plain else set()
    found |= {_decimal(plain)} if "," not in plain else set()
    return frozenset(one.normalize() for one in found if one is not None)


def _grouped(plain: str, mark: str) -> bool:
    other = "," if mark == "." else "."
    whole = plain.split(other, maxsplit=1)[0] if other in plain and plain.rfind(other) > plain.rfind(mark) else plain
    first, *groups = whole.split(mark)
    return bool(groups) and 0 < len(first) <= _THOUSANDS and all(len(one) == _THOUSANDS for one in groups)


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None
