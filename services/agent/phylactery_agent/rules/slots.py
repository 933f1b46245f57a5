"""What a message names that was recognised by examples: its file, its item, its time, its recipient, its topic.

The patterns find arguments by their place in a sentence they know. Here the sentence is free, so that only what is
plainly there is taken, and a name is never made up for a write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phylactery_understanding.language.text import Kind, is_file_name, tokenize

from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.spelling import chat_expression, unaccented
from phylactery_agent.rules.wording import without_lead, without_tail
from phylactery_agent.timeparse.phrases import is_time, tidy
from phylactery_agent.timeparse.vocabulary import when_expression

MOST_ITEM_WORDS: Final = 12
_SHORTEST: Final = 3
_STEM: Final = 5
_ITS_WORDS: Final = frozenset(
    {"it", "that", "this", "there", "one", "them", "eso", "ese", "esto", "ahi", "alli", "lo", "la"}
)
_NO_TOPIC: Final = frozenset(
    """
    a about abre acordas acuerdas again ahi al alarm alarma algo algun alguna all already also an and anote
    anula any anymore anything apunte aqui archivo archivos are at avises aviso be been borra bueno busca
    buscame buscar but can cancel cancela como con cosa cosas could cual cuales cuando cuentame de decime del
    delete dicho did dije dime do document documento documents does doesnt don donde dont drop el elimina else
    en encuentra ensename era erase es esa escribi ese eso esta estaba estan este esto ever every everything
    falta fichero ficheros file files find for forget from fue general get give got ha habla hace had han has
    have hay he her hey hi his hola how hows i id if im in into is it ive just know la las le lee les let lets
    list lista lo longer look looking los mas may maybe me menciona mencione mention mentioned mentions mi might
    mira mis more muestra muy my necesito need no nos not nota notas note notes o of off ok okay olvida olvidate
    on one ones open or other otra our out oye para pero please podes podrias por puedas puedes puedo puesta
    puse put que quien quiero quita qué read recall recordatorio recordatorios recuerdas recuerdes remember
    reminder reminders remove rid sabes said scrap se search see ser set shall should show si sin so sobre some
    something son still su sus take tambien te tell tengo that the there these thing things this those tiene
    tienes to toda todo todos told too tu turn tus u un una unas unlearn unos up vale ver vez want was we well
    were what whats when where wheres which who whom whos whose why will wipe with would write written wrote y
    ya yes yo you your
    """.split()  # noqa: SIM905 - a list of words is read best as a text
)
"""Words that are no topic by themselves, without accents."""
_OWN: Final = chat_expression(
    r"(?i)\b(?:i|i['’]m|im|i['’]ve|me|my|mine|we|our|mi|mis|m[ií]|m[ií][oa]s?|yo|soy|estoy|tengo|vivo|llamo|naci|trabajo|prefiero"
    r"|odio|gusta|gustan|encanta|cumplo|como|bebo|tomo|estudio|hablo|uso|puedo|nuestr[oa]s?)\b"
)
_ONE: Final = chat_expression(
    r"(?i)\b(?:the|my)\s+(?P<name>\pL[\w-]*)\s+(?:one|file|list|note|document|doc|thing)\b"
    r"|\b(?:the|my)\s+(?:file|list|note|document)\s+(?:called|named|about|with|of)\s+(?:the\s+)?(?P<named>\pL[\w-]*)"
)
_ONE_ES: Final = chat_expression(
    r"(?i)\b(?:el|la|lo|archivo|fichero|lista|nota|documento)\s+de(?:l|\s+la|\s+los|\s+las|\s+mi|\s+mis)?\s+(?P<name>\pL[\w-]*)"
)
_BARE: Final = chat_expression(r"(?i)\b(?:the|my|el|la|los|las|mi|mis)\s+(?P<name>\pL[\w-]{2,})[\s.!?]*$")
_ITEM_EN: Final = chat_expression(
    r"(?i)^(?:(?:and|also|oh|then)\s+)*(?:(?:add|put|stick|append|pop|chuck|throw|write|jot|include|tack)(?:\s+(?:down|in|on|also))?\s+)"
    r"(?P<item>.+?)(?:\s+(?:too|as\s+well|also))?"
    r"(?:\s+(?:to|on|onto|in|into|at\s+the\s+end\s+of)\s+(?:(?:the|my|that|this)\s+)?(?:\S+\.\w+|it|there|that|(?:\pL+\s+)?(?:list|file|one|end|note|document)|\pL+)(?:\s+(?:too|as\s+well|also))?)?[\s.!]*$"
)
_ITEM_ES: Final = chat_expression(
    r"(?i)^(?:(?:y|e|tambien|ah|pues)\s+)*(?:anade|anademe|anadele|anadir|agrega|agregale|agregame|agregar|pon|ponle|ponme|poner|mete|metele|meter|apunta|apuntale|apuntame"
    r"|suma|sumale|incluye|incluyele|escribe|anota|anotame|anotale|echa|echale)\s+(?:tambien\s+)?(?P<item>.+?)(?:\s+tambien)?"
    r"(?:\s+(?:a|al|en|ahi|alli)(?:\s+(?:el|la|los|las|mi|ese|esa|final\s+de(?:l|\s+la)?))?(?:\s+(?:\S+\.\w+|eso|lista|archivo|fichero|de\s+(?:la\s+|el\s+)?\pL+|lista\s+de\s+(?:la\s+)?\pL+|\pL+))?)?(?:\s+tambien)?[\s.!]*$"
)
_THERE: Final = expression(r"(?i)\s+(?:on\s+there|there|in\s+there|ah[ií]|all[ií])[\s.!]*$")
_BODY: Final = chat_expression(
    r"(?is)(?:\b(?:saying|that\s+says|says|with\s+the\s+text|with|telling\s+(?:him|her|them)|to\s+say|diciendo(?:le)?|que\s+diga|con|con\s+el\s+texto"
    r"|avisando(?:le)?(?:\s+de)?)(?:\s+(?:that|que))?\s*:?\s+|:\s+|\b(?:that|que)\s+)(?P<body>.+)$"
)
_DESTINATION: Final = expression(
    r"(?i)[\s,]+(?:in|into|to|on|as|called|named|en|a|al|como|llamad[oa])\s+"
    r"(?:(?:a|the|my|un|el|mi)\s+)?(?:(?:file|archivo|fichero)\s+)?$"
)
_ADDRESS: Final = expression(r"[^\s@\"'«»“”<>]+@[^\s@\"'«»“”<>:,]+\.\pL{2,}")
_NEW_NAME: Final = expression(
    r"(?i)\b(?:to|as|into|instead\s+of|called|named|a|por|en|como)\s+(?P<name>[\w/-]+\.\w{1,8})\b"
)
_CALLED: Final = expression(
    r"(?i)\b(?:call\s+it|name\s+it|ll[aá]ma(?:lo|la)|que\s+se\s+llame|p[oó]nle)\s+(?P<name>[\w/-]+\.\w{1,8})\b"
)
_FACT_LEAD: Final = chat_expression(
    r"(?i)^(?:(?:just\s+so\s+you\s+know|so\s+you\s+know|for\s+the\s+record|for\s+your\s+information|fyi|btw|by\s+the\s+way|you\s+should\s+know(?:\s+that)?"
    r"|keep\s+in\s+mind(?:\s+that)?|remember(?:\s+that)?|note(?:\s+that)?|i\s+want\s+you\s+to\s+(?:know|remember)(?:\s+that)?|oh|and|also|well"
    r"|que\s+sepas(?:\s+que)?|para\s+que\s+(?:lo\s+)?sepas|por\s+cierto|ten\s+en\s+cuenta(?:\s+que)?|acuerdate(?:\s+de)?(?:\s+que)?|recuerda(?:\s+que)?"
    r"|te\s+cuento(?:\s+que)?|quiero\s+que\s+(?:sepas|recuerdes)(?:\s+que)?|no\s+(?:te\s+)?olvides(?:\s+de)?(?:\s+que)?|oye|mira|ah|y|bueno)[\s,:]+)+"
)
_NOTE_LEAD: Final = chat_expression(
    r"(?i)^(?:(?:can\s+you|could\s+you|please|quick|puedes|me|porfa|quiero|quiero\s+que|i\s+want\s+to|let\s+me)\s+)*"
    r"(?:(?:make|take|write|leave)\s+(?:me\s+)?(?:a|down\s+a)?\s*(?:quick\s+)?note|note\s+to\s+(?:self|me|myself)|note(?:\s+down)?|jot(?:\s+this)?\s+down|write\s+down|put\s+down"
    r"|(?:toma|tomame|haz|hazme|escribe|guarda|guardame)\s+(?:una\s+)?nota|nota(?:\s+para\s+mi)?|apunta(?:me)?|anota(?:me)?|apuntar|anotar)"
    r"(?:\s+(?:that|of|about|saying|for\s+me|de\s+que|de|que|diciendo))*[\s:,]+(?P<note>.+)$"
)
_OPENER: Final = chat_expression(
    r"(?i)^.*?\b(?:remind(?:er)?|nudge|ping|shout|alert|alarm|poke|buzz|wake|heads\s+up|tell|notify|let\s+me\s+know|recuerda(?:me)?|recuerdame|recordarme|recordatorio"
    r"|avisa(?:me)?|avisame|aviso|avisarme|alarma|toque|despierta(?:me)?|despiertame)\b(?:\s+(?:me|us|up))?"
)
_JOIN: Final = chat_expression(
    r"(?i)^(?:[\s,.:]+(?:that|to|about|of|for|when|it['’]?s\s+time\s+to|on|por\s+lo|de|del|que|para|tengo\s+que|i\s+(?:have|need)\s+to|sobre|por|lo|with|con))*[\s,.:]+"
)
_LEADS: Final = expression(r"(?i)^[\s,]*on\s.+\s(?:to|about|that)\s")
"""What may be a day that is not read, which is asked about: on Christmas to open presents."""
_JOINED: Final = expression(r"(?i)(?:[\s,]+(?:for|to|para|de|at|on|el|about|que|y|and|please|porfa))+$")
_WHEN: Final = expression(r"(?i)" + when_expression(last=False))


def file_named(text: str, known: Sequence[str], *, guessed: bool = False, implied: bool = False) -> str:
    """Return the file that a message names or points to, empty if none.

    A name that only resembles one is a known file; where ``guessed`` allows it, for a read, also a name never seen.
    Where it is ``implied``, a message that names none means the file that was named last.
    """
    tokens = tokenize(text)
    literal = [one.raw for one in tokens if one.kind is Kind.LITERAL and is_file_name(one.raw)]
    if literal:
        return literal[0] if len(literal) == 1 else ""
    words = [unaccented(one.text) for one in tokens if one.kind is Kind.WORD]
    content = {word for word in words if len(word) >= _SHORTEST and word not in _NO_TOPIC}
    alike = [name for name in dict.fromkeys(known) if _resembles(content, _parts(name))]
    if alike:
        return alike[0] if len(alike) == 1 else ""
    for pattern in (_ONE, _ONE_ES, *((_BARE,) if guessed else ())):
        found = next(pattern.finditer(unaccented(text)), None)
        if found is not None:
            groups = found.groupdict()
            name = groups.get("name") or groups.get("named") or ""
            if name in _NO_TOPIC:
                continue
            return name if guessed else ""
    points = set(words) & _ITS_WORDS or any(word.endswith(("lo", "la", "le")) for word in words)
    return known[0] if known and (points or implied or not content) else ""


def _parts(name: str) -> list[str]:
    stem = unaccented(name.rpartition("/")[2].rpartition(".")[0].lower())
    return [part for part in expression(r"[^\pL\pN]+").sub(" ", stem).split() if len(part) >= _SHORTEST]


def _resembles(words: set[str], parts: Sequence[str]) -> bool:
    """Return True if a word is a part of a name, or is but for its ending: the groceries one, grocery.txt."""
    return any(
        word == part or (min(len(word), len(part)) >= _STEM and word[:_STEM] == part[:_STEM])
        for word in words
        for part in parts
    )


def item_in(text: str) -> str:
    """Return what a message adds to a list, empty if that is not plain."""
    said = _THERE.sub("", without_lead(without_tail(text.strip())))
    for pattern in (_ITEM_EN, _ITEM_ES):
        found = pattern.match(unaccented(said))
        if found is not None:
            return said[slice(*found.span(1))].strip(" ,.!")
    return ""


def body_after(text: str) -> str:
    """Return the text that a message dictates, empty if it dictates none."""
    found = next(_BODY.finditer(unaccented(text)), None)
    return "" if found is None else text[slice(*found.span(1))].strip()


def body_for(text: str, name: str) -> str:
    """Return the text that a message dictates for a file, empty if the file's name stands within it."""
    body = before_destination(body_after(text), name)
    return "" if name in body and '"' not in body else body


