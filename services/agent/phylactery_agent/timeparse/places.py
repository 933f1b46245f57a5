"""Places and abbreviations that name a time zone, in Spanish and English, without accents.

A place that spans several zones is one only where people mean one of them by its name: Mexico is its capital, the
United States are none. An abbreviation holds only while its zone uses it: there is no EST in July.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from functools import cache
from typing import Final
from zoneinfo import available_timezones

from phylactery_understanding.language.text import fold

from phylactery_agent.ports import ProfileValue
from phylactery_agent.rules.expressions import expression

_NAMES: Final[Mapping[str, str]] = {
    "America/Argentina/Buenos_Aires": "argentina, buenos aires",
    "America/Asuncion": "paraguay, asuncion",
    "America/Bogota": "colombia, bogota, medellin, cali",
    "America/Caracas": "venezuela, caracas",
    "America/Chicago": "chicago, houston, dallas, central",
    "America/Costa_Rica": "costa rica",
    "America/Denver": "denver, mountain",
    "America/El_Salvador": "el salvador",
    "America/Guatemala": "guatemala",
    "America/Guayaquil": "ecuador, quito, guayaquil",
    "America/Havana": "cuba, la habana, havana",
    "America/La_Paz": "bolivia, la paz",
    "America/Lima": "peru, lima",
    "America/Los_Angeles": "los angeles, san francisco, seattle, california, pacific",
    "America/Managua": "nicaragua, managua",
    "America/Mexico_City": "mexico, ciudad de mexico, mexico city, cdmx, guadalajara, monterrey",
    "America/Montevideo": "uruguay, montevideo",
    "America/New_York": "nueva york, new york, miami, boston, washington, eastern",
    "America/Panama": "panama",
    "America/Puerto_Rico": "puerto rico",
    "America/Santiago": "chile, santiago, santiago de chile",
    "America/Santo_Domingo": "republica dominicana, santo domingo, dominican republic",
    "America/Sao_Paulo": "sao paulo, rio de janeiro, brasilia",
    "America/Tegucigalpa": "honduras, tegucigalpa",
    "America/Toronto": "toronto, montreal",
    "Asia/Dubai": "dubai",
    "Asia/Kolkata": "india, mumbai, bombay, delhi, nueva delhi, new delhi",
    "Asia/Shanghai": "china, pekin, beijing, shanghai",
    "Asia/Tokyo": "japon, japan, tokio, tokyo",
    "Atlantic/Canary": "canarias, islas canarias, canary islands",
    "Europe/Berlin": "alemania, germany, berlin, munich, frankfurt",
    "Europe/Dublin": "irlanda, ireland, dublin",
    "Europe/Lisbon": "portugal, lisboa, lisbon",
    "Europe/London": "reino unido, united kingdom, uk, londres, london, inglaterra, england",
    "Europe/Madrid": "espana, spain, madrid, barcelona, valencia, sevilla, bilbao, peninsular",
    "Europe/Paris": "francia, france, paris",
    "Europe/Rome": "italia, italy, roma, rome, milan",
    "Europe/Zurich": "suiza, switzerland, zurich, ginebra, geneva",
}
PLACES: Final = {name: where for where, names in _NAMES.items() for name in names.split(", ")}
"""The places that may be named in a time, and their zones."""
ABBREVIATIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("utc", "gmt"), "UTC"),
    **dict.fromkeys(("est", "edt", "et"), "America/New_York"),
    **dict.fromkeys(("cst", "cdt", "ct"), "America/Chicago"),
    **dict.fromkeys(("mst", "mdt"), "America/Denver"),
    **dict.fromkeys(("pst", "pdt", "pt"), "America/Los_Angeles"),
    **dict.fromkeys(("cet", "cest"), "Europe/Madrid"),
    "bst": "Europe/London",
}
_ANY_TIME_OF_YEAR: Final = frozenset({"utc", "gmt", "et", "ct", "pt"})
_STATED: Final = expression(
    r"^(?:i(?:['’]m)?\s+(?:now\s+)?liv(?:e|ing)\s+in|(?:yo\s+)?(?:ahora\s+)?vivo\s+en"
    r"|i(?:['’]ve)?\s+(?:just\s+)?moved\s+to|(?:ya\s+)?me\s+(?:he\s+mudado|mude)\s+a|my\s+time\s?zone\s+is"
    r"|mi\s+(?:zona\s+horaria|huso\s+horario)\s+es)\s+(?:la\s+de\s+)?([\pL _/-]+?)(?:\s+(?:now|ahora))?[.! ]*$"
)
_TELLS_ZONE: Final = ("city", "timezone")
_ROOTS: Final = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")


def zone_of_place(name: str) -> str:
    """Return the IANA name of the zone of a place, or of a zone's own name; empty if it has none or several."""
    plain = _plain(name)
    if plain in {"utc", "gmt"}:
        return "UTC"
    return PLACES.get(plain) or _cities().get(plain, "")


def zone_told(facts: Iterable[ProfileValue]) -> str:
    """Return the zone that a person told last of themselves, as theirs or by their city; empty if none is known."""
    told = [(one.valid_us, one.name, zone_of_place(str(one.value))) for one in facts if one.name in _TELLS_ZONE]
    return max((one for one in told if one[2]), default=(0, "", ""))[2]


def zone_stated(text: str) -> str:
    """Return the zone that a message states as the person's and says nothing else: vivo en Lima; empty if none."""
    found = _STATED.match(" ".join(fold(text).split()))
    return "" if found is None else zone_of_place(found.group(1))


@cache
def _cities() -> Mapping[str, str]:
    """Return the zones by their names and by their cities; a city of two zones is none."""
    named = [name for name in available_timezones() if name.startswith(_ROOTS)]
    cities = [_plain(name.rpartition("/")[2]) for name in named]
    by_city = {city: name for city, name in zip(cities, named, strict=True) if cities.count(city) == 1}
    return by_city | {_plain(name): name for name in named}


def _plain(name: str) -> str:
    return " ".join(fold(name).replace("_", " ").split()).strip(" .")


def holds(abbreviation: str, where: tzinfo, local: datetime) -> bool:
    """Return True if a zone uses an abbreviation at a local time, so that it means what it says."""
    name = abbreviation.casefold()
    return name in _ANY_TIME_OF_YEAR or (local.replace(tzinfo=where).tzname() or "").casefold() == name
