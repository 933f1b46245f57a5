"""Corrections: which earlier answer a message changes, if it changes one.

The signals of a message are weighed (``signals``, ``correction.yaml``): words of regret and of second thoughts, an
order to change, a contrast, an earlier answer or its field named, a value of a filled field's type, and what the
message is to the question. One answer changes one field; where it may mean several, the person is asked which.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from phylactery_understanding.documents import read_yaml
from phylactery_understanding.replies.answers import read_answer

from phylactery_forms.definitions.model import FREE, UNMISTAKABLE, Field, Form
from phylactery_forms.dialogue.reading import accepted, found_in
from phylactery_forms.dialogue.signals import About, Evidence, Part, Signals, evidence_of, hinted_at, parts_of, undenied
from phylactery_forms.dialogue.state import ConversationState, applies
from phylactery_forms.dialogue.words import (
    ListName,
    Span,
    Words,
    answer_to_review,
    approval_opens,
    consists_of,
    find,
    headed,
    named_at,
    size_at,
    words_of,
)
from phylactery_forms.values.model import Context, Problem

_SURE: Final = 0.6
"""The share from which a field is changed without asking which one is meant."""
_POSSIBLE: Final = 0.05
"""The share from which a field is among those that the person is asked about."""
_SPOKEN: Final = FREE | {"person_name"}
"""Types that take any words."""
_BEFORE_TOLD: Final[tuple[ListName, ...]] = ("seems", "instead", "gives", "links", "beside")
_DECIDING: Final = frozenset({"yes_no", "choice", "text", "address"})
"""Types of which a message that begins with a no, or with an order, may be an answer."""
_REMARK: Final = 2
_GIVING: Final = frozenset({("is",), ("es",), ("was",), ("era",)})
_MARKS: Final[tuple[ListName, ...]] = ("marks", "regret", "changes", "wrong")
_TELLING: Final = ("regret", "rethink", "put", "any_named", "any_named_less", "any_hinted", "any_old")


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of a field; ``text`` is the part of the message that holds the new value, empty for none.

    ``field`` is None if it may mean several: ``candidates``.
    """

    field: str | None
    text: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Weights:
    threshold: float
    weights: Mapping[str, float]

    def share(self, signals: Signals) -> float:
        return 1 / (1 + math.exp(-_weighed(self.weights, signals)))


def correction_in(form: Form, conversation: ConversationState, text: str, context: Context) -> Correction | None:
    """Return what a message corrects, or None if it answers, or is about something else."""
    said = words_of(text)
    filled = [one for one in form.fields if one.id in conversation["values"] and applies(one, conversation)]
    if not filled or not said.tokens or read_answer(text) == "yes":
        return None
    if conversation["choosing"]:
        return _chosen(form, conversation, said, context)
    if consists_of("wrong", said.folded, "beside", "denial"):
        return _which([one.id for one in filled])
    if answers_review(conversation, text):
        return None
    behind = approval_opens(text) if conversation["status"] == "review" else None
    more = words_of(behind).folded if behind is not None else ()
    if behind is not None and not any(find(name, more) is not None for name in (*_MARKS, "put", "rethink")):
        return None  # that is correct, please find its address: it asks for more, and changes nothing
    if conversation["status"] == "review" and (first := _named_first(filled, said)) is not None:
        one, span = first
        named = _of_named(one, span, form, said, context)
        if named is not None or one.type.name in _SPOKEN:  # what takes any words would take what is said about it
            return named
    evidence = evidence_of(form, conversation, said, context)
    asked = form.by_id.get(conversation["asked"] or "")
    clear = asked is not None and headed(said) and _changes_one(evidence)
    if _answers_question(evidence) and not clear:
        return None
    weights = _message_weights("review" if in_review(conversation) else "asked")
    takes = asked is not None and accepted(asked, text, context) is not None
    if clear or weights.share(evidence.message) >= weights.threshold:
        found = _of(evidence, form, conversation, said, context)
        if asked is None or _is_meant(found, asked, form, evidence, said, takes=takes):
            return found
    if asked is None or takes or asked.type.name in _DECIDING or not _rejects(said):
        return None
    tried = isinstance(found_in(asked, text, context), Problem)
    asks = "?" in text and find("asks_politely", said.folded) is None
    return None if tried or asks else Correction(None, "", tuple(one.id for one in filled))


