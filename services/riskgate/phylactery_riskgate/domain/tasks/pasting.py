"""What stands in the user's words without being theirs: what they pasted, and what they quote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.announcing import announced_in

Span = tuple[int, int]

_LONGEST_QUOTE: Final = 25
"""Tokens; who quotes more pastes a text, and what a text says is not what the user says."""
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
"""Behind an apostrophe that opens no quote: 'cause, 'n', '90s."""
_CITED = re.compile(r"^[ \t]{0,8}>[^\n]*+", re.MULTILINE)


def pasted_in(folded: str) -> list[Span]:
    """Answers where something pasted begins and ends."""
    return _merged(_pasted(folded))


def doubted_in(folded: str) -> list[Span]:
    """Answers what may be pasted: what is announced as a text, and what stands between two fenced ones."""
    return _merged((*announced_in(folded), *_between_fences(folded)))


def _pasted(folded: str) -> Iterator[Span]:
    """Answers what stands in the words without being said: fences, tags, citations, forwarded mail, long quotes."""
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
    """Answers what stands from the first to the last fence: a text that holds a fence ends behind its first one."""
    for fence in _FENCES:
        places = [found.start() for found in fence.finditer(folded)]
        if len(places) > _PAIR:
            yield places[0], places[-1]


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


def _quotes(folded: str) -> Iterator[Span]:
    """Answers what stands in quotes; an apostrophe within a word is none."""
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
    """Answers the first token of each quote and the one behind it; ``places`` tells where the tokens stand."""
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
