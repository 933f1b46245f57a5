"""Escalation to a person: five policies, the first that holds in their fixed order."""

from __future__ import annotations

from typing import Final, Literal, get_args

from phylactery_understanding.interpretation.pasting import own_statements
from phylactery_understanding.language.text import STOPS, tokenize

from phylactery_forms.definitions.model import FREE, Field, Form
from phylactery_forms.dialogue.reading import accepted, taken_whole
from phylactery_forms.dialogue.state import (
    ConversationState,
    Escalated,
    all_collected,
    holds,
    microseconds,
)
from phylactery_forms.dialogue.words import ListName, Words, command_in, consists_of, count, find, size_at, words_of
from phylactery_forms.values.model import Context

Policy = Literal["keyword", "timeout", "sentiment", "llm_intent", "completion"]
_BEFORE_WISH: Final[tuple[ListName, ...]] = ("beside", "marker", "denial", "polite")
POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)
_MINUTE: Final = 60_000_000
_SHOUTED: Final = 8
"""The number of capital letters from which a message without small ones is shouted."""


def escalation_in(
    form: Form, conversation: ConversationState, text: str, context: Context, *, judged: bool | None = None
) -> Escalated | None:
    """Return the policy and reason by which a conversation goes to a person, or None.

    ``judged`` is a model's opinion whether the person wants one; without a model it is None.
    """
    said = words_of(text)
    for policy in POLICIES:
        if reason := _reason(policy, form, conversation, said, context, judged=judged):
            return Escalated(policy=policy, reason=reason)
    return None


def _reason(
    policy: Policy,
    form: Form,
    conversation: ConversationState,
    said: Words,
    context: Context,
    *,
    judged: bool | None,
) -> str:
    """Return why a policy holds; empty if it does not. It is a stable code and quotes nothing a person wrote."""
    rules = form.escalation
    if policy == "keyword":
        return _keyword(form, conversation, words_of(own_statements(said.text, wishes=True)), context)
    if policy == "timeout" and rules.timeout_minutes is not None and not all_collected(form, conversation):
        waited = microseconds(context) - conversation["started_us"]
        return "time_exceeded" if waited > rules.timeout_minutes * _MINUTE else ""
    if policy == "sentiment" and rules.sentiment is not None:
        if anger(form, conversation, said) >= rules.sentiment:
            return "complaint"
        return "repeated_failure" if _fails_again(form, conversation, said, context) else ""
    if policy == "llm_intent" and rules.llm_intent and judged:
        return "model_judged"
    if policy == "completion" and completes_with_person(form, conversation):
        return "form_completed" if conversation["status"] in {"submitted", "submitting"} else ""
    return ""


def completes_with_person(form: Form, conversation: ConversationState) -> bool:
    """Return True if a completed form goes to a person."""
    rule = form.escalation.completion
    return rule is not None and all_collected(form, conversation) and holds(rule, conversation)


def _keyword(form: Form, conversation: ConversationState, said: Words, context: Context) -> str:
    """Return the reason if a person asks for another person, in what they say themselves.

    A keyword alone is an answer where the asked field takes it: "gerente" is a job where a job is asked.
    """
    words = said.folded
    if not words or find("not_person", words) is not None:
        return ""
    asked = form.by_id.get(conversation["asked"] or "")
    answers = (
        asked is not None
        and conversation["status"] == "collecting"
        and conversation["confirming"] is None
        and accepted(asked, said.text, context) is not None
        and taken_whole(asked, said.text, context)
    )
    if find("person", words) is not None and (not answers or _asks_for_person(words)):
        return "asked_for_person"
    if consists_of("person_word", words, "polite", "beside", "links") and (not answers or _is_no_value(asked, words)):
        return "asked_for_person"
    if answers:
        return ""
    return "keyword" if _own_phrase(form, words) else ""


def _is_no_value(asked: Field | None, words: tuple[str, ...]) -> bool:
    """Return True if a word for a person is no answer although a field takes it: operator please, asked for a name.

    A manager is a job where a text is asked for.
    """
    polite = find("polite", words) is not None
    return asked is not None and (polite or asked.type.name == "person_name") and asked.type.name != "choice"


def _asks_for_person(words: tuple[str, ...]) -> bool:
    """Return True if the wish begins the message, apart from polite words; a tale may mention one as well."""
    place = 0
    while place < len(words):
        if size_at("person", words, place):
            return True
        size = max(size_at(one, words, place) for one in _BEFORE_WISH)
        if not size:
            return False
        place += size
    return False


def _fails_again(form: Form, conversation: ConversationState, said: Words, context: Context) -> bool:
    """Return True if the ladder of the asked field is used up, and the message is no answer either."""
    asked = form.by_id.get(conversation["asked"] or "")
    if asked is None or asked.optional or conversation["attempts"].get(asked.id, 0) <= asked.attempts:
        return False
    return accepted(asked, said.text, context) is None and command_in(said) is None


def _own_phrase(form: Form, words: tuple[str, ...]) -> bool:
    for phrase in (phrase for some in form.escalation.phrases.values() for phrase in some):
        wanted = tuple(token.text for token in tokenize(phrase) if token.kind not in STOPS)
        if wanted and any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1)):
            return True
    return False


def anger(form: Form, conversation: ConversationState, said: Words) -> int:
    """Return how strongly a message complains: its words, shouting, and how often the asked field failed already.

    Where a text is asked for, complaints are what it may be about, so none of its words counts.
    """
    asked = conversation["asked"] or ""
    failed = max(0, conversation["attempts"].get(asked, 0) - 1)
    field = form.by_id.get(asked)
    if field is not None and field.type.name in FREE and conversation["status"] == "collecting":
        return 0
    words = said.folded
    found = count("mild", words) + 2 * count("strong", words)
    letters = [one for one in said.text if one.isalpha()]
    shouted = len(letters) >= _SHOUTED and all(one.isupper() for one in letters)
    return found + int(shouted and found > 0) + (failed if found else 0)
