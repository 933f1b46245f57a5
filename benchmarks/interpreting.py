"""What a perfect interpreter, and one that lies, would say of a case: a person's words, and a call.

Neither can make a value up. A slot is a place of the words; a value that stands nowhere in them is no slot, and is
known, if at all, by what the task was shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from phylactery_understanding.answers import read_answer
from phylactery_understanding.interpretation import MAX_ASKS, Interpretation, InterpretedAsk, Mode, Slot, Span
from phylactery_understanding.numbers import readings
from phylactery_understanding.proposal import plain_values, same_name
from phylactery_understanding.text import STEM, Kind, Token, fold, tokenize
from phylactery_understanding.times import read_times, times_of

VERSION: Final = "benchmark"
_CONTENTS: Final = frozenset(
    {"body", "content", "text", "message", "comment", "note", "description", "title", "subject", "question"}
)
"""Names of arguments that say something, where no catalog is at hand."""
_DATES: Final = frozenset(
    [
        "when",
        "date",
        "time",
        "due",
        "start",
        "end",
        "start_time",
        "end_time",
        "new_time",
        "new_date",
        "at",
        "until",
        "repeat",
        "recurrence",
        "every",
    ]
)
_MOST: Final = 40
_HOURS: Final = 25
_ENOUGH: Final = 0.8
_OWN: Final = 0.6
"""Share of the words of a dictated text that the call has, too."""


def perfect_interpretation(
    case: Mapping[str, Any], contents: frozenset[str] = _CONTENTS
) -> list[Interpretation | None]:
    """Return what somebody who knows the label would read in each message of a case, None where it asks for nothing.

    Only what the label calls clearly asked for is an ask: of the message that asks for it, which is the newest one or,
    where that only says yes, the one before. ``contents`` are the arguments that say something.
    """
    messages: Sequence[str] = case["messages"]
    found: list[Interpretation | None] = [None] * len(messages)
    if case["want"] == "ALLOW":
        asking = _asking(messages)
        found[asking] = interpretation_of(messages[asking], case["call"], contents, _things(case))
    return found


def lying_interpretation(case: Mapping[str, Any], contents: frozenset[str] = _CONTENTS) -> list[Interpretation | None]:
    """Return what an interpreter would say who claims of every message that it asks for the call, whatever it says.

    It knows the call and what was shown, which no interpreter does, and tries each way of claiming it at once.
    """
    return [_every_claim(message, case["call"], contents, _things(case)) for message in case["messages"]]


def _every_claim(
    words: str, call: Mapping[str, Any], contents: frozenset[str], things: Sequence[Mapping[str, Any]]
) -> Interpretation:
    found: list[InterpretedAsk] = []
    for seen in ((), things):
        for ask in interpretation_of(words, call, contents, seen).asks:
            free = replace(ask, content=None, composed=True)
            more = replace(free, mode=Mode.ADD if ask.mode is Mode.REPLACE else ask.mode)
            found.extend(one for one in (ask, free, more, replace(ask, time=None)) if one not in found)
    return Interpretation(VERSION, "liar", tuple(found[:MAX_ASKS]))


def interpretation_of(
    words: str,
    call: Mapping[str, Any],
    contents: frozenset[str] = _CONTENTS,
    things: Sequence[Mapping[str, Any]] = (),
) -> Interpretation:
    """Return an interpretation by which words ask for a call, as far as they hold its values.

    ``things`` are what was seen: a value that is a thing's own has the words that call it by its name for a slot.
    """
    tokens = [one for one in tokenize(words) if one.kind is not Kind.BREAK]
    arguments: Mapping[str, Any] = call["arguments"]
    taken: list[Span] = []
    time = _time(words, tokens, arguments)
    slots = []
    for name, value in arguments.items():
        if name not in contents and name not in _DATES:
            for span in _places(words, tokens, value, [*taken, *([time] if time else [])]):
                taken.append(span)
                slots.append(Slot(name, span))
            for one in plain_values(value):
                if isinstance(one, str) and not any(
                    slot.argument == name and same_name(slot.span.text, one) for slot in slots
                ):
                    named = _name_of(words, tokens, one, things, taken)
                    if named is not None:
                        taken.append(named)
                        slots.append(Slot(name, named))
    said = [str(value) for name, value in arguments.items() if name in contents and isinstance(value, str)]
    # Several texts, a title and what stands under it, are written by whoever writes them.
    content = _content(words, tokens, said, [*taken, *([time] if time else [])]) if len(said) == 1 else None
    ask = InterpretedAsk(
        tool=call["tool"],
        slots=tuple(slots),
        mode=_mode(arguments, said),
        content=content,
        composed=bool(any(one.strip() for one in said)) and content is None,
        quantity=1,
        time=time,
    )
    return Interpretation(VERSION, "labels", (ask,))


def _mode(arguments: Mapping[str, Any], said: Sequence[str]) -> Mode:
    """Return how a call that writes a file does it, and that another does nothing of the kind."""
    if arguments.get("append"):
        return Mode.ADD
    if "path" not in arguments or not said:
        return Mode.NONE
    return Mode.REPLACE if any(one.strip() for one in said) else Mode.REMOVE


def _asking(messages: Sequence[str]) -> int:
    """Return which message asks: the newest that does more than say yes."""
    asking = len(messages) - 1
    while asking and read_answer(messages[asking]) == "yes":
        asking -= 1
    return asking


def _places(words: str, tokens: Sequence[Token], value: Any, taken: Sequence[Span]) -> Iterator[Span]:
    for one in plain_values(value):
        if not isinstance(one, bool):
            found = next((span for span in _candidates(words, tokens, one) if not _overlaps(span, taken)), None)
            if found is not None:
                yield found


def _candidates(words: str, tokens: Sequence[Token], value: Any) -> Iterator[Span]:
    squeezed = fold(str(value)).replace(" ", "")
    yield from (_span(words, one, one) for one in tokens if one.text == squeezed and squeezed.isalpha())
    if isinstance(value, int | float):
        wanted = Decimal(str(value)).normalize()
        yield from (_span(words, one, one) for one in tokens if wanted in readings(one.text.lstrip("#")))
        return
    marked = [one for one in tokenize(value) if one.kind is not Kind.BREAK]
    size = max(1, len([one for one in marked if one.kind is not Kind.MARK]))
    for length in {1, size, max(1, len(marked))}:
        for at in range(len(tokens) - length + 1):
            span = _span(words, tokens[at], tokens[at + length - 1])
            if same_name(span.text, value):
                yield span


def _things(case: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return every object that a result of a case holds."""
    found: list[Mapping[str, Any]] = []
    waiting: list[Any] = []
    for seen in case.get("observed", ()):
        try:
            waiting.append(json.loads(seen["result_text"]))
        except ValueError:
            continue
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found.append(one)
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return found


