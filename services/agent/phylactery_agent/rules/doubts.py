"""Doubts: reasons why the rules do not plan a text that their patterns would match.

The patterns find arguments; whether the words are a request at all is judged by the library that RiskGate also uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from phylactery_understanding.language.text import Kind, is_file_name, tokenize
from phylactery_understanding.language.times import Feature, times_of, unread_time
from phylactery_understanding.requests.dictation import said_beside
from phylactery_understanding.requests.model import Fault
from phylactery_understanding.requests.parser import parse

from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.spelling import chat_expression, misspells_day, unaccented
from phylactery_agent.timeparse.phrases import is_time
from phylactery_agent.timeparse.vocabulary import PLACE

QUESTION: Final = "question"
WHICH_FILE: Final = "which_file"
WHAT_CONTENT: Final = "what_content"
COPY: Final = "copy"
BESIDE: Final = "beside"
PAST: Final = "past"
WHICH_TIME: Final = "which_time"
_OPERATORS: Final = frozenset(
    {"negation", "exclusion", "condition", "hypothetical", "report", "permission", "past", "future", "irony",
     "retraction", "announce", "idiom", "statement"}
)  # fmt: skip
KINDS: Final = _OPERATORS | {QUESTION, WHICH_FILE, WHAT_CONTENT, COPY, BESIDE, WHICH_TIME}
"""Every kind of doubt; each has a sentence in i18n.doubts."""
_NOT_OF_TALK: Final = frozenset({"past", "future", "report", "irony"})
"""Kinds that are irrelevant for words that were not taken for a request anyway."""
STANDING: Final = frozenset({"it", "that", "this", "them", "eso", "esto", "ese", "este"})
"""Words that refer to what was named before."""
OTHER: Final = frozenset({"other", "otro"})
"""Words for a file other than the one named."""
_SAME: Final = STANDING | {"the same", "lo mismo", "ello", "do it", "do that", "hacerlo", "hacer eso", "do so"}
_PERSONS: Final = frozenset({"me", "us", "myself", "mi", "mí", "nosotros"})
"""Words after "to" that are not a file's name."""
_BARE: Final = expression(r"^\pL+$")
_ARTICLES: Final = frozenset({"the", "my", "our", "la", "el", "mi", "al", "nuestra", "nuestro"})
_DICTATED: Final = ("content", "body")
"""Arguments that hold a text as the person dictates it."""
_OF_TIME: Final = chat_expression(
    r"(?is)^(?:(?:(?:y|and|n|or|o|menos)\s+(?:[0-9]+|medi[oa]|pico|cuarto|(?:a\s+)?(?:half|quarter)|so)\b|(?:until|till|except|but\s+not|starting|ish|excepto|salvo|hasta"
    r"|a\s+partir|menos)\b|hora\s+de|(?:in|en)\s+"
    + PLACE
    + r"|(?:ist|jst|aest|aedt|nzst|msk|art|brt|clt|pet|cot|wet|eet)\b|(?:cada|tod[oa]s|every|each)\s"
    r"|(?:on|by|before|after|during)\s.+\s(?:to|about|that)\s|[0-9]{1,2}/[0-9]{1,2}\b"
    r"|(?:en|por|para|antes\s+de|el\s+dia\s+de)\s+(?:la\s+)?(?:navidad|nochebuena|nochevieja|pascuas?|reyes|ano\s+nuevo)\b"
    r"|(?:mornings?|afternoons?|evenings?|nights?|early|late)\s+(?:to|about|that)\s|(?:first|last)\s+thing\b"
    r"|(?:temprano|tempranito|a\s+(?:primera|ultima)\s+hora)\b|(?:fifteen|twenty|thirty|forty|fifty|quince|veinte|treinta|cuarenta|cincuenta)\b).*)$"
)
"""What begins a reminder's text and belongs to its time: until friday, y 10, EST to join, every full moon."""
_DANGLES: Final = expression(
    r"(?is)^.*\s(?:before|after|between|until|till|by|from|around|about|and|or|at|antes(?:\s+de(?:\s+las?)?)?|despues(?:\s+de(?:\s+las?)?)?|entre"
    r"|hasta|desde|para|sobre|y|o|a|de)$"
)
"""What ends a reminder's text and belongs to the time after it: call Eva before. A "d" alone ends a vitamin."""
_HOURS: Final = re.compile(r"(?i)(?:horas?|hours?|\bh|hrs?|hs)$")
"""A time after which a number may be its minutes: in 1 hour 30."""
_LED: Final = expression(r"(?i)^(?:at|in|on|a\s+las?|en|dentro)\s")
"""A time that has its own preposition, so that the one before it belongs to the text: drop by at 9."""
_CONTENTS: Final = expression(
    r"(?is)^(?:(?:all|everything)\s+)?(?:(?:the\s+)?(?:whole\s+)?(?:contents?|text)\s+(?:of|from|in)\s"
    r"|what(?:['’]?s|\s+is|\s+stands)\s+in\s"
    r"|(?:todo\s+)?(?:el\s+)?(?:contenido|texto)\s+(?:del?|en)\s|(?:todo\s+)?lo\s+que\s+(?:hay|pone|dice)\s+(?:en\s)?)"
)
_DESCRIBED: Final = expression(
    r"(?is)^(?:(?:the|my|el|la|los|las|mi|mis)\s+(?:names?|numbers?|address(?:es)?|dates?|list|titles?|nombres?|n[uú]meros?"
    r"|direcci[oó]n|direcciones|fechas?|lista|t[ií]tulos?)\s+(?:of|del?)\s"
    r"|(?:an?|some|un|una|unos|unas)\s+(?:\w+\s+){0,2}(?:poems?|story|stories|summary|list|jokes?|songs?|recipes?|letter|draft"
    r"|report|essay|speech|text|table|poemas?|cuentos?|historias?|resumen|lista|chistes?|canci[oó]n|recetas?|carta|borrador"
    r"|informe|ensayo|discurso|texto|tabla"
    r"|apolog(?:y|ies)|excuses?|invitations?|toast|haikus?|limericks?|sonnets?|ode|verses?|biography|bio|eulogy|slogans?|taglines?"
    r"|headlines?|captions?|explanation|translation|greeting|disculpas?|excusas?|invitaci[oó]n|invitaciones|brindis|soneto|oda|versos?"
    r"|biograf[ií]a|esl[oó]gan|lema|titular(?:es)?|explicaci[oó]n|traducci[oó]n|saludo|felicitaci[oó]n|agradecimiento)\b|(?:the\s+same\s+as|lo\s+mismo\s+que)\s).*$"
)
"""Words that describe a text instead of dictating it: the name of the cat."""
_OTHER: Final = expression(
    r"(?is)^.*\b(?:the\s+other(?:\s+(?:one|file))?|(?:el|al|del)\s+otro(?:\s+(?:fichero|archivo))?"
    r"|(?:read|show|open|see)\s.*\bthe\s+(?:first|second|third|last)(?:\s+(?:one|file))?(?:\s+again)?"
    r"|(?:le[ae]\w*|lee\w*|muestra\w*|ens[eé][nñ]a\w*|[aá]bre\w*)\s.*\b(?:el|al|del)\s+(?:primero|segundo|tercero|[uú]ltimo)"
    r"(?:\s+(?:fichero|archivo))?(?:\s+otra\s+vez)?)[\s.!?]*$"
)


