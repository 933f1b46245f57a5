"""Reading of an answer to the asked field: certain, doubtful, or none.

A reading is complete or it is none: every word of an answer belongs to its value, to the frame around it ("my … is",
the field's own name, "I'd like to come on …"), or to a closed set of fillers. A word left over, an operator over the
value ("not", "or", "at most", "if", "maybe", "my wife's"), and several values make it doubtful: it is asked back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import time
from typing import Final, Literal, get_args

from phylactery_understanding.replies.answers import begins_with_yes, read_answer

from phylactery_forms.definitions.model import FREE, Field, Form
from phylactery_forms.dialogue.commands import opens_waiting, postpones, says_end
from phylactery_forms.dialogue.filling import beside
from phylactery_forms.dialogue.reading import found_in, valid_value
from phylactery_forms.dialogue.signals import Part, behind_second_thought, latest, parts_of, undenied
from phylactery_forms.dialogue.state import ConversationState, Doubt
from phylactery_forms.dialogue.words import (
    ListName,
    Words,
    clauses_of,
    consists_of,
    corrects_by_order,
    count,
    find,
    headed,
    named_at,
    opening_of,
    size_at,
    words_of,
)
from phylactery_forms.values.contacts import NO_OWN_PHONE
from phylactery_forms.values.message import filler, fold, groups
from phylactery_forms.values.message import words as name_words
from phylactery_forms.values.model import ChoiceOptions, Context, Found, Problem, TimeOptions, ValueType, value_type
from phylactery_forms.values.reading import extract

Reason = Literal[
    "denied", "several", "bound", "condition", "others", "hedge", "asks", "left_over", "request", "correction"
]
Operator = Literal["denied", "alternative", "bound", "condition", "others", "hedge"]
_LISTS: Final[Mapping[Operator, ListName]] = {
    "denied": "negation",
    "alternative": "alternative",
    "bound": "bound",
    "condition": "condition",
    "others": "others",
    "hedge": "hedge",
}
_REASONS: Final[Mapping[Operator, Reason]] = {
    "denied": "denied",
    "alternative": "several",
    "bound": "bound",
    "condition": "condition",
    "others": "others",
    "hedge": "hedge",
}
_OWNED: Final = frozenset({"email", "phone", "person_name", "pattern", "national_id", "url"})
"""Types whose values belong to somebody: another person named behind one may be whose it is."""
_UNSURE: Final = frozenset(
    {
        "denied",
        "several_options",
        "ambiguous_time",
        "ambiguous_number",
        "not_one_day",
        "not_one_time",
        "unclear_answer",
        "inexact_number",
        "unclear_number",
    }
)
"""Problems of an answer that says something, but not one thing: it is asked back, too."""
_NOT_COUNTED: Final = frozenset({"with", "or", "from", "which", "who", "i", "you", "where", "when", "by"})
_POINTING: Final = frozenset({"the", "this", "that", "which", "each", "every", "no", "any", "another", "other"})
_ARTICLES: Final = frozenset({"un", "una"})
_STEM: Final = 4
_WORD: Final = re.compile(r"[^\W_]+")
_MOST: Final = 3
"""How many values a person is offered, and how often in a row a doubt costs no attempt."""
_LONGEST: Final = 60
"""The number of words from which a message tells a story, and is no answer to a typed field."""
_REASON: Final = 7
"""The number of words that a yes or no with its reason may have."""
_FRAME: Final = 9
"""The number of words a frame may have beside those that the lists know."""
_PLANS: Final = re.compile(r"[a-z]{3}(?:ing|ando|endo)$")
"""What people are doing then, as they plan: leaving on the 5th."""
_ABOUT: Final = 5
_NOON: Final = time(12)
_UNTIL: Final = frozenset({"until", "till", "hasta"})
_AGREEING: Final[tuple[ListName, ...]] = (
    "agrees", "beside", "being", "degree", "good", "judges", "links", "sends_with", "tail", "wants", "whom", "wish",
)  # fmt: skip
_DENYING: Final[tuple[ListName, ...]] = (
    "negation", "needless", "needed", "wants", "wish", "beside", "being", "echo", "links", "tail", "whom",
)  # fmt: skip
_DEPENDING: Final[tuple[ListName, ...]] = ("alternative", "bound", "condition", "hedge", "regret", "others")
_SINCE: Final = frozenset({"from", "desde"})
_COUNTED: Final = frozenset({"number", "money", "time", "date"})


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer gives: values with a reason are doubtful, values without one certain.

    ``more`` are the values of further fields that it gives; ``problem`` says why there is no value.
    """

    values: tuple[Found, ...] = ()
    reason: Reason | Literal[""] = ""
    problem: Problem | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def certain(self) -> bool:
        """Return True if the answer gives one value and says nothing else."""
        return bool(self.values) and not self.reason