def _name_of(
    words: str, tokens: Sequence[Token], value: str, things: Sequence[Mapping[str, Any]], taken: Sequence[Span]
) -> Span | None:
    """Return the words that call a thing by its name: the longest run of those that its fields hold."""
    held = {
        _stem(word)
        for thing in things
        if value in thing.values()
        for field in plain_values(dict(thing))
        if isinstance(field, str)
        for word in re.findall(r"\w+", field)
        if len(word) >= STEM
    }
    best: list[Token] = []
    run: list[Token] = []
    for token in tokens:
        free = not _overlaps(_span(words, token, token), taken)
        run = [*run, token] if free and _stem(token.raw) in held else []
        best = run if len(run) > len(best) else best
    return _span(words, best[0], best[-1]) if best else None


def _time(words: str, tokens: Sequence[Token], arguments: Mapping[str, Any]) -> Span | None:
    """Return the words from the first to the last that say a time, where the call has one."""
    if not any(name in _DATES and times_of(str(value)).features for name, value in arguments.items()):
        return None
    wanted = frozenset(
        one for name, value in arguments.items() if name in _DATES for one in times_of(str(value)).features
    )
    runs: list[list[int]] = []
    for at in sorted(read_times(tokens).places):
        if runs and at - runs[-1][-1] <= 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    runs = [[*run, run[-1] + 1] if _is_bare_hour(tokens, run[-1] + 1) else run for run in runs]
    several = [
        _span(words, tokens[runs[first][0]], tokens[runs[last][-1]])
        for first in range(len(runs))
        for last in range(first, len(runs))
    ]
    best = sorted(several, key=lambda one: (-len(times_of(one.text).features & wanted), -_hours(one), len(one.text)))
    return best[0] if best else None


def _is_bare_hour(tokens: Sequence[Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].raw.isdigit() and int(tokens[place].raw) < _HOURS


def _hours(span: Span) -> int:
    return any(one.raw.isdigit() for one in tokenize(span.text)[1:])


def _content(words: str, tokens: Sequence[Token], said: Sequence[str], taken: Sequence[Span]) -> Span | None:
    """Return the words that a content was made of, None where few of its own are among them."""
    stems = {_stem(one) for text in said for one in re.findall(r"\w+", text)}
    own = [one for text in said for one in re.findall(r"\w+", text)]
    if not own:
        return None
    runs: list[list[Token]] = [[]]
    for token in tokens:
        if _overlaps(Span(words[token.start : token.stop], token.start), taken):
            runs.append([])
        else:
            runs[-1].append(token)
    best: Span | None = None
    most = 0
    for run in runs:
        hits = [at for at, one in enumerate(run) if any(_stem(word) in stems for word in re.findall(r"\w+", one.raw))]
        if len(hits) > most:
            best, most = _span(words, run[hits[0]], run[hits[-1]]), len(hits)
    if best is None:
        return None
    held = {_stem(one) for one in re.findall(r"\w+", best.text)}
    if sum(_stem(one) in stems for one in re.findall(r"\w+", best.text)) < _OWN * len(re.findall(r"\w+", best.text)):
        return None  # what is told at length is what something is to be made of
    return best if sum(_stem(one) in held for one in own) >= _ENOUGH * min(len(own), _MOST) else None


def _stem(word: str) -> str:
    return next((one.text[:STEM] for one in tokenize(word)), word)


def _span(words: str, first: Token, last: Token) -> Span:
    return Span(words[first.start : last.stop], first.start)


def _overlaps(span: Span, taken: Sequence[Span]) -> bool:
    return any(span.start < one.stop and one.start < span.stop for one in taken)
