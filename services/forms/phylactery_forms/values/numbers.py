"""Numbers in figures and in words, Spanish and English, read only where the whole numeric span is one number.

"cinco y medio" is 5.5 and never 5. "1.234" alone is a thousand and some for one person and one and some for another: it
is asked about, except where only one reading is possible. text2num reads neither "veintitres" nor "veintiún mil", so
the words are composed here, from the number words of the understanding library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context as DecimalContext
from decimal import Decimal
from functools import cache
from typing import Final

from phylactery_forms.values.message import Message, filler, groups, known, words
from phylactery_forms.values.model import Context, Found, Language, NumberOptions, Options, Problem

_UNITS: Final[dict[str, int]] = {
    **{word: int(value) for word, value in known("numbers").items() if int(value) < 1_000},
    **{word: int(value) for value, some in groups("more_numbers").items() for word in some},
}
"""The value of each number word below a thousand."""
_SCALES: Final[dict[str, int]] = {word: 10 ** int(power) for power, some in groups("scales").items() for word in some}
_SCALES_EN: Final = frozenset(groups("english_scales").get(9, ()))
_COUNTS: Final[dict[str, int]] = {word: int(value) for value, some in groups("counts").items() for word in some}
_HALF: Final = words("half_words")
_QUARTER: Final = words("quarter_words")
_JOINTS: Final = words("joints")
_POINTS: Final = words("decimal_points")
_MINUS: Final = words("minus_words")
_ARTICLES: Final = words("number_articles")
_ENGLISH_ONLY: Final = words("not_numbers_in_english")
_BENT: Final = words("bent_before")
_WITH: Final = words("decimal_joints")
_OVER: Final = words("over_words")
_STRANGE_SCALES: Final = words("strange_scales")
_PART_NAMES: Final = {word: int(below) for below, some in groups("part_names").items() for word in some}
_ORDINALS: Final = frozenset(known("days_of_month")) - frozenset(_UNITS)
_TENS: Final = frozenset(word for word, value in _UNITS.items() if value in range(20, 100, 10))
_UNIT_LETTERS: Final = words("unit_letters")

_LITERAL: Final = r"(?:(?<![^\s(=:-])[.,])?\d+(?:[.,'\u00b7]\d+)*(?:e[+-]?\d{1,2}(?![a-z0-9]))?"
_TOKEN: Final = re.compile(rf"(?P<figure>{_LITERAL})|(?P<word>[a-z]+)|(?P<part>[½¼¾])|(?P<mark>[^\sa-z0-9])")
_GROUPED_BY_SPACES: Final = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d]|[.,]\d{3}(?!\d))(?:[.,]\d+)?")
_GROUP: Final = 3
_MOST_DIGITS: Final = 30
_MOST: Final = 40
_PARTS: Final = {"½": Decimal("0.5"), "¼": Decimal("0.25"), "¾": Decimal("0.75")}
_HUNDRED, _THOUSAND = 100, 1_000
_AFTER_ARTICLES: Final = frozenset({"hundred", "thousand", "million", "billion", "dozen"})
_HUNDREDS: Final = frozenset({"hundred", "cientos", "cientas"})
_FRACTIONS: Final = DecimalContext(prec=15)


@dataclass(frozen=True, slots=True)
class Token:
    """A figure, word or mark of a message."""

    text: str
    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The numeric span at a place: its value, or None where it is not one number; ``code`` says why."""

    value: Decimal | None
    start: int
    end: int
    code: str = ""
    weak: bool = False
    """True for a word that is a number only if nothing else is said: un, una."""


def tokens_of(plain: str) -> list[Token]:
    """Return the tokens of a folded text."""
    spaced = {one.start(): one for one in _GROUPED_BY_SPACES.finditer(plain)}
    found, place = list[Token](), 0
    while match := _TOKEN.search(plain, place):
        grouped = spaced.get(match.start())
        if grouped is not None:
            found.append(Token(grouped[0], "figure", *grouped.span()))
            place = grouped.end()
            continue
        found.append(Token(match[0], str(match.lastgroup), *match.span()))
        place = match.end()
    return found


# ---- figures -----------------------------------------------------------------


