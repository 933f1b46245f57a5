"""Write-policy rules for one sentence in English or Spanish: its kind, and the attribute it sets.

A sentence is matched in lower case, without accents, from its beginning, so that quotations and hypotheticals set
nothing. Only single-valued properties become attributes, and only from a plain statement: a value must be of its kind
(a name, a date, a language that ends its clause), and nothing around it may say that it is not meant, not the person's,
or not certain. What is doubtful sets nothing: an ordinary memory is better than a wrong profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Final
from zoneinfo import available_timezones

import re2

from phylactery_memory.retrieval.words import STOP_WORDS, negated, plain

_START: Final = (
    r"^(?:(?:and|but|so|well|also|oh|hi|hello|hey|ok|okay|yes|yeah|si|claro|btw|by the way|please|from now on|"
    r"actually|now|y|pero|bueno|"
    r"ademas|pues|hola|oye|vale|ahora|en realidad|"
    r"por cierto|por favor|de ahora en adelante|a partir de ahora|recuerda que|remember that|recuerda|"
    r"remember)[,:.]?\s+)*"
)


@dataclass(frozen=True, slots=True)
class Slot:
    """An attribute of the person that a sentence sets, or ends where ``ends``: then an empty value is any value.

    Words that end one of two attributes ("I left Acme") name both, with a space between them.
    """

    attribute: str
    value: str
    ends: bool = False

    def concerns(self, other: Slot | None) -> bool:
        """Return True if what this slot says is about the other's value: all but the end of another value."""
        if other is None or other.attribute not in self.attribute.split():
            return False
        return not self.ends or not self.value or _same(self.value, other.value)


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
    r"from now on|de ahora en adelante|a partir de ahora|"
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
    r"make|set|add|list|give|tell|summari[sz]e|translate|schedule|check|get|fetch|explain|help|call|phone|ring|forget|"
    r"answer|reply|respond)\b",
    r"(?:puedes|podrias|me puedes|quieres)\b",
    r"(?:envia|enviame|manda|mandame|abre|muestra|muestrame|crea|borra|elimina|escribe|lee|busca|encuentra|recuerdame|"
    r"avisame|reserva|compra|pide|cancela|pon|ponme|para|empieza|ejecuta|haz|hazme|agrega|anade|lista|dame|dime|resume|"
    r"traduce|programa|revisa|explica|explicame|ayudame|necesito que|quiero que|llama|llamame|telefoneame|olvida|"
    r"olvidate|contesta|contestame|responde|respondeme)\b",
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
    r"(?:my name(?:'s| is)|i(?:'m| am) called)\b",
    r"(?:i|we) (?:live|lived|work|worked|study|studied|own|have|speak|play|teach|was born|grew up|moved|graduated|"
    r"run|drive|"
    r"use)\b",
    r"i(?:'ve| have) (?:got|been|lived|worked|moved|a|an|two|three)\b",
    r"i(?:'m| am) (?:an?|from|married|single|divorced|retired|\d+|the|in charge|based|originally)\b",
    r"(?:my|our) [\w' -]{2,40}?(?:'s| (?:is|are|was|were|has|have|lives?|works?|starts?|begins?|ends?))\b",
    r"(?:me llamo|mi nombre es)\b",
    r"(?:yo )?(?:vivo|vivi|vivimos|nos mudamos|nos hemos mudado|tenemos|trabajo|trabaje|estudio|estudie|naci|creci|"
    r"tengo|hablo|juego|enseno|me mude|me gradue|uso|"
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

