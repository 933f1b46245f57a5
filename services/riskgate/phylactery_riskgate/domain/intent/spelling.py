"""The user's spelling of a value: accents, and the punctuation around and between its tokens.

Tokens are not enough where a value decides the target: report* is not report, ../notes.txt is not notes.txt,
github.com-acme.app is not github.com/acme, and bob@acmé.example is not bob@acme.example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.languages import EXTENSIONS, SMALL
from phylactery_riskgate.domain.intent.model import LISTED, NAMED
from phylactery_riskgate.domain.intent.words import Words, bare
from phylactery_riskgate.domain.model import Role

STRICT: Final = frozenset({"principal", "object", "amount", "secret", "url"})
"""Roles whose value decides the effect; contents and times matter less."""
EXACT: Final = frozenset({"principal", "secret", "url"})
"""Roles in which an accent makes a different value."""
_SPACE = re.compile(r"\s+")
_AROUND: Final = " \"'`´“”«»„<>()[]{},;:!.…¿¡"
"""Punctuation that people write around a value without meaning it."""
_OPENING: Final = _AROUND.replace(".", "")
_BETWEEN: Final = frozenset(" ,;:()'\"")
_CALLED: Final = frozenset({"", "#", "@", "./"})
"""What may precede a value without changing the target."""
_WILD = re.compile(r"\*|(?:^|[/\\])\.\.(?:$|[/\\])|^~")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,30})://")
_WEB: Final = frozenset({"http", "https"})
_SECURE: Final = "https"
_OF_SCHEME: Final = "://"
_NAME: Final = 3
"""The number of letters of a small word that can be a name."""


@dataclass(frozen=True, slots=True)
class Spelled:
    """A call value as written: its tokens with accents and without, and what is around them.

    ``gaps`` has one more entry than there are tokens.
    """

    text: str
    tokens: tuple[str, ...]
    accented: tuple[str, ...]
    gaps: tuple[str, ...]

    @property
    def wild(self) -> bool:
        """Return True if the value reaches more, or elsewhere, than its tokens say."""
        return _WILD.search(self.text) is not None

    @property
    def disguised(self) -> bool:
        """Return True if an address or a host in it has accents."""
        return any(one != folding.fold(one) and ("@" in one or "." in one) for one in self.accented)

    @property
    def address(self) -> bool:
        """Return True if it contains an address."""
        return "@" in self.text


def ways(value: str) -> list[Spelled]:
    """Return a value as written and, if it is percent-encoded, also decoded."""
    found = [spelled(value)]
    decoded = unquote(value)
    return found if decoded == value else [*found, spelled(decoded)]


@lru_cache(maxsize=16)  # a call's few values are read for each of the origins they may have
def spelled(value: str) -> Spelled:
    """Return the spelling of a value."""
    text = _SPACE.sub(" ", folding.written(value)).strip()
    accented: list[str] = []
    gaps: list[str] = []
    end = 0
    for start, stop in folding.spans(text):
        accented.append(text[start:stop])
        gaps.append(text[end:start])
        end = stop
    gaps.append(text[end:])
    return Spelled(text, tuple(folding.fold(one) for one in accented), tuple(accented), tuple(gaps))


def said(words: Words, value: str, role: Role) -> int | None:
    """Return the origin of a deciding value by the user's spelling of it, or None if they did not write it."""
    plain = role == "url" and "%" in _host(value)
    found = (said_as(words, way, role) for way in ([spelled(value)] if plain else ways(value)))
    return min((level for level in found if level is not None), default=None)


def said_as(words: Words, value: Spelled, role: Role) -> int | None:
    """Return the same for a value as written, without its decoded form."""
    best: int | None = None
    for level in _said(words, value, role):
        best = level if best is None else min(best, level)
        if best == NAMED:  # no other place says more: a text may repeat a value a thousand times
            break
    return best


def ends_oddly(value: str) -> bool:
    """Return True if a value has white space around it other than blanks: a line break, a tab."""
    return value.strip(" ") != value.strip()


def _host(url: str) -> str:
    return url.partition(_OF_SCHEME)[2].partition("/")[0] or url.partition("/")[0]


