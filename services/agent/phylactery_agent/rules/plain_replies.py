"""Replies to words that no tool handles: a yes without a question, small talk, statements, impossible requests."""

from __future__ import annotations

from typing import Final

from phylactery_understanding.answers import read_answer
from phylactery_understanding.request import parse
from phylactery_understanding.retraction import read_retraction

from phylactery_agent.rules.expressions import expression

CANNOT: Final = "cannot_files"
"""The text about file operations that no tool supports."""
_LONGEST: Final = 300
_FILE: Final = r"(?:\bfiles?\b|\bficheros?\b|\barchivos?\b|[\w-]+\.\w{1,8}\b)"
_CANNOT: Final = expression(
    r"(?i)^[¿¡\s]*(?:please\s+|por\s+favor,?\s+|(?:can|could)\s+you\s+|(?:me\s+)?(?:puedes|podr[ií]as)\s+)?"
    r"(?:delete|remove|erase|rename|move|copy|duplicate|make\s+a\s+copy|empty|clear"
    r"|elimina(?:r)?|borra(?:r)?|renombra(?:r)?|mueve|mover|copia(?:r)?|duplica(?:r)?|haz(?:me)?\s+una\s+copia"
    r"|hacer\s+una\s+copia|vac[ií]a(?:r)?|cambia(?:r)?\s+el\s+nombre)\b.*" + _FILE
)
_FINE: Final = expression(
    r"(?i)^[¡\s]*(?:(?:lol|haha(?:ha)*|hehe|ja(?:ja)+|je(?:je)+|ok(?:ay|i|ey)?|vale|fine|cool|nice|good|got\s+it|i\s+see"
    r"|alright|all\s+right|sure|bien|bueno|guay|entendido|listo|dale|da\s+igual|no\s+importa|whatever)[\s,.!]*)+$"
)
_TOLD: Final = expression(
    r"(?i)^[¡\s]*(?:my\s+(?:\w+\s+)?(?:name|birthday|dog|cat|job)\s+is\s|i['’]?m\s+called\s|call\s+me\s"
    r"|i\s+(?:like|love|prefer|hate|live\s+in|work\s+(?:at|in|for|as))\s"
    r"|me\s+llamo\s|mi\s+nombre\s+es\s|ll[aá]mame\s|vivo\s+en\s|trabajo\s+(?:en|de|para)\s|prefiero\s"
    r"|(?:no\s+)?me\s+(?:gusta|gustan|encanta|encantan)\s)[^?]+$"
)
_PROGRAM: Final = expression(
    r"(?i)^[¿¡\s]*(?:are\s+you\s+(?:an?\s+)?(?:real|robot|bot|human|person|machine|program|ai)(?:\s+person)?"
    r"|(?:t[uú]\s+)?eres\s+(?:una?\s+)?(?:persona|robot|bot|humano|humana|m[aá]quina|programa|ia|real)"
    r"(?:\s+(?:real|de\s+verdad))?)[\s.!?]*$"
)
_DROPPED: Final = expression(
    r"(?i)^[¡\s]*(?:(?:no,?\s+)?d[eé]jalo(?:\s+(?:estar|as[ií]))?|olv[ií]dalo|never\s*mind|forget\s+(?:it|that|about\s+it)"
    r"|da\s+igual|no\s+importa|leave\s+it)(?:[\s,.;]+(?:da\s+igual|no\s+importa|d[eé]jalo|olv[ií]dalo|forget\s+(?:it|that)"
    r"|never\s*mind|leave\s+it|thanks?|gracias))*[\s.!]*$"
)


def plain_reply(text: str) -> str:
    """Return the key of the reply to words that no tool handles, or an empty string if there is none."""
    if len(text) > _LONGEST:
        return ""
    answer = read_answer(text)
    found = (
        ("dropped", answer == "no" or _DROPPED.match(text)),
        ("fine", _FINE.match(text)),
        ("nothing_waits_at_all", answer == "yes"),
        ("program", _PROGRAM.match(text)),
        (CANNOT, _CANNOT.match(text)),
        ("told_of_oneself", _TOLD.match(text) and read_retraction(text) is None and not parse(text).asks),
    )
    return next((key for key, is_it in found if is_it), "")


_TIME: Final = expression(
    r"(?i)^[¿¡\s]*(?:hey,?\s+|hola,?\s+|oye,?\s+)?(?:what['’]?s?\s+(?:is\s+)?(?:the\s+)?(?:time|date|day)"
    r"(?:\s+is\s+(?:it|today))?|what\s+(?:time|day|date)\s+is\s+(?:it|today)|what\s+day\s+(?:is\s+)?(?:it|today)"
    r"|(?:do\s+you\s+know|(?:can|could)\s+you\s+tell\s+me)\s+(?:the\s+time|what\s+time\s+it\s+is)"
    r"|(?:me\s+(?:dices|puedes\s+decir)\s+)?(?:qu[eé]\s+hora\s+(?:es|tienes)|la\s+hora|a\s+qu[eé]\s+d[ií]a\s+estamos"
    r"|qu[eé]\s+(?:d[ií]a|fecha)\s+(?:es|es\s+hoy)|en\s+qu[eé]\s+d[ií]a\s+estamos))"
    r"(?:\s+(?:now|today|it|ahora|hoy|por\s+favor|please))*[\s.!?]*$"
)


def asks_time(text: str) -> bool:
    """Return True if a text asks only for the time or the day."""
    return _TIME.match(text) is not None
