"""Simulated interpretations of words and calls, above all those of an interpreter that lies.

None can invent a value. A slot is a span of the words; a value that does not occur in them is not a slot, and is
known, if at all, from what was shown in the task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice, zip_longest
from typing import Any, Final

from phylactery_understanding.calls.proposal import plain_values, same_name
from phylactery_understanding.interpretation.model import (
    MAX_ASKS,
    MAX_BACK,
    Interpretation,
    InterpretedAsk,
    Mode,
    Slot,
    Span,
)
from phylactery_understanding.language.numbers import readings
from phylactery_understanding.language.text import STEM, Kind, Token, fold, tokenize
from phylactery_understanding.language.times import read_times, times_of

VERSION: Final = "benchmark"
_CONTENTS: Final = frozenset(
    {"body", "content", "text", "message", "comment", "note", "description", "title", "subject", "question"}
)
"""Names of arguments that carry content, for use without a catalog."""
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
        "new_start_time",
        "new_end_time",
        "day",
        "at",
        "until",
        "repeat",
        "recurrence",
        "every",
    ]
)
_MOST: Final = 40
_HOURS: Final = 25
_UNITS: Final = frozenset(
    "day night evening week month hour days weeks months hours dia noche tarde vispera semana mes hora dias semanas"  # noqa: SIM905
    " meses horas".split()
)
"""Words that, before "before", state a time."""
_EARLIER: Final = frozenset({"before", "earlier", "antes"})
_FACTORS: Final = {"double": 2, "twice": 2, "duplica": 2, "k": 1_000, "lucas": 1_000, "mil": 1_000}
_ENOUGH: Final = 0.8
_OWN: Final = 0.6
"""The minimum share of a dictated text's words that also occur in the call."""


def lying_interpretation(case: Mapping[str, Any], contents: frozenset[str] = _CONTENTS) -> list[Interpretation | None]:
    """Return interpretations that claim of every message that it requests the call, whatever it says.

    It knows the call and what was shown, which no interpreter does, and tries each possible claim at once.
    """
    said: Sequence[str] = case["messages"]
    return [
        lie(message, [case["call"]], contents, _things(case), tuple(reversed(said[max(0, place - MAX_BACK) : place])))
        for place, message in enumerate(said)
    ]


def lie(
    words: str,
    calls: Sequence[Mapping[str, Any]],
    contents: frozenset[str] = _CONTENTS,
    things: Sequence[Mapping[str, Any]] = (),
    earlier: Sequence[str] = (),
) -> Interpretation:
    """Return an interpretation that claims of words that they request calls; each call is claimed in several ways."""
    each = (_claims(words, call, contents, things, earlier) for call in calls)
    claims = [one for some in zip_longest(*each) for one in some if one is not None]
    return Interpretation(VERSION, "liar", tuple(claims[:MAX_ASKS]))


def _claims(
    words: str,
    call: Mapping[str, Any],
    contents: frozenset[str],
    things: Sequence[Mapping[str, Any]],
    earlier: Sequence[str],
) -> list[InterpretedAsk]:
    found: list[InterpretedAsk] = []
    for seen, before in (((), ()), (things, earlier)):
        for ask in interpretation_of(words, call, contents, seen, before).asks:
            free = replace(ask, content=None, composed=True)
            more = replace(free, mode=Mode.ADD if ask.mode is Mode.REPLACE else ask.mode)
            found.extend(one for one in (ask, free, more, replace(ask, time=None)) if one not in found)
    return found


