"""What a message asks to be forgotten: olvida dónde vivo, forget my address, borra mi edad de tu memoria."""

from __future__ import annotations

from typing import Final

from phylactery_agent.rules.spelling import chat_expression, unaccented

EVERYTHING: Final = "*"
"""What a message names that wants all of it forgotten."""
FORGET_KEYS: Final = frozenset({"forget_none", "forget_which", "forget_all"})
"""The replies to words that want something forgotten of which there is none, or several."""
_LONGEST: Final = 300
_LEAD: Final = (
    r"(?i)^[¿¡\s]*(?:(?:please|por\s+favor|porfa|ok|okay|and|y|vale|bueno|hey|oye|(?:can|could|would|will)\s+you(?:\s+please)?"
    r"|i\s+(?:want|would\s+like|need)\s+you\s+to|(?:me\s+)?puedes|podr[ií]as|quiero\s+que|necesito\s+que|me\s+gustar[ií]a\s+que)[\s,]+)*"
)
_ABOUT: Final = (
    r"(?:\s+(?:what|whatever|everything|anything|all)\s+(?:that\s+)?(?:you\s+(?:know|remember|have)|i\s+(?:said|told\s+you|have\s+told\s+you))(?:\s+(?:about|of|on))?"
    r"|\s+(?:about|that|lo\s+que\s+(?:te\s+)?(?:dije|cont[eé]|sabes|recuerdas|sepas)(?:\s+(?:de|sobre))?|todo\s+lo\s+que\s+(?:sabes|sepas|te\s+dije|te\s+cont[eé]|recuerdas)(?:\s+(?:de|sobre))?|lo\s+de(?:\s+que)?|que|de\s+que|de|todo\s+(?:de|sobre)|sobre|a))?"
)
_FORGETS: Final = (
    chat_expression(
        _LEAD + r"(?:forget|unlearn|stop\s+remembering|olvida(?:te)?|olvidar(?:te)?|olvides|olvide(?:se)?"
        r"|deja\s+de\s+recordar|ya\s+no\s+(?:recuerdes|guardes))" + _ABOUT + r"\s+(?P<what>.+?)[\s.!?]*$"
    ),
    chat_expression(
        _LEAD
        + r"(?:erase|delete|remove|wipe|borra(?:r|me)?|borres|elimina(?:r)?|quita(?:r)?|saca(?:r)?)"
        + _ABOUT
        + r"\s+(?P<what>.+?)\s+(?:from|of|out\s+of|de)\s+(?:your|tu|la)\s+(?:memory|memoria)[\s.!?]*$"
    ),
    chat_expression(
        _LEAD + r"(?:erase|delete|remove|wipe|clear|purge|borra(?:r|me)?|elimina(?:r)?|quita(?:r)?|suprime)"
        r"\s+(?:(?:what|whatever|everything|anything|all)\s+(?:that\s+)?you(?:\s+have|['’]ve)?"
        r"(?:\s+(?:know|remember|keep|store|stored|saved|kept))?"
        r"|(?:todo\s+)?lo\s+que\s+(?:sabes|recuerdas|guardas|tienes(?:\s+guardado)?|has\s+guardado))"
        r"\s+(?:about|of|on|de|sobre)\s+(?P<what>.+?)[\s.!?]*$"
    ),
    chat_expression(
        _LEAD + r"(?:erase|delete|remove|wipe|clear|borra(?:r)?|elimina(?:r)?|suprime)"
        r"\s+(?P<what>me|(?:all\s+(?:of\s+)?|todos\s+)?(?:my|mis)\s+(?:personal\s+data|datos\s+personales|data|datos|memories|recuerdos))"
        r"(?:\s+please|\s+por\s+favor)?[\s.!?]*$"
    ),
)
_ALL: Final = chat_expression(
    r"(?i)^(?:me|m[ií]|all|everything|todo|it\s+all|(?:all\s+(?:of\s+)?|todos\s+)?(?:my|mis)\s+(?:data|datos|personal\s+data|datos\s+personales|memories|recuerdos)"
    r"|(?:everything|all|todo)\s+(?:about|de|sobre|you\s+know\s+about|lo\s+que\s+sabes\s+de)\s+(?:me|m[ií])|all\s+of\s+it)$"
)
_POINTS: Final = frozenset(
    [
        "it",
        "that",
        "this",
        "lo",
        "la",
        "eso",
        "esto",
        "ello",
        "about",
        "it",
        "about",
        "that",
        "all",
        "that",
        "what",
        "i",
        "said",
        "lo",
        "que",
        "dije",
        "lo",
        "anterior",
        "anything",
        "nothing",
    ]
)
"""Words that point to what was just said, and name nothing that is remembered."""


def forgotten_in(text: str) -> str:
    """Return what a message wants forgotten, EVERYTHING for all of it, empty if it wants nothing forgotten."""
    if len(text) > _LONGEST:
        return ""
    plain = unaccented(text)
    for pattern in _FORGETS:
        found = pattern.match(plain)
        if found is not None:
            what = text[slice(*found.span(1))].strip(" ,.!?\"'«»“”")
            if not what or set(unaccented(what).lower().split()) <= _POINTS:
                return ""
            return EVERYTHING if _ALL.match(unaccented(what)) else what
    return ""
