"""Where one value of a call comes from, by what RiskGate was shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from phylactery_riskgate.domain.model import Mark, Role
from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.index import TaskIndex, day_print, looks_literal, text_prints
from phylactery_riskgate.domain.tasks.literals import dates_in_token, number
from phylactery_riskgate.domain.tasks.model import FOREIGN, LISTED, NAMED, POINTED
from phylactery_riskgate.domain.visible import make_visible

_STRICT: Final = frozenset({"principal", "object", "amount", "secret", "url"})
_DISGUISES: Final = frozenset({Mark.BIDI, Mark.INVISIBLE, Mark.LOOK_ALIKE, Mark.MIXED_SCRIPT})
_SHOWN: Final = 4_096

Found = tuple[int, str]
"""An origin and, in a few words, the place."""


def origin(index: TaskIndex, role: Role, value: Any) -> Found:
    """Answers where a value comes from: the best evidence there is, or that there is none."""
    if isinstance(value, bool) or value is None:
        return LISTED, "the tool's own words"
    if not isinstance(value, str):
        return min(_number(index, number(value)), default=_nowhere(role))
    if role in _STRICT and not _DISGUISES.isdisjoint(make_visible(value, _SHOWN).marks):
        return FOREIGN, "a value in disguise"
    folded = folding.fold(value)
    tokens = folding.tokens(folded)
    if not tokens:
        return NAMED, "nothing"
    found = min(_text(index, role, tokens), default=_nowhere(role))
    if found[0] == POINTED and role in _STRICT and _contradicts(index, tokens):
        return FOREIGN, "not the value the user gave"
    return found


def _nowhere(role: Role) -> Found:
    return (LISTED, "written for the call") if role in {"content", "date"} else (FOREIGN, "nowhere")


def _text(index: TaskIndex, role: Role, tokens: list[str]) -> Iterator[Found]:
    words = index.words
    if words.hold_tokens(tokens) or (not looks_literal(tokens[0]) and words.hold_atoms(_atoms(tokens))):
        yield NAMED, "the user's words"
    days = list(dates_in_token(tokens[0]))
    if any(words.hold_date(day) for day in days):
        yield NAMED, "the user's words"
    yield from _values(index, " ".join(tokens))
    wanted = [[day_print(day)] for day in days] if role == "date" and days else [text_prints(tokens)]
    yield from _prints(index, wanted)


def _atoms(tokens: list[str]) -> list[str]:
    return [atom for token in tokens for atom in folding.atoms(token)]


def _values(index: TaskIndex, norm: str) -> Iterator[Found]:
    for place, result in enumerate(index.results):
        for value in result.by_norm.get(norm, ()):
            kind, registry = value.kind[0], value.kind.endswith("r")
            where = f"{result.tool} {value.field}".strip()
            if kind == "f" and not registry:
                yield (POINTED if index.is_pointed(place, value.item) else FOREIGN), where
            elif index.is_bound(place, value.item):
                yield NAMED, where
            elif registry or kind == "s":
                yield LISTED, where
            else:
                yield POINTED, where


def _prints(index: TaskIndex, wanted: list[list[int]]) -> Iterator[Found]:
    for place, result in enumerate(index.results):
        for one in wanted:
            for item in result.items_with(one):
                pointed = index.is_pointed(place, item)
                yield (POINTED if pointed else FOREIGN), f"text of {result.tool}"


def _number(index: TaskIndex, norm: str) -> Iterator[Found]:
    if not norm:
        return
    if norm in index.words.numbers:
        yield NAMED, "the user's words"
    yield from _values(index, norm)
    yield from _prints(index, [text_prints([form]) for form in _written(norm)])


def _written(norm: str) -> list[str]:
    """Answers how people write a number."""
    whole, _, part = norm.partition(".")
    part = part.ljust(2, "0")
    grouped = f"{int(whole):,}"
    forms = [norm, f"{whole}.{part}", f"{whole},{part}", grouped, f"{grouped}.{part}"]
    dotted = grouped.replace(",", ".")
    forms += [f"{dotted},{part}"] if norm.partition(".")[2] else [dotted, f"{dotted},{part}"]
    return list(dict.fromkeys(forms))


def _contradicts(index: TaskIndex, tokens: list[str]) -> bool:
    """Says whether the user gave another value of this kind, which no call was made with."""
    if len(tokens) != 1 or not looks_literal(tokens[0]):
        return False
    address = "@" in tokens[0]
    return any(("@" in one) == address and one not in index.used for one in index.words.literals)
