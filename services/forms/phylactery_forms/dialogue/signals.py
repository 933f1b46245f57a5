"""Signals of a correction in a message: what it says about each answer that was given, and how it says it.

A signal is a number from 0 to 1 under a name. ``correction`` weighs them; the weights are data (``correction.yaml``),
fitted by the benchmarks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from phylactery_understanding.language.text import Kind
from phylactery_understanding.replies.talk import read_talk

from phylactery_forms.definitions.model import DISTINCTIVE, FREE, Field, Form
from phylactery_forms.dialogue.reading import found_in
from phylactery_forms.dialogue.state import ConversationState, applies, last_changed
from phylactery_forms.dialogue.words import Span, Words, find, is_question, named_at, size_at, words_of
from phylactery_forms.values.model import Context, Found, Problem
from phylactery_forms.values.reading import extract

Signals = Mapping[str, float]
PLAIN: Final = frozenset({"number", "choice", "yes_no"})
"""Types whose values are words or figures that may mean anything else."""
_SPELLED: Final = FREE | {"person_name", "email", "url", "national_id", "pattern", "phone"}
"""Types whose corrected value is spelled much like the wrong one."""
_DENIABLE: Final = frozenset({"date", "time"})
"""Types of which a person may say which value they do not want; an option may be a denial itself: never arrived."""
_BREAK: Final = re.compile(r"[,;:!?¿¡\n]|\.(?:\s|$)")
_MOST_PARTS: Final = 6
_LONGEST: Final = 60
"""The number of words up to which a message is taken apart; what is longer tells a story."""
_SHORT: Final = 2
_ALIKE: Final = 0.7
_THAN: Final = frozenset({"que", "than"})
_CONTENT: Final = 3
"""The least number of letters of a word that an answer is recognised by."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message, between marks and contrasts; ``denied`` if it says what is not meant.

    ``again`` if words before it take back what was said until there: no wait, better.
    """

    start: int
    stop: int
    text: str
    denied: bool
    again: bool = False


@dataclass(frozen=True, slots=True)
class About:
    """What a message says about one filled field: signals, and the part with a new value, if there is one."""

    field: Field
    signals: Signals
    part: Part | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The signals of a message: its own, and those about each filled field."""

    message: Signals
    about: tuple[About, ...]


def parts_of(said: Words) -> list[Part]:
    """Return the parts of a message in order."""
    words = said.folded
    if not words:
        return []
    if len(words) > _LONGEST:
        return [Part(0, len(words), said.text, denied=False)]
    starts = [0]
    for place in range(1, len(words)):
        begins = size_at("denies", words, place) or size_at("gives", words, place)
        if _breaks(said, place) or (begins and place > starts[-1] + _inside(words, starts[-1]) - 1):
            starts.append(place)
    starts = starts[:_MOST_PARTS]
    bounds = list(zip(starts, [*starts[1:], len(words)], strict=True))
    found: list[Part] = []
    for start, stop in bounds:
        size = size_at("denies", words, start)
        if size >= stop - start and found and not _breaks(said, start):
            found[-1] = Part(found[-1].start, stop, _text(said, found[-1].start, stop), denied=True)
            continue  # the Monday no, the Tuesday
        again = _rethinks(words[start:stop]) or (bool(found) and found[-1].again and _rethinks(_words(found[-1], said)))
        denied = 0 < size < stop - start and not again
        found.append(Part(start, stop, _text(said, start, stop), denied=denied, again=again and bool(found)))
    return found


def _words(part: Part, said: Words) -> tuple[str, ...]:
    return said.folded[part.start : part.stop]


def _rethinks(words: tuple[str, ...]) -> bool:
    """Return True if words begin by taking back those before them: no wait, or rather, perdón."""
    if size_at("denies", words, 0) == 1 and words[0] == "no":  # but: no leg is missing, two are
        return len(words) > 1 and size_at("rethink", words, 1) > 0
    return any(size_at(name, words, 0) for name in ("rethink", "regret"))


def _inside(words: tuple[str, ...], start: int) -> int:
    """Return how many words a contrast that begins a part has, at least one: no part begins inside it."""
    return max(size_at("denies", words, start), size_at("gives", words, start), 1)


def _breaks(said: Words, place: int) -> bool:
    before, after = said.tokens[place - 1], said.tokens[place]
    return _BREAK.search(said.text[before.stop : after.start] + " ") is not None


def _text(said: Words, start: int, stop: int) -> str:
    return said.text[said.tokens[start].start : said.tokens[stop - 1].stop]


