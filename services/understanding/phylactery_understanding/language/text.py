"""Text folding, and tokenization that keeps positions."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from phylactery_understanding.language.vocabulary import word_set

MAX_TOKENS: Final = 20_000
"""The maximum number of tokens of a message; a longer one is not understood."""
STEM: Final = 4
"""The number of letters by which word forms are compared: "apague" and "apagar", "recoger" and "recoja"."""

_APOSTROPHES: Final = str.maketrans("’‘`´ʼ‐‑‒–—−", "'''''------")
_HIDDEN: Final = frozenset({"Cf", "Mn", "Me", "Co", "Cn"})
_QUOTES: Final = {'"': '"', "“": "”", "«": "»", "„": "“", "'": "'", "‘": "’", "`": "`"}
_QUOTE: Final = re.compile(f"[{re.escape(''.join(_QUOTES))}]")
_LONGEST_QUOTE: Final = 4_000
_SUFFIX: Final = 5
"""The letters of a file extension."""
_MARKS: Final = frozenset([*".,;:!?¡¿()|<>[]-–—…\"'’‘«»“”„`/&+*•#@%$€£¥°º=×·", "→", "->", "=>", "\n", "‑"])
"""Punctuation that people write between words."""
_DENYING: Final = frozenset("👎❌🚫⛔🙅✅☑✔✖❎🛑✋🤚⚠🚧⏸⏹")
_ELISION: Final = word_set("elisions")
# No group is repeated possessively: Python 3.11.0 to 3.11.4 match too little in that case (CPython gh-106052).
_TOKEN = re.compile(
    r"(?P<url>(?:https?://|www\.)[^\s<>\"«»“”]++)"
    r"|(?P<mail>[\w.+%'-]{1,256}+@[\w-]++(?:\.[\w-]++)*)"
    r"|(?P<mark>[#@][\w][\w./-]*+)"
    r"|(?P<time>\d{1,2}[:.h]\d{2}(?![\d.,:/-]))"
    r"|(?P<day>\d{1,2}\.(?=[ \t](?i:jan|feb|märz|apr|mai|jun|jul|aug|sep|okt|nov|dez)))"
    r"|(?P<word>[^\W_]++(?:(?:[._'&/+\\=-]++|(?<=\d)[:,](?=\d))[^\W_]++)*)"
    r"|(?P<arrow>→|->|=>)"
    r"|(?P<line>\n)"
    r"|(?P<other>[^\s])",
    re.DOTALL,
)


class Kind(StrEnum):
    """The kind of a token."""

    WORD = "word"
    NUMBER = "number"
    LITERAL = "literal"
    """An address, a file, a channel, an id: the exact name of one thing."""
    QUOTE = "quote"
    MARK = "mark"
    """Punctuation."""
    BREAK = "break"
    """A line break."""


STOPS: Final = frozenset({Kind.MARK, Kind.BREAK})
"""Kinds of tokens that are no words."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a message: as written, folded, and its position (in characters of the text)."""

    raw: str
    text: str
    kind: Kind
    start: int
    stop: int

    @property
    def stem(self) -> str:
        """Return the letters by which its forms are compared."""
        return self.text[:STEM]


def fold(text: str) -> str:
    """Fold case, width and accents of text, and remove invisible characters."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).casefold())
    return "".join(one for one in plain if unicodedata.category(one) not in _HIDDEN)


def written(text: str) -> str:
    """Fold case and width of text but keep accents: iñaki@ is not inaki@."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).lower()


def is_strange_mark(raw: str) -> bool:
    """Return True if a mark is unusual between words: it may strike out, negate or comment on them."""
    if raw in _MARKS or raw.isalnum():
        return False
    return raw in _DENYING or unicodedata.category(raw[:1]) not in {"So", "Sk", "Mn", "Cf"}


def is_latin(word: str) -> bool:
    """Return True if every letter of a word is in the script of the lexicons."""
    return word.isascii() or all(unicodedata.name(one, "LATIN").startswith("LATIN") for one in word if one.isalpha())


def is_disguised(text: str) -> bool:
    """Return True if text has an invisible or direction-changing character, or a word of mixed scripts."""
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
    """Split text into tokens. A text in quotation marks is one token of kind QUOTE."""
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
    """Return True if a word has a file extension."""
    stem, dot, suffix = word.rpartition(".")
    return (
        bool(stem and dot) and "@" not in word and suffix.isalnum() and not suffix.isdigit() and len(suffix) <= _SUFFIX
    )


def merged_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans (start, stop) in order, with touching or overlapping ones merged."""
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
    if raw.isalpha():
        return Kind.WORD
    if raw.replace(".", "").replace(",", "").replace(":", "").isdigit():
        return Kind.NUMBER
    if any(one.isdigit() for one in raw) and any(one.isalpha() for one in raw):
        return Kind.LITERAL
    stem, dot, suffix = raw.rpartition(".")
    if dot and stem and 1 <= len(suffix) <= _SUFFIX and suffix.isalnum() and not stem.endswith("."):
        return Kind.LITERAL
    return Kind.LITERAL if any(one in raw for one in "/\\_=") else Kind.WORD


def _quotes(text: str) -> dict[int, int]:
    """Return the start and end of each quotation; an apostrophe within a word does not open one."""
    closings = {
        mark: [
            one.start() for one in re.finditer(re.escape(mark), text) if not text[one.end() : one.end() + 1].isalnum()
        ]
        for mark in set(_QUOTES.values())
        if mark in text
    }
    found: dict[int, int] = {}
    place = 0
    while opening := _QUOTE.search(text, place):
        start = opening.start()
        place = start + 1
        closing = closings.get(_QUOTES[text[start]])
        if closing and _opens(text, start):
            at = bisect_right(closing, start)
            if at < len(closing) and closing[at] - start <= _LONGEST_QUOTE:
                found[start] = closing[at]
                place = closing[at] + 1
    return found


def _opens(text: str, place: int) -> bool:
    if place and (text[place - 1].isalnum() or text[place - 1] == "_"):
        return False
    after = text[place + 1 : place + 2]
    if not after.strip():
        return False
    word = re.match(r"[a-z]+", text[place + 1 : place + 8])
    return not (text[place] == "'" and word and word.group() in _ELISION)
