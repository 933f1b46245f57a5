"""Words of an ask that nothing in the call corresponds to, and the number of calls that an ask allows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from phylactery_understanding.calls.framing import JOINTS
from phylactery_understanding.calls.items import is_of_item
from phylactery_understanding.calls.match import Match
from phylactery_understanding.calls.proposal import CURRENCIES, Argument, names_of
from phylactery_understanding.language.numbers import value_of
from phylactery_understanding.language.text import STOPS, Kind, Token, is_file_name
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.model import Ask, Fault, Label

_LEFT: Final = frozenset({Label.FILLER, Label.ARTICLE, Label.GOAL, Label.TIME, Label.MARK, Label.VERB, Label.REASON})
_AT_ONCE: Final = word_set("at_once")
_NAME_PARTS: Final = re.compile(r"[^a-z0-9]+")
_AFTERWARDS: Final = word_set("afterwards")
_MORE_THAN_ONE: Final = word_set("more_than_one")
_UNDONE: Final = word_set("undone")
_SAYING: Final = word_set("saying")


def leftover(match: Match, *, has_content: bool, has_dates: bool) -> Fault | None:  # noqa: C901 - one case for each
    """Return the first word of the ask that nothing in the call corresponds to."""
    ask, words = match.ask, match.ask.lexicon
    names = {stem for one in match.call.arguments for name in _names_in(one) for stem in names_of(name)}
    verb = ask.labels.index(Label.VERB)
    last = next((one for one in reversed(ask.tokens) if one.kind is not Kind.MARK), None)
    if last is None or (last.text in _AFTERWARDS and not has_dates):
        return Fault("leftover", "" if last is None else last.raw)
    if "undo" in match.call.effects and (more := [one.raw for one in ask.tokens if one.text in _MORE_THAN_ONE]):
        return Fault("leftover", more[0])
    for at, (token, label) in enumerate(zip(ask.tokens, ask.labels, strict=True)):
        if at in match.used or at in match.answered or token.kind in STOPS:
            continue
        if label is Label.TIME and not has_dates and (not has_content or at < verb) and token.text not in _AT_ONCE:
            return Fault("leftover", token.raw)
        if label in _LEFT or token.stem in match.call.nouns or token.stem in names:
            continue
        if token.text in (_UNDONE if "undo" in match.call.effects else _SAYING if label is Label.CONTENT else ()):
            continue
        if label in {Label.CONTENT, Label.QUOTE, Label.SOURCE} and has_content:
            continue
        if token.kind is Kind.WORD and (words.holds("stop", token.text) or token.text in JOINTS):
            continue
        if token.text in CURRENCIES and any(one.role == "amount" for one in match.call.arguments):
            continue
        if is_of_item(match, token) or _is_of_name(match, at):
            continue
        listed = label is not Label.CONTENT  # saying hello, bananas: a text is said whole
        if listed and token.kind in {Kind.LITERAL, Kind.NUMBER, Kind.WORD} and _is_joined(match, at):
            continue
        if value_of(token.text) is not None and token.kind is Kind.WORD and quota(ask) != 1:
            continue
        return Fault("leftover", token.raw)
    return None


def quota(ask: Ask) -> int:
    """Return the number of effects an ask allows: that of its named targets, or 0 for "all" of a set."""
    objects = list(ask.of(Label.OBJECT, Label.ARTICLE))
    if any(ask.lexicon.holds("universal", one.text) for one in objects):
        return 0
    literals = sum(one.kind is Kind.LITERAL for one in ask.of(Label.OBJECT))
    joints = sum(one.text in JOINTS for one in ask.tokens)
    return max(1, min(literals, joints + 1)) if literals > 1 else 1 + (joints if not literals else 0)


def _is_of_name(match: Match, place: int) -> bool:
    """Return True if a word before a name is part of the name: the queue file, queue.txt."""
    ask = match.ask
    before = ask.tokens[place + 1 : place + 2]
    if not before or before[0].stem not in match.call.nouns:
        return False
    used = (ask.tokens[at] for at in match.used)
    return any(
        one.kind is Kind.LITERAL and is_file_name(one.text) and ask.tokens[place].text in _NAME_PARTS.split(one.text)
        for one in used
    )


def _is_joined(match: Match, place: int) -> bool:
    """Return True if a literal is in one list with a literal of the call, one of several targets.

    A text is no such literal: of "write hello, bananas to a.txt" it has all or nothing. Only what comes before a text
    that goes nowhere may be about something else: set me away, lunch.
    """
    ask = match.ask
    targeted = any(one.control for one in match.call.arguments)
    for step in (-1, 1):
        named = match.used - match.answered if step < 0 or targeted else match.used
        at, joints = place + step, 0
        while 0 <= at < len(ask.tokens) and (
            ask.tokens[at].text in JOINTS or ask.labels[at] in {Label.ARTICLE, Label.GOAL}
        ):
            joints += ask.tokens[at].text in JOINTS
            at += step
        if joints and 0 <= at < len(ask.tokens) and at in named and _are_alike(ask.tokens[at], ask.tokens[place]):
            return True
    return False


def _are_alike(first: Token, second: Token) -> bool:
    """Return True if two tokens may be in one list: Clara and Hugo, but not Clara and a ham."""
    named = first.raw[:1].isupper() == second.raw[:1].isupper()
    return first.kind is second.kind and (named or first.kind is not Kind.WORD)


def _names_in(argument: Argument) -> Iterator[str]:
    """Return the name of an argument, and the field names of the objects in it."""
    yield argument.name
    for one in argument.value if isinstance(argument.value, list) else ():
        yield from one if isinstance(one, dict) else ()
