"""Words that ask to talk to a person instead of the agent: as a whole message, or as one clause of it.

What comes before and after such a clause tells the person why. What a request before it is to write, send or remind of
is no such clause, and a denied one calls nobody.
"""

from __future__ import annotations

from typing import Final

from phylactery_understanding.replies.talk import read_talk
from phylactery_understanding.requests.model import Ask, Label
from phylactery_understanding.requests.parser import parse

from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.spelling import chat_expression, unaccented

_LONGEST: Final = 1_000
_CLAUSE: Final = expression(r"[^.!?;,\n¿¡]+")
_JOINT: Final = expression(r"(?i)\s+(?:y|e|pero|asi\s+que|and|but|so)\s+")
_QUOTED: Final = expression(r"\"[^\"]*\"|“[^”]*”|«[^»]*»")
_BEFORE_ES: Final = (
    r"(?:(?:hola|oye|mira|perdona|perdon|por\s+favor|porfa|pero|que|y|bueno|vale|ya|mejor|entonces|gracias),?\s+|\s+)*"
)
_TALK_ES: Final = (
    r"(?:h?ablar|chatear|conversar|comunicarme|contactar|ser\s+atendid[oa]|que\s+me\s+(?:atienda|ayude|conteste|llame)"
    r"|me\s+(?:puede|podria)\s+(?:atender|ayudar|llamar)|(?:puede|podria)\s+(?:atender|ayudar|llamar)me)"
    r"(?:\s+(?:ya|ahora|urgentemente|directamente))?"
    r"\s+(?:con\s+|por\s+|a\s+)?"
)
_ASK_ES: Final = (
    r"(?:(?:yo\s+)?(?:[kq]u?iero|quisiera|querria|necesito|prefiero|me\s+gustaria|deseo|puedo|podria|se\s+puede"
    r"|(?:hay\s+)?(?:alguna\s+)?forma\s+de|como\s+(?:puedo|hago\s+para)|dejame|exijo|tengo\s+que)\s+)?" + _TALK_ES
)
_DENIED_QUESTION_ES: Final = r"(?:por\s+que\s+)?no\s+(?:puedo|podria|podemos|se\s+puede)\s+" + _TALK_ES
_CONNECT_ES: Final = (
    r"(?:(?:me\s+)?(?:puedes|puede|podrias|podria)\s+)?(?:pasame|paseme|ponme|pongame|pasar(?:me)?|poner(?:me)?"
    r"|comunicame|comuniqueme|comunicar(?:me)?|conectame|conectar(?:me)?|transfiereme|transferir(?:me)?|derivame|derivar(?:me)?|me\s+(?:pasas|pones|comunicas|conectas|transfieres))"
    r"\s+(?:con\s+|a\s+)"
)
_GIVE_ES: Final = r"(?:dame|(?:yo\s+)?(?:[kq]u?iero|necesito|busco)(?:\s+a)?|hay|llama(?:d)?\s+a)\s+(?:con\s+|a\s+)?"
_WHO_ES: Final = (
    r"(?:(?:una?|el|la|algun|alguna|otr[oa])\s+)?(?:persona|humano|humana|ser\s+humano|agente|operador(?:a)?|asesor(?:a)?"
    r"|representante|encargad[oa]|responsable|supervisor(?:a)?|gerente|teleoperador(?:a)?)"
    r"(?:\s+(?:humano|humana|real|de\s+verdad|de\s+carne\s+y\s+hueso|de\s+(?:su|tu|vuestro)\s+equipo|fisic[oa]"
    r"|que\s+(?:me|nos)\s+.+))?"
    r"|(?:la\s+|el\s+)?(?:atencion\s+al\s+cliente|servicio\s+(?:al|de\s+atencion\s+al)\s+cliente|soporte\s+humano)"
)
_SOMEBODY_ES: Final = (
    r"alguien(?:\s+(?:real|de\s+verdad|humano|de\s+(?:su|tu|vuestro)\s+equipo|que\s+(?:no\s+sea|me)\s+.+))?"
)
_END_ES: Final = (
    r"(?:\s+(?:por\s+favor|porfa|plis|gracias|ya|ahora|ahora\s+mismo|urgente(?:mente)?|cuanto\s+antes|directamente|de\s+una\s+vez|y\s+no\s+con\s+.+"
    r"|(?:sobre|por|para|porque|pues{of})\s+.+))*\s*$"
)
_BEFORE_EN: Final = r"(?:(?:hi|hello|hey|please|pls|sorry|ok|okay|no|but|and|well|look|just|then|thanks|yes),?\s+|\s+)*"
_TALK_EN: Final = r"(?:talk|speak|chat|be\s+(?:connected|transferred|put\s+thr(?:ough|u)))(?:ing)?\s+(?:to|with)\s+"
_ASK_EN: Final = (
    r"(?:(?:i\s+(?:want|wanna|need|wish|demand|have)|i\s*['’]?(?:d|\s+would)\s+(?:like|prefer|rather)|can\s+i|could\s+i|may\s+i|let\s+me"
    r"|is\s+(?:it\s+possible|there\s+(?:a|any)\s+way)|how\s+(?:can|do)\s+i|i\s+prefer)\s+(?:please\s+)?(?:just\s+)?(?:to\s+)?)?"
    + _TALK_EN
)
_DENIED_QUESTION_EN: Final = r"(?:why\s+)?can(?:no|['’])?t\s+i\s+(?:just\s+)?" + _TALK_EN
_CONNECT_EN: Final = (
    r"(?:(?:can|could|would)\s+(?:you|u)\s+(?:please\s+)?)?(?:put\s+me\s+(?:thr(?:ough|u)\s+)?(?:to|on\s+to|on\s+with)|connect\s+me\s+(?:to|with)"
    r"|transfer\s+me\s+to|hand\s+me\s+over\s+to)\s+"
)
_GIVE_EN: Final = (
    r"(?:(?:can|could|would)\s+(?:you|u)\s+(?:please\s+)?)?(?:get\s+me|give\s+me|i\s+(?:want|need)"
    r"|i\s*['’]?(?:d|\s+would)\s+like|is\s+there|call)\s+"
)
_WHO_EN: Final = (
    r"(?:(?:an?|the|your|another)\s+)?(?:(?:real|actual|live|human)\s+)*(?:person|human(?:\s+being)?|agent|operator|representative|rep"
    r"|supervisor|manager|advisor|adviser|customer\s+(?:service|support|care)|support\s+agent)"
    r"(?:\s+i\s+can\s+(?:talk|speak)\s+(?:to|with))?"
)
_SOMEBODY_EN: Final = r"(?:someone|somebody)(?:\s+(?:real|human|else|from\s+your\s+team|who\s+.+))?"
_END_EN: Final = (
    r"(?:\s+(?:please|pls|plz|thanks|thank\s+you|now|right\s+now|urgently|directly|asap|instead|here|there|available|on\s+your\s+team"
    r"|(?:about|because|for|regarding|not)\s+.+))*\s*$"
)
_BARE: Final = (
    r"(?:(?:una?\s+)?(?:persona|humano|agente|operador(?:a)?|asesor(?:a)?)(?:\s+(?:humano|humana|real|de\s+verdad))?"
    r"|(?:an?\s+)?(?:(?:real|live|human)\s+)*(?:human|person|agent|operator|representative))"
)
_TALK_END_ES, _GIVE_END_ES = _END_ES.replace("{of}", "|de"), _END_ES.replace("{of}", "")

