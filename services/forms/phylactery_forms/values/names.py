"""Texts, names of persons, and postal addresses: what people write freely."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from phylactery_forms.values.message import Message, alternatives, filler, words
from phylactery_forms.values.model import Context, Found, Options, Problem, TextOptions

# ---- text --------------------------------------------------------------------

_INVISIBLE: Final = frozenset({"Cc", "Cn", "Co", "Cs"})
_STRIPPED: Final = frozenset(
    "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\u00ad"
)
_BLANKS: Final = re.compile(r"[^\S\n]+")


def tidy(text: str) -> str:
    """Return a text in composed form, without control, zero-width and direction-changing characters."""
    kept = (
        one
        for one in unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
        if one in "\n\t" or (one not in _STRIPPED and unicodedata.category(one) not in _INVISIBLE)
    )
    lines = (_BLANKS.sub(" ", line).strip() for line in "".join(kept).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def find_text(_: Options, message: Message, __: Context) -> list[Found] | Problem:
    """Return the whole message as the text."""
    text = tidy(message.text)
    return [Found(text, 0, message.written, whole=True)] if text else []


def check_text(options: Options, value: str, _: Context) -> str | Problem:
    """Return a tidy text within its bounds."""
    bounds = options if isinstance(options, TextOptions) else TextOptions()
    text = tidy(value)
    if not bounds.lines:
        text = " ".join(text.split())
    if not text:
        return Problem("empty")
    if len(text) < bounds.minimum:
        return Problem("too_short", {"minimum": str(bounds.minimum)})
    if len(text) > bounds.maximum:
        return Problem("too_long", {"maximum": str(bounds.maximum)})
    return text


# ---- names of persons --------------------------------------------------------

_LEADS: Final = re.compile(
    rf"(?:^|[\s,;:.!¡]){alternatives(words('name_leads'))}(?:\s+{alternatives(words('name_titles'))}\.?)?[\s:,]+"
)
_GREETING: Final = re.compile(
    rf"^(?:[\s,;:.!¡-]*(?:{alternatives(words('name_greetings'))})(?![^\W_]))*[\s,;:.!¡-]*"
    rf"(?:{alternatives(words('name_titles'))}\.?\s+)?"
)
_NAME: Final = re.compile(
    r"(?:[^\W\d_]+\.?(?:['’\-·][^\W\d_]+)*\.?)(?:[ \t]+(?:[^\W\d_]+\.?(?:['’\-·][^\W\d_]+)*\.?))*"
)
_BEFORE: Final = re.compile(rf"(?<![^\W_]){alternatives(words('name_prepositions'))}\s+")
_END: Final = re.compile(rf"[,;.!?\n]|\s(?:{alternatives(words('name_ends'))})(?![^\W_])")
_PARTICLES: Final = words("name_particles")
_NO_NAMES: Final = words("no_names")
_MOST_NAME_WORDS: Final = 7
_MOST_NAME: Final = 100


def find_person_name(_: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the name that a message is, or introduces: me llamo Ana Ruiz, my name is …; nothing is guessed."""
    for lead in _LEADS.finditer(message.plain):
        found = _name_at(message, lead.end(), context, introduced=True)
        if found is not None:
            return [found]
    greeting = _GREETING.match(message.plain)
    found = _name_at(message, greeting.end() if greeting else 0, context, introduced=False)
    if found is None:  # to Ann Lee, share it with Grace: a name with a capital, behind the last such word
        for lead in reversed([*_BEFORE.finditer(message.plain)]):
            if message.text[lead.end() :][:1].isupper() and "?" not in message.plain:
                found = _name_at(message, lead.end(), context, introduced=True)
                break
    return [] if found is None else [found]