def before_destination(body: str, name: str) -> str:
    """Return a text without the words at its end that say which file it goes to, empty if it ends with a bare name."""
    bare = body.rstrip(" .!?\"'”»")
    if not bare.endswith(name):
        return body
    named = next(_DESTINATION.finditer(bare[: -len(name)]), None)
    return "" if named is None else bare[: named.start()].strip()


def address_in(text: str) -> str:
    """Return the only address of a message, or an empty string."""
    found = [one.group().rstrip(".") for one in _ADDRESS.finditer(text)]
    return found[0] if len(found) == 1 else ""


def new_name_in(text: str) -> str:
    """Return the name that a file is to have, empty if none is given."""
    found = next(_CALLED.finditer(text), None) or next(iter(list(_NEW_NAME.finditer(text))[-1:]), None)
    return "" if found is None else text[slice(*found.span(1))]


def fact_in(text: str) -> str:
    """Return what a message tells, without what people say before it: just so you know."""
    said = text.strip(" .!¡")
    found = _FACT_LEAD.match(unaccented(said))
    return said if found is None else said[found.end() :].strip(" ,")


def note_in(text: str) -> str:
    """Return what a message wants noted, empty if it does not say."""
    said = text.strip(" .!¡")
    found = _NOTE_LEAD.match(unaccented(said))
    return "" if found is None else said[slice(*found.span(1))].strip()