def literal(text: str, language: Language, *, decimals: int | None = None) -> Decimal | str | None:
    """Return the value of a figure, "ambiguous_number" if it has two readings, or None if it is no number."""
    text = text.replace(" ", "").replace("\u00b7", ".")
    text = f"0{text}" if text[:1] in {".", ","} else text
    mantissa, _, exponent = text.partition("e")
    if len(mantissa) > _MOST_DIGITS:
        return None
    power = int(exponent) if exponent else 0
    marks = [one for one in mantissa if not one.isdigit()]
    kinds = set(marks)
    if not marks:
        return _scaled(mantissa, power)
    if "'" in kinds:
        rest = {one for one in kinds if one != "'"}
        if not _is_grouped(re.split("[.,]", mantissa)[0], "'") or len([one for one in marks if one != "'"]) > 1:
            return None
        mantissa = mantissa.replace("'", "")
        return _scaled(mantissa.replace(",", "."), power) if rest else _scaled(mantissa, power)
    if len(kinds) > 1:
        decimal = marks[-1]
        group = "," if decimal == "." else "."
        whole = mantissa.rpartition(decimal)[0]
        if marks.count(decimal) > 1 or not _is_grouped(whole, group):
            return None
        return _scaled(mantissa.replace(group, "").replace(decimal, "."), power)
    mark = marks[0]
    if len(marks) > 1:
        return _scaled(mantissa.replace(mark, ""), power) if _is_grouped(mantissa, mark) else None
    if not _is_grouped(mantissa, mark):
        return _scaled(mantissa.replace(mark, "."), power)
    if (mark == "," and language == "en") or (decimals is not None and decimals < _GROUP):
        return _scaled(mantissa.replace(mark, ""), power)
    return "ambiguous_number"


def _is_grouped(text: str, mark: str) -> bool:
    first, *rest = text.split(mark)
    return 0 < len(first) <= _GROUP and not (first.startswith("0") and rest) and all(len(one) == _GROUP for one in rest)


def _scaled(text: str, power: int) -> Decimal:
    return Decimal(text).scaleb(power) if power else Decimal(text)


# ---- spans -------------------------------------------------------------------


def readings(
    message: Message, language: Language, *, decimals: int | None = None, tokens: Sequence[Token] | None = None
) -> Iterator[Reading]:
    """Yield every numeric span of a message with its value."""
    tokens = tokens_of(message.plain) if tokens is None else tokens
    place = count = 0
    while place < len(tokens) and count < _MOST:
        reader = _Reader(tokens, place, language, decimals)
        if not reader.starts():
            place += 1
            continue
        found, place = reader.read()
        if found is not None:
            count += 1
            yield found


class _Sum:
    """The value of number words, added one by one."""

    def __init__(self) -> None:
        self.part = Decimal(0)
        """What is below a thousand."""
        self.empty = True
        self.step = Decimal(1)
        """What "and a half" is half of."""
        self._total = self._thousands = Decimal(0)
        self._last = 10**60

    @property
    def takes_figure(self) -> bool:
        """Return True if a figure may follow: 4 thousand 321, but not five 5."""
        return not self.empty and self.step >= _HUNDRED

    @property
    def value(self) -> Decimal:
        """Return the sum so far."""
        return self._total + self._thousands + self.part

    def unit(self, value: int, *, joined: bool = False) -> bool:
        """Add a word below a thousand, if it can follow: treinta y uno, but not uno treinta."""
        part = self.part
        if value == 0:
            fits = self.empty
        elif value < 10:
            fits = part == int(part) and part % 10 == 0 and (part % 100 != 10 or joined)  # diez y seis
        elif value < _HUNDRED:
            fits = part % _HUNDRED == 0
        else:
            fits = part == 0
        if fits:
            self.part, self.empty, self.step = part + value, False, Decimal(1)
        return fits

    def hundred(self) -> bool:
        """Multiply by a hundred: two hundred, twelve hundred, a hundred."""
        fits = self.part < _HUNDRED
        if fits:
            self.part, self.empty, self.step = (self.part or Decimal(1)) * _HUNDRED, False, Decimal(_HUNDRED)
        return fits

    def count(self, value: int) -> bool:
        """Multiply by a dozen or a pair."""
        fits = self.empty or (self._total == self._thousands == 0 and self.part > 0)
        if fits:
            self.part, self.empty, self.step = (self.part or Decimal(1)) * value, False, Decimal(value)
        return fits

    def scale(self, value: int) -> bool:
        """Multiply by a thousand or more: each scale is smaller than the one before, but mil millones."""
        if value == _THOUSAND:
            fits = self._thousands == 0
            if fits:
                self._thousands, self.part = (self.part or Decimal(1)) * value, Decimal(0)
        else:
            fits = value < self._last
            if fits:
                self._total += (self._thousands + self.part or Decimal(1)) * value
                self._thousands, self.part, self._last = Decimal(0), Decimal(0), value
        if fits:
            self.empty, self.step = False, Decimal(value)
        return fits