def _name_at(message: Message, start: int, context: Context, *, introduced: bool) -> Found | None:
    end_of = _END.search(message.plain, start)
    end = end_of.start() if end_of is not None else len(message.text)
    if end_of is not None and end_of[0] == ".":  # the dot of an initial or a title: J. Pérez
        longer = _NAME.match(message.text, start)
        end = max(end, longer.end()) if longer is not None else end
    text = message.text[start:end].strip()
    start += len(message.text[start:end]) - len(message.text[start:end].lstrip())
    match = _NAME.fullmatch(text)
    if match is None or (not introduced and message.plain.count("?") + message.plain.count("¿")):
        return None
    said = re.findall(r"[^\W\d_]+", message.plain[start : start + len(text)])
    if len(said) > (_MOST_NAME_WORDS if introduced else 5) or all(one in _NO_NAMES for one in said):
        return None
    if any(one in _NO_NAMES for one in said) and not (introduced and text[:1].isupper()):
        return None
    value = check_person_name(Options(), text, context)
    if not isinstance(value, str):
        return None
    return message.found(value, start, start + len(text), filler("person_name"))


def check_person_name(_: Options, value: str, __: Context) -> str | Problem:
    """Return a name with capitals where it has none."""
    text = " ".join(tidy(value).split()).strip(" ,;:!\"'")
    if not text or len(text) > _MOST_NAME:
        return Problem("not_a_name")
    if not _NAME.fullmatch(text) or sum(one.isalpha() for one in text) < 2:
        return Problem("not_a_name")
    if len(text.split()) > _MOST_NAME_WORDS + 1 or re.search(r"(.)\1{3}", text.lower()):
        return Problem("not_a_name")
    return _capitalised(text) if text in {text.lower(), text.upper()} else text


def _capitalised(text: str) -> str:
    parts = text.lower().split()
    return " ".join(
        one if place and one in _PARTICLES else re.sub(r"(^|['’\-·])(\w)", lambda m: m[1] + m[2].upper(), one)
        for place, one in enumerate(parts)
    )


# ---- addresses ---------------------------------------------------------------

_ADDRESS_LEADS: Final = re.compile(
    rf"^(?:[\s,;:.!¡-]*(?:{alternatives(words('address_leads'))})(?![^\W_]))*[\s,;:.!¡-]*"
)
_STREETS: Final = re.compile(rf"(?<![^\W_])(?:{alternatives(words('street_words'))})(?![^\W_])")
_THANKS: Final = re.compile(rf"[\s,;.!]+(?:{alternatives(words('courtesies'))})[\s.!]*$")
_LEAST_ADDRESS: Final = 5
_MOST_ADDRESS: Final = 400


def find_address(_: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the postal address that a message is: a street and a number, or a name of a street and a place."""
    lead = _ADDRESS_LEADS.match(message.plain)
    start = lead.end() if lead else 0
    street = _STREETS.search(message.plain)
    if street is not None and street.start() > start and len(message.plain[start : street.start()].split()) > 3:
        start = street.start()
    thanks = _THANKS.search(message.plain, start)
    end = thanks.start() if thanks else len(message.text)
    text = message.text[start:end].strip()
    plain = message.plain[start:end]
    has_number = re.search(r"\d", text) is not None and re.search(r"[^\W\d_]{3}", text) is not None
    if "@" in text or "?" in plain or "¿" in plain or not (has_number or street is not None):
        return []
    value = check_address(_, text, context)
    if not isinstance(value, str):
        return value
    return [message.found(value, start, end, filler("address"))]


def check_address(_: Options, value: str, __: Context) -> str | Problem:
    """Return an address with single spaces; lines become commas. Whether the place exists is not known."""
    lines = (" ".join(line.split()).strip(" ,;") for line in tidy(value).split("\n"))
    text = ", ".join(line for line in lines if line).strip(" ,;.")
    if len(text) < _LEAST_ADDRESS or not re.search(r"[^\W\d_]{2}", text):
        return Problem("not_an_address")
    if len(text) > _MOST_ADDRESS:
        return Problem("too_long", {"maximum": str(_MOST_ADDRESS)})
    return text
