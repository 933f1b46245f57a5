"""Write-policy rules for one sentence in English or Spanish: its kind, and the attribute it sets.

A sentence is matched in lower case, without accents, from its beginning, so that quotations and hypotheticals set
nothing. Only single-valued properties become attributes, and only from a plain statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import re2

from phylactery_memory.retrieval.words import plain

_START: Final = (
    r"^(?:(?:and|but|so|well|also|oh|hi|hello|hey|btw|by the way|please|from now on|y|pero|bueno|ademas|pues|hola|oye|"
    r"por cierto|por favor|de ahora en adelante|a partir de ahora|recuerda que|remember that|recuerda|"
    r"remember)[,:]?\s+)*"
)


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute of the person that a sentence sets."""

    attribute: str
    value: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The classification of a sentence."""

    fact: bool = False
    preference: bool = False
    stable: bool = False
    temporary: bool = False
    question: bool = False
    command: bool = False
    small_talk: bool = False
    asks_to_remember: bool = False
    slot: Slot | None = None


def _rule(*patterns: str) -> Any:
    return re2.compile(_START + "(?:" + "|".join(patterns) + ")")


_BREAK: Final = re2.compile(r"([^.!?¿¡;\n]+[.!?;]*)")
_ENDS_VALUE: Final = re2.compile(
    r"(?:[,;.!?()]|\s+(?:and|but|because|since|so|y|e|pero|porque|ya que|aunque|desde|por favor|please|"
    r"by the way|btw|por cierto)(?:\s|$)).*$"
)

_REMEMBER: Final = _rule(
    r"(?:please )?(?:remember|keep in mind|don'?t forget|note) (?:that|this)\b",
    r"(?:por favor )?(?:recuerda|acuerdate de|ten en cuenta|ten presente|no olvides|apunta|anota) (?:que|esto)\b",
)
_QUESTION: Final = _rule(
    r"(?:what|who|whom|whose|where|when|why|how|which|is|are|am|do|does|did|can|could|would|will|shall|should|may|"
    r"have|has) "
    r"(?:i|you|we|they|he|she|it|the|my|your|there|this|that|much|many|time|about|is|are|do|does|did|was|were|can)\b",
    r"(?:quien|donde|cuando|por que|cual|cuales|cuanto|cuanta|cuantos|cuantas)\b",
)
_COMMAND: Final = _rule(
    r"(?:can|could|would|will) you\b",
    r"(?:send|open|show|create|delete|remove|write|read|search|find|look|remind|book|buy|order|cancel|play|stop|"
    r"start|run|"
    r"make|set|add|list|give|tell|summari[sz]e|translate|schedule|check|get|fetch|explain|help)\b",
    r"(?:puedes|podrias|me puedes|quieres)\b",
    r"(?:envia|enviame|manda|mandame|abre|muestra|muestrame|crea|borra|elimina|escribe|lee|busca|encuentra|recuerdame|"
    r"avisame|reserva|compra|pide|cancela|pon|ponme|para|empieza|ejecuta|haz|hazme|agrega|anade|lista|dame|dime|resume|"
    r"traduce|programa|revisa|explica|explicame|ayudame|necesito que|quiero que)\b",
)
_SMALL_TALK: Final = """
hi hello hey thanks thank you very much so a lot ok okay yes no yeah yep nope sure fine great cool nice good perfect
bye goodbye see later morning afternoon evening night lol haha hmm please sorry welcome alright right got it hola
buenas buenos dias tardes noches gracias muchas mil de nada vale si claro perfecto genial bien muy bueno adios chao
chau hasta luego pronto manana jaja jajaja listo dale entendido por favor perdon disculpa que tal como estas how are
ta estupendo excelente
"""
_SMALL_WORDS: Final = frozenset(_SMALL_TALK.split())
_TEMPORARY: Final = re2.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|right now|at the moment|just now|for now|this (?:morning|afternoon|"
    r"evening|week|"
    r"weekend|time|once)|currently|hoy|esta (?:manana|tarde|noche|semana|vez)|este (?:fin de semana|momento|rato)|"
    r"ahora mismo|"
    r"ahorita|por ahora|de momento|por el momento|ayer|pasado manana|en este momento|un rato)\b"
)
_MORNING: Final = re2.compile(r"\b(?:la|las|cada|de) mananas?\b")
_TOMORROW: Final = re2.compile(r"\bmanana\b")
_ALWAYS: Final = re2.compile(
    r"\b(?:always|never|from now on|in general|by default|every time|whenever|siempre|nunca|jamas|de ahora en adelante|"
    r"a partir de ahora|en general|por defecto|cada vez)\b"
)
_PREFERENCE: Final = _rule(
    r"i (?:really |absolutely |always |usually |do |also |still )*(?:like|love|hate|dislike|enjoy|prefer|adore|"
    r"detest)\b",
    r"i (?:really )?(?:don'?t|do not|can'?t|cannot|never) (?:really )?(?:like|love|stand|enjoy|eat|drink|want|bear)\b",
    r"i(?:'d| would) (?:rather|prefer)\b",
    r"i(?:'m| am) (?:a )?(?:vegetarian|vegan|celiac|coeliac|allergic|intolerant|not a fan|a (?:big )?fan)\b",
    r"my favou?rites?\b",
    r"(?:always |never |from now on,? )+(?:answer|reply|respond|call|talk|speak|write|address|use|ask|send)\b",
    r"(?:a mi )?(?:no )?me (?:gusta|gustan|encanta|encantan|molesta|molestan|fascina|fascinan|gustaria que siempre)\b",
    r"(?:yo )?(?:siempre |nunca |no )*(?:prefiero|odio|detesto|adoro|amo|soporto|como carne|bebo|tomo)\b",
    r"(?:yo )?soy (?:una? )?(?:vegetarian[oa]|vegan[oa]|celiac[oa]|alergic[oa]|intolerante|fan|amante)\b",
    r"(?:mi|mis) \w+(?: \w+)? (?:favorit|preferid)[oa]s?\b",
    r"(?:siempre |nunca |de ahora en adelante,? |a partir de ahora,? )+\w+",
)
_FACT: Final = _rule(
    r"(?:my name is|i(?:'m| am) called|call me)\b",
    r"i (?:live|lived|work|worked|study|studied|own|have|speak|play|teach|was born|grew up|moved|graduated|run|drive|"
    r"use)\b",
    r"i(?:'ve| have) (?:got|been|lived|worked|moved|a|an|two|three)\b",
    r"i(?:'m| am) (?:an?|from|married|single|divorced|retired|\d+|the|in charge|based|originally)\b",
    r"(?:my|our) [\w' -]{2,40}? (?:is|are|was|were|has|have|lives?|works?|starts?|begins?|ends?)\b",
    r"(?:me llamo|mi nombre es|llamame|puedes llamarme)\b",
    r"(?:yo )?(?:vivo|vivi|trabajo|trabaje|estudio|estudie|naci|creci|tengo|hablo|juego|enseno|me mude|me gradue|uso|"
    r"conduzco)\b",
    r"(?:yo )?soy (?:de|un|una|el|la|\w+(?:or|ora|ista|ero|era|ico|ica|ado|ada|ano|ana|ente|ante)\b)",
    r"(?:yo )?estoy (?:casad|solter|divorciad|jubilad)[oa]\b",
    r"(?:mi|mis|nuestro|nuestra|nuestros|nuestras) [\w -]{2,40}? (?:es|son|era|eran|esta|estan|se llama|se llaman|"
    r"vive|viven|"
    r"trabaja|trabajan|tiene|tienen|cumple|empieza|termina)\b",
    r"(?:cumplo (?:anos )?el|nuestro aniversario)\b",
    r"i (?:don'?t|do not|no longer|never) (?:live|work|study|own|have|speak|play|drive|use)\b",
    r"(?:ya )?no (?:vivo|trabajo|estudio|tengo|hablo|juego|uso|conduzco)\b",
)

_PROPER: Final = frozenset({"city", "employer"})
"""Attributes whose value is a name, so that "I live in fear" and "trabajo en equipo" set none."""
_SLOTS: Final = tuple(
    (attribute, _rule(*patterns))
    for attribute, patterns in (
        ("name.preferred", (r"call me (.+)", r"(?:puedes llamarme|llamame) (.+)")),
        ("name", (r"my name is (.+)", r"(?:me llamo|mi nombre es) (.+)")),
        (
            "city",
            (
                r"i (?:live|am living|moved) (?:now )?(?:in|to) (.+)",
                r"i(?:'m| am) living in (.+)",
                r"(?:yo )?(?:vivo en|me mude a) (.+)",
            ),
        ),
        ("employer", (r"i work (?:at|for) (.+)", r"(?:yo )?trabajo (?:en|para) (.+)")),
        ("birthday", (r"my birthday is (?:on )?(.+)", r"mi cumpleanos es (?:el )?(.+)", r"cumplo anos el (.+)")),
        ("timezone", (r"my time ?zone is (.+)", r"mi (?:zona horaria|huso horario) es (.+)")),
    )
)
_FAVOURITE: Final = (
    _rule(r"my favou?rite (\w{1,40}) is (?:the |an? )?(.+)"),
    _rule(r"mi (\w{1,40}) (?:favorit|preferid)[oa] es (?:el |la |un |una )?(.+)"),
)
_LANGUAGE: Final = _rule(
    r"(?:always |from now on,? )*(?:answer|reply|respond|talk|speak|write)(?: to)?(?: me)?(?: always)? in (english|"
    r"spanish)\b",
    r"(?:siempre |de ahora en adelante,? |a partir de ahora,? )*(?:respondeme|contestame|hablame|escribeme|responde|"
    r"contesta)"
    r"(?: siempre)? en (ingles|espanol|castellano)\b",
    r"(?:i (?:always )?prefer|prefiero)(?: siempre)?(?: (?:to (?:speak|write)|hablar|escribir|respuestas))?(?: in| "
    r"en)? "
    r"(english|spanish|ingles|espanol|castellano)\b",
)
_LANGUAGES: Final = {"english": "en", "ingles": "en", "spanish": "es", "espanol": "es", "castellano": "es"}
_LENGTH: Final = _rule(
    r"(?:i (?:always |generally )?(?:prefer|like|want)|(?:always |from now on,? )+(?:give me|use|write|send)) "
    r"(short|brief|concise|long|detailed) (?:answers|replies|responses|messages)",
    r"(?:prefiero|siempre quiero|me gustan) (?:las )?(?:respuestas|contestaciones|mensajes) "
    r"(cortas|breves|concisas|cortos|breves|largas|detalladas|largos)",
)
_LENGTHS: Final = {
    **dict.fromkeys(("short", "brief", "concise", "cortas", "breves", "concisas", "cortos"), "short"),
    **dict.fromkeys(("long", "detailed", "largas", "detalladas", "largos"), "long"),
}
_DIET: Final = _rule(
    r"i(?:'m| am) (?:an? )?(vegetarian|vegan|celiac|coeliac)\b", r"(?:yo )?soy (vegetarian|vegan|celiac)[oa]\b"
)
_CHOICES: Final[tuple[tuple[str, Any, Mapping[str, str]], ...]] = (
    ("language", _LANGUAGE, _LANGUAGES),
    ("answer.length", _LENGTH, _LENGTHS),
    ("diet", _DIET, {"coeliac": "celiac"}),
)
_STABLE_ATTRIBUTES: Final = frozenset({"name", "name.preferred", "timezone", "birthday"})


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, with their end marks."""
    return (found.strip() for found in _BREAK.findall(text) if found.strip())


