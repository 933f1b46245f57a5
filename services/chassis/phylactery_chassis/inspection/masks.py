"""Marks in a text that stand for what its author was not shown: masks of a redaction, and marks of a part left out.

Whoever writes such a text over the original destroys it. A model repeats a mask in part, in other letters or quotes, or
in words of its own ("[REDACTED]"), so more is recognized here than what a redaction writes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from phylactery_chassis.inspection.inspector import ALL_KINDS, inspect, redact
from phylactery_chassis.inspection.kinds import FindingKind
from phylactery_chassis.inspection.text import masked_kinds

MAX_READ: Final = 128 * 1024
"""The number of characters that are searched for values; a longer text may hold any kind."""

_APART: Final = "\0"
"""Between texts that are searched as one; no argument holds it."""
_OPENS: Final = r"(?:[«‹《]|<<|&laquo;|&lsaquo;|&#171;|&#xab;|\\u00ab|%c2%ab)"
_CLOSES: Final = r"(?:[»›》]|>>|&raquo;|&rsaquo;|&#187;|&#xbb;|\\u00bb|%c2%bb)"
_BESIDE: Final = r"[\s_*`'\"-]{0,3}"
_CUT: Final = r"(?:\.{3}|…)"
_LEAST: Final = 3
"""The number of letters of a mask's name that are a part of it."""
_LABELS: Final = (
    r"(?:\w{1,20}[ _-]){0,2}"
    r"(?:redacted|masked|hidden|removed|censored|withheld|secret|credential|(?:api|access|secret)[ _-]?key"
    r"|private[ -]?key|ocult[oa]|enmascarad[oa]|censurad[oa]|eliminad[oa]|omitid[oa]"
    r"|secreto|clave(?: api| privada)?|contrasena)s?"
)
_IN_OTHER_WORDS: Final = (
    rf"\bredacted\b|(?:\[|<|{_OPENS}){_BESIDE}{_LABELS}{_BESIDE}(?:\]|>|{_CLOSES})"
    rf"|[*•●█▇■]{{4,}}|\bx{{8,}}\b|[:=][ \t]{{0,3}}[\"']?{_CUT}"
    rf"|[:=][ \t]{{0,3}}[\"']?(?:\w{{0,12}}[*•●█▇■]{{2,}}(?![\w*])|x{{3,}}(?![\w.-])|\({_LABELS}\)|\$?\{{+{_LABELS}\}})"
    r"|\b[a-z]{2,12}[_-]\*{2,}(?![\w*])"
    r"|\b(?:your|tu)[ _-](?:\w{1,20}[ _-]){0,2}(?:key|token|password|secret|clave|contrasena)\b"
)
"""What models write for a masked value. It counts only where something was masked."""
_LEFT_OUT: Final = re.compile(
    r"\bevicted\W{0,3}size\b|\bout_[a-z2-7]{20,60}\b|characters are left out here|\bcut here\W{1,3}\d"
)
"""The placeholder of a stored output, its pointer, and the notes in texts that were shortened for a model."""
_INVISIBLE: Final = re.compile("[\u00ad\u0300-\u036f\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]")


def hidden_kinds(text: str) -> frozenset[FindingKind]:
    """Return the kinds of values that a redaction would remove from a text."""
    if len(text) > MAX_READ:
        return ALL_KINDS
    found = inspect(text)
    if not found:
        return frozenset()
    again = masked_kinds(redact(text, found=found)) - masked_kinds(text)
    return frozenset(one.kind for one in found) | again


def holds_mask(texts: Iterable[str], kinds: Collection[FindingKind]) -> bool:
    """Return True if a text holds a mask of one of these kinds: whole, in part, respelled, or in other words."""
    return bool(kinds) and _pattern(frozenset(kinds)).search(_plain(texts)) is not None


def left_out(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the marks in the texts, in lower case, that say that a part of something was left out."""
    return tuple(dict.fromkeys(_LEFT_OUT.findall(_plain(texts))))


def _plain(texts: Iterable[str]) -> str:
    """Return the texts as one, in lower case, without accents, widths and invisible characters."""
    text = f"{_APART}{_APART.join(texts)}{_APART}"
    return text.lower() if text.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFKD", text)).lower()


@lru_cache(maxsize=256)
def _pattern(kinds: frozenset[FindingKind]) -> re.Pattern[str]:
    names = sorted(kinds)
    whole = "|".join(r"[\W_]{0,3}".join(name.split("_")) for name in names)
    starts = "|".join(name[:size] for name in names for size in range(len(name) - 1, _LEAST - 1, -1))
    ends = "|".join(name[-size:] for name in names for size in range(len(name) - 1, _LEAST - 1, -1))
    return re.compile(
        rf"{_OPENS}{_BESIDE}(?:{whole})(?![a-z])|(?<![a-z_])(?:{whole}){_BESIDE}{_CLOSES}"
        rf"|[\[<]{_BESIDE}(?:{whole}){_BESIDE}[\]>]"
        rf"|{_OPENS}{_BESIDE}(?:{starts}){_BESIDE}(?:{_APART}|{_CUT}|\n)"
        rf"|(?:{_APART}|{_CUT}){_BESIDE}(?:{ends}){_BESIDE}{_CLOSES}"
        rf"|{_IN_OTHER_WORDS}"
    )