def latest(read: list[Found], text: str) -> list[Found]:
    """Return the values of an answer from the last on before which it takes the others back: at six, no wait, at 7."""
    for place in range(len(read) - 1, 0, -1):
        between = words_of(text[read[place - 1].end : read[place].start]).folded
        if {*between} & _THAN:
            continue  # eight is better than nine
        if find("rethink", between) is not None or find("regret", between) is not None:
            return read[place:]
    return read


def behind_second_thought(one: Field, text: str, context: Context) -> str:
    """Return what follows the last second thought between two values, empty if there is none: 4, sorry, 5."""
    said, found = words_of(text), ""
    words = said.folded
    if len(words) > _LONGEST:
        return ""
    for place in range(1, len(words)):
        denies = int(words[place] in {"no", "nope"})
        size = denies + max(size_at(name, words, place + denies) for name in ("regret", "rethink"))
        stop = place + size
        if not size or stop >= len(words) or words[stop] in _THAN:
            continue
        if not _breaks(said, place) and not (denies and size > 1):
            continue
        if denies and size == 1 and not _breaks(said, stop):
            continue  # the 12th, not the 11th
        sides = _text(said, 0, place), said.text[said.tokens[stop].start :]
        if all(not isinstance(read := found_in(one, side, context), Problem) and read for side in sides):
            found = sides[1]
    return found


def undenied(one: Field, text: str, context: Context) -> list[Found] | Problem:
    """Return the values of a field in an answer, but for those that it denies: not at 12:30."""
    read = found_in(one, text, context)
    if one.type.name not in _DENIABLE:
        return read
    said = words_of(text)
    parts = parts_of(said)
    if not isinstance(read, Problem) and (last := latest(read, text)) != read:
        return last
    if not any(part.denied for part in parts):
        return read
    denied = [(said.tokens[part.start].start, said.tokens[part.stop - 1].stop) for part in parts if part.denied]
    if not isinstance(read, Problem):
        kept = [found for found in read if not any(start <= found.start < stop for start, stop in denied)]
        return kept if kept or not read else Problem("denied")
    for part in parts:
        alone = [] if part.denied else found_in(one, part.text, context)
        if not isinstance(alone, Problem) and alone:
            offset = said.tokens[part.start].start
            return [Found(found.value, found.start + offset, found.end + offset, whole=False) for found in alone]
    return read


def evidence_of(form: Form, conversation: ConversationState, said: Words, context: Context) -> Evidence:
    """Return the signals of a message in the state it was said in."""
    filled = [one for one in form.fields if one.id in conversation["values"] and applies(one, conversation)]
    parts = parts_of(said)
    asked = form.by_id.get(conversation["confirming"] or conversation["asked"] or "")
    longest = max((span.stop - span.start for one in filled if (span := named_at(one, said.folded))), default=0)
    taken = [[] if asked is None else found_in(asked, part.text, context) for part in parts]
    answers = _Answers(asked, parts, taken)
    about = tuple(_about(one, form, conversation, said, answers, longest, context) for one in filled)
    wide: set[Part | None] = {one.part for one in about if one.field.type.name in DISTINCTIVE and one.part is not None}
    about = tuple(_without_value(one) if _is_piece(one, wide) else one for one in about)
    return Evidence(_message(said, parts, asked, about, context), about)


def _is_piece(one: About, wide: set[Part | None]) -> bool:
    """Return True if a figure or a yes may be but a piece of something else: of an hour, or of a sentence."""
    named = one.signals["named"] or one.signals["named_less"] or one.signals["hinted"]
    kind = one.field.type.name
    return not named and (kind == "yes_no" or (kind == "number" and one.part in wide))


def _without_value(one: About) -> About:
    return About(one.field, {**one.signals, "new_plain": 0.0, "new_whole": 0.0, "as_asked": 0.0}, None)