def read_answer_to(
    one: Field, form: Form, conversation: ConversationState, text: str, context: Context, *, request: bool = False
) -> Reading:
    """Return what an answer to the asked field gives. ``request`` says that the agent can do what the text asks for."""
    if one.type.name not in FREE and (rest := behind_second_thought(one, text, context)):
        text = rest
    if one.type.name == "yes_no" and (decided := _decided(one, words_of(text), text)) is not None:
        return decided
    read = undenied(one, text, context)
    found = [] if isinstance(read, Problem) else read
    if isinstance(read, Problem) and read.code == NO_OWN_PHONE:
        return Reading(problem=read)
    if found and found[0].implied:  # only an answer that says nothing else points to a value
        return Reading((found[0],))
    if not found and one.type.name == "number" and (single := _single(one, form, words_of(text), context)) is not None:
        read = found = [single]
    more = beside(form, conversation, text, context, target=one, taken=[(each.start, each.end) for each in found[:1]])
    given = {name: each.value for name, each in more.items()}
    if isinstance(read, Problem):
        return _tried(one, read, text, context, given)
    if not found:
        return Reading(more=given)
    said = words_of(text)
    if one.type.name in FREE:
        return Reading(tuple(found[:1]), "request" if request else _doubt_of_words(one, form, said))
    values = tuple(_distinct(one, said, found, context, list(more.values())))
    named = {name: value for name, value in given.items() if named_at(form.by_id[name], said.folded) is not None}
    if len(values) > 1:
        return Reading(values[:_MOST], "several", more=named)
    reason = _doubt(one, form, said, found, [*more.items()], context)
    if not reason and headed(said) and _means_other(one, form, conversation, text, found[0], context):
        reason = "others"
    return Reading(values, reason, more=named if reason else given)


def _means_other(  # noqa: PLR0917 - each is another part of what was read
    one: Field, form: Form, conversation: ConversationState, text: str, found: Found, context: Context
) -> bool:
    """Return True if a value that begins as a correction may be that of an answer given before: no, make it the 5th."""
    if one.type.name not in _COUNTED or any(part.denied for part in parts_of(words_of(text))[1:]):
        return False  # the 15th, not the 16th: it says what this value is not
    for other in form.fields:
        alike = one.type.name in {"number", other.type.name}
        if other is one or other.id not in conversation["values"] or not alike or other.type.name not in _COUNTED:
            continue
        read = found_in(other, text, context)
        values = [] if isinstance(read, Problem) else read
        now = conversation["values"][other.id]["value"]
        if any(each.value != now and each.start < found.end and found.start < each.end for each in values):
            return True
    return False


