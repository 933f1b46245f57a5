"""What a claimed message is: language, intent and pathway, found out once, before the graph is entered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from phylactery_agent.ports import Language
from phylactery_agent.runtime.model import Claim, Incoming
from phylactery_agent.static.intents import APPROVAL_DECIDED, APPROVAL_REPLY, classify, without_store_phrase


@dataclass(frozen=True, slots=True)
class Heard:
    """What was understood of a message."""

    language: Language
    intent: str
    pathway: str


def listen(claim: Claim) -> Heard:
    """Answers language, intent and pathway: the client's language first, then the message's own.

    An approval reply has two words of grammar and no language of its own: the run's goes on.
    """
    asked, before = _language(claim.turn.language), _language(claim.run.language)
    if claim.turn.kind == "approval_decided":
        return Heard(asked or before or "es", APPROVAL_DECIDED, "standby")
    return _heard(asked_in(claim), asked, before)


def hear(incoming: Incoming) -> Heard:
    """Answers the same of a message that is not claimed yet, where it opens a run: that has its language."""
    asked = _language(incoming.language)
    return _heard(_asked(incoming.text, do_not_store=incoming.do_not_store), asked, asked)


def _heard(text: str, asked: Language | None, before: Language | None) -> Heard:
    intent = classify(text, before or "es")
    own = before if before and intent.intent == APPROVAL_REPLY else intent.language
    return Heard(asked or own, intent.intent, intent.pathway)


def asked_in(claim: Claim) -> str:
    """Answers what the person asks for: their words without the wish that nothing of them be kept."""
    return _asked(claim.turn.text, do_not_store=claim.turn.do_not_store)


def _asked(text: str, *, do_not_store: bool) -> str:
    return without_store_phrase(text) if do_not_store else text


def _language(name: str) -> Language | None:
    return next((language for language in get_args(Language) if language == name), None)
