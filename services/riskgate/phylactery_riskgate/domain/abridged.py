"""Shows a long JSON text by its beginning and its end, and says between them how much is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, takewhile

from phylactery_riskgate.domain.model import Mark
from phylactery_riskgate.domain.visible import make_visible, visible_pieces

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
    whole = make_visible(text, limit)
    if Mark.CUT not in whole.marks:
        return Abridged(whole.text, whole.marks)
    room = limit - _NOTE_ROOM
    first = room * 10 // 19
    beginning = list(visible_pieces(text[: first + _CONTEXT]))
    ending = list(visible_pieces(text[-(room - first + _CONTEXT) :]))
    head = _escape_around(text, _fitting(beginning, first))[0]
    tail = len(text) - _escape_around(text, len(text) - _fitting(reversed(ending), room - first))[1]
    shown = beginning[:head], ending[len(ending) - tail :]
    left_out = len(text) - head - tail
    start, end = ("".join(piece for piece, _ in part) for part in shown)
    marks = {mark for part in shown for _, mark in part if mark}
    return Abridged(start + _NOTE.format(count=left_out) + end, frozenset(marks | {Mark.CUT}), left_out)


def _fitting(pieces: Iterable[tuple[str, Mark | None]], room: int) -> int:
    """Answers how many pieces, from the first on, fit into this many characters."""
    sizes = accumulate(len(piece) for piece, _ in pieces)
    return sum(1 for _ in takewhile(lambda size: size <= room, sizes))


def _escape_around(text: str, index: int) -> tuple[int, int]:
    """Answers where the JSON escape begins and ends that a cut at ``index`` would part; ``index`` if it parts none."""
    begin = text.rfind("\\", max(0, index - 5), index)
    if begin < 0 or (begin - len(text[: begin + 1].rstrip("\\"))) % 2:  # a backslash that another one escapes
        return index, index
    end = begin + (6 if text[begin + 1] == "u" else 2)
    return (begin, end) if end > index else (index, index)
