"""Parser for messages: splits a message into asks, and labels every word.

A parse is either complete or it fails: every token of an ask is a verb, a goal, content, a filler or an operator that
the grammar knows. The names in a message are open; to whom, whether and how something is said is a closed set.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon, lexicons
from phylactery_understanding.language.text import (
    MAX_TOKENS,
    STOPS,
    Kind,
    Token,
    is_disguised,
    is_strange_mark,
    tokenize,
    written,
)
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.asks import read_ask
from phylactery_understanding.requests.clauses import SENTENCE_ENDS, clauses_of, sentences_of
from phylactery_understanding.requests.continuation import (
    awaits,
    extend,
    is_meant,
    is_signature,
    is_told,
    take_rest,
    takes_quote,
    tells_more,
)
from phylactery_understanding.requests.model import Ask, Fault, Label, Request
from phylactery_understanding.requests.operators import HARD, OPENING, around, left_open, set_aside
from phylactery_understanding.requests.verbs import fronted_verb, thing_at, verb_at, wished_goal

_MOST_ASKS: Final = 40
_TASKS: Final = word_set("tasks")
_HELLO: Final = word_set("hello")
_COURTEOUS: Final = ("please", "greet", "article", "stop")
_HEADING: Final = 4
"""The maximum number of words of a heading that describes the lines below."""
_ADDRESSED: Final = word_set("addressed")
_PLACES: Final = 2
"""The maximum number of digits of a list number."""
_MAY_I: Final = (["you", "can"], ["u", "can"], ["you", "could"], ["you", "should"], ["we", "should"])
"""Openings that are polite, and in a question ask for permission."""


def parse(text: str) -> Request:
    """Parse a message. Anything that cannot be placed makes it not understood."""
    tokens = tokenize(text)
    return _Parser(Request(text, tokens, lexicon=lexicons().of(tokens))).parse()


class _Parser:
    """A left-to-right parser for one message."""

    def __init__(self, request: Request) -> None:
        self._words, self._request = request.lexicon, request
        self._before: list[Token] = []
        self._topic: Token | None = None
        self._sentence_now: Sequence[Token] = ()
        self._consulted: Sequence[Token] | None = None
        """The sentence in which somebody is to be asked first: what it asks for then depends on the answer."""
        self._numbers: set[int] = set()
        """Numbers that end a sentence, as those of a list on one line may."""

    def parse(self) -> Request:
        request = self._request
        if len(request.tokens) >= MAX_TOKENS:
            request.fault = Fault("length", "")
            return request
        if is_disguised(request.text):
            request.fault = Fault("disguise", "")
            return request
        sentences = list(sentences_of(request.tokens))
        place = 0
        while place < len(sentences):
            if len(request.asks) > _MOST_ASKS:
                request.fault = Fault("length", "")
                break
            place += self._sentence(sentences, place)
        strange = _strange_mark(request)
        if strange:
            request.fault = request.fault or Fault("mark", strange)
        return request

    def _sentence(self, sentences: Sequence[list[Token]], place: int) -> int:
        """Parse one sentence, and following ones that are its content; return how many."""
        tokens = self._sentence_now = sentences[place]
        question = any(one.text == "?" for one in tokens)
        said = [one for one in tokens if one.kind is not Kind.BREAK and one.text not in SENTENCE_ENDS]
        if not said:
            if question and self._request.asks:  # do it!?
                self._request.asks[-1].fault = self._request.asks[-1].fault or Fault("question", "?")
            return 1
        if self._is_number_of(said, tokens, last=place + 1 == len(sentences)):
            return 1
        if self._topic_of(said):
            said = said[2:]
            if not said:
                return 1
        if not self._request.asks and _is_heading(self._words, tokens, said, sentences[place + 1 :]):
            self._request.fault = self._request.fault or Fault("report", said[-1].text)
        clauses = clauses_of(self._words, said)
        first = len(self._request.asks)
        start = 0
        for number, clause in enumerate(clauses[: _MOST_ASKS + 1]):
            start = next(at for at in range(start, len(said)) if said[at] is clause[0])
            opens = not (self._request.asks or number or self._request.statements)
            aside = set_aside(self._words, said[start : start + OPENING], opens=opens, joined=number + 1 < len(clauses))
            self._request.fault = self._request.fault or aside
            self._clause(clause, question=question, joined=number + 1 < len(clauses))
        asks = self._request.asks[first:]
        if asks and takes_quote(asks[-1], sentences[place + 1 :]):
            return 2
        if asks and awaits(asks[-1], sentences[place + 1 :]):
            asks[-1].verbatim = True
            return 1 + take_rest(asks[-1], sentences[place + 1 :], at_line=True)
        if asks and asks[-1].verbatim:
            return 1 + take_rest(asks[-1], sentences[place + 1 :], at_line=not list(asks[-1].of(Label.CONTENT)))
        return 1

    def _is_number_of(self, said: Sequence[Token], tokens: Sequence[Token], *, last: bool) -> bool:
        """Return True if a sentence is only the list number of the next one, and follows another number."""
        number = said[-1].text if said[-1].kind is Kind.NUMBER and tokens[-1].text == "." else ""
        if not number.isdecimal() or len(number) > _PLACES:
            return False
        follows = int(number) - 1 in self._numbers
        self._numbers.add(int(number))
        if len(said) == 1 and follows and not last:
            self._request.numbered = True
            return True
        return False

    def _topic_of(self, said: Sequence[Token]) -> bool:
        """Return True if a sentence begins with its topic: notes.txt."""
        if len(said) > 1 and said[0].kind is Kind.LITERAL and said[1].text == ":":
            self._topic = said[0]
            return True
        return False

    def _clause(self, clause: list[Token], *, question: bool, joined: bool) -> None:
        verb = verb_at(self._words, clause, 0)
        fronted = None
        if verb is None:
            verb = fronted = fronted_verb(self._words, clause)
        if verb is None and self._request.asks:
            verb = wished_goal(self._words, clause)
        if verb is None and not question and not self._request.asks:
            verb = thing_at(self._words, clause)
        texts = [one.text for one in clause]
        corrects = bool(self._request.asks) and verb is not None and verb < self._words.match("correction", texts, 0)
        if verb is None or corrects or is_told(self._words, clause, verb):
            self._state(clause, question=question, joined=joined)
            return
        polite = any(
            self._words.match("polite", texts, at) and texts[at : at + 2] not in _MAY_I for at in range(verb)
        ) or any(one.text in {"me", "le", "les", "nos", "lo", "la"} for one in clause[:verb])
        if "te" in texts[:verb] and not polite:
            self._state(clause, question=question, joined=joined)
            return
        again = (
            verb_at(self._words, clause, verb + 2, near=True)
            if texts[verb + 1 : verb + 2] in (["and"], ["y"], ["&"])
            else None
        )
        ask = read_ask(self._words, clause, verb if again is None else again, self._before, self._topic)
        if fronted is not None:
            for at in range(fronted):
                if ask.labels[at] is Label.ARTICLE and not self._words.holds("article", texts[at]):
                    ask.labels[at] = Label.OBJECT
        if verb and written(clause[verb].raw) == "de":
            ask.fault = ask.fault or Fault("leftover", "de")  # un día de estos: an order has an accent, dé
        if question and not polite and not ask.verbatim:
            ask.fault = ask.fault or Fault("question", "?")
        left = ask.fault is not None and ask.fault.kind == "negation" and left_open(self._words, texts)
        if ask.fault is not None and (ask.fault.kind in HARD or left):
            self._request.fault = self._request.fault or ask.fault
        self._depends(ask, clause, verb)
        _cuts_short(self._request.asks, ask)
        ask.previous = self._request.asks[-1] if ask.refers and self._request.asks else None
        self._request.asks.append(ask)

    def _depends(self, ask: Ask, clause: list[Token], verb: int) -> None:
        """Mark what depends on the answer of somebody who is asked first, in the same sentence."""
        if self._consulted is not None and self._consulted is self._sentence_now:
            ask.fault = ask.fault or Fault("condition", " ".join(one.raw for one in clause[:6]))
            self._request.fault = self._request.fault or ask.fault
        if self._words.match("consult", [one.text for one in clause], verb):
            self._consulted = self._sentence_now

    def _state(self, clause: list[Token], *, question: bool, joined: bool) -> None:
        """Parse a clause without a request: small talk, a reason, a statement.

        ``joined`` says that more of its sentence follows, to which the clause then applies.
        """
        texts = [one.text for one in clause]
        fault = None
        place, open_words = 0, 0
        while place < len(clause):
            size = self._words.longest(("please", "greet"), texts, place)
            if size or clause[place].kind in STOPS or clause[place].kind is Kind.QUOTE:
                place += max(size, 1)
                continue
            open_words += 1
            place += 1
        if not open_words:
            return
        if self._request.asks and not question and tells_more(texts) and self._request.asks[-1].fault is None:
            extend(self._words, self._request.asks[-1], clause)
            return
        if self._request.asks and not question and is_meant(self._words, self._request.asks[-1], clause):
            self._request.asks[-1].tokens.extend(clause)
            self._request.asks[-1].labels.extend(Label.CONTENT for _ in clause)
            return
        fault = around(self._words, clause, texts, asked=bool(self._request.asks), joined=joined)
        if question and not self._request.asks and fault is None:
            self._before = [*self._before, *clause]
            return
        if question:
            fault = fault or Fault("question", "?")
        if fault is None and self._request.asks and is_signature(self._words, clause, self._sentence_now):
            return
        if fault is None and self._request.asks and not self._words.match("reason", texts, 0):
            fault = Fault("trailing", " ".join(one.raw for one in clause[:6]))
        if fault is not None:
            self._request.fault = self._request.fault or fault
            for ask in self._request.asks:
                ask.fault = ask.fault or fault
            return
        self._request.statements.append(clause)
        self._before = [*self._before, *clause]


def _cuts_short(before: Sequence[Ask], ask: Ask) -> None:
    """Mark the text of the ask before one that says more of it as unfinished: saying hello, do not come, see you."""
    verb = ask.labels.index(Label.VERB)
    denies = ask.fault is not None and ask.fault.kind == "negation"
    addresses = any(one.text in _ADDRESSED for one in ask.tokens[verb + 1 : verb + 2]) or ask.verb.joined == "te"
    if (denies or addresses) and before and not before[-1].verbatim and before[-1].labels[-1] is Label.CONTENT:
        before[-1].fault = before[-1].fault or Fault("content", ask.tokens[0].raw)


def _strange_mark(request: Request) -> str:
    """Return an unusual mark between words outside of literal text, or an empty string."""
    verbatim = {id(token) for ask in request.asks if ask.verbatim for token in ask.of(Label.CONTENT)}
    marks = [one.raw for one in request.tokens if one.kind is Kind.MARK and id(one) not in verbatim]
    commented = any(first + second in {"/*", "<!"} for first, second in itertools.pairwise(marks))
    return "/*" if commented else next((one for one in marks if is_strange_mark(one)), "")


def _is_heading(words: Lexicon, tokens: Sequence[Token], said: Sequence[Token], later: Sequence[list[Token]]) -> bool:
    """Return True if a short line describes the lines below it: Things I refuse to do."""
    below = any(one.kind is Kind.BREAK for one in (later[0] if later else ())[:1])
    texts = [one.text for one in said]
    spoken = [one.text for one in said if one.kind is Kind.WORD]
    small = all(one in _TASKS or words.holds_any(_COURTEOUS, one) for one in spoken)
    ends = tokens[-1].text in SENTENCE_ENDS or texts[-1] == ","
    short = len(said) <= _HEADING or texts[-1] == ":"
    if not below or ends or small or texts[0] in _HELLO or not short:
        return False
    return verb_at(words, said, 0) is None and any(one.kind is Kind.WORD for one in said)
