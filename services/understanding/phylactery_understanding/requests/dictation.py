"""Separation of a dictated text from instructions to the writer.

"Say hello, with a copy to bob@example.org" dictates one word. A text in quotation marks is dictated as a whole and is
not examined here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.text import Kind, Token
from phylactery_understanding.language.times import read_times
from phylactery_understanding.language.vocabulary import word_set

_JOINTS: Final = word_set("joints") | word_set("dictated_or")
_ANOTHER: Final = word_set("another_goal")
_TO: Final = word_set("dictated_goals")
_BUT: Final = word_set("dictated_but")
_NOT: Final = word_set("limits")
_MORE: Final = word_set("describing")
_NEAR: Final = 8
_COUNTED: Final = word_set("counted")


def said_beside(tokens: Sequence[Token], words: Lexicon) -> str:
    """Return the first words of a dictated text that are addressed to the writer, empty if there are none.

    They name another goal, another time, a form or a language, or refer to a text that is not there: my name.
    """
    said = [one for one in tokens if one.kind is not Kind.BREAK]
    texts = [one.text for one in said]
    if not said:
        return ""
    opening, thing = words.match("standin", texts, 0), words.match("thing", texts, 0)
    if thing and (len(said) <= thing + 1 or texts[thing] in _MORE):
        opening = max(opening, thing)
    if opening:
        return " ".join(texts[:opening])
    if len(said) == 2 and said[0].kind is Kind.NUMBER and texts[1] in _COUNTED:
        return " ".join(texts)
    if len(said) > 1 and texts[-1] in _JOINTS - {",", "i", "e", "o"}:
        return texts[-1]
    for at in range(len(said)):
        size = words.match("aside", texts, at) or _another_goal(said, at) or _other_time(said, at)
        if size:
            return " ".join(texts[at : at + size])
    return ""


def _another_goal(said: Sequence[Token], place: int) -> int:
    """Return the number of tokens that name a further goal: and another to bob@example.org."""
    if said[place].text not in _JOINTS:
        return 0
    at = place + 1
    end = min(len(said), place + _NEAR)
    while at < end and (said[at].text in _ANOTHER or said[at].text in _JOINTS):
        at += 1
    to = at < len(said) and said[at].text in _TO
    named = at + 1 < len(said) and said[at + 1].kind is Kind.LITERAL
    return at + 2 - place if to and named else 0


def _other_time(said: Sequence[Token], place: int) -> int:
    """Return the number of tokens that limit when it is to be done: but not before nine, pero mañana."""
    if said[place].text not in _BUT:
        return 0
    rest = said[place + 1 : place + _NEAR]
    if rest and (rest[0].text in _NOT or 0 in read_times(rest).places):
        return min(len(rest), 2) + 1
    return 0
