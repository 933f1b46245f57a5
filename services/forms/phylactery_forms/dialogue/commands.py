"""Commands to the form itself: undo, skip, what have I said, same as before, leave, cancel, go on, explain, hold on."""

from __future__ import annotations

from typing import Final

from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.stops import HOLDING, read_stop

from phylactery_forms.definitions.model import FREE, Field, Form
from phylactery_forms.dialogue.reading import accepted, taken_whole
from phylactery_forms.dialogue.state import ConversationState, asking_next, skip, undone
from phylactery_forms.dialogue.words import Command, command_in, find, words_of
from phylactery_forms.values.model import Context

_SPOKEN: Final = frozenset({"text", "person_name", "address"})
"""Types that take any words, so words that hold are no value of them: hold on."""
_DECIDING: Final = frozenset({"yes_no", "choice"})
"""Types of which a no may be an answer."""
_LONGEST: Final = 20
"""The number of words up to which a sentence may hold a command."""


def command_of(form: Form, conversation: ConversationState, text: str, context: Context) -> Command | None:
    """Return the command a message consists of; what the asked choice or question takes as its answer is none."""
    command, stop = command_in(words_of(text)), read_stop(text)
    asked = form.by_id.get(conversation["asked"] or "")
    if stop == "denied" and command in {None, "cancel"}:
        found = accepted(asked, text, context) if asked is not None and asked.type.name == "choice" else None
        return None if found is not None and not text[: found.start].strip(" ¡¿") else "resume"  # or it is an option
    if command is None and stop == "stop" and read_answer(text) == "unclear":
        command = "cancel"
    if command is None and stop in HOLDING:  # a minute, asked how long, and an option that is called so, are answers
        words = _SPOKEN - {"text"} if stop == "lapse" and find("polite", words_of(text).folded) is None else _SPOKEN
        taken = asked is not None and asked.type.name not in words and taken_whole(asked, text, context)
        return None if taken and conversation["status"] == "collecting" else "hold"
    if command is None:
        command = _heard(form, conversation, text, context)
    confirms = conversation["confirming"] is not None
    if command == "skip" and asked is not None and not asked.optional and read_answer(text) == "no":
        return None  # a no is what a text that is needed may be
    if command in {"leave", "cancel"} and not confirms and _is_answer(form, conversation, text, context):
        return None  # later, asked for a time that a form calls so; cancel, where an option is
    if command in {"undo", "skip", "same", "resume", "explain", "repeat"} and asked is not None:
        takes = asked.type.name in {"choice", "yes_no", "pattern"} and accepted(asked, text, context) is not None
        if takes and conversation["status"] == "collecting":
            return None
    return command


def _heard(form: Form, conversation: ConversationState, text: str, context: Context) -> Command | None:
    """Return a command within a sentence that answers nothing, and the no by which an optional field is left out."""
    asked = form.by_id.get(conversation["asked"] or "")
    if asked is None or conversation["status"] != "collecting":
        return None
    if asked.optional and asked.type.name not in _DECIDING and read_answer(text) == "no" and not _doubts(conversation):
        return "skip"
    said = words_of(text)
    if len(said.tokens) > _LONGEST or _takes(asked, text, context):
        return None
    place = find("cancels", said.folded)
    if place is not None and find("negation", said.folded[: place.start]) is None:
        return "cancel"
    if find("postpone", said.folded) is not None and accepted(asked, text, context) is None:
        return "hold"
    return "repeat" if find("repeat", said.folded) is not None else None


def _doubts(conversation: ConversationState) -> bool:
    doubt = conversation.get("doubt")
    return doubt is not None and bool(doubt["values"])


def _takes(asked: Field, text: str, context: Context) -> bool:
    """Return True if a field takes the text: any words as a text, and what answers it as a whole otherwise."""
    return asked.type.name in FREE or taken_whole(asked, text, context)


def _is_answer(form: Form, conversation: ConversationState, text: str, context: Context) -> bool:
    asked = form.by_id.get(conversation["asked"] or "")
    return asked is not None and asked.type.name in {"choice", "date", "time"} and taken_whole(asked, text, context)


def apply_command(
    command: Command, form: Form, conversation: ConversationState, turn_id: str
) -> tuple[ConversationState, dict[str, str]]:
    """Return the state after a command, and what a reply about it needs to know."""
    if command == "undo":
        left, fields = undone(conversation)
        if not fields:
            return conversation, {"command": "nothing_to_undo"}
        again = asking_next(form, {**left, "status": "collecting"})
        return again, {"command": "undone", "fields": " ".join(fields)}
    if command == "cancel":
        return {**conversation, "status": "cancelled", "asked": None, "confirming": None, "choosing": []}, {
            "command": "cancelled"
        }
    if command == "leave":
        return {**conversation, "left": True}, {"command": "left"}
    if command == "skip":
        return _skip(form, conversation, turn_id)
    return conversation, {"command": command}


def _skip(form: Form, conversation: ConversationState, turn_id: str) -> tuple[ConversationState, dict[str, str]]:
    asked = form.by_id.get(conversation["asked"] or "")
    if asked is None:
        return conversation, {"command": "told"}
    if asked.id in conversation["values"]:  # a correction not made after all
        return asking_next(form, conversation), {"command": "told"}
    if not asked.optional:
        return conversation, {"command": "not_skippable"}
    left = skip(conversation, asked.id, turn_id)
    return asking_next(form, left), {"command": "skipped"}
