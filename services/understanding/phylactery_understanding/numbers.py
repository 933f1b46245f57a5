"""Numbers as people write and say them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from phylactery_understanding.text import Kind, Token

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
    "ciento": 100,
    "doscientos": 200,
    "doscientas": 200,
    "trescientos": 300,
    "trescientas": 300,
    "cuatrocientos": 400,
    "cuatrocientas": 400,
    "quinientos": 500,
    "quinientas": 500,
    "seiscientos": 600,
    "setecientos": 700,
    "ochocientos": 800,
    "novecientos": 900,
    "million": 1_000_000,
    "millon": 1_000_000,
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


_JOINTS: Final = frozenset({"and", "y"})
_BOUNDS: Final = frozenset(
    "under over below above than by hasta another otros otras extra additional bajo sobre min max minimo maximo"
    " up down back minus menos more".split()
)
"""What stands before a number that is a bound, or a change, and not the amount."""
_BEHIND: Final = frozenset({"%", "percent", "pct", "more", "mas", "menos", "less", "fewer", "times", "veces", "²", "³"})
"""What stands behind a number that is a share, a change or a factor."""
_COMPARED: Final = frozenset({"more", "less", "fewer", "mas", "menos", "up", "at"})
_TO: Final = frozenset({"to", "a", "at", "en", "=", "→", "->", "=>", "be"})
_CHANGES: Final = frozenset({"raise", "lower"})


def amounts_at(tokens: Sequence[Token], place: int, meanings: Collection[str] = ()) -> frozenset[Decimal]:
    """Return what the number at a place can be an amount of; nothing where it is a bound, a share or a change.

    ``meanings`` are those of its verb: what is raised or lowered says "to", or it is a change.
    """
    token = tokens[place]
    texts = [one.text for one in tokens]
    before, after = texts[place - 1] if place else "", texts[place + 1] if place + 1 < len(texts) else ""
    if not readings(token.text.lstrip("#")) or any(one.isdigit() and not one.isascii() for one in token.raw):
        return frozenset()
    if before in _BOUNDS or (before in {"to", "de", "of", "least", "most"} and place > 1 and texts[place - 2] in _BENT):
        return frozenset()
    if (
        after in _BEHIND
        or token.text.endswith("%")
        or "ciento" in {after, token.text} | set(texts[place + 2 : place + 3])
    ):
        return frozenset()
    if (
        before in {"-", "–", "−"}
        and tokens[place - 1].stop == token.start
        and (place < 2 or not _is_number(tokens, place - 2))
    ):
        return frozenset()
    if before and tokens[place - 1].kind is Kind.MARK and tokens[place - 1].raw not in _OPEN:
        return frozenset()
    if not _CHANGES.isdisjoint(meanings) and not _TO & set(texts[max(place - 2, 0) : place]):
        return frozenset()
    first, last = _run(tokens, place)
    if first != last:
        total = _composed(texts[first : last + 1])
        return frozenset() if total is None else frozenset({total})
    if after in _JOINTS and (
        texts[place + 2 : place + 4] in (["a", "half"], ["un", "medio"])
        or texts[place + 2 : place + 3] in (["half"], ["medio"], ["media"])
    ):
        return frozenset()
    # Nobody writes three decimals: 50.000 is fifty thousand.
    return frozenset({max(readings(token.text.lstrip("#")))})


_BENT: Final = frozenset(
    {"up", "menos", "mas", "more", "less", "fewer", "at", "maximo", "minimo", "maximum", "minimum"}
)
_HUNDRED, _THOUSAND = 100, 1_000
_MANY: Final = frozenset({"dozen", "docena", "couple", "par"})
_OPEN: Final = frozenset(
    {
        ",",
        ":",
        ";",
        "(",
        "$",
        "€",
        "£",
        "¥",
        "#",
        "=",
        ".",
        "-",
        "–",
        "—",
        "→",
        "->",
        "=>",
        "+",
        "¿",
        "¡",
        "*",
        "•",
        "x",
        "×",
        "/",
    }
)


def _is_number(tokens: Sequence[Token], place: int) -> bool:
    return 0 <= place < len(tokens) and bool(readings(tokens[place].text))


def _run(tokens: Sequence[Token], place: int) -> tuple[int, int]:
    """Return the first and the last place of the numbers in words that stand together: one hundred and fifty."""

    def is_word(at: int) -> bool:
        return 0 <= at < len(tokens) and value_of(tokens[at].text) is not None

    first = last = place
    while is_word(first - 1) or (first - 1 > 0 and tokens[first - 1].text in _JOINTS and is_word(first - 2)):
        first -= 1 if is_word(first - 1) else 2
    while is_word(last + 1) or (last + 1 < len(tokens) and tokens[last + 1].text in _JOINTS and is_word(last + 2)):
        last += 1 if is_word(last + 1) else 2
    return first, last


def _composed(texts: Sequence[str]) -> Decimal | None:
    """Return the number that some words say together."""
    total = now = Decimal(0)
    for one in texts:
        if one in _JOINTS:
            continue
        values = readings(one)
        if not values:
            return None
        value = max(values)
        if value >= _THOUSAND:
            total, now = total + max(now, Decimal(1)) * value, Decimal(0)
        elif now and (value == _HUNDRED or one in _MANY):
            now *= value
        else:
            now += value
    return (total + now).normalize()
