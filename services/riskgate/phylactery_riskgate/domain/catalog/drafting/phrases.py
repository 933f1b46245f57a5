"""Drafting of the phrases by which users ask for a tool, from its name and description."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from phylactery_riskgate.domain.catalog.drafting.vocabulary import (
    IDIOMS,
    LINKING,
    OFTEN_NOUNS,
    THINGS,
    VERBS,
    Said,
    Verb,
    singular,
    thing_named,
    thing_of,
    verb_of,
    word_set,
)
from phylactery_riskgate.domain.facts.catalog_facts import ANY, MAX_PHRASE
from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.languages import SMALL
from phylactery_riskgate.domain.intent.phrases import stem


def written(phrase: str) -> tuple[str, ...]:
    """Return a phrase's words, folded and without gaps."""
    return tuple(folding.atoms_of(folding.fold(phrase)))


def form(phrase: str) -> tuple[str, ...]:
    """Return a phrase without inflections but with its gaps; phrases of one form match the same requests."""
    return tuple(part for word in phrase.split() for part in ((word,) if word == ANY else map(stem, written(word))))


def heard(phrase: str) -> tuple[str, ...]:
    """Return the words of a phrase that matter for matching: no small words, no inflections."""
    return tuple(stem(word) for word in written(phrase) if word not in SMALL)


MAX_PROPOSED: Final = 60
"""The number of phrases per language; an author may add more."""
MAX_SENTENCE: Final = 400
_RANK: Final = {"none": 0, "read": 0, "write": 1, "irreversible": 2}
_CLAUSE = re.compile(r"[.,;:!?()\n]")
_WORD = re.compile(r"[^\W\d_]+")
_NOTHING: Final = word_set(
    """a an the one all any some every each this that these those your my our their its his her how many much
    somebody someone anybody anything something it them people new existing given specified single"""
)


@dataclass(frozen=True, slots=True)
class Ask:
    """A verb and its objects: ``things`` are the English names, without unknown ones."""

    word: str
    verb: Verb
    things: tuple[tuple[str, ...], ...]

    @property
    def untranslated(self) -> tuple[str, ...]:
        """Return the things without a known Spanish name."""
        return tuple(" ".join(one) for one in self.things if not thing_named(one))


def ask_of(words: tuple[str, ...], verb: tuple[int, Verb] | None, description: str, effect: str) -> tuple[Ask, ...]:
    """Return the request that a tool's name expresses, with additions from its description.

    A verb that does less than the tool is not used: with a reading verb, a request to read would match a tool that
    changes something.
    """
    told, described = _described(description)
    things = described
    found: list[Ask] = []
    if verb is not None:
        place, said = verb
        thing = tuple(map(singular, thing_of(words, place)))
        named = words[place + 1 :] or not things
        things = (thing,) if thing and named else things
        if said.effect != "read" or effect == "read":
            found.append(Ask(words[place] if words[place] in VERBS else singular(words[place]), said, things))
    if told and _RANK[VERBS[told].effect] >= _RANK[effect] and all(one.verb != VERBS[told] for one in found):
        found.append(Ask(told, VERBS[told], described or things))
    return tuple(found)


def english(words: tuple[str, ...], asks: tuple[Ask, ...]) -> tuple[str, ...]:
    """Return English phrases; a tool whose name has no known verb is also requested by its bare name."""
    found = [] if verb_of(words) else [" ".join(words)]
    for one in asks:
        names = [" ".join(thing) for thing in one.things]
        known = [name for thing in one.things for name in _said(thing, 0)]
        found += [*_idioms(words, one, 0), *_joined((one.word, *one.verb.en), [*names, *known], _english_plural)]
        found += _alone(one) if words == (one.word,) else ()
    return _cut(found)


def spanish(words: tuple[str, ...], asks: tuple[Ask, ...]) -> tuple[str, ...]:
    """Return Spanish phrases; things without a known Spanish name keep the English one."""
    found: list[str] = []
    for one in asks:
        names = [name for thing in one.things for name in _said(thing, 1) or (" ".join(thing),)]
        found += [*_idioms(words, one, 1), *_joined(one.verb.es, names, _spanish_plural)]
        found += one.verb.es[:1] if words == (one.word,) else ()
    return _cut(found)


def _described(description: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return the verb that begins a description and its objects; empty if there is none."""
    clause = _CLAUSE.split(description.strip()[:MAX_SENTENCE], maxsplit=1)[0]
    words = tuple(word.lower() for word in _WORD.findall(clause))
    verb = next((one for one in (words[:1] and (words[0], singular(words[0]))) if one in VERBS), "")
    return verb, tuple(_things(words[1:])) if verb else ()


def _things(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Return the known objects of a clause: "a version of a service" names both."""
    parts: list[list[str]] = [[]]
    for word in words:
        if LINKING.fullmatch(word):
            if parts != [[]] and word != "of":
                break
            parts.append([])
        elif word not in _NOTHING:
            parts[-1].append(singular(word))
    for part in parts[:2]:
        ends = (tuple(part[:end]) for end in range(len(part), 0, -1))
        named = next((key for end in ends if (key := thing_named(end))), "")
        if named:
            yield tuple(named.split("_"))


def _said(thing: tuple[str, ...], language: int) -> Said:
    """Return the everyday names of a thing; the last word of an English name is its head noun."""
    found = THINGS.get(thing_named(thing))
    return found[language] if found else ()


def _alone(one: Ask) -> Said:
    """Return the verb of a tool that is named by a verb alone, and its exact synonyms."""
    same = (said for said in one.verb.en if VERBS.get(said) == one.verb and said not in OFTEN_NOUNS)
    return tuple(dict.fromkeys((one.word, *same)))


def _idioms(words: tuple[str, ...], one: Ask, language: int) -> Said:
    if one.word not in words:
        return ()  # a description does not say which goal the tool is a step of
    things = (*one.things, words) if words == (one.word,) else one.things
    return tuple(said for thing in things for said in IDIOMS.get((one.word, thing[-1]), ((), ()))[language])


def _joined(verbs: Said, things: Iterable[str], plural: Callable[[str], str]) -> list[str]:
    names = list(dict.fromkeys(things))
    if not names:
        return list(verbs)
    forms = dict.fromkeys(number for one in names for number in (one, plural(one)))
    return [f"{verb} * {one}" for one in forms for verb in dict.fromkeys(verbs) if form(verb) != form(one)]


def distinct(phrases: Iterable[str]) -> list[str]:
    """Return the phrases without duplicates by meaning, too long ones, and ones of small words only."""
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
    if name.isupper() or (" " in name and " de " not in name):
        return f"{name}s"  # PR, pull request: loan words keep their plural
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
