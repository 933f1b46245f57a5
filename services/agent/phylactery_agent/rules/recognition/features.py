"""Features of a message: its words, their neighbours and their stems, however they are spelled in a chat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from phylactery_agent.rules.spelling import unaccented, written_out

MAX_CHARS: Final = 300
"""The characters that are read of a message: a longer one is not compared with phrases."""
_VALUES: Final = (
    (re.compile(r"\"[^\"]*\"|«[^»]*»|“[^”]*”"), " _quoted "),
    (re.compile(r"https?://\S+"), " _link "),
    (re.compile(r"\S+@\S+\.\S+"), " _address "),
    (re.compile(r"\b[\w./-]*\w\.[a-z]{2,4}\b"), " _file "),
    (re.compile(r"\d+(?:[:.,/-]\d+)*"), " _number "),
    (re.compile(r"['’](?=[a-z])"), ""),
    (re.compile(r"[\U0001F300-\U0001FAFF☀-➿]+"), " _picture "),
)
"""What a message names, by kinds: which file or hour it is says nothing about what is wanted."""
_STRETCHED: Final = re.compile(r"([a-z])\1{2,}")
_LAUGHTER: Final = re.compile(r"\ba?(?:[jh][aei]){2,}[jh]?\b")
_TOKEN: Final = re.compile(r"_?[^\W_]+|[?]")
_STEMS: Final = (4, 6)


def words_of(text: str) -> list[str]:
    """Return the words of a message without case, accents and chat spelling; a value stands as its kind."""
    folded = unaccented(text.casefold())
    for values, name in _VALUES:
        folded = values.sub(name, folded)
    folded = _LAUGHTER.sub("haha", _STRETCHED.sub(r"\1", folded))
    return [written_out(word) for word in _TOKEN.findall(folded)]


def features_of(words: Sequence[str]) -> Iterator[str]:
    """Yield the features of a message's words."""
    plain = [word for word in words if word != "?"]
    yield from words
    if plain:
        yield f"^{plain[0]}"
        yield f"{plain[-1]}$"
    for one, other in pairwise(plain):
        yield f"{one} {other}"
    for one, other in zip(plain, plain[2:], strict=False):
        yield f"{one} * {other}"
    for word in plain:
        for length in _STEMS:
            if len(word) > length:
                yield f"{word[:length]}~"
