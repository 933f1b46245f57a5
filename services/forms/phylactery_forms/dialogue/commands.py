"""Commands to the form itself: undo, skip, what have I said, same as before, leave, cancel, go on, explain, hold on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.stops import HOLDING, read_stop

from phylactery_forms.definitions.model import FREE, Field, Form
from phylactery_forms.dialogue.reading import accepted, taken_whole
from phylactery_forms.dialogue.state import ConversationState, asking_next, skip, undone
from phylactery_forms.dialogue.words import (
    Command,
    ListName,
    Span,
    Words,
    clauses_of,
    command_in,
    consists_of,
    find,
    opening_of,
    size_at,
    words_of,
)
from phylactery_forms.values.model import Context

_SPOKEN: Final = frozenset({"text", "person_name", "address"})
"""Types that take any words, so words that hold are no value of them: hold on."""
_DECIDING: Final = frozenset({"yes_no", "choice"})
"""Types of which a no may be an answer."""
_SMALL: Final = 3
"""The number of letters up to which a word of a form's name says nothing of it."""
_LONGEST: Final = 20
"""The number of words up to which a sentence may hold a command."""
_STEM: Final = 4
_SHORT_WHY: Final = 2
"""The number of words up to which a question why may be about anything else, too."""
_THESE: Final = frozenset({"this", "that", "esta", "este", "esa", "ese"})
_AROUND: Final[tuple[ListName, ...]] = ("beside", "regret", "rethink", "denial", "links", "tail")
"""What may stand around the words that end a form, where any words are an answer."""


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
    asked, said = form.by_id.get(conversation["asked"] or ""), words_of(text)
    if len(said.tokens) > _LONGEST:
        return None
    if asked is None or conversation["status"] != "collecting":
        return "cancel" if conversation["status"] == "review" and cancels(form, said, None, context) else None
    if asked.optional and asked.type.name not in _DECIDING and read_answer(text) == "no" and not _doubts(conversation):
        return "skip"
    if asked.type.name in FREE:
        return _heard_in_words(form, asked, said)
    if taken_whole(asked, text, context):
        return None
    if cancels(form, said, asked, context):
        return "cancel"
    found = accepted(asked, text, context)
    if postpones(said, None if found is None else found.start):
        return "hold"
    if found is None and _asks_why(said, asked):
        return "explain"
    return "repeat" if find("repeat", said.folded) is not None else None


def _heard_in_words(form: Form, asked: Field, said: Words) -> Command | None:
    """Return the command of a sentence where any words are an answer: all of its clauses say it, or it asks why."""
    if says_end(form, said):
        return "cancel"
    if postpones(said, None) and (size_at("postpone", said.folded, opening_of(said)[0]) or opens_waiting(said)):
        return "hold"
    return "explain" if _asks_why(said, asked) else None


def says_end(form: Form, said: Words, *, else_too: bool = False) -> bool:
    """Return True if every clause of a message says that all of it is off, or nothing: a reason makes it a text.

    ``else_too`` takes what the form may not be about, as well: an order, of a form that files complaints.
    """
    clauses = list(clauses_of(said))
    ends = [one for one in clauses if _ends_all(form, said.folded[slice(*one)], else_too=else_too)]
    return bool(ends) and all(one in ends or _says_nothing(said.folded[slice(*one)]) for one in clauses)


def _ends_all(form: Form, words: tuple[str, ...], *, else_too: bool) -> bool:
    if consists_of("cancel", words, *_AROUND):
        return True
    span = _cancelled_at(form, words, else_too=else_too)
    if span is None:
        return False
    return consists_of(None, words[: span.start], "wish", *_AROUND) and consists_of(None, words[span.stop :], *_AROUND)


def _says_nothing(words: tuple[str, ...]) -> bool:
    stops = read_stop(" ".join(words))
    return stops in HOLDING or stops == "stop" or consists_of("beside", words, "marks", "regret", "rethink", "changes")


