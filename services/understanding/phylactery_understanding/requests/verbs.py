"""The verb of a request: where it is in a clause, and what may precede it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phylactery_understanding.language.lexicon import Lexicon, Verb
from phylactery_understanding.language.numbers import value_of
from phylactery_understanding.language.text import Kind, Token, written
from phylactery_understanding.language.times import read_times
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.model import ARTIFACTS
from phylactery_understanding.requests.operators import WHERE, operator_at, operator_in

PRONOUNS: Final = word_set("clitics") | word_set("pronouns")
RELATIVE: Final = word_set("relatives") | word_set("relative_adverbs")
_REACH: Final = 40
"""The number of tokens allowed before the verb of a request."""
_LEAD: Final = 7
"""The number of words of a place that is named before the verb."""
_FRONT: Final = 8
_ONE: Final = word_set("one")
_SUBJECTS: Final = word_set("pronouns")
_CLITICS: Final = word_set("clitics")
OF: Final = frozenset({"de", "del", "of"})
_NOUNS: Final = word_set("noun_forms")
_SAID_OF: Final = word_set("said_of")


def verb_at(words: Lexicon, said: Sequence[Token], place: int, *, near: bool = False) -> int | None:
    """Return the position of the verb of a request that begins at a place; ``near`` allows little before it."""
    begin, said = place, said[place : place + _REACH]
    found = _verb_within(words, said, near=near)
    return None if found is None else begin + found


def _verb_within(words: Lexicon, said: Sequence[Token], *, near: bool) -> int | None:
    texts = [one.text for one in said]
    place = 0
    while place < len(said):
        token = said[place]
        if size := words.match("recall", texts, place):
            return place + size - 1
        if written(token.raw) in words.told or (token.raw.endswith("í") and "ya" in texts[:place]):
            return None
        if token.text == "di" and texts[place - 1 : place] and texts[place - 1] in PRONOUNS:
            return None  # ya se los di: an order has its pronouns after it
        if token.text == "back" and "up" not in texts[place + 1 : place + _LEAD]:
            return None
        if token.kind is Kind.WORD and words.verb(token.text):
            size = max(words.match("polite", texts, place), words.match("greet", texts, place))
            filler = words.match("please", texts, place)
            verb_next = place + filler < len(said) and filler
            if size > 1 or (filler > 1):
                place += max(size, filler)
                continue
            if filler and verb_next and any(words.verb(one) for one in texts[place + 1 : place + 4]):
                place += 1
                continue
            return place
        size = _lead(words, said, texts, place, near=near)
        if not size:
            return None
        place += size
    return None


def _lead(words: Lexicon, said: Sequence[Token], texts: Sequence[str], place: int, *, near: bool) -> int:
    """Return how many tokens from a place on may precede a verb."""
    token = said[place]
    if size := words.longest(("please", "polite", "greet"), texts, place):
        return size
    if token.text == "se" and texts[place + 1 : place + 2] not in (["lo"], ["la"], ["los"], ["las"]):
        return 0
    if token.text in PRONOUNS or token.text in {",", "!", "-", "*", "•", ")", "(", "¡", "¿"}:
        return 1
    if token.kind is Kind.NUMBER and place + 1 < len(said) and texts[place + 1] in {")", "."}:
        return 2
    if token.kind is Kind.MARK and not token.text.isascii() and not token.text.isalnum():
        return 1
    if near:
        return 0
    times = read_times(said[place : place + 12])
    if 0 in times.places:
        size = 1
        while size in times.places:
            size += 1
        return size
    return _goal_lead(words, said, texts, place)


def _goal_lead(words: Lexicon, said: Sequence[Token], texts: Sequence[str], place: int) -> int:
    """Return the size of a goal before the verb: en receta.md, cambia la sal."""
    size = words.match("goal", texts, place)
    if not size:
        return 0
    at = place + size
    while at < len(said) and words.holds("article", texts[at]) and said[at].kind is Kind.WORD:
        at += 1
    for step in (0, 1):
        if at + step < len(said) and said[at + step].kind is Kind.LITERAL:
            return at + step + 1 - place
    return _place_lead(words, said, texts, place, at)


def _place_lead(words: Lexicon, said: Sequence[Token], texts: Sequence[str], place: int, at: int) -> int:
    """Return the size of a place before the verb: on number 88 of portal, comment."""
    if texts[place] not in WHERE or operator_at(words, texts, place) is not None:
        return 0
    whole = False
    for end in range(at, min(at + _LEAD, len(said))):
        one = said[end]
        small = words.holds("goal", one.text) or words.holds("article", one.text)
        if one.text == "," or (end > at and not small and one.kind is Kind.WORD and words.verb(one.text)):
            return end - place if end > at and whole else 0
        named = one.kind in {Kind.WORD, Kind.LITERAL, Kind.NUMBER, Kind.QUOTE}
        if not named or operator_at(words, texts, end) is not None or texts[end] in RELATIVE:
            return 0
        numbered = one.kind is Kind.NUMBER and texts[end + 1 : end + 2] in (["de"], ["of"], ["in"], ["en"])
        whole = whole or one.kind in {Kind.LITERAL, Kind.QUOTE} or numbered
    return 0


def fronted_verb(words: Lexicon, clause: Sequence[Token]) -> int | None:
    """Return the verb of a request whose object precedes it: el segundo sácalo."""
    texts = [one.text for one in clause]
    for at, one in enumerate(clause[:_FRONT]):
        verbs = words.verb(one.text) if one.kind is Kind.WORD else ()
        if any(verb.joined in {"lo", "la", "los", "las"} for verb in verbs) and at:
            return None if operator_in(words, clause[:at], 0) else at
        if texts[at] in {"que", "q", "quien", "donde"}:
            return None
    return None


def wished_goal(words: Lexicon, clause: Sequence[Token]) -> int | None:
    """Return the pronoun of a wish that only names a goal: I'd like it in notes.md, lo quiero en notas.md."""
    texts = [one.text for one in clause]
    size = words.match("polite", texts, 0)
    at = size or 0
    if texts[at : at + 2] in (["lo", "quiero"], ["la", "quiero"], ["los", "quiero"], ["las", "quiero"]):
        return at
    return at if size and texts[at : at + 1] in (["it"], ["them"]) else None