_WHOLE: Final = chat_expression(
    rf"(?i)^[¿¡]*(?:{_BEFORE_ES}|{_BEFORE_EN}){_BARE}(?:[\s,]+(?:por\s+favor|please|pls))*[\s.!?]*$"
)
"""One word that may also be how somebody calls the agent, so it counts only alone."""
_WISH: Final = chat_expression(
    rf"(?i)^{_BEFORE_ES}(?:(?:{_ASK_ES}(?:{_WHO_ES}|{_SOMEBODY_ES})|{_CONNECT_ES}(?:{_WHO_ES}|{_SOMEBODY_ES})){_TALK_END_ES}"
    rf"|{_GIVE_ES}(?:{_WHO_ES}|alguien\s+(?:real|de\s+verdad|humano)){_GIVE_END_ES})"
    rf"|^{_BEFORE_EN}(?:(?:{_ASK_EN}|{_CONNECT_EN})(?:{_WHO_EN}|{_SOMEBODY_EN})"
    rf"|{_GIVE_EN}(?:{_WHO_EN}|(?:someone|somebody)\s+(?:real|human))){_END_EN}"
)
_TOLD: Final = chat_expression(rf"(?i)^(?:{_BEFORE_ES}|{_BEFORE_EN})(?:hay|busco|is\s+there)\b")
"""Words that wish for a person only alone or as a question: en la foto hay una persona."""
_LISTED: Final = chat_expression(
    rf"(?i)^(?:{_BEFORE_ES}|{_BEFORE_EN})(?:h?ablar|chatear|conversar|comunicarme|contactar|ser|llamad?|hay|talk|speak|chat|be|call|is)\b"
)
"""How a wish begins that names nobody who wishes, so that it may be one of several things to do."""
_SENTENCE_ENDS: Final = expression(r"[.!?\n]")
_ENDING: Final = expression(r"(?i)(?:[\s,.;!?¿¡]+|\b(?:y|e|and|but|pero|so)\b)*$")
_BEGINNING: Final = expression(r"(?i)^(?:[\s,.;!?¿¡]+|\b(?:y|e|and|but|pero|so)\b)*")
_DENIED_QUESTION: Final = chat_expression(
    rf"(?i)^{_BEFORE_ES}{_DENIED_QUESTION_ES}(?:{_WHO_ES}|{_SOMEBODY_ES}){_TALK_END_ES}"
    rf"|^{_BEFORE_EN}{_DENIED_QUESTION_EN}(?:{_WHO_EN}|{_SOMEBODY_EN}){_END_EN}"
)
"""Wishes only as questions: why can't I talk to a person?"""