_NAME_EN: Final = r"my (?:full |first |real )?name(?:'s| is)(?: now)?|i(?:'m| am) (?:now )?called|i go by"
_NAME_ES: Final = r"(?:yo )?(?:ahora )?me llamo(?: ahora)?|mi nombre (?:completo )?es"
_CALLED_EN: Final = r"(?:you can |you may |just |always )*call me"
_CALLED_ES: Final = (
    r"(?:siempre )?(?:puedes llamarme|podes llamarme|llamame|llameme|prefiero que me llames)(?: siempre)?"
)
_LIVES_EN: Final = (
    r"(?:my [\w ]{2,20} and )?(?:i|we)(?:'m| am|'re| are)? (?:now |currently )?(?:live|living)(?: now)? in"
    r"|(?:my [\w ]{2,20} and )?(?:i|we)(?:'ve| have)?(?: just)? (?:moved|relocated)(?: back)? to"
)
_LIVES_ES: Final = (
    r"(?:yo )?(?:ahora |actualmente )*(?:vivo|vivimos|estoy viviendo|estamos viviendo)(?: ahora| actualmente)? en"
    r"|(?:yo )?(?:ya |ahora )*(?:me (?:mude|he mudado|traslade)|nos (?:mudamos|hemos mudado|trasladamos))(?: ahora)? a"
)
_WORKS_EN: Final = r"i(?:'m| am)? (?:now )?(?:work|working)(?: now)? (?:at|for)"
_WORKS_ES: Final = r"(?:yo )?(?:ahora )?trabajo(?: ahora)? (?:en|para)"
_SLOTS: Final = tuple(
    (attribute, _rule(rf"(?:{patterns}) (.+)"))
    for attribute, patterns in (
        ("name.preferred", f"{_CALLED_EN}|{_CALLED_ES}"),
        ("name", f"{_NAME_EN}|{_NAME_ES}"),
        ("city", f"{_LIVES_EN}|{_LIVES_ES}"),
        ("employer", f"{_WORKS_EN}|{_WORKS_ES}"),
        (
            "birthday",
            r"my birthday(?:'s| is)(?: on)?|i was born on|mi cumpleanos es(?: el)?|cumplo (?:anos )?el|naci el",
        ),
        ("timezone", r"my time ?zone(?:'s| is)|mi (?:zona horaria|huso horario) es(?: la de)?"),
        (
            "occupation",
            r"i(?:'m| am)? (?:now )?(?:work|working)(?: now)? as|(?:yo )?(?:ahora )?trabajo(?: ahora)? (?:de|como)",
        ),
    )
)
_FAVOURITE: Final = (
    _rule(r"my favou?rite (\w{1,40})(?:'s| is) (?:now )?(?:the |an? )?(.+)"),
    _rule(r"mi (\w{1,40}) (?:favorit|preferid)[oa] (?:ahora )?es (?:ahora )?(?:el |la |un |una )?(.+)"),
)
_CLAUSE_ENDS: Final = (
    r"\s*(?:[,;.!()]|(?:and|but|because|since|y|e|pero|porque|por favor|please|thanks|gracias|from now on|"
    r"always|siempre|de ahora en adelante|a partir de ahora)\b|$)"
)
_LANGUAGE: Final = _rule(
    r"(?:always |from now on,? |please )*(?:answer|reply|respond|talk|speak|write)(?: to)?(?: me)?(?: always)? in "
    rf"(english|spanish){_CLAUSE_ENDS}",
    r"(?:siempre |de ahora en adelante,? |a partir de ahora,? )*(?:respondeme|contestame|hablame|escribeme|responde|"
    r"contesta)"
    rf"(?: siempre)? en (ingles|espanol|castellano){_CLAUSE_ENDS}",
    r"(?:i (?:always )?prefer|(?:yo )?prefiero)(?: siempre)?(?: (?:to (?:speak|write|read|talk)|hablar|escribir|"
    r"leer|(?:tus |las )?respuestas|(?:your )?(?:answers|replies)|que me (?:hables|escribas|respondas|contestes)))?"
    rf"(?: in| en)?(?: el)? (english|spanish|ingles|espanol|castellano){_CLAUSE_ENDS}",
    rf"my (?:preferred )?language is (english|spanish){_CLAUSE_ENDS}",
    rf"mi idioma (?:preferido )?es el (ingles|espanol|castellano){_CLAUSE_ENDS}",
)
_LANGUAGES: Final = {"english": "en", "ingles": "en", "spanish": "es", "espanol": "es", "castellano": "es"}
_ANSWERS: Final = r"(?:answers|replies|responses|messages)"
_RESPUESTAS: Final = r"(?:respuestas|contestaciones|mensajes)"
_LENGTH: Final = _rule(
    r"(?:i(?:'d| would)? (?:always |generally |really )?(?:prefer|like|want)|(?:always |from now on,? )+(?:give me|"
    r"use|write|send)|(?:please )?(?:give me|keep)) "
    r"(?:your |my |the |all )*(?:answers |replies )?(short|shorter|brief|concise|long|longer|detailed)(?: "
    rf"{_ANSWERS})?{_CLAUSE_ENDS}",
    r"(?:yo )?(?:prefiero|siempre quiero|quiero siempre|me gustan|dame siempre|siempre dame|prefiero que me des)(?: "
    r"siempre)? (?:las |tus )?"
    rf"{_RESPUESTAS} (?:mas )?(?:que sean )?(cortas|breves|concisas|cortos|breves|largas|detalladas|"
    rf"largos){_CLAUSE_ENDS}",
    r"(?:always |from now on,? )+(?:answer|reply|respond|write|be)(?: to)?(?: me)? (shortly|briefly|concisely|brief|"
    r"short|in detail)\b",
    r"(?:siempre |de ahora en adelante,? |a partir de ahora,? )+(?:respondeme|contestame|responde|contesta|se|"
    r"escribeme)(?: de forma)? (breve|breve y claro|corto|brevemente|en detalle|con detalle)\b",
)
_LENGTHS: Final = {
    **dict.fromkeys(
        [
            "short",
            "shorter",
            "brief",
            "concise",
            "cortas",
            "breves",
            "concisas",
            "cortos",
            "shortly",
            "briefly",
            "concisely",
            "breve",
            "corto",
            "brevemente",
        ],
        "short",
    ),
    **dict.fromkeys(
        ("long", "longer", "detailed", "detalladas", "largas", "largos", "in detail", "en detalle", "con detalle"),
        "long",
    ),
}
_FORMAL: Final = _rule(
    r"(?:siempre )?(?:por favor )?(?:hablame|tratame|hableme|trateme|dirigete a mi|respondeme|contestame)(?: "
    r"siempre)? (?:de|con) (usted|tu|vos)" + _CLAUSE_ENDS,
    r"(?:prefiero|quiero|me gusta)(?: siempre)? que me (?:hables|trates|hable|trate) (?:de|con) (usted|tu|vos)"
    + _CLAUSE_ENDS,
    r"(no me (?:tutees|tutee|hables de tu|trates de tu))\b",
    r"(tuteame|puedes tutearme|me puedes tutear|prefiero que me tutees|no me (?:hables|trates) de usted)\b",
    r"(?:always |from now on,? |please )*(?:be|speak|talk|write)(?: to me| with me)? (?:more )?(formally|informally|"
    r"formal|informal)(?: with me| to me)?\b",
)
_ADDRESS: Final = {
    **dict.fromkeys(
        ("usted", "no me tutees", "no me tutee", "no me hables de tu", "no me trates de tu", "formally"), "formal"
    ),
    **dict.fromkeys(
        ("tu", "vos", "tuteame", "puedes tutearme", "me puedes tutear", "prefiero que me tutees", "informally"),
        "informal",
    ),
    **dict.fromkeys(("no me hables de usted", "no me trates de usted"), "informal"),
}
_EMOJIS: Final = _rule(
    r"(no|without|i (?:don'?t|do not) (?:want|like)|(?:please )?(?:don'?t|do not|never|stop) (?:use|send|using|"
    r"sending|put)|avoid|i hate)(?: any| the| your| those)? (?:emojis?|emoticons?|smileys?)\b",
    r"(sin|no (?:uses|pongas|mandes|envies|quiero|me gustan)|nada de|nunca uses|deja de usar|evita|odio)(?: los| "
    r"mas| tantos)? (?:emojis?|emoticonos?|caritas)\b",
    r"(i (?:like|love|want)|(?:always |please |you can )*use|me gustan|quiero|usa(?: siempre)?|puedes usar)(?: "
    r"los)? (?:emojis?|emoticonos?)\b",
)
_FORMATS: Final = _rule(
    r"(?:i (?:always )?prefer|(?:always |from now on,? )+(?:use|answer with|answer in|reply in))(?: answers (?:as|"
    r"in|with))? (bullet points|lists|plain text|prose)\b",
    r"(?:prefiero|(?:siempre )+(?:usa|responde(?:me)? (?:en|con)))(?: las respuestas (?:en|con))? (listas|vinetas|"
    r"texto plano|texto simple)\b",
    r"(no markdown|(?:please )?(?:don'?t|do not|never) use markdown|sin markdown|no uses markdown)\b",
)
_FORMAT: Final = {
    **dict.fromkeys(("bullet points", "lists", "listas", "vinetas"), "lists"),
    **dict.fromkeys(("plain text", "prose", "texto plano", "texto simple"), "plain"),
}
_DIET: Final = _rule(
    rf"i(?:'m| am) (?:now )?(?:an? )?(vegetarian|vegan|celiac|coeliac){_CLAUSE_ENDS}",
    rf"(?:yo )?(?:ahora )?soy (vegetarian|vegan|celiac)[oa]{_CLAUSE_ENDS}",
)
_CHOICES: Final[tuple[tuple[str, Any, Mapping[str, str], str], ...]] = (
    ("language", _LANGUAGE, _LANGUAGES, ""),
    ("answer.length", _LENGTH, _LENGTHS, ""),
    ("answer.address", _FORMAL, _ADDRESS, ""),
    ("answer.emojis", _EMOJIS, {}, "no"),
    ("answer.format", _FORMATS, _FORMAT, "plain"),
    ("diet", _DIET, {"coeliac": "celiac"}, ""),
)
"""What is one of a few values: the expression, the value of each word, and the value of any other words."""
_WANTS_EMOJIS: Final = re2.compile(
    r"^(?:i (?:like|love|want)|(?:always |please |you can )*use|me gustan|quiero|usa|puedes usar)"
)
_STABLE_ATTRIBUTES: Final = frozenset({"name", "name.preferred", "timezone", "birthday"})
_ENDED: Final = tuple(
    (attributes, _rule(*patterns))
    for attributes, patterns in (
        (
            ("city",),
            (
                r"(?:i|we) (?:don'?t|do not|no longer) live(?: any ?more)? in (.+)",
                r"i(?:'m| am) (?:not|no longer) living in (.+)",
                r"i(?:'ve| have)?(?: just)? (?:moved (?:away |out )?(?:from|of)|stopped living in) (.+)",
                r"(?:yo )?(?:ya )?no (?:vivo|vivimos|estoy viviendo)(?: ya| mas)? en (.+)",
                r"(?:deje de vivir en|me mude de) (.+)",
            ),
        ),
        (
            ("employer",),
            (
                r"i (?:don'?t|do not|no longer) work(?: any ?more)? (?:at|for) (.+)",
                r"i(?:'m| am) (?:not|no longer) (?:working|employed) (?:at|for|by) (.+)",
                r"i(?:'ve| have)?(?: just)? (?:quit|resigned from|stopped working (?:at|for)) (.+)",
                r"(?:yo )?(?:ya )?no trabajo(?: ya| mas)? (?:en|para) (.+)",
                r"(?:deje de trabajar (?:en|para)|renuncie a|me despidieron de) (.+)",
                r"(?:i (?:don'?t|do not|no longer) work any ?more|i no longer work|ya no trabajo)()$",
            ),
        ),
        (
            ("occupation",),
            (
                r"i (?:don'?t|do not|no longer) work(?: any ?more)? as (.+)",
                r"i(?:'m| am) (?:not|no longer) working as (.+)",
                r"i(?:'ve| have)?(?: just)? (?:quit|stopped) working as (.+)",
                r"(?:yo )?(?:ya )?no trabajo(?: ya| mas)? (?:de|como) (.+)",
                r"deje de trabajar (?:de|como) (.+)",
            ),
        ),
        (
            ("city", "employer"),
            (
                r"i(?:'ve| have)?(?: just)? left (.+)",
                r"(?:yo )?(?:ya )?(?:me fui de|me he ido de|me marche de|deje|he dejado) (.+)",
            ),
        ),
        (
            ("name.preferred",),
            (
                r"(?:don'?t|do not|never)(?: you)?(?: ever)? call me (.+)",
                r"stop calling me (.+)",
                r"(?:ya )?(?:no|nunca) me (?:llames|digas|llame|diga)(?: mas| ya)? (.+)",
                r"deja de (?:llamarme|decirme) (.+)",
            ),
        ),
        (
            ("name",),
            (
                r"my name (?:is(?: not| no longer)|isn'?t|was never)(?: really| actually)? (.+)",
                r"i(?:'m| am) (?:not|no longer) called (.+)",
                r"(?:yo )?(?:ya )?no me llamo (.+)",
                r"mi nombre (?:ya )?no es (.+)",
            ),
        ),
        (
            ("birthday",),
            (
                r"my birthday (?:is not|isn'?t)(?: on)? (.+)",
                r"mi cumpleanos (?:ya )?no es(?: el)? (.+)",
                r"no cumplo (?:anos )?el (.+)",
            ),
        ),
        (
            ("timezone",),
            (
                r"my time ?zone (?:is (?:not|no longer)|isn'?t) (.+)",
                r"mi (?:zona horaria|huso horario) (?:ya )?no es (.+)",
            ),
        ),
        (
            ("diet",),
            (
                r"i(?:'m| am) (?:not(?: an?)?|no longer(?: an?)?) ((?:vegetarian|vegan|celiac|coeliac))\b.*",
                r"(?:yo )?(?:ya )?no soy ((?:vegetarian|vegan|celiac))[oa]\b.*",
            ),
        ),
        (
            ("language",),
            (
                (
                    r"(?:don'?t|do not|never|stop) (?:answer(?:ing)?|reply(?:ing)?|speak(?:ing)?|writ(?:e|ing)|"
                    r"talk(?:ing)?)(?: to)?(?: me)? in (english|spanish)\b.*"
                ),
                r"(?:ya )?no me (?:hables|respondas|contestes|escribas)(?: mas)? en (ingles|espanol|castellano)\b.*",
            ),
        ),
        (
            ("answer.length",),
            (
                (
                    r"i (?:don'?t|do not|no longer) (?:want|like|prefer|need) (short|brief|concise|long|detailed) "
                    r"(?:answers|replies|responses|messages)\b.*"
                ),
                (
                    r"(?:ya )?no (?:quiero|prefiero|me gustan)(?: las)? (?:respuestas|contestaciones|mensajes) (cortas|"
                    r"breves|concisas|cortos|largas|detalladas|largos)\b.*"
                ),
            ),
        ),
    )
)
"""How people say that what an attribute holds is over, or never was."""
_NO_FAVOURITE: Final = (
    _rule(r"my favou?rite (\w{1,40}) (?:is (?:not|no longer)|isn'?t) (?:the |an? )?(.+)"),
    _rule(r"mi (\w{1,40}) (?:favorit|preferid)[oa] (?:ya )?no es (?:el |la |un |una )?(.+)"),
)
_INSTEAD: Final = re2.compile(
    r"^(.+?),?\s+(?:but(?: in| at| for)?|but rather|it'?s(?: now)?(?: the)?|(?:ahora )?es(?: el| la)?|sino(?: "
    r"que)?(?: vivo| trabajo| me llamo)?(?: en| para| "
    r"el)?)\s+(.+)$"
)
_INSTEAD_WORK: Final = re2.compile(
    r"^(.+?),?\s+(?:(?:but|and|y|e|sino que)\s+)?"
    r"(?:but|sino|(?:i(?:'m| am)|i work as)(?: now)?|(?:ahora )?(?:soy|trabajo (?:de|como)))(?: ahora)?\s+(.+)$"
)
_ARTICLE: Final = re2.compile(r"^(?:an?|the|una?|el|la)\s+")
"""What holds in place of what is denied: not Bob but Rob."""
_OVER: Final = re2.compile(
    r"(?:\s+(?:any ?more|any ?longer|now|ya|mas|nunca mas|at all|again|please|por favor|really))+$"
)
_THAT: Final = frozenset(
    {"that", "this", "so", "it", "asi", "eso", "de esa forma", "that name", "there", "alli", "ahi"}
)
"""Values that name nothing: whatever the attribute holds."""
_MOST_CLAUSES: Final = 20
_LONGEST_CLAUSE: Final = 300
"""Clauses of a sentence that are read by themselves, and their characters: more is no statement and takes long."""
_JOINT: Final = re2.compile(r",\s*(?:(?:and|but|y|e|pero|sino que)\s+)?|\s+(?:and|but|y|e|pero|sino que)\s+")


