"""Asks that dictate no text to a file: it is to be looked up or made, it belongs elsewhere, or there is none.

The words of an ask may be a text word by word (add milk), or only say which text is meant (save the old version). What
is meant is known to the person alone, so that neither these words nor any others are written without a question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from phylactery_understanding.calls.content.description import inquires
from phylactery_understanding.calls.content.sources import LOOKED_UP, is_composed, names_source
from phylactery_understanding.calls.match import Match
from phylactery_understanding.language.numbers import value_of
from phylactery_understanding.language.text import STOPS, Kind, Token, fold, is_file_name, tokenize
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.asks import TURNING
from phylactery_understanding.requests.model import ARTIFACTS, Ask, Label
from phylactery_understanding.requests.verbs import OF

_ELSEWHERE: Final = word_set("elsewhere")
_BELONGING: Final = word_set("belonging") | {"del"}
_FIGURES: Final = word_set("figures")
_DESCRIBING: Final = word_set("described_by")
_ONE: Final = word_set("one")
_DEFINITE: Final = word_set("definite")
_THAT: Final = word_set("that")
_WHICH: Final = word_set("which_that")
_WITH: Final = word_set("filled_with")
_CHANGING: Final = frozenset({"edit", "change", "update", "replace", "remove", "delete", "clear"})
_MAKING: Final = frozenset({"put", "make"})
_SENDING: Final = frozenset({"send", "message", "reply", "remember"})
_CREATING: Final = frozenset({"write", "create", "make", "compose", "draft"})
_AS: Final = word_set("turned_into")
_INFINITIVES: Final = ("ar", "er", "ir", "arlo", "arla")
_ADVERBS: Final = ("ly", "mente")
_LONG: Final = 6
"""The least number of letters of an adverb, which says how to write and not what: write carefully in a.txt."""
_POINTING: Final = word_set("it")
_FIRST_WORDS: Final = 2
"""The number of words among which the noun of a Spanish phrase is: la última versión, los datos nuevos."""
_LOOSE: Final = frozenset({Label.ARTICLE, Label.FILLER})


def undictated(match: Match, text: str) -> str:
    """Return the words by which an ask does not dictate a text to the file of the call, empty if it may do so.

    A text in quotation marks or behind a colon is dictated, what is made or taken from a named text is compared with
    that, and a model's interpretation, which has no verb of a language, names its content itself.
    """
    ask = match.ask
    names = {fold(str(one.value)) for one in match.call.arguments if one.control and "write" in match.call.effects}
    files = [at for at in match.used if ask.tokens[at].text in names or is_file_name(ask.tokens[at].text)]
    reaches = bool(files) or not match.call.effects.isdisjoint(_SENDING)
    quotes = (at for at, label in enumerate(ask.labels) if label is Label.QUOTE and at not in match.used)
    if not reaches or not ask.verb.language or ask.verbatim or any(True for _ in quotes):
        return ""
    if any(_belongs(match, at) for at in files):
        return " ".join(one.raw for one in ask.tokens[min(files) - 1 : min(files) + 1])
    said = [one for at, one in enumerate(ask.tokens) if at not in match.used]
    if not ask.verb.meanings.isdisjoint(TURNING):
        copied = (one for one in said if one.kind is Kind.LITERAL and is_file_name(one.text))
        if unread := next((one.raw for one in copied if not match.call.texts.named(one.text)), ""):
            return unread
    if is_composed(ask, said) or (match.call.texts.some and names_source(ask, said, match.used, match.call.texts)):
        return ""
    phrases = list(_phrases(match))
    edits = match.edits and ("edit" in ask.verb.meanings or ask.verb.meanings.isdisjoint(_MAKING))
    fillers = {one.text for one in ask.of(Label.FILLER)}
    words = {one.text for one in tokenize(text) if one.kind not in STOPS}
    if words <= _POINTING:
        return " ".join(words)  # copy that
    greets = words <= fillers  # write hello to a.txt
    dictating = [one for one in phrases if not files or not one.elsewhere]
    if files and not dictating and not greets and not ask.refers and not _is_changed(ask, phrases, edits=edits):
        return phrases[0].words if phrases else ask.form
    within = edits or "replace" in ask.verb.meanings
    opened = [one for one in dictating if one.opened]  # drop a line saying hello: the line is what it says
    return next((one.words for one in opened or dictating if _describes(match, one, within=within)), "")


class _Phrase:
    """A run of words of an ask that may be its text; ``elsewhere`` if it is behind a preposition of a place."""

    def __init__(self, ask: Ask, places: Sequence[int], opening: str, *, opened: bool) -> None:
        self.places, self.opening, self.opened = places, opening, opened
        self.tokens: list[Token] = [ask.tokens[at] for at in places]
        self.words = " ".join(one.raw for one in self.tokens)
        self.elsewhere = not opened and opening in _ELSEWHERE
        self.filling = opening in _WITH


def _phrases(match: Match) -> Iterator[_Phrase]:
    """Yield the phrases behind the verb that no other argument corresponds to."""
    ask = match.ask
    places: list[int] = []
    opening, opened = "", False
    for at in range(ask.labels.index(Label.VERB) + 1, len(ask.tokens)):
        token, label = ask.tokens[at], ask.labels[at]
        word = label is not Label.GOAL or (token.text in _ONE and ask.verb.language == "en")
        opens = label is Label.FILLER and ask.labels[at + 1 : at + 2] == [Label.CONTENT]
        if opens or at in match.used or token.kind is Kind.MARK or not word or label is Label.REASON:
            if any(ask.labels[one] not in _LOOSE or _is_known(ask.tokens[one]) for one in places):
                yield _Phrase(ask, places, opening, opened=opened)
            places = []
            opening, opened = ("", False) if at in match.used else (token.text, opens)
        elif not _is_of_file(match, at):
            places.append(at)
    if any(ask.labels[one] not in _LOOSE or _is_known(ask.tokens[one]) for one in places):
        yield _Phrase(ask, places, opening, opened=opened)


def _is_known(token: Token) -> bool:
    return token.text in LOOKED_UP or token.text in _FIGURES


def _is_of_file(match: Match, place: int) -> bool:
    """Return True if a noun only says that the target, whose name follows, is a file: the file a.txt."""
    ask = match.ask
    if ask.tokens[place].stem not in match.call.nouns:
        return False
    follows = ask.labels[place + 1 : place + 2] == [Label.GOAL] and ask.tokens[place + 1].text not in _ELSEWHERE
    return place + 1 in match.used or (follows and not ask.verb.meanings.isdisjoint(_CREATING))


def _belongs(match: Match, place: int) -> bool:
    """Return True if a file is that of a thing, and no place for it: the mistakes of a.txt, but the end of a.txt."""
    ask = match.ask
    verb = ask.labels.index(Label.VERB)
    if ask.labels[place - 1] is not Label.GOAL or ask.tokens[place - 1].text not in _BELONGING:
        return False
    if not ask.verb.meanings.isdisjoint(_CHANGING) or place - 2 <= verb:
        return False
    before = next((at for at in range(place - 2, verb, -1) if ask.labels[at] is Label.GOAL), None)
    return before is None or (ask.tokens[before].text in _ONE and ask.verb.language == "en")


def _is_changed(ask: Ask, phrases: Sequence[_Phrase], *, edits: bool) -> bool:
    """Return True if a file itself is changed: sort a.txt, change a.txt to hello, but not rename or mark it."""
    if edits:
        return ask.verb.meanings.isdisjoint({"rename", "put"}) and all(one.opening not in _AS for one in phrases)
    return bool(ask.verb.meanings & {"change", "update"}) and "put" not in ask.verb.meanings and bool(phrases)


def _describes(match: Match, phrase: _Phrase, *, within: bool) -> bool:
    """Return True if a phrase says which text is meant, or is no text but a part of an idiom: keep an eye on it.

    ``within`` a text that is changed, it may say which part of it: fix the mistakes.
    """
    ask, first = match.ask, phrase.places[0]
    before = [one.text for one in ask.tokens[max(first - 2, 0) : first]]
    if phrase.opened:
        task = phrase.tokens[0].text.endswith(_INFINITIVES) and not ask.lexicon.holds("past", phrase.tokens[0].text)
        asked = before[-1] in _DESCRIBING or (before[-1] in _THAT and before[0] in _WHICH)
        return (asked or phrase.tokens[0].text in _BELONGING) and not task and not inquires(ask)
    texts = [one.text for one in phrase.tokens]
    if not within and all(one.kind is Kind.LITERAL and is_file_name(one.text) for one in phrase.tokens):
        return True  # its name, or what it holds
    if ask.verb.language == "es" and len(texts) > 1 and texts[0] == "lo":
        return True
    rest = [at for at in range(phrase.places[-1] + 1, len(ask.tokens)) if at not in match.used]
    if any(ask.tokens[at].kind in {Kind.NUMBER, Kind.LITERAL} for at in (phrase.places[-1], *rest)):
        return False  # the phone number of Ana 600 123 123
    heads = _heads(ask, phrase)
    there = texts[0] in _DEFINITE and any(one in ARTIFACTS or value_of(one) is not None for one in heads)
    described = there or any(one in LOOKED_UP for one in heads)
    if described and (phrase.filling or not within):
        return True
    alone = all(ask.tokens[at].kind is not Kind.WORD or ask.labels[at] in {Label.GOAL, *_LOOSE} for at in rest)
    if alone and any(one in _FIGURES or (one.endswith(_ADVERBS) and len(one) >= _LONG) for one in heads):
        return True
    # where no file takes the text, what follows belongs to the idiom as well: keep an eye on the boiler
    keeps = not match.used and not ask.verb.meanings.isdisjoint(_MAKING)
    return keeps and not _FIGURES.isdisjoint(texts) and OF.isdisjoint(ask.tokens[at].text for at in rest[:1])


def _heads(ask: Ask, phrase: _Phrase) -> list[str]:
    """Return the words among which a phrase's noun is: its last in English, one of its first in Spanish.

    What begins with a verb is a task, whatever it is about: check the results.
    """
    said = [
        one.text
        for at, one in zip(phrase.places, phrase.tokens, strict=True)
        if one.kind is Kind.WORD and (ask.labels[at] not in _LOOSE or _is_known(one))
    ]
    if len(said) > 1 and ask.lexicon.verb(said[0]) and said[0] == phrase.tokens[0].text:
        return [said[0]]
    return said[:_FIRST_WORDS] if ask.verb.language == "es" else said[-1:]
