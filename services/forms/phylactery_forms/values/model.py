"""Types of values, the options of a field, and what reading a message gives.

A canonical value is text: an E.164 number, an ISO date or time, a decimal such as 1234.50, an amount such as EUR 12.00,
the id of a choice, "yes" or "no", or the text itself. A problem never contains the value, which may be sensitive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, cast, get_args

import re2

Language = Literal["es", "en"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
Level = Literal["digits7", "possible", "valid"]
Side = Literal["any", "past", "future"]

MAX_PATTERN: Final = 500
"""The maximum length of a pattern, in characters."""
MAX_PROGRAM: Final = 1_000_000
"""The memory a compiled pattern may take, in bytes."""
MAX_CHOICES: Final = 200


class OptionError(ValueError):
    """Options of a field that cannot be used; the text names the option and the reason."""


@dataclass(frozen=True, slots=True)
class Context:
    """What reading may depend on: never the clock or the locale of the process."""

    language: Language
    now: datetime
    """Aware, in the person's zone."""
    region: str = "ES"
    """ISO 3166, for phone numbers, national ids and the order of day and month."""
    own_phone: str = field(default="", repr=False)
    """The number the person writes from, in E.164; empty if the channel has none or does not tell."""


@dataclass(frozen=True, slots=True)
class Found:
    """A value in a message; ``start`` and ``end`` are its span in the text as it was written."""

    value: str
    start: int
    end: int
    whole: bool
    """True if the rest of the message is filler: "my email is …, please"."""
    implied: bool = False
    """True if the words only point to the value, which therefore is read back: the number I write from."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no value: a stable code, and details that do not contain the value."""

    code: str
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of a choice: its id, its label and synonyms in each language."""

    id: str
    labels: Mapping[Language, str]
    synonyms: Mapping[Language, tuple[str, ...]] = field(default_factory=dict)

    def label(self, language: Language) -> str:
        """Return the label in a language, or in another if there is none."""
        return self.labels.get(language) or next(iter(self.labels.values()), self.id)

    def names(self) -> tuple[str, ...]:
        """Return everything a person may call it, in any language."""
        return (*self.labels.values(), *(one for some in self.synonyms.values() for one in some), self.id)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a type that has none."""


@dataclass(frozen=True, slots=True)
class TextOptions(Options):
    """Bounds of a text's length in characters; ``lines`` allows more than one line."""

    minimum: int = 1
    maximum: int = 4_000
    lines: bool = True


@dataclass(frozen=True, slots=True)
class PhoneOptions(Options):
    """How much is demanded of a number: seven digits, a possible length, or an assigned range."""

    level: Level = "possible"


@dataclass(frozen=True, slots=True)
class UrlOptions(Options):
    """The allowed schemes; the first is added where none is written."""

    schemes: tuple[str, ...] = ("https", "http")


@dataclass(frozen=True, slots=True)
class NumberOptions(Options):
    """Bounds of a number, and its maximum number of decimals: 0 for a whole number."""

    minimum: Decimal | None = None
    maximum: Decimal | None = None
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class MoneyOptions(Options):
    """Bounds of an amount, the currency of one without any, and the allowed currencies (none: all)."""

    currency: str = ""
    currencies: tuple[str, ...] = ()
    minimum: Decimal | None = None
    maximum: Decimal | None = None


@dataclass(frozen=True, slots=True)
class DateOptions(Options):
    """Whether a date must lie in the past or in the future (today is both), and its bounds."""

    when: Side = "any"
    earliest: date | None = None
    latest: date | None = None


@dataclass(frozen=True, slots=True)
class TimeOptions(Options):
    """Bounds of a time of day; they also decide between five in the morning and in the afternoon."""

    earliest: time | None = None
    latest: time | None = None


@dataclass(frozen=True, slots=True)
class ChoiceOptions(Options):
    """The options of a choice, in the order in which they are shown."""

    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class IdOptions(Options):
    """The countries whose national ids are accepted; none: that of the context's region."""

    countries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileOptions(Options):
    """The accepted media types (image/png, image/*; none: all) and the maximum size in bytes."""

    types: tuple[str, ...] = ()
    max_bytes: int = 20_000_000


