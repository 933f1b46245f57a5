"""Values of a call that the words of an ask are: names, numbers, currencies, access rights."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from phylactery_understanding.calls.match import MODE_FLAGS, Match
from phylactery_understanding.calls.places import names_file
from phylactery_understanding.calls.proposal import CURRENCIES, Argument, is_named, plain_name
from phylactery_understanding.language.numbers import amounts_at, readings
from phylactery_understanding.language.text import STEM, Kind, fold, is_disguised, is_file_name, tokenize, written
from phylactery_understanding.language.vocabulary import word_map, word_set
from phylactery_understanding.requests.model import Label

_MARKING: Final = frozenset("/\\*~%$|<>`")
"""Characters that, adjacent to a path or value, make it another one."""
NO_GOAL: Final = frozenset({Label.CONTENT, Label.REASON, Label.SOURCE})
_CHANGING: Final = frozenset({"set", "raise", "lower", "change", "edit", "put", "update"})
_SIGNS: Final = frozenset("%€$£")
_LESS: Final = word_set("differences")
_PLACING: Final = word_set("placing")
_CODE: Final = 3
_ACCESS: Final[Mapping[str, str]] = word_map("access")
_ACCESS_LETTERS: Final = frozenset("rwx")
_RIGHTS: Final = word_set("rights_stems")
_BESIDE: Final = 3
"""The number of words allowed between an access right and its letters: permission to read and write."""
ORDINALS: Final[Mapping[str, int]] = word_map("ordinals")


def accounts_for(match: Match, value: Any, argument: Argument) -> bool:
    """Return True if the ask has a value of an argument in its place; mark the words that are it as used."""
    if isinstance(value, bool):
        return argument.name in MODE_FLAGS or not value
    if isinstance(value, int | float):
        if argument.role == "amount" and match.is_key(value):
            return has_number(match, value)
        return has_number(match, value) or match.holds(value) or (value == 1 and argument.role != "amount")
    text = str(value)
    if not text.strip():
        return True
    inside = argument.role == "content" and not argument.control
    if not inside and any(one != " " and (one.isspace() or not one.isprintable()) for one in text):
        return False
    return (
        (has_name(match, text, inside=inside) and (not argument.file or names_file(match, text)))
        or grants(match, text, argument)
        or has_currency(match, text)
        or (not inside and argument.role not in {"principal", "url"} and match.holds(text))
        or (bool(match.found) and _is_found(argument, text) and _is_described(match, text, argument))
    )


def crosses(match: Match, argument: Argument) -> bool:
    """Return True if quantities of list items are mixed up: 3 of one and 5 of another."""
    pairs = [
        (str(name), Decimal(str(number)).normalize())
        for one in (argument.value if isinstance(argument.value, list) else ())
        if isinstance(one, dict)
        for name in one.values()
        if isinstance(name, str)
        for number in one.values()
        if isinstance(number, int | float) and not isinstance(number, bool)
    ]
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        return True
    tokens = match.ask.tokens
    numbers = [at for at, one in enumerate(tokens) if readings(one.text)]
    for name, number in pairs:
        places = [at for at, one in enumerate(tokens) if is_named(one, name)]
        near = [at for at in numbers if at < places[0]] if places else []
        if len(pairs) > 1 and near and number not in readings(tokens[near[-1]].text):
            return True
    return False


def has_number(match: Match, value: float) -> bool:
    """Return True if the ask has a number at a place where it can be a goal."""
    wanted = Decimal(str(value)).normalize()
    found = False
    for at, token in enumerate(match.ask.tokens):
        if match.ask.labels[at] in NO_GOAL or token.kind is Kind.QUOTE:
            continue
        if wanted in amounts_at(match.ask.tokens, at, match.ask.verb.meanings) and not _is_difference(match, at):
            match.used.add(at)
            found = True
    return found


def _is_difference(match: Match, place: int) -> bool:
    """Return True if a number is a difference and not a new value: 5 pounds off, raise it by 2."""
    if match.ask.verb.meanings.isdisjoint(_CHANGING):
        return False
    texts = [one.text for one in match.ask.tokens]
    behind = [one for one in texts[place + 1 : place + 4] if one not in CURRENCIES and one not in _SIGNS]
    before = texts[place - 1] if place else ""
    by = before == "by" or (before == "en" and not match.ask.verb.meanings.isdisjoint({"raise", "lower"}))
    return by or not _LESS.isdisjoint(behind[:1])


def grants(match: Match, text: str, argument: Argument) -> bool:
    """Return True if a choice denotes by its letters the access asked for: rw for read and write access."""
    letters = all(map(_ACCESS_LETTERS.issuperset, argument.choices))
    if not letters or not text or text not in argument.choices:
        return False
    tokens = match.ask.tokens
    rights = [at for at, one in enumerate(tokens) if one.stem in _RIGHTS and match.ask.labels[at] not in NO_GOAL]
    near = {at for right in rights for at in range(max(right - _BESIDE, 0), min(right + _BESIDE + 1, len(tokens)))}
    said = {at: _ACCESS[tokens[at].text] for at in near if tokens[at].text in _ACCESS}
    if not said or {*text} != {*"".join(said.values())}:
        return False
    match.used.update(said)
    match.used.update(rights)
    return True


def has_currency(match: Match, text: str) -> bool:
    """Return True if the ask, or what it describes, has a currency; no other one may be named."""
    wanted = text.lower()
    if len(wanted) != _CODE or not wanted.isalpha():
        return False
    said = [(at, one.text) for at, one in enumerate(match.ask.tokens) if one.text in CURRENCIES]
    if said:
        match.used.update(at for at, _ in said)
        return all(wanted in CURRENCIES[one].split() for _, one in said)
    return match.holds(text)


def has_name(match: Match, text: str, *, inside: bool = False) -> bool:
    """Return True if the ask has a value at a place where it can be a goal, and mark its words as used.

    Mere content may be ``inside`` the ask's content, too.
    """
    if is_disguised(text):
        return False
    ask, plain = match.ask, plain_name(text)
    if plain in ORDINALS or match.ask.lexicon.holds("universal", plain):
        return False
    marked = bool(_MARKING & {*text})
    for at, token in enumerate(ask.tokens):
        open_to = inside or ask.labels[at] not in NO_GOAL
        if open_to and (marked or is_named(token, text)) and _is_whole(match, at, at, text):
            match.used.add(at)
            return True
    return _spells(match, text) or _points_to(match, text)


def _points_to(match: Match, text: str) -> bool:
    """Return True if the ask refers to a value named before it: put it there, in that file."""
    ask = match.ask
    if any(one.kind is Kind.LITERAL and ("@" in one.text) == ("@" in text) for one in ask.of(Label.OBJECT)):
        return False  # a named value needs no reference
    named = {one.text: one for one in (*ask.before, *ask.files) if is_file_name(one.text)}
    if ask.there and len(named) == 1 and all(is_named(one, text) for one in named.values()):
        return True
    if not ask.refers:
        return False
    if ask.topic is not None and is_named(ask.topic, text):
        return True
    for at, one in enumerate(ask.before[1:], 1):
        if is_named(one, text) and ask.before[at - 1].text in _PLACING:
            return True
    for kind in (Kind.LITERAL, Kind.NUMBER):
        literals = {one.text: one for one in ask.before if one.kind is kind}
        if len(literals) == 1 and all(is_named(one, text) for one in literals.values()):
            return True
    return False


def _spells(match: Match, text: str) -> bool:
    """Return True if the words of a value occur consecutively in the ask, in its spelling."""
    ask = match.ask
    wanted = [one.text for one in tokenize(text) if one.kind is not Kind.MARK]
    inside = len(wanted) > 2
    places = [
        at
        for at, one in enumerate(ask.tokens)
        if one.kind is not Kind.MARK and (ask.labels[at] not in NO_GOAL or (inside and ask.labels[at] is Label.CONTENT))
    ]
    if len(wanted) < 2:
        return False
    for first in range(len(places) - len(wanted) + 1):
        some = places[first : first + len(wanted)]
        if [ask.tokens[at].text for at in some] == wanted and _is_whole(match, some[0], some[-1], text):
            match.used.update(some)
            return True
    return False


def _is_whole(match: Match, first: int, last: int, text: str) -> bool:
    """Return True if tokens are complete words: /etc/a.txt and *.txt are neither a.txt nor txt."""
    said, start, stop = match.request.text, match.ask.tokens[first].start, match.ask.tokens[last].stop
    begin, end = start, stop
    while begin and said[begin - 1] in _MARKING | {"."}:
        begin -= 1
    while end < len(said) and said[end] in _MARKING:
        end += 1
    if (begin, end) == (start, stop) and not _MARKING & {*text} and ".." not in text:
        return True
    if match.ask.tokens[first].kind is Kind.QUOTE and (begin, end) == (start, stop):
        return written(match.ask.tokens[first].raw.strip()) == written(text.strip())
    return written(said[begin:end]) == written(text.strip())


def _is_found(argument: Argument, text: str) -> bool:
    """Return True if a value is found by a description alone: an address, or a file of a folder that was listed."""
    return argument.role in {"principal", "url"} or (argument.control and "/" in text and not is_disguised(text))


def _is_described(match: Match, text: str, argument: Argument) -> bool:
    return any(one.text == text and one in match.found for one in argument.items)


def says_word(match: Match, text: str) -> bool:
    """Return True if a one-word content is one of the ask's words, ignoring its ending."""
    said = [*match.ask.tokens, *match.ask.before]
    if any(one.isdigit() for one in text):
        return False
    word = fold(text.strip())
    return any(_is_form_of(one.text, word) or (one.kind is Kind.QUOTE and word in one.text.split()) for one in said)


def _is_form_of(said: str, word: str) -> bool:
    """Return True if words differ at most in their ending: broken, break; but not production-eu, production."""
    said = said.removesuffix("'s").partition(".")[0]
    return said == word or (said[:STEM] == word[:STEM] and said.isalpha() and word.isalpha())
