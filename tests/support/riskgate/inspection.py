"""Valid and invalid numbers for inspection tests, generated from a seed so that every run has the same."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Callable
from pathlib import Path

from phylactery_chassis.inspection import Confidence, Wanted, inspect
from phylactery_chassis.inspection.checks import DNI_LETTERS

Chooser = random.Random

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_SCHEMES = (("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("2720", 16), ("34", 15), ("37", 15), ("36", 14))
_MORE_SCHEMES = (("6011", 16), ("65", 16), ("3528", 16), ("3589", 16), ("62", 16), ("6759", 16), ("62", 19))
_COUNTRIES = {"ES": 24, "DE": 22, "FR": 27, "PT": 25, "NO": 15, "NL": 18}


def digits(chooser: Chooser, count: int) -> str:
    return "".join(chooser.choices("0123456789", k=count))


def luhn_digit(body: str) -> str:
    total = sum(_DOUBLED[int(d)] if place % 2 == 0 else int(d) for place, d in enumerate(reversed(body)))
    return str(-total % 10)


def card(chooser: Chooser) -> str:
    """Return a valid card number of 14 to 19 digits, without separators."""
    prefix, size = chooser.choice(_SCHEMES + _MORE_SCHEMES)
    body = prefix + digits(chooser, size - len(prefix) - 1)
    return body + luhn_digit(body)


def written_card(chooser: Chooser) -> str:
    """Return a valid card as people write it."""
    number = card(chooser)
    shape = {14: (4, 6, 4), 15: (4, 6, 5), 16: (4, 4, 4, 4), 19: (4, 4, 4, 4, 3)}[len(number)]
    separator = chooser.choice(["", "", " ", " ", "-", "-", ".", "\u00a0"])
    parts, place = [], 0
    for size in shape:
        parts.append(number[place : place + size])
        place += size
    return separator.join(parts)


def dni(chooser: Chooser) -> tuple[str, str]:
    """Return the digits of a DNI and its letter."""
    number = digits(chooser, 8)
    return number, DNI_LETTERS[int(number) % 23]


def nie(chooser: Chooser) -> tuple[str, str, str]:
    """Return a NIE's prefix, digits and letter."""
    prefix, number = chooser.choice("XYZ"), digits(chooser, 7)
    return prefix, number, DNI_LETTERS[int(str("XYZ".index(prefix)) + number) % 23]


def dni_forms(number: str, letter: str) -> list[str]:
    """Return every form a DNI is written in."""
    a, b, c = number[:2], number[2:5], number[5:]
    capital = [
        f"{number}{letter}",
        f"{a}.{b}.{c}-{letter}",
        f"{number}-{letter}",
        f"{a} {b} {c} {letter}",
        f"{a}.{b}.{c}{letter}",
    ]
    return capital + [form.lower() for form in capital]


def nie_forms(prefix: str, number: str, letter: str) -> list[str]:
    """Return every form a NIE is written in."""
    a, b, c = number[:1], number[1:4], number[4:]
    capital = [
        f"{prefix}{number}{letter}",
        f"{prefix}-{a}.{b}.{c}-{letter}",
        f"{prefix}-{number}-{letter}",
        f"{prefix} {a} {b} {c} {letter}",
        f"{prefix}{a}.{b}.{c}{letter}",
    ]
    return capital + [form.lower() for form in capital]


def iban(chooser: Chooser) -> str:
    """Return a valid IBAN, sometimes in fours."""
    country, size = chooser.choice(list(_COUNTRIES.items()))
    body = digits(chooser, size - 4)
    turned = "".join(str(int(char, 36)) for char in f"{body}{country}00")
    whole = f"{country}{98 - int(turned) % 97:02}{body}"
    return chooser.choice([whole, " ".join(whole[i : i + 4] for i in range(0, size, 4))])


def _order(chooser: Chooser) -> str:
    return chooser.choice(["pedido ", "order #", "ref. ", ""]) + digits(chooser, chooser.randint(6, 12))


def _decimal(chooser: Chooser) -> str:
    return f"{chooser.randint(0, 99)}{chooser.choice('.,')}{digits(chooser, chooser.randint(4, 18))}"


def _timestamp(chooser: Chooser) -> str:
    seconds = chooser.randint(1_500_000_000, 1_900_000_000)
    return chooser.choice([str(seconds), f"{seconds}{digits(chooser, 3)}", f"{seconds}{digits(chooser, 6)}"])


def _moment(chooser: Chooser) -> str:
    return f"20{chooser.randint(10, 30)}{digits(chooser, 10)}"


def _phone(chooser: Chooser) -> str:
    rest = digits(chooser, 8)
    return chooser.choice(
        [f"6{rest}", f"+34 6{rest[:2]} {rest[2:5]} {rest[5:]}", f"9{rest[:2]} {rest[2:5]} {rest[5:]}"]
    )


def _hash(chooser: Chooser) -> str:
    return hashlib.sha256(chooser.randbytes(8)).hexdigest()[: chooser.choice([7, 12, 40, 64])]


def _uuid(chooser: Chooser) -> str:
    return str(uuid.UUID(bytes=chooser.randbytes(16), version=4))


def _article(chooser: Chooser) -> str:
    return digits(chooser, 13)


def _price(chooser: Chooser) -> str:
    return f"{chooser.randint(1, 999)}.{digits(chooser, 3)}.{digits(chooser, 3)},{digits(chooser, 2)} €"


NOISE: tuple[Callable[[Chooser], str], ...] = (
    _order,
    _decimal,
    _timestamp,
    _moment,
    _phone,
    _hash,
    _uuid,
    _article,
    _price,
    iban,
)
"""Everything that can look like a card or an identity number."""


PROSE = [
    line for line in (Path(__file__).parents[1] / "clean_prose.txt").read_text().splitlines() if line and line[0] != "#"
]
ALL = Wanted(min_confidence=Confidence.LOW)


def found(text: str, wanted: Wanted = ALL) -> list[tuple[str, str]]:
    """Return the kind and the text of each finding."""
    return [(str(one.kind), text[one.start : one.end]) for one in inspect(text, wanted)]
