"""Words that ask to talk to a person instead of the agent."""

from __future__ import annotations

from typing import Final

from phylactery_agent.rules.spelling import chat_expression, unaccented

_LONGEST: Final = 300
_BEFORE_ES: Final = (
    r"(?:(?:hola|oye|mira|perdona|perdon|por\s+favor|pero|no|y|bueno|vale|ya|mejor|entonces|gracias),?\s+|[¿¡\s]+)*"
)
_ASK_ES: Final = (
    r"(?:(?:yo\s+)?(?:quiero|quisiera|querria|necesito|prefiero|me\s+gustaria|deseo|puedo|podria|se\s+puede"
    r"|(?:hay\s+)?(?:alguna\s+)?forma\s+de|como\s+(?:puedo|hago\s+para)|dejame|exijo|tengo\s+que)\s+)?"
    r"(?:hablar|chatear|conversar|comunicarme|contactar|ser\s+atendid[oa]|que\s+me\s+(?:atienda|ayude|conteste|llame))"
    r"\s+(?:con\s+|por\s+|a\s+)?"
)
_GIVE_ES: Final = (
    r"(?:(?:me\s+)?(?:puedes|puede|podrias|podria)\s+)?(?:pasame|paseme|ponme|pongame|pasar(?:me)?|poner(?:me)?"
    r"|comunicame|comuniqueme|comunicar(?:me)?|conectame|conectar(?:me)?|transfiereme|transferir(?:me)?|derivame|derivar(?:me)?"
    r"|dame|(?:yo\s+)?(?:quiero|necesito|busco)(?:\s+a)?|hay|llama(?:d)?\s+a)\s+(?:con\s+|a\s+)?"
)
_WHO_ES: Final = (
    r"(?:(?:una?|el|la|algun|alguna|otr[oa])\s+)?(?:persona|humano|humana|ser\s+humano|agente|operador(?:a)?|asesor(?:a)?"
    r"|representante|encargad[oa]|responsable|supervisor(?:a)?|gerente|teleoperador(?:a)?)"
    r"(?:\s+(?:humano|humana|real|de\s+verdad|de\s+carne\s+y\s+hueso|de\s+(?:su|tu|vuestro)\s+equipo|fisic[oa]))?"
    r"|(?:la\s+|el\s+)?(?:atencion\s+al\s+cliente|servicio\s+(?:al|de\s+atencion\s+al)\s+cliente|soporte\s+humano)"
)
_SOMEBODY_ES: Final = (
    r"alguien(?:\s+(?:real|de\s+verdad|humano|de\s+(?:su|tu|vuestro)\s+equipo|que\s+(?:no\s+sea|me)\s+.{1,60}))?"
)
_AFTER_ES: Final = (
    r"(?:[\s,]+(?:por\s+favor|ya|ahora|de\s+una\s+vez|y\s+no\s+con\s+.{1,60}"
    r"|(?:sobre|por|para|porque|de)\s+.{1,200}))*[\s.!?,]*$"
)
_BEFORE_EN: Final = r"(?:(?:hi|hello|hey|please|sorry|ok|okay|no|but|and|well|look|just|then|thanks),?\s+|\s+)*"
_ASK_EN: Final = (
    r"(?:(?:i\s+(?:want|need|wish|demand|have)|i\s*['’]?(?:d|\s+would)\s+(?:like|prefer|rather)|can\s+i|could\s+i|may\s+i|let\s+me"
    r"|is\s+(?:it\s+possible|there\s+(?:a|any)\s+way)|how\s+(?:can|do)\s+i|i\s+prefer)\s+(?:please\s+)?(?:just\s+)?(?:to\s+)?)?"
    r"(?:talk|speak|chat|be\s+(?:connected|transferred|put\s+through))(?:ing)?\s+(?:to|with)\s+"
)
_GIVE_EN: Final = (
    r"(?:(?:can|could|would)\s+(?:you|u)\s+(?:please\s+)?)?(?:put\s+me\s+(?:through\s+)?(?:to|on\s+to|on\s+with)|connect\s+me\s+(?:to|with)"
    r"|transfer\s+me\s+to|get\s+me|give\s+me|hand\s+me\s+over\s+to|i\s+(?:want|need)|is\s+there|call)\s+"
)
_WHO_EN: Final = (
    r"(?:(?:an?|the|your|another)\s+)?(?:(?:real|actual|live|human)\s+)*(?:person|human(?:\s+being)?|agent|operator|representative|rep"
    r"|supervisor|manager|advisor|adviser|customer\s+(?:service|support|care)|support\s+agent)"
)
_SOMEBODY_EN: Final = r"(?:someone|somebody)(?:\s+(?:real|human|else|from\s+your\s+team|who\s+.{1,60}))?"
_AFTER_EN: Final = (
    r"(?:[\s,]+(?:please|now|right\s+now|instead|here|there|available|on\s+your\s+team"
    r"|(?:about|because|for|regarding|not)\s+.{1,200}))*[\s.!?,]*$"
)
_BARE_ES: Final = (
    r"(?:(?:una?\s+)?(?:persona|humano|agente|operador(?:a)?|asesor(?:a)?)(?:\s+(?:humano|humana|real|de\s+verdad))?)"
)
_BARE_EN: Final = r"(?:an?\s+)?(?:(?:real|live|human)\s+)*(?:human|person|agent|operator|representative)"

_SPANISH: Final = chat_expression(
    rf"(?i)^{_BEFORE_ES}(?:{_ASK_ES}(?:{_WHO_ES}|{_SOMEBODY_ES})|{_GIVE_ES}(?:{_WHO_ES}|alguien\s+(?:real|de\s+verdad|humano))"
    rf"|{_BARE_ES}){_AFTER_ES}"
)
_ENGLISH: Final = chat_expression(
    rf"(?i)^{_BEFORE_EN}(?:{_ASK_EN}(?:{_WHO_EN}|{_SOMEBODY_EN})|{_GIVE_EN}(?:{_WHO_EN}|(?:someone|somebody)\s+(?:real|human))"
    rf"|{_BARE_EN}){_AFTER_EN}"
)


def asks_for_person(text: str) -> bool:
    """Return True if a text asks to talk to a person, and asks for nothing else first."""
    if len(text) > _LONGEST:
        return False
    plain = unaccented(text)
    return _SPANISH.match(plain) is not None or _ENGLISH.match(plain) is not None