class _Reader:
    """Reads one numeric span, which begins at a place."""

    def __init__(self, tokens: Sequence[Token], place: int, language: Language, decimals: int | None) -> None:
        self._tokens, self._first, self._at = tokens, place, place
        self._language: Language = language
        self._decimals = decimals
        self._code = ""

    def starts(self) -> bool:
        one = self._tokens[self._at]
        if one.kind in {"figure", "part"} or one.text in _COUNTS or one.text in _HALF:
            return True
        if one.text in _POINTS and self._starts_number(1):
            return True
        if one.text in _ENGLISH_ONLY and self._language == "en":
            return False
        if one.text in _UNITS or one.text in _SCALES:
            return True
        return one.text in _ARTICLES and self._word(1) in _AFTER_ARTICLES

    def read(self) -> tuple[Reading | None, int]:
        """Return the reading, and the place after it."""
        tokens = self._tokens
        value = self._number()
        if self._at == self._first:
            return None, self._first + 1
        if value is not None:
            value = self._fraction(value)
        if value is not None and self._goes_on():
            value, self._code, self._at = None, "unclear_number", self._at + 1
        if value is None and not self._code:
            self._code = "unclear_number"
        while self._continues():  # digits one by one, or two numbers side by side: not one number
            value, self._code, place = None, "unclear_number", self._at
            self._number()
            if self._at == place:
                break
        self._at = min(self._at, len(tokens))
        start, end = tokens[self._first].start, tokens[self._at - 1].end
        start, value = self._signed(start, value)
        if self._is_part_of_something(start, end):
            return None, self._at
        if value is not None and start == tokens[self._first].start and self._is_bound():
            value, self._code = None, "inexact_number"
        alone = self._at == self._first + 1 and start == tokens[self._first].start
        unit = self._at < len(tokens) and tokens[self._at].start == end and tokens[self._at].kind == "word"
        weak = unit or (alone and tokens[self._first].text in words("weak_numbers"))
        return Reading(value, start, end, self._code, weak), self._at

    def _goes_on(self) -> bool:
        """Return True if the next words change the number in a way that is not read: twenty-first, 13 lakh."""
        article = int(self._word() in _JOINTS) and 1 + int(self._word(1) in {"a", "an", "un"})
        ahead = 1 if self._word() == "-" and self._beside() else article
        named = _part_named(self._word(ahead)) is not None and not (
            ahead and self._tokens[self._first].kind == "figure"
        )
        named = named or (
            self._word(int(self._word() == "-")) in _ORDINALS and self._tokens[self._at - 1].text in _TENS
        )
        quarter = self._first > 0 and self._tokens[self._first - 1].text in _QUARTER
        return named or quarter or self._word() in _HALF | _STRANGE_SCALES

    def _is_bound(self) -> bool:
        """Return True if the words before say that the number is a bound: at least 5, más de 5."""
        before = [one.text for one in self._tokens[max(self._first - 3, 0) : self._first]]
        return any(" ".join(before[at:]) in _BENT for at in range(len(before)))

    def _word(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].text if at < len(self._tokens) else ""

    def _kind(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].kind if at < len(self._tokens) else ""

    def _beside(self, ahead: int = 0) -> bool:
        """Return True if a token touches the one before it."""
        at = self._at + ahead
        return 0 < at < len(self._tokens) and self._tokens[at].start == self._tokens[at - 1].end

    def _continues(self) -> bool:
        one = self._word()
        if self._kind() == "figure":
            return self._tokens[self._at - 1].kind in {"figure", "word"}
        if one == "-" and self._beside() and self._beside(1) and self._word(1) in _UNITS:
            self._at += 1
            return True
        return (one in _UNITS or one in _SCALES) and one not in _ARTICLES and self._tokens[self._at - 1].kind != "mark"

    def _number(self) -> Decimal | None:
        """Read a composed number, and set the place after it; None if it is not one."""
        if self._kind() == "part":
            self._at += 1
            return _PARTS[self._tokens[self._at - 1].text]
        if self._word() in _POINTS:  # punto cinco
            return self._behind(Decimal(0), Decimal(1))
        made = _Sum()
        if self._kind() == "figure":
            read = self._figure()
            if read is None or self._word() not in {*_SCALES, *_COUNTS, *_HUNDREDS}:
                return read
            made.part, made.empty = read, False
        elif self._word() in _HALF:
            if self._word(1) not in _SCALES | _COUNTS and self._word(1) not in {"a", "an"}:
                self._at += 1
                return Decimal("0.5")
            self._at += 2 if self._word(1) in {"a", "an"} else 1
            made.part, made.empty = Decimal("0.5"), False
        elif self._word() in _ARTICLES and self._word(1) in _AFTER_ARTICLES:
            self._at += 1
            made.part, made.empty = Decimal(1), False
        while self._adds(made):
            pass
        return None if made.empty else self._behind(made.value, made.step)

    def _figure(self) -> Decimal | None:
        """Read a figure with what belongs to it: 5k, 1½; None, with a code, if it is not one number."""
        text = self._word()
        self._at += 1
        read = literal(text, self._language, decimals=self._decimals)
        if read == "ambiguous_number" and self._word() in _SCALES:  # of thousands or millions: a decimal mark
            read = Decimal(text.replace(",", "."))
        if not isinstance(read, Decimal):
            self._code = read or "not_a_number"
            return None
        if self._word() == "k":
            self._at += 1
            return read * _THOUSAND
        if self._kind() == "part":
            self._at += 1
            return read + _PARTS[self._tokens[self._at - 1].text]
        return read

    def _adds(self, made: _Sum) -> bool:
        """Add the next word to a number, over a word that joins; False if it does not belong to it."""
        one = self._word()
        touching = one == "-" and self._beside() and self._beside(1)
        skip = int(not made.empty and (one in _JOINTS or touching))
        word = self._word(skip)
        if skip and (word not in _UNITS and self._kind(skip) != "figure"):
            return False
        figure = self._kind(skip) == "figure" and word.isdigit() and made.takes_figure
        if figure and len(word) <= _GROUP and made.unit(int(word)):
            self._at += skip + 1
            return True
        if word in _HUNDREDS:
            added = made.hundred()
        elif word in _COUNTS:
            added = made.count(_COUNTS[word])
        elif word in _UNITS:
            added = made.unit(_UNITS[word], joined=bool(skip))
        else:
            added = word in _SCALES and made.scale(self._scale(word))
        self._at += (skip + 1) * added
        return added

    def _scale(self, word: str) -> int:
        if word in _SCALES_EN and (self._language == "en" or not word.endswith(("on", "ones"))):
            return {"billion": 10**9, "billions": 10**9, "trillion": 10**12, "trillions": 10**12}.get(
                word, _SCALES[word]
            )
        return _SCALES[word]

    def _behind(self, value: Decimal, step: Decimal) -> Decimal | None:
        """Read what adds to a number: and a half, y cuarto, coma cinco."""
        if self._word() in _JOINTS:
            skip = 2 if self._word(1) in {"a", "an"} else 1
            share = self._word(skip)
            if share in _HALF or share in _QUARTER:
                self._at += skip + 1
                part = Decimal("0.5") if share in _HALF else Decimal("0.25")
                if self._word() in _SCALES:  # two and a half million
                    scale = self._scale(self._word())
                    self._at += 1
                    return (value + part) * scale
                return value + part * step
        if self._word() in _POINTS and (self._word(1) in _UNITS or self._kind(1) == "figure"):
            self._at += 1
            digits = self._digits()
            if digits is None:
                self._code = "unclear_number"
                return None
            value = Decimal(f"{int(value)}.{digits}")
            if self._word() in _SCALES:
                value *= self._scale(self._word())
                self._at += 1
        return value

    def _digits(self) -> str | None:
        """Read the decimals that follow a spoken point: one four, catorce, cero cinco."""
        if self._kind() == "figure":
            self._at += 1
            return self._tokens[self._at - 1].text if self._tokens[self._at - 1].text.isdigit() else None
        found = ""
        while (one := self._word()) in _UNITS and len(found) < _MOST_DIGITS:
            value = _UNITS[one]
            self._at += 1
            if value in range(20, 100, 10):
                skip = 1 if self._word() in _JOINTS | {"-"} else 0
                more = _UNITS.get(self._word(skip), 0)
                if 0 < more < 10:
                    value += more
                    self._at += skip + 1
            found += str(value)
        return found or None

    def _fraction(self, value: Decimal) -> Decimal | None:
        """Read what makes a fraction of a number: 3/4, 1 1/2, tres cuartos, dos con un tercio, one over three."""
        if self._word() == "/" and self._beside() and self._kind(1) == "figure" and self._beside(1):
            digits = self._word(1)
            self._at += 2
            return None if self._word() == "/" or not digits.isdigit() else self._divided(value, int(digits))
        if self._kind() == "figure" and self._word(1) == "/" and self._beside(1) and self._beside(2):
            whole, self._at = value, self._at + 1
            above = self._tokens[self._at - 1].text
            part = self._fraction(Decimal(above)) if above.isdigit() else None
            return None if part is None else whole + part
        parts = self._named_share(value)
        if parts is not None:
            return parts
        if self._word() in _OVER and self._starts_number(1) and value <= _HUNDRED:
            self._at += 1
            under = self._number()
            return None if under is None or under != int(under) else self._divided(value, int(under))
        if self._word() in _JOINTS | _WITH and (self._starts_number(1) or self._word(1) in _HALF):
            return self._and_share(value)
        return value

    def _and_share(self, value: Decimal) -> Decimal | None:
        """Read what "y" or "con" adds: dos y un tercio, siete con cincuenta."""
        begin, joint = self._at, self._word()
        self._at += 1
        more = self._number()
        share = None if more is None else self._named_share(more)
        if share is not None and share < 1 and value == int(value):
            return value + share
        if joint in _WITH and more is not None and more == int(more) and more > 0 and value == int(value):
            return Decimal(f"{int(value)}.{int(more)}")
        self._at = begin
        return None if joint in _WITH else value

    def _starts_number(self, ahead: int) -> bool:
        return self._word(ahead) in _UNITS or self._word(ahead) in _SCALES or self._kind(ahead) == "figure"

    def _named_share(self, value: Decimal) -> Decimal | None:
        """Return a number of named parts: tres cuartos, two fifths, cien treintaicincoavos; None if none are named."""
        at = 1 if self._word() == "-" else 0
        below = _part_named(self._word(at))
        if below is None or value != int(value) or value <= 0 or (value > 1) != self._word(at).endswith("s"):
            return None
        if value > _HUNDRED and self._language == "en":  # one hundred thirty fifths: three readings
            return None
        self._at += at + 1
        return self._divided(value, below)

    def _divided(self, value: Decimal, below: int) -> Decimal | None:
        if not below > 0:
            self._code = "not_a_number"
            return None
        return _FRACTIONS.divide(value, Decimal(below))

    def _signed(self, start: int, value: Decimal | None) -> tuple[int, Decimal | None]:
        """Return the start and the value with a sign before it."""
        if not self._first:
            return start, value
        sign = self._tokens[self._first - 1]
        earlier = self._tokens[self._first - 2] if self._first > 1 else None
        touching = sign.end == start and (earlier is None or earlier.end < sign.start or earlier.kind == "mark")
        opening = earlier is None or earlier.kind == "mark" or earlier.text in filler("number")
        if (sign.text == "-" and (touching or opening)) or (sign.text in _MINUS and (earlier is None or opening)):
            return sign.start, None if value is None else -value
        if sign.text == "+" and touching:
            return sign.start, value
        return start, value

    def _is_part_of_something(self, start: int, end: int) -> bool:
        """Return True if a span touches letters, a date, a time, an address: A12, 12/05/2026, 10:30, #5."""
        tokens = self._tokens
        before = next((one for one in tokens[max(self._first - 2, 0) : self._first] if one.end == start), None)
        after = tokens[self._at] if self._at < len(tokens) and tokens[self._at].start == end else None
        if before is not None and (before.kind in {"word", "figure"} or before.text in "#@_/:.\\^"):
            return tokens[self._first].kind == "figure"
        if after is None or tokens[self._at - 1].kind != "figure":
            return False
        if after.kind == "word":
            return after.text not in _UNIT_LETTERS
        behind = tokens[self._at + 1] if self._at + 1 < len(tokens) else None
        touching = behind is not None and behind.start == after.end and behind.kind in {"figure", "word"}
        return (after.text in "/:_@\\-" and touching) or after.text == "^"


