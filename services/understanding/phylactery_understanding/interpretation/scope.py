"""The surroundings of an ask in a message: its sentences, its clauses, and the operators near it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from phylactery_understanding.interpretation.model import InterpretedAsk, covers, is_covered
from phylactery_understanding.language.lexicon import OPERATORS, Lexicon
from phylactery_understanding.language.text import STOPS, Kind, Token
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.replies.answers import read_answer, says_to_do
from phylactery_understanding.requests.model import Fault, Label, Request
from phylactery_understanding.requests.operators import INVERTED

SENTENCE_ENDS: Final = frozenset(".!?…;")
KEEPING: Final = frozenset({"remind", "reminder", "remember", "alarm"})
ENDING: Final = frozenset({"cancel", "stop", "disable", "forget"})
"""Effects that people request by saying that they no longer need something."""
JOINTS: Final = word_set("clause_joints")
SMALL_WORDS: Final = ("stop", "article", "please")
RELATIVE: Final = word_set("relatives")
_OR: Final = word_set("or") | word_set("or_elsewhere")
_YES: Final = "sí"
"""Only the accent tells a yes from a condition."""


class Scope:
    """The surroundings of an ask in a message: its sentences, its clauses, and the operators near it."""

    def __init__(
        self, ask: InterpretedAsk, request: Request, strange: Sequence[tuple[int, int]], newest: int = 0
    ) -> None:
        self.tokens, self.words, self.newest = request.tokens, request.lexicon, newest
        self.texts = [one.text for one in self.tokens]
        self.covered = [is_covered(ask, one) for one in self.tokens]
        self.sentences = sentence_numbers(self.tokens)
        self.places: dict[int, list[int]] = {}
        for at, number in enumerate(self.sentences):
            self.places.setdefault(number, []).append(at)
        clauses = clause_numbers(request, self.sentences)
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
        named = {self.sentences[at] for at, one in enumerate(self.tokens) if any(covers(span, one) for span in targets)}
        self.requesting = named | {self.sentences[at] for at in late} if named else self.mine
        near |= {clauses[at] for at in late}
        found = list(operators_in(self.tokens, request.lexicon))
        empty = _empty_clauses(request, clauses, {at + step for at, size, _ in found for step in range(size)})
        ended = ended_needs(request) if ends_something(ask) else set[int]()
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
            opening = [at for at in self.places[number] if self.tokens[at].kind is Kind.WORD]
            found.update(opening[:2])
        return found

    def begins(self, place: int) -> bool:
        """Return True if a sentence begins at a place."""
        before = self.tokens[place - 1] if place else None
        return before is None or before.text in SENTENCE_ENDS or before.kind is Kind.BREAK


def ends_something(ask: InterpretedAsk) -> bool:
    """Return True if a tool's name says that it ends something, as people ask for by what they need no more."""
    return not ENDING.isdisjoint(ask.tool.lower().split("_"))


def _chooses(request: Request, newest: int) -> bool:
    """Return True if the message before the newest leaves a choice, as between this one and that one."""
    return any(one.text in _OR for one in request.tokens if one.start < newest)


def ended_needs(request: Request) -> set[int]:
    """Return the places of phrases by which people say that they need something no more."""
    texts = [one.text for one in request.tokens]
    return {at + step for at in range(len(texts)) for step in range(request.lexicon.match("unneeded", texts, at))}


def _is_asked_for(request: Request, ask: InterpretedAsk, at: int, fault: Fault) -> bool:
    """Return True if the grammar took an operator for the verb of a request for what is quoted: pide la tetera."""
    if fault.kind not in {"report", "retraction"}:
        return False
    for one in request.asks:
        verb = one.tokens[one.labels.index(Label.VERB)]
        retracts = fault.kind == "retraction" and not one.verb.meanings.isdisjoint(ENDING | {"read"})
        if verb is request.tokens[at] and not retracts:
            return any(is_covered(ask, token) for token in one.of(Label.OBJECT, Label.CONTENT, Label.QUOTE))
    return False


def operators_in(tokens: Sequence[Token], words: Lexicon) -> Iterator[tuple[int, int, Fault]]:
    """Return the operators in some tokens, by their positions and sizes."""
    texts = [one.text for one in tokens]
    place = 0
    while place < len(tokens):
        size, kind = words.operator(texts, place) if tokens[place].kind is not Kind.QUOTE else (0, "")
        size *= words.match("reason", texts, place) <= size
        if size and not _is_plain_here(tokens, texts, place, size):
            yield place, size, Fault(kind, " ".join(texts[place : place + size]))
        place += max(size, 1)


def _is_plain_here(tokens: Sequence[Token], texts: Sequence[str], place: int, size: int) -> bool:
    """Return True if an operator is none at its place: it should say that; but not: should it rain, say that it rains.

    An inverted verb begins a condition, and a conjunction introduces something.
    """
    begins = not place or tokens[place - 1].kind in STOPS or texts[place - 1] in JOINTS
    ends = place + size >= len(tokens) or tokens[place + size].kind in STOPS
    if tokens[place].raw.lower() == _YES and size == 1:
        return True
    return (texts[place] in INVERTED and not begins) or (ends and texts[place + size - 1] in RELATIVE and size > 1)


def sentence_numbers(tokens: Sequence[Token]) -> list[int]:
    """Return the sentence number of each token."""
    found, number = [], 0
    for one in tokens:
        found.append(number)
        if one.kind is Kind.BREAK or (one.kind is Kind.MARK and one.text in SENTENCE_ENDS):
            number += 1
    return found


def clause_numbers(request: Request, sentences: Sequence[int]) -> list[tuple[int, int]]:
    """Return the clause of each token: the ask the grammar assigned it to, or the text between two joints."""
    asks = {id(token): number for number, ask in enumerate(request.asks, 1) for token in ask.tokens}
    found: list[tuple[int, int]] = []
    number = -1
    for at, one in enumerate(request.tokens):
        if one.text in JOINTS or (at and sentences[at] != sentences[at - 1]):
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
        and one.kind not in STOPS
        and not words.verb(one.text)
        and not words.holds_any(names, one.text)
    }
    return set(clauses) - saying
