"""Replies to words that no tool handles: a yes without a question, small talk, statements, impossible requests."""

from __future__ import annotations

from typing import Final

from phylactery_understanding.language.text import Kind
from phylactery_understanding.language.times import times_of
from phylactery_understanding.replies.amendment import corrects
from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.retraction import read_retraction
from phylactery_understanding.replies.stops import read_stop
from phylactery_understanding.requests.parser import parse

from phylactery_agent.rules import doubts
from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.intents import is_answer_command
from phylactery_agent.rules.spelling import chat_expression, unaccented
from phylactery_agent.rules.wording import without_lead

CANNOT: Final = "cannot_files"
"""The text about file operations that no tool supports."""
_LONGEST: Final = 300
_PAUSES: Final = frozenset(",.;!¡…")
_FILE: Final = r"(?:\beverything\b|\btodo\b|\bfiles?\b|\bficheros?\b|\barchivos?\b|[\w-]+\.\w{1,8}\b)"
_CANNOT: Final = chat_expression(
    r"(?i)^[¿¡\s]*(?:please\s+|por\s+favor,?\s+|(?:can|could)\s+you\s+|(?:me\s+)?(?:puedes|podr[ií]as)\s+|(?:and|y)\s+)*"
    r"(?:(?:merge|join|combine|junta|une|combina|fusiona)(?:r|lo|los|me)?\s+(?:the\s+two|both|them|los|las|estos|todos)\b.*$|"
    r"(?:(?:now|ahora)\s+)?"
    r"(?:delete|remove|erase|rename|move|copy|duplicate|make\s+a\s+copy|empty|clear|take"
    r"|change|replace|substitute|edit|cambia|cambiar|reemplaza|reemplazar|sustituye|sustituir"
    r"|(?:elimina|borra|renombra|copia|duplica|vacia|saca|quita)(?:r|me|lo|la)?|mueve(?:lo|la|me)?|mover|haz(?:me)?\s+una\s+copia"
    r"|hacer\s+una\s+copia|(?:cambia(?:r|le|rle)?|ponle)\s+(?:el\s+|otro\s+)?nombre)\b.*" + _FILE + ")"
)
_TOLD: Final = expression(
    r"(?i)^[¡\s]*(?:my\s+(?:\w+\s+)?(?:(?:name|birthday|dog|cat|job)(?:\s+is|['’]?s)|names)\s|i['’]?m\s+called\s|call\s+me\s"
    r"|i\s+(?:like|love|prefer|hate|live\s+in|work\s+(?:at|in|for|as))\s"
    r"|me\s+llamo\s|mi\s+nombre\s+es\s|ll[aá]mame\s|vivo\s+en\s|trabajo\s+(?:en|de|para)\s|prefiero\s"
    r"|(?:no\s+)?me\s+(?:gusta|gustan|encanta|encantan)\s)[^?]+$"
)
_INTERJECTION: Final = expression(
    r"(?i)^(?:(?:cool|nice|great|ok|okay|hi|hello|hey|well|so|oh|and|btw|by\s+the\s+way|hola|vale|bueno|genial|pues|y|por\s+cierto)"
    r"[\s,.!]+)+"
)
_BY_THE_WAY: Final = expression(r"(?i)[\s,]+(?:by\s+the\s+way|btw|por\s+cierto)$")
_FORGET: Final = chat_expression(
    r"(?i)^[¡\s]*(?:please\s+|por\s+favor,?\s+)?(?:forget\s+(?:my|about\s+my|everything|all|wh(?:at|ere|en|o)\s|how\s+old|that\s+I\s)"
    r"|(?:olvida(?:te)?|borra)\s+(?:de\s+)?(?:mi\s|mis\s|todo\s+lo\s+que|lo\s+que\s|que\s+(?:me|vivo|soy|tengo|trabajo|naci)|(?:a\s+)?(?:donde|quien|cuando|como)\s))"
)
_BEYOND: Final = chat_expression(
    r"(?i)^(?:.*\s)?[¿¡]*(?:weather|forecast|rain(?:ing)?|snow(?:ing)?|joke|jokes|news|song|recipe|translate|play\s+music"
    r"|(?:el\s+)?tiempo\s+(?:en|hace|hara|va)|tiempo\s+hace|clima|pronostico|llueve|llover|llovera|chistes?|noticias"
    r"|pizza|flight|flights|taxi|uber|hotel|restaurant|whatsapp|telegram|sms|vuelos?|hoteles|restaurante"
    r"|(?:order|buy|book|reserve)\s+(?:me|us|a|an|some|the|two|tickets?)"
    r"|(?:pide|pideme|pedir|pedirme|compra|comprame|comprar|comprarme|reserva|reservame|reservar|encarga|encargame)\s+(?:un|una|unos|unas|el|la|mesa|dos)"
    r"|(?:call|phone|ring|text)\s+(?:me|my|a|the|him|her)|(?:llama|llamame|llamar)\s+(?:a|al|un)"
    r"|turn\s+(?:on|off)|(?:enciende|encender|apaga|apagar)|(?:pon|ponme|reproduce)\s+musica"
    r"|canta(?:me)?|cancion|receta|traduce(?:me)?|traducir"
    r"|(?:cuanto\s+(?:es|son)|what(?:['’]?s|\s+is)|how\s+much\s+is)\s+[0-9].*|(?:cuanto|cuantos\s+dias)\s+(?:falta|queda)n?\s.*)"
    r"(?:[\s?!.,].*)?$"
)
"""What people ask every assistant for and no tool here does."""
_PROGRAM: Final = expression(
    r"(?i)^[¿¡\s]*(?:(?:and|y)\s+)?(?:what(?:['’]?s|\s+is)\s+your\s+name|(?:t[uú]\s+|vos\s+)?c[oó]mo\s+te\s+llam(?:as|[aá]s)(?:\s+(?:t[uú]|vos))?"
    r"|cu[aá]l\s+es\s+tu\s+nombre|are\s+you\s+(?:an?\s+)?(?:real|robot|bot|human|person|machine|program|ai)(?:\s+person)?"
    r"|(?:t[uú]\s+|vos\s+)?(?:eres|sos)\s+(?:una?\s+)?(?:persona|robot|bot|humano|humana|m[aá]quina|programa|ia|real)"
    r"(?:\s+(?:real|de\s+verdad))?)[\s.!?]*$"
)
_DROPPED: Final = expression(
    r"(?i)^[¡\s]*(?:(?:no,?\s+)?d[eé]jalo(?:\s+(?:estar|as[ií]))?|olv[ií]dalo|never\s*mind|nvm|forget\s+(?:it|that|about\s+it)"
    r"|da\s+igual|no\s+importa|leave\s+it|para|basta)(?:[\s,.;]+(?:da\s+igual|no\s+importa|d[eé]jalo|olv[ií]dalo|forget\s+(?:it|that)"
    r"|never\s*mind|leave\s+it|thanks?|gracias))*[\s.!]*$"
)


