"""Small talk: greetings, thanks, acknowledgements and calls for help, alone or with one another.

A text is small talk only if the word lists account for every word of it: "ok thanks" is, "thanks, now read it" is not.
People mix languages in it, so the lists of all languages are one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from phylactery_understanding.language.own_words import Span
from phylactery_understanding.language.word_files import entries, of_each_language
from phylactery_understanding.replies.answers import Phrases, kinds_of, plain_words, read_answer

TalkKind = Literal["help", "thanks", "farewell", "greeting", "fine", "listening"]
"""What small talk wants, in the order that counts where a text has several kinds: "ok, thanks" thanks."""
TOPICS: Final = ("files", "reminders", "mail", "memory", "web", "outputs", "more")
"""What help may be asked about."""
_FILE: Final = "talk.yaml"
_WITH: Final = "with"
_ASIDES: Final = frozenset({"thanks", "greeting", "farewell"})
_PUZZLED: Final = "puzzled"
_MAX_CHARACTERS: Final = 120
_QUESTION: Final = re.compile(r"[?¿؟？]+")
_PAUSE: Final = re.compile(r"[\s.…]+")
_DICTATES: Final = re.compile(
    r"(?i)(?::|\b(?:que\s+(?:diga|ponga)|diciendo|lo\s+siguiente|(?:est[ea]|el)\s+(?:texto|mensaje)"
    r"|saying|that\s+(?:says|reads)|the\s+following|this\s+(?:text|message)))[\s.…]*$"
)
"""How a message ends whose content is in the next ones: send this to Ann:, un correo que diga."""
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


def small_talk_in(text: str, starts: Sequence[int]) -> tuple[Span, ...]:
    """Return the messages of a joined text that only thank, greet, take leave or agree, if another says something.

    ``starts`` are the offsets at which further messages begin, each behind a line break; of other offsets nothing is
    known. Such a message belongs to none beside it: it is neither content nor a request. Laughter stays, because it may
    take back what was said, and so does what follows a message that says that its content follows.
    """
    if not starts or any(not 0 < start < len(text) or text[start - 1] != "\n" for start in starts):
        return ()
    cuts = [0, *starts, len(text)]
    parts = list(itertools.pairwise(cuts))
    asides = {part: _is_aside(text[slice(*part)]) for part in parts}
    opens = (at for at, part in enumerate(parts) if _dictates(text[slice(*part)]))
    found = tuple(part for part in parts[: next(opens, len(parts))] if asides[part])
    return found if len(found) < len(parts) else ()


def _dictates(text: str) -> bool:
    return _DICTATES.search(text) is not None and not _is_aside(text.rstrip(" :.…\n"))  # hola: dictates nothing


def _is_aside(text: str) -> bool:
    talk = read_talk(text)
    if talk is None or _LAUGHTER.search(text) or _QUESTION.search(text):
        return False
    return talk.kind in _ASIDES or (talk.kind == "fine" and read_answer(text) == "yes")


@cache
def _phrases() -> Phrases[str]:
    """Return the phrases of all languages that have a list."""
    return Phrases(phrase for file in of_each_language(_FILE) for phrase in _read(file))


def _read(file: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    lists: dict[str, Any] = {entry.name: entry.value for entry in entries(file)}
    for kind, phrases in (
        *((kind, lists[kind]) for kind in (*get_args(TalkKind), _PUZZLED, _WITH)),
        *lists["topics"].items(),
    ):
        for phrase in phrases:
            yield plain_words(phrase), kind
