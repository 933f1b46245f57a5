"""Reading of answers that say which of several questions "may I?" they mean: yes to the first, no to b.txt.

A part of a text is an answer only if one language's lists, with the names of what was asked, account for every word of
it. A yes in a text of which any part is unclear is no yes; a clear no in it stays one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final, Literal

from phylactery_understanding.language.word_files import lists, of_each_language
from phylactery_understanding.replies import answers
from phylactery_understanding.replies.answers import exact_words, plain_words

_FILE: Final = "choices.yaml"
_PLACES: Final = ("first", "second", "third", "fourth", "fifth")
_GROUPS: Final = frozenset({"last", "other", "rest", "both", "all"})
_MOST_NUMBERS: Final = 99
_MAX_CHARACTERS: Final = 160
"""A longer text says more than which."""
_MAX_NAME: Final = 60
_BREAK: Final = re.compile(r"[,;\n!¡]|[.:](?=\s|$)|\s[-–—]+\s")
_BAR: Final = "|"
_PAIR: Final = 2
_QUESTION: Final = re.compile(r"[?¿？…]|\.\s*\.")
_ADDRESS: Final = re.compile(r"([^\s@]+)@[^\s@]+")
_FILE_NAME: Final = re.compile(r"(?:.*/)?(([^/\s][^/]*?)\.\w{1,6})")
_CLOCK: Final = re.compile(r"\d:\d\d|\d{4}-\d\d|\ba las?\b|\bat \d", re.IGNORECASE)
_THINGS: Final = ("file", "mail", "reminder")
_LEADING: Final = frozenset({"to", "when"})
_IS: Final = "is "
_REST, _OTHER = -1, -2
"""Whatever is named nowhere else in the text, and the only such one."""
Said = Literal["yes", "no"]
_Table = Mapping[tuple[str, ...], str]
_Named = Mapping[tuple[str, ...], frozenset[int]]


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked: the values of its call as texts, what it does in words, and its number, 0 for none.

    One that is not open any more can be named, and is none of all.
    """

    values: Sequence[str]
    does: str = ""
    number: int = 0
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Choices:
    """Which questions, by their place in the list, a text answers how."""

    answers: Mapping[int, Said]
    clear: bool = True
    """Whether nothing else was said of any of them. If something was, there is no yes among the answers."""
    speaks: bool = True
    """Whether it says yes or no at all, and does not only name some of them: both."""


def read_choices(text: str, questions: Sequence[Question], *, in_order: bool = True) -> Choices | None:
    """Return what a text answers of the questions; None if it is about others.

    in_order is whether the questions are in the order in which the person knows them; otherwise no place names one.

    A part with words that no list has is doubtful where it answers or names a question; elsewhere it is about something
    else, and so is the whole text.
    """
    if not may_choose(text):
        return None
    words = exact_words(_BREAK.sub(f" {_BAR} ", text))
    tables = [{**table, **_things(table, questions)} for table in _tables()]
    read = [_read(_parts(words, table, questions, in_order=in_order), questions) for table in tables]
    found = [one for one in read if one is not None]
    clear = [one for one in found if one.clear]
    if clear and all(one == clear[0] for one in clear):
        return clear[0]
    if not found:
        return None
    best = max(found, key=lambda one: (one.speaks, len(one.answers)))
    refused: dict[int, Said] = {at: said for at, said in best.answers.items() if said == "no"}
    return Choices(refused, clear=False, speaks=best.speaks)


def may_choose(text: str) -> bool:
    """Return True if a text has a word that answers, or names a question by its place: it is worth to be read."""
    if len(text) > _MAX_CHARACTERS or _QUESTION.search(text):
        return False
    words = plain_words(text)
    named = {"yes", "no", "none", "but", "only", *_GROUPS, *_PLACES}
    return any(
        kind in named or kind.isdigit()
        for table in _tables()
        for phrase, kind in table.items()
        for at in range(len(words) - len(phrase) + 1)
        if words[at : at + len(phrase)] == phrase
    )


@cache
def _tables() -> tuple[_Table, ...]:
    """Return the phrases of each language that has a list, with those that answer by themselves, and their kinds."""
    found = []
    for file in of_each_language(_FILE):
        table: dict[tuple[str, ...], str] = {exact_words(str(one)): str(one) for one in range(1, _MOST_NUMBERS + 1)}
        said = dict(lists(file.with_name(answers.FILE)))
        for kind, meant in _OF_ANSWERS.items():
            table |= dict.fromkeys(map(plain_words, said.get(kind, ())), meant)
        for kind, phrases in lists(file):
            table |= dict.fromkeys(map(plain_words, phrases), kind)
        found.append(table)
    return tuple(found)


