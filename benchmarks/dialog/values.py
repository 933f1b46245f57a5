"""Values of fields: how many of published cases are read or refused as they should be, set by set.

A case counts as read if the value is right, as asked if the answer is a question (a problem), as missed if nothing is
found, and as wrong if another value is: that is the costly one. Next to each stands a floor: what a simple rule or the
nearest library does with the same cases in the same run.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, Literal, cast

from phylactery_agent.timeparse.phrases import WhenError, resolve
from phylactery_forms.values import Context, Language, Problem, ValueType, extract, validate, value_type
from pydantic import HttpUrl, TypeAdapter, ValidationError
from text_to_num import text2num

from benchmarks.dialog.figures import percent
from benchmarks.measure import emit

Row = Mapping[str, Any]
Outcome = Literal["read", "asked", "missed", "wrong"]
_NOW: Final = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
_DUCKLING_NOW: Final = datetime(2013, 2, 12, 4, 30, tzinfo=timezone(timedelta(hours=-2)))
_REGIONS: Final[Mapping[str, str]] = {"es": "ES", "en": "US"}
_LANGUAGES: Final[tuple[Language, ...]] = ("es", "en")
_PLAIN_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_EMAIL_INVALID: Final = re.compile(r"_invalid|unsafe_character|reserved")
_NUMERAL: Final = re.compile(r"NumeralValue \(?(-?[\d.e]+)\)?")
_MOMENT: Final = re.compile(r"datetime \((\d+), (\d+), (\d+), (\d+), (\d+), (\d+)\) (Day|Hour|Minute)")
_REPEATS: Final = 20


def run(home: Path) -> None:
    """Print the lines."""
    _emails(home)
    _urls(home)
    _phones(home)
    _numbers(home)
    _money(home)
    _days(home)
    _yes_no(home)
    _times()


def _rows(home: Path, name: str) -> list[Row]:
    return [json.loads(line) for line in (home / f"{name}.jsonl").read_text(encoding="utf-8").splitlines() if line]


def _context(language: str, now: datetime = _NOW, region: str = "") -> Context:
    return Context(cast("Language", language), now, region or _REGIONS[language])


def _accepts(of: ValueType, value: str, context: Context) -> bool:
    return isinstance(validate(of, value, context), str)


# ---- what is valid and what is not -------------------------------------------


def _verdicts(
    name: str, cases: Iterable[tuple[str, bool]], ours: Callable[[str], bool], floor: Callable[[str], bool]
) -> None:
    """Print how many valid values are kept and invalid ones refused."""
    some = list(cases)
    for wanted, figure in ((False, "refused"), (True, "kept")):
        values = [value for value, valid in some if valid is wanted]
        right = sum(ours(one) is wanted for one in values)
        emit(
            f"dialog_values_{name}_{figure}", right, "cases", of=len(values),
            floor=sum(floor(one) is wanted for one in values),
        )  # fmt: skip


def _emails(home: Path) -> None:
    email, context = value_type("email"), _context("es")

    def ours(value: str) -> bool:
        return _accepts(email, value, context)

    def floor(value: str) -> bool:
        return _PLAIN_EMAIL.fullmatch(value) is not None

    cases = [(row["value"], not _EMAIL_INVALID.search(row["test"])) for row in _rows(home, "email_validator_cases")]
    # whoever writes a display name beside the address means the address: extraction reads it, validation does not
    _verdicts("email_validator", ((value, valid) for value, valid in cases if not value.endswith(">")), ours, floor)
    kinds = {"ISEMAIL_VALID_CATEGORY": True, "ISEMAIL_DNSWARN": True, "ISEMAIL_ERR": False}
    isemail = (
        (row["address"], kinds[row["category"]]) for row in _rows(home, "isemail_tests") if row["category"] in kinds
    )
    _verdicts("email_isemail", isemail, ours, floor)
    vectors = [row for row in _rows(home, "validatorjs_vectors") if row["validator"] == "isEmail"]
    _verdicts("email_validatorjs", ((row["value"], row["valid"]) for row in vectors), ours, floor)


def _urls(home: Path) -> None:
    url, context, library = value_type("url"), _context("es"), TypeAdapter(HttpUrl)

    def ours(value: str) -> bool:
        return _accepts(url, value, context)

    def floor(value: str) -> bool:
        try:
            library.validate_python(value)
        except ValidationError:
            return False
        return True

    _verdicts("url_django", ((row["value"], row["valid"]) for row in _rows(home, "django_url_vectors")), ours, floor)
    vectors = [row for row in _rows(home, "validatorjs_vectors") if row["validator"] == "isURL"]
    _verdicts("url_validatorjs", ((row["value"], row["valid"]) for row in vectors), ours, floor)


def _phones(home: Path) -> None:
    """Print verdicts by level; the vectors are of mobile phones alone, so a landline is invalid there and not here."""
    vectors = [row for row in _rows(home, "validatorjs_vectors") if row["validator"] == "isMobilePhone"]

    def verdict(row: Row, level: str) -> bool:
        context = _context("en", region=row["locale"].split("-")[1])
        return _accepts(value_type("phone", {"level": level}), row["value"], context)

    for level in ("digits7", "possible", "valid"):
        for wanted, figure in ((True, "kept"), (False, "refused")):
            some = [row for row in vectors if row["valid"] is wanted]
            right = sum(verdict(row, level) is wanted for row in some)
            floor = sum((sum(one.isdigit() for one in row["value"]) >= 7) is wanted for row in some)
            emit(f"dialog_values_phone_{level}_{figure}", right, "cases", of=len(some), floor=floor)
    groups: dict[str, list[Row]] = {}
    for row in _rows(home, "libphonenumber_matcher"):
        groups.setdefault(row["group"], []).append(row)
    for group, some in groups.items():
        level = "valid" if group.startswith(("VALID", "STRICT", "EXACT")) else "possible"
        phone = value_type("phone", {"level": level})
        reads = [extract(phone, row["text"], _context("en", region=row["region"])) for row in some]
        found = sum(not isinstance(one, Problem) and bool(one) for one in reads)
        emit(f"dialog_values_phone_{group.lower()}_found", found, "cases", of=len(some), level=level)


# ---- what is read ------------------------------------------------------------


def _outcome(of: ValueType, text: str, context: Context, same: Callable[[Sequence[str]], bool]) -> Outcome:
    read = extract(of, text, context)
    if isinstance(read, Problem):
        return "asked"
    if not read:
        return "missed"
    return "read" if same([one.value for one in read]) else "wrong"


def _print(name: str, language: str, outcomes: Sequence[Outcome], **beside: object) -> None:
    count = Counter(outcomes)
    rate = 100 * count["read"] / max(len(outcomes), 1)
    emit(
        f"dialog_values_{name}_{language}_read_pct", rate, "%", of=len(outcomes), asked=count["asked"],
        missed=count["missed"], wrong=count["wrong"], **beside,
    )  # fmt: skip


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _near(first: Decimal | None, second: Decimal | None) -> bool:
    """Return True if numbers are equal to ten digits: the sets round thirds differently."""
    if first is None or second is None:
        return False
    return abs(first - second) <= abs(second) * Decimal("1e-10")


def _is_number(wanted: Sequence[str]) -> Callable[[Sequence[str]], bool]:
    def same(read: Sequence[str]) -> bool:
        left = [_decimal(one) for one in wanted]
        for one in map(_decimal, read):
            match = next((other for other in left if _near(one, other)), None)
            if match is None:
                return False
            left.remove(match)
        return not left

    return same


def _text2num(text: str, language: str) -> Decimal | None:
    try:
        return Decimal(text2num(text.strip().lower(), language))
    except (ValueError, InvalidOperation):
        return _decimal(text.strip())


def _numbers(home: Path) -> None:
    for language in _LANGUAGES:
        sets: dict[str, list[tuple[str, list[str]]]] = {
            "recognizers_number": [],
            "number_words": [],
            "duckling_number": [],
        }
        for row in _rows(home, "recognizers_number"):
            if row["lang"] == language and row["model"] == "NumberModel" and len(row["results"]) == 1:
                value = row["results"][0]["Resolution"]["value"]
                sets["recognizers_number"].append(
                    (row["input"], [value.replace(",", ".") if language == "es" else value])
                )
        for row in _rows(home, "number_words_es_en"):
            if row["lang"] == language and row["kind"] != "ordinals":
                sets["number_words"].append((row["text"], [row["number"].replace(",", "")]))
        for row in _rows(home, "duckling_corpus_es_en"):
            match = _NUMERAL.fullmatch(row["expected"])
            if row["file"] == f"Numeral/{language.upper()}/Corpus.hs" and match is not None:
                sets["duckling_number"].append((row["text"], [match[1]]))
        total = list[Outcome]()
        for name, cases in sets.items():
            number, context = value_type("number"), _context(language)
            outcomes = [_outcome(number, text, context, _is_number(wanted)) for text, wanted in cases]
            floor = sum(_near(_text2num(text, language), _decimal(wanted[0])) for text, wanted in cases)
            _print(name, language, outcomes, floor_pct=round(100 * floor / max(len(cases), 1), 1))
            total += outcomes
        _print("numbers", language, total, bar=">= 95" if language == "es" else "")


def _money(home: Path) -> None:
    for language in _LANGUAGES:
        outcomes = list[Outcome]()
        for row in _rows(home, "recognizers_currency"):
            known = [
                one for one in row["results"] if one["Resolution"].get("isoCurrency") and one["Resolution"].get("value")
            ]
            if row["lang"] != language or len(row["results"]) != 1 or not known:
                continue
            value = known[0]["Resolution"]["value"]
            amount = _decimal(value.replace(",", ".") if language == "es" else value)
            code = known[0]["Resolution"]["isoCurrency"]

            def same(read: Sequence[str], amount: Decimal | None = amount, code: str = code) -> bool:
                currency, _, number = read[0].partition(" ")
                return currency == code and _near(_decimal(number), amount)

            outcomes.append(_outcome(value_type("money"), row["input"], _context(language), same))
        _print("recognizers_currency", language, outcomes)


_FEASTS: Final = re.compile(
    r"(?i)easter|eid al|earth day|black friday|patricio|trabajadores|workers|new year|independence day|thanksgiving"
)
_IN_A_NAME: Final = re.compile(r"[\w/_-]\d{4}-?\d{2}-?\d{2}|\d{4}-?\d{2}-?\d{2}[\w._-]+\w")
"""Dates inside the names of files and in web addresses."""


def _expected(row: Row) -> tuple[str, frozenset[str]] | None:
    """Return the type and the values of a case that a field can mean: one day or one time of day, resolved.

    Movable feasts and dates inside the names of files are left out.
    """
    if len(row["results"]) != 1 or _IN_A_NAME.search(row["input"]):
        return None
    result = row["results"][0]
    if _FEASTS.search(result["Text"]):
        return None
    if row["model"] == "DateParser":
        sides = [one for name, one in result["Value"].items() if name.endswith("Resolution")]
        values = {one["date"] for one in sides if "date" in one}
        return ("date", frozenset(values)) if values and "0001-01-01" not in values else None
    kind = result["TypeName"].removeprefix("datetimeV2.")
    values = {str(one.get("value", "")) for one in result["Resolution"]["values"]}
    if kind not in {"date", "time"} or "not resolved" in values or "" in values:
        return None
    return kind, frozenset(one[:5] if kind == "time" else one for one in values)


def _reads(kind: str, text: str, context: Context, values: frozenset[str]) -> Outcome:
    read = extract(value_type(kind), text, context)
    if isinstance(read, Problem):
        both = kind == "time" and read.code == "ambiguous_time" and len(values) > 1
        return "read" if both else "asked"  # five o'clock is two times: a question is the right answer
    if not read:
        return "missed"
    return "read" if read[0].value in values else "wrong"


def _days(home: Path) -> None:
    every = list[Outcome]()
    for language in _LANGUAGES:
        outcomes: dict[str, list[Outcome]] = {"date": [], "time": []}
        floors = Counter[str]()
        nothing = found = 0
        for row in _rows(home, "recognizers_datetime"):
            if row["lang"] != language:
                continue
            at = (row.get("context") or {}).get("ReferenceDateTime", "2016-11-07T00:00:00")
            now = datetime.fromisoformat(at).replace(tzinfo=UTC)
            if not row["results"]:
                nothing += 1
                read = extract(value_type("date"), row["input"], _context(language, now))
                found += not isinstance(read, Problem) and bool(read)
            wanted = _expected(row)
            if wanted is None:
                continue
            kind, values = wanted
            outcomes[kind].append(_reads(kind, row["input"], _context(language, now), values))
            floors[kind] += _reminder(row["results"][0]["Text"], now, kind) in values
        if language == "en":
            times = outcomes["time"]
            percent("english_times_read_pct", times.count("read"), len(times), wanted=">= 90")
        for kind, some in outcomes.items():
            # the reminders' grammar is given the words of the time alone, where we find them in the message
            floor = round(100 * floors[kind] / max(len(some), 1), 1)
            _print(f"recognizers_{kind}", language, some, floor_pct=floor, bar=">= 90")
            every += some
        emit(f"dialog_values_recognizers_date_{language}_found_in_none", found, "cases", of=nothing)
    duckling = [row for row in _rows(home, "duckling_corpus_es_en") if row["file"] == "Time/ES/Corpus.hs"]
    for kind, grains in (("date", ("Day",)), ("time", ("Hour", "Minute"))):
        outcomes_of = list[Outcome]()
        for row in duckling:
            match = _MOMENT.fullmatch(row["expected"])
            if match is None or match[7] not in grains or match[3] == "0":
                continue
            value = f"{int(match[1]):04}-{int(match[2]):02}-{int(match[3]):02}"
            values = frozenset({value if kind == "date" else f"{int(match[4]):02}:{int(match[5]):02}"})
            if kind == "time":
                other = (int(match[4]) + 12) % 24
                values |= {f"{other:02}:{int(match[5]):02}"} if int(match[4]) % 12 > 0 else set()
            outcomes_of.append(_reads(kind, row["text"], _context("es", _DUCKLING_NOW), values))
        _print(f"duckling_{kind}", "es", outcomes_of)
        every += outcomes_of
    percent("dates_wrong_silently_pct", every.count("wrong"), len(every), wanted="<= 1")


def _reminder(text: str, now: datetime, kind: str) -> str:
    """Return the day or time that the agent's grammar of reminders reads in the same words."""
    try:
        due = resolve(text, where=UTC, now_us=int(now.timestamp() * 1_000_000))
    except WhenError:
        return ""
    moment = datetime.fromtimestamp(due.due_us / 1_000_000, UTC)
    return moment.date().isoformat() if kind == "date" else moment.strftime("%H:%M")


