"""Numbers in figures and in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final

from phylactery_understanding.language.text import Kind, Token
from phylactery_understanding.language.vocabulary import word_map, word_set

_WORDS: Final = word_map("numbers")
_THOUSANDS: Final = 3
_LONGEST: Final = 24


def number_words() -> Collection[str]:
    """Return every word that means a number."""
    return _WORDS.keys()


def value_of(word: str) -> float | None:
    """Return the number that a word means, or None."""
    return _WORDS.get(word)


def readings(written: str) -> frozenset[Decimal]:
    """Return the possible readings of a written number: 1.234 is a thousand and some, or one and some."""
    plain = written.strip().lstrip("$€£¥#+").rstrip("%€$£.,:")
    if not plain or len(plain) > _LONGEST or not plain[0].isdigit():
        said = value_of(plain)
        return frozenset() if said is None else frozenset({Decimal(str(said))})
    found = {_decimal(plain.replace(",", ""))} if _grouped(plain, ",") else set()
    found |= {_decimal(plain.replace(".", "").replace(",", "."))} if _grouped(plain, ".") or "." not in plain else set()
    found |= {_decimal(plain)} if "," not in plain else set()
    return frozenset(one.normalize() for one in found if one is not None)


def _grouped(plain: str, mark: str) -> bool:
    other = "," if mark == "." else "."
    whole = plain.split(other, maxsplit=1)[0] if other in plain and plain.rfind(other) > plain.rfind(mark) else plain
    first, *groups = whole.split(mark)
    leads = 0 < len(first) <= _THOUSANDS and first.strip("0") != ""  # no group begins with zeros: 0.500 is a half
    return bool(groups) and leads and all(len(one) == _THOUSANDS for one in groups)


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


_JOINTS: Final = word_set("number_joints")
_BOUNDS: Final = word_set("number_bounds")
_BEHIND: Final = word_set("number_shares")
_TO: Final = word_set("number_goals")
_CHANGES: Final = frozenset({"raise", "lower"})


def amounts_at(tokens: Sequence[Token], place: int, meanings: Collection[str] = ()) -> frozenset[Decimal]:
    """Return the amounts that the number at a place can mean; empty for a bound, a share or a change.

    ``meanings`` are those of its verb: after "raise" or "lower", a number without "to" is a change.
    """
    found = readings(tokens[place].text.lstrip("#"))
    if not found or _is_bent(tokens, place):
        return frozenset()
    before = {one.text for one in tokens[max(place - 2, 0) : place]}
    if not _CHANGES.isdisjoint(meanings) and _TO.isdisjoint(before):
        return frozenset()
    first, last = _run(tokens, place)
    if last - first >= _LONGEST_RUN:
        return frozenset()
    if first != last:
        total = _composed([one.text for one in tokens[first : last + 1]])
        return frozenset() if total is None else frozenset({total})
    return frozenset({max(found)})  # three decimals are not used: 50.000 is fifty thousand


def _is_bent(tokens: Sequence[Token], place: int) -> bool:
    """Return True if adjacent words change the meaning of a number: up to 50, -10, 50 %, ten and a half."""
    token, begin = tokens[place], max(place - 2, 0)
    texts = [one.text for one in tokens[begin : place + 5]]
    at = place - begin
    before, earlier = texts[at - 1] if at else "", texts[at - 2] if at > 1 else ""
    after = [*texts[at + 1 :], "", "", ""]
    bound = before in _BOUNDS or (before in {"to", "de", "of", "than", "least", "most"} and earlier in _BENT)
    share = after[0] in _BEHIND or token.text.endswith("%") or "ciento" in {token.text, after[0], after[1]}
    half = after[0] in _JOINTS and (after[1] in {"half", "medio", "media"} or after[2] in {"half", "medio", "media"})
    marked = bool(before) and tokens[place - 1].kind is Kind.MARK
    signed = before in {"-", "–", "−"} and tokens[place - 1].stop == token.start and not readings(earlier)
    strange = (marked and tokens[place - 1].raw not in _OPEN) or any(
        one.isdigit() and not one.isascii() for one in token.raw
    )
    again = any(after[one] in _EACH and after[one + 1] in _SPANS for one in (0, 1))  # 50 a month, 50 EUR a month
    return bound or share or half or signed or strange or again


_EACH: Final = word_set("number_rates")
_SPANS: Final = word_set("rate_periods")
_BENT: Final = word_set("bound_openings")
_LONGEST_RUN: Final = 12
"""The maximum number of words of one number."""
_HUNDRED, _THOUSAND = 100, 1_000
_MANY: Final = word_set("counting_units")
_OPEN: Final = frozenset(
    {
        ",",
        ":",
        ";",
        "(",
        "$",
        "€",
        "£",
        "¥",
        "#",
        "=",
        ".",
        "-",
        "–",
        "—",
        "→",
        "->",
        "=>",
        "+",
        "¿",
        "¡",
        "*",
        "•",
        "x",
        "×",
        "/",
    }
)


def _run(tokens: Sequence[Token], place: int) -> tuple[int, int]:
    """Return the first and last position of consecutive number words: one hundred and fifty."""

    def is_word(at: int) -> bool:
        return 0 <= at < len(tokens) and value_of(tokens[at].text) is not None

    def joined(at: int, step: int) -> int:
        """Return the distance to the number's next word: one, or two over an "and"; 0 if there is none."""
        if is_word(at + step):
            return 1
        over = 0 <= at + step < len(tokens) and tokens[at + step].text in _JOINTS and is_word(at + 2 * step)
        return 2 if over else 0

    first = last = place
    while last - first < _LONGEST_RUN and (size := joined(first, -1)):
        first -= size
    while last - first < _LONGEST_RUN and (size := joined(last, 1)):
        last += size
    return first, last


def _composed(texts: Sequence[str]) -> Decimal | None:
    """Return the number that some words mean together."""
    total = now = Decimal(0)
    for one in texts:
        if one in _JOINTS:
            continue
        values = readings(one)
        if not values:
            return None
        value = max(values)
        if value >= _THOUSAND:
            total, now = total + max(now, Decimal(1)) * value, Decimal(0)
        elif now and (value == _HUNDRED or one in _MANY):
            now *= value
        elif now % 10 ** len(str(int(value))):
            return None  # one twenty, five fifty: ambiguous
        else:
            now += value
    return (total + now).normalize()
