"""Amounts written in words, wholly or in part: twenty euros, treinta y cinco euros, 1.5k, 2 mil."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from phylactery_riskgate.domain.intent.languages import CURRENCIES
from phylactery_riskgate.domain.intent.origin.literals import number, numbers_in


def _counted(first: int, step: int, *languages: str) -> dict[str, int]:
    return {
        name: first + step * place
        for language in languages
        for place, names in enumerate(language.split())
        for name in names.split("|")
    }


_UNITS: Final = {
    **_counted(
        1,
        1,
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
        " eighteen nineteen",
        "un|uno|una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis"
        " diecisiete dieciocho diecinueve veinte veintiun|veintiuno|veintiuna veintidos veintitres veinticuatro"
        " veinticinco veintiseis veintisiete veintiocho veintinueve",
    ),
    **_counted(20, 10, "twenty thirty forty fifty sixty seventy eighty ninety"),
    **_counted(30, 10, "treinta cuarenta cincuenta sesenta setenta ochenta noventa"),
    **_counted(
        100,
        100,
        "cien|ciento doscientos|doscientas trescientos|trescientas cuatrocientos|cuatrocientas quinientos|quinientas"
        " seiscientos|seiscientas setecientos|setecientas ochocientos|ochocientas novecientos|novecientas",
    ),
}
_THOUSAND: Final = 1_000
_SCALES: Final = {"hundred": 100, "k": _THOUSAND, "mil": _THOUSAND, "thousand": _THOUSAND}
_ALONE: Final = frozenset({"mil"})
""""A thousand" without a number before it."""
_AND: Final = frozenset({"and", "y"})
_THOUSANDS = re.compile(r"(\d{1,6}(?:[.,]\d{1,3})?)k")
_LONGEST: Final = 12


def spoken_amounts(written: Sequence[str]) -> Iterator[str]:
    """Return the spoken amounts: number words before a currency, and figures with k, mil or thousand."""
    tokens = [part for token in written for part in _parts(token)]
    place = 0
    while place < len(tokens):
        short = _THOUSANDS.fullmatch(tokens[place])
        if short is not None:
            yield number(Decimal(short[1].replace(",", ".")) * _THOUSAND)
        scale = _SCALES.get(tokens[place + 1]) if place + 1 < len(tokens) else None
        if scale is not None:
            yield from (number(Decimal(one) * scale) for one in numbers_in(tokens[place]))
        stop = place
        while stop < len(tokens) and stop - place < _LONGEST and _counts(tokens, place, stop):
            stop += 1
        if stop > place and not CURRENCIES.isdisjoint(tokens[stop : stop + 1]):
            yield number(_value(tokens[place:stop]))
        place = max(stop, place + 1)


def _parts(token: str) -> Sequence[str]:
    parts = token.split("-")
    return parts if all(part in _UNITS for part in parts) else (token,)


def _counts(tokens: Sequence[str], first: int, place: int) -> bool:
    token = tokens[place]
    if token in _AND:
        return place > first and place + 1 < len(tokens) and tokens[place + 1] in _UNITS
    return token in _UNITS or (token in _SCALES and (place > first or token in _ALONE))


def _value(said: Sequence[str]) -> int:
    total = part = 0
    for token in said:
        scale = _SCALES.get(token)
        if scale is None:
            part += _UNITS.get(token, 0)
        elif scale < _THOUSAND:
            part = max(part, 1) * scale
        else:
            total, part = total + max(part, 1) * scale, 0
    return total + part
