"""The origin of one value of a call, by what RiskGate was shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from phylactery_riskgate.domain.intent import folding, spelling
from phylactery_riskgate.domain.intent.index import Result, TaskIndex
from phylactery_riskgate.domain.intent.languages import ACCORDING, EXTENSIONS
from phylactery_riskgate.domain.intent.model import FOREIGN, LISTED, NAMED, POINTED
from phylactery_riskgate.domain.intent.origin.computing import (
    asks_to_calculate,
    is_calculated,
    is_relative_day,
    known_numbers,
)
from phylactery_riskgate.domain.intent.origin.literals import dates_in_token, number, numbers_in, written_forms
from phylactery_riskgate.domain.intent.origin.naming import Value, strength, telling
from phylactery_riskgate.domain.intent.origin.prints import day_print, prints
from phylactery_riskgate.domain.intent.phrases import stem
from phylactery_riskgate.domain.intent.spelling import Spelled
from phylactery_riskgate.domain.intent.words import is_value, looks_literal
from phylactery_riskgate.domain.model import Mark, Role
from phylactery_riskgate.domain.views.visible import make_visible

Found = tuple[int, str]
"""An origin and a short name of the place."""

_DISGUISES: Final = frozenset({Mark.BIDI, Mark.INVISIBLE, Mark.LOOK_ALIKE, Mark.MIXED_SCRIPT})
_LOOKED_AT: Final = 4_096
BY_WORDS: Final = "the user's words"
NOTHING: Final = "nothing"
_DEFAULT: Final = "the tool's default"
OTHER_SPELLING: Final = "the user's words, spelled otherwise"
_DOUBTED: Final = "words that may be somebody else's"
_REACHED: Final = frozenset({"principal", "url"})
"""Roles of the recipient or target of a call."""
_NEVER_DATA: Final = frozenset(
    "command cmd sql script code query statement expression webhook callback iban account cuenta amount sum total"  # noqa: SIM905
    " importe cantidad".split()
)
"""Parts of the names of arguments whose value acts by itself, or is money or where it goes."""
_ACTING: Final = re.compile(r"[@/\\|;&$`<>~*?{}\[\]=\n]|://")
_ACCOUNT: Final = re.compile(r"[a-z]{2}[0-9]{2}[a-z0-9]{10,30}|[0-9]{10,}")
_GROUPING: Final = frozenset({"", " ", "-", "."})
"""Separators allowed between the groups of an account number."""
_BESIDE_NUMBERS: Final = frozenset(" #€$£¥%\"'.,:")
_BESIDE_IDS: Final = _BESIDE_NUMBERS - {"%"}
BY_ASK: Final = "what the user asked for"
_CHOICE: Final = "a choice the tool offers"
IDLE: Final = frozenset({"", NOTHING, _DEFAULT, _CHOICE})
"""Places of values that state nothing."""
TEXT_OF: Final = "text of"
OTHER_TEXT: Final = "other text of"
NOWHERE: Final = "nowhere"
FIELD_OF: Final = "a field of"
_WILD: Final = "a sign for more, or for elsewhere, than the user wrote"
_FOLDER: Final = "the folder itself, or the one above"
UNSEEN: Final = frozenset({NOWHERE, _FOLDER, "more values than are looked at"})
"""Places of values that no text contains: nothing indicates that they are another person's."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One value of a call: its role, the argument's name, and the call's other values."""

    role: Role
    name: str
    value: Any
    beside: frozenset[str]
    picks: bool = False
    """The user picks the tool's object by an order: the largest file."""
    nouns: frozenset[str] = frozenset()
    """Stems of the names of the tool's object."""
    limited: bool = False
    """The schema allows only a few values."""
    default: bool = False
    """The value is the schema's default."""
    unspoken: bool = False
    """The argument is optional, and the user mentioned no one it could refer to."""