def _about(  # noqa: PLR0917 - each is another thing that the signals are about
    one: Field,
    form: Form,
    conversation: ConversationState,
    said: Words,
    answers: _Answers,
    longest: int,
    context: Context,
) -> About:
    now = conversation["values"][one.id]["value"]
    kind, asked = one.type.name, answers.asked
    span = named_at(one, said.folded)
    size = 0 if span is None else span.stop - span.start
    read = (
        _read_free(now, said, answers.parts)
        if kind in FREE or kind == "person_name"
        else _read_typed(one, now, answers, context)
    )
    alike = _likeness(now, said, read.value) if kind in _SPELLED else 0.0
    new = read.part is not None and not read.tried
    signals = {
        "named": float(size == longest > 0),
        "named_less": float(0 < size < longest),
        "hinted": float(not size and hinted_at(one, form, said.folded) is not None),
        "old": float(read.old),
        "old_denied": float(read.denied),
        "new": float(new and kind in DISTINCTIVE),
        "new_plain": float(new and kind in PLAIN),
        "new_whole": float(read.whole),
        "tried": float(read.tried),
        "alike": float(alike > _ALIKE),
        "last": float(last_changed(conversation) == one.id),
        "asked": float(answers.asked is one),
        "as_asked": float(new and asked is not None and asked is not one and asked.type.name == kind),
        "free": float(kind in FREE or kind == "person_name"),
    }
    return About(one, signals, read.part)


@dataclass(frozen=True, slots=True)
class _Answers:
    """The asked field, and what it reads in each part of a message."""

    asked: Field | None
    parts: list[Part]
    read: list[list[Found] | Problem]

    def holds(self, of: Field, place: int, found: Found) -> bool:
        """Return True if a value is but a piece of what the asked field reads: the ten of at ten."""
        if (
            self.asked is None
            or self.asked.type.name not in DISTINCTIVE | {"number"}
            or self.asked.type.name == of.type.name
        ):
            return False
        read = self.read[place]
        if isinstance(read, Problem):
            return of.type.name in PLAIN
        return any(one.start <= found.start and found.end <= one.end for one in read)


@dataclass(frozen=True, slots=True)
class _Read:
    """Whether the present value is said, and denied; and the part with another value, if all of it, and which.

    ``tried`` says that the part holds no value, but somebody tried.
    """

    old: bool
    denied: bool
    part: Part | None = None
    whole: bool = False
    value: str | None = None
    tried: bool = False


def _read_typed(one: Field, now: str, answers: _Answers, context: Context) -> _Read:
    """Read the values of a typed field; what a denied part says counts only if no other part has a value."""
    old = denied = False
    best: tuple[Part, Found] | None = None
    tried: Part | None = None
    for place, part in enumerate(answers.parts):
        read = found_in(one, part.text, context)
        if isinstance(read, Problem):
            tried = tried or (None if part.denied else part)
            continue
        read = latest(read, part.text)
        if not read and _figures(now) & _figures(part.text) and one.type.name in {"money", "phone"}:
            old, denied = True, denied or part.denied
        for found in read:
            if found.value == now:
                old, denied = True, denied or part.denied
            elif (
                not answers.holds(one, place, found)
                and not _is_loose(one, part, found, context)
                and (best is None or part.again or (best[0].denied and not part.denied))
            ):
                best = (part, found)
    if best is not None:
        return _Read(old, denied, best[0], best[1].whole, best[1].value)
    return _Read(old, denied, tried, tried=tried is not None)


def _is_loose(one: Field, part: Part, found: Found, context: Context) -> bool:
    """Return True for a time or day that is one only as the whole answer to a question for it: nine, now; a bare 5."""
    if one.type.name == "date" and part.text[found.start : found.end].strip().isdecimal():
        return named_at(one, words_of(part.text).folded) is None
    if one.type.name != "time" or not found.whole:
        return False
    alone = extract(one.type, f"x {part.text[found.start : found.end]} x", context)
    return not isinstance(alone, Problem) and not alone


def _figures(text: str) -> set[str]:
    return {one.removesuffix(".00") for one in re.findall(r"\d+(?:\.\d+)?", text)}


def _read_free(now: str, said: Words, parts: list[Part]) -> _Read:
    """Return whether the words of a present value are in a message, and in a part of it that denies them."""
    kept = {word for word in words_of(now).folded if len(word) >= _CONTENT or not word.isalpha()}
    words = said.folded
    old = bool(kept) and len(kept & {*words}) * 2 >= len(kept)
    return _Read(old, any(part.denied and kept & {*words[part.start : part.stop]} for part in parts))


def hinted_at(one: Field, form: Form, words: tuple[str, ...]) -> Span | None:
    """Return the place of a word of a field's label that no other label has: the return, of the return date."""
    others = {
        word
        for other in form.fields
        if other is not one
        for label in other.label.values()
        for word in words_of(label).folded
    }
    own = {word for label in one.label.values() for word in words_of(label).folded if len(word) > _CONTENT} - others
    return next((Span(place, place + 1) for place, word in enumerate(words) if word in own), None)


