"""Classification of a claimed message (language, intent, pathway), done once before the graph runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args

from phylactery_understanding.language.own_words import others_in
from phylactery_understanding.replies.talk import small_talk_in

from phylactery_agent.ports import Language
from phylactery_agent.rules.expressions import detect_language
from phylactery_agent.rules.intents import (
    APPROVAL_DECIDED,
    APPROVAL_REPLY,
    TASK,
    classify,
    parse_reply,
    without_store_phrase,
)
from phylactery_agent.runtime.storage.records import NO_WORDS, Claim, Incoming, Message
from phylactery_agent.tools.registry import ToolRegistry

STANDBY: Final = "standby"
RICH_PATHWAY: Final = "rich_input"
"""The pathway of a message with an attachment that can be read."""


@dataclass(frozen=True, slots=True)
class Classification:
    """The classification of a message."""

    language: Language
    intent: str
    pathway: str
    reasons: tuple[str, ...] = ()
    """Stable codes for why the message has this pathway."""


def listen(claim: Claim, tools: ToolRegistry) -> Classification:
    """Classify a claimed message; the client's language takes precedence over the message's own.

    An approval reply consists of two words of grammar and has no language of its own: the conversation's is kept, until
    a sentence is clearly in the other, or a word that people say alone.
    """
    requested, before = _language(claim.turn.language), _language(claim.run.language)
    if claim.turn.kind == "approval_decided":
        return Classification(requested or before or "es", APPROVAL_DECIDED, "standby")
    return _with(claim.turn.attachments, claim.turn.text, _heard(asked_in(claim), requested, before, tools))


def classify_incoming(incoming: Incoming, tools: ToolRegistry) -> Classification:
    """Classify a message before it is claimed, assuming that it opens a run, which then has the message's language."""
    requested = _language(incoming.language)
    heard = _heard(_asked(incoming), requested, requested, tools)
    return _with(incoming.attachments, incoming.text, heard)


def pointers(attachments: Sequence[str]) -> tuple[str, ...]:
    """Return the pointers of the attachments that can be read."""
    return tuple(pointer for _, _, pointer in (one.partition(":") for one in attachments) if pointer)


def _with(attachments: Sequence[str], text: str, heard: Classification) -> Classification:
    """Return the classification of a message with its attachments; a strict reply to an approval stays one."""
    if not attachments or parse_reply(text) is not None:
        return heard
    if pointers(attachments):
        return replace(heard, intent=TASK, pathway=RICH_PATHWAY, reasons=("ATTACHMENT",))
    if text == NO_WORDS:
        return replace(heard, intent="conversation", pathway=STANDBY, reasons=("STICKER",))
    return heard


def _heard(text: str, requested: Language | None, before: Language | None, tools: ToolRegistry) -> Classification:
    intent = classify(text, tools, before or "es")
    return Classification(
        requested or _own(text, intent.language, intent.intent, before), intent.intent, intent.pathway, intent.reasons
    )


def in_language(heard: Classification, claim: Claim) -> Classification:
    """Return the classification of a message made before its claim, with the language of its conversation."""
    requested, before = _language(claim.turn.language), _language(claim.run.language)
    text = asked_in(claim)
    return replace(heard, language=requested or _own(text, detect_language(text, before or "es"), heard.intent, before))


def _own(text: str, language: Language, intent: str, before: Language | None) -> Language:
    if before is None:
        return language
    return before if intent == APPROVAL_REPLY else detect_language(text, before, steady=True)


def asked_in(claim: Claim) -> str:
    """Return what the person requests.

    That is their words without the wish that nothing of them be stored, and without messages among them that only
    thank or greet: those are no content of the one before.
    """
    return _asked(claim.turn)


def _asked(message: Message) -> str:
    text = message.text
    if asides := small_talk_in(text, message.message_starts):
        text = "\n".join(text[start:stop].strip("\n") for start, stop in others_in(text, asides))
    return without_store_phrase(text) if message.do_not_store else text


def _language(name: str) -> Language | None:
    return next((language for language in get_args(Language) if language == name), None)