def _changes_one(evidence: Evidence) -> bool:
    """Return True if a message has a value of exactly one filled field that is recognised wherever it stands."""
    return sum(bool(one.signals["new"]) and not one.signals["asked"] for one in evidence.about) == 1


def _rejects(said: Words) -> bool:
    """Return True if a message says more than a no, and begins as a correction."""
    return len(said.folded) > _REMARK and headed(said)


def _is_meant(
    found: Correction | None, asked: Field, form: Form, evidence: Evidence, said: Words, *, takes: bool
) -> bool:
    """Return True if a message corrects an answer although another field is asked.

    It says the old value, names the field, or marks a correction where the asked field does not take it; an address or
    number that is unmistakable does so by itself. A value that the asked field takes falls through to no other.
    """
    marked = any(find(name, said.folded) is not None for name in _MARKS)
    about = next((one for one in evidence.about if found is not None and one.field.id == found.field), None)
    if about is None:  # a whole date that two fields may mean; but a bare figure is none of theirs
        whole = any(one.signals["new"] and one.signals["new_whole"] for one in evidence.about)
        return marked or (whole and not takes and not said.text.strip().isdecimal())
    if about.field is asked:
        return True
    one, span = about.field, named_at(about.field, said.folded)
    if span is not None:
        return one.type.name not in FREE or marked or said.folded[span.stop : span.stop + 1] in _GIVING
    if one.type.name in UNMISTAKABLE and asked.type.name != one.type.name:
        return True
    hint = hinted_at(one, form, said.folded)
    if hint is not None and (
        said.folded[hint.stop : hint.stop + 1] in _GIVING or find("regret", said.folded) is not None
    ):
        return True
    if find("wrong", said.folded) is not None:  # that an answer was wrong is said of an earlier one
        return True
    contrasts = about.signals["old"] or (evidence.message["contrast"] and one.type.name != asked.type.name)
    if asked.type.name in FREE | {"person_name"}:
        return bool(contrasts) or find("regret", said.folded) is not None or headed(said)
    return marked and bool(not takes or contrasts or hint is not None)


def _named_first(filled: Sequence[Field], said: Words) -> tuple[Field, Span] | None:
    """Return the field that a message begins with, and where: the e-mail; my name is Ann Lee."""
    spans = [(one, span) for one in filled if (span := named_at(one, said.folded)) is not None]
    longest = max((span.stop - span.start for _, span in spans), default=0)
    named = [(one, span) for one, span in spans if span.stop - span.start == longest]
    if len(named) != 1:
        return None
    before = said.folded[: named[0][1].start]
    begins = not before or consists_of("links", before, "beside", "denial", "marker", "put")
    return named[0] if begins else None


def _of_named(one: Field, span: Span, form: Form, said: Words, context: Context) -> Correction | None:
    """Return the correction of a field that a message begins with: another value of it is all that may follow.

    Where everything was read back, the field alone is what to change, and so is one that is said to be wrong.
    """
    after, rest = _after_name(said, one, form), said.folded[span.stop :]
    if not after or consists_of("beside", rest, "links", "wrong", "changes"):
        return Correction(one.id, "")
    if one.type.name in _SPOKEN:
        return _of_spoken(one, span, said, context)
    found = accepted(one, after, context)
    return Correction(one.id, after) if found is not None and found.whole else None