def _likeness(now: str, said: Words, value: str | None) -> float:
    """Return how much the most similar words of a message are like a present value, without being the same."""
    own = " ".join(words_of(now).folded)
    if value is not None:
        return SequenceMatcher(None, now.lower(), value.lower()).ratio()
    words = said.folded
    size = min(len(words_of(now).folded), 6)
    if not own or len(words) > _LONGEST or not size:
        return 0.0
    windows = {" ".join(words[place : place + size]) for place in range(len(words) - size + 1)}
    if size > 1:
        windows |= {*words}
    best = 0.0
    for window in windows - {own}:
        if abs(len(window) - len(own)) <= len(own) // 2 and len(window) >= _CONTENT:
            best = max(best, SequenceMatcher(None, own, window).ratio())
    return best


def _message(
    said: Words, parts: list[Part], asked: Field | None, about: tuple[About, ...], context: Context
) -> Signals:
    words = said.folded
    lists = {name: float(find(name, words) is not None) for name in ("regret", "rethink", "put", "wish")}
    talk = read_talk(said.text)
    own: dict[str, float] = {
        "bias": 1.0,
        **lists,
        "denial": float(bool(words and size_at("denial", words, 0))),
        "contrast": float(any(part.denied for part in parts) and any(not part.denied for part in parts)),
        "question": float(is_question(said)),
        "mark": float("?" in said.text),
        "talk": float(talk is not None and talk.kind in {"greeting", "thanks", "farewell"}),
        "figure": float(any(one.kind is Kind.NUMBER or one.raw.isdigit() for one in said.tokens)),
        "short": float(len(words) <= _SHORT),
        "long": min(1.0, len(words) / 20),
    }
    own |= _of_asked(said, asked, context)
    for name in _OF_ANY:
        own[f"any_{name}"] = max((one.signals[name] for one in about), default=0.0)
    return {**own, **dict(_together(own))}


def _of_asked(said: Words, asked: Field | None, context: Context) -> dict[str, float]:
    """Return what a message is to the question: its answer, all of it or in part, or a try at one."""
    if asked is None:
        return {}
    free = asked.type.name in FREE
    read = found_in(asked, said.text, context)
    values = [] if isinstance(read, Problem) else read
    named = named_at(asked, said.folded) is not None
    return {
        "asked_free": float(free),
        "asked_name": float(asked.type.name == "person_name"),
        "asked_whole": float(not free and any(found.whole for found in values)),
        "asked_some": float(not free and bool(values)),
        "asked_tried": float(isinstance(read, Problem)),
        "asked_named": float(named),
    }


_OF_ANY: Final = (
    "named", "named_less", "hinted", "old", "old_denied", "new", "new_plain", "new_whole", "tried", "alike", "as_asked",
)  # fmt: skip
_PAIRS: Final = (
    ("denial", "long"),
    ("denial", "wish"),
    ("denial", "short"),
    ("rethink", "long"),
    ("rethink", "wish"),
    ("regret", "long"),
    ("wish", "long"),
    ("wish", "figure"),
    ("put", "figure"),
    ("rethink", "figure"),
    ("regret", "any_hinted"),
    ("put", "any_hinted"),
    ("rethink", "any_hinted"),
    ("asked_free", "any_hinted"),
    ("asked_free", "put"),
    ("asked_some", "regret"),
    ("asked_some", "rethink"),
    ("asked_some", "contrast"),
    ("asked_free", "any_named"),
    ("asked_free", "any_old"),
    ("asked_free", "any_alike"),
    ("asked_free", "any_new"),
    ("asked_free", "regret"),
    ("asked_free", "rethink"),
    ("asked_free", "contrast"),
    ("asked_whole", "regret"),
    ("asked_whole", "any_named"),
    ("asked_whole", "any_old"),
    ("asked_some", "any_as_asked"),
    ("asked_some", "any_old"),
    ("asked_some", "any_new"),
    ("regret", "any_named"),
    ("regret", "any_new"),
    ("regret", "any_new_plain"),
    ("rethink", "any_new"),
    ("rethink", "any_new_plain"),
    ("put", "any_named"),
    ("put", "any_new"),
    ("put", "any_new_plain"),
    ("contrast", "any_old"),
    ("contrast", "any_new"),
    ("question", "any_new"),
    ("question", "any_named"),
    ("denial", "any_new"),
    ("denial", "any_new_plain"),
)
"""Signals that mean something else together than each alone."""


def _together(own: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    for one, other in _PAIRS:
        yield f"{one}*{other}", own.get(one, 0.0) * own.get(other, 0.0)