_KEEPS: Final = chat_expression(
    r"(?i)^[¡\s]*(?:(?:no|wait|please|ok|okay|espera|por\s+favor|vale),?\s+)*"
    r"(?:(?:do\s+not|don['’]?t|never)\s+(?:ever\s+)?(?:undo|revert|(?:roll|take)(?:\s+(?:it|that|this|them))?\s+back)"
    r"(?:\s+(?:it|that|this|them|anything|any\s+of\s+(?:it|that|them)|(?:the|my|your)\s+(?:last\s+)?changes?))?(?:\s+back)?"
    r"|(?:no|nunca|ni)\s+(?:me\s+)?(?:lo|la|los|las)?\s*(?:deshagas|deshaga|deshagan|deshagais|reviertas|revierta|anules|anule)"
    r"(?:\s+(?:nada|eso|esto|(?:de\s+)?todo|(?:el|los|mi|mis)\s+(?:ultimos?\s+)?cambios?))?)"
    r"(?:[\s,.!]+(?:please|por\s+favor|thanks|gracias|ok))*[\s.!]*$"
)
"""Words by which what was done is to stay."""
_ASK_BEFORE: Final = chat_expression(
    r"(?i)^[¡\s]*(?:(?:please|from\s+now\s+on|in\s+(?:the\s+)?future|always|remember\s+(?:to|that\s+you)|(?:do\s+not|don['’]?t)\s+forget\s+to"
    r"|make\s+sure\s+(?:to|you|that\s+you)|you\s+(?:must|should|have\s+to|need\s+to)|(?:i|we)(?:['’]?d|\s+would)?\s+(?:want|like|need|prefer)\s+you\s+to"
    r"|por\s+favor|a\s+partir\s+de\s+ahora|desde\s+ahora|de\s+ahora\s+en\s+adelante|siempre|recuerda|acuerdate\s+de|no\s+(?:te\s+)?olvides(?:\s+de)?"
    r"|asegurate\s+de|(?:tienes\s+que|debes|has\s+de)|(?:quiero|quisiera|necesito|prefiero|me\s+gustaria)\s+que),?\s+)*"
    r"(?:(?:ask|(?:tell|warn|consult|ask)\s+me|(?:check|confirm)(?:\s+it)?\s+with\s+me|(?:ask|get)(?:\s+me)?\s+(?:for\s+)?(?:my\s+)?"
    r"(?:ok|okay|permission|approval|confirmation))"
    r"(?:\s+(?:first|always))*\s+before\s+(?:you\s+\w+|(?:any|every|each)\s+change|"
    r"(?:chang|touch|modify|writ|delet|edit|sav|mov|send|mak|creat|do|remov|overwrit)\w*ing)\b.*"
    r"|ask\s+(?:me\s+)?first"
    r"|(?:do\s+not|don['’]?t|never|you\s+(?:may|must|should)\s+(?:not|never))\s+\w+\s+.*\bwithout\s+"
    r"(?:asking(?:\s+me)?|checking\s+with\s+me|telling\s+me|(?:my\s+)?(?:ok|okay|permission|approval|confirmation))(?:\s+first)?"
    r"|(?:preguntar?(?:me)?|(?:avisa|consulta)r?me|consultar?\s+conmigo|confirmar?(?:lo)?\s+conmigo|(?:pide|pedir)(?:me)?\s+permiso"
    r"|me\s+(?:preguntes|avises|consultes|pidas\s+permiso)|pidas\s+permiso)(?:\s+(?:siempre|primero))*\s+antes\s+de\s+(?:que\s+)?"
    r"(?:cada\s+cambio|(?:cambi|toc|toqu|modifi|escrib|borr|guard|hac|hag|mov|muev|envi|mand|edit|cre|sobrescrib|elimin)\w*)\b.*"
    r"|pregunta(?:me)?\s+(?:primero|antes)"
    r"|(?:no|nunca|jamas)\s+\w+\s+.*\bsin\s+(?:(?:preguntar|consultar|avisar)(?:me)?|(?:mi\s+)?permiso|pedir(?:me)?\s+permiso)"
    r"(?:\s+(?:antes|primero))?)[\s.!]*$"
)
"""A wish to be asked before changes. No such wish is kept: what happens anyway is told."""