_OF_ANSWERS: Final[Mapping[str, str]] = {
    "yes": "yes",
    "weak": "yes",
    "no": "no",
    "with": "the",
    "thanks": "the",
    "neither": "unknown",
}
"""What the lists of answers are here. What points back at one question is unknown, as there are several."""


@dataclass(slots=True)
class _Part:
    """A piece of a text up to the next separator: what it says and names, in that order."""

    kinds: list[tuple[str, str, frozenset[int]]] = field(default_factory=list)
    """"yes", "no" or "which", its phrase, and the questions that it names: none if that is not clear."""
    unknown: bool = False
    only: bool = False
    but: bool = False
    behind: str = ""
    """What separates it from the part before."""
    leads: bool = False
    """Whether it begins with a preposition."""
    is_used: bool = False
    names_none: bool = False
    """Whether it says yes or no to what nothing is called: yes to c.txt."""

    @property
    def said(self) -> Said | None:
        """What it answers, None if nothing, or not clearly: do not skip it."""
        found = list(dict.fromkeys((kind, phrase) for kind, phrase, _ in self.kinds if kind != "which"))
        kinds = {kind for kind, _ in found}
        if kinds == {"yes"}:
            return "yes"
        return "no" if kinds == {"no"} and len(found) == 1 else None

    @property
    def speaks(self) -> bool:
        return any(kind != "which" for kind, _, _ in self.kinds)

    @property
    def names(self) -> bool:
        return any(kind == "which" for kind, _, _ in self.kinds)

    @property
    def which(self) -> frozenset[int]:
        """The questions that it names, none if it names several that differ."""
        found = {one for kind, _, one in self.kinds if kind == "which"}
        return next(iter(found)) if len(found) == 1 else frozenset()

    @property
    def speaks_first(self) -> bool:
        return self.kinds[0][0] != "which"


def _parts(words: Sequence[str], table: _Table, questions: Sequence[Question], *, in_order: bool) -> list[_Part]:
    """Return the parts of a text in one language; one that answers, names, answers and names again is two."""
    (names, also), longest = _names(questions), 16
    plain = tuple(word if word.isdigit() else "".join(plain_words(word)) for word in words)
    parts, part, place, last = list[_Part](), _Part(), 0, ""
    while place < len(words):
        ends = range(min(place + longest, len(words)), place, -1)
        end = next((end for end in ends if tuple(words[place:end]) in names or plain[place:end] in table), 0)
        phrase = tuple(words[place : end or place + 1])
        kind = "name" if phrase in names else table.get(plain[place : place + len(phrase)], "unknown")
        kind = _BAR if phrase == (_BAR,) else kind
        empty, place = not (part.kinds or part.unknown), end or place + 1
        if kind in {_BAR, "and", "however"}:
            parts.append(part)
            last = "" if part.names else last
            part = _Part(behind=kind)
            continue
        which = names.get(phrase) if kind == "name" else _which(kind, questions, in_order=in_order)
        if which is not None and kind != "name" and also.get(_bare(phrase), which) != which:
            which = frozenset()  # the first, where a file is named first.txt
        if kind in {"yes", "no", "none"} or which is not None:
            if _is_over(part, speaks=kind in {"yes", "no", "none"}):
                parts.append(part)
                part = _Part()
            said = "no" if kind == "none" else kind
            part.kinds += [(said, " ".join(phrase), frozenset())] if kind in {"yes", "no", "none"} else []
            which = _everything(questions) if kind == "none" else which
            part.kinds += [("which", "", which)] if which is not None else []
        part.leads = part.leads or (kind in _LEADING and empty)
        part.names_none = part.names_none or (kind == "unknown" and last == "to" and part.speaks)
        # all but, and then an answer, leaves nothing out
        part.unknown = part.unknown or (part.but and kind in {"yes", "no", "none"} and not part.names)
        part.only = part.only or kind == "only"
        part.but = part.but or kind == "but"
        is_time = _timed(questions) and _is_time(kind, words, slice(place - len(phrase), place), table)
        part.unknown = part.unknown or kind == "unknown" or is_time or _is_no_place(kind, phrase, last)
        last = kind
    found = list[_Part]()
    for one in (*parts, part):
        if one.unknown and not one.kinds and one.behind == "however" and found:
            found[-1].unknown = True  # yes to the first, but faster
        elif one.kinds or one.unknown:
            found.append(one)
    return found


