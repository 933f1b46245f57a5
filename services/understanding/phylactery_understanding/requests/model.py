"""A parsed message: its asks, and a label for each of its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon, Verb, lexicon
from phylactery_understanding.language.text import Kind, Token
from phylactery_understanding.language.times import Times
from phylactery_understanding.language.vocabulary import word_set

ARTIFACTS: Final = word_set("artifacts")


class Label(StrEnum):
    """The role assigned to a token."""

    VERB = "verb"
    FILLER = "filler"
    ARTICLE = "article"
    GOAL = "goal"
    """A preposition that introduces a goal."""
    SOURCE = "source"
    """A preposition and its object that are a source, a comparison or a reason, and never a goal."""
    OBJECT = "object"
    CONTENT = "content"
    QUOTE = "quote"
    TIME = "time"
    REASON = "reason"
    OPERATOR = "operator"
    STATEMENT = "statement"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why words are not understood: an operator of a class, and the words that express it."""

    kind: str
    words: str


@dataclass
class Ask:
    """One request: a clause with its verb, and a label for each of its tokens. Once parsed, it stays as it is.

    ``verbatim`` says that its content follows a colon; ``refers`` that a pronoun is its object; ``there`` that a file
    is called "that one", one of ``files`` that the message names before; ``before`` is the statement before it,
    ``previous`` the ask that its pronoun may refer to; ``fault`` is the reason why it is not a request after all.
    """

    verb: Verb
    form: str
    tokens: list[Token]
    labels: list[Label]
    times: Times
    lexicon: Lexicon
    verbatim: bool = False
    refers: bool = False
    there: bool = False
    files: tuple[Token, ...] = ()
    before: tuple[Token, ...] = ()
    topic: Token | None = None
    previous: Ask | None = None
    fault: Fault | None = None

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of its words."""
        return frozenset(one.stem for one in self.tokens)

    @cached_property
    def joined(self) -> Ask | None:
        """Return the ask combined with the one its pronoun refers to: make a list, and put it in a.txt."""
        first = self.previous
        if first is None:
            return None
        return Ask(
            Verb(self.verb.meanings | first.verb.meanings, self.verb.joined, self.verb.language),
            self.form,
            [*first.tokens, *self.tokens],
            [*first.labels, *self.labels],
            Times(
                first.times.features | self.times.features,
                first.times.places | {place + len(first.tokens) for place in self.times.places},
            ),
            self.lexicon,
            verbatim=self.verbatim or first.verbatim,
            before=first.before,
            topic=self.topic,
            fault=first.fault or self.fault,
        )

    def of(self, *labels: Label) -> Iterator[Token]:
        """Return the tokens with a label."""
        return (token for token, label in zip(self.tokens, self.labels, strict=True) if label in labels)


@dataclass
class Request:
    """The asks of one message. ``fault`` is about the whole message; ``numbered``: its tasks have numbers.

    It is as parsed, for every call that is compared with it: what is derived of it is kept with it.
    """

    text: str
    tokens: list[Token]
    asks: list[Ask] = field(default_factory=list)
    statements: list[list[Token]] = field(default_factory=list)
    fault: Fault | None = None
    lexicon: Lexicon = field(default_factory=lexicon)
    numbered: bool = False

    @property
    def complete(self) -> bool:
        """Return True if every token was placed."""
        return self.fault is None

    def trace(self) -> list[tuple[str, str]]:
        """Return every token with its label."""
        labels = {
            id(token): str(label) for ask in self.asks for token, label in zip(ask.tokens, ask.labels, strict=True)
        }
        return [
            (one.raw, labels.get(id(one), str(Label.STATEMENT))) for one in self.tokens if one.kind is not Kind.BREAK
        ]

    @cached_property
    def texts(self) -> list[str]:
        """Return its words, folded."""
        return [one.text for one in self.tokens]

    @cached_property
    def raws(self) -> tuple[str, ...]:
        """Return its words as written."""
        return tuple(one.raw for one in self.tokens)

    @cached_property
    def forms(self) -> frozenset[str]:
        """Return the same without duplicates."""
        return frozenset(self.texts)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stems of its words."""
        return frozenset(one.stem for one in self.tokens)

    @cached_property
    def negations(self) -> list[int]:
        """Return the places behind its first words of negation: don't, do not, no."""
        words, starts = self.lexicon, self.lexicon.phrases["negation"]
        return [
            at + 1
            for at, text in enumerate(self.texts)
            if text in starts and (words.holds("negation", text) or words.match("negation", self.texts, at) > 1)
        ]