_RETRY: Final = chat_expression(
    r"(?i)^[¡\s]*(?:(?:no|well|ok|okay|please|can\s+you|could\s+you|you\s+can|bueno|vale|venga|puedes|por\s+favor)[\s,]+)*"
    r"(?:(?:re)?try(?:\s+(?:it|that))?(?:\s+(?:again|once\s+more|one\s+more\s+time|another\s+time))?"
    r"|give\s+it\s+another\s+(?:try|go)|ask(?:\s+me)?(?:\s+(?:it|that))?\s+(?:again|once\s+more)"
    r"|(?:intentalo|intenta|prueba|pruebalo|reintenta|reintentalo|pregunta|preguntame|preguntamelo|preguntalo)"
    r"(?:\s+(?:otra\s+vez|de\s+nuevo|una\s+vez\s+mas|nuevamente))?|vuelve\s+a\s+(?:intentar|probar|preguntar)(?:lo|me|melo)?"
    r"|reintentar|otro\s+intento)(?:[\s,]+(?:please|por\s+favor|porfa|thanks|gracias|now|ahora))*[\s.!]*$"
)
"""A wish to try once more. What was done or refused is asked for again in words that say so: again."""


_ABOUT_CARD: Final = chat_expression(
    r"(?i)^[¿¡\s]*(?:(?:wait|but|and|ok|okay|sorry|espera|pero|y|perdon),?\s+)*"
    r"(?:why\s+(?:(?:do|are|did|would)\s+you\s+(?:ask|need|want)(?:ing)?(?:\s+(?:me|that|this|it|for\s+(?:my\s+)?permission|my\s+(?:yes|ok|okay|approval)))*"
    r"|(?:do|should|must)\s+I\s+(?:have\s+to\s+|need\s+to\s+)?(?:confirm|approve|answer|say\s+yes)(?:\s+(?:this|that|it))?)"
    r"|what\s+(?:happens|will\s+happen|(?:do|will|would)\s+you\s+do)\s+(?:if|when)\s+I\s+(?:say|answer)\s+(?:yes|no)"
    r"|what\s+(?:does|would)\s+(?:a|the|my)\s+(?:yes|no)\s+(?:do|mean)"
    r"|what\s+am\s+I\s+(?:approving|confirming|agreeing\s+to|saying\s+yes\s+to)"
    r"|(?:por|para)\s+que\s+(?:me\s+)?(?:lo\s+)?(?:preguntas|pides\s+(?:permiso|confirmacion)|quieres\s+saberlo)(?:\s+(?:esto|eso))?"
    r"|por\s+que\s+(?:tengo|he)\s+(?:que|de)\s+(?:confirmar|aprobar|responder|contestar|decir\s+que\s+si)(?:lo)?"
    r"|que\s+(?:pasa|pasara|ocurre|haces|haras)\s+si\s+(?:te\s+)?(?:digo|respondo|contesto)\s+(?:que\s+)?(?:si|no)"
    r"|que\s+hace\s+(?:un|el|mi)\s+(?:si|no)|(?:que\s+estoy\s+(?:aprobando|confirmando|aceptando)|a\s+que\s+digo\s+que\s+si))"
    r"[\s.!?]*$"
)
"""A question about the question that waits: why it is asked, and what an answer does."""
_WHY: Final = chat_expression(r"(?i)^[¿¡\s]*(?:but|and|pero|y)?\s*(?:why|how\s+come|(?:y\s+eso\s+)?por\s+que)[\s.!?]*$")