def origin(index: TaskIndex, argument: Argument) -> Found:
    """Return the origin of a value: that with the best evidence, or the unknown origin."""
    value = argument.value
    if argument.default:
        return NAMED, _DEFAULT
    if isinstance(value, bool) or value is None:
        return LISTED, _CHOICE
    if not isinstance(value, str):
        return _settled(index, argument, [number(value)], _of_number(index, argument, number(value)))
    if argument.role in spelling.STRICT:
        return _of_strict(index, argument, value)
    tokens = folding.tokens(folding.fold(unquote(value) if "%" in value else value))
    if not tokens:
        return NAMED, NOTHING
    return _settled(index, argument, tokens, _of_text(index, argument, tokens))


def _of_strict(index: TaskIndex, argument: Argument, value: str) -> Found:
    """Return the origin of a text that decides the effect: here its spelling counts, too."""
    if not value.strip():
        return NAMED, NOTHING
    if not _DISGUISES.isdisjoint(make_visible(value, _LOOKED_AT).marks):
        return FOREIGN, "a value in disguise"
    ways = spelling.ways(value)
    tokens = ways[-1].tokens
    said = spelling.said(index.words, value, argument.role)
    if not tokens or (said != NAMED and any(way.wild for way in ways)):
        return FOREIGN, _FOLDER if value.strip().rstrip("/") in {".", ".."} else _WILD
    if said is None and argument.role in spelling.EXACT and any(way.disguised for way in ways):
        return FOREIGN, "a value in disguise"
    if argument.role == "object":
        return _settled(index, argument, tokens, _of_name(index, argument, ways, odd=spelling.ends_oddly(value)))
    return _settled(index, argument, tokens, _of_spelled(index, argument, ways, said))


def _of_name(index: TaskIndex, argument: Argument, ways: Sequence[Spelled], *, odd: bool) -> Iterator[Found]:
    """Return the origin of a name; tools take it as written, and may or may not decode it."""
    for way in ways:
        least = LISTED if odd or way is not ways[0] else NAMED
        said = spelling.said_as(index.words, way, argument.role)
        found = _of_spelled(index, argument, [way], None if said is None else max(said, least))
        yield from ((max(level, least), place) for level, place in found)


def _settled(index: TaskIndex, argument: Argument, tokens: Sequence[str], found: Iterator[Found]) -> Found:
    best = min(found, default=None)
    if best is None:
        best = _from_nowhere(argument)
    if best[0] > LISTED and _is_doubted(index, tokens):
        return LISTED, _DOUBTED
    if best[0] == POINTED and argument.role in spelling.STRICT and _contradicts(index, argument, tokens):
        return FOREIGN, "not the value the user gave"
    if best[0] >= POINTED and (tool := _field_of(index, argument, tokens)):
        return best[0], f"{FIELD_OF} {tool}"
    return best


def _field_of(index: TaskIndex, argument: Argument, tokens: Sequence[str]) -> str:
    """Return the tool in whose result a value is all of a field, or an empty string.

    An id or a name that a tool returned as data does not say what to do with it, so the user may be asked about it. An
    address, an account, a command or a sum of money is never data. For a recipient, only what the user's own calls
    returned counts: a list of people is no reason to write to one of them.
    """
    written = str(argument.value)
    named = frozenset(folding.atoms_of(folding.fold(argument.name)))
    if argument.role == "url" or not _NEVER_DATA.isdisjoint(named) or _ACTING.search(written):
        return ""
    if argument.role != "amount" and _ACCOUNT.fullmatch("".join(tokens)):
        return ""
    parts = [atom for token in tokens for atom in folding.atoms(token)]
    forms = [prints(tokens), prints(parts)]
    if len(tokens) == 1:
        numbers = numbers_in(tokens[0])
        forms += [prints(folding.tokens(form)) for one in numbers for form in written_forms(one)]
        forms += [[day_print(day)] for day in dates_in_token(tokens[0])]
    others = [form for form in forms[1:] if form and form != forms[0]]
    found = index.field_of(tokens, [forms[0], *others], made=argument.role in _REACHED)
    return "" if found is None else found.tool


