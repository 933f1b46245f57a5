"""Validation of a model's interpretation of a message, and comparison of a call with the result.

A model is given a person's words and the names of tools, nothing else, and returns which words have which role.
Everything it returns must occur in the words: a literal counts only at its own place, outside of pasted text, and
operators that the grammar recognizes keep their meaning. The valid rest is converted to the grammar's terms, so that
one matcher compares every call.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from phylactery_understanding.calls import DEFERRING, RECURRING, Match, same_effect, used_up
from phylactery_understanding.content import free_content, stated
from phylactery_understanding.language.lexicon import OPERATORS, Lexicon, Verb
from phylactery_understanding.language.numbers import readings, value_of
from phylactery_understanding.language.text import STEM, Kind, Token, fold, is_file_name, merged_spans, tokenize
from phylactery_understanding.language.times import Feature, Times, read_times, times_of
from phylactery_understanding.proposal import (
    NOTHING,
    Argument,
    Call,
    Level,
    Understanding,
    names_of,
    plain_values,
    same_name,
)
from phylactery_understanding.replies.answers import read_answer, says_to_do
from phylactery_understanding.replies.retraction import WEAK
from phylactery_understanding.request import INVERTED, Ask, Fault, Label, Request, parse

INTERPRETER: Final = "interpreter"
MAX_ASKS: Final = 8
MAX_SLOTS: Final = 24
MAX_LITERAL: Final = 4_000
"""The maximum length of one literal, in characters."""
MAX_QUANTITY: Final = 100
MAX_BACK: Final = 3
"""The number of messages before the newest one that an ask may quote."""
MAX_ALSO: Final = 4
"""The number of further time expressions."""
MAX_WORDS: Final = 8_000
"""The maximum length of an interpreted message, in characters; a longer one is a document."""

_LONG_QUOTE: Final = 25
"""The maximum length of a quotation in tokens; a longer one is pasted text."""
_LABEL: Final = 4
"""The maximum number of words of a quotation that can be a name rather than a text."""
_LONG_PART, _MANY_LINES = 600, 8
"""The length, in characters and lines, from which a later paragraph is more likely pasted than said."""
_FENCES: Final = (re.compile("```"), re.compile(r'^[ \t]{0,8}(?:~{3,}|"{3,})[^\n"~]{0,40}$', re.MULTILINE))
_TAG: Final = re.compile(r"<([a-z][a-z0-9_-]{0,39})(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_MAX_TAGS: Final = 64
_CITED: Final = re.compile(r"^[ \t]{0,8}>[^\n]*+", re.MULTILINE)
_FORWARDED: Final = re.compile(
    r"^[ \t]{0,8}(?:-{2,}[ \t]{0,8}(?:begin |inicio )?(?:original message|forwarded message|mensaje original|"
    r"mensaje reenviado)"
    r"|(?:on|el)\b[^\n]{1,200}\b(?:wrote|escribió|escribio):[ \t]{0,8}$"
    r"|(?:from|de|subject|asunto):[ \t]{1,8}[^\n]{1,200}\n)",
    re.MULTILINE | re.IGNORECASE,
)
_SENTENCE_ENDS: Final = frozenset(".!?…;")
_ANYWHERE: Final = frozenset({"retraction", "irony", "announce"})
"""Operators that apply to the whole message."""
_PAIR: Final = 2
_FIRST: Final = 3
"""The number of tokens of a sentence in which a scenario may be introduced: imagine that, what if."""
_NEAR: Final = 6
"""The number of tokens after a negation in which its verb may occur: I don't want you to send it."""
_NEEDING: Final = frozenset({"need", "want", "needed", "hace", "falta", "quiero", "necesito", "ya", "anymore"})
_KEEPING: Final = frozenset({"remind", "reminder", "remember", "alarm"})
_ENDING: Final = frozenset({"cancel", "stop", "disable", "forget"})
"""Effects that people request by saying that they no longer need something."""
_SPEAKER: Final = 5
"""The number of tokens in which a line may name its speaker."""
_JOINTS: Final = frozenset(
    {"and", "y", "e", "but", "pero", "sino", "then", "luego", "et", "mais", "und", "aber", "ma", "mas"}
)
_ASKED_OF: Final = frozenset({"me", "nos", "le", "les", "lo", "la", "los", "las"})
"""Openings of a request in the form of a question: me apuntas leche?"""
_HOURS, _DAYS, _YEAR = 25, 31, 12
_FIRSTS: Final = {"first": 1, "primero": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3}
_EVERY: Final = frozenset({"every", "each", "cada"})
_MONTHS: Final = frozenset({"month", "mes"})
_ALL_DAY: Final = ("all day", "todo el dia")
_UNITS: Final[Mapping[str, Any]] = {
    "month": "month", "months": "month", "mes": "month", "meses": "month",
    "day": 1, "night": 1, "evening": 1, "dia": 1, "noche": 1, "tarde": 1, "vispera": 1, "days": 1, "dias": 1,
    "week": 7, "weeks": 7, "semana": 7, "semanas": 7, "hour": "hour", "hours": "hour", "hora": "hour", "horas": "hour",
}  # fmt: skip
_EARLIER: Final = frozenset({"before", "earlier", "antes"})
_TIMES: Final[Mapping[str, int]] = dict.fromkeys(("double", "twice", "dobla", "duplica", "doble"), 2) | dict.fromkeys(
    ("k", "mil", "thousand", "grand", "lucas", "luca"), 1_000
)
"""Words that multiply an adjacent number."""
_PARTS: Final = re.compile(r"[^a-z0-9]+")
_FILE: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9]+")
_AROUND: Final = (Label.VERB, Label.GOAL, Label.ARTICLE, Label.FILLER, Label.TIME)
_TELLING: Final = frozenset({"cuento", "comento", "comente", "explico", "digo", "dije", "contaba"})
"""Forms by which a person reports something themselves, so that no one else is the speaker: te cuento."""
_FORGETTING: Final = "forget"
_GOALS: Final = frozenset({Label.OBJECT, Label.QUOTE, Label.TIME})
"""Labels of words that may name the object of an ask, or a quantity of it."""
_QUOTES: Final = tuple("\"'“«„`‘")
_TOLD_TO: Final = frozenset({"te", "os", "le", "les", "vos"})
_OTHERWISE: Final = frozenset(
    "otro otra otros otras other another different else but pero instead distinto distinta diferente".split()
)
"""Words that replace what was said before."""
_ANOTHER: Final = frozenset({"otro", "otra", "another"})
_MEANING_THAT: Final = frozenset("that this those these it them eso esto esos esas estos estas ello".split())
_POINTING: Final = frozenset({"that", "this", "esa", "ese", "esta", "este", "eso", "esto", "aquel", "aquella"})
_OWNING: Final = frozenset({"of", "de", "del"})
_TOWARDS: Final = frozenset({"to", "into", "onto", "a", "al", "para", "pa"})
"""Words that begin a goal by themselves: 5 km in 31 min, to the log."""
_PLEASE: Final = frozenset({"please", "pls", "plz", "kindly", "favor", "porfa", "porfi"})
_PART_ENDS: Final = frozenset(",:–—-()") | _SENTENCE_ENDS
_ASKING: Final = ("wish", "unneeded", "polite")
_TELLING_ENDINGS: Final = ("é", "ó", "aron", "ieron", "ímos", "aste", "iste", "aba", "aban")
"""Endings of Spanish verb forms that tell something, and never request it."""
_AHEAD: Final = "ré"
_ANYONE: Final = frozenset({"you", "we"})
"""Words that begin a statement of what is possible: you can close issues from here."""
_AFTER: Final = 200
"""The number of tokens that may follow a word that only corrects."""
_SMALL_WORDS: Final = ("stop", "article", "please")
_SHORT: Final = 3
"""The maximum length of what a correction puts in the place of a value, in words."""
_STOPS: Final = frozenset({Kind.MARK, Kind.BREAK})
_RELATIVE: Final = frozenset({"que", "that", "which", "who"})
_OR: Final = frozenset({"or", "o", "u", "ou", "oder"})
_TOLD, _SEVERAL = 0.35, 3
"""The share and the number of a sentence's words by which a text tells what it says."""
_TEXTS: Final = ("title", "subject", "comment", "reason", "text", "body", "message", "description", "topic")
"""Names of arguments for texts, which a form has, too."""
_YES: Final = "sí"
"""Only the accent tells a yes from a condition."""
_BETWEEN: Final = "\n\n"
"""The separator between messages that are read as one text."""
_TAKING: Final = frozenset({"retraction", "irony"})
_ABOUT: Final = frozenset({"condition", "past", "future", "report", "exclusion", "negation"})
"""Operators that occur in texts: ask her why it fell down yesterday."""
_ADDING: Final = frozenset({"add", "append"})
_WRITING: Final = frozenset({"write", "compose", "create", "replace", "edit", "put", "set"})
_UNREADABLE: Final = frozenset({"length", "disguise"})


class Mode(StrEnum):
    """How something is done to its target."""

    NONE = ""
    ADD = "add"
    REPLACE = "replace"
    CREATE = "create"
    REMOVE = "remove"