def thing_at(words: Lexicon, clause: Sequence[Token]) -> int | None:
    """Return where a request names only the thing to be made, and how many of it: three more options, un resumen.

    A thing that is only named, or of which something is told, is a heading or a statement: notes in a.txt say that. A
    word before its article says what is to be done with it: think about a script, propose a note.
    """
    first = clause[0].text if clause else ""
    if first not in _ONE and value_of(first) is None:
        return None
    if any(one.kind is Kind.WORD and words.holds("telling", one.text) for one in clause[1:]):
        return None
    texts, called = [one.text for one in clause[:4]], False
    for at, one in enumerate(clause[:4]):
        if one.text in ARTIFACTS:
            return at
        if one.kind is not Kind.WORD or words.verb(one.text):
            return None
        small = words.holds("article", one.text) or words.holds("goal", one.text)
        if called and small:
            return None
        called = called or not (small or words.longest(("please", "polite", "greet"), texts, at))
    return None


def is_noun(words: Lexicon, clause: Sequence[Token], verb: int) -> str:
    """Return the words by which a verb's form is a noun: copy of a.txt, or by which a thing is said of it or its file.

    A file of which something is said is no place to write to: the list in a.txt has three rows.
    """
    after = clause[verb + 1 : verb + 2]
    if after and (
        (after[0].text == "of" and any(one.language == "en" for one in words.verb(clause[verb].text)))
        or (after[0].text in OF and clause[verb].text in _NOUNS)
    ):
        return f"{clause[verb].text} {after[0].text}"
    for at in range(verb + 1, len(clause) - 1):
        if clause[at].kind is Kind.QUOTE or clause[at].text == ":":
            break
        if clause[at].kind is Kind.LITERAL and clause[at + 1].kind is Kind.WORD and clause[at + 1].text in _SAID_OF:
            return f"{clause[at].raw} {clause[at + 1].text}"
    return ""


def has_subject(clause: Sequence[Token], verb: int, meant: Verb) -> bool:
    """Return True if a verb tells what somebody does: it put milk in a.txt, me apunta leche."""
    if verb != 1:
        return False
    if meant.language == "en":
        return clause[0].text in _SUBJECTS
    third = meant.language == "es" and not meant.joined and not clause[1].text.endswith("s")
    return third and clause[0].text in _CLITICS


def is_for_me(texts: Sequence[str], verb: int, meant: Verb) -> bool:
    """Return True if the result is only reported to the requester: tell me, dime, show us, let me know."""
    if "read" not in meant.meanings or texts[verb + 2 : verb + 3] in (["to"], ["que"], ["q"], ["cuando"]):
        return False
    after, before = texts[verb + 1 : verb + 2], texts[:verb]
    mine = (
        (after in (["me"], ["us"]) and value_of(" ".join(texts[verb + 2 : verb + 3])) is None)
        or meant.joined.startswith(("me", "nos"))
        or (meant.language == "es" and bool({"me", "nos"} & set(before)))
    )
    return mine