def read_correction(one: Field, text: str, value_text: str, context: Context) -> Reading:
    """Return what a correction gives a field: a value under an operator, or one that is added, is asked back.

    ``value_text`` is the part of the message that holds the new value.
    """
    read = found_in(one, value_text, context)
    if isinstance(read, Problem):
        return Reading(problem=read)
    kept = latest(read, value_text)
    if not kept or one.type.name in FREE:
        return Reading(tuple(kept[:1]))
    said, value = words_of(text), kept[0]
    offset = max(text.find(value_text), 0)
    taken = _covered(said, [Found(value.value, value.start + offset, value.end + offset, whole=False)])
    if not taken:
        return Reading((value,))
    first, last, words = min(taken), max(taken), said.folded
    beside = range(max(first - 1, 0), min(last + 3, len(words)))
    relative = any(size_at("relative", words, place) for place in beside if place not in taken)
    if relative and one.type.name in _COUNTED:
        return Reading((value,), "bound")
    denied = {place for part in parts_of(said) if part.denied for place in range(part.start, part.stop)}
    taken |= denied | _phrases(said, taken, "marks", "regret", "rethink", "denial", "changes", "wish", "put")
    reason = _operator(one, said, [place for place in range(len(words)) if place not in taken], first, value.value)
    if reason == "denied" or (reason == "others" and one.type.name not in _OWNED):
        return Reading((value,))
    several = {each.value: each for each in kept} if reason == "several" else {value.value: value}
    return Reading(tuple(several.values())[:_MOST], reason)


def _doubt_of_words(one: Field, form: Form, said: Words) -> Reason | Literal[""]:
    """Return why words are a doubtful answer where any words are one: they ask, hedge, or mark a correction.

    What ends or holds something else, or the form itself, is doubtful even where doubtful texts are taken.
    """
    words = said.folded
    if says_end(form, said, else_too=True):
        return "left_over"
    if opens_waiting(said) and len(list(clauses_of(said))) > 1:
        return "hedge"
    if one.doubtful:
        return ""
    if "?" in said.text:
        return "asks"
    if _begins(said, "hedge", "denial") or postpones(said, None):
        return "hedge"
    if one.type.name == "address" and find("others", words) is not None:
        return "others"
    if one.type.name == "address" and any(part.denied and not _numbered(said, part) for part in parts_of(said)):
        return "left_over"
    start, stop = opening_of(said)
    corrects = start < stop and (headed(said, "regret", "changes", "put") or corrects_by_order(said))
    return "left_over" if corrects else ""


def _numbered(said: Words, part: Part) -> bool:
    """Return True if a no is that of a number: Main Street no. 5."""
    words = said.folded
    places = [place for place in range(part.start, part.stop) if words[place] == "no"]
    return any(words[place + 1][:1].isdecimal() for place in places if place + 1 < len(words))


def _decided(one: Field, said: Words, text: str) -> Reading | None:
    """Return the yes or no that opens an answer, or that a sentence about the field's own word gives.

    What follows says it again or why: yes please, it's urgent; no, I don't need it; I don't want insurance. A yes takes
    no denial behind it, a no none that wants what the field is about, and neither an operator, a figure or a question.
    """
    words = said.folded
    if "?" in text or any(any(sign.isdigit() for sign in word) for word in words):
        return None
    if _agrees(one, said):
        return Reading((Found("yes", 0, len(text), whole=True),))
    if len(words) > _REASON:
        return None
    if any(find(name, words) is not None for name in _DEPENDING):
        return None
    if "but" in words or "pero" in words or postpones(said, None):
        return None
    size = size_at("denial", words, 0)
    value = "yes" if begins_with_yes(text) else "no" if size else ""
    rest = words[max(size, 1) :] if value else words
    denies, wants = find("negation", rest) is not None, find("wants", rest) is not None
    owns = any(word in _label_words(one) for word in rest)
    needless = find("needless", rest) is not None
    said_value: str = value or ("no" if denies and owns and (wants or find("needed", rest) is not None) else "")
    refuses = said_value == "no" and denies
    if count("negation", rest) > 1 or (refuses and not _opening(said) and not _only_denies(one, rest)):
        return None  # I would not go without insurance; I don't want to lose it
    if not said_value or (value == "yes" and (denies or find("denial", rest) is not None)):
        return None
    if value == "yes" and (size_at("far", rest, 0) or size_at("question", rest, 0)):
        return None  # yes, when it worked; sure, why would I
    if value == "no" and not denies and (owns or wants or find("put", rest) is not None or read_answer(text) == "yes"):
        return None
    if value == "no" and not denies and not _opening(said) and read_answer(text) == "unclear":
        return None  # no idea
    if value == "no" and denies and len(words) > 1 and not (wants or owns or needless or _echoes(words, size)):
        return None
    return Reading((Found(said_value, 0, len(text), whole=True),))