_MEANINGS: Final[Mapping[Mode, frozenset[str]]] = {
    Mode.NONE: frozenset(),
    Mode.ADD: frozenset({"add", "append"}),
    Mode.REPLACE: frozenset({"replace", "edit", "change"}),
    Mode.CREATE: frozenset({"write", "create", "compose"}),
    Mode.REMOVE: frozenset({"remove", "delete", "clear"}),
}


@dataclass(frozen=True, slots=True)
class Span:
    """A range of characters and its text; ``back`` is how many messages before the newest it is in."""

    text: str
    start: int
    back: int = 0

    @property
    def stop(self) -> int:
        """The end of the range."""
        return self.start + len(self.text)

    def stands_in(self, text: str) -> bool:
        """Return True if a text contains the span at its place."""
        return bool(self.text.strip()) and self.start >= 0 and text[self.start : self.stop] == self.text


@dataclass(frozen=True, slots=True)
class Slot:
    """The words that are the value of an argument, or one of its values."""

    argument: str
    span: Span


@dataclass(frozen=True, slots=True)
class InterpretedAsk:
    """One ask in a model's interpretation of a message.

    ``content`` are the words to be written or said; ``composed`` says that the person left the words to the model. If
    neither is set, there is no content. ``quantity`` is how many calls are requested, 0 for all of a set.
    """

    tool: str
    slots: tuple[Slot, ...] = ()
    mode: Mode = Mode.NONE
    content: Span | None = None
    composed: bool = False
    quantity: int = 1
    time: Span | None = None
    also_time: tuple[Span, ...] = ()

    @property
    def times(self) -> tuple[Span, ...]:
        """Return the time expressions, which may be apart: every month, and the hour after it."""
        return (self.time, *self.also_time) if self.time is not None else self.also_time

    @property
    def spans(self) -> tuple[Span, ...]:
        """Return every literal."""
        return (*(one.span for one in self.slots), *((self.content,) if self.content is not None else ()), *self.times)

    @property
    def back(self) -> int:
        """Return how many messages before the newest its first words are."""
        return max((one.back for one in self.spans), default=0)


@dataclass(frozen=True, slots=True)
class Interpretation:
    """A model's interpretation of a message: the prompt's version, the model's name, and the asks."""

    version: str
    model: str
    asks: tuple[InterpretedAsk, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"version": self.version, "model": self.model, "asks": [_ask_to_json(one) for one in self.asks]}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Interpretation:
        """Return the interpretation encoded by ``to_json``."""
        return Interpretation(value["version"], value["model"], tuple(map(_ask_from_json, value["asks"])))


@dataclass(frozen=True, slots=True)
class CheckedAsk:
    """A valid ask in the grammar's terms; ``half`` says that there is pasted text near it.

    If it quotes earlier messages, ``newest`` is where the newest one begins. ``within`` are the operators among the
    words that a composed content may be about, by their positions and sizes: those of a call's content are its own.
    """

    ask: InterpretedAsk
    parsed: Ask
    half: bool
    newest: int = 0
    within: tuple[tuple[int, int, Fault], ...] = ()


def pasted(text: str) -> list[tuple[int, int]]:
    """Return the text that is not the person's statement: fenced, tagged, cited, forwarded, quoted at length."""
    return merged_spans(_pasted(text))


def joined(messages: Sequence[str], back: int) -> tuple[str, tuple[int, ...]]:
    """Return the newest messages as one text, and the start of each by how many before the newest it is."""
    some = messages[-1 - back :]
    starts = [sum(len(one) + len(_BETWEEN) for one in some[:place]) for place in range(len(some))]
    return _BETWEEN.join(some), tuple(reversed(starts))


def within(ask: InterpretedAsk, starts: Sequence[int]) -> InterpretedAsk:
    """Return an ask with its positions converted to those of a text built by ``joined``."""

    def moved(span: Span) -> Span:
        return replace(span, start=span.start + starts[span.back] if span.back < len(starts) else -1)

    return replace(
        ask,
        slots=tuple(Slot(one.argument, moved(one.span)) for one in ask.slots),
        content=moved(ask.content) if ask.content is not None else None,
        time=moved(ask.time) if ask.time is not None else None,
        also_time=tuple(map(moved, ask.also_time)),
    )


def check(
    interpretation: Interpretation, request: Request, *, half: bool = False, newest: int = 0
) -> tuple[CheckedAsk, ...]:
    """Return the valid asks of an interpretation. ``half`` says that the caller detected pasted text.

    Of several messages as one text, the last begins at ``newest``: all of it belongs to the ask, whatever was quoted.
    """
    if len(request.text) > MAX_WORDS or (request.fault is not None and request.fault.kind in _UNREADABLE):
        return ()
    strange = pasted(request.text)
    asks = interpretation.asks[:MAX_ASKS]
    taken = [span for one in asks for span in one.spans]
    found: list[CheckedAsk] = []
    for one in asks:
        if not _stands(one, request, strange):
            continue
        scope = _Scope(one, request, strange, newest)
        vetoes = list(_vetoes_of(scope, one))
        within = tuple(veto for veto in vetoes if one.composed and _may_be_content(scope, *veto))
        if len(within) == len(vetoes) and _veto(scope, one, request) is None:
            near = half or bool(strange) or _quotes_something(request, taken)
            found.append(CheckedAsk(one, _parsed(one, request, taken, newest), near, newest, within))
    return tuple(found)


def understand_interpreted(
    asks: Sequence[CheckedAsk],
    request: Request,
    call: Call,
    used: Mapping[int, int] = MappingProxyType({}),
    done: Collection[int] = (),
) -> Understanding:
    """Return how far the valid asks of an interpretation yield a call; ``used`` and ``done`` as in understand."""
    best = NOTHING
    for place, one in enumerate(asks):
        if one.ask.tool == call.tool and _is_content(one, request, call):
            found = replace(_by(one, request, call), index=place)
            best = max(best, used_up(found, used, done), key=lambda other: other.level)
    return best


def _by(one: CheckedAsk, request: Request, call: Call) -> Understanding:
    said = tuple(span.text for span in one.ask.spans)[:12]
    asked = not one.newest or _is_asked_now(one, request, call)
    fault = (
        (None if asked else Fault("unasked", ""))
        or _unbound(one.ask, call)
        or _heard_otherwise(one.ask, request, call)
        or _left_of_heard(one.ask, request, call)
        or _described_name(one.ask, request, call)
        or _Interpreted(request, one, call).fault()
    )
    if fault is None and one.half:
        fault = Fault("pasted", "")
    if fault is None:
        return Understanding(Level.CLEAR, one.ask.tool, said, None, _quota(one), INTERPRETER)
    return Understanding(Level.HALF, one.ask.tool, said, fault, 1, INTERPRETER)