def interpretation_of(
    words: str,
    call: Mapping[str, Any],
    contents: frozenset[str] = _CONTENTS,
    things: Sequence[Mapping[str, Any]] = (),
    earlier: Sequence[str] = (),
) -> Interpretation:
    """Return an interpretation in which words request a call, as far as they contain its values.

    ``things`` are the objects seen: a value of an object has as its slot the words that name the object. ``earlier``
    are the preceding messages, the newest first: what the words do not contain may be quoted from them.
    """
    tokens = _plain(words)
    arguments: Mapping[str, Any] = call["arguments"]
    taken: list[Span] = []
    times = _time(words, tokens, arguments)
    slots: list[Slot] = []
    for name, value in arguments.items():
        if name not in contents and name not in _DATES:
            for span in _places(words, tokens, value, [*taken, *times]):
                taken.append(span)
                slots.append(Slot(name, span))
            for one in plain_values(value):
                if isinstance(one, str) and not any(
                    slot.argument == name and same_name(slot.span.text, one) for slot in slots
                ):
                    named = _name_of(words, tokens, one, things, taken)
                    some = [named] if named is not None else _parts_of(words, tokens, one, [*taken, *times])
                    some = some or list(islice(_back(one, earlier, things), 1))
                    taken.extend(span for span in some if not span.back)
                    slots.extend(Slot(name, span) for span in some)
            if (
                isinstance(value, int)
                and not isinstance(value, bool)
                and not any(one.argument == name for one in slots)
            ):
                slots.extend(Slot(name, span) for span in _product(words, tokens, value, [*taken, *times]))
    said = [str(value) for name, value in arguments.items() if name in contents and isinstance(value, str)]
    # Several texts, such as a title and its body, are composed by the caller.
    content = _content(words, tokens, said, [*taken, *times]) if len(said) == 1 else None
    composed = bool(any(one.strip() for one in said)) and content is None
    if composed and len(said) == 1:
        found = ((at, _content(one, _plain(one), said, ())) for at, one in enumerate(earlier, 1))
        content = next((Span(one.text, one.start, at) for at, one in found if one is not None), None)
    ask = InterpretedAsk(
        tool=call["tool"],
        slots=tuple(slots),
        mode=_mode(arguments, said),
        content=content,
        composed=composed and content is None,
        quantity=1,
        time=times[0] if times else None,
        also_time=tuple(times[1:]),
    )
    return Interpretation(VERSION, "labels", (ask,))


def _plain(words: str) -> list[Token]:
    return [one for one in tokenize(words) if one.kind is not Kind.BREAK]


def _back(value: Any, earlier: Sequence[str], things: Sequence[Mapping[str, Any]]) -> Iterator[Span]:
    """Yield spans of earlier messages that contain a value or name its object."""
    for back, words in enumerate(earlier, 1):
        tokens = _plain(words)
        for span in (*_candidates(words, tokens, value), _name_of(words, tokens, str(value), things, ())):
            if span is not None:
                yield Span(span.text, span.start, back)


def _parts_of(words: str, tokens: Sequence[Token], value: str, taken: Sequence[Span]) -> list[Span]:
    """Return the words that are the parts of a file's name: csv template for hours, hours_template.csv."""
    parts = {one for one in re.split(r"[^a-z0-9]+", fold(value)) if one}
    found: list[Span] = []
    for token in tokens:
        own = {one for one in re.split(r"[^a-z0-9]+", token.text) if one}
        span = _span(words, token, token)
        if own & parts and not _overlaps(span, taken) and "." in value:
            parts -= own
            found.append(span)
    return found if not parts else []


def _product(words: str, tokens: Sequence[Token], value: int, taken: Sequence[Span]) -> list[Span]:
    """Return the words that express a number as a multiple of another one: double, 2."""
    times = [one for one in tokens if one.text in _FACTORS]
    numbers = [
        one for one in tokens if any(value == _FACTORS[by.text] * of for by in times for of in readings(one.text))
    ]
    spans = [_span(words, one, one) for one in (*times[:1], *numbers[:1])]
    return spans if len(spans) == 2 and not any(_overlaps(one, taken) for one in spans) else []


def _mode(arguments: Mapping[str, Any], said: Sequence[str]) -> Mode:
    """Return how a call changes a file; Mode.NONE for a call that does not."""
    if arguments.get("append"):
        return Mode.ADD
    if "path" not in arguments or not said:
        return Mode.NONE
    return Mode.REPLACE if any(one.strip() for one in said) else Mode.REMOVE


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
    """Return every object in a case's results."""
    results = []
    for seen in case.get("observed", ()):
        try:
            results.append(json.loads(seen["result_text"]))
        except ValueError:
            continue
    return objects_in(results)


