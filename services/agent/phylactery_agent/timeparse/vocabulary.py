"""Spanish and English time words, and the RE2 expressions built from them.

Every expression matches at the beginning of a text. Group names are unique within one expression, as RE2 requires.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import time
from typing import Final, Literal, TypeVar

from phylactery_agent.rules.expressions import expression

T = TypeVar("T")
Kind = Literal["exact", "distance", "every", "day", "part", "clock"]

_WEEKDAY_NAMES: Final = (
    ("lunes", "monday"),
    ("martes", "tuesday"),
    ("miercoles", "wednesday"),
    ("jueves", "thursday"),
    ("viernes", "friday"),
    ("sabado", "saturday"),
    ("domingo", "sunday"),
)
_MONTH_NAMES: Final = (
    ("enero", "january"),
    ("febrero", "february"),
    ("marzo", "march"),
    ("abril", "april"),
    ("mayo", "may"),
    ("junio", "june"),
    ("julio", "july"),
    ("agosto", "august"),
    ("septiembre", "september"),
    ("octubre", "october"),
    ("noviembre", "november"),
    ("diciembre", "december"),
)
WEEKDAYS: Final = {name: number for number, names in enumerate(_WEEKDAY_NAMES) for name in names}
"""Monday is 0."""
MONTHS: Final = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names} | {"setiembre": 9}
UNITS: Final = {
    **dict.fromkeys(("minuto", "minute", "min"), "minute"),
    **dict.fromkeys(("hora", "hour"), "hour"),
    **dict.fromkeys(("dia", "day", "daily", "a diario", "diariamente"), "day"),
    **dict.fromkeys(("semana", "week", "weekly", "semanalmente"), "week"),
    **dict.fromkeys(("mes", "month", "monthly", "mensualmente"), "month"),
    **dict.fromkeys(("ano", "year", "yearly", "anualmente"), "year"),
}
PART_WORDS: Final = {
    **dict.fromkeys(("manana", "morning"), "morning"),
    **dict.fromkeys(("tarde", "afternoon"), "afternoon"),
    "evening": "evening",
    **dict.fromkeys(("noche", "night", "tonight"), "night"),
    "madrugada": "dawn",
}
PART_TIMES: Final = {
    "morning": time(9),
    "afternoon": time(17),
    "evening": time(19),
    "night": time(21),
    "dawn": time(6),
}
"""The default time of a part of the day."""
AFTERNOON: Final = frozenset({"afternoon", "evening", "night"})
"""Parts of the day in which five o'clock is 17:00."""
_NUMBER_WORDS: Final = (
    ("un", "una", "a", "an", "one"),
    ("dos", "two"),
    ("tres", "three"),
    ("cuatro", "four"),
    ("cinco", "five"),
    ("seis", "six"),
    ("siete", "seven"),
    ("ocho", "eight"),
    ("nueve", "nine"),
    ("diez", "ten"),
    ("once", "eleven"),
    ("doce", "twelve"),
)
_NUMBERS: Final = {name: number for number, names in enumerate(_NUMBER_WORDS, 1) for name in names} | {
    "quince": 15,
    "fifteen": 15,
    "veinte": 20,
    "twenty": 20,
    "treinta": 30,
    "thirty": 30,
}
HALVES: Final = {"y media": 30, "y cuarto": 15, "menos cuarto": -15, "en punto": 0}
"""Minutes given after the hour."""


def fold(text: str) -> str:
    """Return a text in lower case, without accents and with single spaces."""
    decomposed = unicodedata.normalize("NFKD", " ".join(text.casefold().split()))
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def word(text: str, table: Mapping[str, T]) -> T:
    """Return the meaning of a word of an expression, including plurals."""
    name = fold(text)
    return table[next(known for known in (name, name.removesuffix("s"), name.removesuffix("es")) if known in table)]


