"""What a person has before them to answer: one record of it and its rules, for whoever shows cards.

A terminal keeps the record in memory (ShownCards), a gateway in its database. The rules read and change nothing: they
say which call a word, a number, a quotation, a sign or a button is for, and whether a yes counts there.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from phylactery_client.results import PendingApproval

MOST_STEPS: Final = 8
"""A card of more calls than that is no plan: each is asked about by itself."""
MOST_SHOWN: Final = 20
"""As many approvals as a message to the agent may name."""
NO_PLACE: Final = -1
"""The number of a call that neither a number nor its place names."""
_RECENT: Final = 5
"""What was answered is spoken of for so many messages."""
SELF_CLASS: Final = "self"
_HIGH: Final = frozenset({"high", "critical"})
_LOWER: Final = frozenset({"low", "medium"})
_SUBMIT_FORM: Final = "submit_form"
_SIGNS: Final[Mapping[str, bool]] = {"\U0001f44d": True, "\U0001f44e": False}
"""The thumbs up and down, and which answer each is."""
_TONES: Final = re.compile("[\U0001f3fb-\U0001f3ff\ufe0e\ufe0f]")


class Extent(StrEnum):
    """How much of a call a person was shown."""

    WHOLE = "whole"
    PART = "part"
    """Its beginning and end; that something is left out, and how to see it, is said."""
    HIDDEN = "hidden"
    """A part is missing without a word, so no yes counts."""


class ShownCall(NamedTuple):
    """A call of a card, as it was shown."""

    approval_id: str
    args_hash: str
    extent: Extent = Extent.WHOLE
    own: bool = True
    """False if another person approves it: whoever asked for it can only withdraw it."""
    high_risk: bool = False
    submits_form: bool = False
    number: int = 0
    """The number that was drawn beside it, 0 for none; NO_PLACE if its place is not clear either."""

    def takes(self, approve: bool) -> bool:
        """Return True if a yes, or a no, counts: a no always does."""
        return not approve or (self.own and self.extent is not Extent.HIDDEN)


class ShownMessage(NamedTuple):
    """A message that was shown, with the calls it asks about."""

    key: str
    since: float
    """When it was shown, on the clock of whoever shows it."""
    card: str
    """What is the same for all messages that were shown together."""
    calls: tuple[ShownCall, ...] = ()
    choices: int = 0
    """How many numbers can be read in it that choose something else than an answer to a call."""


Meant = tuple[ShownMessage, ShownCall]
"""A call, and the message that shows it."""


@dataclass(frozen=True, slots=True)
class Before:
    """The messages that a person had before them at some moment, the newest last."""

    messages: Sequence[ShownMessage]
    answered: AbstractSet[str] = frozenset()
    """Approvals that were answered already, by their ids."""
    quoted: bool = False
    """True if it is the one message that was quoted: then nothing else is meant."""

    @property
    def newest(self) -> ShownMessage | None:
        """The message that was shown last, None if there is none."""
        return self.messages[-1] if self.messages else None

    def at(self, moment: float) -> Before:
        """Return what was there before something was written, on the same clock."""
        return replace(self, messages=tuple(one for one in self.messages if one.since < moment))

    def numbered(self) -> Mapping[int, ShownCall]:
        """Return the calls with numbers of their own, by their number."""
        return {call.number: call for one in self.messages for call in one.calls if call.number}

    def waiting(self) -> Mapping[str, Meant]:
        """Return the calls that were not answered, the newest first. A call that was shown again is as shown last."""
        found: dict[str, Meant] = {}
        for one in reversed(self.messages):
            for call in reversed(one.calls):
                if call.approval_id not in self.answered:
                    found.setdefault(call.approval_id, (one, call))
        return found

    def plainly(self) -> Sequence[ShownCall]:
        """Return the calls that a yes or no in words is for: all of the newest card, if nothing was shown since.

        There are none if one of them takes no yes.
        """
        found: list[ShownCall] = []
        for one in reversed(self.messages):
            if one.card != self.messages[-1].card:
                break
            if not all(call.takes(approve=True) for call in one.calls) or one.choices or not (found or one.calls):
                return ()
            found += one.calls
        return found[:MOST_SHOWN]

    def named(self) -> Sequence[ShownCall]:
        """Return the calls that words may say which of they mean, in the order in which they were shown.

        Where their places are not clear they have no number: one was shown again behind another, or one that was
        answered stands before or among them. There are none while numbers can be read that choose something else.
        """
        last = [call for _, call in reversed(list(self.waiting().values()))]
        ids = {call.approval_id for call in last}
        open_at = [
            at for at, one in enumerate(self.messages) if not ids.isdisjoint(call.approval_id for call in one.calls)
        ]
        if self.quoted or not open_at or (self.newest is not None and self.newest.choices):
            return ()
        first = dict.fromkeys(call.approval_id for one in self.messages for call in one.calls)
        among = {call.approval_id for one in self.messages[max(open_at[0] - 1, 0) :] for call in one.calls}
        clear = [one for one in first if one in ids] == [call.approval_id for call in last] and among <= ids
        takes = [call for call in last if call.takes(approve=True)]
        named = [call if call.number or (clear and takes == last) else call._replace(number=NO_PLACE) for call in takes]
        return named[-MOST_SHOWN:]

    def only(self, *, approve: bool) -> Meant | None:
        """Return the only call that waits and takes such an answer, None if there is not one."""
        found = [meant for meant in self.waiting().values() if meant[1].takes(approve)]
        return found[0] if len(found) == 1 else None

    def meant(self, *, approve: bool, said_since: bool) -> Meant | None:
        """Return the call that a plain yes or no is for beyond doubt, None if it may be for another.

        It is the one that was quoted; or the only one, if its card was shown last and the person has said nothing
        (said_since) after it.
        """
        newest = self.newest
        if newest is None or len(newest.calls) != 1 or not newest.calls[0].takes(approve):
            return None
        if self.quoted:
            return newest, newest.calls[0]
        only = None if said_since else self.only(approve=approve)
        return only if only is not None and only[0] is newest else None

    def choice(self, number: int) -> ShownMessage | None:
        """Return the message in which a typed number chooses something, None if it chooses nothing.

        No number answers a call: it may be the answer to a question that was asked before the card.
        """
        newest = self.newest
        return newest if newest is not None and 0 < number <= newest.choices else None

    def by_sign(self, sign: str) -> bool | None:
        """Return the answer that an emoji on the newest message gives to all of its calls, None if it gives none.

        A thumb does, where none of them is of high risk or stakes.
        """
        wanted = _SIGNS.get(_TONES.sub("", sign))
        calls = self.newest.calls if self.newest is not None else ()
        high = any(call.high_risk for call in calls)
        clear = wanted is not None and bool(calls) and not high and all(call.takes(wanted) for call in calls)
        return wanted if clear else None

    def to_read(self) -> ShownCall | None:
        """Return the call that a wish to see all of it is for, None if there is none.

        It is the one that was quoted or shown last; otherwise the newest that waits and of which a part is left out, or
        one of the last messages that does not wait any more.
        """
        newest = self.newest
        if newest is not None and newest.calls and (self.quoted or newest.calls[-1].approval_id not in self.answered):
            return newest.calls[-1]
        waiting = [call for _, call in self.waiting().values()]
        shown = [call for one in reversed(self.messages[-_RECENT:]) for call in reversed(one.calls)]
        return next((call for call in (*waiting, *shown) if call.extent is Extent.PART), None)


def is_high(call: PendingApproval) -> bool:
    """Return True if a call is shown before the others of its card and approved by no sign for several."""
    return call.risk in _HIGH or call.stakes in _HIGH


def in_order(card: PendingApproval) -> Sequence[PendingApproval]:
    """Return the calls of a card as they are shown: those of high stakes first, each in the order of the turn."""
    return sorted((card, *card.also), key=lambda call: not is_high(call))


def is_plan(card: PendingApproval) -> bool:
    """Return True if the calls of a card are one question: several, of which everything is shown, to one person."""
    calls = [shown_call(call) for call in (card, *card.also)]
    whole = all(call.extent is Extent.WHOLE and call.own and not call.submits_form for call in calls)
    return 1 < len(calls) <= MOST_STEPS and whole


def one_sign(card: PendingApproval) -> bool:
    """Return True if one button or sign may answer a whole plan: the stakes of each call are known, and not high."""
    return is_plan(card) and all(call.stakes in _LOWER and not is_high(call) for call in (card, *card.also))


def shown_call(call: PendingApproval, *, number: int = 0) -> ShownCall:
    """Return a call as a card shows it that draws all of what the agent sent."""
    left_out = any(argument.left_out for argument in call.arguments)
    extent = Extent.PART if left_out else Extent.WHOLE
    return ShownCall(
        call.approval_id,
        call.args_hash,
        extent if call.args_hash else Extent.HIDDEN,  # RiskGate was not asked for the arguments
        call.approval_class == SELF_CLASS,
        is_high(call),
        call.tool == _SUBMIT_FORM,
        number,
    )


class ShownCards:
    """The record of one thread in memory: its waiting cards, at most one per run, with times of time.monotonic."""

    def __init__(self) -> None:
        self._messages: dict[str, ShownMessage] = {}
        self._cards: dict[str, PendingApproval] = {}
        self._numbers = 0
        """A number once shown never refers to another call."""

    def draw(self, run_id: str, card: PendingApproval) -> None:
        """Note that a card is drawn now. The same card drawn once more was seen since the first time."""
        before = self._messages.pop(run_id, None)
        since = before.since if before is not None and self.is_shown(run_id, card) else time.monotonic()
        if not self._messages:
            self._numbers = 0
        calls = [shown_call(one, number=at) for at, one in enumerate(in_order(card), self._numbers + 1)]
        self._numbers += len(calls)
        self._messages[run_id] = ShownMessage(run_id, since, run_id, tuple(calls))
        self._cards[run_id] = card

    def remove(self, run_id: str) -> None:
        """Note that a run waits no more."""
        self._messages.pop(run_id, None)
        self._cards.pop(run_id, None)

    def before(self, typed: float = math.inf) -> Before:
        """Return what was drawn before something was typed."""
        return Before(tuple(self._messages.values())).at(typed)

    def newest(self, typed: float = math.inf) -> PendingApproval | None:
        """Return the newest card if a yes in words may be for it; None if it was drawn after something was typed."""
        before = self.before()
        newest = before.newest
        if newest is None or newest.since >= typed or not before.plainly():
            return None
        return self._cards[newest.key]

    def call(self, approval_id: str) -> PendingApproval | None:
        """Return a call of a card that is shown, None if it is on none."""
        calls = (one for card in self._cards.values() for one in (card, *card.also))
        return next((one for one in calls if one.approval_id == approval_id), None)

    def is_shown(self, run_id: str, card: PendingApproval) -> bool:
        """Return True if exactly this card of a run is shown."""
        shown = self._cards.get(run_id)
        return shown is not None and _named(shown) == _named(card)


def _named(card: PendingApproval) -> Sequence[tuple[str, str]]:
    return [(one.approval_id, one.args_hash) for one in (card, *card.also)]
