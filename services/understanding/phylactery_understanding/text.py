"""Fold text and cut it into tokens that remember where they stand."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

MAX_TOKENS: Final = 20_000
"""Tokens of a message that are read; a longer message is not understood."""
STEM: Final = 4
"""Letters of a word by which two of its forms are compared: "apague" and "apagar", "recoger" and "recoja"."""

_APOSTROPHES: Final = str.maketrans("’‘`´ʼ‐‑‒–—−", "'''''------")
_HIDDEN: Final = frozenset({"Cf", "Mn", "Me", "Co", "Cn"})
_QUOTES: Final = {'"': '"', "“": "”", "«": "»", "„": "“", "'": "'", "‘": "’", "`": "`"}
_LONGEST_QUOTE: Final = 4_000
_SUFFIX: Final = 5
"""Letters behind the dot of a file's name."""
_MARKS: Final = frozenset([*".,;:!?¡¿()|<>[]-–—…\"'’‘«»“”„`/&+*•#@%$€£¥°º=×·", "→", "->", "=>", "\n", "‑"])
"""Marks that people write between words."""
_DENYING: Final = frozenset("👎❌🚫⛔🙅✅☑✔✖❎🛑⚠🚧⏸⏹")
_ELISION: Final = frozenset({"cause", "cuz", "n", "til", "em", "tis", "twas"})
# No group is repeated possessively: Python 3.11.0 to 3.11.4 match less than they should then (CPython gh-106052).
_TOKEN = re.compile(
    r"(?P<url>(?:https?://|www\.)[^\s<>\"«»“”]++)"
    r"|(?P<mail>[\w.+%'-]++@[\w-]++(?:\.[\w-]++)*)"
    r"|(?P<mark>[#@][\w][\w./-]*+)"
    r"|(?P<time>\d{1,2}[:.h]\d{2}(?![\d.,:/-]))"
    r"|(?P<word>[^\W_]++(?:(?:[._'&/+\\=-]++|(?<=\d)[:,](?=\d))[^\W_]++)*)"
    r"|(?P<arrow>→|->|=>)"
    r"|(?P<line>\n)"
    r"|(?P<other>[^\s])",
    re.DOTALL,
)


class Kind(StrEnum):
    """What a token is."""

    WORD = "word"
    NUMBER = "number"
    LITERAL = "literal"
    """An address, a file, a channel, an id: something that names one thing as it is written."""
    QUOTE = "quote"
    MARK = "mark"
    """Punctuation."""
    BREAK = "break"
    """A line break."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a message: as it was written, folded, and where it stands (characters of the text)."""

    raw: str
    text: str
    kind: Kind
    start: int
    stop: int

    @property
    def stem(self) -> str:
        """The letters by which its forms are compared."""
        return self.text[:STEM]


def fold(text: str) -> str:
    """Fold case, width and accents of text, and drop what prints as nothing."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).casefold())
    return "".join(one for one in plain if unicodedata.category(one) not in _HIDDEN)


def written(text: str) -> str:
    """Fold case and width of text and keep its accents: iñaki@ is not inaki@."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).lower()


def is_strange_mark(raw: str) -> bool:
    """Return whether a mark is none that people write between words: it may strike out, deny or comment on them."""
    if raw in _MARKS or raw.isalnum():
        return False
    return raw in _DENYING or unicodedata.category(raw[:1]) not in {"So", "Sk", "Mn", "Cf"}


def is_latin(word: str) -> bool:
    """Return whether every letter of a word is of the script that the lexicons are written in."""
    return word.isascii() or all(unicodedata.name(one, "LATIN").startswith("LATIN") for one in word if one.isalpha())


def is_disguised(text: str) -> bool:
    """Return whether text holds a character that prints as nothing, turn the direction, or mixes scripts in a word."""
    if text.isascii():
        return False
    if any(unicodedata.category(one) in {"Cf", "Co"} and one not in "\ufe0f\u200d" for one in text):
        return True
    if any(one == "\u200d" for one in text) and not any(unicodedata.category(one) == "So" for one in text):
        return True
    return any(_mixes_scripts(word) for word in re.findall(r"[^\W\d_]+", text) if not word.isascii())


