"""Requests that refer to what an earlier message named: read it, the other one, add milk to it, at five, cancel it.

Each becomes a request that is planned like any other; RiskGate is given the person's words and not these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from phylactery_understanding.language.text import Kind, Token, is_file_name
from phylactery_understanding.requests.model import Ask, Label, Request
from phylactery_understanding.requests.parser import parse

from phylactery_agent.ports import Language
from phylactery_agent.rules import doubts
from phylactery_agent.rules.expressions import detect_language, expression
from phylactery_agent.rules.plain_replies import asks_last_request, asks_time, plain_reply
from phylactery_agent.rules.planner import PlannedCall, read_request
from phylactery_agent.rules.spelling import chat_expression, unaccented
from phylactery_agent.rules.wording import without_lead
from phylactery_agent.timeparse.phrases import changed_time, is_time, tidy
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import CREATE_REMINDER, WRITE_FILE

_LONGEST: Final = 24
"""The maximum length of a message that refers to another, in tokens."""
_MOST_ITEMS: Final = 6
"""The maximum length in words of an item that is added to a list."""
_LONGEST_NUMBER: Final = 3
_DIGITS: Final = expression(r"[0-9]+")
_BEFORE_PLACE: Final = frozenset({"de", "from", "in", "en"})
_THERE: Final = frozenset({"ahi", "alli", "alla", "there"})
_PLACES: Final = doubts.STANDING | _THERE
_IT: Final = frozenset({"lo", "la", "melo", "mela"})
_TO_FILE: Final = frozenset({"le", "les"})
_READ: Final = frozenset({"read"})
_ADD: Final = frozenset({"add", "append", "put", "record", "write"})
_AGREE: Final = frozenset({"approve"})
"""What "ok" means before a request."""
_CANCEL: Final = frozenset({"cancel", "stop"})
_DELETE: Final = frozenset({"delete", "remove"})
_WORDS: Final = expression(r"^[\pL\pN' ,-]+$")
_ANOTHER: Final = chat_expression(
    r"(?i)^(?:and\s+|y\s+)?(?:also\s+|tambien\s+)?(?:(?:pon|ponme|poneme|crea|set|make|create)\s+)?(?:another(?:\s+one)?|one\s+more|one|otro(?:\s+mas)?|uno\s+mas)\s+(?:(?:para|for)\s+)?(?P<rest>.+)$"
)
_TOO: Final = chat_expression(
    r"(?i)^(?:(?:oh|ah|uy)[\s,]+)?(?:(?:and|y|e)\s+(?:(?:also|tambien)\s+)?|(?:also|tambien)\s+)(?P<item>.+?)(?:\s+(?:too|also|tambien))?[\s.!]*$"
)
_SCRATCH: Final = expression(r"(?i)^(?:scratch|strike|undo|take\s+back|take)\s+(?:that|it|this)(?:\s+back)?[\s.!]*$")
_CHANGED: Final = chat_expression(
    r"(?i)^(?:(?:no|uy|ups|oops|era|es|perdon|perdona|mejor|digo|sorry|actually|wait|make\s+(?:it|that)|better|que\s+sean?)[\s,.!]+)*(?P<when>.+?)"
    r"(?:[\s,]+(?:mejor|better|instead|sorry|perdon|porfa|please))*$"
)


_SPANISH_HALVES: Final = frozenset({"manana", "tarde", "noche", "madrugada"})
_HALF_NAMED: Final = {"am": "morning", "pm": "evening"}
_HALF: Final = chat_expression(
    r"(?i)^(?:(?:de|por)\s+la\s+|(?:in\s+)?the\s+)(manana|tarde|noche|madrugada|morning|afternoon|evening|night)$"
)
_HALF_ALONE: Final = chat_expression(r"(?i)^(morning|afternoon|evening|tarde|noche|madrugada|am|pm)$")
_SAME: Final = chat_expression(
    r"(?i)^(?:(?:do|and)\s+)*(?:exactly\s+)?the\s+same\s+(?:thing\s+)?(?:with|for|to|in|on)\s+(?P<file>\S+?)[\s.!]*$"
)
_SAME_ES: Final = chat_expression(
    r"(?i)^(?:(?:haz|hace|y)\s+|hazle\s+)*lo\s+mismo\s+(?:con|para|en|a)\s+(?P<file>\S+?)[\s.!]*$"
)
_ONE_MORE_FILE: Final = chat_expression(
    r"(?i)^(?:(?:and|y)\s+)?(?:another|one\s+more|otro|otra)(?:\s+(?:one|file|archivo|fichero|lista|list))?\s+"
    r"(?P<rest>(?:called|named|llamad[oa]|que\s+se\s+llame|in|en)\s+\S+\.\w+\s.+)$"
)
_WHAT_IT_SAYS: Final = chat_expression(
    r"(?i)^(?:what(?:['’]?s|\s+is)\s+(?:in|on)\s+(?:it|there)|what\s+does\s+it\s+say|let\s+me\s+see\s+(?:it|that)|how\s+does\s+it\s+look|c[oó]mo\s+(?:ha\s+quedado|qued[oó]|va\s+quedando)|what(?:['’]?s|\s+is)\s+(?:inside|there)"
    r"|qu[eé]\s+(?:pone|dice|hay|contiene|tiene)(?:\s+(?:ah[ií]|dentro|escrito|en\s+[eé]l))*)(?:\s+(?:now|ahora|por\s+ahora))?[\s?!.]*$"
)


def repeats_with(text: str) -> str:
    """Return the file with which a message wants the last request again: do the same with b.txt; empty if none."""
    plain = without_lead(text.strip())
    found = _SAME.match(unaccented(plain)) or _SAME_ES.match(unaccented(plain))
    name = "" if found is None else plain[slice(*found.span(1))]
    return name if doubts.is_file(name) else ""


def may_refer(text: str, later: Request) -> bool:
    """Return True if a message could refer to an earlier one; only those can decide if it does."""
    if not 0 < len(later.tokens) <= _LONGEST or any(one.kind is Kind.QUOTE and "\n" in one.raw for one in later.tokens):
        return False
    plain = unaccented(text).strip()
    return bool(
        _cancels(later)
        or repeats_with(text)
        or asks_last_request(text)
        or _WHAT_IT_SAYS.match(unaccented(without_lead(text)))
        or _ANOTHER.match(plain)
        or _TOO.match(plain)
        or _refers_to_file(later)
        or time_alone(text)
        or _number_in(text)
    )


def cancels(later: Request, call: PlannedCall) -> bool:
    """Return True if a message only takes back what a call did: cancel it, scratch that, cancelalo.

    To delete a reminder takes it back; to delete a file does more than to take back what was written to it.
    """
    if not _cancels(later):
        return False
    deletes = any(not ask.verb.meanings.isdisjoint(_DELETE) for ask in later.asks)
    return call.tool == CREATE_REMINDER.name or not deletes


def is_one_more(text: str) -> bool:
    """Return True if a message wants one more like the last: and another at five."""
    return _ANOTHER.match(unaccented(text).strip(" .!")) is not None


def is_another_time(text: str) -> bool:
    """Return True if all that a message says is a time, or the number of one."""
    return bool(time_alone(text) or _number_in(text))


def referred(earlier: Sequence[str], text: str, tools: ToolRegistry) -> str:
    """Return the request that a message makes of earlier ones, the newest last, or an empty string."""
    if asks_time(text):
        return ""
    reading = read_request(text, tools)
    if reading.clauses or plain_reply(text):
        return ""
    if reading.doubt not in {"", doubts.WHICH_FILE, doubts.WHAT_CONTENT} and not is_another_time(text):
        return ""
    if again := repeats_with(text):
        meant = _with_another_file(earlier[-1], again)
        return meant if meant and (read_request(meant, tools).clauses or plain_reply(meant)) else ""
    known = read_request(earlier[-1], tools).clauses
    last = known[-1][0] if known else None
    if is_another_time(text):  # it belongs to the reminder among several requests
        last = next((one[0] for one in reversed(known) if one[0].tool == CREATE_REMINDER.name), last)
    language = detect_language(text, detect_language(earlier[-1], "es"))
    for meant in _candidates(earlier, last, text, language, tools):
        if read_request(meant, tools).clauses or plain_reply(meant):
            return meant
    return ""


def _with_another_file(request: str, name: str) -> str:
    """Return a request with another file in the place of its first, or an empty string if it names none."""
    old = next((one for one in parse(request).tokens if one.kind is Kind.LITERAL and is_file_name(one.raw)), None)
    return "" if old is None else f"{request[: old.start]}{name}{request[old.stop :]}"


def reversal(call: PlannedCall, text: str) -> str:
    """Return the request that takes back what a call did, or an empty string if there is none."""
    language = detect_language(text, "es")
    if call.tool == CREATE_REMINDER.name:
        return {"es": "cancela el recordatorio ", "en": "cancel the reminder "}[language] + str(call.args["text"])
    if call.tool == WRITE_FILE.name:
        return {"es": "deshaz el último cambio de ", "en": "undo the last change to "}[language] + _quoted(call)
    return ""


def restated(call: PlannedCall, text: str) -> str:
    """Return a reminder in words that can follow another request."""
    verb = {"es": "recuérdame", "en": "remind me to"}[detect_language(text, "es")]
    return f"{verb} {call.args['text']} {call.args['when']}"


def _quoted(call: PlannedCall) -> str:
    path = str(call.args["path"])
    return f'"{path}"' if " " in path else path


def _candidates(
    earlier: Sequence[str], last: PlannedCall | None, text: str, language: Language, tools: ToolRegistry
) -> Iterator[str]:
    if last is not None and last.tool == CREATE_REMINDER.name:
        yield from _reminders(last, text, language)
    if last is not None and last.tool == WRITE_FILE.name and (more := _ONE_MORE_FILE.match(unaccented(text))):
        yield {"es": "crea un archivo ", "en": "create a file "}[language] + text[more.span(1)[0] :]
    if last is not None and last.tool == WRITE_FILE.name:
        item = _item(text)
        if item:
            yield {"es": f"añade {item} a ", "en": f"add {item} to "}[language] + _quoted(last)
    files = list(_files(earlier, tools))
    if files:
        yield from _with_file(without_lead(text), files, language)


def _reminders(last: PlannedCall, text: str, language: Language) -> Iterator[str]:
    """Yield another reminder like the last one: at another time, or one more."""
    verb = {"es": "recuérdame", "en": "remind me"}[language]
    found = _ANOTHER.match(unaccented(text).strip(" .!"))
    if found is not None:
        yield f"{verb} {text.strip(' .!')[found.span(1)[0] :]}"
    when = time_alone(text)
    if when:
        yield f"{verb} {last.args['text']} {changed_time(last.args['when'], when)}"

    number = _number_in(text)
    if number and len(_DIGITS.sub("#", last.args["when"]).split("#")) == 2:  # noqa: PLR2004 - one number, two sides
        yield f"{verb} {last.args['text']} {_DIGITS.sub(number, last.args['when'])}"


def _number_in(text: str) -> str:
    """Return the number that is all a message says: actually make it 10."""
    found = _CHANGED.match(unaccented(tidy(text)))
    number = "" if found is None else found.group(1)
    return number if number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER else ""


def time_alone(text: str) -> str:
    """Return the time that is all a message says, or an empty string."""
    cleaned = tidy(text)
    found = _CHANGED.match(unaccented(cleaned))
    when = cleaned[slice(*found.span(1))] if found is not None else cleaned
    half = _HALF.match(unaccented(when)) or _HALF_ALONE.match(unaccented(when))
    if half is not None:  # the answer to "in the morning or in the evening?"
        part = when[slice(*half.span(1))]
        lead = "por la" if half.group(1).lower() in _SPANISH_HALVES else "in the"
        when = f"{lead} {_HALF_NAMED.get(part.lower(), part)}"
    return when if is_time(when) else ""


def _item(text: str) -> str:
    """Return what a message adds to a list: and sugar too."""
    plain = text.strip()
    found = _TOO.match(unaccented(plain))
    if found is None:
        return ""
    item = plain[slice(*found.span(1))].strip(" ,")
    said = parse(item)
    tokens, words = said.tokens, said.lexicon
    more = any(one.kind is not Kind.WORD or words.holds("question", one.text) for one in tokens)
    return (
        ""
        if more
        or not tokens
        or words.verb(tokens[0].text)
        or len(tokens) > _MOST_ITEMS
        or not _WORDS.match(item)
        or is_time(item)
        else item
    )


def _files(earlier: Sequence[str], tools: ToolRegistry) -> Iterator[str]:
    """Yield the files that earlier requests name, the last one first, each once."""
    found: dict[str, None] = {}
    for text in reversed(earlier):
        paths = [str(one[0].args["path"]) for one in read_request(text, tools).clauses if one[0].args.get("path")]
        named = [one.raw for one in parse(text).tokens if one.kind is Kind.LITERAL and is_file_name(one.raw)]
        found.update(dict.fromkeys(reversed(paths or named)))
    yield from found


def _refers_to_file(later: Request) -> bool:
    return any(one.text in _PLACES | doubts.OTHER for one in later.tokens) or any(
        ask.verb.joined or not ask.verb.meanings.isdisjoint(_DELETE) for ask in later.asks
    )


def _with_file(text: str, files: Sequence[str], language: Language) -> Iterator[str]:
    """Yield a message with the file in the place of the word that refers to it."""
    later = parse(text)
    words = [one for one in later.tokens if one.kind is not Kind.MARK]
    if _WHAT_IT_SAYS.match(unaccented(text)):
        yield {"es": "lee ", "en": "read "}[language] + (f'"{files[0]}"' if " " in files[0] else files[0])
        return
    other = any(one.text in doubts.OTHER for one in words)
    if other and len(files) != 2:  # noqa: PLR2004 - with three, "the other one" names none
        return
    name = files[1] if other else files[0]
    shown = f'"{name}"' if " " in name else name
    exact = is_file_name(name) or "/" in name  # list1 may have been read as list1.txt: nothing is written to a guess
    ask = later.asks[0] if len(later.asks) == 1 else None
    if (ask is not None and _reads_only(ask)) or (other and (ask is None or ask.verb.meanings <= _AGREE)):
        yield {"es": f"lee {shown}", "en": f"read {shown}"}[language]
        return
    if not exact:
        return
    if ask is not None and ask.verb.joined in _TO_FILE and not ask.verb.meanings.isdisjoint(_ADD):
        content = text[_verb_of(ask).stop :].strip(" .!")
        yield {"es": f"añade {content} a {shown}", "en": f"add {content} to {shown}"}[language]
        return
    if ask is not None and ask.verb.joined in _IT and not _rest(ask):
        verb = _verb_of(ask)
        yield f"{verb.raw[: -len(ask.verb.joined)]} {shown}"
    standing = [one for one in words if one.text in _PLACES]
    if len(standing) == 1 and standing[0] is words[-1]:
        place = standing[0]
        stands = place.text not in _THERE or (len(words) > 1 and words[-2].text in _BEFORE_PLACE)
        into = "" if stands else {"es": "en ", "en": "to "}[language]
        yield f"{text[: place.start]}{into}{shown}{text[place.stop :]}"
    elif ask is not None and not ask.verb.meanings.isdisjoint(_DELETE):
        yield f"{text.strip(' .!')} {'de' if language == 'es' else 'from'} {shown}"


def _reads_only(ask: Ask) -> bool:
    """Return True if an ask is to read, and says no more of what than it, that or the other one."""
    small = ("article", "please", "polite", "goal")
    return not ask.verb.meanings.isdisjoint(_READ) and all(
        one.text in _PLACES | doubts.OTHER or any(ask.lexicon.holds(name, one.text) for name in small)
        for one in _rest(ask)
    )


def _rest(ask: Ask) -> list[Token]:
    """Return what an ask says besides its verb and the words before it."""
    verb = ask.labels.index(Label.VERB)
    return [one for one in ask.tokens[verb + 1 :] if one.kind is not Kind.MARK]


def _verb_of(ask: Ask) -> Token:
    return ask.tokens[ask.labels.index(Label.VERB)]


def _cancels(later: Request) -> bool:
    text = later.text.strip()
    if _SCRATCH.match(text):
        return True
    if len(later.asks) != 1 or (later.fault is not None and later.fault.kind != "retraction"):
        return False
    ask = later.asks[0]
    rest = _rest(ask)
    bare = all(one.text in doubts.STANDING or ask.lexicon.holds("please", one.text) for one in rest)
    named = bool(ask.verb.joined) or any(one.text in doubts.STANDING for one in rest)
    return bare and named and not ask.verb.meanings.isdisjoint(_CANCEL | _DELETE)
