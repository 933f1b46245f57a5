"""Rewording of a clause with a verb that the tools' patterns know, and without the phrases around a request.

The patterns know one or two verbs per action; people use many, in every form, with voseo and in chat spelling. The
library that reads requests knows those. The patterns read the reworded clause, and RiskGate receives the person's own
words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from phylactery_understanding.requests.model import Ask, Label
from phylactery_understanding.requests.parser import parse

from phylactery_agent.ports import Language
from phylactery_agent.rules.doubts import is_file
from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.spelling import chat_expression, unaccented

_READ: Final[dict[Language, str]] = {"es": "lee", "en": "read"}
_VERBS: Final[tuple[tuple[str, dict[Language, str]], ...]] = (
    ("undo", {"es": "deshaz", "en": "undo"}),
    ("cancel", {"es": "cancela", "en": "cancel"}),
    ("remind", {"es": "recuérdame", "en": "remind me"}),
    ("send", {"es": "envía", "en": "send"}),
    # Content that is only "put" somewhere is added: that preserves the existing content.
    ("add", {"es": "añade", "en": "add"}),
    ("record", {"es": "añade", "en": "add"}),
    ("put", {"es": "añade", "en": "add"}),
    ("write", {"es": "escribe", "en": "write"}),
    ("search", {"es": "busca", "en": "search for"}),
    ("read", _READ),
)
"""Meanings of a person's verb and the patterns' verb for each; the first that gives a reading counts."""
_INTO: Final = expression(r"(?i)\s(?:in|into|on|onto|at\s+the\s+end\s+of)\s+((?:the\s+)?(?:file\s+)?\S+)$")
_MAIL: Final = expression(
    r"(?i)^(?:le\s+)?(?:a\s+|to\s+)?([^\s@\"“«]+@[^\s@,:]+),?(?:\s+(?:an?\s+|un\s+)?(?:e-?mail|mail|correo))?(\s|:)"
)
_TO: Final = r" to \1"
_A_MAIL: Final[dict[Language, str]] = {"es": r"un correo a \1\2", "en": r"an email to \1\2"}
_WHAT_IS_IN: Final = chat_expression(
    r"(?i)^[¿\s]*(?:to\s+)?(?:me\s+)?(?:(?:lo\s+)?qu[eé]\s+(?:hay|dice|pone)\s+(?:en\s+)?|what(?:['’]?s|\s+is)\s+(?:in|on)\s+)"
)
_THAT: Final = expression(r"(?i)^(?:that|que)\s+")
_PRONOUN: Final = expression(r"(?i)^me\s+")
_PARTICLE_OF_VERB: Final = expression(r"(?i)^(?:down|up)\s+")
"""What belongs to a verb and to nothing else: jot down, wake me up."""
_WAKE: Final[dict[Language, str]] = {"es": "despertar", "en": "wake up"}
"""What a reminder says that only wakes."""
_SMILES: Final = r"[:;][-']?[)D]|[\x{1F300}-\x{1FAFF}\x{2600}-\x{27BF}\x{FE0F}]+"
_PARTICLE: Final = r"por\s*fa(?:vor)?|porfis|plis|xfa(?:vor)?|pls|plz|please|" + _SMILES
_TAIL: Final = expression(
    r"(?i)(?:[\s,.!;]+(?:" + _PARTICLE + r"|thanks?(?:\s+you)?|thx|ty|(?:muchas\s+)?gracias|asap|cheers))+[\s.!?]*$"
)
_PARTICLES: Final = expression(r"(?i)^(?:[\s,.!;]+(?:" + _PARTICLE + r"))+[\s.!?]*$")
_LEAD: Final = expression(
    r"(?i)^(?:[¿¡\s]+"
    r"|(?:por\s+favor|please|hola|hello|hi|hey|y|and|ok|okay|vale|bueno|oye|now|ahora|h+m+|u+m+|uh|er|so|well|right|listen"
    r"|pues|eh|em|mira|a\s+ver|es\s+que|bien|just|maybe|solo|oh|ah),?\s+"
    r"|i\s+was\s+(?:just\s+)?(?:thinking|wondering),?\s+(?:if\s+)?"
    r"|(?:before\s+(?:i\s+(?:go|leave|forget)|anything(?:\s+else)?)|after\s+that|first\s+of\s+all),?\s+"
    r"|antes\s+de\s+(?:irme|salir|nada|que\s+me\s+vaya|que\s+se\s+me\s+olvide),?\s+"
    r"|despu[eé]s\s+de\s+(?:eso|esto),?\s+"
    r"|(?:quer[ií]a|quisiera|me\s+gustar[ií]a)\s+(?:ver|saber)\s+si\s+|(?:me\s+)?(?:puedes|podr[ií]as)\s+"
    r"|(?:can|could|would)\s+(?:you|u)\s+(?:maybe\s+|perhaps\s+|please\s+)?"
    r"|(?:quiero|quisiera|necesito)\s+(?:que|q)\s+(?:me\s+)?|primero,?\s+|first,?\s+)+"
)
"""What people say before a request and that asks for nothing."""
_PAUSES: Final = frozenset(",.!;")


def without_lead(text: str) -> str:
    """Return a text without the words that lead up to a request: hmm, a ver, before I go, could you maybe."""
    return _LEAD.sub("", text)


def without_tail(text: str) -> str:
    """Return a text without its closing courtesy, unless that may be part of what is dictated.

    Chat particles and "please" are never dictated; "thanks" is courtesy only after punctuation, a file name or an
    address.
    """
    found = next(_TAIL.finditer(text), None)
    if found is None:
        return text
    before, tail = text[: found.start()], found.group()
    plain = _PARTICLES.match(tail) is not None
    return before if plain or tail.lstrip()[:1] in _PAUSES or is_file(before.rpartition(" ")[2]) else text


def rewordings(clause: str, language: Language) -> Iterator[str]:
    """Yield a clause in the words of the patterns, the likeliest first; nothing if it is not a plain request."""
    if (asked := _without_question(clause)) != clause:
        yield f"{_READ[language]} {asked}"
    asks = [one for one in parse(clause).asks if one.fault is None]
    if len(asks) != 1:
        return
    ask = asks[0]
    said = clause[_stop_of_verb(ask) :].strip()
    rest = _PARTICLE_OF_VERB.sub("", _THAT.sub("", _PRONOUN.sub("", said)))
    wakes = "wake" in ask.verb.meanings and ask.verb.joined in {"me", ""}
    if _has_other_verb(ask) or "forward" in ask.verb.meanings:
        return
    for meaning, verbs in _VERBS:
        if meaning not in ask.verb.meanings or not (rest or meaning == "undo"):
            continue
        if meaning == "remind" and not (ask.verb.joined.startswith("me") or _PRONOUN.match(said)):
            continue  # a reminder for someone else
        verb = verbs[language]
        if meaning == "remind" and wakes:
            yield f"{verb} {_WAKE[language]} {rest}"
        elif meaning == "read":
            yield f"{verb} {_without_question(rest)}"
        elif verb == "add":
            yield f"{verb} {_INTO.sub(_TO, rest)}"
        elif meaning == "send":
            yield f"{verb} {_MAIL.sub(_A_MAIL[language], rest)}"
        else:
            yield f"{verb} {rest}".strip()


def _without_question(clause: str) -> str:
    """Return a clause without the words that ask what something holds: what is in."""
    found = _WHAT_IS_IN.match(unaccented(clause))
    return clause if found is None else clause[found.end() :]


def _has_other_verb(ask: Ask) -> bool:
    """Return True if another verb precedes the verb of an ask: quita y pon."""
    verb = ask.labels.index(Label.VERB)
    before = zip(ask.tokens[:verb], ask.labels[:verb], strict=True)
    return any(label is not Label.FILLER and ask.lexicon.verb(one.text) for one, label in before)


def _stop_of_verb(ask: Ask) -> int:
    """Return the word index at which the verb of an ask ends."""
    return ask.tokens[ask.labels.index(Label.VERB)].stop