class _Interpreted(Match):
    """The comparison of an interpreted ask with a call: content left open must not come from an untrusted text."""

    def __init__(self, request: Request, one: CheckedAsk, call: Call) -> None:
        super().__init__(request, one.parsed, call)
        self._one = one.ask
        self._shifts = False
        if one.ask.quantity != 1:  # slot words belong to the other calls
            spans = [slot.span for slot in one.ask.slots]
            self._used.update(
                at for at, token in enumerate(one.parsed.tokens) if any(_holds(span, token) for span in spans)
            )

    def _contents(self, texts: Sequence[Argument]) -> Fault | None:
        said = [one for one in self._call.arguments if one.role == "content" and not one.default]
        wanted = self._one.composed or self._one.content is not None
        if said and wanted and not any(str(value).strip() for one in said for value in plain_values(one.value)):
            return Fault("content", "empty")
        values = [str(value) for one in texts for value in plain_values(one.value) if str(value).strip()]
        if not values:
            return None
        if self._one.composed:
            return self._open(values) or free_content(self._undated(values), self._request, self._call.texts)
        if self._one.content is None:
            return Fault("content", texts[0].name)
        if _is_file(self._one.content, self._request.tokens) and not self._one.content.text.startswith(_QUOTES):
            return Fault("content", "file")  # a file name next to the written one is more likely its source
        fault = super()._contents(texts)
        return self._retold(texts, fault) if fault is not None and "remind" in self._call.effects else fault

    def _retold(self, texts: Sequence[Argument], fault: Fault) -> Fault | None:
        """Return the fault of a reminder's text, unless it says what was said as of its own day: tomorrow, at 5."""
        rest = [replace(one, value=_without_day(str(one.value), self._ahead())) for one in texts]
        if rest != list(texts):
            dated = [at for at, one in enumerate(self._ask.tokens) if _dates(one)]
            self._used.update(dated)
            fault = super()._contents(rest) or Fault("", "")
        if fault.kind and self._one.content is not None and self._one.content.text.startswith(_QUOTES):
            said = tokenize(self._one.content.text[1:-1])
            if stated([str(one.value) for one in rest], said, self._request.lexicon):
                return None
        return fault if fault.kind else None

    def _ahead(self) -> int:
        """Return how many days after the reminder the day is that the words name, -1 if it is not clear."""
        if self._call.day is None:
            return -1
        due = [one.value for one in self._call.arguments if one.role == "date" and isinstance(one.value, str)]
        days = {found for one in due if (found := _due(times_of(one).features, self._call.day)) is not None}
        outside = [
            one for one in _opened(self._request.tokens) if not any(_holds(span, one) for span in self._one.times)
        ]
        event = _day_of(read_times(outside).features, self._call.day)
        return (event - next(iter(days))).days if event is not None and len(days) == 1 else -1

    def _undated(self, values: Sequence[str]) -> list[str]:
        """Return contents without the date of the message, or its month: a log entry usually has its date."""
        day = self._call.day.isoformat() if self._call.day is not None else ""
        dated = re.compile(rf"\b{day[:7]}(?:{day[7:]})?(?![-\w])") if day else None
        return [dated.sub(" ", one) if dated is not None else one for one in values]

    def _time(self, dates: Sequence[Argument], repeats: Sequence[Argument]) -> Fault | None:
        fault = super()._time(dates, repeats)
        if fault is None or self._call.day is None:
            return fault
        said = [one for one in self._ask.tokens if any(_holds(span, one) for span in self._one.times)]
        outside = [one for one in _opened(self._request.tokens) if one not in said]
        features = _shifted(said, self._ask.times.features, read_times(outside).features, self._call.day)
        if not features:
            return fault
        plain, self._ask = self._ask, copy(self._ask)
        self._ask.times = replace(plain.times, features=features)
        self._used.update(
            at for at, one in enumerate(plain.tokens) if any(_holds(span, one) for span in self._one.times)
        )
        self._shifts = True
        return super()._time(dates, repeats)

    def _spoken_of(self, dates: Sequence[Argument]) -> str:
        found = super()._spoken_of(dates)
        return "" if self._shifts and found in _EARLIER else found  # the day before at 18:00 is not a time until 18:00

    def _framed(self) -> str:
        """Return words outside the ask that qualify it and are not part of the content.

        For a language without a list of such words, the verb that the grammar recognized and its object count as the
        ask's own.
        """
        framed = super()._framed()
        if not framed:
            return ""
        if self._ask.lexicon.phrases["frame"]:
            texts = [str(one) for other in self._call.arguments for one in plain_values(other.value)]
            said = {one.stem for text in texts for one in tokenize(text)}
            idle = self._call.effects & _KEEPING and f"{framed} {_FORGETTING}" in fold(self._request.text)
            return "" if idle or all(one.stem in said for one in tokenize(framed)) else framed
        own = {id(token) for ask in self._request.asks for token in ask.of(*_AROUND)}
        spans = self._one.spans
        left = (
            one
            for one in self._request.tokens
            if one.kind not in _STOPS
            and not any(_holds(span, one) for span in spans)
            and id(one) not in own
            and one.stem not in self._call.nouns
            and not self._is_courtesy(one)
            and not any(self._leads(one, span) for span in spans)
        )
        return next((one.raw for one in left), "")

    def _is_frame(self, words: Sequence[Token]) -> bool:
        """Return True if words qualify the request: neither its own verb, nor part of what a text tells."""
        verbs = {
            id(ask.tokens[ask.labels.index(Label.VERB)]) for ask in self._request.asks if ask.form not in DEFERRING
        }
        if len(words) == 1 and id(words[0]) in verbs:
            return False
        tokens = self._request.tokens
        sentences = _parts(tokens, _SENTENCE_ENDS)
        asked = replace(self._one, content=None) if self._one.slots or self._one.times else self._one
        mine = {of for one, of in zip(tokens, sentences, strict=True) if _is_covered(asked, one)}
        own = sentences[next(at for at, one in enumerate(tokens) if one is words[0])]
        if own in mine:
            return True
        if len(words) == 1 and self._ask.lexicon.holds("report", words[0].text):
            return False  # what others say qualifies a request only where it is one sentence with it
        told = {one.stem for text in _contents_of(self._call) for one in tokenize(text)}
        lexicon = self._ask.lexicon
        said = [
            one
            for one, of in zip(tokens, sentences, strict=True)
            if of == own and one.kind not in _STOPS and not lexicon.holds("stop", one.text)
        ]
        hits = sum(one.stem in told for one in said)
        return hits < _SEVERAL or hits < _TOLD * len(said)

    def _leads(self, token: Token, span: Span) -> bool:
        """Return True if a word right before a value says what it is: um arquivo a.txt."""
        between = self._request.text[token.stop : span.start]
        return token.stop <= span.start and not between.strip(" :\"'“„«")

    def _accounts_for(self, value: Any, argument: Argument) -> bool:
        if super()._accounts_for(value, argument):
            return True
        if not _is_computed(self._one, argument, value, exists=self._call.exists):
            return False
        spans = [one.span for one in self._one.slots if one.argument == argument.name]
        self._used.update(at for at, token in enumerate(self._ask.tokens) if any(_holds(one, token) for one in spans))
        return True

    def _open(self, values: Sequence[str]) -> Fault | None:
        """Return why content cannot be left to the model: a memory must not be invented, a text must have been read."""
        request = self._request
        if not self._makes():
            said = [one for one in request.tokens if one.kind is not Kind.BREAK]
            if "remind" in self._call.effects:
                values = [_without_day(one, self._ahead()) for one in values]
                if time := self._other_time(values):
                    return Fault("content", time)
            return None if stated(values, said, request.lexicon) else Fault("content", "more")
        if not any(one.control and is_file_name(str(one.value)) for one in self._call.arguments):
            return None
        for one in self._ask.tokens:
            covered = any(_holds(span, one) for span in self._one.spans)
            if one.kind is Kind.LITERAL and is_file_name(one.text) and not covered:
                if not self._call.texts.named(one.text):
                    return Fault("content", "unread")
        return None


# ---- literals and their places ------------------------------------------------


def _stands(ask: InterpretedAsk, request: Request, strange: Sequence[tuple[int, int]]) -> bool:
    """Return True if every literal is at its place, does not overlap others, and is the person's own statement."""
    text = request.text
    spans = sorted(ask.spans, key=lambda one: one.start)
    if not ask.tool or len(spans) > MAX_SLOTS or not 0 <= ask.quantity <= MAX_QUANTITY:
        return False
    if any(len(one.text) > MAX_LITERAL or not one.stands_in(text) for one in spans):
        return False
    if any(first.stop > second.start for first, second in pairwise(spans)):
        return False
    if any(start < one.stop and one.start < stop for one in spans for start, stop in strange):
        return False
    return not any(_is_cut(one, request.tokens) or _is_inside(one, request.tokens, ask) for one in spans)


def _is_cut(span: Span, tokens: Sequence[Token]) -> bool:
    """Return True if a literal is a part of a longer one: bob@x.example of notbob@x.example."""
    return any(
        one.kind not in {Kind.QUOTE, Kind.BREAK, Kind.MARK}
        and (one.start < span.start < one.stop or one.start < span.stop < one.stop)
        and one.text.lstrip("#@") != span.text.lower().lstrip("#@")
        for one in tokens
    )


def _is_inside(span: Span, tokens: Sequence[Token], ask: InterpretedAsk) -> bool:
    """Return True if a slot or a time is within a quotation that it does not fill."""
    if span is ask.content:
        return False
    return any(
        one.kind is Kind.QUOTE
        and one.start < span.stop
        and span.start < one.stop
        and span.text.strip("\"'“”«»„`‘’") != one.raw
        for one in tokens
    )


def _opened(tokens: Sequence[Token]) -> list[Token]:
    """Return words including those in quotations."""
    inner = ([one] if one.kind is not Kind.QUOTE else tokenize(one.raw.strip("\"'“”«»")) for one in tokens)
    return [one for some in inner for one in some if one.kind is not Kind.BREAK]


def _is_file(span: Span, tokens: Sequence[Token]) -> bool:
    """Return True if words are the name of a file and nothing else."""
    said = [one for one in tokens if _holds(span, one) and one.kind is not Kind.MARK]
    return len(said) == 1 and said[0].kind is Kind.LITERAL and is_file_name(said[0].text)


def _quotes_something(request: Request, taken: Sequence[Span]) -> bool:
    """Return True if the words quote a text that is neither a value nor content. A short name asks for nothing."""
    return any(
        one.kind is Kind.QUOTE
        and not any(span.start < one.stop and one.start < span.stop for span in taken)
        and not _is_label(one, request.lexicon)
        for one in request.tokens
    )


def _is_label(quote: Token, words: Lexicon) -> bool:
    """Return True if a quotation is a name of a few words, none of which is a verb: 'budget analysis', 'notes.md'."""
    said = [one for one in tokenize(quote.raw) if one.kind not in _STOPS]
    return len(said) <= _LABEL and not any(words.verb(one.text) for one in said)


def _pasted(text: str) -> Iterator[tuple[int, int]]:
    for fence in _FENCES:
        places = [found.start() for found in fence.finditer(text)]
        if places:
            yield places[0], places[-1] + 3 if len(places) % 2 == 0 else len(text)
    closings: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        name = tag[1].lower()
        if name not in closings:
            if len(closings) >= _MAX_TAGS:
                break
            closings[name] = text.lower().rfind(f"</{name}>")
        if closings[name] >= tag.end():
            yield tag.start(), closings[name]
    yield from (cited.span() for cited in _CITED.finditer(text))
    forwarded = _FORWARDED.search(text)
    if forwarded is not None:
        yield forwarded.start(), len(text)
    for token in tokenize(text):
        if token.kind is Kind.QUOTE and len(token.raw) > _LONG_QUOTE and len(tokenize(token.raw)) > _LONG_QUOTE:
            yield token.start, token.stop
    for part in list(re.finditer(r"(?:[^\n]|\n(?!\s*\n))+", text))[1:]:
        if len(part[0]) > _LONG_PART or part[0].count("\n") >= _MANY_LINES:
            yield part.span()