def _is_doubted(index: TaskIndex, tokens: Sequence[str]) -> bool:
    """Return True if a value occurs where the user's words may be another person's."""
    words = index.words.doubted
    if words is None:
        return False
    return words.hold_tokens(tokens) or not words.numbers.isdisjoint(tokens) or "".join(tokens) in words.joined


def _from_nowhere(argument: Argument) -> Found:
    if argument.limited:
        return LISTED, _CHOICE
    if argument.role in spelling.STRICT:
        return FOREIGN, NOWHERE
    return LISTED, "written for the call"


def _of_text(index: TaskIndex, argument: Argument, tokens: Sequence[str]) -> Iterator[Found]:
    numbers = numbers_in(tokens[0]) if len(tokens) == 1 else ()
    if numbers:
        for one in numbers:
            yield from _of_number(index, argument, one)
    elif _said(index, tokens):
        yield NAMED, BY_WORDS
    days = list(dates_in_token(tokens[0]))
    if argument.role in {"date", "content"} and days:
        yield from _of_day(index, days)
    yield from _of_values(index, " ".join(tokens), argument)
    squeezed = "".join(tokens)
    if len(tokens) > 1 and looks_literal(squeezed):
        yield from _of_values(index, squeezed, argument)
    if not numbers:
        yield from _of_prints(index, prints(tokens), argument)
        if argument.role == "object" and _is_composed(index, tokens):
            yield LISTED, "made of the user's words"


def _of_spelled(index: TaskIndex, argument: Argument, ways: Sequence[Spelled], said: int | None) -> Iterator[Found]:
    tokens = ways[-1].tokens
    numbers = numbers_in(tokens[0]) if len(tokens) == 1 else ()
    if numbers:
        beside = _BESIDE_IDS if argument.role == "object" else _BESIDE_NUMBERS
        least = NAMED if all(beside.issuperset(gap) for gap in ways[-1].gaps) else LISTED
        for one in numbers:
            yield from ((max(level, least), place) for level, place in _of_number(index, argument, one))
        return
    if said is not None:
        yield said, OTHER_SPELLING if said else BY_WORDS
    squeezed = "".join(tokens)
    grouped = not ways[-1].address and all(map(_GROUPING.__contains__, ways[-1].gaps))
    if grouped and _is_account(index, squeezed):
        yield NAMED, BY_WORDS
    yield from _of_values(index, " ".join(tokens), argument, ways)
    if grouped and len(tokens) > 1 and looks_literal(squeezed):
        yield from _of_values(index, squeezed, argument)
    yield from _of_prints(index, prints(tokens), argument, " ".join(tokens))
    if argument.role == "object" and _is_composed(index, tokens):
        yield LISTED, "made of the user's words"


def _is_account(index: TaskIndex, squeezed: str) -> bool:
    """Return True if the user wrote the number of an account, in groups or without."""
    plain = squeezed.replace("-", "")
    return plain in index.words.joined or (looks_literal(plain) and plain in index.words.token_places)


def _said(index: TaskIndex, tokens: Sequence[str]) -> bool:
    words = index.words
    if words.hold_tokens(tokens) or _is_account(index, "".join(tokens)):
        return True
    # Of an address every part counts: ann@corp.example is not part of mary.ann@corp.example.
    return not any("@" in token for token in tokens) and words.hold_atoms(_atoms(tokens))


def _is_composed(index: TaskIndex, tokens: Sequence[str]) -> bool:
    """Return True if a name is composed of the user's words, or is the name they gave below some folder."""
    atoms = [atom for atom in _atoms(tokens) if atom not in EXTENSIONS]
    # A name may consist of small words only: todo.md of "a file called todo". But "a" is in every request.
    tells = telling(atoms) or list(filter(spelling.can_name, atoms))
    composed = bool(tells) and all(atom in index.words.atom_places for atom in tells)
    return composed or (len(tokens) > 1 and is_value(tokens[-1]) and tokens[-1] in index.words.token_places)


