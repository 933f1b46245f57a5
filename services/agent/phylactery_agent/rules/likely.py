"""What follows from words that no pattern reads: a request in the patterns' own words, an offer of one, or a reply.

The words are compared with phrases (ADR 53). A request made of them is read by the patterns and planned like any other,
and RiskGate is given the person's own words, so that nothing is done that it did not decide on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from phylactery_understanding.language.text import Kind, is_file_name, tokenize

from phylactery_agent.ports import Language, LikelyMeaning
from phylactery_agent.rules import doubts
from phylactery_agent.rules.expressions import detect_language, expression
from phylactery_agent.rules.plain_replies import CANNOT, is_beyond, plain_reply
from phylactery_agent.rules.planner import PlannedCall, off_tool, read_request
from phylactery_agent.rules.recognition import intents
from phylactery_agent.rules.recognition.recognizer import GROUP, LIKELY, SURE, Recognition, recognize
from phylactery_agent.rules.references import time_alone
from phylactery_agent.rules.slots import (
    MOST_ITEM_WORDS,
    address_in,
    body_after,
    body_for,
    fact_in,
    file_named,
    item_in,
    new_name_in,
    note_in,
    reminded_of,
    speaks_of_oneself,
    told_time,
    topic_in,
)
from phylactery_agent.rules.spelling import chat_expression, unaccented
from phylactery_agent.rules.wording import without_lead
from phylactery_agent.tools.registry import ToolRegistry

_REMINDED: Final = chat_expression(
    r"(?i)^(?:recuerdame|recordame|avisame|remind\s+me)\s+(?:(?:de|to|about|of)\s+)?(\pL+)"
)
_REPEATS: Final = expression(r"(?i)\b(?:every|each|cada|todas?\s+las|todos\s+los)\s")
_RINGS: Final = chat_expression(r"(?i)^.*\b(?:alarm|timer|wake|buzz|despiert\w*|alarma|temporizador|despertador)\b")
_RECALLS: Final = frozenset("what who where when which how why that que quien donde cuando cual como por si lo".split())  # noqa: SIM905
"""Words after which "remind me" asks what was said before."""
HEDGED: Final = "hedged"
"""The value of a reply that is only likely: it begins with that."""
_HINTED: Final = 0.15
"""The share from which the reply to words that were not understood names what they may have meant."""
_MOST_HINTS: Final = 2
_NAMED: Final = 0.3
"""The share from which what no tool does is named, where its words say already that no tool does it."""
_CHAT: Final[Mapping[str, str]] = {
    "greeting": "greeting",
    "farewell": "farewell",
    "how_are_you": "how_are_you",
    "who_are_you": "program",
    "thanks": "thanks",
    "praise": "praised",
    "complaint_bot": "displeased",
    "apology": "no_harm",
    "laugh": "laughs",
    "ack": "fine",
    "wait": "listening",
    "yes": "nothing_waits_at_all",
    "no": "dropped",
    "feeling": "sympathy",
    "smalltalk": "smalltalk",
    "mention": "mention",
}
"""The reply to each kind of chat; what is unclear has none."""
_TALK: Final[Mapping[str, str]] = {
    "cancel": "dropped",
    "edit_mail": "mail_again",
    "more": "more_how",
    "handoff": "handoff_say",
    "language_en": "language",
    "language_es": "language",
}
_KEEPS_WORDS: Final = frozenset(
    {"negation", "exclusion", "condition", "hypothetical", "report", "past", "irony", "permission"}
)
"""Doubts about words that want nothing done: a denial, a report, something past or only imagined."""


@dataclass(frozen=True, slots=True)
class Said:
    """What earlier messages of a thread named, the newest first."""

    files: tuple[str, ...] = ()
    """The files that the person named."""
    shown: tuple[str, ...] = ()
    """The files that replies named."""
    reminders: tuple[str, ...] = ()
    """What the reminders say that were asked for."""


NOTHING: Final = LikelyMeaning()


def likely(text: str, said: Said, tools: ToolRegistry, fallback: Language = "es") -> LikelyMeaning:
    """Return what follows from a message that no pattern reads; NOTHING if a pattern reads it or nothing is likely."""
    reading = read_request(text, tools)
    plain = plain_reply(text)
    number = text.strip(" .,;:!?¿¡#()").isdigit()  # it chooses something, and asks for no calculation
    if reading.clauses or number or plain not in {"", CANNOT, "told_of_oneself", "rejected"}:
        return NOTHING
    reminds = None if plain or reading.doubt or told_time(text) else _REMINDED.match(unaccented(without_lead(text)))
    if reminds is not None and reminds.group(1).lower() not in _RECALLS:
        return LikelyMeaning(key=_asked_time(text), intent="set_reminder")
    found = recognize(without_lead(text) or text)
    language = detect_language(text, fallback)
    doubt = reading.doubt or doubts.doubt_of_message(text)
    # which file the other one is, was just asked in vain
    in_vain = reading.doubt == doubts.WHICH_FILE and next(_OTHER.finditer(text), None) is not None
    if in_vain or (plain == "rejected" and found.intent != "cancel_reminder"):
        return NOTHING
    if doubt and doubt not in _OPEN:
        return _doubted(found, text, said, tools, language)
    for read in (_wanted, _talked, _refused):
        if (result := read(found, text, said, tools, language)) is not NOTHING:
            return result
    chat = _chat(found)
    return chat if chat is not NOTHING else _unsure(found, reading.doubt)


def completed(request: str, text: str, tools: ToolRegistry) -> str:
    """Return a reminder without a time with the time that is all a later message says, or an empty string."""
    when = time_alone(text)
    if not when or likely(request, Said(), tools).key != "ask_when":
        return ""
    meant = f"{request.rstrip(' .,;!?')} {when}"
    return meant if read_request(meant, tools).clauses else ""


def _doubted(found: Recognition, text: str, said: Said, tools: ToolRegistry, language: Language) -> LikelyMeaning:
    """Return what follows from words that deny, report or take back something: chat, or an offer, never an action."""
    if found.intent in intents.TALK and found.share >= SURE:
        return _talked(found, text, said, tools, language)
    if found.share_of(_GIVES_UP) >= LIKELY:
        return LikelyMeaning(key="dropped", intent=found.intent)
    if (chat := _chat(found)) is not NOTHING:
        return chat
    wanted = _wanted(found, text, said, tools, language)
    return replace(wanted, offered=True) if wanted.request else NOTHING


_OTHER: Final = expression(r"(?i)\b(?:other|another|otr[oa]s?)\b")
_TELLS: Final = expression(
    r"(?i)^(?:(?:my|the|our|mi|el|la|mis|los|las)\s+\pL+|he|she|they|we|mom|mum|dad|mam[aá]|pap[aá]|people|somebody|someone"
    r"|alguien|i\s+(?:hate|love|like|was|had|used|heard|saw)|odio|me\s+(?:gusta|encanta|molesta))\s"
)
"""How words begin that tell of somebody or something: what is meant by them is only offered."""
_GIVES_UP: Final = frozenset({"no", "cancel", "form_leave"})
_OPEN: Final = frozenset({doubts.QUESTION, doubts.WHICH_FILE, doubts.WHAT_CONTENT, doubts.COPY, doubts.WHICH_TIME})
"""Doubts about what exactly is wanted, not about whether anything is."""


def _wanted(found: Recognition, text: str, said: Said, tools: ToolRegistry, language: Language) -> LikelyMeaning:
    """Return the request that a message makes, if it makes one that a tool serves."""
    intent, share = found.intent, found.share
    if intent not in intents.READS | intents.EFFECTS or share < LIKELY:
        return NOTHING
    made = _REQUESTS[intent](text, said, language)
    request = next((one for one in made.requests if _is_read(one, tools) or off_tool(one, tools)), "")
    if request:
        others = intent == "recall_fact" and not speaks_of_oneself(text)
        told = intent in intents.EFFECTS - {"remember_fact"} and next(_TELLS.finditer(text), None) is not None
        return LikelyMeaning(request, offered=share < SURE or others or told, intent=intent)
    if share < SURE:
        return NOTHING
    return LikelyMeaning(key=made.missing, intent=intent) if made.missing else NOTHING


def _talked(found: Recognition, text: str, said: Said, tools: ToolRegistry, language: Language) -> LikelyMeaning:
    """Return the reply to what the agent answers by itself."""
    del said, tools
    intent = found.intent
    if intent not in intents.TALK or found.share < LIKELY:
        return NOTHING
    hedged = {} if found.share >= SURE else {HEDGED: "yes"}
    if intent in {"time", "date"} and not hedged:
        return LikelyMeaning(request={"es": "qué hora es", "en": "what time is it"}[language], intent=intent)
    if intent == "help_how":
        return LikelyMeaning(key="help_how", values={"topic": _topic(text), **hedged}, intent=intent)
    if intent in {"time", "date"}:
        request = {"es": "qué hora es", "en": "what time is it"}[language]
        return LikelyMeaning(request, offered=True, intent=intent)
    return LikelyMeaning(key=_TALK.get(intent, intent), values=hedged, intent=intent)


def _refused(found: Recognition, text: str, said: Said, tools: ToolRegistry, language: Language) -> LikelyMeaning:
    """Return the refusal of what no tool does, with the nearest possible thing."""
    del said, tools, language
    nearest = next(iter(found.nearest(intents.BEYOND, _NAMED if is_beyond(text) else LIKELY)), "")
    if nearest and (is_beyond(text) or found.share_of(intents.BEYOND) >= GROUP):
        return LikelyMeaning(key=f"cannot_{nearest}", intent=nearest)
    if found.share_of(intents.BEYOND) >= GROUP and found.intent in intents.BEYOND:
        return LikelyMeaning(key="beyond", intent=found.intent)
    return NOTHING


def _chat(found: Recognition) -> LikelyMeaning:
    """Return the reply to chat: that of its kind if the kind is likely, otherwise one that fits any."""
    if found.intent not in intents.CHAT - {"unclear"} or found.share_of(intents.CHAT) < GROUP:
        return NOTHING
    key = _CHAT[found.intent] if found.share >= LIKELY else "mention"
    return LikelyMeaning(key=key, intent=found.intent)


def _unsure(found: Recognition, doubt: str) -> LikelyMeaning:
    """Return the reply to words that were not understood, with what they may have meant."""
    near = found.nearest(intents.READS | intents.EFFECTS, _HINTED)[:_MOST_HINTS]
    if doubt or not near:
        return NOTHING
    return LikelyMeaning(key="unknown_near", values={"near": ",".join(near)}, intent="")


def _topic(text: str) -> str:
    """Return the help topic of a question how something is done, empty if none is named."""
    plain = f" {text.lower()} "
    return next((topic for topic, stems in _TOPICS.items() if any(stem in plain for stem in stems)), "")


_TOPICS: Final[Mapping[str, Sequence[str]]] = {
    "reminders": ("remind", "alarm", "recordatorio", "aviso", "alarma", "recuerd"),
    "mail": ("mail", "correo"),
    "memory": ("remember", "forget", "about me", "olvid", "acuerd", "de mí", "de mi "),
    "web": ("web", "page", "página"),
    "files": ("file", "list", "note", "archivo", "fichero", "nota", "undo", "deshac"),
}


def _is_read(request: str, tools: ToolRegistry) -> bool:
    """Return True if the patterns read a request, so that it can be planned."""
    return bool(read_request(request, tools).clauses)


@dataclass(frozen=True, slots=True)
class _Made:
    """The requests that words may mean, the likeliest first, and the reply if none of them can be made."""

    requests: tuple[str, ...] = ()
    missing: str = ""


def _fixed(es: str, en: str) -> Callable[[str, Said, Language], _Made]:
    def made(text: str, said: Said, language: Language) -> _Made:
        del text, said
        return _Made(({"es": es, "en": en}[language],))

    return made


def _of_file(
    es: str, en: str, *, guessed: bool = False, implied: bool = False, missing: str = "ask_file"
) -> Callable[[str, Said, Language], _Made]:
    def made(text: str, said: Said, language: Language) -> _Made:
        name = file_named(text, (*said.files, *said.shown), guessed=guessed, implied=implied)
        form = {"es": es, "en": en}[language]
        return _Made((form.format(_quoted(name)),) if name else (), missing)

    return made


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _search(text: str, said: Said, language: Language) -> _Made:
    del said
    topic = topic_in(text)
    return _Made((f"{ {'es': 'busca', 'en': 'search for'}[language] } {topic}",) if topic else (), "ask_topic")


def _append(text: str, said: Said, language: Language) -> _Made:
    name, item = file_named(text, (*said.files, *said.shown), implied=True), item_in(text)
    if not name or not item or len(item.split()) > MOST_ITEM_WORDS:
        return _Made(missing="ask_append")
    form = {"es": "añade {} a {}", "en": "add {} to {}"}[language]
    return _Made((form.format(item, _quoted(name)),))


def _write(text: str, said: Said, language: Language) -> _Made:
    del said
    names = list(dict.fromkeys(_names(text)))
    body = body_for(text, names[0]) if len(names) == 1 else ""
    if not body:
        return _Made(missing="ask_write")
    form = {"es": "escribe {} en {}", "en": "write {} to {}"}[language]
    return _Made((form.format(body if '"' in body else f'"{body}"', names[0]),))


def _edit(text: str, said: Said, language: Language) -> _Made:
    del text, said, language
    return _Made(missing="cannot_files")


def _copy(text: str, said: Said, language: Language) -> _Made:
    name, other = file_named(text, (*said.files, *said.shown), implied=True), new_name_in(text)
    if not name:
        return _Made(missing="cannot_files")
    other = other or _copy_of(name)
    return _Made(({"es": f"copia {name} a {other}", "en": f"copy {name} to {other}"}[language],), "cannot_files")


def _copy_of(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    return f"{stem}-copy{dot}{extension}" if dot else f"{name}-copy"


def _rename(text: str, said: Said, language: Language) -> _Made:
    other = new_name_in(text)
    name = next((one for one in _names(text) if one != other), "") or next(iter(said.files), "")
    if not name or not other:
        return _Made(missing="cannot_files")
    return _Made(({"es": f"renombra {name} a {other}", "en": f"rename {name} to {other}"}[language],), "cannot_files")


def _names(text: str) -> Iterator[str]:
    yield from (one.raw for one in tokenize(text) if one.kind is Kind.LITERAL and is_file_name(one.raw))


def _remind(text: str, said: Said, language: Language) -> _Made:
    del said
    when = told_time(text)
    what = reminded_of(text, when)
    if not when:
        return _Made(missing=_asked_time(text))
    if not what and not _RINGS.match(unaccented(text)):
        return _Made(missing="ask_what")
    verb = {"es": "recuérdame", "en": "remind me to"}[language]
    return _Made((f"{verb} {what or {'es': 'la alarma', 'en': 'alarm'}[language]} {when}",), _asked_time(text))


def _asked_time(text: str) -> str:
    """Return the question about a reminder's time: what no reminder repeats by is not asked for again."""
    return "ask_when" if next(_REPEATS.finditer(unaccented(text)), None) is None else "ask_repeat"