def told_time(text: str) -> str:
    """Return the time that a message names, empty if it names none or two."""
    padded = unaccented(text) + " "
    spans = [found.span(1) for found in _WHEN.finditer(padded)]
    times = [text[start:end].strip(" ,.!?") for start, end in spans]
    valid = [tidy(one) for one in times if is_time(one)]
    return valid[0] if len(valid) == 1 else ""


def reminded_of(text: str, when: str) -> str:
    """Return what a message wants to be reminded of, empty if it only names a time."""
    rest = without_tail(text.strip(" .!?¿¡"))
    if when:
        place = unaccented(rest).lower().find(unaccented(when).lower())
        rest = f"{rest[:place]} {rest[place + len(when) :]}" if place >= 0 else rest
    found = _OPENER.match(unaccented(rest))
    rest = rest[found.end() :] if found is not None else rest
    joined = None if _LEADS.match(unaccented(rest)) else _JOIN.match(unaccented(rest))
    rest = rest[joined.end() :] if joined is not None else rest
    end = next(_JOINED.finditer(unaccented(rest)), None)
    return " ".join((rest if end is None else rest[: end.start()]).split()).strip(" ,")


def topic_in(text: str) -> str:
    """Return the words that say what a message is about, in their order; empty if it names nothing."""
    tokens = tokenize(text)
    quoted = [one.raw for one in tokens if one.kind in {Kind.QUOTE, Kind.LITERAL}]
    if quoted:
        return quoted[0]
    words = [one.raw for one in tokens if one.kind is Kind.WORD and unaccented(one.text) not in _NO_TOPIC]
    return " ".join(word for word in words if len(word) > 1 or word.isdigit())


def speaks_of_oneself(text: str) -> bool:
    """Return True if a message speaks of the person who writes it."""
    return next(_OWN.finditer(unaccented(text)), None) is not None