def _word_lists() -> dict[str, frozenset[str]]:
    """Return the lists of value_words.txt by name."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in (files("phylactery_memory.memories") / "value_words.txt").read_text(encoding="utf-8").splitlines():
        said = line.partition("#")[0]
        head, colon, rest = said.partition(":")
        name = head if colon else name
        found.setdefault(name, set()).update((rest if colon else said).split())
    return {name: frozenset(words) for name, words in found.items()}


_NEVER_MEANT: Final = re2.compile(
    r"\b(?:if|unless|suppose|imagine|pretend|whether|as if|when i|si|a menos que|ojala|imagina|imaginate|supon|"
    r"suponte|como si|finge|"
    r"said|says|told me|wrote|sings?|sang|according to|dijo|dice|dicen|decia|escribio|segun|canta|cantaba|"
    r"almost|nearly|basically|practically|sort of|kind of|casi|practicamente|mas o menos|"
    r"maybe|perhaps|quizas?|tal vez|a lo mejor|creo que|i think|i guess|supongo|probably|probablemente|like a|como "
    r"un)\b"
)
"""Marks of a condition, a report, a comparison or a guess: what a sentence with one says is not stated."""
_JOKE: Final = re2.compile(
    r"\b(?:l+o+l+|rofl|lmao|(?:ha){2,}h?|(?:ja){2,}j?|(?:je){2,}j?|kidding|joking|joke|jk|broma|bromeo|bromita|chiste|"
    r"(?:es|era) mentira|que va|not really|sarcasm|sarcasmo)\b|"
    r"[\x{1F600}-\x{1F606}\x{1F609}\x{1F61B}-\x{1F61D}\x{1F923}"
    r"\x{1F643}]|\bnot!+$|/s$"
)
"""Marks of a joke, which are about the whole of a text."""
_MOMENTARY: Final = re2.compile(
    r"\b(?:this (?:one|question|message|answer|reply|time|once)|just (?:now|once)|right now|here|est[aeo] "
    r"(?:pregunta|mensaje|"
    r"respuesta|vez|una|ultima)|esta|esto|est[eo]s?|ahora mismo|por esta vez|una vez|aqui|once)\b"
)
"""Words by which a wish about an answer is about one answer."""
_PLACES: Final = frozenset({"city", "employer"})
_YES: Final = re2.compile(r"^[\s¡]*(?:si|yes|yeah|yep|claro)\s*[,.!]")
_MOST_NAME_WORDS: Final = 5
_MOST_LOWER_WORDS: Final = 2
_MOST_VALUE_WORDS: Final = 6
_LISTS: Final = _word_lists()
_PARTICLES: Final = _LISTS["particles"]
_NO_NAMES: Final = _LISTS["no names"]
_NO_PLACES: Final = _LISTS["no places"]
_NO_WORK: Final = _LISTS["no work"]
_MONTHS: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|"
    r"dec(?:ember)?|enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre)"
)
_DAY: Final = re2.compile(
    rf"^(?:(?:the )?(?:\d{{1,2}}|primero)(?:st|nd|rd|th)?(?: of| de)? {_MONTHS}(?:,?(?: de| del)? \d{{4}})?"
    rf"|{_MONTHS} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    r"|\d{1,2}[/.-]\d{1,2}(?:[/.-]\d{2,4})?|\d{4}-\d{2}-\d{2})$"
)
_ZONE: Final = re2.compile(
    r"^(?:[A-Z][A-Za-z_]+(?:/[A-Za-z_+-]+){1,2}|(?:UTC|GMT)(?:\s?[+-]\d{1,2}(?::\d{2})?)?|[A-Z]{2,4}T)$"
)


def _same(one: str, other: str) -> bool:
    """Return True if two values are one, whatever their case and accents."""
    return plain(one).strip() == plain(other).strip()


def _is_name(value: str, sentence: str, *, capital: bool) -> bool:
    """Return True if a value is a person's name: capitals and particles; two words without unless ``capital``."""
    parts = value.split()
    plainly = [plain(part).strip(".'") for part in parts]
    if not parts or len(parts) > _MOST_NAME_WORDS or any(c.isdigit() for c in value) or plainly[0] in _NO_NAMES:
        return False
    if not all(part.replace("-", "").replace("'", "").replace("’", "").replace(".", "").isalpha() for part in parts):
        return False
    if any(word in _NO_NAMES and word not in _PARTICLES for word in plainly):
        return False
    if parts[0][0].isupper():
        shouted = sentence.isupper() and len(parts) > 1
        return not shouted and all(
            part[0].isupper() or word in _PARTICLES for part, word in zip(parts, plainly, strict=True)
        )
    return not capital and len(parts) <= _MOST_LOWER_WORDS and not any(word in STOP_WORDS for word in plainly)