def read(sentence: str) -> Reading:
    """Return the classification of a sentence."""
    lowered = plain(sentence).strip()
    body = lowered.strip(" .!?¿¡;,")
    words = [word.strip(",.:'\"") for word in body.split()]
    if not body or all(word in _SMALL_WORDS for word in words if any(c.isalnum() for c in word)):
        return Reading(small_talk=True)
    asks = bool(_REMEMBER.search(body))
    slot, stable_slot = _slot(sentence, body)
    if not asks and (lowered.endswith("?") or _QUESTION.search(body)):
        return Reading(question=True)
    preference = bool(_PREFERENCE.search(body)) or stable_slot
    if not asks and not preference and slot is None and _COMMAND.search(body):
        return Reading(command=True)
    return Reading(
        fact=bool(_FACT.search(body)) or slot is not None,
        preference=preference,
        stable=preference and (stable_slot or bool(_ALWAYS.search(body))),
        temporary=bool(_TEMPORARY.search(body) or _TOMORROW.search(_MORNING.sub("", body))),
        asks_to_remember=asks,
        slot=slot,
    )


def _slot(sentence: str, body: str) -> tuple[Slot | None, bool]:
    """Return the attribute a sentence sets, and True if it is permanent, as a preference is."""
    for attribute, pattern, values in _CHOICES:
        if found := pattern.search(body):
            chosen = next(group for group in found.groups() if group)
            return Slot(attribute, values.get(chosen, chosen)), True
    for pattern in _FAVOURITE:
        if found := pattern.search(body):
            thing, said = found.groups()
            value = _as_written(sentence, said)
            return (Slot(f"favorite.{thing}", value), True) if value else (None, False)
    for attribute, pattern in _SLOTS:
        if found := pattern.search(body):
            value = _as_written(sentence, next(group for group in found.groups() if group))
            if value and (attribute not in _PROPER or (value[0].isupper() and not sentence.isupper())):
                return Slot(attribute, value), attribute in _STABLE_ATTRIBUTES
    return None, False


def _as_written(sentence: str, said: str) -> str:
    """Return a value found in normalised text as the person wrote it, up to the end of the clause."""
    value = _ENDS_VALUE.sub("", said).strip(" '\"")
    wanted = value.split()
    written = sentence.split()
    for at in range(len(written) - len(wanted) + 1):
        part = written[at : at + len(wanted)]
        if [plain(word).strip(".,;:!?¿¡()'\"") for word in part] == [word.strip(".,;:!?¿¡()'\"") for word in wanted]:
            return " ".join(part).strip(".,;:!?¿¡()'\" ")[:200]
    return ""