def asks_about_card(text: str) -> bool:
    """Return True if a text asks why something has to be approved, or what a yes to it does."""
    return len(text) <= _LONGEST and _ABOUT_CARD.match(unaccented(text)) is not None


def asks_only_why(text: str) -> bool:
    """Return True if a text is no more than a why, which may be about whatever was said last."""
    return len(text) <= _LONGEST and _WHY.match(unaccented(text)) is not None


def wants_retry(text: str) -> bool:
    """Return True if a text only wants another try, and says of nothing which."""
    return len(text) <= _LONGEST and _RETRY.match(unaccented(text)) is not None


def wants_asking(text: str) -> bool:
    """Return True if a text only wants to be asked before things are changed: never write without asking me."""
    return len(text) <= _LONGEST and _ASK_BEFORE.match(unaccented(text)) is not None and not _names_time(text)


def plain_reply(text: str) -> str:
    """Return the key of the reply to words that no tool handles, or an empty string if there is none."""
    if len(text) > _LONGEST:
        return ""
    answer = read_answer(text)
    found = (
        ("stays_done", _KEEPS.match(unaccented(text))),
        ("asks_anyway", wants_asking(text)),
        ("cannot_forget", _FORGET.match(unaccented(text))),
        ("say_again", wants_retry(text)),
        ("dropped", read_stop(text) != "denied" and (answer == "no" or _DROPPED.match(text) or _takes_all_back(text))),
        ("nothing_waits_at_all", answer == "yes" or is_answer_command(text)),
        ("program", _PROGRAM.match(text)),
        (CANNOT, _CANNOT.match(unaccented(without_lead(text)))),
        ("rejected", _only_forbids(text)),
        ("told_of_oneself", _TOLD.match(told_of(text)) and read_retraction(text) is None and not parse(text).asks),
    )
    return next((key for key, is_it in found if is_it), "")


def _names_time(text: str) -> bool:
    """Return True if a text says when: tell me before I leave at 8 is a reminder."""
    return bool(times_of(text).features)


def told_of(text: str) -> str:
    """Return what a text tells, without what people say before and after it: cool. my name is Laura by the way."""
    return _BY_THE_WAY.sub("", _INTERJECTION.sub("", text.strip(" .!¡")))


