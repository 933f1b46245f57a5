"""Amendments of an earlier request by a later message: no, at five; sorry, I meant b.txt; and #reception too.

The later message is inserted into the words of the earlier one, at the only place it can refer to, and the result is
parsed as if it had been said at once. Nothing is guessed: every word of the later message must be a marker of a change,
a small word that introduces the value, or the value. A message that says anything more, or could change two places,
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from phylactery_understanding.language.lexicon import OPERATORS, Lexicon
from phylactery_understanding.language.text import Kind, Token, is_file_name
from phylactery_understanding.language.times import read_times
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.model import Ask, Label, Request
from phylactery_understanding.requests.parser import parse

_LONGEST: Final = 24
"""The maximum length of an amending message, in tokens."""
LONGEST_EARLIER: Final = 4_000
"""The maximum length of an amendable message, in characters."""
_HOURS: Final = 24
_MOST_WORDS: Final = 4
"""The maximum length in words of a name or content that replaces another."""
_PAUSES: Final = frozenset(",.;!…()")
_NO: Final = word_set("leading_no")
_AND: Final = word_set("and")
_BUT: Final = word_set("but_rather")
_WRONG: Final = word_set("wrong")
_LEADING: Final = _NO | _AND | _WRONG
_LATE: Final = word_set("late_markers")
_QUANTITIES: Final = word_set("more") | word_set("quantities")
_IT: Final = word_set("repeated_objects")
_BESIDE: Final = frozenset(" \t\n,.;!()\"'“”«»…")
"""What may be adjacent to a number or name that is whole."""
_OPTIONAL: Final = frozenset({"part"})
"""What may be said of an hour and omitted when it is changed."""


class Amendment(NamedTuple):
    """The request that an earlier message becomes; ``corrects`` is False if it is requested additionally."""

    request: Request
    corrects: bool


class _Swap(NamedTuple):
    """A range of characters of the earlier message, and its replacement."""

    start: int
    stop: int
    text: str


class _Said(NamedTuple):
    """A message that only changes another: the new value, and the replaced one if given."""

    new: list[Token]
    old: list[Token]
    corrects: bool


def amended(earlier: Request, later: Request) -> Amendment | None:
    """Return the request that a later message makes of an earlier one, or None if it is not a pure amendment."""
    if not earlier.asks or len(earlier.text) > LONGEST_EARLIER or earlier.fault is not None:
        return None
    said = _said(later, {meaning for ask in earlier.asks for meaning in ask.verb.meanings})
    swap = None if said is None else _swap(earlier, later, said)
    if said is None or swap is None:
        return None
    request = parse(f"{earlier.text[: swap.start]}{swap.text}{earlier.text[swap.stop :]}")
    same = [one.form for one in request.asks] == [one.form for one in earlier.asks]
    return Amendment(request, said.corrects) if same and request.fault is None else None


def has_marker(later: Request) -> bool:
    """Return False if nothing in a message begins a change, so that it amends no message, whichever was before it."""
    words, texts = later.lexicon, _texts([one for one in later.tokens if one.kind is not Kind.BREAK])
    said, contrasts = frozenset(texts), words.phrases["contrast"]
    return texts[:1] != [] and (
        texts[0] in _LEADING
        or any(words.longest(("amend", "again"), texts, at) for at in range(len(texts)))
        # the words of a contrast may stand apart, with what is no part of it between them
        or any(said.issuperset(phrase) for one in said for phrase in contrasts.get(one, ()))
    )


def corrects(later: Request) -> bool:
    """Return True if a message replaces a value, whichever it was: no, at five."""
    said = _said(later, frozenset())
    return said is not None and said.corrects and _names_value(said.new)


def may_amend(later: Request) -> bool:
    """Return True if a message could amend or repeat some earlier request; only those can decide if it does."""
    return repeats(later) or _said(later, _meanings(later)) is not None


def may_correct(later: Request) -> bool:
    """Return True if a message could replace a value of some earlier request, rather than add one."""
    said = _said(later, _meanings(later))
    return said is not None and said.corrects


def repeats(later: Request) -> bool:
    """Return True if a message asks for the previous request once more, and nothing else: do it again."""
    said = [one for one in later.tokens if one.kind is not Kind.BREAK]
    if not 0 < len(said) <= _LONGEST or any(one.text in {"?", "¿"} for one in said) or later.fault is not None:
        return False
    rest, _, adds = _without_markers(said, later.lexicon, _meanings(later))
    return adds and not rest and said[0].text not in _AND


def _meanings(later: Request) -> set[str]:
    """Return the meanings of a message's verbs."""
    words = [one.text for one in later.tokens if one.kind is Kind.WORD]
    return {meaning for word in words for verb in later.lexicon.verb(word) for meaning in verb.meanings}