# ---- operators that cancel an ask ---------------------------------------------


class _Scope:
    """The surroundings of an ask in a message: its sentences, its clauses, and the operators near it."""

    def __init__(
        self, ask: InterpretedAsk, request: Request, strange: Sequence[tuple[int, int]], newest: int = 0
    ) -> None:
        self.tokens, self.words, self.newest = request.tokens, request.lexicon, newest
        self.covered = [_is_covered(ask, one) for one in self.tokens]
        self.sentences = _parts(self.tokens, _SENTENCE_ENDS)
        clauses = _clauses(request, self.sentences)
        everywhere = not any(self.covered)  # an ask without a literal may be anywhere
        self.mine = {self.sentences[at] for at, is_so in enumerate(self.covered) if is_so or everywhere}
        near = {clauses[at] for at, is_so in enumerate(self.covered) if is_so or everywhere}
        late = [at for at, one in enumerate(self.tokens) if newest and one.start >= newest]
        said = request.text[newest:]
        goes = bool(newest) and says_to_do(said) and not _chooses(request, newest)
        # What was asked before is what is meant now by who says to do it; a yes alone may answer another question.
        answered = goes or read_answer(said) != "yes"
        self.asking = ({self.sentences[at] for at in late} if answered else set[int]()) or self.mine
        self.mine |= {self.sentences[at] for at in late}
        # A sentence that only holds what is to be written tells something; the request is where the target is.
        targets = [*(one.span for one in ask.slots), *ask.times]
        named = {self.sentences[at] for at, one in enumerate(self.tokens) if any(_holds(span, one) for span in targets)}
        self.requesting = named | {self.sentences[at] for at in late} if named else self.mine
        near |= {clauses[at] for at in late}
        found = list(_operators(self.tokens, request.lexicon))
        empty = _empty_clauses(request, clauses, {at + step for at, size, _ in found for step in range(size)})
        ended = _ended_needs(request) if _ends(ask) else set[int]()
        asked = self._questioned() if goes else set[int]()
        self.operators = [
            one
            for one in found
            if one[0] not in ended | asked
            and not _is_asked_for(request, ask, one[0], one[2])
            and not any(start <= self.tokens[one[0]].start < stop for start, stop in strange)
        ]
        self.is_near = [clause in near or clause in empty for clause in clauses]

    def _questioned(self) -> set[int]:
        """Return the places of words that only make a question of what the newest message says to do, and of that."""
        found = {at for at, one in enumerate(self.tokens) if one.start >= self.newest}
        for number in {self.sentences[at] for at, one in enumerate(self.tokens) if one.text == "?"}:
            opening = [at for at, of in enumerate(self.sentences) if of == number and self.tokens[at].kind is Kind.WORD]
            found.update(opening[:_PAIR])
        return found

    def begins(self, place: int) -> bool:
        """Return True if a sentence begins at a place."""
        before = self.tokens[place - 1] if place else None
        return before is None or before.text in _SENTENCE_ENDS or before.kind is Kind.BREAK


def _ends(ask: InterpretedAsk) -> bool:
    """Return True if a tool's name says that it ends something, as people ask for by what they need no more."""
    return not _ENDING.isdisjoint(ask.tool.lower().split("_"))


def _chooses(request: Request, newest: int) -> bool:
    """Return True if the message before the newest leaves a choice, as between this one and that one."""
    return any(one.text in _OR for one in request.tokens if one.start < newest)


def _ended_needs(request: Request) -> set[int]:
    """Return the places of phrases by which people say that they need something no more."""
    texts = [one.text for one in request.tokens]
    return {at + step for at in range(len(texts)) for step in range(request.lexicon.match("unneeded", texts, at))}


def _is_asked_for(request: Request, ask: InterpretedAsk, at: int, fault: Fault) -> bool:
    """Return True if the grammar took an operator for the verb of a request for what is quoted: pide la tetera."""
    if fault.kind not in {"report", "retraction"}:
        return False
    for one in request.asks:
        verb = one.tokens[one.labels.index(Label.VERB)]
        retracts = fault.kind == "retraction" and not one.verb.meanings.isdisjoint(_ENDING | {"read"})
        if verb is request.tokens[at] and not retracts:
            return any(_is_covered(ask, token) for token in one.of(Label.OBJECT, Label.CONTENT, Label.QUOTE))
    return False


def _is_covered(ask: InterpretedAsk, token: Token) -> bool:
    return any(_holds(span, token) for span in ask.spans)


def _veto(scope: _Scope, ask: InterpretedAsk, request: Request) -> Fault | None:
    """Return why words cannot be this ask, apart from single operators, or None."""
    return (
        _asked_about(request, scope.sentences, scope.asking)  # what was mentioned before may be what is meant now
        or _told(scope, ask)
        or _done_by_another(scope)
        or _narrated(scope, ask, request)
        or _corrected(scope)
        or _spared(scope, ask)
        or _other_mode(ask, request)
    )


def _vetoes_of(scope: _Scope, ask: InterpretedAsk) -> Iterator[tuple[int, int, Fault]]:
    """Yield the operators of the grammar that prevent words from being this ask."""
    for at, size, fault in scope.operators:
        if scope.covered[at]:
            first = next(iter(_covered_by(ask, scope.tokens)), -1)
            if fault.kind in _TAKING and scope.begins(at) and at != first:
                yield at, size, fault
        elif _vetoes(scope, ask, at, fault):
            yield at, size, fault


def _may_be_content(scope: _Scope, at: int, size: int, fault: Fault) -> bool:
    """Return True if an operator follows words of a sentence: crashes when I rotate it; but not after a comma.

    What it is part of may then be what a text is about.
    """
    before = scope.tokens[at - 1] if at else None
    joined = before is None or before.kind in _STOPS or before.text in _JOINTS or scope.covered[at - 1]
    return fault.kind in _ABOUT and not joined and not any(scope.covered[at : at + size])


def _is_content(one: CheckedAsk, request: Request, call: Call) -> bool:
    """Return True if a call's content repeats every operator that may belong to it, with the words around it.

    An operator that a text does not repeat is the person's, and then there is no ask: write done to a.txt when it ends.
    """
    if not one.within:
        return True
    texts = [text for text in _contents_of(call) if "remind" not in call.effects]
    said = [[word.text for word in tokenize(text) if word.kind not in _STOPS] for text in texts]
    return all(any(_repeats(words, request, one.ask, at, size) for words in said) for at, size, _ in one.within)


def _contents_of(call: Call) -> Iterator[str]:
    for one in call.arguments:
        if one.role == "content" and not one.control and isinstance(one.value, str):
            yield one.value


def _repeats(words: Sequence[str], request: Request, ask: InterpretedAsk, at: int, size: int) -> bool:
    """Return True if a text has an operator, the content word before it, and those behind it in its clause."""
    tokens, lexicon = request.tokens, request.lexicon
    operator = [one.text for one in tokens[at : at + size]]
    if not any(list(words[place : place + size]) == operator for place in range(len(words))):
        return False
    stems = {one[:STEM] for one in words}
    behind: list[Token] = []
    for one in tokens[at + size :]:
        if one.kind in _STOPS or _is_covered(ask, one):
            break
        behind.append(one)
    before = next((one for one in reversed(tokens[:at]) if not lexicon.holds("stop", one.text)), None)
    told = [one for one in (before, *behind) if one is not None and not lexicon.holds("stop", one.text)]
    return before is not None and all(one.stem in stems for one in told)


def _vetoes(scope: _Scope, ask: InterpretedAsk, at: int, fault: Fault) -> bool:
    if fault.kind == "retraction" and not _NEEDING.isdisjoint(fault.words.split()):
        return _denies(scope, ask, at, fault.words)
    if fault.kind == "permission" and _is_yes(scope.tokens, scope.newest):
        return False
    if fault.words in WEAK and _begins_anew(scope, ask, at, len(fault.words.split())):
        return False
    if fault.kind == "report" and fault.words in _TELLING and at and scope.tokens[at - 1].text in _TOLD_TO:
        return False
    if fault.kind in _ANYWHERE and not (fault.words in WEAK and _goes_on(scope, at)):
        return True
    if fault.kind == "hypothetical" and at - scope.sentences.index(scope.sentences[at]) < _FIRST:
        return True
    if fault.kind == "negation":
        return scope.is_near[at] and _denies(scope, ask, at, fault.words)
    if fault.kind == "exclusion":
        return scope.is_near[at]
    return fault.kind not in _ANYWHERE and scope.sentences[at] in scope.requesting