@cache
def _part_named(word: str) -> int | None:
    """Return how many of a part make a whole: 4 for cuartos, 21 for veintiunavos, 2000 for dosmilésimas."""
    for name in (word, word.removesuffix("s")):
        if name in _PART_NAMES:
            return _PART_NAMES[name]
    name = word.removesuffix("s")
    for ending, scale in (("millonesim", 10**6), ("billonesim", 10**12), ("milesim", _THOUSAND), ("av", 1)):
        if name.endswith((ending + "o", ending + "a")):
            before = _run_together(name[: -len(ending) - 1])
            return None if before is None else before * scale
    return None


def _run_together(text: str) -> int | None:
    """Return the number of words written as one: treintaicinco, dosmil."""
    made, place = _Sum(), 0
    while place < len(text):
        sizes = range(min(len(text) - place, 14), 0, -1)
        size = next((size for size in sizes if text[place : place + size] in {**_UNITS, **_SCALES}), 0)
        if not size and text[place] in "iy":
            place += 1
            continue
        word = text[place : place + size]
        added = made.unit(_UNITS[word]) if word in _UNITS else word in _SCALES and made.scale(_SCALES[word])
        if not added:
            return None
        place += size
    return int(made.value) or 1


# ---- the type ----------------------------------------------------------------