# ---- parsing the later message -----------------------------------------------


def _said(later: Request, done: set[str] | frozenset[str]) -> _Said | None:
    """Return what a message changes, or None if it says anything else. ``done`` are the verbs it may repeat."""
    said = [one for one in later.tokens if one.kind is not Kind.BREAK]
    if not 0 < len(said) <= _LONGEST or any(one.text in {"?", "¿"} for one in said):
        return None
    if later.fault is not None and later.fault.kind in {"disguise", "length", "mark"}:
        return None
    words = later.lexicon
    rest, amends, adds = _without_markers(said, words, done)
    contrast = _contrast(rest, words)
    if contrast is not None:
        new, old = contrast
        return _Said(new, old, corrects=True) if all(_is_value(side, later) for side in contrast) else None
    new = _without_links(rest, words)
    return _Said(new, [], corrects=amends) if (amends or adds) and _is_value(new, later) else None


def _without_markers(
    said: Sequence[Token], words: Lexicon, done: set[str] | frozenset[str]
) -> tuple[list[Token], bool, bool]:
    """Return the words without change markers, and whether there is a change, or an addition."""
    texts = _texts(said)
    rest: list[Token] = []
    amends = adds = False
    place = 0
    while place < len(said):
        size = {name: words.match(name, texts, place) for name in ("amend", "again", "please", "contrast")}
        size["please"] *= texts[place] not in _QUANTITIES
        late = not rest or " ".join(texts[place : place + size["amend"]]) in _LATE
        if place == 0 and (lead := _lead(said, texts, words)):
            amends, adds, place = texts[0] not in _AND, texts[0] in _AND, lead
        elif size["contrast"] and size["contrast"] >= max(size.values()):
            rest.extend(said[place : place + size["contrast"]])
            place += size["contrast"]
        elif size["amend"] and late and size["amend"] >= size["again"]:
            amends, place = True, place + size["amend"]
        elif size["again"]:
            adds, place = True, place + size["again"]
        elif size["please"] or (said[place].kind is Kind.MARK and said[place].text in _PAUSES):
            if said[place].text == "," and rest:
                rest.append(said[place])
            place += max(size["please"], 1)
        elif _repeats(said, texts, place, words, done):
            place += 1
        else:
            rest.append(said[place])
            place += 1
    while rest and rest[-1].text == ",":
        rest.pop()
    return rest, amends, adds and not amends


def _lead(said: Sequence[Token], texts: Sequence[str], words: Lexicon) -> int:
    """Return the number of leading tokens that only introduce a change: no, and, wrong person."""
    marks = [at for at, one in enumerate(said[:4]) if one.kind is Kind.MARK]
    if texts[0] in _NO:
        return 1 if marks[:1] == [1] or (len(texts) > 1 and words.match("amend", texts, 1)) else 0
    if texts[0] in _WRONG:
        return marks[0] if marks and all(one.kind is Kind.WORD for one in said[: marks[0]]) and marks[0] > 1 else 0
    return int(texts[0] in _AND)


def _repeats(
    said: Sequence[Token], texts: Sequence[str], place: int, words: Lexicon, done: set[str] | frozenset[str]
) -> bool:
    """Return True if a word requests the same once more, with a pronoun or no object: send it again."""
    verbs = words.verb(texts[place])
    if texts[place] in _IT and place and words.verb(texts[place - 1]):
        return True
    return any(not verb.meanings.isdisjoint(done) for verb in verbs) and (
        any(verb.joined for verb in verbs)
        or place + 1 == len(said)
        or said[place + 1].kind is Kind.MARK
        or texts[place + 1] in _IT
    )


