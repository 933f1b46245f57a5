"""What a later message changes of the request before it: no, at five; sorry, I meant b.txt; and #reception too.

The later message is put into the words of the earlier one, in the one place it can mean, and the result is parsed as
if it had been said at once. Nothing is guessed: a message that could change two places, or says anything more, changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from phylactery_understanding.lexicon import OPERATORS, Lexicon
from phylactery_understanding.request import Ask, Label, Request, parse
from phylactery_understanding.text import Kind, Token, is_file_name
from phylactery_understanding.times import read_times

_LONGEST: Final = 24
"""Tokens of a message that only changes another."""
_LONGEST_EARLIER: Final = 4_000
"""Characters of a message that another can change."""
_HOURS: Final = 24
_MOST_WORDS: Final = 4
"""Words of a name or a content that is put in the place of another."""
_SMALL: Final = ("please", "article", "goal", "greet")
_NO: Final = frozenset({"no", "nope", "nein", "non", "nao", "ay", "oh"})
_AND: Final = frozenset({"and", "y", "e", "et", "und", "i"})
_PAUSES: Final = frozenset(",.;!…()")
_BUT: Final = frozenset({"but", "sino", "sondern", "mais", "ma", "mas"})
_IT: Final = frozenset({"it", "that", "them", "this", "again", "lo", "la", "los", "las", "eso"})
_LATE: Final = frozenset("instead rather better mejor sorry perdon digo plutot lieber anzi melhor".split()) | {
    "i meant",
    "i mean",
    "quise decir",
    "quiero decir",
}
"""What may say behind a value that it is the right one; "is wrong" behind it says the opposite."""
_OPTIONAL: Final = frozenset({"part"})
"""What may be said of an hour and left out when it is changed."""
_WORDY: Final = frozenset({Label.OBJECT, Label.CONTENT})


class _Swap(NamedTuple):
    """Characters of the earlier message, and what is said in their place."""

    start: int
    stop: int
    text: str


def amended(earlier: Request, later: Request) -> Request | None:
    """Return the request that an earlier message becomes by a later one, None where that does not just change it."""
    swaps = _swaps(earlier, later)
    if not swaps:
        return None
    text, end = "", 0
    for one in sorted(swaps):
        text, end = f"{text}{earlier.text[end : one.start]}{one.text}", one.stop
    request = parse(text + earlier.text[end:])
    same = [one.form for one in request.asks] == [one.form for one in earlier.asks]
    return request if same and request.fault is None else None


def corrects(later: Request) -> bool:
    """Return whether a message puts a value in the place of another, whatever it was: no, at five."""
    said = [one for one in later.tokens if one.kind is not Kind.BREAK]
    if not 0 < len(said) <= _LONGEST or any(one.text in {"?", "¿"} for one in said):
        return False
    rest, does, _ = _without_markers(said, None, later.lexicon)
    contrast = _contrast(rest, later.lexicon)
    if contrast is not None:
        return all(_names_value(side) and _is_plain(side, later.lexicon) for side in contrast)
    part = _telling_part(rest, later.lexicon)
    return does and _names_value(part)


def _names_value(tokens: Sequence[Token]) -> bool:
    """Return whether some words hold a name, a number, a quotation or a time."""
    named = any(one.kind in {Kind.LITERAL, Kind.NUMBER, Kind.QUOTE} for one in tokens)
    return named or not _kinds(tokens) <= _OPTIONAL


def _swaps(earlier: Request, later: Request) -> list[_Swap]:
    said = [one for one in later.tokens if one.kind is not Kind.BREAK]
    if not earlier.asks or len(earlier.text) > _LONGEST_EARLIER or not 0 < len(said) <= _LONGEST:
        return []
    if any(one.text in {"?", "¿"} for one in said):
        return []
    if later.fault is not None and later.fault.kind in {"disguise", "length", "mark"}:
        return []
    rest, corrects, adds = _without_markers(said, earlier, later.lexicon)
    contrast = _contrast(rest, later.lexicon)
    if contrast is not None:
        new, old = contrast
        places = _places(earlier, old)
        return [_Swap(*places[0], _text(later, new))] if len(places) == 1 and _is_plain(new, later.lexicon) else []
    if not (corrects or adds) or not rest:
        return []
    rest = _telling_part(rest, later.lexicon)
    return _value(earlier, later, rest, corrects=corrects)


def _without_markers(said: Sequence[Token], earlier: Request | None, words: Lexicon) -> tuple[list[Token], bool, bool]:
    """Return what is left without the words that only say that something changes, and whether it does, or is added."""
    texts = _texts(said)
    again = {meaning for ask in (earlier.asks if earlier is not None else ()) for meaning in ask.verb.meanings}
    rest: list[Token] = []
    corrects = adds = False
    place = 0
    while place < len(said):
        amends, repeats = words.match("amend", texts, place), words.match("again", texts, place)
        late = bool(rest) and amends >= repeats and " ".join(texts[place : place + amends]) not in _LATE
        if max(amends, repeats) and not late:
            corrects, adds = corrects or amends >= repeats, adds or repeats > amends
            place += max(amends, repeats)
            continue
        if place == 0 and texts[0] in _NO and ((said[1:2] and said[1].kind is Kind.MARK) or _amends(words, texts, 1)):
            corrects, place = True, 1
            continue
        if place == 0 and texts[0] in _AND:
            adds, place = True, 1
            continue
        verbs = words.verb(texts[place])
        # Who sends it once more says so with the same verb, and a pronoun or nothing for what is sent.
        if any(not verb.meanings.isdisjoint(again) for verb in verbs) and (
            any(verb.joined for verb in verbs)
            or place + 1 == len(said)
            or said[place + 1].kind is Kind.MARK
            or texts[place + 1] in _IT
        ):
            place += 1
            continue
        rest.append(said[place])
        place += 1
    while rest and rest[0].kind is Kind.MARK:
        rest.pop(0)
    while rest and rest[-1].kind is Kind.MARK:
        rest.pop()
    return rest, corrects, adds and not corrects


def _telling_part(rest: Sequence[Token], words: Lexicon) -> list[Token]:
    """Return the one part between two pauses that has a value, where the others only say why."""
    parts: list[list[Token]] = [[]]
    for one in rest:
        if one.kind is Kind.MARK and one.text in _PAUSES:
            parts.append([])
        else:
            parts[-1].append(one)
    telling = [part for part in parts if any(one.kind is not Kind.WORD for one in part) or read_times(part).features]
    if len(telling) != 1:
        return list(rest)
    others = [one for part in parts if part is not telling[0] for one in part]
    texts = [one.text for one in others]
    refuses = any(
        words.match(name, texts, at) for at in range(len(texts)) for name in ("negation", "exclusion", "universal")
    )
    return list(rest) if refuses else telling[0]


def _amends(words: Lexicon, texts: Sequence[str], place: int) -> bool:
    return place < len(texts) and bool(words.match("amend", texts, place))


def _texts(tokens: Sequence[Token]) -> list[str]:
    """Return words as the lexicon knows them; what is quoted is none of them."""
    return ["" if one.kind is Kind.QUOTE else one.text for one in tokens]


def _contrast(rest: Sequence[Token], words: Lexicon) -> tuple[list[Token], list[Token]] | None:
    """Return what is said in the place of what: b.txt, not a.txt; not a.txt but b.txt."""
    texts = _texts(rest)
    for at in range(len(rest)):
        size = words.match("contrast", texts, at)
        if not size:
            continue
        behind = list(rest[at + size :])
        if at:
            return _bare(rest[:at], words), _bare(behind, words)
        cut = next((place for place, one in enumerate(behind) if one.text in _BUT or one.text == ","), None)
        return (_bare(behind[cut + 1 :], words), _bare(behind[:cut], words)) if cut is not None else ([], [])
    return None


def _bare(tokens: Sequence[Token], words: Lexicon) -> list[Token]:
    """Return tokens without the small words and marks around them."""
    found = [one for one in tokens if one.text not in _BUT]
    while found and _is_small(found[0], words):
        found.pop(0)
    while found and _is_small(found[-1], words):
        found.pop()
    return found


def _is_small(token: Token, words: Lexicon) -> bool:
    return token.kind is Kind.MARK or (
        token.kind is Kind.WORD and any(words.holds(name, token.text) for name in (*_SMALL, "stop"))
    )


def _is_plain(tokens: Sequence[Token], words: Lexicon) -> bool:
    """Return whether some words only name something: no verb, no operator, nothing that means all of a set."""
    texts = [one.text for one in tokens]
    return bool(tokens) and not any(
        one.kind is Kind.WORD
        and (
            words.verb(one.text)
            or words.holds("universal", one.text)
            or any(words.match(name, texts, at) for name in OPERATORS)
        )
        for at, one in enumerate(tokens)
    )


def _places(earlier: Request, wanted: Sequence[Token]) -> list[tuple[int, int]]:
    """Return where some words stand in an earlier message, one behind the other."""
    texts = [one.text for one in wanted]
    tokens = earlier.tokens
    return [
        (tokens[at].start, tokens[at + len(texts) - 1].stop)
        for at in range(len(tokens) - len(texts) + 1)
        if texts and [one.text for one in tokens[at : at + len(texts)]] == texts
    ]


def _text(request: Request, tokens: Sequence[Token]) -> str:
    return request.text[tokens[0].start : tokens[-1].stop]


def _value(earlier: Request, later: Request, rest: Sequence[Token], *, corrects: bool) -> list[_Swap]:
    """Return what a value of its own kind takes the place of: an hour of an hour, a file of a file."""
    words = later.lexicon
    core = _bare(rest, words)
    times = read_times(rest)
    timely = [rest[at] for at in sorted(times.places)]
    if timely and all(one in timely or _is_small(one, words) for one in rest):
        return _time(earlier, later, timely)
    named = [one for one in core if one.kind in {Kind.LITERAL, Kind.NUMBER, Kind.QUOTE}]
    others = [one for one in core if one not in named and not _is_small(one, words)]
    if len(named) == 1:
        if not all(_is_known(one, earlier) for one in others) or not _is_plain([*others, named[0]], words):
            return []
        return _one_of_a_kind(earlier, later, named[0])
    if named or not corrects or len(core) > _MOST_WORDS or not _is_plain(core, words):
        return []
    return _words(earlier, later, core)


def _is_known(token: Token, earlier: Request) -> bool:
    """Return whether a word stands in an earlier message, or is the name that an address of it begins with."""
    return any(
        one.text == token.text or (one.kind is Kind.LITERAL and "@" in one.text and one.text.startswith(token.text))
        for one in earlier.tokens
    )


def _without_lead(tokens: Sequence[Token], words: Lexicon) -> list[Token]:
    """Return the words of a time without the small ones around it, which stay as they were said first."""
    found = list(tokens)
    while len(found) > 1 and found[0].kind is Kind.WORD and _is_small(found[0], words):
        found.pop(0)
    while len(found) > 1 and found[-1].kind is Kind.WORD and _is_small(found[-1], words):
        found.pop()
    return found


def _time(earlier: Request, later: Request, new: Sequence[Token]) -> list[_Swap]:
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
    old = _without_lead(longest, later.lexicon)
    return [_Swap(old[0].start, old[-1].stop, _text(later, _without_lead(new, later.lexicon)))]


def _kinds(tokens: Sequence[Token]) -> frozenset[object]:
    """Return what some words say of time: a day, an hour, how often."""
    same = {"weekday": "day", "iso": "day", "date": "day", "month": "day"}
    return frozenset(same.get(str(one[0]), one[0]) for one in read_times(tokens).features)


def _runs(ask: Ask) -> Iterator[list[Token]]:
    """Return every run of words of an ask that say a time."""
    places = sorted(ask.times.places)
    for first in range(len(places)):
        run = [ask.tokens[places[first]]]
        yield list(run)
        for last in range(first + 1, len(places)):
            if places[last] != places[last - 1] + 1:
                break
            run.append(ask.tokens[places[last]])
            yield list(run)


def _one_of_a_kind(earlier: Request, later: Request, new: Token) -> list[_Swap]:
    """Return the one value of the same kind in an earlier message, wherever it stands."""
    timely = {id(one) for ask in earlier.asks for at, one in enumerate(ask.tokens) if at in ask.times.places}
    old = [one for one in earlier.tokens if id(one) not in timely and _sort(one) == _sort(new)]
    if not old and new.kind is Kind.NUMBER and new.text.isdigit() and 0 < int(new.text) <= _HOURS:
        old = [ask.tokens[at] for ask in earlier.asks for at in ask.times.places if ask.tokens[at].kind is Kind.NUMBER]
        old = old if len(old) == 1 and _kinds_beside(earlier, old[0]) == {"hour"} else []
    if len({one.text for one in old}) != 1:
        return []
    return [_Swap(one.start, one.stop, _text(later, [new])) for one in old]


def _kinds_beside(earlier: Request, token: Token) -> frozenset[object]:
    """Return what the times of an earlier message say that go when a number of them goes."""
    rest = [one for one in earlier.tokens if one is not token]
    return _kinds(earlier.tokens) - _kinds(rest)


def _sort(token: Token) -> str:
    """Return what sort of value a token is."""
    if token.kind is not Kind.LITERAL:
        return str(token.kind)
    text = token.text
    if "://" in text:
        return "url"
    if text.startswith(("#", "@")):
        return text[0]
    return "address" if "@" in text else "file" if is_file_name(text) else "name"


def _words(earlier: Request, later: Request, new: Sequence[Token]) -> list[_Swap]:
    """Return the one name, or else the one thing, of an earlier message that some words take the place of."""
    if any(one.kind is not Kind.WORD for one in new):
        return []
    runs = list(_wordy(earlier))
    if all(one.raw[:1].isupper() for one in new):
        runs = [part for run in runs if (part := [one for one in run if one.raw[:1].isupper()])]
    if len(runs) != 1:
        return []
    return [_Swap(runs[0][0].start, runs[0][-1].stop, _text(later, new))]


def _wordy(earlier: Request) -> Iterator[list[Token]]:
    """Return every run of words of an earlier message that name or say something."""
    for ask in earlier.asks:
        run: list[Token] = []
        for one, label in zip(ask.tokens, ask.labels, strict=True):
            if label in _WORDY and one.kind is Kind.WORD:
                run.append(one)
            elif run:
                yield run
                run = []
        if run:
            yield run