def find_number(options: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the numbers of a message; a Problem if there is one that is ambiguous or not clear."""
    decimals = options.decimals if isinstance(options, NumberOptions) else None
    found, code = list[Found](), ""
    for one in readings(message, context.language, decimals=decimals):
        start, end = one.start, _with_unit(message.plain, one.end)
        if one.value is None:
            code = code or one.code
            continue
        if one.weak and not message.is_whole(start, end, filler("number")):
            continue
        found.append(message.found(canonical(one.value), start, end, filler("number")))
    if code and not any(one.whole for one in found):
        return Problem(code)
    return found


def _with_unit(plain: str, end: int) -> int:
    """Return the end of a number with the sign behind it: 20 %, 20€."""
    match = re.compile(r"\s?[%€$£]").match(plain, end)
    return match.end() if match else end


def canonical(value: Decimal) -> str:
    """Return a decimal without exponent and trailing zeros."""
    plain = format(value.normalize(), "f")
    return "0" if plain in {"-0", "0"} else plain


def check_number(options: Options, value: str, _: Context) -> str | Problem:
    """Return a canonical decimal within its bounds."""
    found = parse_decimal(value)
    if found is None:
        return Problem("not_a_number")
    return _bounded(options, found) or canonical(found)


def _bounded(options: Options, found: Decimal) -> Problem | None:
    if not isinstance(options, NumberOptions):
        return None
    if options.decimals is not None and -exponent(found) > options.decimals:
        code = "not_a_whole_number" if options.decimals == 0 else "too_many_decimals"
        return Problem(code, {"decimals": str(options.decimals)})
    return out_of_bounds(found, options.minimum, options.maximum)


def out_of_bounds(found: Decimal, minimum: Decimal | None, maximum: Decimal | None) -> Problem | None:
    """Return the problem of a number outside its bounds, or None."""
    if minimum is not None and found < minimum:
        return Problem("too_small", {"minimum": canonical(Decimal(minimum))})
    if maximum is not None and found > maximum:
        return Problem("too_large", {"maximum": canonical(Decimal(maximum))})
    return None


def exponent(value: Decimal) -> int:
    """Return the power of ten of a number's last digit that is not zero, at most 0."""
    power = value.normalize().as_tuple().exponent
    return min(power, 0) if isinstance(power, int) else 0


def parse_decimal(value: str) -> Decimal | None:
    """Return the number of a canonical decimal, or None."""
    text = value.strip()
    if len(text) > 2 * _MOST_DIGITS or not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text):
        return None
    return Decimal(text)


def show_number(value: str, language: Language) -> str:
    """Return a number with the marks of a language: 1.234,5 or 1,234.5; four digits in Spanish are not grouped."""
    found = parse_decimal(value)
    if found is None:
        return value
    text = f"{found:,f}"
    if language == "en":
        return text
    whole, _, rest = text.partition(".")
    digits = whole.lstrip("-").replace(",", "")
    whole = whole.replace(",", "") if len(digits) <= _GROUP + 1 else whole.replace(",", ".")
    return f"{whole},{rest}" if rest else whole
