"""Signs that a tool changes something. Each is a veto: it can turn a read into a write, and nothing reverts it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from phylactery_riskgate.domain.catalog.drafting.vocabulary import (
    CHANGERS,
    LINKING,
    OFTEN_NOUNS,
    VERBS,
    singular,
    thing_at,
    word_set,
    words_of,
)

MAX_TEXT: Final = 4_000
"""The number of description characters examined."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_TOKEN = re.compile(r"[^\W\d_]+|[,;:&/+-]")
_JOINING: Final = word_set("""and or then to also will can may must automatically silently , & / + ;""")
_BEING: Final = word_set("is are be been being was were gets get")
_LEAD: Final = word_set(
    """also then afterwards additionally finally next it this that which the tool function will would can silently
    permanently automatically immediately and , please"""
)
_NOUN_HEADS: Final = word_set(
    """address addresses id ids number numbers name names status detail details history type types count date dates
    list item items data info information body text title content contents"""
)
_IRREGULAR: Final = word_set("sent paid bought sold written rewritten overwritten stolen lent spent")
_ELSEWHERE = re.compile(
    r"(?:borr|elimin|env[ií]|mand|cancel|modific|actualiz|public|ejecut|cre|pag|compr|instal|bloque|archiv|paus|anul)"
    r"(?:a|ar|an|ando|arl[aeo]s?)"
    r"|(?:sobrescrib|escrib|transfer|transf[ií]er|vend|destru[iy])(?:e|er|ir|en|iendo|[ei]rl[aeo]s?)"
    r"|(?:supprim|effac|modifi|envo[iy]|créé?|achèt|apag|exclu|remov|cancell|inviar?|invi)(?:e|er|ent|a|ar|i|ir|are|ano)"
    r"|(?:lösch|send|überweis|erstell|änder|kauf)(?:e|t|et|en)"
)
"""Changing verbs in Spanish, and the most common in French, Portuguese, Italian and German."""
_OF_MESSAGES: Final = frozenset({"sent", "received"})
_RUNNING: Final = word_set("sql statement command cmd script mutation javascript shell")
_REQUEST: Final = word_set("method body payload data headers")
_IN_NAMES: Final = frozenset({"set", "update", "change", "run"})
"""Often nouns in a sentence; in a name as often verbs: get_set_config."""
_PLAIN_NOUNS: Final = word_set("moves edits spending following setting running allowed")
_PARTICLES: Final = frozenset({"in", "out", "off", "into", "rid", "over"})


def sign_of_change(words: tuple[str, ...], verb: int, description: str, schema: Any) -> str:
    """Return why a tool whose name begins with a reading verb may change something, or an empty string.

    ``words`` are the words of its name, with the verb at ``verb``.
    """
    signs = (*_of_name(words, verb), *_of_description(description), *_of_arguments(schema))
    return signs[0] if signs else ""


def _of_name(words: tuple[str, ...], verb: int) -> Iterator[str]:
    if words[verb + 1 : verb + 2] and words[verb + 1] in _PARTICLES:
        yield f"its name says {words[verb]} {words[verb + 1]}"
    # messages_sent says which messages; message_sent or orders_cancelled may be what happens to them.
    which = words[-1] in _OF_MESSAGES and singular(words[-2]) != words[-2]
    if len(words) > verb + 2 and _form(words[-1]) == "participle" and not which:
        yield f"its name says that something is {words[-1]}"
    for place, word in enumerate(words):
        joined = place > 0 and words[place - 1] in _JOINING and singular(word) in OFTEN_NOUNS
        named = word in _IN_NAMES and (place == verb + 1 or place < len(words) - 1)
        if joined or ((named or _form(word) in {"base", "third"}) and not thing_at(words, place)):
            yield f"its name says {word} too"


def _of_description(description: str) -> Iterator[str]:
    sentences = [part for part in _SENTENCE.split(description[:MAX_TEXT]) if part.strip()]
    for number, sentence in enumerate(sentences):
        tokens = tuple(token.lower() for token in _TOKEN.findall(sentence))
        for place, token in enumerate(tokens):
            found = _changes_first(tokens, place) if number == 0 else _changes_later(tokens, place)
            if found and not thing_at(tokens, place):
                yield f"its description says {token}"


def _changes_first(tokens: tuple[str, ...], place: int) -> bool:
    """Return True if a word of the first sentence names a change."""
    token = tokens[place]
    form = _form(token)
    if form == "participle":
        return place > 0 and tokens[place - 1] in _BEING
    return bool(form) or bool(_ELSEWHERE.fullmatch(token)) or _noun_as_verb(tokens, place)


def _changes_later(tokens: tuple[str, ...], place: int) -> bool:
    """Return True if a later sentence says that the tool itself changes something; usage advice is ignored."""
    form = _form(tokens[place])
    before = tokens[place - 1] if place else ""
    if form == "participle":
        return before in _BEING
    if form == "base":
        return before in {"will", "then", "also"} or _LEAD.issuperset(tokens[:place])
    return form == "third" or (_LEAD.issuperset(tokens[:place]) and _noun_as_verb(tokens, place))


def _noun_as_verb(tokens: tuple[str, ...], place: int) -> bool:
    """Return True if a word that is often a noun is used as a verb: first, or joined to one, with an object."""
    token, one = tokens[place], singular(tokens[place])
    if one not in OFTEN_NOUNS or (place and tokens[place - 1] not in _JOINING):
        return False
    if token != one and place and tokens[0] in VERBS:
        return False  # "List messages and posts": a plural, unless the sentence is in the third person
    after = tokens[place + 1] if place + 1 < len(tokens) else ""
    return after.isalpha() and not LINKING.fullmatch(after) and after not in _NOUN_HEADS


def _of_arguments(schema: Any) -> Iterator[str]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    names = [words_of(name) for name in properties] if isinstance(properties, Mapping) else []
    reaching = any(not {"url", "uri", "endpoint"}.isdisjoint(words) for words in names)
    for words in names:
        if not _RUNNING.isdisjoint(words):
            yield f"it executes the content of its argument {'_'.join(words)} says"
        elif words and _form(words[0]) == "base":
            yield f"its argument {'_'.join(words)} says {words[0]}"
        elif reaching and not _REQUEST.isdisjoint(words):
            yield f"it sends its argument {'_'.join(words)} to an address"


def _form(word: str) -> str:
    """Return the form of a changing verb: base, third, ing or participle; empty if the word is not one."""
    if word in CHANGERS:
        return "base"
    if word in _PLAIN_NOUNS:
        return ""
    if word.endswith("s") and (singular(word) in CHANGERS or word[:-2] in CHANGERS):
        return "third"
    if word.endswith("ing") and _stem_changes(word[:-3]):
        return "ing"
    return "participle" if word in _IRREGULAR or (word.endswith("ed") and _stem_changes(word[:-2])) else ""


def _stem_changes(stem: str) -> bool:
    doubled = stem[:-1] if stem[-2:-1] == stem[-1:] else stem
    y = f"{stem[:-1]}y" if stem.endswith("i") else stem
    return any(one in CHANGERS for one in (stem, f"{stem}e", doubled, y))


def leading_verb(description: str) -> str:
    """Return the verb that begins a description, in its base form, or an empty string."""
    words = words_of(description[:MAX_TEXT])[:1]
    return next((form for word in words for form in (word, singular(word)) if form in VERBS), "")
