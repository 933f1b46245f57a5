"""Contact data: e-mail addresses, phone numbers, IP addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

import phonenumbers

from phylactery_chassis.inspection.candidates import OTHER_NUMBERS, Candidate, Sight, digits_of, text_of
from phylactery_chassis.inspection.expressions import expression
from phylactery_chassis.inspection.kinds import Confidence, FindingKind
from phylactery_chassis.inspection.text import LETTER

_HOME = phonenumbers.country_code_for_region("ES")
"""The country of a number without a country code. Spain has no trunk prefix for domestic calls."""

_EMAIL = expression(
    rf"[A-Za-z0-9{LETTER}](?:[A-Za-z0-9{LETTER}._%+'-])*@"
    rf"(?:[A-Za-z0-9{LETTER}][A-Za-z0-9{LETTER}-]*\.)+(?:xn--[A-Za-z0-9-]+|[A-Za-z{LETTER}]{{2,}})"
)
_MAX_LOCAL, _MAX_EMAIL = 64, 254
_FILE_ENDING = expression(r"(?i)\.(?:png|jpe?g|gif|svg|webp|avif|ico|s?css|m?[jt]sx?|py|rb|md|json|html?)$")

_ABROAD = expression(r"(?:\+ ?|\b00 ?)\(?[1-9](?:[ .()/-]{0,2}[0-9]){6,14}")
_AT_HOME = expression(r"(?:\b|\()[6-9](?:[ .()/-]{0,2}[0-9]){8}\b")
_GROUPS = expression(
    r"[0-9]{3} [0-9]{3} [0-9]{3}|[0-9]{3}[ -][0-9]{2}[ -][0-9]{2}[ -][0-9]{2}|"
    r"[0-9]{2} [0-9]{3} [0-9]{2} [0-9]{2}|[0-9]{3}-[0-9]{3}-[0-9]{3}"
)
_PHONE_WORDS = expression(
    r"\b(?:TEL|TELF|TLF|TFNO|TELEFONOS?|TELEPHONE|PHONE|MOVIL|MOBILE|CELULAR|CELL|FAX|WHATSAPP|LLAM[A-Z]+|CALL|TELEFONE|"
    r"HANDY|PORTABLE)\b"
)
_AMOUNT_AFTER = expression(r" ?(?:\$|EUR\b|EUROS?\b|USD\b|DOLAR|HABITANTES|UNIDADES)|[.,/-][0-9]| [0-9]{1,4}\b")
_NUMBER_BEFORE = expression(r"(?:[0-9][.,/-]|[A-Z][/=-]|\$ ?)$")
_NATIONAL_DIGITS = 9
_MAX_LOOKED_UP = 2_000
"""How many numbers per text are looked up in the numbering plans (50 us each); later ones count as phone numbers."""

_IPV4 = expression(r"\b[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\b")
_IPV6 = expression(r"\b[0-9A-F]{1,4}:[0-9A-F:]{2,34}[0-9A-F]\b")
_VERSION_WORDS = expression(r"(?:\bV|\bVERSION|\bVER|\bRELEASE|\bBUILD|\bFIRMWARE|=)[ :.]{0,2}$")
_DOT_BESIDE = expression(r"\.[0-9]")


def emails(sight: Sight) -> Iterator[Candidate]:
    """Find all e-mail addresses, international ones included."""
    for found in _EMAIL.finditer(sight.data):
        start, end = found.span()
        local, _, domain = sight.data[start:end].rpartition(b"@")
        if len(local) > _MAX_LOCAL or end - start > _MAX_EMAIL or _FILE_ENDING.search(domain) is not None:
            continue
        remote = local == b"git" and sight.data[end : end + 1] == b":"
        yield Candidate(start, end, FindingKind.EMAIL, Confidence.LOW if remote else Confidence.HIGH, "email")


class _Plans:
    """The numbering plans, with a bounded number of lookups per text."""

    def __init__(self) -> None:
        self._left = _MAX_LOOKED_UP

    def abroad(self, digits: str) -> bool:
        """Return True if a country code and the digits after it form a possible number."""
        if self._spent():
            return True
        try:
            return phonenumbers.is_valid_number(phonenumbers.parse("+" + digits))
        except phonenumbers.NumberParseException:
            return False

    def at_home(self, digits: str) -> bool:
        """Return True if the digits form a possible domestic number."""
        number = phonenumbers.PhoneNumber(country_code=_HOME, national_number=int(digits))
        return self._spent() or phonenumbers.is_valid_number(number)

    def _spent(self) -> bool:
        self._left -= 1
        return self._left < 0


def phones(sight: Sight) -> Iterator[Candidate]:
    """Find all phone numbers, with a country code or in domestic form."""
    plans = _Plans()
    data = sight.numbers
    for found in _ABROAD.finditer(data):
        start, end = found.span()
        for stop in _ends(data, start, end):
            digits = digits_of(data[start:stop])
            if plans.abroad(digits if data[start] == ord("+") else digits[2:]):
                yield Candidate(start, stop, FindingKind.PHONE, Confidence.HIGH, "phone-international")
                break
    for found in _AT_HOME.finditer(data):
        start, end = found.span()
        if plans.at_home(digits_of(data[start:end])):
            yield Candidate(start, end, FindingKind.PHONE, _at_home(sight, start, end), "phone-national")


def _ends(data: bytes, start: int, end: int) -> Iterator[int]:
    """Yield the possible ends of a number: its end, or an earlier separator, because another number may follow."""
    if not data[end : end + 1].isdigit():
        yield end
    tried = 1
    for place in range(end - 1, start + 7, -1):
        if not data[place : place + 1].isdigit() and data[place - 1 : place].isdigit():
            yield place
            tried += 1
            if tried == 4:  # noqa: PLR2004 - a date after the number has three parts
                return


def _at_home(sight: Sight, start: int, end: int) -> Confidence:
    """Rate nine digits, often a price or an order number, by the word before them and their grouping."""
    data = sight.numbers
    if sight.said_before(start, _PHONE_WORDS):
        return Confidence.HIGH
    amount = _AMOUNT_AFTER.match(data, end) is not None
    longer = _NUMBER_BEFORE.search(data[max(0, start - 2) : start]) is not None
    if amount or longer or sight.said_before(start, OTHER_NUMBERS):
        return Confidence.LOW
    mobile = data[start] in b"67" and end - start == _NATIONAL_DIGITS
    return Confidence.MEDIUM if mobile or _GROUPS.match(data, start, end) is not None else Confidence.LOW


def addresses(sight: Sight) -> Iterator[Candidate]:
    """Find IP addresses; those of private networks reveal little about a person."""
    data = sight.numbers
    for pattern, rule in ((_IPV4, "ipv4"), (_IPV6, "ipv6")):
        for found in pattern.finditer(data):
            start, end = found.span()
            try:
                address = ipaddress.ip_address(text_of(data[start:end]))
            except ValueError:
                continue
            version = _VERSION_WORDS.search(data[max(0, start - 12) : start]) is not None
            longer = _DOT_BESIDE.match(data, end) is not None or data[start - 1 : start] in (b".", b":")
            sure = Confidence.MEDIUM if address.is_global and not version and not longer else Confidence.LOW
            yield Candidate(start, end, FindingKind.IP_ADDRESS, sure, rule)