def asks_for_person(text: str) -> bool:
    """Return True if a text, or a clause of it that belongs to no request before it, asks to talk to a person."""
    return _wish(text) is not None


def beside_wish(text: str) -> tuple[str, ...]:
    """Return what a text that asks for a person says before and after that."""
    wish = _wish(text)
    if wish is None:
        return ()
    said = text.strip()
    before = _ENDING.sub("", said[: wish[0]])
    after = _BEGINNING.sub("", said[wish[1] :])
    return tuple(part for part in (before, after) if part)


def _wish(text: str) -> tuple[int, int] | None:
    """Return the place of the wish for a person in a text, stripped of blanks; None if there is none."""
    if len(text) > _LONGEST or read_talk(text) is not None:
        return None
    said = _unquoted(text.strip())
    plain = unaccented(said)
    if _WHOLE.match(plain) is not None:
        return 0, len(said)
    clauses, asked = _clauses(plain), "?" in text
    wishes = [
        (start, clause)
        for start, clause in clauses
        if _is_wish(clause, asked=asked) and (asked or len(clauses) == 1 or _TOLD.match(clause) is None)
    ]
    asks = [ask for ask in parse(said).asks if ask.tokens] if wishes else []
    own = (one for one in wishes if not any(_goes_on(ask, *one, plain) for ask in asks))
    return next(((start, start + len(clause)) for start, clause in own), None)


def _goes_on(ask: Ask, start: int, clause: str, plain: str) -> bool:
    """Return True if a clause belongs to a request before it: its content, or one more of what it lists."""
    if ask.tokens[0].start >= start:
        return False
    content = any(
        token.start >= start and label in {Label.CONTENT, Label.QUOTE}
        for token, label in zip(ask.tokens, ask.labels, strict=True)
    )
    between = plain[ask.tokens[-1].stop : start]  # empty where the request takes the clause for its own
    return content or (_LISTED.match(clause) is not None and next(_SENTENCE_ENDS.finditer(between), None) is None)


def _is_wish(clause: str, *, asked: bool) -> bool:
    return _WISH.match(clause) is not None or (asked and _DENIED_QUESTION.match(clause) is not None)


def _unquoted(text: str) -> str:
    """Return a text without the marks around the whole of it, and with every other quotation made unreadable."""
    whole = _QUOTED.match(text)
    if whole is not None and whole.end() == len(text):
        return text[1:-1]
    for quoted in _QUOTED.finditer(text):
        text = text[: quoted.start()] + "·" * len(quoted.group()) + text[quoted.end() :]
    return text


def _clauses(plain: str) -> list[tuple[int, str]]:
    """Return the clauses of a text with their places: between marks, and the parts of those that conjunctions join."""
    found: list[tuple[int, str]] = []
    for part in _CLAUSE.finditer(plain):
        said, joints = part.group(), [*_JOINT.finditer(part.group())]
        starts, stops = [0, *(joint.end() for joint in joints)], [*(joint.start() for joint in joints), len(said)]
        ranges = {(start, end) for start, stop in zip(starts, stops, strict=True) for end in (stop, len(said))}
        found += [(part.start() + start, said[start:end]) for start, end in sorted(ranges)]
    return found
