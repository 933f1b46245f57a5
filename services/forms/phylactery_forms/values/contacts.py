"""E-mail addresses, phone numbers and web addresses."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

import phonenumbers
from email_validator import EmailNotValidError, validate_email

from phylactery_forms.values.message import MAX_CHARACTERS, Message, alternatives, filler, groups, read_message, words
from phylactery_forms.values.model import Context, Found, Language, Options, PhoneOptions, Problem, UrlOptions

REGIONS: Final = frozenset(phonenumbers.SUPPORTED_REGIONS)
"""ISO 3166 codes of the countries that a context may name."""
_MOST: Final = 16
"""The maximum number of candidates that are tried in one message."""

# ---- e-mail ------------------------------------------------------------------

_ADDRESS: Final = re.compile(r"[^\s<>()\[\],;:\"«»“”|]+@[^\s<>()\[\],;:\"«»“”|@]+")
_QUOTED: Final = re.compile(r"\"[^\"\n]{1,62}\"@[^\s<>()\[\],;:\"«»“”|@]+")
_SIGNS: Final = {name: sign for sign, names in groups("spelled_signs").items() for name in names}
_SIGN: Final = alternatives(name for name, sign in _SIGNS.items() if sign not in {"@", "@en"})
_AT_WORDS: Final = tuple(name for name, sign in _SIGNS.items() if sign in {"@", "@en"})
_PART: Final = rf"[a-z0-9+_-]+(?:(?:\.|\s+{_SIGN}\s+)[a-z0-9+_-]+)*"
_SPELLED: Final = re.compile(
    rf"(?<![a-z0-9+_.-])(?P<local>{_PART})\s+{alternatives(_AT_WORDS)}\s+"
    rf"(?P<host>[a-z0-9-]+(?:(?:\s*\.\s*|\s+{_SIGN}\s+)[a-z0-9-]+)+)(?![a-z0-9])"
)
_TRIES: Final = re.compile(r"@|\barroba\b")


def find_email(_: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the addresses of a message, written or spelled out: ana punto ruiz arroba example punto com."""
    found = list[Found]()
    spans = [one.span() for one in (*_QUOTED.finditer(message.text), *_ADDRESS.finditer(message.text))]
    for begin, end in spans[:_MOST]:
        kept = message.text[begin:end].rstrip(".!?…'*_")
        kept = kept.lstrip("'*¿¡")
        kept = kept[7:] if kept.lower().startswith("mailto:") else kept
        start = message.text.index(kept, begin)
        value = check_email(_, kept, context)
        if isinstance(value, str) and not any(one.start <= message.places[start] < one.end for one in found):
            found.append(message.found(value, start, start + len(kept), filler("email")))
    if not found:
        for match in _SPELLED.finditer(message.plain):
            value = check_email(_, f"{_unspelled(match['local'])}@{_unspelled(match['host'])}", context)
            if isinstance(value, str):
                found.append(message.found(value, *match.span(), filler("email")))
    return found or (Problem("not_an_email") if _TRIES.search(message.plain) else [])


def _unspelled(words: str) -> str:
    return re.sub(rf"\s+({_SIGN})\s+", lambda one: _SIGNS[" ".join(one[1].split())], words).replace(" ", "")


def check_email(_: Options, value: str, __: Context) -> str | Problem:
    """Return an address in its normal form; whether it takes mail is not asked of the network."""
    try:
        return validate_email(value, check_deliverability=False, allow_quoted_local=True, strict=True).normalized
    except EmailNotValidError:
        return Problem("not_an_email")


# ---- phone -------------------------------------------------------------------

_DIGITS: Final = re.compile(r"(?:\+|00|\()?\d(?:[\s().\-/]*\d){5,19}(?:\s*(?:ext|x|int|extension)\.?\s*\d{1,6})?(?!\d)")
_NO_PHONE: Final = re.compile(
    r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d{2}))(?:[ t]\d{1,2}[:.]\d{2}(?:[:.]\d{2})?)?"
    r"|\d{1,2}/\d{4}/\d{1,2}|(?:19|20)\d{2}\s*[-–]\s*(?:19|20)\d{2}|\d{1,3}(?:\.\d{1,3}){3}|\d+[.,]\d+"
)
_ALONE: Final = re.compile(rf"(?<![\d.\-/+])(?:{_NO_PHONE.pattern})(?![\d]|[.\-/]\d)")
_EXTENSION: Final = re.compile(r"\s*(?:ext|x|int|extension)\.?\s*\d{1,6}$")
_FORMER_MEXICO: Final = re.compile(r"(?:00|011)?521(\d{10})")
_FORMER_AT_HOME: Final = re.compile(r"(?:04[45]|01)(\d{10})")
_OWN_WORDS: Final = alternatives(words("own_number"))
_OWN: Final = re.compile(rf"(?<![a-z0-9]){_OWN_WORDS}(?:[\s,]+{_OWN_WORDS})*(?![a-z0-9])")
NO_OWN_PHONE: Final = "no_own_phone"
_LEAST_DIGITS: Final = 7
_MOST_DIGITS: Final = 15
_CARD: Final = range(13, 20)
"""The numbers of digits of a payment card."""


