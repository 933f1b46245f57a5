"""Operators: words by which others are not, or not yet, a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from phylactery_understanding.language.lexicon import OPERATORS, Lexicon
from phylactery_understanding.language.text import Kind, Token
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.model import Fault

_INFINITIVE: Final = re.compile(r"\w*[aei]r(?:[mts]e|l[aeo]s?|n?os)*")
PAUSES: Final = frozenset({",", ";", "(", ")", "–", "—", "…", "-", "*", "•"})
HARD: Final = frozenset({"irony", "retraction", "hypothetical", "announce", "idiom"})
"""Operators that apply anywhere except in a quotation."""
_LEADING: Final = frozenset({"irony", "retraction", "announce"})
"""Operators that apply in a sentence before the request."""
_BARE: Final = word_set("bare_negations")
_EMPTY: Final = word_set("unnegated")
INVERTED: Final = word_set("inverted")
WHERE: Final = word_set("where")
_SMALL: Final = ("please", "article", "stop", "phatic")
SPEAKER_WORDS: Final = 3
OPENING: Final = 12
"""The number of tokens of a clause that may set it aside."""
_COURTEOUS: Final = ("please", "greet")
_DEFERRING: Final = word_set("put_off_openings")
_WORDING: Final = word_set("wording_verbs")


def operator_in(
    words: Lexicon, clause: Sequence[Token], place: int, *, only: frozenset[str] | None = None
) -> Fault | None:
    """Return the first operator of a clause from a place on, of the given classes if any."""
    texts = [one.text for one in clause]
    hard = only is not None
    if hard and texts and not words.match("polite", texts, 0) and (texts[0] in _BARE):
        return Fault("negation", texts[0])
    if hard and place == 0 and (left := left_open(words, texts)):
        return Fault("negation", left)
    if hard and place == 0 and ":" in texts[1 : SPEAKER_WORDS + 2] and _is_speaker(words, clause, texts.index(":")):
        return Fault("report", ":")
    at = place
    while at < len(clause):
        found = None if clause[at].kind is Kind.QUOTE else operator_at(words, texts, at, only)
        if found is not None:
            return found
        at += max(words.match("polite", texts, at), 1)  # make sure to: no single word of it is an operator
    return None


def operator_at(words: Lexicon, texts: Sequence[str], place: int, only: frozenset[str] | None = None) -> Fault | None:
    """Return the operator that begins at a place, of the given classes if any, unless longer words are polite."""
    inverted = texts[place] in INVERTED and place > 0 and texts[place - 1] not in PAUSES
    names = (one for one in OPERATORS if (only is None or one in only) and not (inverted and one == "condition"))
    size, kind = words.operator(texts, place, names)
    return Fault(kind, " ".join(texts[place : place + size])) if size else None


def left_open(words: Lexicon, texts: Sequence[str]) -> str:
    """Return a negation with nothing to negate in its clause, so that it applies to what follows."""
    ends = [True] * (len(texts) + 1)  # nothing to negate from a place on to the next pause
    for at in reversed(range(len(texts))):
        ends[at] = texts[at] in PAUSES or (texts[at] in _EMPTY and ends[at + 1])
    for at in range(len(texts)):
        size = words.match("negation", texts, at) or 2 * (list(texts[at : at + 2]) == ["do", "not"])
        if size and ends[at + size]:
            return " ".join(texts[at : at + size])
    return ""


def _is_speaker(words: Lexicon, clause: Sequence[Token], colon: int) -> bool:
    """Return True if the text before a colon is a name: Ann: please refund it."""
    return all(
        one.kind is Kind.WORD and one.raw[:1].isupper() and not words.match("please", [one.text], 0)
        for one in clause[:colon]
        if one.kind is not Kind.MARK
    ) and colon + 1 < len(clause)


def phrase_at(words: Lexicon, texts: Sequence[str], verb: int) -> Fault | None:
    """Return an operator of several words that begins with the verb: keep me posted, but not cancel that order."""
    found = operator_at(words, texts, verb)
    if found is None or " " not in found.words:
        return None
    behind = texts[verb + len(found.words.split()) :]
    names = any(one.isalpha() and not any(words.match(kind, [one], 0) for kind in _SMALL) for one in behind[:1])
    return None if found.kind == "retraction" and names else found


def hard_at(words: Lexicon, clause: Sequence[Token], texts: Sequence[str], place: int) -> Fault | None:
    """Return an operator that applies within content: irony anywhere, and a retraction that begins a part of it."""
    found = operator_at(words, texts, place, frozenset({"irony"}))
    if found is None and clause[place - 1].kind is Kind.MARK:
        found = operator_at(words, texts, place, frozenset({"retraction", "negation", "exclusion"}))
    return found


def around(words: Lexicon, clause: Sequence[Token], texts: Sequence[str], *, asked: bool, joined: bool) -> Fault | None:
    """Return how a clause without a request qualifies the requests near it: in the worst case, if it rains."""
    if asked:
        return operator_in(words, clause, 0)
    fault = operator_in(words, clause, 0, only=HARD | {"report", "condition"} if joined else _LEADING)
    return Fault("condition", texts[0]) if fault is None and joined and texts[0] in WHERE else fault


def set_aside(words: Lexicon, said: Sequence[Token], *, opens: bool, joined: bool) -> Fault | None:
    """Return how the beginning of a clause keeps what follows from being a request, if its structure says so.

    ``said`` are its words and those behind it in the sentence. A condition without an "if" does (de no llover, de ser
    así), words that make fun of it (yeah, right), a verb whose object is a request (translate write a note to Ana),
    and, if more of the sentence is ``joined`` to it, what makes it depend on something or another's words. If it
    ``opens`` the message, a later time does, too: behind a request, luego only says what is next.
    """
    texts = [one.text for one in said[:OPENING]]
    verb = texts[2:3] if texts[1:2] == ["no"] else texts[1:2]
    if texts[:1] == ["de"] and bool(verb) and _INFINITIVE.fullmatch(verb[0]) is not None:
        return Fault("condition", said[0].raw)
    at = 0
    while at < len(texts):
        size, kind = words.opening(texts, at)
        size, kind = max((size, kind), words.operator(texts, at, ("irony",)))
        if size and (kind == "irony" or joined):
            return Fault(kind, " ".join(texts[at : at + size]))
        if opens and texts[at] in _DEFERRING:
            return Fault("future", said[at].raw)
        if texts[at] in _WORDING and said[at + 1 : at + 2] and said[at + 1].kind is Kind.WORD:
            return Fault("announce", said[at].raw) if words.verb(texts[at + 1]) else None
        if not words.longest(_COURTEOUS, texts, at) and texts[at] not in PAUSES:
            return None
        at += max(words.longest(_COURTEOUS, texts, at), 1)
    return None
