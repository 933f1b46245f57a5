"""Operators: words by which others are not, or not yet, a request."""

from __future__ import annotations

import itertools
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
_EARLY: Final = 5
"""The number of tokens that an exclamation and the beginning of its reason take: oh, yeah, because …."""
_COURTEOUS: Final = ("please", "greet")
_LEADS: Final = (*_COURTEOUS, "polite")
_DEFERRING: Final = word_set("put_off_openings")
_WORDING: Final = word_set("wording_verbs")
_EXCLAIMING: Final = word_set("exclamations")
_PRAISING: Final = word_set("praises")
_STRESSING: Final = word_set("praise_stress")
_BECAUSE: Final = word_set("because")
_IF: Final = word_set("if")
_SUPPOSING: Final = word_set("supposing")
_SUPPOSED: Final = word_set("subjects") | word_set("supposed_subjects")


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


def told_why(words: Lexicon, texts: Sequence[str]) -> set[int]:
    """Return the places of verbs that only tell what happens otherwise: que si no no da tiempo; but not: … no mandes.

    Behind a negation, Spanish orders with another form of the verb than it tells with.
    """
    found: set[int] = set()
    for at, text in enumerate(texts):
        if text not in _IF or texts[at + 1 : at + 2] != ["no"]:
            continue
        reason = any(words.match("reason", texts, first) == at - first for first in range(max(at - 2, 0), at))
        denied = at + 2 + (texts[at + 2 : at + 3] == [","])
        verb = texts[denied + 1 : denied + 2]
        if reason and verb and texts[denied] == "no" and _tells(words, verb[0]):
            found.add(denied + 1)
    return found


def _tells(words: Lexicon, form: str) -> bool:
    infinitives = {"a": ("ar",), "e": ("er", "ir")}.get(form[-1:], ())
    return any(one.language == "es" for end in infinitives for one in words.verb(form[:-1] + end))


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
    ``opens`` the message, a later time does, too: behind a request, luego only says what is next; and so does praise
    for what was not done yet.
    """
    texts = [one.text for one in said[:OPENING]]
    if opens and (mocking := _mocks(texts)):
        return Fault("irony", mocking)
    if joined and (supposing := _supposes(words, said[:OPENING], texts)):
        return Fault("hypothetical", supposing)
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


def _mocks(texts: Sequence[str]) -> str:
    """Return an exclamation before praise or a reason, or praise that is stressed: oh great; brilliant, just brilliant.

    They are one only as a part of the sentence of their own: oh, great news from Ana.
    """
    at = int(texts[0] in _EXCLAIMING)
    at += at and texts[at : at + 1] == [","]
    size = next((size for size in (2, 1) if " ".join(texts[at : at + size]) in _PRAISING), 0)
    behind = texts[at + size :]
    early = enumerate(itertools.pairwise(texts[:_EARLY]), 1)
    reason = next((place for place, (one, other) in early if one == "," and other in _BECAUSE), 0)
    if at and reason:
        return " ".join(texts[: reason + 1])
    if not at and size and behind[:1] == [","] and not _STRESSING.isdisjoint(behind[1:2]):
        return " ".join(texts[: size + 2]) if behind[2 : 2 + size] == texts[:size] else ""
    return " ".join(texts[: at + size]) if at and size and (not behind or not behind[0][:1].isalnum()) else ""


def _supposes(words: Lexicon, said: Sequence[Token], texts: Sequence[str]) -> str:
    """Return the verb by which a part of a sentence supposes something: say Bob agrees, pongamos que gana Ana.

    What is said to somebody, or is no statement, is a request: say hello to Bob.
    """
    at = 0
    while at < len(texts) and (lead := max(words.longest(_LEADS, texts, at), int(texts[at] in PAUSES))):
        at += lead
    size = next((size for size in (2, 1) if " ".join(texts[at : at + size]) in _SUPPOSING), 0)
    part = list(itertools.takewhile(lambda one: one.text not in PAUSES, said[at + size :]))
    if not (size and part) or any(one.kind in {Kind.LITERAL, Kind.QUOTE} or one.text == "to" for one in part):
        return ""
    states = size > 1 or (len(part) > 1 and (part[0].raw[:1].isupper() or part[0].text in _SUPPOSED))
    return " ".join(texts[at : at + size]) if states else ""