def _denies(scope: _Scope, ask: InterpretedAsk, at: int, words: str) -> bool:
    """Return True if a negation may negate an ask; reasons that people give and ended needs do not."""
    lexicon, size = scope.words, len(words.split())
    texts = [one.text for one in scope.tokens]
    reason = max(lexicon.match("reason", texts, place) - (at - place) for place in range(max(at - 1, 0), at + 1))
    if reason > size:
        return False
    if _contrasts(scope, ask, at, size):
        return False
    effects = frozenset(ask.tool.lower().split("_"))
    verbs = {
        one for text in texts[at + size : at + size + _NEAR] for verb in lexicon.verb(text) for one in verb.meanings
    }
    if _FORGETTING in verbs and effects & _KEEPING and effects.isdisjoint(_ENDING):
        return False  # don't let me forget it
    needless = any(one in _NEEDING for one in texts[max(at - 1, 0) : at + size + 2]) or bool(verbs & RECURRING)
    return effects.isdisjoint(_ENDING) or not needless or not verbs.isdisjoint(effects - RECURRING)


def _is_yes(tokens: Sequence[Token], newest: int) -> bool:
    """Return True if the newest of several messages begins with a yes."""
    first = next((one for one in tokens if one.start >= newest and one.kind is Kind.WORD), None)
    return bool(newest) and first is not None and read_answer(first.text) == "yes"


def _contrasts(scope: _Scope, ask: InterpretedAsk, at: int, size: int) -> bool:
    """Return True if a negation only contrasts one number with another that is not used: at 6, not 5."""
    before, behind = scope.tokens[at - 1 : at], scope.tokens[at + size : at + size + 1]
    numbers = all(one.kind is Kind.NUMBER for one in (*before, *behind)) and len(before) == len(behind) == 1
    return numbers and not any(_is_covered(ask, one) for one in behind)


def _begins_anew(scope: _Scope, ask: InterpretedAsk, at: int, size: int) -> bool:
    """Return True if a request follows a word that only corrects the text before: actually ship it to her."""
    behind = scope.tokens[at + size : at + size + 1]
    follows = bool(behind) and behind[0].kind is Kind.WORD and bool(scope.words.verb(behind[0].text))
    return follows and scope.begins(at) and all(one.start > scope.tokens[at].start for one in ask.spans)


def _goes_on(scope: _Scope, at: int) -> bool:
    """Return True if only the ask follows a word that corrects: sorry, wednesday."""
    behind = [one for one in range(at + 1, len(scope.tokens[: at + _AFTER])) if scope.tokens[one].kind not in _STOPS]
    if at + _AFTER < len(scope.tokens) or not any(scope.covered[one] for one in behind):
        return False
    names = ("link", "please", "amend")
    return all(
        scope.covered[one] or any(scope.words.holds(name, scope.tokens[one].text) for name in names) for one in behind
    )


def _covered_by(ask: InterpretedAsk, tokens: Sequence[Token]) -> Iterator[int]:
    """Return the positions of the tokens of an ask's content."""
    content = ask.content
    if content is not None:
        yield from (at for at, one in enumerate(tokens) if content.start < one.stop and one.start < content.stop)


def _operators(tokens: Sequence[Token], words: Lexicon) -> Iterator[tuple[int, int, Fault]]:
    texts = [one.text for one in tokens]
    place = 0
    while place < len(tokens):
        size, kind = _operator_at(words, texts, place) if tokens[place].kind is not Kind.QUOTE else (0, "")
        if size and not _is_plain_here(tokens, texts, place, size):
            yield place, size, Fault(kind, " ".join(texts[place : place + size]))
        place += max(size, 1)


def _is_plain_here(tokens: Sequence[Token], texts: Sequence[str], place: int, size: int) -> bool:
    """Return True if an operator is none at its place: it should say that; but not: should it rain, say that it rains.

    An inverted verb begins a condition, and a conjunction introduces something.
    """
    begins = not place or tokens[place - 1].kind in _STOPS or texts[place - 1] in _JOINTS
    ends = place + size >= len(tokens) or tokens[place + size].kind in _STOPS
    if tokens[place].raw.lower() == _YES:
        return True
    return (texts[place] in INVERTED and not begins) or (ends and texts[place + size - 1] in _RELATIVE and size > 1)


def _operator_at(words: Lexicon, texts: Sequence[str], place: int) -> tuple[int, str]:
    best, kind = 0, ""
    for name in OPERATORS:
        size = words.match(name, texts, place)
        if size > best:
            best, kind = size, name
    filler = max(words.match(name, texts, place) for name in ("please", "greet", "polite"))
    idle = filler >= best + (best == 1) or words.match("reason", texts, place) > best
    return (0, "") if best and idle else (best, kind)


def _parts(tokens: Sequence[Token], ends: frozenset[str]) -> list[int]:
    """Return the sentence number of each token."""
    found, number = [], 0
    for one in tokens:
        found.append(number)
        if one.kind is Kind.BREAK or (one.kind is Kind.MARK and one.text in ends):
            number += 1
    return found


def _clauses(request: Request, sentences: Sequence[int]) -> list[tuple[int, int]]:
    """Return the clause of each token: the ask the grammar assigned it to, or the text between two joints."""
    asks = {id(token): number for number, ask in enumerate(request.asks, 1) for token in ask.tokens}
    found: list[tuple[int, int]] = []
    number = -1
    for at, one in enumerate(request.tokens):
        if one.text in _JOINTS or (at and sentences[at] != sentences[at - 1]):
            number -= 1
        found.append((sentences[at], asks.get(id(one), number)))
    return found


def _empty_clauses(request: Request, clauses: Sequence[tuple[int, int]], operators: set[int]) -> set[tuple[int, int]]:
    """Return the clauses with operators only: they refer to another clause."""
    words = request.lexicon
    names = ("stop", "article", "please", "phatic", *OPERATORS)
    saying = {
        clause
        for at, (one, clause) in enumerate(zip(request.tokens, clauses, strict=True))
        if at not in operators
        and one.kind not in {Kind.MARK, Kind.BREAK}
        and not words.verb(one.text)
        and not any(words.holds(name, one.text) for name in names)
    }
    return set(clauses) - saying


def _asked_about(request: Request, sentences: Sequence[int], mine: set[int]) -> Fault | None:
    """Return the question in a sentence, if there is one and it is not a polite request."""
    words = request.lexicon
    for number in mine:
        said = [
            one
            for one, of in zip(request.tokens, sentences, strict=True)
            if of == number and one.kind is not Kind.BREAK
        ]
        texts = [one.text for one in said]
        opening = next((at for at, one in enumerate(said) if one.text != "¿"), len(said))
        asks = opening < len(said) and bool(words.match("question", texts, opening))
        # A question word may open a request by itself: what for, can you tell me; but not what can you do.
        polite = any(words.match("polite", texts, at) for at in ([opening] if asks else range(len(texts))))
        beg = not asks and not _ASKED_OF.isdisjoint(texts[opening : opening + 1])
        if (asks or "?" in texts) and not polite and not beg:
            return Fault("question", "?")
    return None


def _told(scope: _Scope, ask: InterpretedAsk) -> Fault | None:
    """Return a sentence that states its speaker: Bob (manager): send it; but not a field of a form: Repo: website."""
    for number in scope.mine:
        places = [
            at for at, of in enumerate(scope.sentences) if of == number and scope.tokens[at].kind is not Kind.BREAK
        ]
        head = [scope.tokens[at] for at in places[:_SPEAKER]]
        speaks = head and head[0].kind is Kind.WORD and head[0].raw[:1].isupper()
        if speaks and any(one.text == ":" for one in head):
            said = [one.argument for one in ask.slots if any(_holds(one.span, scope.tokens[at]) for at in places)]
            if not any(head[0].stem in names_of(name) for name in (*said, *_TEXTS)):
                return Fault("report", ":")
    return None


def _done_by_another(scope: _Scope) -> Fault | None:
    """Return words by which something else does it: a robot that writes to a.txt, esa foto me recuerda a ella."""
    tokens, words = scope.tokens, scope.words
    begun = -1
    for at, one in enumerate(tokens):
        begun = at if scope.begins(at) else begun
        if one.kind is not Kind.WORD or not words.verb(one.text) or at < _PAIR:
            continue
        before, first = tokens[at - 1], tokens[begun]
        end = next((later for later in range(at, len(tokens)) if tokens[later].kind in _STOPS), len(tokens))
        behind = any(scope.covered[at + 1 : end])
        if not behind or scope.sentences[at] not in scope.requesting:
            continue
        noun = at > _PAIR and words.holds("article", tokens[at - 3].text) and not words.verb(tokens[at - 2].text)
        noun = noun and not scope.covered[at - 2]  # the ask's own time: at noon, that I call her
        if before.text in _RELATIVE and noun:
            return Fault("report", one.raw)
        if first.text in _POINTING and begun < at - 1 and before.text in _ASKED_OF and not one.text.endswith("s"):
            return Fault("report", one.raw)
    return None


