"""Phone numbers as they are compared: every spelling of a subscriber's number has one form."""

from __future__ import annotations

import re
from typing import Final

import phonenumbers

_SPELLED: Final = re.compile(r"\+?[0-9().\-/]+")
_UNSEEN: Final = re.compile(r"[\s\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
"""Spaces, and the marks of direction that come with a number copied out of an application."""
_FEWEST, _MOST = 7, 20
_SAME: Final = (
    (re.compile(r"521(\d{10})"), r"52\1"),
    (re.compile(r"549(\d{10})"), r"54\1"),
    (re.compile(r"55([1-9]\d)([6-9]\d{7})"), r"55\g<1>9\2"),
)
"""Two numbers of one subscriber. Mexico wrote a 1 before mobile numbers until 2019, and Argentina writes a 9 in calls
from abroad: both go. Brazil put a 9 before the eight digits of mobile numbers, which began with 6 to 9: it is added,
because with it no such number is another's. WhatsApp knows people by either."""


def with_country(text: str) -> str | None:
    """Return the normal form of a number whose spelling says that its country is in it, None for any other.

    That is +34…, 0034…, or nothing but digits, as a channel writes it. "600 000 001" is how people write a number at
    home, and would be somebody's in Malaysia.
    """
    spelled = _UNSEEN.sub(" ", text).strip()
    return normal(text) if spelled.isdecimal() or spelled.startswith(("+", "00")) else None


def normal(text: str) -> str | None:
    """Return a number's digits from its country on, in the one form of all its spellings; None if it is no number.

    A number is read with its country: +34…, 0034… and 34… are the same, and nobody's country is guessed. A trunk
    prefix goes (+44 (0)20…) and Italy's zero, which belongs to the number, stays. Renumberings whose two forms do not
    tell each other (Benin, Ivory Coast) are two numbers.
    """
    spelled = _UNSEEN.sub("", text)
    if not text.isascii():
        spelled = spelled.replace("\u2011", "-").replace("\u2013", "-")
    if not _SPELLED.fullmatch(spelled):
        return None
    international = re.sub(r"^\+?(?:00)?", "", spelled)
    digits = re.sub(r"\D", "", international)
    if not _FEWEST <= len(digits) <= _MOST or digits.startswith("0"):
        return None
    try:
        read = phonenumbers.parse(f"+{international}", None)
    except phonenumbers.NumberParseException:
        return digits
    digits = f"{read.country_code}{phonenumbers.national_significant_number(read)}"
    for form, one in _SAME:
        digits = form.sub(one, digits) if form.fullmatch(digits) else digits
    return digits