@dataclass(frozen=True, slots=True)
class PatternOptions(Options):
    """An RE2 pattern that a whole value must match, and the value's maximum length."""

    pattern: str = ""
    maximum: int = 500
    ignore_case: bool = False

    def compiled(self) -> Any:
        """Return the compiled pattern. Raise OptionError if it is not one of RE2."""
        return compile_pattern(self.pattern, ignore_case=self.ignore_case)


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type of value with the options of a field; ``name`` is one of TYPES."""

    name: str
    options: Options = field(default_factory=Options)


OPTIONS: Final[Mapping[str, type[Options]]] = {
    "email": Options,
    "phone": PhoneOptions,
    "url": UrlOptions,
    "number": NumberOptions,
    "money": MoneyOptions,
    "text": TextOptions,
    "date": DateOptions,
    "time": TimeOptions,
    "choice": ChoiceOptions,
    "yes_no": Options,
    "person_name": Options,
    "address": Options,
    "national_id": IdOptions,
    "file": FileOptions,
    "pattern": PatternOptions,
}
"""The class of options of each type."""
TYPES: Final = tuple(OPTIONS)
"""The names of the types of values."""


def value_type(name: str, options: Mapping[str, Any] | None = None) -> ValueType:
    """Return a type of value with the options of a field definition, as YAML or JSON holds them.

    Raises:
        OptionError: there is no such type or option, or an option's value cannot be used.
    """
    if name not in OPTIONS:
        raise OptionError(f"no type '{name}'; there are: {', '.join(TYPES)}")
    kind = OPTIONS[name]
    known = {one.name for one in dataclasses.fields(kind)}
    given = dict(options or {})
    for option in given:
        if option not in known:
            raise OptionError(f"type '{name}' has no option '{option}'; it has: {', '.join(sorted(known)) or 'none'}")
    read = {option: _READERS[option](option, value) for option, value in given.items()}
    found = ValueType(name, kind(**read))
    _check(found)
    return found


def _check(of: ValueType) -> None:
    """Raise OptionError if options contradict each other."""
    found = of.options
    for low, high in (("minimum", "maximum"), ("earliest", "latest")):
        least, most = getattr(found, low, None), getattr(found, high, None)
        if least is not None and most is not None and least > most:
            raise OptionError(f"{low} is greater than {high}")
    if isinstance(found, ChoiceOptions) and not found.choices:
        raise OptionError("a choice needs choices")
    if isinstance(found, PatternOptions):
        if not found.pattern:
            raise OptionError("a pattern needs the option pattern")
        found.compiled()
    if isinstance(found, UrlOptions) and not found.schemes:
        raise OptionError("a url needs a scheme")


def compile_pattern(pattern: str, *, ignore_case: bool = False) -> Any:
    """Return a compiled RE2 pattern. Raise OptionError with the reason if it is too long, invalid or unsupported."""
    if len(pattern) > MAX_PATTERN:
        raise OptionError(f"pattern is longer than {MAX_PATTERN} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PROGRAM
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "invalid"
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise OptionError(f"pattern is not supported by RE2: {text}") from None


# ---- reading options ---------------------------------------------------------


def _whole(option: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OptionError(f"{option} must be a whole number that is not negative")
    return value


def _decimal(option: str, value: Any) -> Decimal:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            found = Decimal(str(value))
        except InvalidOperation:
            pass
        else:
            if found.is_finite():
                return found
    raise OptionError(f"{option} must be a number")


def _bound(option: str, value: Any) -> Decimal | int:
    return _whole(option, value) if isinstance(value, int) and value >= 0 else _decimal(option, value)


def _flag(option: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise OptionError(f"{option} must be true or false")
    return value


def _text(option: str, value: Any) -> str:
    if not isinstance(value, str):
        raise OptionError(f"{option} must be a text")
    return value


def _texts(option: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(one, str) for one in value):
        raise OptionError(f"{option} must be a list of texts")
    return tuple(value)


def _codes(option: str, value: Any) -> tuple[str, ...]:
    return tuple(one.upper() for one in _texts(option, value))


def _moment(option: str, value: Any) -> date | time:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    for kind in (date, time):
        try:
            return kind.fromisoformat(str(value))
        except ValueError:
            continue
    raise OptionError(f"{option} must be a date such as 2027-03-01 or a time such as 09:30")


def _one_of(*names: str) -> Callable[[str, Any], str]:
    def read(option: str, value: Any) -> str:
        if value not in names:
            raise OptionError(f"{option} must be one of {', '.join(names)}")
        return str(value)

    return read


def _choices(option: str, value: Any) -> tuple[Choice, ...]:
    """Read the choices: a list of ids, or of mappings with id, label (or labels) and synonyms, each by language."""
    if not isinstance(value, Sequence) or isinstance(value, str) or not 0 < len(value) <= MAX_CHOICES:
        raise OptionError(f"{option} must be a list of 1 to {MAX_CHOICES} choices")
    found = tuple(one if isinstance(one, Choice) else _choice(one) for one in value)
    ids = [one.id for one in found]
    if len(set(ids)) != len(ids):
        raise OptionError(f"{option} has an id twice")
    return found


def _choice(value: Any) -> Choice:
    if isinstance(value, str):
        value = {"id": value}
    if not isinstance(value, Mapping) or not isinstance(value.get("id"), str) or not value["id"].strip():
        raise OptionError("a choice needs an id, which is a text: quote ids such as yes and no")
    extra = set(value) - {"id", "label", "labels", "synonyms"}
    if extra:
        raise OptionError(f"choice '{value['id']}' has no '{min(map(str, extra))}'")
    labels = value.get("labels", value.get("label", value["id"]))
    synonyms = value.get("synonyms", {})
    by_language = labels if isinstance(labels, Mapping) else dict.fromkeys(LANGUAGES, labels)
    more = synonyms if isinstance(synonyms, Mapping) else dict.fromkeys(LANGUAGES, synonyms)
    if not set(by_language) | set(more) <= set(LANGUAGES):
        raise OptionError(f"choice '{value['id']}': languages are {', '.join(LANGUAGES)}")
    return Choice(
        value["id"],
        {cast("Language", name): _text("label", one) for name, one in by_language.items()},
        {cast("Language", name): _texts("synonyms", some) for name, some in more.items()},
    )


_READERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "minimum": _bound,
    "maximum": _bound,
    "decimals": _whole,
    "lines": _flag,
    "level": _one_of(*get_args(Level)),
    "schemes": _texts,
    "currency": lambda option, value: _text(option, value).upper(),
    "currencies": _codes,
    "when": _one_of(*get_args(Side)),
    "earliest": _moment,
    "latest": _moment,
    "choices": _choices,
    "countries": _codes,
    "types": _texts,
    "max_bytes": _whole,
    "pattern": _text,
    "ignore_case": _flag,
}
