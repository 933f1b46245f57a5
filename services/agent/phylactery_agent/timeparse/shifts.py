"""Times said relative to another one: an hour earlier, media hora más tarde."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from phylactery_agent.rules.spelling import chat_expression, unaccented
from phylactery_agent.timeparse.phrases import tidy
from phylactery_agent.timeparse.vocabulary import UNITS, number_of, word

_NUMBER: Final = (
    r"(?P<many>[0-9]{1,3}|una?|dos|tres|cuatro|cinco|seis|diez|quince|veinte|treinta"
    r"|an?|one|two|three|four|five|six|ten|fifteen|twenty|thirty)"
)
_AMOUNT: Final = (
    r"(?:(?P<halfof>media|half\s+an?)|" + _NUMBER + r")\s+(?P<unit>horas?|minutos?|mins?|dias?|semanas?"
    r"|hours?|minutes?|days?|weeks?)(?P<andhalf>\s+y\s+media|\s+and\s+a\s+half)?"
)
_LEAD: Final = (
    r"(?:(?:no|uy|ups|oops|oh|ah|hmm|mmm|perdon|perdona|mejor|digo|sorry|actually|wait|and|y|ok|vale|bueno|better|please"
    r"|porfa|can\s+you|could\s+you|puedes|podrias|maybe|just|que\s+sea|ponlo|ponmelo|hazlo"
    r"|make\s+(?:it|that)|move\s+(?:it|that)|push\s+(?:it|that)|put\s+(?:it|that)|set\s+(?:it|that)|muevelo|pasalo|cambialo)[\s,.!]+)*"
)
_TAIL: Final = (
    r"(?:[\s,]+(?:mejor|better|instead|please|porfa|por\s+favor|then|than\s+that|entonces|si\s+puede\s+ser))*"
)
_EARLIER: Final = chat_expression(rf"(?i)^{_LEAD}{_AMOUNT}\s+(?:earlier|sooner|before(?:\s+that)?|antes){_TAIL}$")
_LATER: Final = chat_expression(
    rf"(?i)^{_LEAD}{_AMOUNT}\s+(?:later|after(?:\s+that)?|despues|mas\s+tarde|luego){_TAIL}$"
)
_FORWARD: Final = chat_expression(
    rf"(?i)^{_LEAD}(?:bring\s+(?:it|that)\s+forward|move\s+(?:it|that)\s+up|adelantalo|adelantamelo)\s+(?:by\s+)?{_AMOUNT}{_TAIL}$"
)
_BACK: Final = chat_expression(
    rf"(?i)^{_LEAD}(?:push\s+(?:it|that)\s+back|postpone\s+(?:it|that)|delay\s+(?:it|that)|snooze(?:\s+(?:it|that))?"
    rf"|retrasalo|atrasalo|posponlo|aplazalo)\s+(?:by\s+|for\s+)?{_AMOUNT}{_TAIL}$"
)
_SIGNS: Final = ((_EARLIER, -1), (_LATER, 1), (_FORWARD, -1), (_BACK, 1))
_MINUTES: Final = {"minute": 1, "hour": 60, "day": 24 * 60, "week": 7 * 24 * 60}


def shift_in(text: str) -> timedelta | None:
    """Return how far a message moves a time, if that is all it says, or None: an hour earlier, media hora después."""
    plain = unaccented(tidy(text).strip(" .!?¡¿"))
    for pattern, sign in _SIGNS:
        found = pattern.match(plain)
        if found is not None:
            groups = found.groupdict()
            many = 0.5 if groups["halfof"] else float(number_of(groups["many"] or "1"))
            many += 0.5 if groups["andhalf"] else 0
            return sign * timedelta(minutes=round(many * _MINUTES[word(groups["unit"] or "", UNITS)]))
    return None


def exact_time(due: datetime) -> str:
    """Return a local time as a reminder's pattern reads it."""
    return f"{due:%Y-%m-%d} {due:%H:%M}"