def _leading_name(value: str) -> str:
    """Return the capitals a value begins with, with the particles between them: Berlin, of "Berlin last year"."""
    parts = value.split()
    if not parts or not parts[0][0].isupper():
        return value
    named = [at for at, part in enumerate(parts) if part[0].isupper()]
    last = 0
    for at in named:
        if all(plain(part) in _PARTICLES for part in parts[last + 1 : at]):
            last = at
    return " ".join(parts[: last + 1])


def _is_place(value: str, sentence: str) -> bool:
    parts = value.split()
    plainly = [plain(part) for part in parts]
    if (
        not parts
        or len(parts) > _MOST_NAME_WORDS
        or any(c.isdigit() for c in value)
        or _NO_PLACES.intersection(plainly)
    ):
        return False
    if value[0].isupper():
        return not sentence.isupper()
    return len(parts) <= _MOST_LOWER_WORDS and not any(word in STOP_WORDS for word in plainly)


@cache
def _zone_cities() -> frozenset[str]:
    """Return the cities that time zones are named after."""
    return frozenset(plain(name.rpartition("/")[2]) for name in available_timezones() if "/" in name)


def _is_of_its_kind(attribute: str, value: str, sentence: str) -> bool:
    """Return True if a value is what its attribute holds: a name, a place, a date, a zone."""
    match attribute:
        case "name" | "name.preferred":
            return _is_name(value, sentence, capital=attribute != "name")
        case "city":
            return _is_place(value, sentence)
        case "employer":
            return value[:1].isupper() and not sentence.isupper() and not _NO_PLACES.intersection(plain(value).split())
        case "birthday":
            return _DAY.match(plain(value)) is not None
        case "timezone":
            named = value[:1].isupper() or plain(value).replace(" ", "_") in _zone_cities()
            return _ZONE.match(value) is not None or (named and _is_place(value, sentence))
        case _:  # a favourite, or what somebody works as
            words = plain(value).split()
            never = _NO_WORK if attribute == "occupation" else ()
            begins = value[:1].isupper() or words[0] not in STOP_WORDS
            plainly = begins and len(words) <= _MOST_VALUE_WORDS and words[0] not in _NO_NAMES and not negated(value)
            return plainly and not any(word in never for word in words)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, with their end marks."""
    return (found.strip() for found in _BREAK.findall(text) if found.strip())


def is_joke(text: str) -> bool:
    """Return True if a text says that it is not meant."""
    return _JOKE.search(plain(text)) is not None


def statements(text: str) -> list[str]:
    """Return the parts of a text that are kept apart, so that what one of them says can end without the others.

    "Me llamo Ana y vivo en Lima" makes two. A text that sets no attribute is one part. A question or an order beside
    what is stated is no part of it: it is answered or done, and says nothing that lasts.
    """
    parts: list[str] = []
    alone = False  # the last part sets an attribute, so that no further sentence joins it
    asks = False
    for sentence in sentences(text):
        start = 0
        cuts, said = _cuts(sentence), read(sentence)
        if not cuts and (said.question or said.command):
            asks = True
            continue
        if cuts and said.slot is not None and not said.slot.ends and not any(map(_sets, _pieces(sentence, cuts))):
            cuts = []  # only together do they say what holds instead: no trabajo de enfermera, soy profesora
        for stop, following in (*cuts, (len(sentence), len(sentence))):
            part = sentence[start:stop].strip()
            said = read(part)
            if said.small_talk:
                start = following
                continue
            sets = said.slot is not None
            if parts and start == 0 and not sets and not alone:
                parts[-1] = f"{parts[-1]} {part}"
            else:
                parts.append(part)
            start, alone = following, sets
    apart = asks or any(read(part).slot is not None for part in parts)
    return parts if apart and len(parts) > (not asks) and not is_joke(text) else [text]


def _cuts(sentence: str) -> list[tuple[int, int]]:
    """Return where a clause ends and the next begins, if both state something: not in "my wife and I live"."""
    found, begins = [], 0
    for joint in islice(_JOINT.finditer(sentence.lower()), _MOST_CLAUSES):
        quoted = sum(sentence[: joint.start()].count(mark) for mark in '"«»“”') % 2
        if quoted or not _states(sentence[joint.end() :][:_LONGEST_CLAUSE]):
            continue
        before = sentence[begins : joint.start()][-_LONGEST_CLAUSE:]
        if _states(before) or read(before).small_talk:
            found.append((joint.start(), joint.end()))
            begins = joint.end()
    return found


def _pieces(sentence: str, cuts: list[tuple[int, int]]) -> list[str]:
    starts, stops = [0, *(following for _, following in cuts)], [*(stop for stop, _ in cuts), len(sentence)]
    return [sentence[start:stop] for start, stop in zip(starts, stops, strict=True)]


def _sets(clause: str) -> bool:
    slot = read(clause).slot
    return slot is not None and not slot.ends


def _states(clause: str) -> bool:
    said = read(clause)
    return said.slot is not None or said.fact or said.preference


def read(sentence: str) -> Reading:
    """Return the classification of a sentence."""
    lowered = plain(sentence).strip()
    body = lowered.strip(" .!?¿¡;,")
    words = [word.strip(",.:'\"") for word in body.split()]
    if not body or all(word in _SMALL_WORDS for word in words if any(c.isalnum() for c in word)):
        return Reading(small_talk=True)
    asks = bool(_REMEMBER.search(body))
    question = lowered.endswith("?") or bool(_QUESTION.search(body))
    slot, stable_slot = (
        (None, False) if question or _NEVER_MEANT.search(_YES.sub("", lowered)) else _slot(sentence, body)
    )
    if not asks and question:
        return Reading(question=True)
    momentary = slot is not None and slot.attribute.startswith(_WISHES) and bool(_MOMENTARY.search(body))
    preference = bool(_PREFERENCE.search(body)) or (stable_slot and slot is not None and not slot.ends)
    if not asks and not preference and slot is None and _COMMAND.search(body):
        return Reading(command=True)
    return Reading(
        fact=bool(_FACT.search(body)) or slot is not None,
        preference=preference,
        stable=preference and (stable_slot or bool(_ALWAYS.search(body))),
        temporary=momentary or bool(_TEMPORARY.search(body) or _TOMORROW.search(_MORNING.sub("", body))),
        asks_to_remember=asks,
        slot=slot,
    )


_WISHES: Final = ("answer.", "language")
"""How the attributes begin that say how to answer."""


def slot_in(text: str, attribute: str) -> Slot | None:
    """Return what a text says of an attribute, None if it says nothing of it."""
    read_slots = (read(part).slot for part in statements(text))
    return next((slot for slot in read_slots if slot is not None and slot.attribute == attribute), None)


def _slot(sentence: str, body: str) -> tuple[Slot | None, bool]:
    """Return the attribute a sentence sets or ends, and True if it is permanent, as a preference is.

    What holds now goes before what is over: "ya no vivo en Lima, ahora vivo en Cusco".
    """
    ended: Slot | None = None
    joints = islice(_JOINT.finditer(body), _MOST_CLAUSES)
    for clause in (body, *(body[joint.end() :][:_LONGEST_CLAUSE] for joint in joints)):
        slot, stable = _slot_at(sentence, clause)
        if slot is not None and not slot.ends:
            return slot, stable
        ended = ended or slot
    return ended, False


def _slot_at(sentence: str, body: str) -> tuple[Slot | None, bool]:
    if ended := _ended(sentence, body):
        return ended, not ended.ends and (
            ended.attribute in _STABLE_ATTRIBUTES or ended.attribute.startswith("favorite.")
        )
    for attribute, pattern, values, other in _CHOICES:
        if found := pattern.search(body):
            chosen = next(group for group in found.groups() if group)
            value = "yes" if attribute == "answer.emojis" and _WANTS_EMOJIS.search(chosen) else other
            return Slot(attribute, values.get(chosen, value or chosen)), True
    for pattern in _FAVOURITE:
        if found := pattern.search(body):
            thing, said = found.groups()
            value = _as_written(sentence, said)
            attribute = f"favorite.{thing}"
            return (
                (Slot(attribute, value), True)
                if value and _is_of_its_kind(attribute, value, sentence)
                else (None, False)
            )
    for attribute, pattern in _SLOTS:
        if found := pattern.search(body):
            said = _OVER.sub("", next(group for group in found.groups() if group))
            value = _as_written(sentence, _ARTICLE.sub("", said) if attribute == "occupation" else said)
            value = _leading_name(value) if attribute in _PLACES else value
            if value and _is_of_its_kind(attribute, value, sentence):
                return Slot(attribute, value), attribute in _STABLE_ATTRIBUTES
    return None, False


def _ended(sentence: str, body: str) -> Slot | None:
    """Return the attribute that a sentence ends; where it says what holds instead, that it sets it."""
    for attributes, pattern in _ENDED:
        if found := pattern.search(body):
            said = next((group for group in found.groups() if group), "")
            work = attributes == ("occupation",)
            if (instead := (_INSTEAD_WORK if work else _INSTEAD).search(said)) and len(attributes) == 1:
                said_now = _OVER.sub("", instead.groups()[1])
                value = _as_written(sentence, _ARTICLE.sub("", said_now) if work else said_now)
                if value and _is_of_its_kind(attributes[0], value, sentence):
                    return Slot(attributes[0], value)
            value = _OVER.sub("", _ENDS_VALUE.sub("", said)).strip(" '\"")
            value = _ARTICLE.sub("", value) if work else value
            value = "" if value in _THAT else _LENGTHS.get(value, _LANGUAGES.get(value, value))
            return Slot(" ".join(attributes), value, ends=True)
    for pattern in _NO_FAVOURITE:
        if found := pattern.search(body):
            thing, said = found.groups()
            attribute = f"favorite.{thing}"
            if instead := _INSTEAD.search(said):
                value = _as_written(sentence, _OVER.sub("", instead.groups()[1]))
                if value and _is_of_its_kind(attribute, value, sentence):
                    return Slot(attribute, value)
            return Slot(attribute, _OVER.sub("", _ENDS_VALUE.sub("", said)).strip(" '\""), ends=True)
    return None


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