_TELLS_PAST: Final = expression(
    r"(?is)^\s*(?:(?:(?:today|yesterday|earlier|this\s+morning|last\s+night),?\s+)?(?:i|we)\s+(?:already\s+|just\s+)?"
    r"(?:\w+ed|wrote|read|sent|made|saw|did|had|put|found|lost|took|kept)"
    r"|(?:(?:hoy|ayer|anoche|anteayer|antes|ya|esta\s+ma[nñ]ana),?\s+)+(?:yo\s+)?(?:\w+(?:[éíó]|aste|iste|aron|ieron|amos|imos)"
    r"|(?:he|hemos|has)\s+\w+)|(?:yo\s+)?(?:he|hemos)\s+\w+(?:ado|ido|to|cho))\s.*\w\.\w{1,8}\b.*$"
)
"""A report of what was done with a file: I deleted trip.txt yesterday."""


def doubt_of_clause(clause: str) -> str:
    """Return the kind of the first operator that keeps a clause from being a request, or an empty string."""
    request = parse(clause)
    return _first((request.fault, *(ask.fault for ask in request.asks)), _OPERATORS | {QUESTION})


def doubt_of_message(text: str) -> str:
    """Return the kind of doubt that retracts a whole message; a question in it applies to its own clause only."""
    return _first((parse(text).fault,), _OPERATORS)


