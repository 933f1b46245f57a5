"""What a message says to the conversation itself, in whatever state it is: stop, hold on, help, a person.

Such a message answers no question, so no run that waits for words takes it (runtime/intake/waiting.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from phylactery_understanding.interpretation.pasting import own_statements
from phylactery_understanding.replies.stops import HOLDING, read_stop
from phylactery_understanding.replies.talk import read_talk

from phylactery_agent.rules.persons import asks_for_person
from phylactery_agent.rules.spelling import chat_expression, unaccented

_DENIED_WISH = chat_expression(
    r"(?i)^[¿¡\s]*(?:(?:hola|oye|gracias|pero|pues|ya|yo|ok|vale|hi|hello|hey|thanks|but|well|ok|okay|please)[\s,.!]+)*"
    r"(?:no\s+(?:quiero|quisiera|queria|queremos|necesito|deseo|pienso|pretendo|voy\s+a|(?:me\s+)?hace\s+falta|me\s+gustaria)"
    r"|(?:i|we)\s+(?:do\s*n[o'’]*t|do\s+not|did\s*n[o'’]*t|did\s+not|no\s+longer|never|wo\s*n[o'’]*t)\s+(?:want|need|wish|plan)(?:ed)?"
    r"|(?:i['’]?d|i\s+would)\s+rather\s+not)\b"
)

Command = Literal["stop", "hold", "help", "person"]


def read_command(text: str) -> Command | None:
    """Return the command that a text gives, or None if it says anything else.

    All words of the first three must be known; a wish for a person may be one clause among others. Words that ask for
    help only if they answer nothing ("I don't know", "what?") are no command. What is pasted or reported gives none.
    """
    text = own_statements(text, wishes=True)
    if (stop := read_stop(text)) is not None:
        return "hold" if stop in HOLDING else "stop" if stop == "stop" else None
    if (talk := read_talk(text)) is not None:
        return "help" if talk.kind == "help" and not talk.puzzled else None
    return "person" if asks_for_person(text) else None


def stops_at_once(text: str, starts: Sequence[int] = ()) -> bool:
    """Return True if a text ends what is being done while it is said: "wait" does, "be right back" does not.

    ``starts`` are the offsets at which further messages begin in it, if it is several: the last of them says it then.
    """
    return read_stop(text[starts[-1] :] if starts else text) in {"stop", "hold"}


def denies_wish(text: str) -> bool:
    """Return True if a text begins by saying what somebody does not want: no quiero poner una queja."""
    return _DENIED_WISH.match(unaccented(text)) is not None