def _of_spoken(one: Field, span: Span, said: Words, context: Context) -> Correction | None:
    """Return the correction of a field that takes any words: its value follows a colon, or a word that gives one.

    What is said about the value is none: that it is right changes nothing, and that it is wrong asks for another.
    """
    rest = said.folded[span.stop :]
    size = size_at("approves", rest, 0)
    if size and _gives(rest[size:]) and not _told_of(rest[size:]):  # the right name is Ann
        span, rest = Span(span.start, span.stop + size), rest[size:]
    colon = said.text[said.tokens[span.stop - 1].stop : said.tokens[span.stop].start].strip() == ":"
    told = _told_of(rest)
    if told == "approves" and not (colon and not consists_of("approves", rest, "seems", "beside", "links")):
        return None
    if told == "faults" and not (colon and not consists_of("faults", rest, "seems", "beside", "links", "approves")):
        part = parts_of(said)[-1]  # it is not Ann, it is Eve
        words = said.folded[part.start : part.stop]
        gives = part.start > span.stop and not part.denied and not _told_of(words) and _gives(words)
        text = _from(said, part.start) if gives else ""
        return Correction(one.id, text if text and accepted(one, text, context) is not None else "")
    put = find("put", said.folded[: span.start]) is not None
    text = _from(said, span.stop) if colon or put or _gives(rest) else ""
    return Correction(one.id, text) if text and accepted(one, text, context) is not None else None


def _gives(words: tuple[str, ...]) -> bool:
    return bool(size_at("instead", words, 0) or size_at("gives", words, 0))


def _told_of(words: tuple[str, ...]) -> Literal["approves", "faults", ""]:
    """Return whether words begin by saying that something is right, or wrong: es correcto, looks fine, está mal."""
    place = 0
    while place < len(words):
        approves, faults = size_at("approves", words, place), size_at("faults", words, place)
        if approves or faults:
            return "approves" if approves >= faults else "faults"
        links = max(size_at(name, words, place) for name in _BEFORE_TOLD)
        if not links:
            return "faults" if size_at("wrong", words, place) or size_at("changes", words, place) else ""
        place += links
    return ""


def in_review(conversation: ConversationState) -> bool:
    """Return True if an answer was read back: one value, or all of them."""
    return conversation["status"] == "review" or conversation["confirming"] is not None


def answers_review(conversation: ConversationState, text: str) -> bool:
    """Return True for a plain yes or no to what was read back."""
    read = answer_to_review if conversation["status"] == "review" else read_answer
    return in_review(conversation) and read(text) != "unclear"


def _answers_question(evidence: Evidence) -> bool:
    """Return True if a text is asked for, and no word of a message says that another answer is meant."""
    told = evidence.message
    return bool(told.get("asked_free")) and not any(told[name] for name in _TELLING)


def _of(
    evidence: Evidence, form: Form, conversation: ConversationState, said: Words, context: Context
) -> Correction | None:
    """Return the correction of the field that the signals speak for, or of one to be asked for."""
    weighed = [math.exp(_weighed(_field_weights(), one.signals)) for one in evidence.about]
    shares = [(one, share / sum(weighed)) for one, share in zip(evidence.about, weighed, strict=True)]
    best, share = max(shares, key=lambda one: one[1])
    if share >= _SURE or len(shares) == 1:
        return Correction(best.field.id, _value_text(best, form, conversation, said, context))
    return _which([one.field.id for one, some in shares if some >= _POSSIBLE])


def _which(names: list[str]) -> Correction:
    """Return a correction of the only field, or of one to be asked for."""
    return Correction(names[0], "") if len(names) == 1 else Correction(None, "", tuple(names))


def _chosen(form: Form, conversation: ConversationState, said: Words, context: Context) -> Correction | None:
    """Return the field that answers which one is meant: by its name, its number in the list, or a value of it alone."""
    fields = [form.by_id[name] for name in conversation["choosing"] if name in form.by_id]
    named = [one for one in fields if named_at(one, said.folded) is not None]
    if len(named) == 1:
        after = _after_name(said, named[0], form)
        return Correction(named[0].id, after if after and _gives_value(named[0], after, context) else "")
    number = said.folded[0] if len(said.folded) == 1 else ""
    if number.isdigit() and 0 < int(number[:3]) <= len(fields):
        return Correction(fields[int(number[:3]) - 1].id, "")
    giving = [one for one in fields if one.type.name not in _SPOKEN and _gives_value(one, said.text, context)]
    return Correction(giving[0].id, said.text) if len(giving) == 1 else None