def doubt_of_talk(text: str, clause: str) -> str:
    """Return the doubt to ask about words that no pattern matches, empty if nothing was understood."""
    if _OTHER.match(clause):
        return WHICH_FILE
    if _TELLS_PAST.match(clause) or _TELLS_PAST.match(text):
        return PAST
    request = parse(text)
    if found := _first((ask.fault for ask in request.asks), _OPERATORS - _NOT_OF_TALK):
        return found
    if any("copy" in ask.verb.meanings and any(map(is_file, (one.raw for one in ask.tokens))) for ask in request.asks):
        return COPY
    verbs = any(one.kind is Kind.WORD and request.lexicon.verb(one.text) for one in request.tokens)
    return _first((request.fault,), _OPERATORS - _NOT_OF_TALK) if verbs else ""


def stands_alone(clause: str) -> bool:
    """Return True if a clause is a request of its own that takes nothing back and points to nothing else."""
    request = parse(clause)
    points = any(one.text in _SAME or one.text in OTHER for one in request.tokens)
    return len(request.asks) == 1 and request.fault is None and request.asks[0].fault is None and not points


def doubt_of_content(args: Mapping[str, Any], clause: str) -> str:
    """Return the doubt about a clause's text that refers to another text or contains more than was dictated."""
    found = {name: args[name] for name in (*_DICTATED, "text") if isinstance(args.get(name), str)}
    said = {name: value for name, value in found.items() if not _is_quoted(value, clause)}
    if any(value.strip().lower() in _SAME for value in said.values()):
        return WHAT_CONTENT
    if "when" in args:
        return _doubt_of_time(str(args["when"]), said.get("text", ""), clause)
    path = str(args.get("path", ""))
    if "content" in args and _BARE.match(path) is not None and _stands_for_file(path, clause):
        return WHICH_FILE
    for value in (said[name] for name in _DICTATED if name in said):
        tokens = tokenize(value)
        named = any(one.kind is Kind.LITERAL for one in tokens)
        if named and (_CONTENTS.match(value) is not None or (is_file(value) and is_file_name(value))):
            return COPY
        begins_quoted = len(tokens) > 1 and tokens[0].kind is Kind.QUOTE
        if begins_quoted or path.lower() in _PERSONS or said_beside(tokens, parse(clause).lexicon):
            return BESIDE
    described = any(_DESCRIBED.match(said[name]) for name in _DICTATED if name in said)
    return WHAT_CONTENT if described else ""


def _stands_for_file(path: str, clause: str) -> bool:
    """Return True if a bare word is used as a noun (the list) rather than as a file name (list, the file list)."""
    words = [one.text for one in tokenize(clause) if one.kind is Kind.WORD]
    return len(words) > 1 and words[-1] == path.lower() and words[-2] in _ARTICLES


def _is_quoted(value: str, clause: str) -> bool:
    """Return True if a whole value is in quotation marks."""
    return any(one.kind is Kind.QUOTE and one.raw == value for one in tokenize(clause))


def _doubt_of_time(when: str, text: str, clause: str) -> str:
    """Return the doubt about a reminder's time: its text still contains one, or words that belong to the time."""
    plain = unaccented(text)
    minutes = plain[:1].isdigit() and _HOURS.search(when) is not None
    left = minutes or _says_when(times_of(text).features) or unread_time(tokenize(text)) or misspells_day(text)
    before = not 0 <= clause.find(when) < clause.find(text)
    dangles = before and _LED.match(when) is None and _DANGLES.match(plain) is not None
    return WHICH_TIME if left or not is_time(when) or dangles or _OF_TIME.match(plain) else ""


def _says_when(features: frozenset[Feature]) -> bool:
    return any(one[0] != "part" for one in features)


def is_file(word: str) -> bool:
    """Return True if a word identifies one thing by its spelling, as a file name does."""
    tokens = tokenize(word)
    return len(tokens) == 1 and tokens[0].kind in {Kind.LITERAL, Kind.QUOTE}


def forbids(opening: str) -> bool:
    """Return True if the opening words of a tool's clause contain an operator themselves: no olvides."""
    return parse(opening).fault is not None


def _first(faults: Iterable[Fault | None], kinds: frozenset[str]) -> str:
    return next((one.kind for one in faults if one is not None and one.kind in kinds), "")
