"""What a person has before them to answer: the approval cards that were drawn, with their numbers and since when.

Whoever draws cards keeps it, so that no word answers a card that was drawn after it was typed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from phylactery_client.results import PendingApproval


class ShownCards:
    """The waiting cards of one thread, at most one per run, the newest last."""

    def __init__(self) -> None:
        self._cards: dict[str, PendingApproval] = {}
        self._first: dict[str, int] = {}
        """The number of each card's first call: a number once shown never refers to another call."""
        self._since: dict[str, float] = {}
        self._numbers = 0

    def draw(self, run_id: str, card: PendingApproval) -> None:
        """Note that a card is drawn now. The same card drawn once more was seen since the first time."""
        before = self._cards.pop(run_id, None)
        if before is None or _named(before) != _named(card):
            self._since[run_id] = time.monotonic()
        if not self._cards:
            self._numbers = 0
        self._cards[run_id] = card
        self._first[run_id] = self._numbers + 1
        self._numbers += 1 + len(card.also)

    def remove(self, run_id: str) -> None:
        """Note that a run waits no more."""
        self._cards.pop(run_id, None)

    def cards(self, typed: float = math.inf) -> Sequence[PendingApproval]:
        """Return the cards drawn before something was typed, in seconds of time.monotonic, the newest last."""
        return tuple(card for run_id, card in self._cards.items() if self._since[run_id] < typed)

    def calls(self, typed: float = math.inf) -> Mapping[int, tuple[PendingApproval, PendingApproval]]:
        """Return every call of those cards, with its card, by its number."""
        return {
            number: (card, one)
            for run_id, card in self._cards.items()
            if self._since[run_id] < typed
            for number, one in enumerate((card, *card.also), self._first[run_id])
        }

    def newest(self, typed: float = math.inf) -> PendingApproval | None:
        """Return the newest card, None if there is none or it was drawn after something was typed."""
        newest = next(reversed(self._cards), None)
        return self._cards[newest] if newest is not None and self._since[newest] < typed else None


def _named(card: PendingApproval) -> Sequence[tuple[str, str]]:
    return [(one.approval_id, one.args_hash) for one in (card, *card.also)]