def _mixes_scripts(word: str) -> bool:
    scripts = {unicodedata.name(one, "?").split(" ")[0] for one in word if one.isalpha()}
    return len(scripts & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH"}) > 1


def tokenize(text: str) -> list[Token]:
    """Cut text into tokens. What stands in quotation marks is one token of kind QUOTE."""
    found: list[Token] = []
    place = 0
    quotes = _quotes(text)
    while len(found) <= MAX_TOKENS:
        match = _TOKEN.search(text, place)
        if match is None:
            break
        start, stop = match.span()
        closing = quotes.get(start)
        if closing is not None:
            found.append(
                Token(text[start + 1 : closing], fold(text[start + 1 : closing]), Kind.QUOTE, start, closing + 1)
            )
            place = closing + 1
            continue
        found.extend(_tokens(match, start, stop))
        place = found[-1].stop
    return found


def is_file_name(word: str) -> bool:
    """Return whether a word ends as the name of a file does."""
    stem, dot, suffix = word.rpartition(".")
    return (
        bool(stem and dot) and "@" not in word and suffix.isalnum() and not suffix.isdigit() and len(suffix) <= _SUFFIX
    )


def merged_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans (start, stop) in order, those that touch or overlap joined into one."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


def _tokens(match: re.Match[str], start: int, stop: int) -> list[Token]:
    raw = match.group()
    if match.lastgroup == "line":
        return [Token(raw, "\n", Kind.BREAK, start, stop)]
    if match.lastgroup in {"url", "mail"}:
        kept = raw.rstrip(".,;:!?)'…")
        return [Token(kept, written(kept), Kind.LITERAL, start, start + len(kept))]
    if match.lastgroup == "mark":
        kept = raw.rstrip("./-")
        return [Token(kept, written(kept), Kind.LITERAL, start, start + len(kept))]
    if match.lastgroup in {"other", "arrow"}:
        return [Token(raw, fold(raw) or raw, Kind.MARK, start, stop)]
    return [Token(raw, fold(raw), _kind_of(raw), start, stop)]


def _kind_of(raw: str) -> Kind:
    if raw.replace(".", "").replace(",", "").replace(":", "").isdigit():
        return Kind.NUMBER
    if any(one.isdigit() for one in raw) and any(one.isalpha() for one in raw):
        return Kind.LITERAL
    stem, dot, suffix = raw.rpartition(".")
    if dot and stem and 1 <= len(suffix) <= _SUFFIX and suffix.isalnum() and not stem.endswith("."):
        return Kind.LITERAL
    return Kind.LITERAL if any(one in raw for one in "/\\_=") else Kind.WORD


def _quotes(text: str) -> dict[int, int]:
    """Return where each quotation opens and close; an apostrophe within a word opens none."""
    closings = {
        mark: [place for place, one in enumerate(text) if one == mark and not text[place + 1 : place + 2].isalnum()]
        for mark in set(_QUOTES.values())
        if mark in text
    }
    found: dict[int, int] = {}
    place = 0
    while place < len(text):
        closing = closings.get(_QUOTES.get(text[place], ""))
        if closing and _opens(text, place):
            at = bisect_right(closing, place)
            if at < len(closing) and closing[at] - place <= _LONGEST_QUOTE:
                found[place] = place = closing[at]
        place += 1
    return found


def _opens(text: str, place: int) -> bool:
    if place and (text[place - 1].isalnum() or text[place - 1] == "_"):
        return False
    after = text[place + 1 : place + 2]
    if not after.strip():
        return False
    word = re.match(r"[a-z]+", text[place + 1 : place + 8])
    return not (text[place] == "'" and word and word.group() in _ELISION)