def _atoms(tokens: Sequence[str]) -> list[str]:
    return [atom for token in tokens for atom in folding.atoms(token)]


def _of_day(index: TaskIndex, days: Sequence[str]) -> Iterator[Found]:
    if any(index.words.hold_date(day) for day in days):
        yield NAMED, BY_WORDS
    elif index.words.relative_days:
        right = any(is_relative_day(index, day) for day in days)
        yield (NAMED if right else LISTED), "worked out from the user's words"
    for place, result in enumerate(index.results):
        for day in days:
            item = result.first_with([day_print(day)], result.meant)
            if item is not None:
                yield POINTED, _text_of(index, place, item)


def _of_values(index: TaskIndex, norm: str, argument: Argument, ways: Sequence[Spelled] = ()) -> Iterator[Found]:
    """Return the origin of a value in tool results; with ``ways``, a name must be spelled in one of them."""
    for place, result in enumerate(index.results):
        for value in result.sources.get(norm, ()):
            if _fits(value, argument):
                other = bool(ways) and not any(spelling.same(value.written or value.norm, way) for way in ways)
                level = _of_value(index, place, value, argument)
                yield max(level, LISTED) if other else level, f"{result.tool} {value.field}".strip()


def _fits(value: Value, argument: Argument) -> bool:
    """Return True if the kinds fit: an amount matches amounts, an id ids; 7 euros is not the payment with id 7."""
    if argument.role == "amount":
        return value.kind[0] == "o" or value.field == argument.name
    return value.kind[0] != "o" or argument.role in {"date", "content"}


def _of_value(index: TaskIndex, place: int, value: Value, argument: Argument) -> int:
    result, kind = index.results[place], value.kind[0]
    if kind == "f" and not value.registry:
        return _free(index, place, value.item, argument)
    if kind == "s" and result.made:
        return NAMED if argument.role == "object" else LISTED
    if index.is_bound(place, value, picks=argument.picks):
        return NAMED if argument.role not in _REACHED or _is_meant(index, value, argument) else LISTED
    if kind == "s" and argument.role == "object" and argument.picks and index.passes_over(place, value.item):
        return FOREIGN
    if kind == "n" and argument.role != "object":
        return LISTED if value.registry else POINTED
    return LISTED


def _is_meant(index: TaskIndex, value: Value, argument: Argument) -> bool:
    """Return True if the user meant this value of an item they named.

    The sender of a message or the organizer of a meeting is a field of an item that the user names, and is not the
    person they named. It counts only if the item was named by it, if it is from a registry, or if the user mentioned
    its field ("the same participants") and no address themselves.
    """
    if value.registry or strength(value, index.words) > 0:
        return True
    field = telling(folding.atoms_of(folding.fold(value.field)))
    spoken = bool(field) and all(atom in index.words.atom_places for atom in field)
    return spoken and not any("@" in one and one not in argument.beside for one in index.words.literals)


def _free(index: TaskIndex, place: int, item: int, argument: Argument) -> int:
    pointed = index.is_pointed(place, item)
    if argument.role in spelling.STRICT:
        return POINTED if pointed else FOREIGN
    return LISTED if pointed else POINTED


def _of_prints(index: TaskIndex, wanted: Sequence[int], argument: Argument, norm: str = "") -> Iterator[Found]:
    for place, result in enumerate(index.results):
        item = result.first_with(wanted, result.meant)
        if item is None or (argument.role == "object" and _is_system(result, norm)):
            continue
        if argument.unspoken and argument.role in _REACHED:
            yield FOREIGN, "a text, for somebody the user did not speak of"
        else:
            yield _free(index, place, item, argument), _text_of(index, place, item)


def _is_system(result: Result, norm: str) -> bool:
    """Return True if a value is the system's own for a list item: text mentioning it does not point to the item."""
    return any(value.kind[0] == "s" and not result.is_whole(value) for value in result.sources.get(norm, ()))