def _cancel(text: str, said: Said, language: Language) -> _Made:
    topic = topic_in(text)
    found = [one for one in said.reminders if topic and set(_words(topic)) & set(_words(one))]
    name = found[0] if len(set(found)) == 1 else topic or (said.reminders[0] if len(set(said.reminders)) == 1 else "")
    form = {"es": "cancela el recordatorio {}", "en": "cancel the reminder {}"}[language]
    return _Made((form.format(name),) if name else (), "ask_reminder")


def _words(text: str) -> list[str]:
    return [one.text for one in tokenize(text) if one.kind is Kind.WORD and len(one.text) > 3]  # noqa: PLR2004 - content


def _mail(text: str, said: Said, language: Language) -> _Made:
    del said
    to, body = address_in(text), body_after(text)
    if not to or not body:
        return _Made(missing="ask_mail")
    return _Made(
        ({"es": f"envía un correo a {to}: {body}", "en": f"send an email to {to}: {body}"}[language],), "ask_mail"
    )


def _remember(text: str, said: Said, language: Language) -> _Made:
    del said
    fact = fact_in(text)
    if not fact or not speaks_of_oneself(fact):
        return _Made()
    return _Made(({"es": f"recuerda que {fact}", "en": f"remember that {fact}"}[language],))


def _note(text: str, said: Said, language: Language) -> _Made:
    del said
    note = note_in(text)
    return _Made(({"es": f"recuerda que {note}", "en": f"remember that {note}"}[language],) if note else (), "ask_note")