def is_beyond(text: str) -> bool:
    """Return True if a text asks for something that no tool does, and names no file and no address."""
    if len(text) > _LONGEST or _BEYOND.match(unaccented(text)) is None:
        return False
    return not any(one.kind in {Kind.LITERAL, Kind.QUOTE} for one in parse(text).tokens)


def _only_forbids(text: str) -> bool:
    """Return True if a text only says what is not to be done: don't write anything to notes.txt."""
    taken = read_retraction(text)
    return taken is not None and bool(taken.forbidden) and not parse(text).asks and "?" not in text


def _takes_all_back(text: str) -> bool:
    """Return True if a text only takes back what came before, and changes nothing of it: no, wait, not that."""
    taken, said = read_retraction(text), parse(text)
    if any(one.text in doubts.OTHER for one in said.tokens):
        return False  # "no, the other file" wants another thing instead
    if taken is None or not taken.everything or taken.forbidden or said.asks or corrects(said):
        return False
    return not times_of(text).features and all(one.kind is Kind.WORD or one.raw in _PAUSES for one in said.tokens)


_ASKED: Final = chat_expression(
    r"(?i)^[¿¡\s]*(?:(?:wait|espera|and|y|so|sorry|perd[oó]n),?\s+)*"
    r"(?:what\s+(?:did|was\s+it)\s+I\s+(?:just\s+|last\s+)?(?:ask|say|tell|said|asked|told|request)(?:ed)?"
    r"|what\s+was\s+the\s+last\s+thing\s+(?:that\s+)?I\s+(?:asked|said|told|requested)|qu[eé]\s+(?:fue|es|era)\s+lo\s+[uú]ltimo\s+que\s+te\s+(?:ped[ií]|dije|pregunt[eé]|he\s+\pL+)"
    r"|what\s+(?:have|had)\s+I\s+(?:just\s+)?(?:asked|said|told)|what\s+was\s+my\s+last\s+(?:request|message|question)"
    r"|qu[eé]\s+(?:es\s+lo\s+que\s+)?(?:te\s+)?(?:acab[oó]\s+de|he|hab[ií]a)\s+(?:ped|dec|dich|preguntad|pregunt)\pL*"
    r"|qu[eé]\s+(?:es\s+lo\s+que\s+)?te\s+(?:ped[ií]|dije|pregunt[eé])|cu[aá]l\s+(?:fue|era)\s+mi\s+[uú]ltim[oa]\s+\pL+)"
    r"(?:\s+(?:you|for|to|do|just|now|before|last|ti|antes|ahora|mismo|reci[eé]n|hace|un|momento|lo|[uú]ltimo))*[\s.!?]*$"
)


def asks_last_request(text: str) -> bool:
    """Return True if a text asks what the person asked for last: what did I just ask you."""
    return _ASKED.match(unaccented(text)) is not None


_TIME: Final = chat_expression(
    r"(?i)^[¿¡\s]*(?:hey,?\s+|hola,?\s+|oye,?\s+)?(?:y\s+|and\s+)?(?:what['’]?s?\s+(?:is\s+)?(?:the\s+)?(?:time|date|day)"
    r"(?:\s+is\s+(?:it|today))?|what\s+(?:time|day|date)\s+is\s+(?:it|today)|what\s+day\s+(?:is\s+)?(?:it|today)"
    r"|(?:do\s+you\s+know|(?:can|could)\s+you\s+tell\s+me)\s+(?:the\s+time|what\s+time\s+it\s+is)"
    r"|(?:me\s+(?:dices|puedes\s+decir)\s+)?(?:qu[eé]\s+hora\s+(?:es|tienes)|la\s+hora|a\s+qu[eé]\s+d[ií]a\s+estamos"
    r"|qu[eé]\s+(?:d[ií]a|fecha)\s+(?:es|es\s+hoy)|en\s+qu[eé]\s+d[ií]a\s+estamos))"
    r"(?:\s+(?:now|today|it|ahora|hoy|por\s+favor|please))*[\s.!?]*$"
)


def asks_time(text: str) -> bool:
    """Return True if a text asks only for the time or the day."""
    return _TIME.match(unaccented(text)) is not None