def _agrees(one: Field, said: Words) -> bool:
    """Return True if a sentence says yes and nothing else: that works for me; I'd like insurance; a window is fine.

    That something is fine is no yes by itself, as a refusal may be so polite; it is one of the field's own word.
    """
    words, place = said.folded, 0
    if consists_of("agrees", words, "beside", "whom", "degree", "sends_with"):
        return True
    own = _label_words(one)
    if find("negation", words) is not None:
        return False  # I want no insurance
    if (
        not own & {*words}
        or size_at("judges", words, 0)
        or not any(find(n, words) for n in ("agrees", "good", "wants"))
    ):
        return False
    while place < len(words):
        size = max(int(words[place] in own), *(size_at(name, words, place) for name in _AGREEING))
        if not size:
            return False
        place += size
    return True


def _only_denies(one: Field, words: Sequence[str]) -> bool:
    """Return True if words say that what the field is about is not wanted or needed, and nothing else."""
    own, place, said = _label_words(one), 0, tuple(words)
    while place < len(said):
        size = max(int(said[place] in own), *(size_at(name, said, place) for name in _DENYING))
        if not size:
            return False
        place += size
    return True


def _echoes(words: tuple[str, ...], start: int) -> bool:
    """Return True if a no is repeated by a verb alone: no, I don't."""
    return any(consists_of("echo", some, "beside", "whom") for some in (words, words[start:]) if some)


def _label_words(one: Field) -> frozenset[str]:
    texts = [*one.label.values(), *(alias for some in one.aliases.values() for alias in some)]
    return frozenset(word for text in texts for word in words_of(text).folded if len(word) >= _STEM)


def _tried(one: Field, problem: Problem, text: str, context: Context, more: Mapping[str, str]) -> Reading:
    """Return the reading of an answer with a problem: an hour that may be in the morning or not has two values."""
    if problem.code not in _UNSURE:
        return Reading(problem=problem, more=more)
    if problem.code == "ambiguous_time":
        halves = (TimeOptions(latest=time(11, 59)), TimeOptions(earliest=_NOON))
        reads = [extract(ValueType("time", half), text, context) for half in halves]
        values = tuple(read[0] for read in reads if not isinstance(read, Problem) and read)
        valid = tuple(each for each in values if isinstance(valid_value(one, each.value, context), str))
        if len(valid) == len(halves):
            return Reading(valid, "several", more=more)
    return Reading((), "denied" if problem.code == "denied" else "asks", problem, more)


def _single(one: Field, form: Form, said: Words, context: Context) -> Found | None:
    """Return the one of what is counted: one ticket; un and una only before what the question is about."""
    words = said.folded
    for place, word in enumerate(words[:-1]):
        behind = words[place + 1]
        counts = word == "one" and not size_at("links", words, place + 1) and behind not in _NOT_COUNTED
        if counts and place and words[place - 1] in _POINTING:
            continue
        if counts or (word in _ARTICLES and any(own[:_STEM] == behind[:_STEM] for own in _own_words(form, one))):
            token = said.tokens[place]
            return Found("1", token.start, token.stop, whole=False) if valid_value(one, "1", context) == "1" else None
    return None


def _distinct(
    one: Field, said: Words, found: Sequence[Found], context: Context, more: Sequence[Found]
) -> Iterator[Found]:
    """Yield one of each value; a figure that is but a piece of a date, an hour or a telephone number is none."""
    wider = [(each.start, each.end) for each in more]
    if one.type.name == "number" and len(found) > 1:
        for kind in ("date", "time", "phone", "email"):
            read = extract(value_type(kind), said.text, context)
            wider += [] if isinstance(read, Problem) else [(each.start, each.end) for each in read]
    seen = set[str]()
    for each in found:
        between = words_of(said.text[found[0].end : each.start]).folded
        if between[:1] in {("que",), ("than",)}:  # better at nine than at eight
            continue
        piece = each is not found[0] and any(start <= each.start and each.end <= end for start, end in wider)
        if each.value not in seen and not piece:
            seen.add(each.value)
            yield each


