"""Removal of a model's reasoning from its text.

Endpoints that know a model's reasoning send it in a field of its own, which is never read. Others leave it in the text,
between marks that depend on the family of the model. What is between them is not meant for anybody: it is neither shown
nor stored nor sent back, and nothing in it is a plan. A mark within a JSON object is a part of it: what a call writes
stays as the model wrote it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

_THOUGHT: Final = (
    r"(?:[\w.-]{1,24}:)?(?:(?:ant)?think(?:ing)?|thoughts?|reasoning|reflection|scratch_?pad|inner_monologue)"
)
_NAMED: Final = r"(?:begin_of_thought|START_THINKING|unused94)"
_OPENS: Final = (
    rf"<\s?{_THOUGHT}(?:\s[^<>]{{0,80}})?>|\[{_THOUGHT}\]|◁{_THOUGHT}▷|<\|(?:{_THOUGHT}|{_NAMED})\|>"
    r"|<unused94>|<\|channel>\s{0,8}thought|<\|channel\|>(?!\s{0,8}final)[^<>]{0,80}<\|message\|>"
)
_CLOSES: Final = (
    rf"<\s?/\s?{_THOUGHT}\s?>|\[/{_THOUGHT}\]|◁/{_THOUGHT}▷|<\|(?:/{_THOUGHT}|end_of_thought|END_THINKING)\|>|<unused95>"
    r"|<channel\|>|<\|channel\|>\s{0,8}final[^<>]{0,80}<\|message\|>|<\|end\|>\s{0,8}<\|start\|>(?=\s{0,8}assistant)"
)
_MARKS: Final = re.compile(rf"(?i)(?<!`)(?:(?P<opens>{_OPENS})|(?P<closes>{_CLOSES}))")
"""Beginnings and ends of reasoning; a mark in backticks is spoken of."""
_ADDRESSED: Final = re.compile(
    r"(?i)^assistant(?=<\|channel\|>)|</?(?:answer|final_answer|response)>|<\|(?:begin|end)_of_solution\|>"
    r"|<\|(?:START|END)_RESPONSE\|>|<\|(?:start|end|return|im_start|im_end|eot_id|endoftext|message)\|>|</?s>"
    r"|<｜end▁of▁sentence｜>"
)
"""Marks around the answer itself, of families that mark their reasoning."""
_OBJECT: Final = re.compile(r"""\{\s{0,80}["']""")
_DECODER: Final = json.JSONDecoder()
_MAX_OBJECTS: Final = 64
"""How many beginnings of objects are tried: a text of unclosed ones would be read from each of them to its end."""
_LONGEST_MARK: Final = 160
_UNFINISHED: Final = re.compile(r"[<\[◁][^<>\[\]◁▷]{0,100}$|<\|channel(?:\|>)?[^<>]{0,80}(?:<\|message\|?)?$")
"""The end of a text that more text may turn into a mark."""


@dataclass(frozen=True, slots=True)
class Read:
    """A text without its reasoning. ``unmarked`` means that some of it had an end alone, so nothing told it before."""

    spoken: str
    unmarked: bool = False


def read(text: str, *, more: bool = False) -> Read:
    """Return the part of a text that is meant to be read.

    With ``more``, text follows: what may yet become a mark is held back. Reasoning without an end goes to the end of
    the text. An end without a beginning ends reasoning that began with the text: the beginning was in the prompt.
    """
    kept: list[str] = []
    place, inside, marked, unmarked, objects = 0, False, False, False, _Objects(text)
    for found in _MARKS.finditer(text):
        if not inside and objects.hold(found.start(), place):
            continue
        if found.lastgroup == "closes":
            if not inside:
                kept.clear()
                unmarked = True
            place = found.end()
        elif not inside:
            kept.append(text[place : found.start()])
        inside, marked = found.lastgroup == "opens", True
    if not inside:
        kept.append(text[place:])
    spoken = "".join(kept)
    if more and (unfinished := _UNFINISHED.search(spoken, max(len(spoken) - _LONGEST_MARK, 0))):
        spoken = spoken[: unfinished.start()]
    return Read(_unaddressed(spoken).strip() if marked else spoken, unmarked)


def _unaddressed(text: str) -> str:
    objects = _Objects(text)
    return _ADDRESSED.sub(lambda mark: mark[0] if objects.hold(mark.start()) else "", text)


class _Objects:
    """The JSON objects of a text, read as far as they are asked about, from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text, self._read, self._held, self._left = text, 0, 0, _MAX_OBJECTS

    def hold(self, place: int, after: int = 0) -> bool:
        """Return True if a whole object that begins at ``after`` or later holds a place."""
        self._read = max(self._read, after)
        while self._held <= place and self._left and (found := _OBJECT.search(self._text, self._read, place)):
            self._left -= 1
            try:
                self._held = self._read = _DECODER.raw_decode(self._text, found.start())[1]
            except (ValueError, RecursionError):
                self._read = found.start() + 1
        return place < self._held
