"""Amounts of money: a number and a currency, by sign, code or word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from phylactery_forms.values.message import Message, alternatives, filler, groups
from phylactery_forms.values.model import Context, Found, Language, MoneyOptions, Options, Problem
from phylactery_forms.values.numbers import Reading, out_of_bounds, parse_decimal, readings, show_number, tokens_of

_CODES: Final = {word: str(code) for code, some in groups("currency_codes").items() for word in some}
_WORDS: Final = {word: str(code) for code, some in groups("currency_words").items() for word in some}
_DOLLARS: Final[Mapping[str, str]] = {
    "US": "USD", "PR": "USD", "EC": "USD", "SV": "USD", "CA": "CAD", "AU": "AUD", "NZ": "NZD", "HK": "HKD", "SG": "SGD",
    "MX": "MXN", "AR": "ARS", "CL": "CLP", "CO": "COP", "UY": "UYU", "DO": "DOP", "CU": "CUP",
}  # fmt: skip
"""What the sign $ means where it is the currency's own."""
_PESOS: Final[Mapping[str, str]] = {
    "MX": "MXN", "AR": "ARS", "CL": "CLP", "CO": "COP", "UY": "UYU", "DO": "DOP", "CU": "CUP", "PH": "PHP",
}  # fmt: skip
_OWN_DOLLARS: Final = frozenset({"CAD", "AUD", "NZD", "HKD", "SGD"})
_NAMES: Final = alternatives(
    {*_CODES, *_WORDS, "$", *groups("regional_currencies")["peso"], *groups("regional_currencies")["dollar"]}
)
_BEFORE: Final = re.compile(rf"(?<![a-z])(?P<name>{_NAMES})\s?$")
_AFTER: Final = re.compile(rf"\s?(?:de\s+|of\s+)?(?P<name>{_NAMES})(?![a-z])(?P<rest>\s?\d{{1,2}}(?![\d.,%]))?")
_CENTS: Final = re.compile(
    rf"\s*(?:,|con|y|and|with)?\s*(?P<cents>\d{{1,2}})\s*(?:{alternatives(groups('regional_currencies')['cent'])})(?![a-z])"
)
_PARTS: Final = frozenset(groups("regional_currencies")["cent"])
_SIGNED: Final = re.compile(rf"(?:{_NAMES})|[€$£¥]")
_WITHOUT_DECIMALS: Final = frozenset({"JPY", "CLP", "KRW", "PYG"})
_DIGITS: Final = 2
_SIGNS: Final[Mapping[str, str]] = {"EUR": "€", "USD": "US$", "GBP": "£", "JPY": "¥", "MXN": "MX$"}


def find_money(options: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the amounts of a message with their currencies; one without is in the field's own, if it has one."""
    field = options if isinstance(options, MoneyOptions) else MoneyOptions()
    found, code, last = list[Found](), "", 0
    for one in readings(message, context.language, decimals=_DIGITS, tokens=tokens_of(message.plain)):
        if one.value is None:
            code = code or one.code
            continue
        if one.start < last:  # the cents of the amount before
            continue
        value, start, end, currency = _with_currency(message, one, context)
        last = end
        explicit = bool(currency)
        currency = currency or field.currency
        if not explicit and one.weak:
            continue
        if not currency:
            code = code or "currency_missing"
            continue
        if currency == "?":
            code = code or "ambiguous_currency"
            continue
        found.append(message.found(_canonical(value, currency), start, end, filler("money") | filler("number")))
    explicit_ones = [one for one in found if _SIGNED.search(message.plain, one.start, one.end)]
    if explicit_ones:
        found = [*explicit_ones, *(one for one in found if one not in explicit_ones)]
    return found or (Problem(code) if code else [])


def _with_currency(message: Message, one: Reading, context: Context) -> tuple[Decimal, int, int, str]:
    """Return the amount, its span, and its currency: empty for none, "?" for one that is not known."""
    assert one.value is not None
    plain, value, start, end = message.plain, one.value, one.start, one.end
    before = _BEFORE.search(plain, max(0, start - 24), start)
    after = _AFTER.match(plain, end)
    name = after["name"] if after is not None else before["name"] if before is not None else ""
    if not name:
        return value, start, end, ""
    if name in _PARTS:
        return value, start, end, ""
    if after is not None:
        end = after.end("name")
        if before is not None and _currency(before["name"], context) == _currency(name, context):
            start = before.start()
        if after["rest"] and value == int(value):  # 15 € 50
            value, end = value + Decimal(after["rest"].strip()) / 100, after.end("rest")
        cents = _CENTS.match(plain, end)
        if cents is not None and value == int(value):
            value, end = value + Decimal(cents["cents"]) / 100, cents.end()
    elif before is not None:
        start = before.start()
    if plain[start - 1 : start] == "-":
        value, start = -abs(value), start - 1
    return value, start, end, _currency(name, context)


def _currency(name: str, context: Context) -> str:
    name = " ".join(name.split())
    if name in _CODES:
        return _CODES[name]
    if name in _WORDS:
        return _WORDS[name]
    regional = groups("regional_currencies")
    if name == "$":
        return _DOLLARS.get(context.region, "USD")
    if name in regional["dollar"]:
        own = _DOLLARS.get(context.region, "USD")
        return own if own in _OWN_DOLLARS else "USD"
    if name in regional["peso"]:
        return _PESOS.get(context.region, "?")
    return ""


def _canonical(value: Decimal, currency: str) -> str:
    digits = 0 if currency in _WITHOUT_DECIMALS and value == int(value) else _DIGITS
    if -int(value.normalize().as_tuple().exponent) > digits:
        return f"{currency} {value.normalize():f}"
    return f"{currency} {value:.{digits}f}"


def check_money(options: Options, value: str, _: Context) -> str | Problem:
    """Return an amount such as EUR 12.00 within its bounds, in an allowed currency."""
    match = re.fullmatch(r"\s*([A-Za-z]{3})\s+(-?\d+(?:\.\d+)?)\s*", value)
    field = options if isinstance(options, MoneyOptions) else MoneyOptions()
    if match is None:
        amount, currency = parse_decimal(value), field.currency
    else:
        amount, currency = parse_decimal(match[2]), match[1].upper()
    if amount is None:
        return Problem("not_an_amount")
    if not currency:
        return Problem("currency_missing")
    if currency not in set(_CODES.values()):
        return Problem("unknown_currency")
    allowed: Sequence[str] = field.currencies or ((field.currency,) if field.currency else ())
    if allowed and currency not in allowed:
        return Problem("currency_not_allowed", {"currencies": ", ".join(allowed)})
    places = -int(amount.normalize().as_tuple().exponent)
    if places > (0 if currency in _WITHOUT_DECIMALS else _DIGITS):
        return Problem("too_many_decimals", {"decimals": "0" if currency in _WITHOUT_DECIMALS else str(_DIGITS)})
    return out_of_bounds(amount, field.minimum, field.maximum) or _canonical(amount, currency)


def show_money(value: str, language: Language) -> str:
    """Return an amount as it is written: 1.234,50 € or €1,234.50."""
    currency, _, amount = value.partition(" ")
    number = show_number(amount, language)
    sign = _SIGNS.get(currency, currency)
    if language == "es":
        return f"{number} {sign}"
    return f"{sign}{number}" if sign in {"€", "£", "¥", "US$", "MX$"} else f"{number} {currency}"