def _doubt(  # noqa: PLR0917 - each is another part of what was read
    one: Field, form: Form, said: Words, found: Sequence[Found], more: Sequence[tuple[str, Found]], context: Context
) -> Reason | Literal[""]:
    """Return why the one value of an answer is doubtful, empty if every word of the answer is accounted for."""
    words = said.folded
    if len(words) > _LONGEST:
        return "left_over"
    taken = _covered(said, [each for each in found if each.value == found[0].value])
    for name, each in more:
        taken |= _covered(said, [each])
        if (span := named_at(form.by_id[name], words)) is not None:
            taken |= {*range(span.start, span.stop)}
    if not taken:  # a sign is no word: 👎
        return "left_over" if words else ""
    first, last = min(taken), max(taken)
    if one.type.name == "number":
        taken |= _counted(said, last)
    taken |= _taken_back(one, said, found, context) | _phrases(said, taken, "tail", "frame", "asks_politely")
    if any(size_at("hedge", words, place) for place in range(first, last)):
        return "hedge"  # around nine: the hour is read with the word before it
    inside = words[first : last + 1]
    if one.type.name == "choice" and find("negation", inside) and not _denies(one, found[0].value, inside):
        return "denied"  # noise it does not make: an option's words may be said around a no
    open_words = [place for place in range(len(words)) if place not in taken]
    if reason := _operator(one, said, open_words, first, found[0].value):
        return reason
    if "?" in said.text and not _begins(said, "asks_politely"):
        return "asks"
    left = _left_over(one, form, said, taken)
    if not left or _framed(said, left, (first, last)):
        return ""
    behind = words[last + 1 :]  # dinner with a client: what an option is said about belongs to it
    about = one.type.name == "choice" and left[0] > last and size_at("about", behind, 0) and len(behind) <= _ABOUT
    return "" if about and len(_clause(said, first, left)) == len(left) else "left_over"


def _counted(said: Words, last: int) -> set[int]:
    """Return the words of what is counted: two tickets, 3 bed rooms."""
    words = said.folded
    stop = last + 1
    while (
        stop < min(len(words), last + 3) and not said.text[said.tokens[stop - 1].stop : said.tokens[stop].start].strip()
    ):
        if any(size_at(name, words, stop) for name in (*_LISTS.values(), "tail", "links")):
            break
        stop += 1
    return {*range(last + 1, stop)}


def _phrases(said: Words, taken: set[int], *names: ListName) -> set[int]:
    """Return the words of the phrases of some lists that hold none of those that are taken."""
    place, found = 0, set[int]()
    while place < len(said.folded):
        size = max(size_at(name, said.folded, place) for name in names)
        span = {*range(place, place + size)}
        found |= span if not span & taken else set()
        place += size or 1
    return found


def _covered(said: Words, found: Sequence[Found]) -> set[int]:
    return {
        place
        for place, token in enumerate(said.tokens)
        if any(token.start < each.end and each.start < token.stop for each in found)
    }


def _taken_back(one: Field, said: Words, found: Sequence[Found], context: Context) -> set[int]:
    """Return the words of what the answer itself takes back: not at six, at seven; at six, no wait, at seven."""
    places, words = set[int](), said.folded
    first = next(place for place, token in enumerate(said.tokens) if token.stop > found[0].start)
    for part in parts_of(said):
        if part.denied and not part.start <= first < part.stop and _says_other(one, part.text, found[0], context):
            places |= {*range(part.start, part.stop)}
    for name in ("rethink", "regret"):
        place = 0
        while (span := find(name, words, place)) is not None:
            place = span.stop
            if (
                words[span.start] in {"no", "ya"}
                and span.start > first
                and not _says_value(one, _behind(said, span.stop), context)
            ):
                continue  # at nine I can't: it says no other value
            start = span.start - (span.start > 0 and words[span.start - 1] == "no")
            stop = span.stop + (span.stop < first and words[span.stop] == "no")
            before = said.text[: said.tokens[start].start]
            takes_back = 0 < start < first and _says_value(one, before, context)
            places |= {*range(0 if takes_back else start, stop)}
    return places


