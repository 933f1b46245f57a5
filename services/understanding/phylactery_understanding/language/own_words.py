"""The parts of a text that its sender wrote, and where one of several messages joined to it begins.

Everything else in it was written by others: forwarded, quoted, shared. Offsets are Unicode code points, and spans are
half-open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

Span = tuple[int, int]
MAX_SPANS: Final = 100
"""The number of spans, and of further messages, of one text."""


def refuse_bad_spans(text: str, spans: Sequence[Span]) -> None:
    """Raise ValueError unless spans are in order, apart and inside the text."""
    end = 0
    for start, stop in spans:
        if not end <= start <= stop <= len(text):
            raise ValueError(f"[{start}, {stop}) is out of order, overlaps, or leaves {len(text)} code points")
        end = stop


def refuse_bad_starts(text: str, starts: Sequence[int]) -> None:
    """Raise ValueError unless the starts of further messages ascend inside the text."""
    before = 0
    for start in starts:
        if not before < start < len(text):
            raise ValueError(f"{start} does not ascend, or is outside of {len(text)} code points")
        before = start


def own_spans_of(text: str, spans: Sequence[Span], *, delegated: bool) -> tuple[Span, ...]:
    """Return the parts that count as the sender's own, where none given means all, or none for a delegate.

    A delegate speaks for a channel that marks what others wrote; one that says nothing of it has not looked.
    """
    whole = ((0, len(text)),) if text and not delegated and not spans else ()
    return whole or tuple((start, stop) for start, stop in spans if start < stop)


def others_in(text: str, own: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts that others wrote."""
    end = 0
    for start, stop in (*own, (len(text), len(text))):
        if start > end:
            yield end, start
        end = stop


def without_others(text: str, own: Sequence[Span]) -> str:
    """Return the text with blank lines in place of what others wrote, so that every offset stays as it is.

    Line breaks around it keep a sentence from going on behind it.
    """
    blank = list(text)
    for start, stop in others_in(text, own):
        blank[start:stop] = " " * (stop - start)
        blank[start] = blank[stop - 1] = "\n"
    return "".join(blank)
