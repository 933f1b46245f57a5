"""Words around an ask that qualify it: let me confirm first, a draft, it is done."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

from phylactery_understanding.calls.content.quotation import is_written_so
from phylactery_understanding.calls.match import Match
from phylactery_understanding.calls.proposal import Argument, ends_reminders, names_of, plain_values
from phylactery_understanding.language.text import Kind, Token, is_latin
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.model import Label

JOINTS: Final = word_set("joints")
DEFERRING: Final = word_set("deferring")
_LEAVING: Final = frozenset({"send", "email", "mail", "forward", "reply"})
_SENDING: Final = frozenset(
    """
    send tell ask notify reply forward message write post pass share request greet announce report comment remind
    """.split()
)
_ATTACHING: Final = word_set("attaching_stems")
_DRAFTING: Final = word_set("drafting")
_COURTEOUS: Final = ("please", "greet", "phatic", "stop", "article")
_PAUSES: Final = frozenset({",", "(", "–", "—", "-", "…"})
_OBJECTS: Final = word_set("finished_objects")
_CLITICS: Final = word_set("clitics")
_BEFORE_SUBJECT: Final = word_set("before_subject")
_LOOSE: Final = frozenset({Label.OBJECT, Label.ARTICLE, Label.FILLER, Label.SOURCE, Label.GOAL})
_FRAME: Final = 40
"""The maximum distance in characters between words of one phrase: words on both sides of the ask are not a phrase."""


def framed(match: Match, is_frame: Callable[[Sequence[Token]], bool] | None = None) -> str:
    """Return words outside the ask that qualify it: let me confirm first, this is a drill.

    ``is_frame`` decides of words that may qualify it whether they do.
    """
    asked = {
        id(one)
        for one, label in zip(match.ask.tokens, match.ask.labels, strict=True)
        if label not in {Label.REASON, Label.SOURCE}
    }
    for ask in match.request.asks:
        asked.update(map(id, ask.of(Label.CONTENT, Label.QUOTE)))
        if match.request.numbered and ask is not match.ask and not ask.refers and ask.fault is None:
            asked.update(map(id, ask.tokens))  # another task, which does not qualify this one
        elif ask.form in DEFERRING and ask is not match.ask and match.call.effects.isdisjoint(_SENDING):
            return ask.form
    others = [one for one in match.request.tokens if id(one) not in asked and one.kind is not Kind.BREAK]
    texts = [one.text for one in others]
    if not match.ask.lexicon.phrases["frame"]:
        return next((one.raw for one in others if one.kind is not Kind.MARK and not is_courtesy(match, one)), "")
    attaches = any(one.name.startswith(("attach", "adjunt")) for one in match.call.arguments)
    for at, one in enumerate(others):
        size = 0 if attaches and one.stem in _ATTACHING else match.ask.lexicon.match("frame", texts, at)
        size *= match.ask.lexicon.match("reason", texts, at) <= size  # wrong size: the reason for a return
        near = size and others[at + size - 1].stop - one.start < _FRAME
        if near and (is_frame is None or is_frame(others[at : at + size])):
            return " ".join(texts[at : at + size])
        if one.kind is Kind.WORD and not is_latin(one.raw):
            return one.raw
    return ""


def is_courtesy(match: Match, token: Token) -> bool:
    """Return True if a word is polite, or joins words."""
    return match.ask.lexicon.holds_any(_COURTEOUS, token.text) or token.text in JOINTS


def was_done(match: Match) -> str:
    """Return a word after the request that says that it was or will be done: it's closed, ya lo pagué.

    That the object of a reminder was done may be the reason to delete it.
    """
    ask, words, pause = match.ask, match.ask.lexicon, False
    if not ask.verb.language:  # a model's reading has no verb
        return ""
    said, reasons = list[str](), set[int]()
    for token, label in zip(ask.tokens, ask.labels, strict=True):
        pause = pause or (bool(said) and token.kind is Kind.MARK and token.text in _PAUSES)
        if label is Label.VERB or (said and (label is Label.REASON or (pause and label in _LOOSE))):
            if label is Label.REASON:
                reasons.add(len(said))
            said.append(token.text)
    last = ask.tokens[-1].start
    said.extend(one.text for clause in match.request.statements for one in clause if one.start > last)
    ends = ends_reminders(match.call)
    fixed = {
        at + step
        for at in range(1, len(said))
        for name in ("please", "reason")
        if (size := words.match(name, said, at)) > 1
        for step in range(size)
    }
    for at, (before, one) in enumerate(itertools.pairwise(said), 1):
        object_of = one in _OBJECTS and before not in _BEFORE_SUBJECT and at > 1
        if at not in fixed and (object_of or (before == "ya" and one in _CLITICS and at not in reasons)):
            return f"{before} {one}"
        told = not words.done.get(one, frozenset()).isdisjoint(match.call.effects)
        does = one.endswith("ing") and any(verb.meanings & match.call.effects for verb in words.verb(one))
        if not ends if words.holds("done", one) else told or does or one == said[0]:
            return one
    return ""


def drafted(match: Match) -> str:
    """Return words that ask for a message that is not sent yet: write me an email, a draft."""
    if match.call.effects.isdisjoint(_LEAVING) or not match.ask.verb.language:  # a model's reading has no verb
        return ""
    ask = match.ask
    verb = ask.labels.index(Label.VERB)
    mine = ask.verb.joined.startswith("me") or any(one.text == "me" for one in ask.tokens[verb + 1 : verb + 2])
    if mine and not ask.verb.meanings.isdisjoint({"compose", "write"}):
        return ask.form
    if ask.verb.meanings.isdisjoint(_SENDING) and not ask.verb.meanings.isdisjoint({"compose", "draft", "make"}):
        return ask.form
    words = (*ask.tokens[:verb], *ask.of(Label.OBJECT, Label.ARTICLE, Label.FILLER))
    return next((one.text for one in words if one.text in _DRAFTING), "")


def is_other_part(match: Match, argument: Argument) -> bool:
    """Return True if the ask gives an argument by name, in quotation marks, and the argument has another value."""
    names = set(names_of(argument.name)) if isinstance(argument.value, str) else set()
    for first, second in itertools.pairwise(one for one in match.ask.tokens if one.kind is not Kind.MARK):
        if second.kind is Kind.QUOTE and first.kind is Kind.WORD and first.stem in names:
            return not any(is_written_so(second.raw, str(one)) for one in plain_values(argument.value))
    return False