def _behind(said: Words, place: int) -> str:
    return said.text[said.tokens[place].start :] if place < len(said.tokens) else ""


def _says_other(one: Field, text: str, found: Found, context: Context) -> bool:
    """Return True if a text has a value, or tries one, but not the one that was found: it would deny that itself."""
    read = found_in(one, text, context)
    return isinstance(read, Problem) or any(each.value != found.value for each in read)


def _says_value(one: Field, text: str, context: Context) -> bool:
    read = found_in(one, text, context)
    return isinstance(read, Problem) or bool(read)


def _operator(one: Field, said: Words, open_words: Sequence[int], first: int, chosen: str) -> Reason | Literal[""]:
    """Return the first operator among the words that are no value; a no or sí that opens the answer is none."""
    words, free = said.folded, {*open_words}
    opening = _opening(said)
    for place in open_words:
        for operator in get_args(Operator):
            size = size_at(_LISTS[operator], words, place)
            if not size or not free >= {*range(place, place + size)} or place < opening:
                continue
            if operator == "others" and place > first and one.type.name not in _OWNED:
                continue  # for my wife and me: it is what is counted, not whose it is
            if operator == "bound" and words[place] in _UNTIL and _called(one, "ending"):
                continue  # until the 5th, where the end is asked for
            if operator == "denied" and place > first and _denies(one, chosen, words):
                continue  # it does not turn on any more: the option itself is a denial
            return _REASONS[operator]
    return ""


def operator_over(one: Field, said: Words, found: Sequence[Found]) -> Reason | Literal[""]:
    """Return the operator that a message has over a value that was found in it, "asks" for a question; else empty."""
    taken = _covered(said, found)
    open_words = [place for place in range(len(said.folded)) if place not in taken]
    if reason := _operator(one, said, open_words, min(taken, default=0), found[0].value):
        return reason
    return "asks" if "?" in said.text and not _begins(said, "asks_politely") else ""


def _denies(one: Field, chosen: str, words: Sequence[str]) -> bool:
    """Return True if the option that was chosen is a denial itself, said with its own words."""
    options = one.type.options
    choices = options.choices if isinstance(options, ChoiceOptions) else ()
    labels = [words_of(label).folded for each in choices if each.id == chosen for label in each.labels.values()]
    spans = [(label, find("negation", label)) for label in labels]
    return any(span is not None and {*label[span.start : span.stop]} <= {*words} for label, span in spans)


def _called(one: Field, name: ListName) -> bool:
    """Return True if a field has a word of a list in its names: the end date, the return."""
    texts = (*one.label.values(), *(alias for some in one.aliases.values() for alias in some))
    return any(find(name, words_of(text).folded) is not None for text in texts)


def _opening(said: Words) -> int:
    """Return how many words open an answer as a reply to what was said before: no, el 6; nope, the 6th."""
    if len(said.tokens) < 2 or not size_at("denial", said.folded, 0):  # noqa: PLR2004
        return 0
    size = size_at("denial", said.folded, 0)
    behind = said.text[said.tokens[size - 1].stop : said.tokens[size].start] if size < len(said.tokens) else ""
    return size if re.search(r"[,.;!]", behind) else 0


def _begins(said: Words, name: ListName, *more: ListName) -> bool:
    place, words = 0, said.folded
    while place < len(words):
        if size_at(name, words, place):
            return True
        size = max(size_at(one, words, place) for one in ("beside", *more))
        if not size:
            return False
        place += size
    return False


def _left_over(one: Field, form: Form, said: Words, taken: set[int]) -> list[int]:
    """Return the places of the words that belong to nothing."""
    words, known = said.folded, filler(one.type.name) | _own_words(form, one) | _option_words(one)
    verbs = {word[:_STEM] for word in (*_asked_words(one), *_option_words(one)) if len(word) > _STEM}
    known |= _UNTIL if _called(one, "ending") else _SINCE if _called(one, "starting") else frozenset()
    if one.type.name == "person_name":
        known |= name_words("name_titles")
    left, place = list[int](), 0
    while place < len(words):
        if place in taken:
            place += 1
            continue
        size = max(size_at(name, words, place) for name in ("beside", "approves", "gives"))
        if size:
            place += size
            continue
        if words[place][:_STEM] not in verbs and not all(piece in known for piece in _WORD.findall(words[place])):
            left.append(place)
        place += 1
    return left