def _recall(text: str, said: Said, language: Language) -> _Made:
    del said
    topic = topic_in(text)
    about = {"es": "qué recuerdas sobre", "en": "what do you remember about"}[language]
    every = {"es": "qué sabes de mí", "en": "what do you know about me"}[language]
    return _Made((f"{about} {topic}" if topic else every,))


def _forget(text: str, said: Said, language: Language) -> _Made:
    del said
    topic = topic_in(text)
    return _Made(({"es": f"olvida {topic}", "en": f"forget {topic}"}[language],) if topic else (), "cannot_forget")


def _move(text: str, said: Said, language: Language) -> _Made:
    del text, said, language
    return _Made(missing="ask_move")


_REQUESTS: Final[Mapping[str, Callable[[str, Said, Language], _Made]]] = {
    "list_files": _fixed("lista mis archivos", "list my files"),
    "read_file": _of_file("lee {}", "read {}", guessed=True),
    "file_info": _of_file("existe {}", "does {} exist", implied=True),
    "delete_file": _of_file("borra {}", "delete {}", missing="cannot_files"),
    "search_files": _search,
    "list_reminders": _fixed("qué recordatorios tengo", "list my reminders"),
    "recall_fact": _recall,
    "read_notes": _fixed("qué sabes de mí", "what do you know about me"),
    "write_file": _write,
    "append_file": _append,
    "edit_file": _edit,
    "copy_file": _copy,
    "rename_file": _rename,
    "undo": _fixed("deshaz eso", "undo that"),
    "add_note": _note,
    "set_reminder": _remind,
    "move_reminder": _move,
    "cancel_reminder": _cancel,
    "send_mail": _mail,
    "remember_fact": _remember,
    "forget_fact": _forget,
}


def said_in(turns: Sequence[tuple[str, str]], tools: ToolRegistry) -> Said:
    """Return what earlier requests and the replies to them named; the newest turn is first."""
    files: dict[str, None] = {}
    shown: dict[str, None] = {}
    reminders: dict[str, None] = {}
    for text, reply in turns:
        calls = [one[0] for one in read_request(text, tools).clauses]
        reminders.update(dict.fromkeys(str(one.args["text"]) for one in calls if "when" in one.args))
        told = dict.fromkeys(_names(reply[:_SHOWN_CHARS].translate(_UNQUOTED)))
        files.update(dict.fromkeys(_paths(calls) or _names(text)))
        files.update(told if len(told) == 1 else {})
        shown.update(told)
    return Said(tuple(files), tuple(shown), tuple(reminders))


_UNQUOTED: Final = str.maketrans("“”«»", "    ")
_SHOWN_CHARS: Final = 4_000
"""The part of a reply in which file names are looked for."""


def _paths(calls: Sequence[PlannedCall]) -> list[str]:
    return [str(one.args["path"]) for one in calls if one.args.get("path")]
