"""Small talk: greetings, thanks, acknowledgements and calls for help, alone or with one another.

A text is small talk only if the word lists account for every word of it: "ok thanks" is, "thanks, now read it" is not.
People mix languages in it, so the lists of all languages are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from phylactery_understanding.language.word_files import entries, of_each_language
from phylactery_understanding.replies.answers import kinds_of, plain_words

TalkKind = Literal["help", "thanks", "farewell", "greeting", "fine", "listening"]
"""What small talk wants, in the order that counts where a text has several kinds: "ok, thanks" thanks."""
TOPICS: Final = ("files", "reminders", "mail", "memory", "web", "outputs", "more")
"""What help may be asked about."""
_FILE: Final = "talk.yaml"
_WITH: Final = "with"
_PUZZLED: Final = "puzzled"
_MAX_CHARACTERS: Final = 120
_QUESTION: Final = re.compile(r"[?¿؟？]+")
_PAUSE: Final = re.compile(r"[\s.…]+")
_LAUGHTER: Final = re.compile(r"(?i)\ba?(?:j[aei]|h[ae]){2,}[jh]?\b")


@dataclass(frozen=True, slots=True)
class Talk:
    """Small talk of a kind; ``topic`` is what help is asked about, empty for no topic.

    ``puzzled`` says that the words ask for help only if they answer no question: I don't know, what?
    """

    kind: TalkKind
    topic: str = ""
    puzzled: bool = False


def read_talk(text: str) -> Talk | None:
    """Return the small talk that a text consists of, or None if it says anything else."""
    if not 0 < len(text.strip()) <= _MAX_CHARACTERS:
        return None
    if _PAUSE.fullmatch(text):
        return Talk("listening")
    words = plain_words(_LAUGHTER.sub("haha", _QUESTION.sub(" ", text)))
    if not words:
        return Talk("help") if _QUESTION.search(text) else None
    kinds = kinds_of(words, _phrases())
    puzzled = _PUZZLED in kinds and "help" not in kinds
    kind = "help" if puzzled else next((kind for kind in get_args(TalkKind) if kind in kinds), None)
    topics = [kind for kind in kinds if kind in TOPICS]
    if kind is None or (topics and kind != "help") or len(topics) > 1:
        return None
    return Talk(cast("TalkKind", kind), topics[0] if topics else "", puzzled)


@cache
def _phrases() -> dict[tuple[str, ...], str]:
    """Return the phrases of all languages that have a list."""
    return dict(phrase for file in of_each_language(_FILE) for phrase in _read(file))


def _read(file: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    lists: dict[str, Any] = {entry.name: entry.value for entry in entries(file)}
    for kind, phrases in (
        *((kind, lists[kind]) for kind in (*get_args(TalkKind), _PUZZLED, _WITH)),
        *lists["topics"].items(),
    ):
        for phrase in phrases:
            yield plain_words(phrase), kind