def _gives_value(one: Field, text: str, context: Context) -> bool:
    read = undenied(one, text, context)
    return not isinstance(read, Problem) and len({found.value for found in read}) == 1


def _value_text(about: About, form: Form, conversation: ConversationState, said: Words, context: Context) -> str:
    """Return the part of a message that holds the new value of a field, empty if it has to be asked for."""
    one, now = about.field, conversation["values"][about.field.id]["value"]
    if one.type.name in _SPOKEN:
        return _named_text(one, form, now, said, context)
    if about.part is not None:
        return "" if _surely_denied(about.part, said) else about.part.text
    after = _after_name(said, one, form)
    if after and isinstance(found_in(one, after, context), Problem):
        return after  # somebody tried: it is told what is wrong with it
    return ""


def _surely_denied(part: Part, said: Words) -> bool:
    """Return True if words before a value say that it is not meant: not at six. A bare no is of what was before."""
    words = said.folded[part.start : part.stop]
    return part.denied and not (words[0] == "no" and size_at("denies", words, 0) == 1)


def _named_text(one: Field, form: Form, now: str, said: Words, context: Context) -> str:
    """Return the words after a field's name that are its new value: not those that are denied, nor that say "wrong"."""
    after = words_of(_after_name(said, one, form))
    if "?" in said.text or size_at("rethink", after.folded, 0) or size_at("needless", after.folded, 0):
        return ""  # the insurance after all; a normal ride instead?
    kept = [
        part for part in parts_of(after) if not part.denied and not _says_wrong(after.folded[part.start : part.stop])
    ]
    if not kept:
        return ""
    text = _from(after, kept[0].start)
    if len(kept) < len(parts_of(after)):
        end = kept[0].stop if one.type.name != "address" else kept[-1].stop
        text = _from(words_of(after.text[: after.tokens[end - 1].stop]), kept[0].start)
    same = {*words_of(text).folded} <= {*words_of(now).folded}
    return "" if same or accepted(one, text, context) is None else text


def _says_wrong(words: tuple[str, ...]) -> bool:
    return consists_of("regret", words, "changes", "beside", "wrong", "denial") or consists_of(
        "changes", words, "beside", "denial"
    )


def _after_name(said: Words, one: Field, form: Form) -> str:
    span = named_at(one, said.folded) or hinted_at(one, form, said.folded)
    return _from(said, span.stop) if span is not None else ""


def _from(said: Words, place: int) -> str:
    """Return the text from a word on, without the words that only link."""
    words = said.folded
    while place < len(words) and (size := max(size_at(name, words, place) for name in ("links", "instead", "gives"))):
        place += size
    return said.text[said.tokens[place].start :].strip() if place < len(words) else ""


def _weighed(weights: Mapping[str, float], signals: Signals) -> float:
    return sum(weight * signals.get(name, 0.0) for name, weight in weights.items())


@cache
def _content() -> Mapping[str, Any]:
    found: Mapping[str, Any] = read_yaml((files(__package__) / "correction.yaml").read_text(encoding="utf-8"))
    return found


def signal_weights(of: Literal["asked", "review", "field"]) -> Mapping[str, float]:
    """Return the weights of the signals in a state, or of those that tell the field."""
    return _field_weights() if of == "field" else _message_weights(of).weights


@cache
def _message_weights(state: Literal["asked", "review"]) -> _Weights:
    found = _content()[state]
    return _Weights(found["threshold"], found["weights"])


def _field_weights() -> Mapping[str, float]:
    found: Mapping[str, float] = _content()["field"]
    return found