def find_phone(options: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the phone numbers of a message in E.164; dates, cards and amounts are none."""
    found, tried = list[Found](), False
    plain = _ALONE.sub(lambda one: "_" * len(one[0]), message.plain)
    for match in list(_DIGITS.finditer(plain))[:_MOST]:
        start, end = match.span()
        around = message.plain[start - 1 : start], message.plain[end : end + 1]
        if any(one.isalnum() or one in "@€$£%#_*=" for one in around if one):
            continue
        if around[0] in {".", ",", ":", "-", "/", "="} and message.plain[start - 2 : start - 1].isdigit():
            continue
        tried = True
        value = check_phone(options, message.text[start:end], context)
        if isinstance(value, str):
            found.append(message.found(value, start, end, filler("phone")))
    if found or tried:
        return found or Problem("not_a_phone")
    return _own_phone(options, message, context)


def names_own_phone(text: str) -> bool:
    """Return True if a message may mean the number the person writes from."""
    return len(text) <= MAX_CHARACTERS and _OWN.search(read_message(text).plain) is not None


def _own_phone(options: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the number the person writes from, if the whole message says that it is the one.

    Words around it could say anything of that number: it is not mine any more.
    """
    match = _OWN.search(message.plain)
    if match is None or not message.is_whole(*match.span(), words("own_number_filler")):
        return []
    value = check_phone(options, context.own_phone, context) if context.own_phone else Problem(NO_OWN_PHONE)
    if isinstance(value, Problem):
        return value
    return [Found(value, *message.span(*match.span()), whole=True, implied=True)]


def check_phone(options: Options, value: str, context: Context) -> str | Problem:
    """Return a number in E.164; the region stands for a missing country code."""
    level = options.level if isinstance(options, PhoneOptions) else "possible"
    text = _as_dialled_now(_EXTENSION.sub("", value.strip()), context.region)
    digits = "".join(one for one in text if one.isdigit())
    international = text.startswith("+")
    if not _LEAST_DIGITS <= len(digits) <= _MOST_DIGITS + 2 or len(set(digits)) == 1 or _NO_PHONE.fullmatch(text):
        return Problem("not_a_phone")
    if not international and len(digits) in _CARD and _luhn(digits):
        return Problem("not_a_phone")
    try:
        number = phonenumbers.parse(text, None if international else context.region)
        if text.startswith("00") and not phonenumbers.is_possible_number(number):
            number = phonenumbers.parse("+" + digits[2:], None)
    except phonenumbers.NumberParseException:
        return Problem("not_a_phone")
    possible = phonenumbers.is_possible_number(number)
    if (level == "possible" and not possible) or (level == "valid" and not phonenumbers.is_valid_number(number)):
        other = _with_plus(digits, level) if not international else None
        if other is None:
            return Problem("not_a_phone", {"level": level})
        number = other
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _as_dialled_now(text: str, region: str) -> str:
    """Return a Mexican number as it is dialled since 2019, any other as it is.

    Before, mobiles had a 1 behind the country code, which WhatsApp still writes, and 044, 045 or 01 before them at
    home.
    """
    digits = "".join(one for one in text if one.isdigit())
    if found := _FORMER_MEXICO.fullmatch(digits):
        return f"+52{found[1]}"
    former = _FORMER_AT_HOME.fullmatch(digits) if region == "MX" and not text.startswith("+") else None
    return former[1] if former else text


def _with_plus(digits: str, level: str) -> phonenumbers.PhoneNumber | None:
    """Return a number written with its country code but without the plus: 34 612 345 678."""
    try:
        number = phonenumbers.parse("+" + digits, None)
    except phonenumbers.NumberParseException:
        return None
    return number if level != "digits7" and phonenumbers.is_valid_number(number) else None


def _luhn(digits: str) -> bool:
    doubled = (int(one) * (2 if place % 2 else 1) for place, one in enumerate(reversed(digits)))
    return sum(one - 9 if one > 9 else one for one in doubled) % 10 == 0


def example_phone(region: str) -> str:
    """Return a mobile number of a region as it is written there, empty if none is known."""
    number = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL) if number else ""


