"""Texts of a call, compared with the content of an interpreted ask."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from phylactery_understanding.calls.content.description import stated
from phylactery_understanding.calls.content.sources import free_content
from phylactery_understanding.calls.match import Match
from phylactery_understanding.calls.proposal import Argument, Call, plain_values
from phylactery_understanding.calls.texts import contents_fault, other_time
from phylactery_understanding.interpretation.agreement import (
    contents_of,
)
from phylactery_understanding.interpretation.check import CheckedAsk
from phylactery_understanding.interpretation.dates import day_of, due_day, is_of_date, without_day
from phylactery_understanding.interpretation.model import InterpretedAsk, Span, covers, is_covered
from phylactery_understanding.language.text import STEM, STOPS, Kind, Token, is_file_name, tokenize
from phylactery_understanding.language.times import read_times, times_of
from phylactery_understanding.requests.model import Fault, Request

_QUOTES: Final = tuple("\"'“«„`‘")


def interpreted_contents_fault(match: Match, ask: InterpretedAsk, texts: Sequence[Argument]) -> Fault | None:
    """Return how the texts of a call differ from what an interpreted ask says, or takes from an untrusted text."""
    said = [one for one in match.call.arguments if one.role == "content" and not one.default]
    wanted = ask.composed or ask.content is not None
    if said and wanted and not any(str(value).strip() for one in said for value in plain_values(one.value)):
        return Fault("content", "empty")
    values = [str(value) for one in texts for value in plain_values(one.value) if str(value).strip()]
    if not values:
        return None
    if ask.composed:
        return _open(match, ask, values) or free_content(_undated(match.call, values), match.request, match.call.texts)
    if ask.content is None:
        return Fault("content", texts[0].name)
    if _is_file(ask.content, match.request.tokens) and not ask.content.text.startswith(_QUOTES):
        return Fault("content", "file")  # a file name next to the written one is more likely its source
    fault = contents_fault(match, texts)
    return _retold(match, ask, texts, fault) if fault is not None and "remind" in match.call.effects else fault


def _retold(match: Match, ask: InterpretedAsk, texts: Sequence[Argument], fault: Fault) -> Fault | None:
    """Return the fault of a reminder's text, unless it says what was said as of its own day: tomorrow, at 5."""
    rest = [replace(one, value=without_day(str(one.value), _ahead(match, ask))) for one in texts]
    if rest != list(texts):
        dated = [at for at, one in enumerate(match.ask.tokens) if is_of_date(one)]
        match.used.update(dated)
        fault = contents_fault(match, rest) or Fault("", "")
    if fault.kind and ask.content is not None and ask.content.text.startswith(_QUOTES):
        said = tokenize(ask.content.text[1:-1])
        if stated([str(one.value) for one in rest], said, match.request.lexicon):
            return None
    return fault if fault.kind else None


def _ahead(match: Match, ask: InterpretedAsk) -> int:
    """Return how many days after the reminder the day is that the words name, -1 if it is not clear."""
    if match.call.day is None:
        return -1
    due = [one.value for one in match.call.arguments if one.role == "date" and isinstance(one.value, str)]
    days = {found for one in due if (found := due_day(times_of(one).features, match.call.day)) is not None}
    outside = [one for one in opened(match.request.tokens) if not any(covers(span, one) for span in ask.times)]
    event = day_of(read_times(outside).features, match.call.day)
    return (event - next(iter(days))).days if event is not None and len(days) == 1 else -1


def _undated(call: Call, values: Sequence[str]) -> list[str]:
    """Return contents without the date of the message, or its month: a log entry usually has its date."""
    day = call.day.isoformat() if call.day is not None else ""
    dated = re.compile(rf"\b{day[:7]}(?:{day[7:]})?(?![-\w])") if day else None
    return [dated.sub(" ", one) if dated is not None else one for one in values]


def _open(match: Match, ask: InterpretedAsk, values: Sequence[str]) -> Fault | None:
    """Return why content cannot be left to the model: a memory must not be invented, a text must have been read."""
    request = match.request
    if not match.makes:
        said = [one for one in request.tokens if one.kind is not Kind.BREAK]
        if "remind" in match.call.effects:
            values = [without_day(one, _ahead(match, ask)) for one in values]
            if time := other_time(match, values):
                return Fault("content", time)
        return None if stated(values, said, request.lexicon) else Fault("content", "more")
    if not any(one.control and is_file_name(str(one.value)) for one in match.call.arguments):
        return None
    for one in match.ask.tokens:
        covered = any(covers(span, one) for span in ask.spans)
        if one.kind is Kind.LITERAL and is_file_name(one.text) and not covered:
            if not match.call.texts.named(one.text):
                return Fault("content", "unread")
    return None


def opened(tokens: Sequence[Token]) -> list[Token]:
    """Return words including those in quotations."""
    inner = ([one] if one.kind is not Kind.QUOTE else tokenize(one.raw.strip("\"'“”«»")) for one in tokens)
    return [one for some in inner for one in some if one.kind is not Kind.BREAK]


def _is_file(span: Span, tokens: Sequence[Token]) -> bool:
    """Return True if words are the name of a file and nothing else."""
    said = [one for one in tokens if covers(span, one) and one.kind is not Kind.MARK]
    return len(said) == 1 and said[0].kind is Kind.LITERAL and is_file_name(said[0].text)


def is_content(one: CheckedAsk, request: Request, call: Call) -> bool:
    """Return True if a call's content repeats every operator that may belong to it, with the words around it.

    An operator that a text does not repeat is the person's, and then there is no ask: write done to a.txt when it ends.
    """
    if not one.within:
        return True
    texts = [text for text in contents_of(call) if "remind" not in call.effects]
    said = [[word.text for word in tokenize(text) if word.kind not in STOPS] for text in texts]
    return all(any(_repeats(words, request, one.ask, at, size) for words in said) for at, size, _ in one.within)


def _repeats(words: Sequence[str], request: Request, ask: InterpretedAsk, at: int, size: int) -> bool:
    """Return True if a text has an operator, the content word before it, and those behind it in its clause."""
    tokens, lexicon = request.tokens, request.lexicon
    operator = [one.text for one in tokens[at : at + size]]
    if not any(list(words[place : place + size]) == operator for place in range(len(words))):
        return False
    stems = {one[:STEM] for one in words}
    behind: list[Token] = []
    for one in tokens[at + size :]:
        if one.kind in STOPS or is_covered(ask, one):
            break
        behind.append(one)
    before = next((one for one in reversed(tokens[:at]) if not lexicon.holds("stop", one.text)), None)
    told = [one for one in (before, *behind) if one is not None and not lexicon.holds("stop", one.text)]
    return before is not None and all(one.stem in stems for one in told)
