"""Whose the words of a message are: its sender's own, and what others wrote that came with them.

A message is divided once, before anything reads it. Everything after has the sender's own words as its text, and what
others wrote beside it: so no reader of requests, answers, forms, memories or profiles can take one for the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from phylactery_understanding.language.own_words import MAX_SPANS, Span, others_in, own_spans_of

from phylactery_agent.runtime.storage.records import StoredTurn


@dataclass(frozen=True, slots=True)
class Divided:
    """The own words of a message, where in them further messages begin, and what others wrote."""

    text: str
    others: str
    starts: tuple[int, ...]


def divided_text(text: str, spans: Sequence[Span], starts: Sequence[int], *, delegated: bool) -> Divided:
    """Return a text by its authors; every part is a line of its own, so that no sentence joins two."""
    own = own_spans_of(text, spans, delegated=delegated)
    others = [text[start:stop].strip("\n") for start, stop in others_in(text, own)]
    others = [part for part in others if part.strip()]
    if not others:
        return Divided(text, "", tuple(starts))
    said, begins = "", list[int]()
    for start, stop in own:
        cuts = [start, *(one for one in starts if start < one < stop), stop]
        for first, last in itertools.pairwise(cuts):
            part = text[first:last].strip("\n")
            if not part.strip():
                continue
            if said:
                begins.append(len(said) + 1)
            said = f"{said}\n{part}" if said else part
    return Divided(said, "\n".join(others), tuple(begins))


@dataclass(frozen=True, slots=True)
class Said:
    """The words of a turn as RiskGate is shown them: the person's own first, then what others wrote."""

    own: str
    others: str = ""
    starts: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """Return all of the words."""
        return f"{self.own}\n{self.others}" if self.own and self.others else self.own or self.others

    @property
    def own_spans(self) -> tuple[Span, ...]:
        """Return the person's own part of it."""
        return ((0, len(self.own)),) if self.own else ()

    @property
    def marks(self) -> dict[str, Any]:
        """Return what BeginTask is told beside the text; nothing of one message that is all the person's own."""
        whose = {"own_spans": self.own_spans} if self.others else {}
        # a code that was masked since is shorter, and very many messages may have been answered together
        starts = tuple(one for one in self.starts if one < len(self.own))[:MAX_SPANS]
        return {**whose, **({"message_starts": starts} if starts else {})}


NOTHING_SAID = Said("")


def said_together(parts: Sequence[tuple[str, StoredTurn]]) -> Said:
    """Return the own words of messages that are answered together, each beginning a line, and what came with them."""
    own, starts = "", list[int]()
    for text, turn in parts:
        if turn.wordless:
            continue
        begin = len(own) + 1 if own else 0
        own = f"{own}\n{text}" if own else text
        starts.extend(([begin] if begin else []) + [begin + one for one in turn.message_starts])
    return Said(own, "\n".join(turn.others for _, turn in parts if turn.others), tuple(starts))
