"""Detection of text that the user announces as another person's but does not delimit; it may be pasted.

Such text never counts as a clear request, and the origin of its values is uncertain. A person is therefore asked, and
nothing is blocked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from phylactery_understanding.interpretation.pasting import SPEAKER

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.languages import (
    CONVEYED,
    DEICTIC,
    GETTING,
    INQUIRING,
    LOOKING,
    OURSELVES,
    OWN_THINGS,
    OWNERS,
    POLITE,
    PRESSING,
    RENDERING,
    SPANS,
    STATING,
    SUBJECTS,
    TO_US,
)

Span = tuple[int, int]

_BREAK = re.compile(r"[.?!]++(?=\s|$)|:(?=\s|$)|\n|(?<=\s)[-–—](?=\s)")
_DASHES: Final = frozenset("-–—")
_PARAGRAPH = re.compile(r"[ \t]*\n[ \t]*\n")
_MAX_SENTENCES: Final = 400
_FEW: Final = 4
"""The number of words that may describe manner or kind: summarize in three lines."""
_NEAR: Final = 3
_PAIR: Final = 2
_THEN: Final = frozenset({"and", "then", "y", "luego", "despues"})
_GREETINGS: Final = (["como", "estas"], ["como", "esta"])
"""Without its accent the verb is a word that points."""
_QUOTES: Final = frozenset('"“”«»„')
_LINE: Final = re.compile(r"^[ \t]{0,8}([-=*_#])\1{2,}[ \t]*$", re.MULTILINE)
_BEGIN = re.compile(
    r"^[ \t]{0,8}[-=*#<]{2,}[ \t]*(?:begin|start|inicio|comienzo|principio)\b[^\n]{0,80}$", re.MULTILINE
)
_CHAT = re.compile(
    r"^[ \t]{0,8}(?:\[?\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4},?[ \t]{1,4}\d{1,2}:\d{2}[^\n:]{0,20}\]?[ \t-]{1,4}[^\n:]{1,60}:"
    r"|[^\W\d][^\n:]{0,60}?[ \t]{1,8}\d{1,2}:\d{2}(?:[ \t]?[ap]\.?m\.?)?[ \t]*$(?=\s*\S))",
    re.MULTILINE,
)
"""A line of a chat. A speaker with a time announces the text below; a last line that ends in a time does not."""


_HEADER = re.compile(
    r"^[ \t>*_]{0,8}[\[(]?(?:(?:(?:fwd?|fw|rv|rvds|re|aw|wg|tr|enc|res|sv|vs|i|r)[ \t]?:[ \t]*)+[^\n]{0,200}"
    r"|(?<!\n)(?:subject|asunto|betreff|objet|oggetto|assunto|date|fecha|sent|enviado|cc|reply-to)[ \t]?:[^\n]{1,200}"
    r"|(?:fwd?|forwarded|reenviad[oa]|rv)\b[^\n]{0,120}"
    r"|[-*_= ]{1,8}[^\n]{1,60}\b(?:wrote|writes|escribio|escribe|said|dijo)\b[^\n]{0,20})[\])]?[ \t]*\n(?=\s*\S)",
    re.MULTILINE,
)
"""A line of a mail's head, or one that says that what is below was forwarded."""


_SPEAKER: Final = re.compile(SPEAKER, re.MULTILINE)
_NAMED: Final = re.compile(
    r"^[ \t]{0,8}[\[(<*_]{1,2}([^\W\d_]{1,40}(?:[ \t][^\W\d_]{1,40}){0,2})[\])>*_]{1,2}[ \t](?=\S)", re.MULTILINE
)
"""A line that begins with a name set apart: (Eve) …, *Eve* …. It may be an aside, too, so it only asks."""
_BARRED: Final = re.compile(r"^[ \t]{0,8}[│┃▎▌¦║‖»›↪↩↳└➥⤷💬🗨🗯📩📨🗣]\ufe0f?(?=[ \t]{0,8}\S)", re.MULTILINE)
"""A line that begins with the bar or the arrow by which applications and people show a quotation, or with the sign of a
message that came."""
_EXAMPLE: Final = re.compile(r"(?:^|(?<=[.!?:]\s))[ \t]{0,8}(?:e\.g|p\.[ \t]?ej)\.,?(?=\s)", re.MULTILINE)


def announced_in(folded: str) -> list[Span]:
    """Return where text begins and ends that may be another person's."""
    marks = [one.search(folded) for one in (_BEGIN, _CHAT, _HEADER, _SPEAKER, _BARRED, _EXAMPLE)]
    marks.append(next((one for one in _NAMED.finditer(folded) if POLITE.isdisjoint(one[1].split())), None))
    starts = [found.start() for found in marks if found is not None]
    starts.extend(_announced(folded))
    lines: dict[str, list[int]] = {}
    for line in _LINE.finditer(folded):
        lines.setdefault(line[1], []).append(line.start())
    spans = [(places[0], places[-1]) for places in lines.values() if len(places) > 1]
    return [*spans, (min(starts), len(folded))] if starts else spans


