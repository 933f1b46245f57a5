"""Labels of the words after the verb of an ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.text import Kind, Token
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.continuation import TELLING_MORE
from phylactery_understanding.requests.model import Ask, Fault, Label
from phylactery_understanding.requests.operators import hard_at, operator_at
from phylactery_understanding.requests.verbs import RELATIVE

COMMUNICATING: Final = frozenset(
    """
    send tell ask notify reply comment post publish message forward remind remember record announce report greet
    request learn wake share pass
    """.split()
)
"""Meanings of verbs after which "that", "if" and "how" introduce the content."""
COMPOSING: Final = frozenset(
    {"write", "compose", "create", "make", "draft", "add", "put", "edit", "schedule", "open", "book"}
)
_BELONGING: Final = word_set("belonging")
_OPENERS: Final = word_set("openers")
_IF: Final = word_set("if")
_BECAUSE: Final = word_set("because")
_OPENING_TOO: Final = frozenset({"condition", "past", "future"})
"""Operators whose words may also open content: ask him if he comes."""
_EXCUSED: Final = frozenset({"negation", "past", "future"})
_UNSETTLED: Final = word_set("unsettled")
_TOLD_ENDINGS: Final = ("é", "í", "ó")
"""Endings of past verb forms: terminé, comí, llegó."""
_SUBJECTS: Final = word_set("subjects")


def label_body(words: Lexicon, ask: Ask, texts: Sequence[str], place: int) -> Fault | None:
    """Label the tokens after the verb, and return the operator that cancels the request, if there is one."""
    return _Body(words, ask, texts, place).label()


class _Body:
    """The tokens after a verb, labelled from left to right; ``region`` is what the next word is part of."""

    def __init__(self, words: Lexicon, ask: Ask, texts: Sequence[str], place: int) -> None:
        self._words, self._ask, self._texts = words, ask, texts
        self._place = self._began = place
        self._region, self._because = Label.OBJECT, False
        self._saying = not ask.verb.meanings.isdisjoint(COMMUNICATING)
        self._making = self._saying or not ask.verb.meanings.isdisjoint(COMPOSING)

    def label(self) -> Fault | None:
        while self._place < len(self._ask.tokens):
            fault = self._next()
            if fault is not None:
                return fault
        return None

    def _put(self, label: Label, size: int = 1) -> None:
        self._ask.labels[self._place : self._place + size] = [label] * size
        self._place += size

    def _next(self) -> Fault | None:
        """Label the next token, or some; return the operator that it is."""
        ask, place, token = self._ask, self._place, self._ask.tokens[self._place]
        if token.kind is Kind.QUOTE:
            self._put(Label.QUOTE)
        elif token.kind is Kind.MARK:
            self._mark(token.text)
        elif self._region is Label.CONTENT:
            return self._content()
        elif place in ask.times.places and self._region is not Label.REASON:
            self._put(Label.TIME)
        elif self._saying and place > self._began and _tells_of(ask, self._texts, place):
            self._region = Label.CONTENT
        else:
            return self._word()
        return None

    def _mark(self, mark: str) -> None:
        opened = self._region is Label.CONTENT and self._ask.labels[self._place - 1] is not Label.CONTENT
        if mark == ":" and (self._region is not Label.CONTENT or opened):
            self._region, self._ask.verbatim = Label.CONTENT, True
            self._put(Label.MARK)
        elif mark in {"→", "->", "=>"}:
            self._region = Label.OBJECT
            self._put(Label.GOAL)
        else:
            self._put(Label.CONTENT if self._region is Label.CONTENT else Label.MARK)
            if self._region is Label.SOURCE and mark in {",", ")"}:
                self._region = Label.OBJECT

    def _content(self) -> Fault | None:
        """Label a word of the content, or a goal that ends it; return the operator that holds even there."""
        words, ask, place = self._words, self._ask, self._place
        if not ask.verbatim:
            hard = hard_at(words, ask.tokens, self._texts, place)
            if hard is not None:
                return hard
            goal = 0 if _has_goal(ask, self._began, place) else _closing_goal(words, ask.tokens, self._texts, place)
            if goal:
                self._put(Label.GOAL, goal - 1)
                self._region = Label.OBJECT
        self._put(self._region)
        return None

    def _word(self) -> Fault | None:
        """Label a word outside the content by what it opens, or by its class; return the operator that it is."""
        words, texts, place = self._words, self._texts, self._place
        operator = operator_at(words, texts, place)
        if opens := self._opened(operator):
            self._put(Label.FILLER, opens)
            self._region = Label.CONTENT
            return None
        pause = place > self._began and follows_pause(self._ask.tokens, place)
        reason = _reason_at(words, self._ask.tokens, texts, place) if pause else 0
        # wrong size, can't reproduce: the longer phrase decides
        if operator is not None and reason <= len(operator.words.split()) and not self._is_excused(operator):
            return operator
        more = texts[place + 1 : place + 2]
        if (
            self._region is not Label.REASON
            and pause
            and texts[place] in TELLING_MORE
            and more
            and more[0][:1].isdigit()
        ):
            self._put(Label.FILLER)
        elif self._region is Label.REASON or reason or texts[place] in _BECAUSE:
            return self._reason(reason)
        elif texts[place] in {"que", "q"} and place > self._began and texts[place : place + 2] != ["que", "se"]:
            self._region = Label.REASON if more == ["ya"] or follows_pause(self._ask.tokens, place) else Label.SOURCE
            self._put(self._region)
        else:
            self._plain()
        return None

    def _opened(self, operator: Fault | None) -> int:
        """Return the size of the words that open content at a place, unless they are an operator."""
        texts, place = self._texts, self._place
        opens = _opens(self._words, texts, place, saying=self._saying, making=self._making)
        if opens and texts[place] in _IF and _is_condition(self._ask, self._began, place):
            return 0
        if operator is None or operator.kind in _OPENING_TOO:
            return opens if operator is None or opens >= len(operator.words.split()) else 0
        return 0

    def _is_excused(self, operator: Fault) -> bool:
        """Return True if an operator belongs to a reason, and not to the request."""
        excused = operator.kind in _EXCUSED and (self._because or operator.kind != "negation")
        return self._region is Label.REASON and excused

    def _reason(self, size: int) -> Fault | None:
        text = self._texts[self._place]
        if text in _UNSETTLED:
            return Fault("hypothetical", text)
        if self._region is Label.REASON:
            size = 1
        else:
            self._region, self._because = Label.REASON, text in _BECAUSE
        self._put(Label.REASON, max(size, 1))
        return None

    def _plain(self) -> None:
        size, label = _plain(self._words, self._texts, self._place, self._region)
        if label is Label.SOURCE:
            self._region = Label.SOURCE
        elif label is Label.GOAL:
            self._region = Label.OBJECT
        self._put(Label.SOURCE if self._region is Label.SOURCE and label is not Label.FILLER else label, size)


def _tells_of(ask: Ask, texts: Sequence[str], place: int) -> bool:
    """Return True if a message begins with its subject: tell Ana I'm late, let Cal know he won."""
    behind = (
        texts[place - 1] == "know"
        or ask.tokens[place - 1].kind is Kind.LITERAL
        or ask.tokens[place - 1].raw[:1].isupper()
    )
    return texts[place] in _SUBJECTS and behind and place + 1 < len(texts) and ask.verb.language == "en"