def _narrated(scope: _Scope, ask: InterpretedAsk, request: Request) -> Fault | None:
    """Return a word of the target's sentences if nothing in them asks: I spent all morning on report.txt.

    A sentence asks if the grammar found a request in it; if it has a request's verb, a wish about the target, or a goal
    in a part of its own; or if it is made of names and small words alone: VEL-12 now at 9.95.
    """
    verbs = {id(one.tokens[one.labels.index(Label.VERB)]) for one in request.asks}
    slots = [slot.span for slot in ask.slots]
    spans = [*slots, *ask.times] or list(ask.spans)
    told: Fault | None = None
    sentences: dict[int, list[int]] = {}
    for at, number in enumerate(scope.sentences):
        sentences.setdefault(number, []).append(at)
    needless = _ended_needs(request) if _ends(ask) else set[int]()
    for number in scope.requesting:
        places = sentences[number]
        parts = list(_parts_within(scope, places))
        heard = any(id(scope.tokens[at]) in verbs for at in places)
        ended = not needless.isdisjoint(places)
        word = next((scope.tokens[at].text for at in places if _says_more(scope, at)), None)
        if word is None or heard or ended or any(_asks_of_itself(scope, part, spans, slots) for part in parts):
            return None
        told = told or Fault("report", word)
    return told


def _says_more(scope: _Scope, at: int) -> bool:
    """Return True if a word is neither a quoted one nor a small one."""
    token = scope.tokens[at]
    if scope.covered[at] or token.kind is not Kind.WORD or token.text in WEAK:
        return False
    return _tells(scope, at) or not any(scope.words.holds(name, token.text) for name in (*_SMALL_WORDS, "goal", "link"))


def _parts_within(scope: _Scope, places: Sequence[int]) -> Iterator[list[int]]:
    """Yield the parts of a sentence between its pauses and joints."""
    part: list[int] = []
    for at in places:
        if (
            scope.tokens[at].text in _PART_ENDS
            or scope.tokens[at].kind is Kind.BREAK
            or scope.tokens[at].text in _JOINTS
        ):
            yield part
            part = []
        else:
            part.append(at)
    yield part


def _asks_of_itself(scope: _Scope, part: Sequence[int], spans: Sequence[Span], slots: Sequence[Span]) -> bool:
    """Return True if a part of a sentence asks: by its verb, by a wish about the target, or by naming a goal."""
    words, texts = scope.words, [scope.tokens[at].text for at in part]
    first = next((at for at, one in enumerate(texts) if not _is_lead(words, one)), None)
    if first is None:
        return False
    if _requests(scope, part[first]) or any(verb.joined for text in texts for verb in words.verb(text)):
        return True
    if words.match("polite", texts, first) > 1 and texts[first] not in _ANYONE:
        return True
    if first and texts[first - 1] in _PLEASE and not _tells(scope, part[first]):
        return True  # please initiate the engine
    told = next((at for at, one in enumerate(part) if _tells(scope, one)), len(part))
    mine = any(_holds(span, scope.tokens[at]) for span in spans for at in part)
    if mine and any(
        words.match(name, texts, at) > (at == told) for name in _ASKING for at in range(len(texts[: told + 1]))
    ):
        return True
    placed = words.holds("goal", texts[0])  # in the one to the bank change the amount
    if any(
        _requests(scope, part[at])
        and (placed or words.verb(texts[at])[0].language == "es")
        and not _is_noun(words, texts[at - 1])
        for at in range(first + 1, told)
    ):
        return True  # en el segundo añade que está reservado
    return texts[-1] in _PLEASE or (told == len(part) and _aims(scope, part, slots))


def _aims(scope: _Scope, part: Sequence[int], slots: Sequence[Span]) -> bool:
    """Return True if a part says where something goes, with one unknown word at most: chuck milk onto a.txt."""
    texts = [scope.tokens[at].text for at in part]
    mine = [any(_holds(span, scope.tokens[at]) for span in slots) for at in part]
    led = any(text in _TOWARDS and any(mine[at + 1 : at + 3]) for at, text in enumerate(texts))
    more = [at for at, one in enumerate(part) if _says_more(scope, one)]
    if texts[0] in _TOWARDS and any(mine) and len(more) <= 1:
        return True  # to the log of trainings
    behind = next((at for at in part[1:] if not scope.words.holds("article", scope.tokens[at].text)), None)
    return led and (not more or (more == [0] and behind is not None and scope.covered[behind]))


def _is_noun(words: Lexicon, before: str) -> bool:
    """Return True if the word after one is a noun rather than a request: la cuenta, que anote."""
    return (words.holds("article", before) and not words.holds("please", before)) or before in _RELATIVE


def _is_lead(words: Lexicon, text: str) -> bool:
    return text in _ASKED_OF | WEAK or any(words.holds(name, text) for name in ("please", "article"))


def _requests(scope: _Scope, at: int) -> bool:
    """Return True if a word is a form of a verb by which people request: neither a past one nor an infinitive."""
    token = scope.tokens[at]
    plain = token.kind is Kind.WORD and not token.text.endswith(("ing", "ar", "er", "ir"))
    small = any(scope.words.holds(name, token.text) for name in ("stop", "article", "goal"))
    return plain and not small and bool(scope.words.verb(token.text)) and not _tells(scope, at)


def _tells(scope: _Scope, at: int) -> bool:
    """Return True if a word is a verb form that only tells something: noticed, looks, tiene, quedó."""
    token, words = scope.tokens[at], scope.words
    if token.kind is not Kind.WORD:
        return False
    if words.match("telling", [token.text], 0) or token.raw in words.told:
        return True
    if token.raw.endswith(_TELLING_ENDINGS) and not token.raw.endswith(_AHEAD) and len(token.raw) > _PAIR:
        return not words.verb(token.text) or token.raw[-1] in "éó"
    before = scope.tokens[at - 1].text if at else ""
    led = words.holds("article", before) and not words.holds("telling", before)
    return token.text.endswith("ed") and not led and token.text in words.done


def _corrected(scope: _Scope) -> Fault | None:
    """Return the words by which the person replaces a value of the ask: at 4, I mean at 6."""
    texts = [one.text for one in scope.tokens]
    kinds: set[Kind] = set()
    for at in range(1, len(texts)):
        if scope.covered[at - 1]:
            kinds.add(scope.tokens[at - 1].kind)
        strong = scope.words.match("correction", texts, at)
        size = max(strong, scope.words.match("amend", texts, at))
        begins = scope.tokens[at - 1].kind in _STOPS
        if not size or not begins or not kinds or scope.covered[at]:
            continue
        start = next((one for one in range(at + size, len(texts)) if scope.tokens[one].kind not in _STOPS), len(texts))
        end = next((one for one in range(start, len(texts)) if scope.tokens[one].kind in _STOPS), len(texts))
        said = [one for one in range(start, end) if not _is_small(scope.words, texts[one])]
        named = any(scope.tokens[one].kind in kinds - {Kind.WORD} for one in said if not scope.covered[one])
        other = strong and said and not any(scope.covered[one] for one in said) and len(said) <= _SHORT
        if named or other:
            return Fault("retraction", " ".join(texts[at : at + size]))
    return None


def _is_small(words: Lexicon, text: str) -> bool:
    return any(words.holds(name, text) for name in _SMALL_WORDS)


def _spared(scope: _Scope, ask: InterpretedAsk) -> Fault | None:
    """Return the words by which a target stays as it is: leave c.txt be, deja c.txt en paz."""
    texts = [one.text for one in scope.tokens]
    for slot in ask.slots:
        mine = [at for at, one in enumerate(scope.tokens) if _holds(slot.span, one)]
        if not mine:
            continue
        at = mine[0] - 1
        while at >= 0 and scope.words.holds("article", texts[at]):
            at -= 1
        end = mine[-1] + 1
        ends = end >= len(texts) or scope.tokens[end].kind in _STOPS or texts[end] in _JOINTS
        if at >= 0 and scope.words.holds("leaving", texts[at]):
            if ends or scope.words.match("spared", texts, end):
                return Fault("exclusion", texts[at])
    return None


def _other_mode(ask: InterpretedAsk, request: Request) -> Fault | None:
    """Return a fault if the ask replaces or removes, but the grammar read a verb that only adds."""
    if ask.mode not in {Mode.REPLACE, Mode.REMOVE}:
        return None
    for one in request.asks:
        near = any(span.start < token.stop and token.start < span.stop for span in ask.spans for token in one.tokens)
        if near and one.verb.meanings & _ADDING and not one.verb.meanings & _WRITING:
            return Fault("mode", "add")
    return None


# ---- conversion to the grammar's terms ----------------------------------------


def _parsed(ask: InterpretedAsk, request: Request, taken: Sequence[Span], newest: int = 0) -> Ask:
    """Convert an ask to the grammar's terms: a label for each token of its sentences."""
    tokens = [one for one in request.tokens if one.kind is not Kind.BREAK]
    sentences = _parts(request.tokens, _SENTENCE_ENDS)
    by_token = {id(one): number for one, number in zip(request.tokens, sentences, strict=True)}
    late = {id(one) for one in tokens if newest and one.start >= newest}
    mine = {by_token[id(one)] for one in tokens if id(one) in late or any(_holds(span, one) for span in ask.spans)}
    said = [one for one in tokens if not mine or by_token[id(one)] in mine]
    everywhere = read_times(said).places
    clauses = dict(zip(map(id, request.tokens), _clauses(request, sentences), strict=True))
    near = {clauses[id(one)] for one in said if id(one) in late or any(_holds(span, one) for span in ask.spans)}
    labels = [
        _label(ask, one, taken, free=at in everywhere or clauses[id(one)] not in near) for at, one in enumerate(said)
    ]
    spoken = [at for at, label in enumerate(labels) if label is Label.TIME]
    told = read_times([said[at] for at in spoken]) if spoken else Times(frozenset(), frozenset())
    more = _also_said([said[at] for at in spoken], told)
    times = replace(told, features=told.features | more, places=frozenset(spoken[at] + 1 for at in told.places))
    verb = Verb(_MEANINGS[ask.mode], "", "")
    # The whole text is the verb: it is represented by a token without characters before the text.
    doing = Token("", "", Kind.MARK, said[0].start if said else 0, said[0].start if said else 0)
    return Ask(
        verb, ask.tool, [doing, *said], [Label.VERB, *labels], times, request.lexicon, verbatim=ask.content is not None
    )