def number_of(text: str) -> int:
    """Return a number written in figures or words."""
    return int(text) if text.isascii() and text.isdigit() else _NUMBERS[fold(text)]


def _any(names: Mapping[str, object] | tuple[str, ...]) -> str:
    """Return the expression for any of the words, with or without accents."""
    accented = {"a": "[aá]", "e": "[eé]", "i": "[ií]", "o": "[oó]", "u": "[uú]", "n": "[nñ]", " ": r"\s+"}
    spelled = ("".join(accented.get(char, char) for char in name) for name in sorted(names, key=len, reverse=True))
    return "(?:" + "|".join(spelled) + ")"


_NUMBER: Final = "(?:[0-9]{1,5}|" + _any(_NUMBERS) + ")"
_CLOCK_NUMBER: Final = "(?:[0-9]{1,2}|" + _any(tuple(_NUMBERS)) + ")"
_WEEKDAY: Final = _any(WEEKDAYS) + "s?"
_MONTH: Final = _any(MONTHS)
_YEAR: Final = "[0-9]{4}"
_TH: Final = "(?:st|nd|rd|th)?"
_LONG_UNIT: Final = _any(("dia", "semana", "mes", "ano", "day", "week", "month", "year")) + "(?:e?s)?"
_UNIT: Final = _any(("minuto", "hora", "minute", "hour", "min", *("dia", "semana", "mes", "ano"), "day", "week")) + (
    "(?:e?s)?"
)
_UNITS: Final = "(?:" + _UNIT + "|months?|years?)"
_DAY_PART: Final = r"(?:ma[nñ]ana|tarde|noche|madrugada|morning|afternoon|evening|night)"
_AM_PM: Final = r"[ap]\.?\s?m\.?"
_EVERY: Final = r"(?:cada|todos\s+los|todas\s+las|every|each)"

