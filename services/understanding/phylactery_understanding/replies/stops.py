"""Reading of words that stop what waits, or hold it: stop!, cancela todo, por favor para, hold on.

A text is read so only if the lists of all languages account for every word of it, as people mix languages in such
words. What it stops is for the caller to know; nothing can be started by it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

from phylactery_understanding.language.word_files import lists, of_each_language
from phylactery_understanding.replies.answers import Phrases, kinds_of, plain_words

Stop = Literal["stop", "hold", "pause", "lapse", "denied"]
"""Stop what waits, hold it, the person needs a moment (a lapse says only how long), or do not stop it."""
_Kind = Stop | Literal["wish", "with", "other"]
HOLDING: Final = frozenset({"hold", "pause", "lapse"})
"""What leaves whatever waits as it is; only "hold" says that nothing more is to happen."""

_FILE: Final = "stops.yaml"
_KINDS: Final[Mapping[str, _Kind]] = {
    "with": "with",
    "deny": "with",
    "wish": "wish",
    "lapse": "lapse",
    "pause": "pause",
    "hold": "hold",
    "stop": "stop",
    "neither": "denied",
    "other": "other",
}
"""What each list of a file is, a later one counting more."""
_ORDER: Final[tuple[Stop, ...]] = ("denied", "stop", "hold", "pause", "lapse")
_MAX_CHARACTERS: Final = 120
"""A longer text says more than to stop."""
_MARKS: Final = re.compile(r"[,.;:!?¡¿…\n]+")
_QUESTION: Final = re.compile(r"[?？]")


def read_stop(text: str) -> Stop | None:
    """Return what a text says of stopping if it says nothing else, or None; a bare question says nothing ("stop?")."""
    if len(text) > _MAX_CHARACTERS:
        return None
    found = set[_Kind]()
    for clause in filter(None, map(plain_words, _MARKS.split(text))):  # a denial is about its own clause: no, cancela
        kinds = kinds_of(clause, _phrases())
        if not kinds or "other" in kinds:
            return None
        found.update(kinds)
    if _QUESTION.search(text) and "wish" not in found:
        return None
    return next((kind for kind in _ORDER if kind in found), None)


@cache
def _phrases() -> Phrases[_Kind]:
    """Return the phrases of every language that has a list, and each denial of a stop as a phrase of its own."""
    words: dict[str, list[tuple[str, ...]]] = {}
    for file in of_each_language(_FILE):
        for name, phrases in lists(file):
            words.setdefault(name, []).extend(map(plain_words, phrases))
    found = Phrases[_Kind]()
    for name, kind in _KINDS.items():
        found.update(dict.fromkeys(words[name], kind))
    stops = (*words["stop"], *words["hold"])
    found.update({(*deny, *stop): "denied" for deny in words["deny"] for stop in stops if (*deny, *stop) not in found})
    return found
