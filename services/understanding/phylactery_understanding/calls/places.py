"""Names of files in a request: a text for dinner, in Italian or to Bob has no file by that name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from phylactery_understanding.calls.match import Match
from phylactery_understanding.calls.proposal import is_named
from phylactery_understanding.language.text import Kind, Token, is_file_name, tokenize
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.asks import TURNING

_FILES: Final = word_set("files")
_KEPT: Final = _FILES | word_set("kept_files")
_INTO: Final = word_set("file_places")
_ONE: Final = word_set("one")
_AS: Final = word_set("turned_into")
_CALLED: Final = word_set("called_so")
_DEFINITE: Final = word_set("definite") | word_set("definite_articles")
_SEPARATORS: Final = frozenset("/\\_")
_KEEPING: Final = frozenset({"copy", "record"})
"""Meanings that a verb has together if it keeps something under a name: save it as dinner."""
_FOR_READER: Final = TURNING - {"copy", "rename"}
"""Meanings of verbs whose goal is what a text becomes: translate it into Italian."""
_BEHIND: Final = ("goal", "source", "please", "greet", "stop")
_SMALL: Final = ("goal", "article")
_NAME: Final = 3
"""The maximum number of words of a quotation that is a name without an extension, and not a text."""
_BETWEEN: Final = 4
"""The distance of a file's name from the word for a file: a file that is called dinner."""


def names_file(match: Match, value: str) -> bool:
    """Return True if the words name a file by a value.

    An extension does so wherever it is. Anything else is a file only where one is expected: at the place that a text
    is put to, and there as a path, in quotation marks, or beside a word for a file (to "dinner", to the file dinner,
    to my notes), or where a result has shown that the file exists.
    """
    if is_file_name(value):
        return True
    said = [one for one in match.request.tokens if one.kind not in {Kind.BREAK, Kind.MARK}]
    return any(_is_place(match, said, first, last, value) for first, last in _places(said, value))


def _places(said: Sequence[Token], value: str) -> Iterator[tuple[int, int]]:
    wanted = [one.text for one in tokenize(value) if one.kind not in {Kind.BREAK, Kind.MARK}]
    for at, one in enumerate(said):
        if is_named(one, value):
            yield at, at
        elif wanted and [word.text for word in said[at : at + len(wanted)]] == wanted:
            yield at, at + len(wanted) - 1


def _is_place(match: Match, said: Sequence[Token], first: int, last: int, value: str) -> bool:
    words = match.request.lexicon
    if first == last and said[first].kind is Kind.WORD and words.holds_any(_SMALL, said[first].text):
        return False
    if _is_called(said, first):
        return True
    begin = first
    while begin and said[begin - 1].text in _DEFINITE - _INTO:
        begin -= 1
    before = said[begin - 1] if begin else None
    if before is None or not _goes_there(match, before):
        return False
    one, behind = said[last], said[last + 1 : last + 2]
    if one.kind is Kind.QUOTE:
        return len(tokenize(one.raw)) <= _NAME
    if one.kind is Kind.LITERAL and not _SEPARATORS.isdisjoint(value):
        return True
    known = match.call.exists or before.text in _AS or one.text in _KEPT
    if behind and behind[0].text in _FILES:
        return True
    return known and (not behind or words.holds_any(_BEHIND, behind[0].text))


def _is_called(said: Sequence[Token], first: int) -> bool:
    """Return True if a word for a file is before a name: the file dinner, a note called dinner."""
    at = first - 1
    while at >= 0 and first - at <= _BETWEEN and said[at].text in _CALLED:
        at -= 1
    before = said[at - 1].text if at > 0 else ""
    opened = at < first - 1 or before in _DEFINITE or before in _INTO - _ONE
    return at >= 0 and said[at].text in _FILES and said[at].kind is Kind.WORD and opened


def _goes_there(match: Match, before: Token) -> bool:
    """Return True if a word before a name opens the place that a text is put to: to, into, save … as."""
    asks = (ask for ask in match.request.asks if any(one is before for one in ask.tokens))
    verb = next(asks, match.ask).verb
    if not _FOR_READER.isdisjoint(verb.meanings):
        return False
    if before.text in _INTO:
        return before.text not in _ONE or verb.language == "es"  # a is an article in one language, to in another
    return before.text in _AS and verb.meanings >= _KEEPING