def _is_over(part: _Part, *, speaks: bool) -> bool:
    """Return True if what comes begins another part: an answer and what it is for, the other way round, are one."""
    if not (part.speaks and part.names):
        return False
    return speaks if part.speaks_first else not speaks


def _is_no_place(kind: str, phrase: tuple[str, ...], last: str) -> bool:
    """Return True if a number is how many, or a place how soon: 2 files, 2 of them, only 2, do it first."""
    if last == "only" and kind.isdigit():
        return True
    if last.isdigit():
        return kind in _LEADING or any(table.get(phrase) in _THINGS for table in _tables())
    return last == "yes" and kind in {*_PLACES, "last"} and not any(word[0].isdigit() for word in phrase)


def _timed(questions: Sequence[Question]) -> bool:
    return any(_CLOCK.search(value) for one in questions for value in one.values)


def _is_time(kind: str, words: Sequence[str], at: slice, table: _Table) -> bool:
    """Return True if what names some questions may be an hour or a day: a las dos, a las 3, for the 3rd."""
    before = words[: at.start]
    lead = next((word for word in reversed(before) if table.get((word,)) != "the"), "")
    when, article = table.get((lead,)) == "when", before[-1] if before else ""
    if kind == "both":
        return "las" in words[at] and (when or lead == "a")
    if not (kind.isdigit() or kind in _PLACES):
        return False
    hour = article == "las" or (article == "la" and kind == "1" and sum(word.isdigit() for word in words) == 1)
    return when or (lead == "a" and hour)


def _which(kind: str, questions: Sequence[Question], *, in_order: bool) -> frozenset[int] | None:
    """Return the questions that a phrase names, none if it is not clear which; None if it is not a name."""
    if kind == "both":
        return everything if len(everything := _everything(questions)) == _PAIR else frozenset()
    if kind == "all":
        return _everything(questions)
    if kind in {"other", "rest"}:
        return frozenset({_OTHER if kind == "other" else _REST})
    if kind.startswith(_IS):
        return frozenset({int(kind.removeprefix(_IS))})
    if kind.isdigit() and any(one.number for one in questions):
        drawn = [at for at, one in enumerate(questions) if one.number == int(kind)]
        return frozenset(drawn) if len(drawn) == 1 else frozenset()
    if kind.isdigit() or kind in _PLACES or kind == "last":
        last = len(questions) - 1
        at = last if kind == "last" else int(kind) - 1 if kind.isdigit() else _PLACES.index(kind)
        clear = in_order and 0 <= at <= last and all(one.is_open for one in questions)
        return frozenset({at}) if clear and questions[at].number in {0, at + 1} else frozenset()
    return None


def _everything(questions: Sequence[Question]) -> frozenset[int]:
    return frozenset(at for at, one in enumerate(questions) if one.is_open)


def _names(questions: Sequence[Question]) -> tuple[_Named, _Named]:
    """Return what names questions, and which: a value, a file's name, who an address is of; no word of the lists.

    The second are all those names as a word of the lists may stand for them.
    """
    found, also = dict[tuple[str, ...], set[int]](), dict[tuple[str, ...], set[int]]()
    known = {phrase for table in _tables() for phrase in table}
    for at, question in enumerate(questions):
        for value in question.values:
            for name in _names_of(value.strip()):
                words, plain = exact_words(name), plain_words(name)
                also.setdefault(_bare(words), set()).add(at)
                is_number = all(word.isdigit() for word in words)
                if "".join(words)[1:] and not is_number and plain not in known and {(one,) for one in plain} - known:
                    found.setdefault(words, set()).add(at)
    only = {words: frozenset(of) if len(of) == 1 else frozenset[int]() for words, of in found.items()}
    return only, {words: frozenset(of) for words, of in also.items()}


def _bare(words: Sequence[str]) -> tuple[str, ...]:
    """Return words without those that say nothing: the first as first."""
    return tuple(word for word in words if all(table.get((word,)) != "the" for table in _tables()))


def _names_of(value: str) -> Iterator[str]:
    if not 0 < len(value) <= _MAX_NAME:
        return
    yield value
    if (file := _FILE_NAME.fullmatch(value)) is not None:
        yield from file.groups()
    if (address := _ADDRESS.fullmatch(value)) is not None:
        yield address.group(1)