def _asked_words(one: Field) -> Iterator[str]:
    """Yield the longer words of the question, of which an answer may have another form: lo compraste, lo compré."""
    return (word for text in one.ask.values() for word in words_of(text).folded if len(word) > _STEM)


def _option_words(one: Field) -> frozenset[str]:
    """Return the words by which the options of a choice are called: what is left of one says no more than it."""
    options = one.type.options
    if not isinstance(options, ChoiceOptions):
        return frozenset()
    labels = [label for each in options.choices for label in each.labels.values()]
    return frozenset(piece for label in labels for piece in _WORD.findall(fold(label)))


def _own_words(form: Form, one: Field) -> frozenset[str]:
    """Return the words of the field's own question and of what the form is called, which say nothing new."""
    texts = [*one.label.values(), *one.ask.values(), *form.title.values()]
    texts += [phrase for some in (*one.aliases.values(), *form.triggers.values()) for phrase in some]
    return frozenset(piece for text in texts for piece in _WORD.findall(fold(text)) if piece != "no")


def _framed(said: Words, left: Sequence[int], value: tuple[int, int]) -> bool:
    """Return True if what is left over belongs to the person's own wish or an order whose value this is.

    "I'd like to come on …", "reserve a table for … at the window": all of it is one clause with the value, and begins
    with the head of such a wish.
    """
    clause = next(part for part in clauses_of(said) if part[0] <= value[0] < part[1])
    if _clause(said, value[0], left) != [*left] or len(left) > _FRAME:
        return False
    words, place = said.folded, clause[0]
    while place < clause[1]:
        being = size_at("being", words, place)
        if size_at("head", words, place) or _PLANS.search(words[min(place + being, len(words) - 1)]):
            return place <= left[0]
        size = max(size_at(name, words, place) for name in ("beside", "denial", "approves", "marks", "regret", "frame"))
        if not size:
            return False
        place += size
    return False


def _clause(said: Words, at: int, places: Sequence[int]) -> list[int]:
    """Return those of some words that are in the clause of another."""
    start, stop = next(part for part in clauses_of(said) if part[0] <= at < part[1])
    return [place for place in places if start <= place < stop]


# ---- answers to what was asked back --------------------------------------------


def doubted(conversation: ConversationState, one: Field, reading: Reading) -> tuple[Doubt, bool]:
    """Return what is to be asked back, and whether it counts as an attempt: every third one in a row does."""
    before = conversation.get("doubt")
    times = before["times"] + 1 if before is not None and before["field"] == one.id else 1
    values = [] if reading.reason == "denied" else [each.value for each in reading.values]
    left = Doubt(field=one.id, values=values, reason=reading.reason, times=times % _MOST)
    return left, times == _MOST


def settled(one: Field, doubt: Doubt, text: str, context: Context) -> str | None:
    """Return the value that answers what was asked back: a yes to one, a place in the list, a part of the day."""
    values = doubt["values"]
    if not values:
        return None
    if len(values) == 1:
        return values[0] if read_answer(text) == "yes" and one.type.name != "yes_no" else None
    words = words_of(text).folded
    places = {word: int(place) for place, some in groups("option_ordinals").items() for word in some}
    named = [places[word] for word in words if word in places]
    if len(named) == 1 and all(word in places or word in filler("choice") for word in words):
        at = named[0] - 1 if named[0] > 0 else len(values) - 1
        return values[at] if at < len(values) else None
    if one.type.name == "time":
        hour = int(values[0][:2]) % 12 or 12
        read = extract(one.type, f"{hour}{values[0][2:]} {text}", context)
        if not isinstance(read, Problem) and len(read) == 1 and read[0].value in values and read[0].whole:
            return read[0].value
    return None