def opens_waiting(said: Words) -> bool:
    """Return True if the first clause of a message holds what goes on, and says nothing else: hang on, …."""
    start, stop = next(clauses_of(said))
    return read_stop(" ".join(said.folded[start:stop])) in HOLDING


def cancels(form: Form, said: Words, asked: Field | None, context: Context) -> bool:
    """Return True if a message says that all of it is off, without denying it: cancel the booking, we won't come.

    What goes on with an answer says no such thing: we no longer need it on the 5th, the 6th is better.
    """
    span = _cancelled_at(form, said.folded)
    if span is None:
        return False
    begin, stop = next((start, stop) for start, stop in clauses_of(said) if start <= span.start < stop)
    behind = said.text[said.tokens[stop].start :] if stop < len(said.tokens) else ""
    answers = asked is not None and accepted(asked, behind, context) is not None
    return not answers and find("negation", said.folded[begin : span.start]) is None


def _cancelled_at(form: Form, words: tuple[str, ...], *, else_too: bool = True) -> Span | None:
    """Return the first words that say that all of it is off."""
    for place in range(len(words)):
        whole, verb = size_at("cancels", words, place), size_at("undoing", words, place)
        of = _undone(form, words, place + (whole or verb), else_too=else_too) if whole or verb else 0
        stop = place + (whole or verb) + of
        if (whole or of) and words[stop : stop + 1] != ("off",):  # I will drop it off
            return Span(place, stop)
    return None


def _undone(form: Form, words: tuple[str, ...], place: int, *, else_too: bool) -> int:
    """Return how many words say what is cancelled, 0 if it is anything but the form and what it is called."""
    names = (*form.title.values(), *_phrases(form))
    own = {word for text in names for word in words_of(text).folded if len(word) > _SMALL}
    stems = {word[:_STEM] for word in own}
    begin, stop = place, 0
    while place < len(words):
        size = size_at("undone", words, place) or int(words[place] in own)
        if not size and (else_too or words[place][:_STEM] in stems):
            size = size_at("deals", words, place)
        stop = place + size if size else stop
        if not size and not stop:
            size = size_at("links", words, place) or int(words[place] in _THESE)
        if not size:
            break
        place += size
    return max(stop - begin, 0)


def _phrases(form: Form) -> Iterator[str]:
    return (phrase for some in form.triggers.values() for phrase in some)


def postpones(said: Words, value: int | None) -> bool:
    """Return True if a message puts its answer off: let me ask them, I need 5 minutes, luego te digo.

    ``value`` is the place of a value in the text: one in a clause of its own is an answer all the same.
    """
    words = said.folded
    for start, stop in clauses_of(said):
        if not any(_postponed_at(words[:stop], place) for place in range(start, stop)):
            continue
        if value is None or said.tokens[start].start <= value < said.tokens[stop - 1].stop:
            return True
    return False


def _postponed_at(words: tuple[str, ...], place: int) -> bool:
    if size_at("postpone", words, place):
        return True
    size = size_at("ahead", words, place)
    for begin in (place + size, place + size + 1) if size else ():
        errand = size_at("errand", words, begin)
        if errand and not size_at("no_errand", words, begin + errand):
            return True
    size = size_at("some_time", words, place)
    return bool(size) and any(size_at("span", words, place + size + more) for more in (0, 1, 2))


def _asks_why(said: Words, asked: Field) -> bool:
    """Return True for a question about what is asked, as in "why do you need my phone?".

    Where any words are an answer, a bare why begins one ("why was my order late?"), unless it says whose need it is.
    """
    if "?" not in said.text:
        return False
    words, place = said.folded, 0
    while place < len(words) and not (size := size_at("explain", words, place)):
        size = max(size_at(name, words, place) for name in ("beside", "links"))
        if not size:
            return False
        place += size
    if place == len(words) or asked.type.name not in FREE:
        return place < len(words)
    return place + size == len(words) or size > _SHORT_WHY or find("needs", words[place:]) is not None


def _doubts(conversation: ConversationState) -> bool:
    doubt = conversation.get("doubt")
    return doubt is not None and bool(doubt["values"])


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