def _also_said(tokens: Sequence[Token], told: Times) -> frozenset[Feature]:
    """Return what a quoted time says beyond the usual reading of the words: sunday 9, the 1st of each month.

    A number alone after a day is its hour, and one before "of every month" is the day of it.
    """
    found: set[Feature] = set()
    texts = [one.text for one in tokens]
    for at, text in enumerate(texts):
        alone = at not in told.places and text.isdigit() and int(text) < _HOURS
        behind = texts[at + 1 : at + 4]
        monthly = (
            bool(behind) and behind[0] in _OWNING and not _EVERY.isdisjoint(behind) and not _MONTHS.isdisjoint(behind)
        )
        day = _FIRSTS.get(text) or next((int(one) for one in readings(text) if 0 < one == int(one) <= _DAYS), 0)
        if monthly and day:
            found.add(("date", day))
        elif alone and at - 1 in told.places and not any(one[0] == "hour" for one in told.features):
            found.update(times_of(f"{text}:00").features)
    if " ".join(texts).endswith(_ALL_DAY):
        found.add(("hour", 0, 0, True))
    return frozenset(found)


def _shifted(
    tokens: Sequence[Token], said: frozenset[Feature], everything: frozenset[Feature], day: date
) -> frozenset[Feature]:
    """Return a time relative to another: the day before it, an hour earlier. Empty if it names none."""
    texts = [one.text for one in tokens]
    for at, text in enumerate(texts):
        unit = _UNITS.get(text)
        if unit is None or texts[at + 1 : at + 2] == [] or texts[at + 1] not in _EARLIER:
            continue
        moment = _day_of(everything, day)
        number = next((int(one) for one in readings(texts[at - 1]) if one == int(one)), 1) if at else 1
        if unit == "hour":
            hours = [one for one in everything if one[0] == "hour"]
            if len(hours) != 1:
                return frozenset()
            earlier = int(str(hours[0][1])) - number
            rest = {one for one in everything if one[0] != "hour"}
            return (
                frozenset(rest | set(times_of(f"{earlier}:{int(str(hours[0][2])):02}").features))
                if earlier > 0
                else frozenset()
            )
        if moment is None:
            return frozenset()
        moved = _months_before(moment, number) if unit == "month" else moment - timedelta(days=number * unit)
        return frozenset(
            {("date", moved.day), ("month", moved.month), *(one for one in said if one[0] in {"hour", "part"})}
        )
    return frozenset()


def _due(said: frozenset[Feature], day: date | None) -> date | None:
    """Return the day of a call's time, as it says it."""
    exact = [one[1] for one in said if one[0] == "iso" and isinstance(one[1], date)]
    if exact:
        return exact[0]
    ahead = [one[1] for one in said if one[0] == "day"]
    if day is not None and len(ahead) == 1:
        return day + timedelta(int(str(ahead[0])))
    return _day_of(said, day) if day is not None else None


def _dates(token: Token) -> bool:
    """Return True if a word is one of a date: 3, diciembre."""
    return token.text.isdigit() or bool(read_times([Token("1", "1", Kind.NUMBER, 0, 1), token]).features)


def _without_day(text: str, ahead: int) -> str:
    """Return a text without the word for the day that is so many days ahead: 0 is today."""
    words = [one for one in tokenize(text) if one.kind is Kind.WORD and times_of(one.raw).features == {("day", ahead)}]
    for one in reversed(words):
        text = f"{text[: one.start]}{text[one.stop :].lstrip()}"
    return text


def _months_before(day: date, months: int) -> date:
    """Return the same day of an earlier month, or the last one of a month that is too short."""
    years, month = divmod(day.year * _YEAR + day.month - 1 - months, _YEAR)
    return date(years, month + 1, min(day.day, monthrange(years, month + 1)[1]))


def _day_of(said: frozenset[Feature], day: date) -> date | None:
    """Return the only day given by its date, as its next occurrence from a day on."""
    dates = {int(str(one[1])) for one in said if one[0] == "date"}
    months = {int(str(one[1])) for one in said if one[0] == "month"}
    if len(dates) != 1 or len(months) != 1:
        return None
    for year in (day.year, day.year + 1):
        try:
            found = date(year, *months, *dates)
        except ValueError:
            return None
        if found >= day:
            return found
    return None


def _holds(span: Span, token: Token) -> bool:
    return span.start < token.stop and token.start < span.stop


def _label(ask: InterpretedAsk, token: Token, taken: Sequence[Span], *, free: bool) -> Label:
    """Return a token's label by the interpretation. A name or number near it that no slot claims is left over."""
    if any(_holds(one.span, token) for one in ask.slots):
        return Label.OBJECT
    if ask.content is not None and _holds(ask.content, token):
        return Label.QUOTE if token.kind is Kind.QUOTE else Label.CONTENT
    if any(_holds(one, token) for one in ask.times):
        return Label.TIME
    if token.kind in {Kind.MARK, Kind.BREAK}:
        return Label.MARK
    if free or any(_holds(span, token) for span in taken):
        return Label.REASON
    # Composed content has a source: a name that no slot claims may be where it is from.
    return Label.OBJECT if token.kind in {Kind.LITERAL, Kind.NUMBER} and not ask.composed else Label.REASON


def _unbound(ask: InterpretedAsk, call: Call) -> Fault | None:
    """Return a control argument whose value belongs to another slot, or a slot that the call does not use.

    A value in no slot at all is left to the matcher: it does not examine the words outside the slots.
    """
    used: set[int] = set()
    for argument in call.arguments:
        own = [at for at, one in enumerate(ask.slots) if one.argument == argument.name]
        for value in plain_values(argument.value):
            said = [at for at, one in enumerate(ask.slots) if _is_value(one.span.text, value)]
            mine = [at for at in said if at in own]
            used.update(mine)
            if not mine and _is_computed(ask, argument, value, exists=call.exists):
                used.update(own)
            elif argument.control and said and not mine and not isinstance(value, bool):
                return Fault("value", argument.name)
        if argument.items or argument.role == "date":  # named by its kind or time
            used.update(own)
    taken = {ask.slots[at].argument for at in used}
    for at, one in enumerate(ask.slots):
        if at not in used and not (ask.quantity != 1 and one.argument in taken):
            return Fault("leftover", one.span.text)
    return None


def _is_asked_now(one: CheckedAsk, request: Request, call: Call) -> bool:
    """Return True if the newest of several messages asks for what is quoted from an earlier one.

    It contains words of the ask and no other request, or it is a request for such an effect, or a yes, with nothing
    else: it names nothing itself and changes nothing.
    """
    newest = parse(request.text[one.newest :])
    texts = [token.text for token in newest.tokens if token.kind not in _STOPS]
    fitting = any(same_effect(ask, call) and not _takes_away(ask, one.ask) for ask in newest.asks)
    others = any(ask.fault is None and not same_effect(ask, call) for ask in newest.asks)
    again = any(not span.back for span in one.ask.times)  # another one, an hour before
    if not (_OTHERWISE - _ANOTHER if again else _OTHERWISE).isdisjoint(texts):
        return False
    if any(not span.back for span in one.ask.spans):
        return fitting or not others
    if one.ask.composed:
        said = {value for text in _contents_of(call) for token in tokenize(text) for value in readings(token.text)}
        return fitting and all(
            not said.isdisjoint(readings(token.text)) for token in newest.tokens if token.kind is Kind.NUMBER
        )
    if says_to_do(newest.text):
        return True
    names = ("stop", "article", "please", "phatic", "universal", "polite", "greet")
    rest = [
        text
        for text in texts
        if not any(newest.lexicon.match(name, [text], 0) for name in names)
        and read_answer(text) != "yes"
        and (value_of(text) is None or text.isdigit())
        and not any(verb.meanings & call.effects for verb in newest.lexicon.verb(text))
    ]
    return (fitting or _is_yes(request.tokens, one.newest)) and not rest


def _takes_away(heard: Ask, ask: InterpretedAsk) -> bool:
    """Return True if a request removes, and the ask adds: quita, quita, after one to note it down."""
    removes = heard.verb.meanings & _MEANINGS[Mode.REMOVE]
    return bool(removes) and ask.mode in {Mode.ADD, Mode.CREATE} and heard.verb.meanings.isdisjoint(_ADDING | _WRITING)


