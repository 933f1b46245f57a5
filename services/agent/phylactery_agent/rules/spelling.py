"""Patterns that match a request however it is spelled in a chat: without accents, or with q for que and u for you.

Accents are removed one letter for one, so that the positions of a match are those in the person's own words, which is
what becomes an argument.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from phylactery_understanding.language.lexicon import lexicons
from phylactery_understanding.language.text import Kind, fold, tokenize

from phylactery_agent.rules.expressions import Expression, ExpressionSet, expression

_PLAIN: Final = str.maketrans("áéíóúüñÁÉÍÓÚÜÑ", "aeiouunAEIOUUN")
_SHORT: Final = {
    "que": "(?:que|q|k)",
    "qu[ee]": "(?:que|q|k)",
    "de": "(?:de|d)",
    "por": "(?:por|x)",
    "tambien": "(?:tambien|tmb|tb)",
    "tambi[ee]n": "(?:tambien|tmb|tb)",
    "you": "(?:you|u|ya)",
    "tomorrow": "(?:tomorrow|tomorow|tommorow|tommorrow|tmrw|tmrow|tmr|2morrow|2moro)",
}
"""Words of a pattern, without accents, and how they are also written."""
_WORD: Final = re.compile(
    r"(?<![\w\\<\]])(?:" + "|".join(map(re.escape, sorted(_SHORT, key=len, reverse=True))) + r")(?![\w\[])"
)


_SPOKEN: Final = expression(r"(?i)\b([\w-]+)\s+(?:dot|punto)\s+(txt|md|csv|json|log|html|ya?ml|docx?|pdf)\b")
_COMMON_WORDS: Final = """
show read open list create make write append save delete remind search remember file files reminder reminders
muestra muestrame ensena ensename abre abreme lista crea creame escribe agrega anade guarda borra recuerdame busca
recuerda archivo archivos fichero ficheros recordatorio recordatorios
"""
_COMMON: Final = frozenset(_COMMON_WORDS.split())
"""Words of requests that a misspelled one may stand for."""
_SHORTEST_SPELLED: Final = 4
_TYPED: Final = expression(r"[\pL]+")


_WRITTEN_OUT: Final = {
    "q": "que", "k": "que", "d": "de", "x": "por", "xq": "porque", "pq": "porque", "porq": "porque", "tb":
    "tambien", "tmb": "tambien", "tbn": "tambien", "xfa": "porfa", "xfavor": "porfavor", "bn": "bien", "toy":
    "estoy", "tas": "estas", "aki": "aqui", "kiero": "quiero", "qiero": "quiero", "ke": "que", "dnd": "donde",
    "pa": "para", "msj": "mensaje", "u": "you", "ur": "your", "r": "are", "pls": "please", "plz": "please",
    "thx": "thanks", "tmrw": "tomorrow", "tmr": "tomorrow", "2moro": "tomorrow", "wat": "what", "wut": "what",
    "wanna": "want", "gonna": "going", "gimme": "give", "lemme": "let", "cuz": "because", "wsp": "whatsapp",
    "wasap": "whatsapp", "wpp": "whatsapp", "guasap": "whatsapp",
}  # fmt: skip
"""Words of a chat, without accents, and the words they stand for."""


def written_out(word: str) -> str:
    """Return the word that a word of a chat, in lower case and without accents, stands for."""
    return _WRITTEN_OUT.get(word, word)


def spoken_names(text: str) -> str:
    """Return a text with the file names of a voice message as they are written: trip dot txt."""
    return _SPOKEN.sub(r"\1.\2", text)


def corrected(text: str) -> str:
    """Return a text with misspelled request words corrected, up to its first file name, quotation or colon.

    A Spanish or English word stays, and so does one that may stand for two. What is dictated comes later and stays.
    """
    tokens = tokenize(text)
    stop = next((one.start for one in tokens if one.kind in {Kind.LITERAL, Kind.QUOTE} or one.raw == ":"), len(text))
    known = lexicons().known["es"] | lexicons().known["en"]
    parts, begin = list[str](), 0
    for one in tokens:
        word = unaccented(one.raw.lower())
        if one.stop > stop or one.kind is not Kind.WORD or len(word) < _SHORTEST_SPELLED or fold(word) in known:
            continue
        meant = [right for right in sorted(_COMMON) if _is_slip(word, right)]
        if len(meant) == 1 and word not in _COMMON:
            parts += [text[begin : one.start], meant[0]]
            begin = one.stop
    return "".join((*parts, text[begin:]))


def _is_slip(typed: str, right: str) -> bool:
    """Return True if one letter is missing, added, wrong or in its neighbour's place."""
    short, long = sorted((typed, right), key=len)
    at = next((at for at, (one, other) in enumerate(zip(short, long, strict=False)) if one != other), len(short))
    if len(long) - len(short) == 1:
        return short[at:] == long[at + 1 :]
    if len(long) != len(short):
        return False
    return short[at + 1 :] == long[at + 1 :] or short[at : at + 2] + short[at + 2 :] == (
        long[at + 1 : at + 2] + long[at : at + 1] + long[at + 2 :]
    )


_DAY_NAMES: Final = "tomorrow tonight monday tuesday wednesday thursday friday saturday sunday miercoles".split()  # noqa: SIM905
"""Names of days that no other word resembles: vienes, mates and domino are words of their own."""


def misspells_day(text: str) -> bool:
    """Return True if a word of a text is the name of a day with a letter missing, added or in its neighbour's place."""
    typed = [unaccented(one.raw.lower()) for one in tokenize(text) if one.kind is Kind.WORD]
    return any(
        word != name and _is_slip(word, name) and (len(word) != len(name) or sorted(word) == sorted(name))
        for word in typed
        for name in _DAY_NAMES
    )


def unaccented(text: str) -> str:
    """Return a text of the same length without the accents of Spanish."""
    return text.translate(_PLAIN)


def chat_expression(pattern: str) -> Expression:
    """Compile an expression for unaccented texts, in which every known word matches its short spellings too."""
    return expression(_in_chat(pattern))


def chat_expressions(patterns: Sequence[str]) -> ExpressionSet:
    """Compile expressions as chat_expression does, to find in one pass which of them match."""
    return ExpressionSet([_in_chat(pattern) for pattern in patterns])


def _in_chat(pattern: str) -> str:
    return _WORD.sub(lambda found: _SHORT[found.group()], pattern.translate(_PLAIN))


def named_groups(words: Expression, text: str) -> dict[str, str | None] | None:
    """Return the named groups of a match as the text spells them, or None if the text does not match."""
    found = words.match(unaccented(text))
    if found is None:
        return None
    spans = {name: found.span(number) for name, number in words.groupindex.items()}
    return {name: text[start:stop] if start >= 0 else None for name, (start, stop) in spans.items()}