def _is_first(value: str) -> Callable[[Sequence[str]], bool]:
    return lambda read: read[0] == value


def _yes_no(home: Path) -> None:
    for language in _LANGUAGES:
        outcomes = list[Outcome]()
        for row in _rows(home, "recognizers_boolean"):
            if row["lang"] == language and len(row["results"]) == 1:
                value = "yes" if row["results"][0]["Resolution"]["value"] else "no"
                outcomes.append(_outcome(value_type("yes_no"), row["input"], _context(language), _is_first(value)))
        _print("recognizers_boolean", language, outcomes)


def _messages() -> Iterator[tuple[str, str]]:
    yield "line", "mi correo es ana@example.org y el teléfono el 612 34 56 78, el viernes 27 de noviembre a las 17:30"
    yield "4000_characters", "el viernes 27 de noviembre de 2026 gasté veinte euros en ana@example.org, 612 34 " * 48


def _times() -> None:
    """Print the time of an extraction, for a message of one line and the longest that is searched."""
    for name, text in _messages():
        for kind in (
            "email",
            "phone",
            "url",
            "number",
            "money",
            "date",
            "time",
            "person_name",
            "address",
            "national_id",
        ):
            spent = []
            for _ in range(_REPEATS):
                began = time.perf_counter()
                extract(value_type(kind), text[:4000], _context("es"))
                spent.append(1_000 * (time.perf_counter() - began))
            emit(f"dialog_values_extract_{kind}_{name}_p50_ms", statistics.median(spent), "ms", max=max(spent))
