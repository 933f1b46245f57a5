"""Detection of text in the user's words that is not theirs: pasted text and quotations."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from phylactery_understanding.language.text import merged_spans

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.origin.announcing import announced_in

Span = tuple[int, int]

_LONGEST_QUOTE: Final = 25
"""The maximum length of a quotation in tokens; a longer one is pasted text, which is not the user's statement."""
_QUOTES: Final = {"'": "'", '"': '"', "“": "”", "«": "»", "„": "”"}
_FENCES: Final = (re.compile("```"), re.compile(r'^[ \t]{0,8}(?:~{3,}|"{3,})[^\n"~]{0,40}$', re.MULTILINE))
_PAIR: Final = 2
_TAG = re.compile(r"<([a-z][a-z0-9_-]{0,39})(?:\s[^<>]{0,200})?>")
_MAX_TAGS: Final = 64
_FORWARDED = re.compile(
    r"^[ \t]{0,8}(?:-{2,}[ \t]{0,8}(?:original message|forwarded message|mensaje original|mensaje reenviado)"
    r"|(?:on|el)\b[^\n]{1,200}\b(?:wrote|escribio):[ \t]{0,8}$"
    r"|(?:from|de):[ \t]{1,8}[^\n]{1,200}\n)",
    re.MULTILINE,
)
_ELISION = re.compile(r"(?:cause|cuz|cos|coz|n|til|till|em|tis|twas|bout|round|\d0s)\b")
"""Follows an apostrophe that does not open a quotation: 'cause, 'n', '90s."""
_CITED = re.compile(r"^[ \t]{0,8}>[^\n]*+", re.MULTILINE)
_CLOSES = re.compile(r"`{3,}|~{3,}|\"{3,}|</[a-z][a-z0-9_-]{0,39}>")
"""Closing delimiters of a pasted text, and what may follow them."""


def pasted_in(folded: str) -> list[Span]:
    """Return where pasted text begins and ends."""
    return merged_spans(_pasted(folded))


def doubted_in(folded: str) -> list[Span]:
    """Return what may be pasted: text announced as such, and text between two fenced blocks."""
    return merged_spans((*announced_in(folded), *_between_fences(folded)))


def own_part(text: str, *, sure: bool = False) -> tuple[str, bool]:
    """Return a message without its pasted text, and whether the rest may contain pasted text, too.

    With ``sure``, text that may be pasted is removed, too. Removed text is replaced by a line break, so that no
    sentence continues from before a pasted text to after it.
    """
    letters = text if text.isascii() else unicodedata.normalize("NFC", text)
    folds = [letters.lower()] if text.isascii() else list(map(folding.fold, letters))
    folded = "".join(folds)
    pasted, doubted = pasted_in(folded), doubted_in(folded)
    if not pasted and not doubted:
        return text, False
    places = range(len(folded)) if text.isascii() else [at for at, one in enumerate(folds) for _ in one]
    pasted = [(start, _behind(folded, stop)) for start, stop in pasted]
    left = _without(folded, pasted, doubted)
    kept: list[str] = []
    end = 0
    for start, stop in merged_spans((*pasted, *(doubted if sure else ()))):
        kept.append(letters[end : places[start]] if start < len(places) else letters[end:])
        end = places[stop] if stop < len(places) else len(letters)
    return "\n".join((*kept, letters[end:])), left


def _behind(folded: str, stop: int) -> int:
    closes = _CLOSES.match(folded, stop)
    return closes.end() if closes is not None else stop


def _without(folded: str, pasted: Sequence[Span], doubted: Sequence[Span]) -> bool:
    """Return True if a doubtful text has a word outside of the pasted ones."""
    for start, stop in doubted:
        place = start
        for one, other in pasted:
            if one < stop and other > place:
                if any(map(str.isalnum, folded[place:one])):
                    return True
                place = max(place, other)
        if any(map(str.isalnum, folded[place:stop])):
            return True
    return False


def _pasted(folded: str) -> Iterator[Span]:
    """Return the text that is not the user's statement: fences, tags, citations, forwarded mail, long quotations."""
    yield from _fenced(folded)
    closings: dict[str, int] = {}
    for tag in _TAG.finditer(folded):
        if tag[1] not in closings:
            if len(closings) >= _MAX_TAGS:
                break
            closings[tag[1]] = folded.rfind(f"</{tag[1]}>")
        if closings[tag[1]] >= tag.end():
            yield tag.start(), closings[tag[1]]
    yield from (cited.span() for cited in _CITED.finditer(folded))
    forwarded = _FORWARDED.search(folded)
    if forwarded is not None:
        yield forwarded.start(), len(folded)
    for start, stop in _quotes(folded):
        if stop - start > _LONGEST_QUOTE and len(folding.tokens(folded[start:stop])) > _LONGEST_QUOTE:
            yield start, stop


def _fenced(folded: str) -> Iterator[Span]:
    for fence in _FENCES:
        places = [found.start() for found in fence.finditer(folded)]
        yield from zip_longest(places[::2], places[1::2], fillvalue=len(folded))


def _between_fences(folded: str) -> Iterator[Span]:
    """Return the text from the first fence to the last; a text that contains a fence ends after its first one."""
    for fence in _FENCES:
        places = [found.start() for found in fence.finditer(folded)]
        if len(places) > _PAIR:
            yield places[0], places[-1]


def _quotes(folded: str) -> Iterator[Span]:
    """Return the quotations; an apostrophe within a word is not one."""
    opened, closing = -1, ""
    for place, char in enumerate(folded):
        if opened >= 0:
            if char == closing and not folded[place + 1 : place + 2].isalnum():
                yield opened + 1, place
                opened = -1
        elif char in _QUOTES and _opens(folded, place):
            opened, closing = place, _QUOTES[char]


def _opens(folded: str, place: int) -> bool:
    if folded[place - 1 : place].isalnum() or not folded[place + 1 : place + 2].strip():
        return False
    return folded[place] != "'" or _ELISION.match(folded, place + 1) is None


def quoted_in(folded: str, places: Sequence[Span]) -> list[list[int]]:
    """Return the first token of each quotation and the one after it; ``places`` has the positions of the tokens."""
    found: list[list[int]] = []
    at = 0
    for start, stop in _quotes(folded):
        while at < len(places) and places[at][0] < start:
            at += 1
        first = at
        while at < len(places) and places[at][1] <= stop:
            at += 1
        if at > first:
            found.append([first, at])
    return found