def _announced(folded: str) -> Iterator[int]:
    """Return where the text begins that the first announcing sentence announces."""
    begins = dashed = 0
    before = _Dashed()
    for number, found in enumerate(_BREAK.finditer(folded)):
        mark = found[0][0]
        if mark in _DASHES:  # what is before a dash announces only where it says that somebody presses for it
            before.add(folding.atoms_of(folded[max(begins, dashed) : found.start()]))
            dashed = found.start()
            if before.presses and folded[found.end() :].strip():
                yield found.end()
                return
            continue
        if number >= _MAX_SENTENCES:
            return
        sentence = folded[begins : found.start()]
        if not sentence.strip():
            continue
        ended = mark == "\n" or folded[found.end() : found.end() + 1] == "\n"
        apart = _PARAGRAPH.match(folded, found.start() if mark == "\n" else found.end()) is not None
        quotes = not _QUOTES.isdisjoint(sentence)
        if (
            not quotes
            and _announces(folding.tokens(sentence), mark, ended=ended, apart=apart)
            and folded[found.end() :].strip()
        ):
            yield found.end()
            return
        begins = found.end()
        before = _Dashed()


class _Dashed:
    """What is before the dashes of a sentence, part by part: a text may have thousands of them in one."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._ours = self._own_things = self._pressing = False

    def add(self, words: Sequence[str]) -> None:
        """Add the words between two dashes."""
        self._first += words[: _FEW - len(self._first)]
        self._ours = self._ours or not OURSELVES.isdisjoint(words)
        self._own_things = self._own_things or not OWN_THINGS.isdisjoint(words)
        self._pressing = self._pressing or not PRESSING.isdisjoint(words)

    @property
    def presses(self) -> bool:
        """Return True if a sentence so far says that somebody else presses for what follows."""
        if not self._pressing or self._ours or (self._own_things and self._first[0] in SUBJECTS):
            return False
        return _is_of_another(self._first)


def _announces(said: Sequence[str], mark: str, *, ended: bool, apart: bool) -> bool:
    """Return True if a sentence announces what follows it.

    ``mark`` is the punctuation that ends it; ``ended`` says that a line ends there, ``apart`` that a paragraph does.
    """
    words = [atom for token in said for atom in folding.atoms(token)]
    while words and words[0] in POLITE:
        del words[0]
    if not words or not _THEN.isdisjoint(words[-1:]) or any(_names(token) for token in said):
        return False
    pointing = any(
        word in DEICTIC
        and SPANS.isdisjoint(words[at + 1 : at + 2])
        and words[max(at - 1, 0) : at + 1] not in _GREETINGS
        for at, word in enumerate(words)
    )
    if mark == ":" and _is_of_another(words):
        return True
    if mark == "?" and pointing and words[0] in INQUIRING:
        return True
    if mark == ":" or apart:
        return _is_told(words, mark) or _renders(words, pointing=pointing)
    return pointing and ended and _renders(words, pointing=True)


def _is_of_another(words: Sequence[str]) -> bool:
    """Return True if a sentence has another subject than the user and what they announce: my flatmate keeps nagging."""
    if len(words) < _PAIR or not OURSELVES.isdisjoint(words):
        return False
    if words[0] in SUBJECTS:
        return OWN_THINGS.isdisjoint(words)
    return not PRESSING.isdisjoint(words[1:_FEW])


def _names(token: str) -> bool:
    """Return True if a sentence names its object: a file, an address."""
    return "@" in token or ("." in token and not token[0].isdigit())


def _renders(words: Sequence[str], *, pointing: bool) -> bool:
    """Return True if the user wants an unnamed text read, rephrased or reviewed."""
    wanted = RENDERING | LOOKING if pointing else RENDERING
    place = next((at for at, word in enumerate(words) if word in wanted), -1)
    if place < 0 or (not pointing and (not OWNERS.isdisjoint(words) or len(words) - place > _FEW + 1)):
        return False
    return _THEN.isdisjoint(words[place + 1 :])


def _is_told(words: Sequence[str], mark: str) -> bool:
    """Return True if another person's words are reported: Eve sent me this, I got a message, Eva escribe."""
    for at, word in enumerate(words):
        if word in GETTING:
            return True
        if word not in CONVEYED:
            continue
        before = words[max(at - _NEAR, 0) : at]
        if before and STATING.isdisjoint(before) and not TO_US.isdisjoint((*before, *words[at + 1 : at + _NEAR])):
            return True
        if (
            before
            and mark == ":"
            and at == len(words) - 1
            and STATING.isdisjoint(before[-1:])
            and before[-1] not in _THAT
        ):
            return True
    return False


_THAT: Final = frozenset({"that", "que", "it", "which"})
""""A file that says: hello"."""