def _contrast(rest: Sequence[Token], words: Lexicon) -> tuple[list[Token], list[Token]] | None:
    """Return the new value and the replaced one of a contrast: b.txt, not a.txt; not a.txt but b.txt."""
    texts = _texts(rest)
    for at in range(len(rest)):
        size = words.match("contrast", texts, at)
        if not size:
            continue
        behind = list(rest[at + size :])
        if at:
            return _without_links(rest[:at], words), _without_links(behind, words)
        cut = next((place for place, one in enumerate(behind) if one.text in _BUT or one.text == ","), None)
        if cut is None:
            return [], []
        new = [one for one in behind[cut + 1 :] if one.text not in _BUT]
        return _without_links(new, words), _without_links(behind[:cut], words)
    return None


def _without_links(tokens: Sequence[Token], words: Lexicon) -> list[Token]:
    """Return tokens without leading small words that introduce a value, and without surrounding commas."""
    found = list(tokens)
    while found and (found[0].text == "," or (found[0].kind is Kind.WORD and words.holds("link", found[0].text))):
        found.pop(0)
    while found and found[-1].text == ",":
        found.pop()
    return found


def _is_value(tokens: Sequence[Token], later: Request) -> bool:
    """Return True if words are one value: a name, a number, a quotation, a time, or a few words that name."""
    words, texts = later.lexicon, _texts(tokens)
    if not tokens or any(one.kind is Kind.MARK for one in tokens):
        return False
    if set(read_times(tokens).places) == set(range(len(tokens))) and read_times(tokens).features:
        return True
    if len(tokens) == 1 and tokens[0].kind is not Kind.WORD:
        return tokens[0].kind is Kind.QUOTE or _is_whole(later.text, tokens[0])
    return len(tokens) <= _MOST_WORDS and all(
        one.kind is Kind.WORD
        and not words.verb(one.text)
        and not words.holds_any(("universal", "stop", "article", "goal", "link"), one.text)
        and not words.longest(OPERATORS, texts, at)
        for at, one in enumerate(tokens)
    )


def _names_value(tokens: Sequence[Token]) -> bool:
    """Return True if words contain a name, a number, a quotation or a time."""
    named = any(one.kind in {Kind.LITERAL, Kind.NUMBER, Kind.QUOTE} for one in tokens)
    return named or not _kinds(tokens) <= _OPTIONAL


def _is_whole(text: str, token: Token) -> bool:
    """Return True if no adjacent token changes the meaning of a token: -50, 50%, /srv/a.txt."""
    around = text[token.start - 1 : token.start] if token.start else "", text[token.stop : token.stop + 1]
    return all(not one or one in _BESIDE for one in around)


def _texts(tokens: Sequence[Token]) -> list[str]:
    """Return words as in the lexicon, without quotations."""
    return ["" if one.kind is Kind.QUOTE else one.text for one in tokens]


# ---- finding the place in the earlier message --------------------------------


def _swap(earlier: Request, later: Request, said: _Said) -> _Swap | None:
    """Return the only place of an earlier message that a value can replace, or None if there is not exactly one."""
    if said.old:
        old = _place(earlier, said.old)
    elif read_times(said.new).features and said.new[0].kind is not Kind.QUOTE:
        old = _time(earlier, said.new)
    elif len(said.new) == 1 and said.new[0].kind is not Kind.WORD:
        old = _one_of_a_kind(earlier, said.new[0])
    else:
        old = _words(earlier, said.new) if said.corrects else []
    new = _without_small(said.new, later.lexicon) if read_times(said.new).features else said.new
    if not old:
        return None
    return _Swap(old[0].start, old[-1].stop, later.text[new[0].start : new[-1].stop])


def _place(earlier: Request, wanted: Sequence[Token]) -> list[Token]:
    """Return where words occur consecutively in one ask of an earlier message, if they occur only once."""
    texts = [one.text for one in wanted]
    inside = {id(one) for ask in earlier.asks for one in ask.of(Label.OBJECT, Label.CONTENT, Label.QUOTE, Label.TIME)}
    tokens = earlier.tokens
    found = [
        tokens[at : at + len(texts)]
        for at in range(len(tokens) - len(texts) + 1)
        if [one.text for one in tokens[at : at + len(texts)]] == texts
    ]
    if len(found) != 1 or not all(id(one) in inside and _is_whole(earlier.text, one) for one in found[0]):
        return []
    return found[0]


