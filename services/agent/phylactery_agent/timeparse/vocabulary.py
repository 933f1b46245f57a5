"""Spanish and English time words, and the RE2 expressions built from them.

Every expression matches at the beginning of a text. Group names are unique within one expression, as RE2 requires.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import time
from typing import Final, Literal, TypeVar

from phylactery_agent.rules.expressions import expression
from phylactery_agent.timeparse.places import ABBREVIATIONS, PLACES

T = TypeVar("T")
Kind = Literal["exact", "distance", "every", "day", "part", "clock", "zone"]

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
_SHORT_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        "jan ene,feb,mar,apr abr,,jun,jul,aug ago,sep sept setiembre,oct,nov,dec dic".split(","),  # noqa: SIM905
        1,
    )
    for name in names.split()
}
MONTHS: Final = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names} | _SHORT_MONTHS
UNITS: Final = {
    **dict.fromkeys(("minuto", "minute", "min", "m"), "minute"),
    **dict.fromkeys(("hora", "hour", "h", "hr"), "hour"),
    **dict.fromkeys(("dia", "day", "daily", "a diario", "diariamente"), "day"),
    **dict.fromkeys(("semana", "week", "weekly", "semanalmente"), "week"),
    **dict.fromkeys(("mes", "month", "monthly", "mensualmente"), "month"),
    **dict.fromkeys(("ano", "year", "yearly", "anualmente"), "year"),
}
PART_WORDS: Final = {
    **dict.fromkeys(("manana", "morning"), "morning"),
    **dict.fromkeys(("tarde", "afternoon"), "afternoon"),
    "evening": "evening",
    **dict.fromkeys(("noche", "night", "tonight", "tonite", "2nite"), "night"),
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
    "un par de": 2,
    "a couple of": 2,
}
_HOUR_PARTS: Final = {"media": 30, "half": 30, "cuarto": 15, "quarter": 15, "a quarter": 15, "veinticinco": 25}
ORDINALS: Final = {
    **dict.fromkeys(("primer", "first", "1st"), 1),
    **dict.fromkeys(("segundo", "second", "2nd"), 2),
    **dict.fromkeys(("tercer", "third", "3rd"), 3),
    **dict.fromkeys(("cuarto", "fourth", "4th"), 4),
    **dict.fromkeys(("ultimo", "last"), 0),
}
"""The weekdays of a month; the last is 0."""


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


def minutes_of(text: str) -> int:
    """Return a part of an hour in minutes: half, cuarto, ten."""
    return _HOUR_PARTS[fold(text)] if fold(text) in _HOUR_PARTS else number_of(text)


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
    r"(?:on\s+)?(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:(?:t|\s+(?:a\s+las\s+|at\s+)?)(?P<isotime>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?P<offset>z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_PART_OF_HOUR: Final = "(?:[0-5]?[0-9]|" + _any((*_HOUR_PARTS, *_NUMBERS)) + ")"
_AND_MORE: Final = (
    r"(?:\s+(?:y|and)\s+(?P<andpart>media|cuarto|a\s+half|a\s+quarter)"
    r"|,?\s+(?:(?:y|and)\s+)?(?P<more>" + _NUMBER + r")\s+(?P<moreunit>" + _any(("minuto", "minute", "min")) + "s?))?"
)
_DISTANCE: Final = (
    r"(?:en|dentro\s+de|de\s+aqui\s+a|in)\s+"
    r"(?:(?P<halfof>media|half\s+an?|(?:un\s+)?cuarto\s+de|a\s+quarter\s+of\s+an)\s+|(?P<many>" + _NUMBER + r")\s+)?"
    r"(?P<unit>" + _UNITS + ")" + _AND_MORE,
    r"(?:en|dentro\s+de|in)\s+(?P<many>[0-9]{1,4})\s*(?P<unit>h|hs|hrs?|m|mins?)(?:\s*(?P<more>[0-5]?[0-9])(?:\s*m(?:ins?)?)?)?",
    r"(?:(?P<halfof>half\s+an?)|(?P<many>"
    + _NUMBER
    + r"))\s+(?P<unit>"
    + _UNITS
    + ")"
    + _AND_MORE
    + r"\s+from\s+(?:now|today)",
)
_NEXT_WEEK: Final = r"(?:la\s+)?(?:semana\s+(?:que\s+viene|proxima)|proxima\s+semana)|next\s+week"
_ORDINAL: Final = _any(ORDINALS)
_WORKDAYS: Final = r"de\s+lunes\s+a\s+viernes|entre\s+semana|todos\s+los\s+d[ií]as\s+laborables"
_WEEKENDS: Final = r"(?:todos\s+)?los\s+fines\s+de\s+semana|cada\s+fin\s+de\s+semana|every\s+weekend|on\s+weekends"
_MORE_DAYS: Final = r"(?:(?:,\s+|,?\s+(?:y|and)\s+)(?:los\s+|on\s+)?" + _WEEKDAY + ")*"
_EVERIES: Final = (
    r"(?P<workdays>" + _WORKDAYS + r"|every\s+weekday|every\s+working\s+day|on\s+weekdays)",
    r"(?P<weekends>" + _WEEKENDS + ")",
    r"un\s+(?P<otherday>" + _WEEKDAY + r")\s+si\s+y\s+otro\s+no",
    r"(?:every\s+(?:other|second|2nd)|cada\s+(?:dos|2)|cada\s+segundo)\s+(?P<otherday>" + _WEEKDAY + r")",
    _EVERY + r"\s+(?P<everyday>" + _WEEKDAY + _MORE_DAYS + ")",
    r"(?:los|on)\s+(?P<everyday>"
    + _any(
        (
            "lunes",
            "martes",
            "miercoles",
            "jueves",
            "viernes",
            "sabados",
            "domingos",
            *(f"{names[1]}s" for names in _WEEKDAY_NAMES),
        )
    )
    + _MORE_DAYS
    + ")",
    r"(?:cada\s+mes,?\s+)?(?:el\s+)?(?:d[ií]a\s+)?(?P<monthday>[0-9]{1,2})\s+de\s+cada\s+mes",
    r"cada\s+mes,?\s+el\s+(?:d[ií]a\s+)?(?P<monthday>[0-9]{1,2})",
    r"(?:on\s+)?the\s+(?P<monthday>[0-9]{1,2})" + _TH + r"\s+of\s+(?:every|each)\s+month",
    _EVERY + r"\s+(?:the\s+)?(?P<yearday>[0-9]{1,2})" + _TH + r"\s+(?:de\s+|of\s+)?(?P<yearmonth>" + _MONTH + ")",
    _EVERY + r"\s+(?P<yearmonth>" + _MONTH + r")\s+(?:the\s+)?(?P<yearday>[0-9]{1,2})" + _TH,
    _EVERY + r"\s+(?P<everypart>" + _DAY_PART + ")s?",
    _EVERY + r"\s+(?P<other>other\s+)?(?:(?P<everymany>" + _NUMBER + r")\s+)?(?P<everyunit>" + _LONG_UNIT + ")",
    r"(?P<adverb>daily|weekly|monthly|yearly|a\s+diario|diariamente|semanalmente|mensualmente|anualmente)",
)
_OF_MONTH: Final = (
    r"\s+(?:de|of|in)(?:l|\s+the|\s+this|\s+este)?\s+(?:(?P<nextmonth>next\s+month|proximo\s+mes|mes\s+que\s+viene)"
    r"|(?P<thismonth>mes|month)|(?P<month>" + _MONTH + "))"
)
_DAYS: Final = (
    r"(?P<today>hoy|today)",
    r"(?P<aftertomorrow>pasado\s+ma[nñ]ana|(?:the\s+)?day\s+after\s+tomorrow)",
    r"(?P<tomorrow>ma[nñ]ana|tomorrow)",
    r"(?P<weeks>" + _NUMBER + r")\s+weeks?\s+from\s+(?:(?P<tomorrow>tomorrow)|(?:on\s+)?(?P<weekday>" + _WEEKDAY + "))",
    r"(?P<ahead>" + _NUMBER + r")\s+(?P<weekday>" + _WEEKDAY + r")\s+from\s+(?:now|today)",
    r"(?:" + _NEXT_WEEK + r"),?\s+(?:el\s+|on\s+)?(?P<nextweek>" + _WEEKDAY + ")",
    r"(?:el\s+|on\s+)?(?P<nextweek>" + _WEEKDAY + r")\s+(?:de\s+|of\s+)?(?:" + _NEXT_WEEK + ")",
    r"(?:el\s+|(?:on\s+)?the\s+)(?P<ordinal>" + _ORDINAL + r")\s+(?P<weekday>" + _WEEKDAY + ")" + _OF_MONTH,
    r"(?:el\s+ultimo\s+dia|(?:on\s+)?the\s+last\s+day|(?:at\s+)?the\s+end|(?:al?|el)\s+fin(?:al)?)"
    + _OF_MONTH.replace("?P<thismonth>", "?P<monthend>"),
    r"a\s+fin\s+de\s+(?P<monthend>mes)",
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
_DAY_PARTS: Final = (
    r"(?:por\s+la|en\s+la|esta|in\s+the|this|at)\s+(?P<part>" + _DAY_PART + ")",
    r"(?P<part>tonight|tonite|2nite)",
)
_BARE_PART: Final = r"(?P<part>morning|afternoon|evening|night)"
"""Only after "tomorrow" or a weekday: elsewhere it belongs to the reminder's text."""
_AT: Final = r"(?:a\s+eso\s+de\s+las?|sobre\s+las?|hacia\s+las?|a\s+las?|at(?:\s+(?:around|about))?|around|about)\s+"
_CLOCK_END: Final = (
    r"(?:\s*(?P<ampm>" + _AM_PM + r"))?"
    r"(?:\s+(?:de\s+la|por\s+la|in\s+the|at)\s+(?P<dayhalf>"
    + _DAY_PART
    + "))?(?:\\s+(?:sharp|on\\s+the\\s+dot|en\\s+punto))?"
)
_CLOCKS: Final = (
    r"(?P<noon>al?\s+mediod[ií]a|at\s+noon|at\s+midday)",
    r"(?P<midnight>a(?:\s+la)?\s+medianoche|at\s+midnight)",
    r"(?:at\s+)?(?:(?P<pastby>"
    + _PART_OF_HOUR
    + r")\s+(?:minutes\s+)?(?P<side>past|to))\s+(?P<hour>"
    + _CLOCK_NUMBER
    + ")"
    + _CLOCK_END,
    _AT
    + r"(?P<hour>"
    + _CLOCK_NUMBER
    + r")(?:[:.h](?P<minute>[0-5][0-9]))?(?:-?ish\b)?(?P<day24>\s*(?:hrs?|h|horas)\b)?"
    r"(?:\s*o['’]clock)?(?:\s+(?P<plus>y|menos)\s+(?P<by>" + _PART_OF_HOUR + r")(?:\s+minutos)?)?" + _CLOCK_END,
    r"(?P<hour>[0-9]{1,2})(?:[:.](?P<minute>[0-5][0-9]))?\s*(?P<ampm>" + _AM_PM + ")(?:\\s+(?:sharp|en\\s+punto))?",
)
PLACE: Final = _any(PLACES)
_ZONES: Final = (
    r"\(?(?:hora\s+(?:del?\s+)?|time\s+in\s+)(?P<place>" + PLACE + r")\)?",
    r"\(?(?P<place>" + PLACE + r")\s+time\)?",
    r"\(?(?P<abbreviation>" + _any(ABBREVIATIONS) + r")(?:\s+time)?\)?",
)

PARTS: Final[tuple[tuple[Kind, str], ...]] = (
    ("exact", _EXACT),
    *(("distance", one) for one in _DISTANCE),
    *(("every", one) for one in _EVERIES),
    *(("day", one) for one in _DAYS),
    *(("part", one) for one in (*_DAY_PARTS, _BARE_PART)),
    *(("clock", one) for one in _CLOCKS),
    *(("zone", one) for one in _ZONES),
)
"""The parts of a time; a text is parsed by the first that matches."""

_NAMED: Final = expression(r"\(\?P<[a-z0-9]+>")


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