def objects_in(results: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Return every object in results, at any depth."""
    found: list[Mapping[str, Any]] = []
    waiting = list(results)
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
    """Return the words that name an object: the longest run of those found in its fields."""
    held = {
        _stem(word)
        for thing in things
        if value in thing.values() or ("/" in value and value.rpartition("/")[2] in thing.values())
        for field in plain_values(dict(thing))
        if isinstance(field, str)
        for word in re.findall(r"[^\W_]+", field)
        if len(word) >= STEM
    }
    best: list[Token] = []
    run: list[Token] = []
    for token in tokens:
        free = not _overlaps(_span(words, token, token), taken)
        own = re.findall(r"[^\W_]+", token.raw) if token.kind is Kind.QUOTE else [token.raw]
        said = {_stem(one) for one in own if len(one) >= STEM}
        run = [*run, token] if free and said and said <= held else []
        best = run if len(run) > len(best) else best
    return _span(words, best[0], best[-1]) if best else None


def _time(words: str, tokens: Sequence[Token], arguments: Mapping[str, Any]) -> list[Span]:
    """Return the words that state the times of the call, each run separately; none if it has no time."""
    wanted = frozenset(
        one
        for name, value in arguments.items()
        if name in _DATES and isinstance(value, str)
        for one in times_of(value).features
    )
    if not wanted:
        return []
    runs: list[list[int]] = []
    for at in sorted(read_times(tokens).places | set(_relative(tokens))):
        if runs and at - runs[-1][-1] <= 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    runs = [[*run, run[-1] + 1] if _is_bare_hour(tokens, run[-1] + 1) else run for run in runs]
    runs = [[run[0] - 1, *run] if _is_day_of_month(tokens, run[0]) else run for run in runs]
    runs = [[*run, run[-1] + 1, run[-1] + 2] if _is_all_day(tokens, run[-1]) else run for run in runs]
    several = [
        _span(words, tokens[runs[first][0]], tokens[runs[last][-1]])
        for first in range(len(runs))
        for last in range(first, len(runs))
    ]
    best = sorted(several, key=lambda one: (-len(times_of(one.text).features & wanted), -_hours(one), len(one.text)))
    if best and wanted <= times_of(best[0].text).features:
        return best[:1]
    before = [run for run in runs if any(tokens[at].text in _EARLIER for at in run)]
    if before:  # the event before it states a day, but is not what was requested
        return [
            _span(words, tokens[run[0]], tokens[run[-1]]) for run in [before[0], *runs[runs.index(before[0]) + 1 :]]
        ]
    single = [_span(words, tokens[run[0]], tokens[run[-1]]) for run in runs]
    telling = [one for one in single if times_of(one.text).features & wanted]
    return telling or best[:1]


def _relative(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the positions of words that state a time relative to another: a day before, una hora antes."""
    for at, one in enumerate(tokens):
        if one.text in _EARLIER and at > 1 and tokens[at - 1].text in _UNITS:
            yield from range(at - 2, at + 1)


def _is_day_of_month(tokens: Sequence[Token], place: int) -> bool:
    return place > 0 and tokens[place].text in {"de", "of"} and tokens[place - 1].raw.isdigit()


def _is_all_day(tokens: Sequence[Token], place: int) -> bool:
    return [one.text for one in tokens[place + 1 : place + 3]] == ["all", "day"]


def _is_bare_hour(tokens: Sequence[Token], place: int) -> bool:
    return place < len(tokens) and tokens[place].raw.isdigit() and int(tokens[place].raw) < _HOURS


def _hours(span: Span) -> int:
    return any(one.raw.isdigit() for one in tokenize(span.text)[1:])


def _content(words: str, tokens: Sequence[Token], said: Sequence[str], taken: Sequence[Span]) -> Span | None:
    """Return the words from which a content was made, None if too few of its own are among them."""
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
        return None  # a long text is the source of something to be made
    return best if sum(_stem(one) in held for one in own) >= _ENOUGH * min(len(own), _MOST) else None


def _stem(word: str) -> str:
    return next((one.text[:STEM] for one in tokenize(word)), word)


def _span(words: str, first: Token, last: Token) -> Span:
    return Span(words[first.start : last.stop], first.start)


def _overlaps(span: Span, taken: Sequence[Span]) -> bool:
    return any(span.start < one.stop and one.start < span.stop for one in taken)