def _said(words: Words, value: Spelled, role: Role) -> Iterator[int]:
    if not value.tokens:
        return
    scheme = ""
    if role == "url":
        found = _SCHEME.match(value.text)
        if found is not None:
            scheme = found[1]
            value = spelled(value.text[found.end() :])
    wanted = tuple(map(bare, value.tokens))
    for place in words.bare_places.get(wanted[0], ()) if wanted else ():
        if words.bare[place : place + len(wanted)] == wanted:
            level = _level(words, value, role, place, scheme)
            if level is not None:
                yield level
    atoms = _atoms(value.tokens)
    if (
        role != "url"
        and not value.address
        and not value.wild
        and any(map(can_name, atoms))
        and words.hold_plain_atoms(atoms)
    ):
        yield LISTED
    if role == "principal" and _is_called(value) and value.tokens[-1] in words.token_places:
        yield LISTED


def can_name(atom: str) -> bool:
    """Return True if a part of a value can be a name by itself: not "a txt" for a.txt, but todo for todo.md."""
    return atom not in EXTENSIONS and (len(atom) >= _NAME or atom not in SMALL)


def _atoms(tokens: Sequence[str]) -> list[str]:
    return [atom for token in tokens for atom in folding.atoms(token)]


def _is_called(value: Spelled) -> bool:
    """Return True if a value is an address with a display name: Ana Ruiz <ana@acme.example>."""
    names, address = value.tokens[:-1], value.accented[-1]
    plain = all(gap == " " for gap in value.gaps[1:-2]) and not any("@" in name for name in names)
    called = value.gaps[-2:] in ((" <", ">"), (' "<', ">"), ('" <', ">"))
    return bool(names) and plain and called and "@" in address and address == value.tokens[-1]


def _level(words: Words, value: Spelled, role: Role, place: int, scheme: str) -> int | None:
    levels = [
        _accents(words, value, role, place),
        _inside(words, value, role, place),
        _scheme(words, value, place, scheme) if role == "url" else _before(words, value, place),
        _behind(words, value, place),
    ]
    known = [level for level in levels if level is not None]
    return max(known) if len(known) == len(levels) else None


def _accents(words: Words, value: Spelled, role: Role, place: int) -> int | None:
    level = NAMED
    for number, token in enumerate(value.tokens):
        if bare(words.accents.get(place + number, words.tokens[place + number])) == bare(value.accented[number]):
            continue
        if role in EXACT and ("@" in token or "." in token):
            return None
        if role in EXACT or "." in token:
            level = LISTED
    return level


def _inside(words: Words, value: Spelled, role: Role, place: int) -> int | None:
    level = NAMED
    for number, gap in enumerate(value.gaps[1:-1], 1):
        there = words.gaps.get(place + number, " ")
        if gap == there:
            continue
        if role == "url" or not (_BETWEEN.issuperset(gap) and _BETWEEN.issuperset(there)):
            return None
        level = LISTED
    return level


def _before(words: Words, value: Spelled, place: int) -> int | None:
    mine, there = value.gaps[0], words.gaps.get(place, " ").rpartition(" ")[2]
    if mine == there:
        return NAMED
    core, other = mine.lstrip(_OPENING), there.lstrip(_OPENING)
    if core == other:
        return LISTED if mine else NAMED
    return LISTED if core in _CALLED or other.endswith(core) else None


def _scheme(words: Words, value: Spelled, place: int, scheme: str) -> int | None:
    if value.gaps[0]:
        return None
    there = words.gaps.get(place, " ")
    given = words.tokens[place - 1] if there == _OF_SCHEME and place else ""
    if not given and there.rpartition(" ")[2].strip(_AROUND):
        return None
    if scheme in {given, ""} or (not given and scheme == _SECURE):
        return NAMED
    return LISTED if {scheme, given or _SECURE} == _WEB else None


def _behind(words: Words, value: Spelled, place: int) -> int | None:
    mine, there = value.gaps[-1], words.gaps.get(place + len(value.tokens), " ").partition(" ")[0]
    if mine == there:
        return NAMED
    core, other = mine.rstrip(_AROUND), there.rstrip(_AROUND + "?")
    if core == other:
        return LISTED if mine else NAMED
    return LISTED if core in {"", "/"} or other.startswith(core) else None


def same(written: str, value: Spelled) -> bool:
    """Return True if a tool's value is spelled like the call's."""
    one, other = written.strip(_AROUND), value.text.strip(_AROUND)
    return one == other or ("@" not in one and one.replace(" ", "") == other.replace(" ", ""))