def _of_sentence(ask: Ask, request: Request) -> list[Token]:
    """Return the words of an ask that are in the sentence of its verb."""
    sentences = dict(zip(map(id, request.tokens), _parts(request.tokens, _SENTENCE_ENDS), strict=True))
    verb = sentences.get(id(ask.tokens[ask.labels.index(Label.VERB)]))
    return [one for one in ask.tokens if sentences.get(id(one)) == verb]


def _is_computed(ask: InterpretedAsk, argument: Argument, value: Any, *, exists: bool) -> bool:
    """Return True if a value is computed from the words of its own slots, by a rule with a single result.

    The rules: a number times a multiplying word (15 k, double 2); a name with different spaces (login, Log in); and the
    name of a file that does not exist yet, each part of which was said: csv template for hours, hours_template.csv.
    """
    words = [one for slot in ask.slots if slot.argument == argument.name for one in tokenize(slot.span.text)]
    if not words or isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        factors = [_TIMES[one.text] for one in words if one.text in _TIMES]
        numbers = [one for one in words if one.kind is Kind.NUMBER]
        if len(factors) != 1 or len(numbers) != 1 or len(words) > _PAIR:
            return False
        return any(one * factors[0] == Decimal(str(value)) for one in readings(numbers[0].text))
    if not isinstance(value, str):
        return False
    folded = fold(value)
    if (
        " " in folded
        and folded.replace(" ", "") == "".join(one.text for one in words)
        and folded.replace(" ", "").isalpha()
    ):
        return True
    if exists or not _FILE.fullmatch(value) or not is_file_name(value):
        return False
    stem, _, ending = folded.rpartition(".")
    named = [one for one in words if one.kind is Kind.LITERAL]
    plain = {one.text for one in words if one.kind is Kind.WORD}
    if named:  # the same name with another extension: notes.txt as html
        return len(named) == 1 and named[0].text.rpartition(".")[0] == stem and {ending} == plain
    return {one for one in _PARTS.split(folded) if one} == plain


def _is_value(said: str, value: Any) -> bool:
    if isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        wanted = Decimal(str(value)).normalize()
        return any(wanted in readings(one.text.lstrip("#")) for one in tokenize(said))
    return same_name(said, str(value))


def _heard_otherwise(ask: InterpretedAsk, request: Request, call: Call) -> Fault | None:
    """Return a fault if the grammar's own reading contradicts the interpretation.

    A source must not be a goal. If the grammar found a request for the effect, the interpreted ask must be at that
    request.
    """
    slots = [one.span for one in ask.slots]
    if ask.composed and not any(one.role == "content" and not one.default for one in call.arguments):
        return Fault("content", "none")
    if not ask.spans and call.effects.isdisjoint(_KEEPING):
        about = call.nouns & {one.stem for one in request.tokens}
        if not about or not any(same_effect(one, call) for one in request.asks):
            return Fault("unasked", "")  # it does not quote any word, and no word asks for it
    near = [one for one in request.asks if any(_holds(span, token) for span in ask.spans for token in one.tokens)]
    for one in near:
        if any(_holds(span, token) for span in slots for token in one.of(Label.SOURCE)):
            return Fault("source", one.form)
    heard = [
        one
        for one in request.asks
        if one.fault is None and any(_holds(span, token) for span in slots for token in _of_sentence(one, request))
    ]
    yielding = [one for one in request.asks if same_effect(one, call)]
    clear = [one for one in yielding if one.fault is None]
    named = any("rename" in one.verb.meanings and one.refers for one in near)  # a page of it, call it page.html
    meant = (one in near or one.refers or _points_back(one, ask) for one in yielding)
    if clear and slots and not named and not any(meant):
        return Fault("elsewhere", clear[0].form)
    if heard and not yielding:
        return Fault("effect", heard[0].form)
    if ask.composed:
        wrong = next((one for one in clear if one in near and any(one.of(Label.CONTENT, Label.QUOTE))), None)
        if wrong is not None and _means_that(wrong):
            return None
        fault = Match(request, wrong, call).fault() if wrong is not None else None
        return fault if fault is not None and fault.kind == "content" else None
    return None


def _left_of_heard(ask: InterpretedAsk, request: Request, call: Call) -> Fault | None:
    """Return a fault if the grammar found a goal for such a call that the interpretation leaves out.

    When a target is emptied, every goal that the grammar found counts: no part of it was named.
    """
    made = [one.name for one in call.arguments if _is_computed(ask, one, one.value, exists=call.exists)]
    slots = [one.span for one in ask.slots if one.argument not in made]
    contents = [one.value for one in call.arguments if one.role == "content" and isinstance(one.value, str)]
    empties = bool(contents) and not any(one.strip() for one in contents)
    for heard in request.asks:
        if heard.fault is not None or not same_effect(heard, call):
            continue
        goals = [at for at, label in enumerate(heard.labels) if label in _GOALS]
        mine = [heard.tokens[at] for at in goals if not (at and heard.tokens[at - 1].text in _OWNING)]
        if ask.composed:  # draft a list for a weekend, and save it as list.md
            mine.extend(one for other in request.asks if other.previous is heard for one in other.of(*_GOALS))
        elsewhere = any(not any(_holds(span, one) for one in mine) for span in slots)
        if not elsewhere and not empties:
            continue
        for at in goals:
            token = heard.tokens[at]
            led = at > 0 and heard.labels[at - 1] is Label.GOAL and heard.tokens[at - 1].text not in _OWNING
            told = token.kind is not Kind.LITERAL and any(token.text in fold(text) for text in contents)
            if (led or empties) and _says_something(token, request, call) and not (told or _is_covered(ask, token)):
                return Fault("elsewhere", token.raw)
    return None


def _points_back(heard: Ask, ask: InterpretedAsk) -> bool:
    """Return True if an ask has its goal in an earlier message: it names no thing by itself. Ponle otra clave."""
    return all(one.span.back for one in ask.slots) and not any(
        is_file_name(one.text) or one.text[:1] in "@#" or "@" in one.text for one in heard.of(Label.OBJECT, Label.QUOTE)
    )


def _means_that(ask: Ask) -> bool:
    """Return True if the content of an ask refers to text elsewhere: put those numbers in a.md."""
    first = next((one for one in ask.tokens[ask.labels.index(Label.VERB) + 1 :] if one.kind is not Kind.MARK), None)
    return first is not None and first.text in _MEANING_THAT


def _says_something(token: Token, request: Request, call: Call) -> bool:
    names = {stem for one in call.arguments for stem in names_of(one.name)}
    plain = request.lexicon.holds("stop", token.text) or token.stem in call.nouns or token.stem in names
    return token.kind not in {Kind.MARK, Kind.BREAK} and not plain


def _described_name(ask: InterpretedAsk, request: Request, call: Call) -> Fault | None:
    """Return an argument whose value only describes the object: "the notes file" is not its name."""
    for argument in call.arguments:
        values = [one for one in plain_values(argument.value) if argument.control and isinstance(one, str)]
        for one in (slot for slot in ask.slots if slot.argument == argument.name):
            if not any(same_name(one.span.text, value) for value in values):
                continue
            said = [token for token in request.tokens if _holds(one.span, token)]
            if len(said) > 1 and request.lexicon.holds("article", said[0].text):
                return Fault("value", argument.name)
    return None


def _quota(one: CheckedAsk) -> int:
    """Return the number of calls an ask allows: as claimed, limited by what the words contain."""
    if one.ask.quantity == 0:
        words = one.parsed.lexicon
        return 0 if any(words.holds("universal", token.text) for token in one.parsed.tokens) else 1
    counts = [sum(other.argument == slot.argument for other in one.ask.slots) for slot in one.ask.slots]
    numbers = {int(value) for token in one.parsed.tokens for value in readings(token.text) if value == int(value)}
    return one.ask.quantity if one.ask.quantity in numbers else min(one.ask.quantity, max(counts, default=1))


# ---- serialization ------------------------------------------------------------


def _ask_to_json(ask: InterpretedAsk) -> dict[str, Any]:
    return {
        "tool": ask.tool,
        "slots": [[one.argument, *_span_to_json(one.span)] for one in ask.slots],
        "mode": str(ask.mode),
        "content": None if ask.content is None else _span_to_json(ask.content),
        "composed": ask.composed,
        "quantity": ask.quantity,
        "time": None if ask.time is None else _span_to_json(ask.time),
        **({"also_time": [_span_to_json(one) for one in ask.also_time]} if ask.also_time else {}),
    }


def _ask_from_json(value: Mapping[str, Any]) -> InterpretedAsk:
    return InterpretedAsk(
        tool=value["tool"],
        slots=tuple(Slot(name, Span(*span)) for name, *span in value["slots"]),
        mode=Mode(value["mode"]),
        content=_span_from_json(value["content"]),
        composed=value["composed"],
        quantity=value["quantity"],
        time=_span_from_json(value["time"]),
        also_time=tuple(Span(*one) for one in value.get("also_time", ())),
    )


def _span_to_json(span: Span) -> list[Any]:
    return [span.text, span.start, span.back] if span.back else [span.text, span.start]


def _span_from_json(value: Sequence[Any] | None) -> Span | None:
    return None if value is None else Span(*value)