def _text_of(index: TaskIndex, place: int, item: int) -> str:
    told = TEXT_OF if index.is_pointed(place, item) else OTHER_TEXT
    unproven = ", which no redemption proves" if index.results[place].unproven else ""
    return f"{told} {index.results[place].tool}{unproven}"


def _of_number(index: TaskIndex, argument: Argument, norm: str) -> Iterator[Found]:
    if not norm:
        return
    if argument.role == "object":
        if norm in index.words.ids:
            yield (NAMED if _is_id(index, argument, norm) else LISTED), BY_WORDS
    elif norm in index.words.numbers:
        yield NAMED, BY_WORDS
        return
    yield from _of_values(index, norm, argument)
    for form in written_forms(norm):
        yield from _of_prints(index, prints(form.split(" ")), argument, norm)
    if argument.role == "amount":
        yield from _of_calculation(index, argument, float(norm))


def _is_id(index: TaskIndex, argument: Argument, norm: str) -> bool:
    """Return True if a number occurs where the user names an object of this kind by it: file 5, but not at 5."""
    words = index.words
    return any(
        words.is_numbered(place) or any(stem(atom) in argument.nouns for atom in folding.atoms(words.counted(place)))
        for place in words.ids[norm]
    )


def _of_calculation(index: TaskIndex, argument: Argument, wanted: float) -> Iterator[Found]:
    percents = [float(one) for one in sorted(index.words.percents)]
    named = known_numbers(index, argument.name, bound=True, picks=argument.picks)
    if is_calculated(wanted, named, percents):
        yield (NAMED if asks_to_calculate(index) else LISTED), "worked out from what the user named"
        return
    known_all = known_numbers(index, argument.name, bound=False)
    if asks_to_calculate(index) and is_calculated(wanted, known_all, percents):
        yield LISTED, "worked out from what a tool listed"
        return
    rests = {round(abs(wanted - known), 2): None for known in named}
    wanted_prints = [prints(form.split(" ")) for rest in rests if rest for form in written_forms(number(rest))]
    for place, result in enumerate(index.results):
        if not result.prints:
            continue
        for one in wanted_prints:
            item = result.first_with(one, result.meant)
            if item is not None and index.is_pointed(place, item):
                yield POINTED, f"worked out with {_text_of(index, place, item)}"


def _contradicts(index: TaskIndex, argument: Argument, tokens: Sequence[str]) -> bool:
    """Return True if the user gave another value of this kind that neither this call nor an earlier one used."""
    words = index.words
    if argument.role == "amount":
        unused = words.money - index.used - argument.beside
        return bool(unused) and not asks_to_calculate(index)
    if argument.role in _REACHED and _quotes_another(index, argument):
        return True
    if len(tokens) != 1 or not looks_literal(tokens[0]):
        return False
    address = "@" in tokens[0]
    return any(
        ("@" in one) == address and one not in index.used and one not in argument.beside for one in words.literals
    )


def _quotes_another(index: TaskIndex, argument: Argument) -> bool:
    """Return True if the user quoted texts for a call, and this call has none of them.

    Values already used and names of things that were shown do not count as texts for a call. A user who delegates to a
    text leaves everything they did not quote to that text.
    """
    words = index.words
    if not ACCORDING.isdisjoint(words.atom_places):
        return False
    quotes = [words.tokens[start:stop] for start, stop in words.quotes]
    texts = [" ".join(one) for one in quotes if one and not any(map(is_value, one)) and not _is_shown(index, one)]
    waiting = [one for one in texts if one not in index.used]
    if not waiting or "" in argument.beside:  # for a long content nothing is kept to compare
        return False
    return not any(f" {one} " in f" {written} " for one in texts for written in argument.beside)


def _is_shown(index: TaskIndex, tokens: Sequence[str]) -> bool:
    norm, wanted = " ".join(tokens), prints(tokens)
    return any(norm in result.by_norm or next(result.items_with(wanted), None) is not None for result in index.results)
