"""Whether a message is beside the topic: decided last, because the costly error is an answer thrown away."""

from __future__ import annotations

from phylactery_understanding.replies.talk import read_talk

from phylactery_forms.definitions.model import DISTINCTIVE, FREE, Field, Form
from phylactery_forms.dialogue.reading import found_in
from phylactery_forms.dialogue.state import ConversationState, applies
from phylactery_forms.dialogue.words import find, is_question, words_of
from phylactery_forms.values.model import Context, Problem

_SHORT_TALK = 6
"""The number of words up to which a message that begins as a greeting is one."""


def is_off_topic(
    form: Form,
    conversation: ConversationState,
    target: str | None,
    text: str,
    context: Context,
    *,
    request: bool = False,
    judged: bool | None = None,
) -> bool:
    """Return True if a message answers nothing of the form.

    ``request`` says that the agent can do what the message asks for, ``judged`` what a model thinks. The dry run of the
    asked field comes first: what it accepts, or what tries to be a value of it, is an answer, whatever else it may be.
    """
    one = form.by_id.get(target or "")
    if one is None:
        return _talks(text) or request
    if one.type.name in FREE or (one.type.name == "person_name" and _talks(text)):
        return _talks(text)
    read = found_in(one, text, context)
    if isinstance(read, Problem) or any(found.whole for found in read):
        return False
    said = words_of(text)
    if read and not request and not is_question(said):
        return False
    if _fills_another(form, conversation, one, text, context) and not request:
        return False
    if _talks(text) or request or find("topic_change", said.folded) is not None:
        return True
    if is_question(said) and not read:
        return True
    return bool(judged) and not read


def _talks(text: str) -> bool:
    """Return True for small talk: it answers no question of a form."""
    talk = read_talk(text)
    return talk is not None and talk.kind in {"greeting", "thanks", "farewell"}


def _fills_another(form: Form, conversation: ConversationState, one: Field, text: str, context: Context) -> bool:
    for other in form.fields:
        if other is one or other.type.name not in DISTINCTIVE or not applies(other, conversation):
            continue
        read = found_in(other, text, context)
        if not isinstance(read, Problem) and read:
            return True
    return False
