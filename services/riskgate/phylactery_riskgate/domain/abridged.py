"""Shows a long JSON text by its beginning and its end, and says between them how much is left out."""

from __future__ import annotations

from dataclasses import dataclass

from phylactery_riskgate.domain.model import Mark
from phylactery_riskgate.domain.visible import escapes, escapes_backwards, fitting, make_visible, written

_NOTE = "…«{count:,} characters left out»…"
_NOTE_ROOM = 40
_CONTEXT = 64
"""Characters beside what is shown that are looked at too: a letter poses within its word, and marks pile up."""


@dataclass(frozen=True, slots=True)
class Abridged:
    """Text that is safe to show; ``left_out`` is how many characters of the JSON are not in it."""

    text: str
    marks: frozenset[Mark]
    left_out: int = 0


def abridge(text: str, limit: int) -> Abridged:
    """Makes a JSON text visible in at most ``limit`` characters, 60 or more; of a longer one the middle is left out.

    Who writes a value chooses where in it something stands, so that its beginning alone tells nothing of its end. Each
    piece of JSON's own escapes is shown whole or not at all.
    """
    whole = make_visible(text, limit) if len(text) <= limit else None  # nothing is shown by less than it is
    if whole is not None and Mark.CUT not in whole.marks:
        return Abridged(whole.text, whole.marks)
    room = limit - _NOTE_ROOM
    first = room * 10 // 19
    before, after = text[: first + _CONTEXT], text[-(room - first + _CONTEXT) :]
    count, beginning = fitting(escapes(before), len(before), first)
    head = _escape_around(text, count)[0]
    count, ending = fitting(escapes_backwards(after), len(after), room - first)
    tail = len(text) - _escape_around(text, len(text) - count)[1]
    beginning = [one for one in beginning if one[0] < head]
    ending = [(tail - 1 - place, piece, mark) for place, piece, mark in reversed(ending) if place < tail]
    left_out = len(text) - head - tail
    start, end = written(text[:head], beginning), written(text[len(text) - tail :], ending)
    marks = {mark for _, _, mark in beginning + ending}
    return Abridged(start + _NOTE.format(count=left_out) + end, frozenset(marks | {Mark.CUT}), left_out)


def _escape_around(text: str, index: int) -> tuple[int, int]:
    """Answers where the JSON escape begins and ends that a cut at ``index`` would part; ``index`` if it parts none."""
    begin = text.rfind("\\", max(0, index - 5), index)
    if begin < 0 or (begin - len(text[: begin + 1].rstrip("\\"))) % 2:  # a backslash that another one escapes
        return index, index
    end = begin + (6 if text[begin + 1] == "u" else 2)
    return (begin, end) if end > index else (index, index)
