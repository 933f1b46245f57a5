"""The readings of the user's messages: all of them that is the same for whichever call is compared with it.

Reading takes a hundred times as long as comparing, so it is done once, where a message arrives, and kept with the index
of its task. It depends on the messages alone, so whoever reads them again, after a restart or in another replica, has
the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from phylactery_understanding.interpretation.check import CheckedAsk, check, joined, within
from phylactery_understanding.interpretation.model import MAX_BACK, Interpretation
from phylactery_understanding.replies.amendment import Amendment, amended
from phylactery_understanding.replies.answers import Answer, begins_with_yes, read_answer, says_to_do
from phylactery_understanding.replies.behind import Settled, settle
from phylactery_understanding.requests.model import Request
from phylactery_understanding.requests.parser import parse

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.computed import computed
from phylactery_riskgate.domain.intent.hearing import requests_in
from phylactery_riskgate.domain.intent.origin.pasting import own_part
from phylactery_riskgate.domain.intent.words import Piece

_LINE_ENDS: Final = re.compile(r"\n")
_NAME: Final = re.compile(r"(?<=[^\W\d_]|[,;:\"'«“(\d])\s+[\"'«“(]?[^\W\d_a-z]\w+")
"""A capitalized word that does not begin a sentence."""
_MOST_AMENDMENTS: Final = 8
"""The number of messages that may each amend the one before."""


_READ_AHEAD: Final = (
    *("sure_request", "takes_back", "numbers", "tokens", "answer", "says_to_do", "begins_with_yes", "has_name"),
    "settled",  # which tells that all of it was read
)


@dataclass(frozen=True)
class Message:
    """One message of the user, and the offsets at which further messages joined to it begin."""

    text: str
    starts: tuple[int, ...] = ()

    @property
    def unread(self) -> int:
        """Return its length until it was read."""
        return 0 if "settled" in self.__dict__ else len(self.text)

    def read_ahead(self) -> None:
        """Work out what a call needs of the message."""
        for name in _READ_AHEAD:
            getattr(self, name)
        for request in (self.settled.request, self.sure_request):
            for name in ("texts", "raws", "forms", "stems", "negations"):
                getattr(request, name)

    @computed
    def own(self) -> tuple[str, bool]:
        """Return the user's own part, and whether it may contain pasted text."""
        return own_part(self.text)

    @computed
    def sure(self) -> str:
        """Return the part that is surely the user's own."""
        return own_part(self.text, sure=True)[0]

    @computed
    def request(self) -> Request:
        """Return the user's own part, parsed."""
        return parse(self.own[0])

    @computed
    def sure_request(self) -> Request:
        """Return the part that is surely the user's own, parsed."""
        return self.request if self.sure == self.own[0] else parse(self.sure)

    @computed
    def settled(self) -> Settled:
        """Return what the own part comes to once its end has acted on its beginning."""
        own, starts = self.own[0], self.starts
        if starts and own != self.text:  # places of the whole text: each line may begin a message, as these begin lines
            starts = tuple(found.end() for found in _LINE_ENDS.finditer(own, 0, len(own) - 1))
        return settle(self.request, starts)

    @computed
    def takes_back(self) -> bool:
        """Return True if what is surely the user's own takes something back, or leaves it unclear."""
        same = self.sure_request is self.request and not self.starts
        return bool((self.settled if same else settle(self.sure_request)).behind)

    @computed
    def answer(self) -> Answer:
        """Return the answer that the message is."""
        return read_answer(self.text)

    @computed
    def says_to_do(self) -> bool:
        """Return True if it is a clear yes that says to do something."""
        return says_to_do(self.text)

    @computed
    def begins_with_yes(self) -> bool:
        """Return True if the own part begins with a clear yes."""
        return begins_with_yes(self.own[0])

    @computed
    def numbers(self) -> frozenset[int]:
        """Return the numbers of what the part that is surely the user's own asks for."""
        return frozenset(requests_in([self._tokens], own=True))

    @computed
    def tokens(self) -> frozenset[str]:
        """Return the tokens of the part that is surely the user's own."""
        return frozenset(self._tokens)

    @computed
    def has_name(self) -> bool:
        """Return True if a word in it may be a name, by its capital."""
        return _NAME.search(self.text) is not None

    @computed
    def _tokens(self) -> list[str]:
        return folding.tokens(folding.fold(self.sure))


def message_of(piece: Piece) -> Message:
    """Return the message of a piece of the user's words."""
    return Message(piece.get("w", ""), tuple(piece.get("n", ())))


@dataclass(frozen=True, slots=True)
class Asking:
    """The newest message that asks, and those before it: those behind it are only a clear yes.

    ``place`` is its place among the messages, ``request`` what it asks for in view of its end and of what it amends.
    """

    place: int
    request: Request
    doubted: bool
    settled: Settled
    amendment: Amendment | None
    earlier: tuple[Request, ...]
    denies: bool


def asking_of(messages: Sequence[Message]) -> Asking | None:
    """Return what the newest of some messages asks for, or None if there are none."""
    count = len(messages)
    while count > 1 and messages[count - 1].answer == "yes":
        count -= 1
    if not count:
        return None
    newest, before = messages[count - 1], messages[: count - 1]
    settled, amendment = newest.settled, _amending(messages[:count][-_MOST_AMENDMENTS:]) if before else None
    request = settled.request if amendment is None else amendment.request
    return Asking(
        place=count - 1,
        request=request,
        doubted=newest.own[1],
        settled=settled,
        amendment=amendment,
        earlier=tuple(one.sure_request for one in before),
        denies=not request.asks and newest.answer == "no",
    )


def _amending(messages: Sequence[Message]) -> Amendment | None:
    """Return the request that the newest message makes of earlier ones, or None if it is independent."""
    *earlier, newest = messages
    if any(message.takes_back for message in earlier):
        return None  # what was taken back or left unclear is not brought back by a change of it
    known = messages[0].sure_request
    for message in earlier[1:]:
        amends = amended(known, message.sure_request)
        known = amends.request if amends is not None else message.sure_request
    return None if newest.own[1] else amended(known, newest.request)


@dataclass(frozen=True, slots=True)
class Quoted:
    """The asks that a model read in the newest of some messages, and in ``back`` before it, checked against them."""

    back: int
    asks: tuple[CheckedAsk, ...]
    request: Request


def quoted_in(
    interpretation: Interpretation, messages: Sequence[Message], pasting: Sequence[bool]
) -> tuple[Quoted, ...]:
    """Return what a model's interpretation of the newest of some messages quotes, the fewest messages first."""
    backs = sorted({one.back for one in interpretation.asks if one.back <= min(len(messages) - 1, MAX_BACK)})
    return tuple(_quoted(interpretation, messages[-back - 1 :], half=any(pasting[-back - 1 :])) for back in backs)


def _quoted(interpretation: Interpretation, messages: Sequence[Message], *, half: bool) -> Quoted:
    back, newest = len(messages) - 1, messages[-1]
    text, starts = joined([one.text for one in messages], back)
    asks = tuple(within(one, starts) for one in interpretation.asks if one.back == back)
    request = newest.request if text == newest.own[0] else parse(text)
    read = Interpretation(interpretation.version, interpretation.model, asks)
    return Quoted(back, check(read, request, half=half, newest=starts[0]), request)