_EXACT: Final = (
    r"(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:(?:t|\s+(?:a\s+las\s+|at\s+)?)(?P<isotime>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?P<offset>z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_DISTANCE: Final = (
    r"(?:en|dentro\s+de|in)\s+(?:(?P<halfof>media|half\s+an?)|(?P<many>" + _NUMBER + r"))\s+(?P<unit>" + _UNITS + ")"
    r"(?P<andhalf>\s+y\s+media|\s+and\s+a\s+half)?"
)
_WORKDAYS: Final = r"de\s+lunes\s+a\s+viernes|entre\s+semana|todos\s+los\s+d[ií]as\s+laborables"
_EVERIES: Final = (
    r"(?P<workdays>" + _WORKDAYS + r"|every\s+weekday|every\s+working\s+day|on\s+weekdays)",
    _EVERY + r"\s+(?P<everyday>" + _WEEKDAY + r"(?:(?:,\s+|,?\s+(?:y|and)\s+)(?:los\s+)?" + _WEEKDAY + ")*)",
    r"(?:el\s+)?(?:d[ií]a\s+)?(?P<monthday>[0-9]{1,2})\s+de\s+cada\s+mes",
    r"(?:on\s+)?the\s+(?P<monthday>[0-9]{1,2})" + _TH + r"\s+of\s+(?:every|each)\s+month",
    _EVERY + r"\s+(?P<other>other\s+)?(?:(?P<everymany>" + _NUMBER + r")\s+)?(?P<everyunit>" + _LONG_UNIT + ")",
    r"(?P<adverb>daily|weekly|monthly|yearly|a\s+diario|diariamente|semanalmente|mensualmente|anualmente)",
)
_DAYS: Final = (
    r"(?P<today>hoy|today)",
    r"(?P<aftertomorrow>pasado\s+ma[nñ]ana|(?:the\s+)?day\s+after\s+tomorrow)",
    r"(?P<tomorrow>ma[nñ]ana|tomorrow)",
    r"(?:el\s+)?(?P<weekday>" + _WEEKDAY + r")\s+(?P<next>que\s+viene|pr[oó]ximo)",
    r"(?:el\s+|este\s+|on\s+|this\s+)?(?P<next>pr[oó]ximo\s+|next\s+)?(?P<weekday>" + _WEEKDAY + ")",
    r"(?:el\s+)?(?:d[ií]a\s+)?(?P<dayofmonth>[0-9]{1,2})\s+de\s+(?P<month>" + _MONTH + r")"
    r"(?:\s+del?\s+(?P<year>" + _YEAR + "))?",
    r"(?:on\s+)?(?:the\s+)?(?P<dayofmonth>[0-9]{1,2})" + _TH + r"\s+(?:of\s+)?(?P<month>" + _MONTH + ")"
    r"(?:,?\s+(?P<year>" + _YEAR + "))?",
    r"(?:on\s+)?(?P<month>" + _MONTH + r")\s+(?:the\s+)?(?P<dayofmonth>[0-9]{1,2})" + _TH + ""
    r"(?:,?\s+(?P<year>" + _YEAR + "))?",
    r"el\s+(?P<dayofmonth>[0-9]{1,2})/(?P<monthnumber>[0-9]{1,2})(?:/(?P<year>" + _YEAR + "))?",
    r"el\s+(?:d[ií]a\s+)?(?P<onlyday>[0-9]{1,2})",
    r"on\s+the\s+(?P<onlyday>[0-9]{1,2})(?:st|nd|rd|th)",
)
_DAY_PARTS: Final = (r"(?:por\s+la|en\s+la|esta|in\s+the|this|at)\s+(?P<part>" + _DAY_PART + ")", r"(?P<part>tonight)")
_BARE_PART: Final = r"(?P<part>morning|afternoon|evening|night)"
"""Only after "tomorrow" or a weekday: elsewhere it belongs to the reminder's text."""
_CLOCKS: Final = (
    r"(?P<noon>al\s+mediod[ií]a|at\s+noon)",
    r"(?:a\s+las?|at)\s+(?P<hour>" + _CLOCK_NUMBER + r")(?:[:.h](?P<minute>[0-5][0-9]))?"
    r"(?:\s*(?:hrs?|h|horas)\b|\s*o['’]clock)?(?:\s+(?P<half>y\s+media|y\s+cuarto|menos\s+cuarto|en\s+punto))?"
    r"(?:\s*(?P<ampm>" + _AM_PM + r"))?"
    r"(?:\s+(?:de\s+la|por\s+la|in\s+the|at)\s+(?P<dayhalf>" + _DAY_PART + "))?",
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-5][0-9]))?\s*(?P<ampm>" + _AM_PM + ")",
)

PARTS: Final[tuple[tuple[Kind, str], ...]] = (
    ("exact", _EXACT),
    ("distance", _DISTANCE),
    *(("every", one) for one in _EVERIES),
    *(("day", one) for one in _DAYS),
    *(("part", one) for one in (*_DAY_PARTS, _BARE_PART)),
    *(("clock", one) for one in _CLOCKS),
)
"""The parts of a time; a text is parsed by the first that matches."""

_NAMED: Final = expression(r"\(\?P<[a-z]+>")


def _plain(*expressions: str) -> str:
    """Return an alternation of the expressions, without group names."""
    return "(?:" + "|".join(_NAMED.sub("(?:", one) for one in expressions) + ")"


def when_expression(*, last: bool) -> str:
    """Return the expression for a whole time, in a group named when: at the end of a clause, or before more words.

    It matches parts in any number; resolve decides whether they form a time.
    """
    with_part = r"(?:tomorrow|(?:on\s+)?" + _WEEKDAY + r")\s+" + _BARE_PART
    part = _plain(with_part, *(one for _, one in PARTS if one != _BARE_PART))
    end = r"(?:,?\s+|$)" if last else r"(?:[,:]?\s+|:)"
    return f"(?P<when>(?:{part}{end})+)"