def _things(table: _Table, questions: Sequence[Question]) -> Mapping[tuple[str, ...], str]:
    """Return the words for what exactly one question does as the number of that question, for others as unclear."""
    found = dict[tuple[str, ...], str]()
    does = [set(plain_words(one.does)) for one in questions]
    for thing in _THINGS:
        words = {phrase for phrase, kind in table.items() if kind == thing}
        known = {phrase for one in _tables() for phrase, kind in one.items() if kind == thing}
        of = [at for at, said in enumerate(does) if any(said.issuperset(phrase) for phrase in known)]
        found |= dict.fromkeys(words, f"{_IS}{of[0]}" if len(of) == 1 else "the" if of else "unknown")
    return found


def _read(parts: Sequence[_Part], questions: Sequence[Question]) -> Choices | None:
    """Return what the parts of a text answer; None if it names no question, or a part is about something else."""
    anything = any(part.names or (part.names_none and len(_everything(questions)) >= _PAIR) for part in parts)
    if not anything or any(not part.kinds for part in parts):
        return None
    said, clear = list[tuple[Said, _Part]](), True
    everything = _everything(questions)
    for at, part in enumerate(parts):
        if part.is_used:
            continue
        before, after = parts[at - 1] if at else None, parts[at + 1] if at + 1 < len(parts) else None
        answer, named = (part.said if part.speaks else None), part
        if part.speaks and part.names:
            pass
        elif part.speaks:
            # an answer alone leads to what it is for, or only repeats what is said beside it; a no behind what is
            # answered already may take that back: yes to the first no, to the second
            takes_back = before is not None and (before.speaks or any(one.speaks and one.names for one in parts[:at]))
            leads = answer == "yes" or (after is not None and after.leads and not takes_back)
            if after is not None and after.names and not after.speaks and leads:
                after.is_used, after.only, after.unknown = True, after.only or part.only, after.unknown or part.unknown
                named = after
            else:
                near = after if after is not None and after.names else before
                clear = clear and near is not None and near.speaks and near.said == answer and not part.unknown
                continue
        elif after is not None and after.speaks and not after.names:
            follows = before is not None and before.speaks and before.names and before.speaks_first
            after.is_used, answer = True, after.said
            clear = clear and not after.unknown and not (follows and answer == "yes")
        elif len(parts) == 1 and part.only and len(everything) > 1 and _names_one(part):
            answer = "yes"
        else:
            answer = _inherited(before, part, after)
        if answer is None or named.unknown or not named.which or (named.only and answer == "no"):
            clear = False  # not only the first
        elif named.but:
            said += [(answer, replace(named, kinds=[("which", "", everything - named.which)], but=False))]
            said += [("no", named)] if answer == "yes" else []
            clear = clear and answer == "yes"
        else:
            said.append((answer, named))
    return _answered(said, everything, clear=clear, speaks=any(part.speaks for part in parts))


def _names_one(part: _Part) -> bool:
    """Return True if a part names one question in one way and leaves none out: only b.txt, not all but only b.txt."""
    return len(part.kinds) == 1 and len(part.which) == 1 and not part.which & {_REST, _OTHER} and not part.but


def _inherited(before: _Part | None, part: _Part, after: _Part | None) -> Said | None:
    """Return the answer for what is only named: yes to the first and the second; but not: no to one, the other.

    Beside what is left out it may be left out too: yes to all but the first and the second.
    """
    if part.but or (before is not None and before.but):
        return None
    if before is not None and part.behind == "and" and before.names and before.speaks and before.speaks_first:
        return before.said
    if after is not None and after.behind == "and" and after.names and after.speaks and not after.speaks_first:
        return after.said
    return None


def _answered(said: Sequence[tuple[Said, _Part]], everything: frozenset[int], *, clear: bool, speaks: bool) -> Choices:
    """Return the answers by the places of the questions; what is answered both ways is answered with no."""
    named = frozenset[int]().union(*(part.which for _, part in said))
    rest = everything - named if everything & named else frozenset[int]()
    found: dict[int, set[Said]] = {}
    for answer, part in said:
        which = part.which
        if which & {_REST, _OTHER}:
            clear = clear and bool(rest) and (_REST in which or len(rest) == 1)
            which = rest if clear else frozenset()
        for at in which:
            found.setdefault(at, set()).add(answer)
        for at in everything - named if part.only and answer == "yes" and clear else ():
            found.setdefault(at, set()).add("no")
    clear = clear and all(len(one) == 1 for one in found.values()) and bool(found)
    given: dict[int, Said] = {at: "no" if "no" in one else "yes" for at, one in sorted(found.items())}
    return Choices(
        given if clear else {at: one for at, one in given.items() if one == "no"}, clear=clear, speaks=speaks
    )
