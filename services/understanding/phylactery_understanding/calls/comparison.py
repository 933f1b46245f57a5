"""Comparison of one ask with one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from phylactery_understanding.calls.content.description import inquires
from phylactery_understanding.calls.framing import drafted, framed, is_other_part, was_done
from phylactery_understanding.calls.items import describes, is_same_as_listed
from phylactery_understanding.calls.leftover import leftover
from phylactery_understanding.calls.match import Match
from phylactery_understanding.calls.proposal import Argument, Call, plain_values
from phylactery_understanding.calls.schedule import MOVING, time_fault
from phylactery_understanding.calls.texts import contents_fault, dictated_otherwise, mode_fault
from phylactery_understanding.calls.values import accounts_for, crosses, says_word
from phylactery_understanding.requests.model import Ask, Fault, Request

_WORD: Final = 30


class Comparison:
    """The comparison of one ask with one call. An interpreted ask takes some of its steps differently."""

    def __init__(self, request: Request, ask: Ask, call: Call) -> None:
        self.match = Match(request, ask, call)

    def fault(self) -> Fault | None:
        """Return the reason why the ask does not yield the call, or None if it does."""
        match = self.match
        arguments = [one for one in match.call.arguments if not one.default]
        dates = [one for one in arguments if one.role == "date" and isinstance(one.value, str) and one.value]
        repeats = [one for one in arguments if _is_repeat(one)]
        rest = [one for one in arguments if one not in dates and one not in repeats]
        # A move takes its day from the old time if only an hour is said, so times are compared once it is known.
        moves = not match.ask.verb.meanings.isdisjoint(MOVING)
        early = self._outside(arguments) or mode_fault(match)
        early = early or (self._time(dates, repeats) if dates and not moves else None)
        if early is not None:
            return early
        texts: list[Argument] = []
        for argument in sorted(rest, key=lambda one: (not one.items, not one.control, one.role == "content")):
            if argument.role == "content" and isinstance(argument.value, str | list) and not argument.control:
                wrong = dictated_otherwise(match, argument)
                if wrong is not None:
                    return wrong
                asked = match.makes and inquires(match.ask)  # whose person is changed: ask her whether she can pay
                before = set(match.used)
                if not asked and (self._accounts(argument) or (argument.items and describes(match, argument))):
                    match.answered |= match.used - before
                    continue
                if _is_word(argument.value) and not says_word(match, str(argument.value)):
                    return Fault("value", argument.name)
                texts.append(argument)
            elif not self._accounts(argument) and not (describes(match, argument) and self._accounts(argument)):
                return Fault("value", argument.name)
        late = self._time(dates, repeats) if dates and moves else None
        return (
            late or self._contents(texts) or leftover(match, has_content=any(map(_says, texts)), has_dates=bool(dates))
        )

    def _outside(self, arguments: Sequence[Argument]) -> Fault | None:
        """Return words around the request that cancel it, or that name a part of it differently."""
        match = self.match
        if around := self._framed() or drafted(match):
            return Fault("framed", around)
        if done := was_done(match):
            return Fault("past", done)
        swapped = next((one.name for one in arguments if is_other_part(match, one)), "")
        return Fault("value", swapped) if swapped else None

    def _accounts(self, argument: Argument) -> bool:
        match, values = self.match, list(plain_values(argument.value))
        if crosses(match, argument):
            return False
        if argument.shared and is_same_as_listed(match, argument):
            return True
        if not all(self._accounts_for(one, argument) for one in values):
            return False
        if argument.items and (argument.control or argument.name.endswith("id")):
            match.item = match.item or argument.items[0].item
        return True

    def _framed(self) -> str:
        return framed(self.match)

    def _accounts_for(self, value: Any, argument: Argument) -> bool:
        return accounts_for(self.match, value, argument)

    def _time(self, dates: Sequence[Argument], repeats: Sequence[Argument]) -> Fault | None:
        return time_fault(self.match, dates, repeats)

    def _contents(self, texts: Sequence[Argument]) -> Fault | None:
        return contents_fault(self.match, texts)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _WORD and value.strip().isalnum()


def _says(argument: Argument) -> bool:
    return any(str(one).strip() for one in plain_values(argument.value))


def _is_repeat(argument: Argument) -> bool:
    return (
        isinstance(argument.value, str) and bool(argument.value) and argument.name in {"repeat", "recurrence", "every"}
    )