def _time(earlier: Request, new: Sequence[Token]) -> list[Token]:
    kinds = _kinds(new)
    if not kinds or any(second.start - first.stop > 1 for first, second in pairwise(new)):
        return []
    runs = [
        run
        for ask in earlier.asks
        for run in _runs(ask)
        if _kinds(run) - _OPTIONAL == kinds - _OPTIONAL and (_kinds(run) & _OPTIONAL <= kinds or not kinds & _OPTIONAL)
    ]
    if not runs:
        return []
    longest = max(runs, key=len)
    inside = {id(one) for one in longest}
    if any(not inside.issuperset(map(id, run)) for run in runs):
        return []
    return _without_small(longest, earlier.lexicon)


def _without_small(tokens: Sequence[Token], words: Lexicon) -> list[Token]:
    """Return the words of a time without the small ones around it, which stay as first said."""

    def is_small(one: Token) -> bool:
        return one.kind is Kind.WORD and words.holds_any(("link", "article", "goal"), one.text)

    found = list(tokens)
    while len(found) > 1 and is_small(found[0]):
        found.pop(0)
    while len(found) > 1 and is_small(found[-1]):
        found.pop()
    return found


def _kinds(tokens: Sequence[Token]) -> frozenset[object]:
    """Return the kinds of time that words express: a day, an hour, a frequency."""
    same = {"weekday": "day", "iso": "day", "date": "day", "month": "day"}
    return frozenset(same.get(str(one[0]), one[0]) for one in read_times(tokens).features)


def _runs(ask: Ask) -> Iterator[list[Token]]:
    """Return every run of words of an ask that express a time."""
    places = sorted(ask.times.places)
    for first in range(len(places)):
        run = [ask.tokens[places[first]]]
        yield list(run)
        for last in range(first + 1, len(places)):
            if places[last] != places[last - 1] + 1:
                break
            run.append(ask.tokens[places[last]])
            yield list(run)


def _one_of_a_kind(earlier: Request, new: Token) -> list[Token]:
    """Return the only value of the same kind in an earlier message."""
    timely = {id(one) for ask in earlier.asks for at, one in enumerate(ask.tokens) if at in ask.times.places}
    old = [one for one in earlier.tokens if id(one) not in timely and _sort(one) == _sort(new)]
    if not old and new.kind is Kind.NUMBER and new.text.isdigit() and 0 < int(new.text) <= _HOURS:
        old = [ask.tokens[at] for ask in earlier.asks for at in ask.times.places if ask.tokens[at].kind is Kind.NUMBER]
        old = old if len(old) == 1 and _kinds_beside(earlier, old[0]) == {"hour"} else []
    return old if len(old) == 1 and _is_whole(earlier.text, old[0]) else []


def _kinds_beside(earlier: Request, token: Token) -> frozenset[object]:
    """Return the kinds of time that an earlier message no longer expresses without one of its numbers."""
    rest = [one for one in earlier.tokens if one is not token]
    return _kinds(earlier.tokens) - _kinds(rest)


def _sort(token: Token) -> str:
    """Return the kind of value that a token is."""
    if token.kind is not Kind.LITERAL:
        return str(token.kind)
    text = token.text
    if "://" in text:
        return "url"
    if text.startswith(("#", "@")):
        return text[0]
    return "address" if "@" in text else "file" if is_file_name(text) else "name"


def _words(earlier: Request, new: Sequence[Token]) -> list[Token]:
    """Return the only name, or else the only thing, of an earlier message that words can replace."""
    if any(one.kind is Kind.LITERAL and "@" in one.text for one in earlier.tokens):
        return []  # a name may be the recipient
    if any(True for ask in earlier.asks for _ in ask.of(Label.CONTENT, Label.QUOTE)):
        return []
    runs = list(_wordy(earlier))
    if all(one.raw[:1].isupper() for one in new):
        runs = [part for run in runs if (part := [one for one in run if one.raw[:1].isupper()])]
    return runs[0] if len(runs) == 1 else []


def _wordy(earlier: Request) -> Iterator[list[Token]]:
    """Return every run of words of an ask that names something."""
    for ask in earlier.asks:
        run: list[Token] = []
        for one, label in zip(ask.tokens, ask.labels, strict=True):
            if label is Label.OBJECT and one.kind is Kind.WORD:
                run.append(one)
            elif run:
                yield run
                run = []
        if run:
            yield run