def _has_goal(ask: Ask, began: int, place: int) -> bool:
    """Return True if a goal was named before the content: then everything in the content is content."""
    return any(
        ask.labels[at] is Label.GOAL and ask.tokens[at].text not in _BELONGING for at in range(began, place)
    ) or any(one.kind is Kind.LITERAL for one in ask.tokens[:place])


def _closing_goal(words: Lexicon, clause: Sequence[Token], texts: Sequence[str], place: int) -> int:
    """Return the size of a goal at the end of the content: … that I ran 5 km in runs.csv."""
    size = words.match("goal", texts, place)
    if not size or texts[place] in {"de", "of", "del", "con", "with", "que", "that", "by"}:
        return 0
    at = place + size
    while at < len(clause) and clause[at].kind is Kind.WORD and words.holds("article", texts[at]):
        at += 1
    if at >= len(clause) or clause[at].kind is not Kind.LITERAL:
        return 0
    rest = at + 1
    while rest < len(clause) and (filler := words.match("please", texts, rest)):
        rest += filler
    ends = rest >= len(clause) or (clause[rest].kind is Kind.MARK and clause[rest].text in {",", ")", "("})
    return at + 1 - place if ends else 0


def follows_pause(clause: Sequence[Token], place: int) -> bool:
    """Return True if a mark is right before a word."""
    return clause[place - 1].kind is Kind.MARK


def _opens(words: Lexicon, texts: Sequence[str], place: int, *, saying: bool, making: bool) -> int:
    size = words.match("content", texts, place)
    if size > 1:
        return size
    if not size:
        if saying and texts[place] == "to" and place + 1 < len(texts) and words.verb(texts[place + 1]):
            return 1
        if (
            saying
            and texts[place] in {"de", "a", "para"}
            and place + 1 < len(texts)
            and texts[place + 1].endswith(
                ("ar", "er", "ir", "arme", "erme", "irme", "arle", "arlo", "arla", "erlo", "erla")
            )
        ):
            return 1
        return 0
    word = texts[place]
    if word in _OPENERS or word in RELATIVE:
        return size if saying or (making and word not in {"que", "q", "that", "which", "who"}) else 0
    return size if making else 0


def _is_condition(ask: Ask, began: int, place: int) -> bool:
    """Return True if "if" attaches a condition to the text before: write hello to a.txt if it rains."""
    if ask.verb.meanings.isdisjoint(COMPOSING):
        return False
    before = list(zip(ask.tokens[began:place], ask.labels[began:place], strict=True))
    said = any(
        label in {Label.QUOTE, Label.OBJECT, Label.FILLER} and one.kind is not Kind.LITERAL for one, label in before
    )
    return said and (before[-1][0].kind is Kind.MARK or any(one.kind is Kind.LITERAL for one, _ in before))


def _plain(words: Lexicon, texts: Sequence[str], place: int, region: Label) -> tuple[int, Label]:
    best, label = 1, Label.OBJECT
    for name, kind in (
        ("source", Label.SOURCE),
        ("goal", Label.GOAL),
        ("please", Label.FILLER),
        ("article", Label.ARTICLE),
    ):
        size = words.match(name, texts, place)
        if size > best or (size == best and label is Label.OBJECT):
            best, label = size, kind
    if region is Label.SOURCE and label in {Label.ARTICLE, Label.OBJECT}:
        label = Label.SOURCE
    return best, label


def _reason_at(words: Lexicon, clause: Sequence[Token], texts: Sequence[str], place: int) -> int:
    """Return the size of the opening of a reason after a pause: because; and ya terminé, but not ya pagaré."""
    told = clause[place + 1].raw if texts[place] == "ya" and place + 1 < len(clause) else ""
    return words.match("reason", texts, place) or int(told.endswith(_TOLD_ENDINGS) and not told.endswith("ré"))