def show_phone(value: str, _: Language) -> str:
    """Return a number as it is written in its country: +34 612 34 56 78."""
    try:
        number = phonenumbers.parse(value, None)
    except phonenumbers.NumberParseException:
        return value
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.INTERNATIONAL)


# ---- web addresses -----------------------------------------------------------

_WEB: Final = re.compile(r"(?<![\w@.])(?:[a-z][a-z0-9+.-]*://|www\.)[^\s<>«»“”\"|]+", re.IGNORECASE)
_BARE: Final = re.compile(r"(?<![\w@./-])(?:[\w-]+\.)+[^\W\d_]{2,24}(?::\d{1,5})?(?:[/?#][^\s<>«»“”\"|]*)?(?![\w@])")
_LABEL: Final = re.compile(r"(?!-)[^\W_](?:[\w-]{0,61}[^\W_])?")
_FORBIDDEN: Final = re.compile(r"[\s<>\"{}|\\^`]")
_LONGEST_URL: Final = 2_048
_LONGEST_HOST: Final = 253
_ENDINGS: Final = ".,;:!?…'*_"


def find_url(options: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the web addresses of a message; the first scheme is added to one without."""
    found, tried = list[Found](), False
    for expression in (_WEB, _BARE):
        for match in list(expression.finditer(message.text))[:_MOST]:
            kept = _trimmed(match[0])
            tried = tried or expression is _WEB
            value = check_url(options, kept, context)
            start = match.start()
            if isinstance(value, str) and not any(one.start <= message.places[start] < one.end for one in found):
                found.append(message.found(value, start, start + len(kept), filler("url")))
    return found or (Problem("not_a_url") if tried else [])


def _trimmed(text: str) -> str:
    """Return an address without the punctuation of its sentence; a bracket that it opened belongs to it."""
    kept = text.rstrip(_ENDINGS)
    while kept and kept[-1] in ")]" and kept.count(kept[-1]) > kept.count("(["[")]".index(kept[-1])]):
        kept = kept[:-1].rstrip(_ENDINGS)
    return kept


def check_url(options: Options, value: str, _: Context) -> str | Problem:
    """Return a web address whose parts are all well-formed; scheme and host are in lower case."""
    schemes = options.schemes if isinstance(options, UrlOptions) else ("https", "http")
    text = value.strip()
    if not text or len(text) > _LONGEST_URL or _FORBIDDEN.search(text) or not text.isprintable():
        return Problem("not_a_url")
    if "://" not in text:
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:(?!\d)", text) or text.startswith(("/", ":", "?", "#")):
            return Problem("not_a_url")
        text = f"{schemes[0]}://{text}"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return Problem("not_a_url")
    if parts.scheme.lower() not in schemes:
        return Problem("not_a_url", {"schemes": ", ".join(schemes)})
    if port == 0 or parts.netloc.endswith(":") or parts.netloc.count("@") > 1 or not _is_credentials(parts.netloc):
        return Problem("not_a_url")
    if not _is_host(host, parts.netloc) or re.search(r"%(?![0-9a-fA-F]{2})", parts.path):
        return Problem("not_a_url")
    return parts._replace(scheme=parts.scheme.lower(), netloc=_lower_host(parts.netloc)).geturl()


def _is_credentials(netloc: str) -> bool:
    """Return True if what is before the host is absent or well-formed: no second colon, slash or sign."""
    user, at, _ = netloc.rpartition("@")
    return not at or (
        user[:1] not in ("", ":") and user.count(":") <= 1 and not re.search(r"[/@:]", user.replace(":", "", 1))
    )


def _lower_host(netloc: str) -> str:
    user, at, host = netloc.rpartition("@")
    return f"{user}{at}{host.lower()}"


def _is_host(host: str, netloc: str) -> bool:
    bracketed = netloc.rpartition("@")[2].startswith("[")
    if bracketed or ":" in host:
        return bracketed and _is_address(host)
    if re.fullmatch(r"[\d.]+", host) or re.fullmatch(r"0x[0-9a-f.x]+", host):
        return _is_address(host)
    if host == "localhost":
        return True
    name = host.removesuffix(".")
    try:
        ascii_name = name.encode("idna").decode() if not name.isascii() else name
    except UnicodeError:
        return False
    labels = name.split(".")
    if len(labels) < 2 or len(ascii_name) > _LONGEST_HOST:
        return False
    top = labels[-1]
    top_is_name = len(top) > 1 and not top.isdigit() and (top.startswith("xn--") or top.replace("-", "").isalpha())
    return top_is_name and all(_LABEL.fullmatch(one) and "_" not in one for one in labels)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
