"""One ask: its verb, the labels of its words, and what its pronouns refer to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon, Verb
from phylactery_understanding.language.text import Kind, Token, is_file_name
from phylactery_understanding.language.times import read_times
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.labels import label_body
from phylactery_understanding.requests.model import Ask, Fault, Label
from phylactery_understanding.requests.operators import operator_in, phrase_at
from phylactery_understanding.requests.verbs import OF, PRONOUNS, has_subject, is_for_me, is_noun

_OF_THINGS: Final = frozenset({"compose", "make"})
_STANDING: Final = word_set("it") | word_set("object_clitics")
_SAME: Final = word_set("demonstratives") | word_set("same")
_ALIKE: Final = word_set("alike")
_AS: Final = word_set("as")
_FILES: Final = word_set("files")
TURNING: Final = frozenset({"convert", "translate", "summarize", "copy", "rename"})
"""Meanings of verbs whose first words are the object, if a goal follows."""
_PLACING: Final = frozenset({"write", "put"})
_PARTING: Final = word_set("parting_particles")
_MINDED: Final = word_set("minded_things")
_HELD: Final = word_set("held")
_BECOMING: Final = frozenset({"into"})


def read_ask(words: Lexicon, clause: list[Token], verb: int, before: Sequence[Token], topic: Token | None) -> Ask:
    """Return the ask of a clause whose verb is known, after the statements ``before`` it."""
    texts = [one.text for one in clause]
    compared = comparison(clause)
    times = read_times(clause[: compared[1]] if compared is not None else clause)
    form = clause[verb].text
    meaning = (form not in _STANDING and words.verb(form)) or (
        Verb(frozenset({"put"}) if form in _STANDING else _OF_THINGS, "it" if form in _STANDING else "", "en"),
    )
    chosen = (
        meaning[0]
        if len(meaning) == 1
        else Verb(
            frozenset().union(*(one.meanings for one in meaning)),
            next((one.joined for one in meaning if one.joined), ""),
            meaning[0].language,
        )
    )
    recalls = next((at for at in range(verb) if at + words.match("recall", texts, at) == verb + 1), None)
    if recalls is not None:
        chosen = Verb(frozenset({"remind"}), "", chosen.language)
    looks = words.match("look", texts, verb)
    if looks or is_for_me(texts, verb, chosen):
        chosen = Verb(frozenset({"read"}), chosen.joined, chosen.language)
    labels = [Label.OBJECT] * len(clause)
    ask = Ask(chosen, form, clause, labels, times, words, before=tuple(before), topic=topic)
    _label_lead(words, clause, texts, labels, verb)
    labels[verb] = Label.VERB
    if recalls is not None:
        labels[recalls:verb] = [Label.MARK] * (verb - recalls)
    labels[verb + 1 : verb + looks] = [Label.FILLER] * max(looks - 1, 0)
    ask.fault = (
        operator_in(words, clause[: verb if recalls is None else recalls], 0)
        or (None if looks else phrase_at(words, texts, verb))
        or label_body(words, ask, texts, verb + max(looks, 1))
        or _stated(words, ask, verb)
    )
    if compared is not None:
        labels[compared[1] :] = [Label.SOURCE] * (len(labels) - compared[1])
    turned = ask.verb.meanings & TURNING
    if turned:
        _mark_source(ask)
    if "convert" in turned and any(
        one.text in _BECOMING and label is Label.GOAL for one, label in zip(clause, labels, strict=True)
    ):
        ask.verb = chosen = replace(chosen, meanings=turned)  # turn it into a poem ends nothing, as turn it off does
    said = {
        one.text
        for at, one in enumerate(clause)
        if labels[at] is Label.CONTENT and at not in times.places and one.kind is not Kind.MARK
    }
    ask.there = any(
        one in _SAME and other in _FILES and labels[at] is not Label.CONTENT
        for at, (one, other) in enumerate(itertools.pairwise(texts))
    )
    ask.refers = (
        (bool(said) and said <= _STANDING)
        or bool(chosen.joined and chosen.joined not in {"me", "te", "le", "les", "nos"})
        or any(_stands_for(ask, at) for at in (*range(verb), *range(verb + 1, min(verb + 3, len(clause)))))
    )
    return ask


def _stated(words: Lexicon, ask: Ask, verb: int) -> Fault | None:
    """Return the fault of words that only tell something: notes.txt is wrong, it put milk in notes.txt."""
    said = [one for one, label in zip(ask.tokens, ask.labels, strict=True) if label is not Label.CONTENT]
    noun = is_noun(words, said, verb) or (has_subject(said, verb, ask.verb) and ask.tokens[0].raw)
    if noun:
        return Fault("statement", noun)
    idiom = _means_otherwise(ask, verb)
    return Fault("idiom", idiom) if idiom else None


def _means_otherwise(ask: Ask, verb: int) -> str:
    """Return words with which a verb is another one: put off the move; make a note of a.txt, which is to mind it."""
    for at in range(verb + 1, len(ask.tokens)):
        if ask.labels[at] is Label.CONTENT or ask.tokens[at].kind is Kind.QUOTE:
            break
        one, behind = ask.tokens[at], ask.tokens[at + 1 : at + 3]
        if one.text in _PARTING and ask.labels[at] is Label.ARTICLE and not ask.verb.meanings.isdisjoint(_PLACING):
            return f"{ask.form} {one.raw}"
        if one.text in _MINDED and len(behind) > 1 and behind[0].text in OF and is_file_name(behind[1].text):
            return f"{ask.form} {one.raw} {behind[0].raw}"
    return ""


def _stands_for(ask: Ask, place: int) -> bool:
    """Return True if a word is a pronoun for something said before: put it in a.txt, but not put that file."""
    token, after = ask.tokens[place], place + 1
    if token.text not in _STANDING or ask.labels[place] in {Label.CONTENT, Label.FILLER, Label.SOURCE}:
        return False
    return after >= len(ask.tokens) or ask.labels[after] is not Label.OBJECT or ask.tokens[after].kind is not Kind.WORD


def _label_lead(words: Lexicon, clause: Sequence[Token], texts: Sequence[str], labels: list[Label], verb: int) -> None:
    times = read_times(clause[:verb]).places
    place = 0
    while place < verb:
        size = words.longest(("please", "polite", "greet"), texts, place)
        label = Label.FILLER
        if place in times:
            size, label = 1, Label.TIME
        elif not size and clause[place].kind is Kind.WORD and words.match("goal", texts, place):
            size, label = words.match("goal", texts, place), Label.GOAL
        elif not size:
            size = 1
            small = texts[place] in PRONOUNS or words.holds("article", texts[place])
            word = Label.ARTICLE if small or Label.GOAL not in labels[:place] else Label.OBJECT
            literal = clause[place].kind in {Kind.LITERAL, Kind.NUMBER}
            label = Label.OBJECT if literal else word if clause[place].kind is Kind.WORD else Label.MARK
        for at in range(place, min(place + size, verb)):
            labels[at] = label
        place += size


def comparison(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Return the places of a comparison's two words, if its thing is named: the same guests as the kick-off on Monday.

    What follows is about that thing: its day is not the request's.
    """
    for at, one in enumerate(tokens):
        joint = next((behind for behind in range(at + 2, min(at + 5, len(tokens))) if tokens[behind].text in _AS), None)
        if one.text in _ALIKE and joint is not None and joint + 1 < len(tokens):
            return at, joint
    return None


def _mark_source(ask: Ask) -> None:
    """Label the first words of a conversion as a source, if a goal follows: convert a.xml to b.json."""
    literals = [
        at for at, token in enumerate(ask.tokens) if token.kind is Kind.LITERAL and ask.labels[at] is Label.OBJECT
    ]
    goals = [at for at in literals if any(ask.labels[back] is Label.GOAL for back in range(max(at - 3, 0), at))]
    held = [at for at in goals[:-1] if _is_held(ask, at)]
    if goals:
        for at in literals:
            if at not in goals or at in held:
                ask.labels[at] = Label.SOURCE


def _is_held(ask: Ask, place: int) -> bool:
    """Return True if a file is where something is that is turned: copia lo que hay en a.txt dentro de b.txt."""
    verb = ask.labels.index(Label.VERB)
    return any(one.text in _HELD for one in ask.tokens[verb + 1 : place] if one.kind is Kind.WORD)
