"""What a text asks for, as numbers: of each verb that asks, its meaning, alone and with each word near it.

Like prints they tell whether a text asks for something, and nothing else: neither what it says nor in which order. They
are of no tool: any catalog can be compared with them later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice, repeat
from typing import Final
from zlib import crc32

from phylactery_understanding.language.lexicon import lexicons
from phylactery_understanding.language.text import STEM

from phylactery_riskgate.domain.intent.folding import atoms
from phylactery_riskgate.domain.intent.languages import AUXILIARIES, DELEGATING, SMALL, STATING

MAX_REQUESTS: Final = 24_000
"""The number of numbers kept of one result, those of a meaning alone first."""
_BEFORE, _AFTER = 2, 7
"""The numbers of tokens before and after a verb that may say what it is about."""
_SHORTEST: Final = 3
_LONGEST_PHRASE: Final = max(map(len, DELEGATING))


def request_number(meaning: str, about: str = "") -> int:
    """Return the number of a meaning, or of a meaning with a word near it; only the word's first letters count."""
    return crc32(f"r:{meaning} {about[:STEM]}".encode())


def requests_in(texts: Iterable[Sequence[str]], *, own: bool = False) -> set[int]:
    """Return the numbers of what tokenized texts ask for, and ANYTHING if there are more than MAX_REQUESTS.

    In the user's ``own`` words every verb counts: when should I send it?
    """
    asking: dict[str, None] = {}
    about: dict[tuple[str, str], None] = {}
    for tokens in texts:
        for place in _verbs(tokens):
            if not own and _tells(tokens, place):
                continue
            verb = tokens[place]
            asking[verb] = None
            if len(about) <= MAX_REQUESTS:
                near = map(_stems, tokens[max(place - _BEFORE, 0) : place + _AFTER])
                about.update(dict.fromkeys(zip(repeat(verb), chain.from_iterable(near), strict=False)))
    alone = (request_number(meaning) for verb in asking for meaning in meanings_of(verb))
    pairs = (request_number(meaning, one) for verb, one in about for meaning in meanings_of(verb))
    found = set(islice(chain(alone, pairs), MAX_REQUESTS))
    return found if len(about) < MAX_REQUESTS and next(pairs, None) is None else found | {ANYTHING}


ANYTHING: Final = request_number("")
"""The number of texts that ask for more than is kept: in them, anything may be asked for."""


@lru_cache(maxsize=65_536)
def meanings_of(word: str) -> tuple[str, ...]:
    """Return the meanings of a verb form in whatever language, in a fixed order; none for any other word."""
    return tuple(sorted(lexicons().meanings(word)))


def delegates(tokens: Sequence[str]) -> bool:
    """Return True if the user leaves it to a text what is done: do what it says, follow the instructions."""
    starts = range(len(tokens))
    return any(tuple(tokens[at : at + size]) in DELEGATING for at in starts for size in range(1, _LONGEST_PHRASE + 1))


def _verbs(tokens: Sequence[str]) -> list[int]:
    verbs = {one for one in set(filter(lexicons().may_ask, frozenset(tokens))) if meanings_of(one)}
    return [place for place, token in enumerate(tokens) if token in verbs] if verbs else []


def _tells(tokens: Sequence[str], place: int) -> bool:
    """Return True if a verb stands behind its subject and so does not ask: I send, they will send."""
    one = tokens[place - 1] if place else ""
    return one in STATING or (one in AUXILIARIES and place > 1 and tokens[place - 2] in STATING)


@lru_cache(maxsize=65_536)
def _stems(token: str) -> tuple[str, ...]:
    """Return the letters by which the words of a token count as what a verb near them is about."""
    return tuple(one[:STEM] for one in atoms(token) if len(one) >= _SHORTEST and one not in SMALL)
