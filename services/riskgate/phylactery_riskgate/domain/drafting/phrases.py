"""Proposes how people ask for a tool, as far as its name honestly says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from phylactery_riskgate.domain.catalog_facts import MAX_PHRASE
from phylactery_riskgate.domain.drafting.vocabulary import IDIOMS, THINGS, Said, Verb, singular, thing_of
from phylactery_riskgate.domain.phrase_words import form, heard

MAX_PROPOSED: Final = 60
"""Of each language; whoever needs more writes them."""


def english(words: tuple[str, ...], verb: tuple[int, Verb] | None) -> tuple[str, ...]:
    """Answers English phrases for a tool's name; one whose verb is unknown is asked for by its name alone."""
    if verb is None:
        return _cut([" ".join(words)])
    thing = tuple(singular(word) for word in thing_of(words, verb[0]))
    known = _said(thing, 0)
    named = [" ".join(thing)] if thing else []
    said = (singular(words[verb[0]]), *verb[1].en)
    return _cut([*_idioms(words[verb[0]], thing, 0), *_joined(said, [*named, *known], _english_plural)])


def spanish(words: tuple[str, ...], verb: tuple[int, Verb] | None) -> tuple[str, ...]:
    """Answers Spanish phrases, none where the thing has no name we know."""
    if verb is None:
        return ()
    thing = tuple(singular(word) for word in thing_of(words, verb[0]))
    known = _said(thing, 1)
    if thing and not known:
        return ()
    return _cut([*_idioms(words[verb[0]], thing, 1), *_joined(verb[1].es, known, _spanish_plural)])


def _said(thing: tuple[str, ...], language: int) -> Said:
    """Answers what people call a thing; the last word of an English name says what it is."""
    found = THINGS.get(thing[-1]) if thing else None
    return found[language] if found else ()


def _idioms(verb: str, thing: tuple[str, ...], language: int) -> Said:
    found = IDIOMS.get((verb, thing[-1])) if thing else None
    return found[language] if found else ()


def _joined(verbs: Said, things: Iterable[str], plural: Callable[[str], str]) -> list[str]:
    names = list(dict.fromkeys(things))
    if not names:
        return list(verbs)
    return [f"{verb} * {one}" for name in names for one in (name, plural(name)) for verb in verbs if verb != name]


def distinct(phrases: Iterable[str]) -> list[str]:
    """Answers phrases without those that are heard as another is, that are too long, or that nobody says."""
    kept: dict[tuple[str, ...], str] = {}
    for phrase in phrases:
        if heard(phrase) and len(phrase) <= MAX_PHRASE:
            kept.setdefault(form(phrase), phrase)
    return list(kept.values())


def _cut(phrases: Iterable[str]) -> tuple[str, ...]:
    return tuple(distinct(phrases)[:MAX_PROPOSED])


def _english_plural(name: str) -> str:
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in set("aeiou"):
        return f"{name[:-1]}ies"
    return f"{name}s"


def _spanish_plural(name: str) -> str:
    first, *rest = name.split(" ", 1)
    if first.endswith("ión"):
        first = f"{first[:-3]}iones"
    elif first.endswith("z"):
        first = f"{first[:-1]}ces"
    elif first[-1] in "aeiouáéíóú" or first.endswith("il"):
        first = f"{first}s"
    else:
        first = f"{first}es"
    return " ".join([first, *rest])
