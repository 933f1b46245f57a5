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
_EXCUSED: Final = frozenset({"negation", "past", "future"})
_UNSETTLED: Final = word_set("unsettled")
_TOLD_ENDINGS: Final = ("é", "í", "ó")
"""Endings of past verb forms: terminé, comí, llegó."""
_SUBJECTS: Final = word_set("subjects")


def label_body(words: Lexicon, ask: Ask, texts: Sequence[str], place: int) -> Fault | None:  # noqa: C901, PLR0915
    """Label the tokens after the verb, and return the operator that cancels the request, if there is one."""
    clause, labels = ask.tokens, ask.labels
    saying = not ask.verb.meanings.isdisjoint(COMMUNICATING)
    making = saying or not ask.verb.meanings.isdisjoint(COMPOSING)
    region, because = Label.OBJECT, False
    began = place
    while place < len(clause):
        token = clause[place]
        if token.kind is Kind.QUOTE:
            labels[place] = Label.QUOTE
            place += 1
            continue
        opened = region is Label.CONTENT and labels[place - 1] is not Label.CONTENT
        if token.text == ":" and (region is not Label.CONTENT or opened) and place > began - 1:
            region, labels[place], ask.verbatim = Label.CONTENT, Label.MARK, True
            place += 1
            continue
        if token.kind is Kind.MARK:
            labels[place] = Label.CONTENT if region is Label.CONTENT else Label.MARK
            if token.text in {"→", "->", "=>"}:
                region, labels[place] = Label.OBJECT, Label.GOAL
            if region is Label.SOURCE and token.text in {",", ")"}:
                region = Label.OBJECT
            place += 1
            continue
        if region is Label.CONTENT:
            hard = None if ask.verbatim else hard_at(words, clause, texts, place)
            if hard is not None:
                return hard
            goal = 0 if ask.verbatim or _has_goal(ask, began, place) else _closing_goal(words, clause, texts, place)
            if goal:
                for at in range(place, place + goal - 1):
                    labels[at] = Label.GOAL
                labels[place + goal - 1] = Label.OBJECT
                place, region = place + goal, Label.OBJECT
                continue
            labels[place] = Label.CONTENT
            place += 1
            continue
        if place in ask.times.places and region is not Label.REASON:
            labels[place] = Label.TIME
            place += 1
            continue
        if saying and place > began and _tells_of(ask, texts, place):
            region = Label.CONTENT
            continue
        operator = operator_at(words, texts, place)
        opens = _opens(words, texts, place, saying=saying, making=making)
        if opens and texts[place] in _IF and _is_condition(ask, began, place):
            opens = 0
        if opens and (
            operator is None
            or (opens >= len(operator.words.split()) and operator.kind in {"condition", "past", "future"})
        ):
            for at in range(place, place + opens):
                labels[at] = Label.FILLER
            region = Label.CONTENT
            place += opens
            continue
        pause = place > began and follows_pause(clause, place)
        reason = _reason_at(words, clause, texts, place) if pause else 0
        if operator is not None and reason > len(operator.words.split()):
            operator = None  # wrong size, can't reproduce: the longer phrase decides
        if operator is not None and not (
            region is Label.REASON and (because or operator.kind != "negation") and operator.kind in _EXCUSED
        ):
            return operator
        if region is Label.REASON:
            if texts[place] in _UNSETTLED:
                return Fault("hypothetical", texts[place])
            labels[place] = Label.REASON
            place += 1
            continue
        if pause and texts[place] in TELLING_MORE and clause[place + 1 : place + 2] and texts[place + 1][:1].isdigit():
            labels[place] = Label.FILLER
            place += 1
            continue
        if reason or texts[place] in _BECAUSE:
            region, because = Label.REASON, texts[place] in _BECAUSE
            if texts[place] in _UNSETTLED:
                return Fault("hypothetical", texts[place])
            size = max(reason, 1)
            labels[place : place + size] = [Label.REASON] * size
            place += size
            continue
        if texts[place] in {"que", "q"} and place > began and texts[place : place + 2] != ["que", "se"]:
            told = texts[place + 1 : place + 2] == ["ya"] or follows_pause(clause, place)
            region = Label.REASON if told else Label.SOURCE
            labels[place] = region
            place += 1
            continue
        size, label = _plain(words, texts, place, region)
        if label is Label.SOURCE:
            region = Label.SOURCE
        elif label is Label.GOAL:
            region = Label.OBJECT
        for at in range(place, place + size):
            labels[at] = Label.SOURCE if region is Label.SOURCE and label is not Label.FILLER else label
        place += size
    return None


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
