"""What contents are compared with, and the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.text import Kind, Token, tokenize
from phylactery_understanding.requests.model import Fault

LONGEST: Final = 20_000
MASK = re.compile(r"«[a-z_]+»")
"""The placeholder of a redacted secret: its kind."""
FEW: Final = 2


@dataclass(frozen=True, slots=True)
class Source:
    """The texts that were read and that the user pointed to: their words and their names."""

    holds: Callable[[str], bool] = field(default=lambda _: False)
    named: Callable[[str], bool] = field(default=lambda _: False)
    some: bool = False


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The reason why contents are not what was asked for, and the tokens of the ask they correspond to."""

    fault: Fault | None
    used: frozenset[int]


def is_plain(word: str, words: Lexicon) -> bool:
    """Return True if a word says nothing by itself: the, hello, please."""
    return words.holds_any(("stop", "phatic", "please"), word)


def opened(tokens: Sequence[Token]) -> Iterator[Token]:
    """Return the words of a content, including quotations."""
    for token in tokens:
        if token.kind is Kind.QUOTE:
            yield from (one for one in tokenize(token.raw) if one.kind is not Kind.BREAK)
        else:
            yield token
