"""National identity and tax numbers, by country, with their check digits where those are public.

Each country's rule is that of its authority: ES DNI and NIE (modulo 23) and company NIF, AR CUIT and CUIL, CL RUT, CO
NIT, EC cédula, MX CURP and RFC, PT NIF, UY cédula, BR CPF and CNPJ, and the format of the US SSN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Final

from phylactery_forms.values.message import Message, filler
from phylactery_forms.values.model import Context, Found, IdOptions, Options, Problem

_LETTERS: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_MOST: Final = 12
_TEN, _ELEVEN = 10, 11


def _weighted(digits: str, weights: Sequence[int]) -> int:
    return sum(int(one) * weight for one, weight in zip(digits, weights, strict=True))


def _spain(text: str) -> str | None:
    if re.fullmatch(r"\d{8}[A-Z]", text):
        return text if _LETTERS[int(text[:8]) % 23] == text[8] else None
    if re.fullmatch(r"[XYZ]\d{7}[A-Z]", text):
        number = int(str("XYZ".index(text[0])) + text[1:8])
        return text if _LETTERS[number % 23] == text[8] else None
    if re.fullmatch(r"[KLM]\d{7}[A-Z]", text):
        return text if _LETTERS[int(text[1:8]) % 23] == text[8] else None
    if re.fullmatch(r"[ABCDEFGHJNPQRSUVW]\d{7}[0-9A-J]", text):
        doubled = (int(one) * 2 for one in text[1:8:2])
        total = sum(one // 10 + one % 10 for one in doubled) + sum(int(one) for one in text[2:8:2])
        check = (10 - total % 10) % 10
        digit, letter = str(check), "JABCDEFGHI"[check]
        wanted = {letter} if text[0] in "PQRSNW" else {digit} if text[0] in "ABEH" else {digit, letter}
        return text if text[8] in wanted else None
    return None


def _argentina(text: str) -> str | None:
    if not re.fullmatch(r"(?:20|2[3-7]|30|33|34)\d{9}", text):
        return None
    rest = 11 - _weighted(text[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    check = 0 if rest == _ELEVEN else rest
    return f"{text[:2]}-{text[2:10]}-{text[10]}" if check == int(text[10]) else None


def _chile(text: str) -> str | None:
    if not re.fullmatch(r"\d{7,8}[0-9K]", text):
        return None
    weights = [2 + place % 6 for place in range(len(text) - 1)]
    rest = 11 - _weighted(text[-2::-1], weights) % 11
    check = {10: "K", 11: "0"}.get(rest, str(rest))
    return f"{text[:-1]}-{text[-1]}" if check == text[-1] else None


def _colombia(text: str) -> str | None:
    """Return a NIT with its digit; a cédula of 6 to 10 digits has none."""
    if re.fullmatch(r"\d{9}-?\d", text.replace(" ", "")) or re.fullmatch(r"\d{10}", text):
        digits = text.replace("-", "")
        rest = _weighted(digits[8::-1], (3, 7, 13, 17, 19, 23, 29, 37, 41)) % 11
        check = rest if rest < 2 else 11 - rest
        if check == int(digits[9]):
            return f"{digits[:9]}-{digits[9]}"
    return text if re.fullmatch(r"\d{6,8}|1\d{9}", text) else None


def _mexico(text: str) -> str | None:
    curp = re.fullmatch(
        r"([A-Z][AEIOUX][A-Z]{2})(\d{2})(\d{2})(\d{2})[HMX][A-Z]{2}[B-DF-HJ-NP-TV-Z]{3}([0-9A-Z])(\d)", text
    )
    if curp is not None:
        alphabet = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
        total = sum(alphabet.index(one) * (18 - place) for place, one in enumerate(text[:17]))
        return text if (10 - total % 10) % 10 == int(text[17]) and _is_day(curp[2], curp[3], curp[4]) else None
    rfc = re.fullmatch(r"([A-ZÑ&]{3,4})(\d{2})(\d{2})(\d{2})[A-Z0-9]{2}([0-9A])", text)
    if rfc is None or not _is_day(rfc[2], rfc[3], rfc[4]):
        return None
    alphabet = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ Ñ"
    padded = text.rjust(13)
    total = sum(alphabet.index(one) * (13 - place) for place, one in enumerate(padded[:12]))
    rest = 11 - total % 11
    return text if {10: "A", 11: "0"}.get(rest, str(rest)) == text[-1] else None


def _is_day(year: str, month: str, day: str) -> bool:
    for century in (1900, 2000):
        try:
            date(century + int(year), int(month), int(day))
        except ValueError:
            continue
        return True
    return False


def _portugal(text: str) -> str | None:
    if not re.fullmatch(r"[1235689]\d{8}|45\d{7}|7[0124579]\d{7}", text):
        return None
    rest = _weighted(text[:8], (9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return text if (0 if rest < 2 else 11 - rest) == int(text[8]) else None


def _brazil(text: str) -> str | None:
    if re.fullmatch(r"\d{11}", text) and len(set(text)) > 1:
        for size in (9, 10):
            rest = _weighted(text[:size], range(size + 1, 1, -1)) * 10 % 11 % 10
            if rest != int(text[size]):
                return None
        return text
    if re.fullmatch(r"\d{14}", text) and len(set(text)) > 1:
        for size in (12, 13):
            weights = [*range(size - 7, 1, -1), *range(9, 1, -1)]
            rest = _weighted(text[:size], weights) % 11
            if (0 if rest < 2 else 11 - rest) != int(text[size]):
                return None
        return text
    return None


def _ecuador(text: str) -> str | None:
    if not re.fullmatch(r"(?:0[1-9]|1\d|2[0-4]|30)[0-5]\d{7}", text):
        return None
    doubled = (int(one) * (2 - place % 2) for place, one in enumerate(text[:9]))
    total = sum(one - 9 if one > 9 else one for one in doubled)
    return text if (10 - total % 10) % 10 == int(text[9]) else None


def _uruguay(text: str) -> str | None:
    if not re.fullmatch(r"\d{7,8}", text):
        return None
    digits = text.zfill(8)
    check = (10 - _weighted(digits[:7], (2, 9, 8, 7, 6, 3, 4)) % 10) % 10
    return f"{int(digits[:7])}-{digits[7]}" if check == int(digits[7]) else None


def _united_states(text: str) -> str | None:
    """Return a social security number in its format; it has no check digit."""
    match = re.fullmatch(r"(?!000|666|9)(\d{3})(?!00)(\d{2})(?!0000)(\d{4})", text)
    return f"{match[1]}-{match[2]}-{match[3]}" if match else None


def _peru(text: str) -> str | None:
    """Return a DNI, or a RUC, which has a check digit."""
    if re.fullmatch(r"\d{8}", text):
        return text
    if not re.fullmatch(r"(?:10|15|16|17|20)\d{9}", text):
        return None
    rest = 11 - _weighted(text[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return text if rest % 10 == int(text[10]) else None


_RULES: Final[Mapping[str, Callable[[str], str | None]]] = {
    "AR": _argentina,
    "BR": _brazil,
    "CL": _chile,
    "CO": _colombia,
    "EC": _ecuador,
    "ES": _spain,
    "MX": _mexico,
    "PE": _peru,
    "PT": _portugal,
    "US": _united_states,
    "UY": _uruguay,
}
COUNTRIES: Final = frozenset(_RULES)
"""The countries whose national ids are known."""
_CANDIDATE: Final = re.compile(
    r"(?<![\w])[a-zñ&]{0,4}(?:[\s.\-/]?[a-z0-9]){6,18}(?![\w])|(?<![\w])\d{1,3}(?:[.\s]\d{3}){2}[\s-]?[\dk](?!\w)"
)
_PIECE: Final = re.compile(r"[a-z0-9ñ&]+(?:[.\-/][a-z0-9ñ&]+)*")


def find_national_id(options: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the national ids of a message, in the form of their authority."""
    pieces = [one.span() for one in _PIECE.finditer(message.plain)]
    found, tried = list[Found](), False
    for first in range(min(len(pieces), 60)):
        for last in range(min(first + 4, len(pieces) - 1), first - 1, -1):
            start, end = pieces[first][0], pieces[last][1]
            text = message.text[start:end]
            if len(text) > 24 or sum(one.isdigit() for one in text) < 6:
                continue
            if any(start < one.end and one.start < end for one in found) or "\n" in text:
                continue
            value = check_national_id(options, text, context)
            if isinstance(value, str):
                found.append(message.found(value, start, end, filler("national_id")))
            elif first == last or all(one.isdigit() or one in " .-/" for one in text):
                tried = tried or sum(one.isdigit() for one in text) >= 7
        if len(found) >= _MOST:
            break
    return found or (Problem("not_an_id") if tried else [])


def check_national_id(options: Options, value: str, context: Context) -> str | Problem:
    """Return a national id of one of the field's countries; its check digit must be right."""
    countries = options.countries if isinstance(options, IdOptions) and options.countries else (context.region,)
    text = re.sub(r"[\s.\-/_]", "", value).upper()
    known = [one for one in countries if one in _RULES]
    for country in known:
        found = _RULES[country](text)
        if found is not None:
            return found
    if not known and re.fullmatch(r"[A-Z0-9]{5,20}", text) and any(one.isdigit() for one in text):
        return text  # a country without a rule here: the form of an id is all that is known
    return Problem("not_an_id", {"countries": ", ".join(countries)})
