"""Comparison of a proposed call with what was asked for.

A call is understood when an ask yields it: the same effect, every argument from its own place in the ask, and no word
of the ask left over. Both directions count: an argument that was not mentioned and a word that no argument corresponds
to are each a reason to ask the person.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from phylactery_understanding.content import fidelity, inquires, is_written_so, stated
from phylactery_understanding.dictation import said_beside
from phylactery_understanding.forms import asks, fault_of, is_readable, read_form
from phylactery_understanding.language.numbers import amounts_at, readings, value_of
from phylactery_understanding.language.text import (
    STEM,
    Kind,
    Token,
    fold,
    is_disguised,
    is_file_name,
    is_latin,
    tokenize,
    written,
)
from phylactery_understanding.language.times import (
    Feature,
    read_times,
    same_day,
    same_hour,
    same_time,
    times_of,
    unread_time,
)
from phylactery_understanding.proposal import (
    CURRENCIES,
    NOTHING,
    Argument,
    Call,
    Item,
    Level,
    Understanding,
    in_item,
    is_named,
    names_of,
    plain_name,
    plain_values,
)
from phylactery_understanding.request import ARTIFACTS, Ask, Fault, Label, Request, comparison, parse

_APPENDING: Final = frozenset({"add", "append"})
_KEEPING: Final = frozenset(
    {"edit", "change", "update", "replace", "set", "remove", "delete", "strike", "raise", "lower", "fix"}
)
_MORE: Final = frozenset({"more", "another", "additional", "otra", "otro", "mas"})
"""Words that mark a line as one of several."""
_LINES: Final = frozenset(
    "line lines entry entries item items option options point points linea lineas entrada elemento opciones".split()
)
_MODE_FLAGS: Final = frozenset({"append"})
_JOINTS: Final = frozenset({"and", "y", "e", "&", ",", "et", "und", "i"})
_LEFT: Final = frozenset({Label.FILLER, Label.ARTICLE, Label.GOAL, Label.TIME, Label.MARK, Label.VERB, Label.REASON})
_MARKING: Final = frozenset("/\\*~%$|<>`")
"""Characters that, adjacent to a path or value, make it another one."""
_NO_GOAL: Final = frozenset({Label.CONTENT, Label.REASON, Label.SOURCE})
_CHANGING: Final = frozenset({"set", "raise", "lower", "change", "edit", "put", "update"})
_SIGNS: Final = frozenset("%€$£")
_LESS: Final = tuple([one] for one in "off less more cheaper dearer menos mas extra up down from each".split())
_MOVING: Final = frozenset({"move", "reschedule", "shift"})
RECURRING: Final = frozenset({"remind", "remember", "notify", "tell", "wake", "order", "book", "subscribe"})
ENDING: Final = frozenset({"cancel", "delete", "remove", "stop", "disable", "forget"})
_PAIR, _NEAR = 2, 3
_MINUTES: Final[Mapping[str, int]] = {"m": 1, "h": 60, "d": 1_440}
_WORD: Final = 30
_GRANTED: Final = 120
"""Minutes an appointment may last if no end was given."""
_DATIVE: Final = frozenset(
    """
    me le les lo la los las se te nos you to ever please el the
    """.split()
)
_AT_ONCE: Final = frozenset({"today", "hoy", "now", "ahora", "la", "las", "el", "a", "at", "on"})
_FOR_NOW: Final = frozenset({"today", "tonight", "now", "hoy", "ahora"})
"""Times at which a person may cancel a reminder, and need it again."""
_TURNED: Final = frozenset({"last", "previous", "pasado", "pasada", "anterior"})
_UNTIL: Final = frozenset("until till til hasta before jusqu'a jusque fino bis ate fins".split())
_NOON: Final = 12
_MORNING: Final = frozenset({8, 9, 10})
"""Hours at which a reminder of a day may come."""
_NAME_PARTS: Final = re.compile(r"[^a-z0-9]+")
_CLOCK: Final = re.compile(r"0?\d:\d\d")
_REMINDING: Final = frozenset({"remind", "recuerdame", "recordame", "recuerde", "avisame"})
_ASKING: Final = frozenset({"who", "why", "what", "when", "where", "how", "quien", "cuando", "donde", "hora"})
_AFTERWARDS: Final = frozenset(
    "despues luego later afterwards soon depois despres apres dopo poi spater nachher danach tard".split()
)
_MORE_THAN_ONE: Final = frozenset("but pero except salvo everything all todo todos todas both ambos".split())
"""Words that undoing one change does not correspond to."""
_GENERIC: Final = frozenset(
    """
    create add make put update change set delete remove edit move open give read record pass
    """.split()
)
"""Meanings of verbs that are vague: their object must determine the effect."""
_READING: Final = frozenset({"read"})
_PLACING: Final = frozenset({"in", "on", "en", "of", "de", "at", "for", "para"})
_UNDONE: Final = frozenset(
    {"last", "latest", "previous", "change", "edit", "version", "ultimo", "ultima", "anterior", "cambio"}
)
"""What an undo applies to if nothing else is said."""
_SAYING: Final = frozenset(
    {"diga", "digan", "ponga", "diciendo", "saying", "says", "say", "reading", "reads", "que", "that"}
)
"""Words that only introduce the content."""
_CODE: Final = 3
DEFERRING: Final = frozenset(
    """
    ask pregunta preguntale preguntar consulta consultale consultar confirm confirma confirmar preview show
    ensenamelo muestramelo mostramelo
    """.split()
)
"""Verbs of another request in the message that defers this one: ask Hugo and transfer it."""
_LEAVING: Final = frozenset({"send", "email", "mail", "forward", "reply"})
_SENDING: Final = frozenset(
    """
    send tell ask notify reply forward message write post pass share request greet announce report comment remind
    """.split()
)
_TELLING: Final = frozenset({"tell", "ask", "notify", "reply", "greet", "report", "message", "announce"})
"""Meanings of verbs of speech: sending an amount does not say anything with it."""
_DEFINITE: Final = frozenset({"the", "that", "this", "el", "la", "ese", "esa", "este", "esta", "al", "del"})
"""Determiners of something mentioned before: the file, ese documento."""
_ACCESS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("read", "reading", "view", "viewing", "read-only", "leer", "lectura", "ver"), "r"),
    **dict.fromkeys(("write", "writing", "escribir", "escritura"), "w"),
    **dict.fromkeys(("edit", "editing", "editar", "edicion"), "rw"),
    **dict.fromkeys(("execute", "executing", "ejecutar", "ejecucion"), "x"),
}
"""Names of access rights, and their letters."""
_ACCESS_LETTERS: Final = frozenset("rwx")
_RIGHTS: Final = frozenset({"perm", "acce", "righ", "priv", "dere"})
_BESIDE: Final = 3
"""The number of words allowed between an access right and its letters: permission to read and write."""
_ATTACHING: Final = frozenset({"atta", "adju"})
_DRAFTING: Final = frozenset({"draft", "drafts", "borrador", "borradores", "anonymously", "encrypted", "cifrado"})
_COURTEOUS: Final = ("please", "greet", "phatic", "stop", "article")
_LEADS: Final = ("please", "greet", "polite")
_PAUSES: Final = frozenset({",", "(", "–", "—", "-", "…"})
_OBJECTS: Final = frozenset({"it", "them"})
_CLITICS: Final = frozenset({"lo", "la", "los", "las", "le", "les", "se", "me", "te", "nos"})
_BEFORE_SUBJECT: Final = frozenset({"because", "since", "as", "and", "so", "that", "cause", "cuz", "coz", "for"})
_LOOSE: Final = frozenset({Label.OBJECT, Label.ARTICLE, Label.FILLER, Label.SOURCE, Label.GOAL})
_TO_DO: Final = frozenset({"remi", "reco", "alar", "task", "tare", "todo"})
"""Stems of things that are obsolete once their object was done."""
_FRAME: Final = 40
"""The maximum distance in characters between words of one phrase: words on both sides of the ask are not a phrase."""
_ORDINALS: Final[Mapping[str, int]] = {
    "first": 0,
    "second": 1,
    "third": 2,
    "fourth": 3,
    "last": -1,
    "primero": 0,
    "primera": 0,
    "primer": 0,
    "segundo": 1,
    "segunda": 1,
    "tercero": 2,
    "tercera": 2,
    "tercer": 2,
    "cuarto": 3,
    "cuarta": 3,
    "ultimo": -1,
    "ultima": -1,
}
_SUPERLATIVES: Final = frozenset(
    """
    largest biggest smallest cheapest newest latest oldest recent most least last next highest lowest earliest
    longest shortest dearest cheap expensive mayor menor grande pequeno barato barata caro cara reciente antiguo
    antigua nuevo nueva ultimo ultima proximo proxima mas menos alto bajo
    """.split()
)


def used_up(found: Understanding, used: Mapping[int, int], done: Collection[int]) -> Understanding:
    """Return the understanding, downgraded to half if its ask has no effects left or had this very call."""
    spent = found.index in done or (found.quota and used.get(found.index, 0) >= found.quota)
    if found.level is not Level.CLEAR or not spent:
        return found
    return replace(found, level=Level.HALF, fault=Fault("used-up", found.ask))


def understand(
    requests: Sequence[Request],
    call: Call,
    used: Mapping[int, int] = MappingProxyType({}),
    done: Collection[int] = (),
) -> Understanding:
    """Return how far the newest of some messages asks for a call. The newest is last.

    ``used`` is how many effects its asks, by their positions, have had already, and ``done`` are those that had this
    very call. An ask that has none left, or was done, is half understood, with a fault of kind "used-up".
    """
    if not requests:
        return NOTHING
    newest = _pointing(requests[-1], requests[-2], call) if len(requests) > 1 else requests[-1]
    best = NOTHING
    for place, ask in enumerate(newest.asks):
        for one in (ask, ask.joined()):
            if one is None or best.level is Level.CLEAR:
                continue
            found = replace(_by(newest, one, call), index=place)
            best = max(best, used_up(found, used, done), key=lambda one: one.level)
    if best.level is not Level.CLEAR:
        best = max(best, used_up(_filled_in(newest, call), used, done), key=lambda one: one.level)
    if best.level is not Level.CLEAR and _ends_reminders(call) and (ended := _ended(newest)) is not None:
        found = replace(_by(ended, ended.asks[0], call), index=0)
        best = max(best, used_up(found, used, done), key=lambda one: one.level)
    if best.level is not Level.CLEAR and "remember" in call.effects and _told(newest, call):
        return Understanding(Level.CLEAR, "", tuple(one.raw for one in newest.tokens)[:12])
    if best.level is not Level.CLEAR and _forbids(newest, call):
        return Understanding(Level.REFUSED, fault=newest.fault)
    if best.fault is None and best.level is Level.NONE:
        best = Understanding(Level.NONE, fault=newest.fault or Fault("unasked", ""))
    return best


def _pointing(newest: Request, earlier: Request, call: Call) -> Request:
    """Return a message whose first ask has its reference to the previous message resolved: put it in that file.

    The message itself stays as parsed: the same words may follow another message.
    """
    if not newest.asks:
        return newest
    first, before = newest.asks[0], newest.asks[0].before
    if first.refers and not before and first.verb.meanings & call.effects:
        before = tuple(one for one in earlier.tokens if one.kind is not Kind.BREAK)
    files = tuple(one for one in earlier.tokens if is_file_name(one.text)) if first.there else ()
    asks = [replace(first, before=before, files=files)]
    for ask in newest.asks[1:]:
        place = next((at for at, one in enumerate(newest.asks[: len(asks)]) if one is ask.previous), None)
        asks.append(ask if place is None else replace(ask, previous=asks[place]))
    return replace(newest, asks=asks)


def _ends_reminders(call: Call) -> bool:
    """Return True if a call ends a reminder."""
    return bool(call.effects & ENDING) and not call.nouns.isdisjoint(_TO_DO)


def _ended(request: Request) -> Request | None:
    """Return the request of a person who no longer needs a reminder: I don't need the 5pm one any more."""
    said = [one for one in request.tokens if one.kind is not Kind.BREAK]
    texts, words = [one.text for one in said], request.lexicon
    at = 0
    while at < len(said) and not words.match("unneeded", texts, at):
        size = max(words.match(name, texts, at) for name in ("please", "greet"))
        if not size and said[at].kind is not Kind.MARK:
            return None
        at += max(size, 1)
    opened = words.match("unneeded", texts, at) if at < len(said) else 0
    behind = at + opened
    if not opened or behind >= len(said) or not _FOR_NOW.isdisjoint(texts):
        return None
    text = request.text[said[behind].start :]
    for place in range(behind, len(said)):
        if size := words.match("lapsed", texts, place):
            text = request.text[said[behind].start : said[place].start] + request.text[said[place + size - 1].stop :]
            break
    ended = parse(f"cancel {text}")
    return ended if len(ended.asks) == 1 and ended.fault is None else None


def _filled_in(request: Request, call: Call) -> Understanding:
    """Return how far a message that is a form yields a call."""
    form = read_form(request.text) if is_readable(request) else None
    if form is None or form.around.fault is not None:
        return NOTHING
    yielding = [ask for ask in form.around.asks if ask.fault is None and same_effect(ask, call)]
    if len(yielding) != len(form.around.asks) or not asks(form, {one.form for one in yielding} - ARTIFACTS, call.nouns):
        return NOTHING
    fault = fault_of(form, call)
    said = tuple(value for _, value in form.fields)[:12]
    level = Level.CLEAR if fault is None else Level.HALF
    return Understanding(level, yielding[0].form if yielding else "", said, fault, 1, index=0)


def hears(request: Request, call: Call) -> bool:
    """Return True if a request is for a tool's effect by its verbs, or contains a phrase of the tool."""
    forms, stems = {one.text for one in request.tokens}, {one.stem for one in request.tokens}
    return any(same_effect(ask, call) for ask in request.asks) or any(
        form in forms and (not beside or bool(beside & stems)) for form, beside in call.phrases
    )


def _forbids(request: Request, call: Call) -> bool:
    """Return True if a message forbids exactly what a call does: don't send it, no lo borres."""
    words = request.lexicon
    texts = [one.text for one in request.tokens]
    for at, text in enumerate(texts):
        if not words.holds("negation", text) and words.match("negation", texts, at) < _PAIR:
            continue
        near = texts[at + 1 : at + 1 + _NEAR]
        for form in near:
            if form in _DATIVE or words.holds("polite", form):
                continue
            verbs = words.verb(form)
            # Wanting a recurring thing no more is asking for its end: don't remind me of it.
            ends = RECURRING if call.effects & ENDING else frozenset[str]()
            if any(verb.meanings & (call.effects - ends) for verb in verbs):
                return not any(one.fault is None and same_effect(one, call) for one in request.asks)
            break
    return False


def _told(request: Request, call: Call) -> bool:
    """Return True if the user explicitly stated what is to be remembered."""
    if request.fault is not None or any(one.fault is not None for one in request.asks) or not request.statements:
        return False
    values = [str(one.value) for one in call.arguments if isinstance(one.value, str) and not one.default]
    said = []
    for clause in request.statements:
        texts, words, at = [one.text for one in clause], request.lexicon, 0
        while at < len(texts) and (size := max(words.match(name, texts, at) for name in _LEADS)):
            at += size
        meant = {meaning for one in texts[at:] for verb in words.verb(one) for meaning in verb.meanings}
        if "forget" in meant or ("remember" in meant and any(words.holds("negation", one) for one in texts[at:])):
            return False  # forget that; you need not remember it
        said.extend(clause[at:])
    return stated(values, said, request.lexicon)


def _by(request: Request, ask: Ask, call: Call) -> Understanding:
    if not same_effect(ask, call):
        return NOTHING
    said = tuple(one.raw for one in ask.tokens)[:12]
    whole = request.fault
    if whole is not None and whole.kind == "retraction" and "undo" in call.effects:
        whole = None  # an undo retracts it: oops, undo that
    fault = ask.fault or whole or Match(request, ask, call).fault()
    if fault is None:
        return Understanding(Level.CLEAR, ask.form, said, None, _quota(ask))
    level = Level.HALF if _is_about(ask, call) else Level.NONE
    return Understanding(level, ask.form, said, fault, 1)


def same_effect(ask: Ask, call: Call) -> bool:
    """Return True if the verb of an ask may mean a call's effect."""
    if _hears(ask, call):
        return True
    pays = any(one.role == "amount" and one.control for one in call.arguments)
    meanings = ask.verb.meanings - _TELLING if pays else ask.verb.meanings
    return any(not meanings.isdisjoint(ask.lexicon.yields(effect)) for effect in call.effects)


def _hears(ask: Ask, call: Call) -> bool:
    """Return True if an ask has a verb of the tool's phrases, with a word that accompanies it there."""
    stems = {one.stem for one in ask.tokens}
    return any(ask.form == form and (not beside or bool(beside & stems)) for form, beside in call.phrases)


def _is_about(ask: Ask, call: Call) -> bool:
    """Return True if an ask is for the tool's purpose, and not for another meaning of an ambiguous verb."""
    if ask.fault is not None and ask.fault.kind == "question":
        return False
    if ask.verb.meanings == _READING:
        return call.reads
    if not ask.verb.meanings & _GENERIC or ask.verb.meanings & call.effects - _GENERIC:
        return True
    near = {
        one.stem
        for one in [*ask.of(Label.OBJECT, Label.ARTICLE, Label.GOAL, Label.VERB), *(ask.before if ask.refers else ())]
    }
    return (
        bool(near & call.nouns)
        or _hears(ask, call)
        or any(
            one.kind is Kind.LITERAL
            and any(
                is_named(one, str(other.value), exact=True) for other in call.arguments if isinstance(other.value, str)
            )
            for one in ask.tokens
        )
    )


def _quota(ask: Ask) -> int:
    """Return the number of effects an ask allows: that of its named targets, or 0 for "all" of a set."""
    objects = list(ask.of(Label.OBJECT, Label.ARTICLE))
    if any(ask.lexicon.holds("universal", one.text) for one in objects):
        return 0
    literals = sum(one.kind is Kind.LITERAL for one in ask.of(Label.OBJECT))
    joints = sum(one.text in _JOINTS for one in ask.tokens)
    return max(1, min(literals, joints + 1)) if literals > 1 else 1 + (joints if not literals else 0)


class Match:
    """A comparison of one ask with one call."""

    def __init__(self, request: Request, ask: Ask, call: Call) -> None:
        self._request, self._ask, self._call = request, ask, call
        self._used: set[int] = set()
        self._answered: set[int] = set()
        self._item: Item | None = None
        self._items: list[Item] = []

    def fault(self) -> Fault | None:
        """Return the reason why the ask does not yield the call, or None if it does."""
        arguments = [one for one in self._call.arguments if not one.default]
        dates = [one for one in arguments if one.role == "date" and isinstance(one.value, str) and one.value]
        repeats = [one for one in arguments if _is_repeat(one)]
        rest = [one for one in arguments if one not in dates and one not in repeats]
        # A move takes its day from the old time if only an hour is said, so times are compared once it is known.
        moves = not self._ask.verb.meanings.isdisjoint(_MOVING)
        early = self._outside(arguments) or self._mode()
        early = early or (self._time(dates, repeats) if dates and not moves else None)
        if early is not None:
            return early
        texts: list[Argument] = []
        for argument in sorted(rest, key=lambda one: (not one.items, not one.control, one.role == "content")):
            if argument.role == "content" and isinstance(argument.value, str | list) and not argument.control:
                wrong = self._dictated_otherwise(argument)
                if wrong is not None:
                    return wrong
                asked = self._makes() and inquires(self._ask)  # whose person is changed: ask her whether she can pay
                if not asked and (self._accounts(argument) or (argument.items and self._describes(argument))):
                    continue
                if _is_word(argument.value) and not self._says_word(str(argument.value)):
                    return Fault("value", argument.name)
                texts.append(argument)
            elif not self._accounts(argument) and not (self._describes(argument) and self._accounts(argument)):
                return Fault("value", argument.name)
        late = self._time(dates, repeats) if dates and moves else None
        return (
            late or self._contents(texts) or self._leftover(has_content=any(map(_says, texts)), has_dates=bool(dates))
        )

    def _outside(self, arguments: Sequence[Argument]) -> Fault | None:
        """Return words around the request that cancel it, or that name a part of it differently."""
        framed = self._framed() or self._drafted()
        if framed:
            return Fault("framed", framed)
        if done := self._was_done():
            return Fault("past", done)
        swapped = next((one.name for one in arguments if self._is_other_part(one)), "")
        return Fault("value", swapped) if swapped else None

    def _dictated_otherwise(self, argument: Argument) -> Fault | None:
        """Return how a text differs from a dictated one, before the words are compared."""
        if any(is_disguised(str(one)) for one in plain_values(argument.value)):
            return Fault("content", "disguise")
        if self._misquotes(argument):
            return Fault("content", "quote")
        return Fault("content", "beside") if self._makes() and self._holds_more(argument) else None

    def _framed(self) -> str:
        """Return words outside the ask that qualify it: let me confirm first, this is a drill."""
        asked = {
            id(one)
            for one, label in zip(self._ask.tokens, self._ask.labels, strict=True)
            if label not in {Label.REASON, Label.SOURCE}
        }
        for ask in self._request.asks:
            asked.update(map(id, ask.of(Label.CONTENT, Label.QUOTE)))
            if self._request.numbered and ask is not self._ask and not ask.refers and ask.fault is None:
                asked.update(map(id, ask.tokens))  # another task, which does not qualify this one
            elif ask.form in DEFERRING and ask is not self._ask and self._call.effects.isdisjoint(_SENDING):
                return ask.form
        others = [one for one in self._request.tokens if id(one) not in asked and one.kind is not Kind.BREAK]
        texts = [one.text for one in others]
        if not self._ask.lexicon.phrases["frame"]:
            return next((one.raw for one in others if one.kind is not Kind.MARK and not self._is_courtesy(one)), "")
        attaches = any(one.name.startswith(("attach", "adjunt")) for one in self._call.arguments)
        for at, one in enumerate(others):
            size = 0 if attaches and one.stem in _ATTACHING else self._ask.lexicon.match("frame", texts, at)
            size *= self._ask.lexicon.match("reason", texts, at) <= size  # wrong size: the reason for a return
            near = size and others[at + size - 1].stop - one.start < _FRAME
            if near and self._is_frame(others[at : at + size]):
                return " ".join(texts[at : at + size])
            if one.kind is Kind.WORD and not is_latin(one.raw):
                return one.raw
        return ""

    def _is_frame(self, words: Sequence[Token]) -> bool:  # noqa: ARG002
        """Return True if words that may qualify a request do so."""
        return True

    def _is_courtesy(self, token: Token) -> bool:
        return any(self._ask.lexicon.match(name, [token.text], 0) for name in _COURTEOUS) or token.text in _JOINTS

    def _was_done(self) -> str:
        """Return a word after the request that says that it was or will be done: it's closed, ya lo pagué.

        That the object of a reminder was done may be the reason to delete it.
        """
        ask, words, pause = self._ask, self._ask.lexicon, False
        if not ask.verb.language:  # a model's reading has no verb
            return ""
        said, reasons = list[str](), set[int]()
        for token, label in zip(ask.tokens, ask.labels, strict=True):
            pause = pause or (bool(said) and token.kind is Kind.MARK and token.text in _PAUSES)
            if label is Label.VERB or (said and (label is Label.REASON or (pause and label in _LOOSE))):
                if label is Label.REASON:
                    reasons.add(len(said))
                said.append(token.text)
        last = ask.tokens[-1].start
        said.extend(one.text for clause in self._request.statements for one in clause if one.start > last)
        ends = _ends_reminders(self._call)
        fixed = {
            at + step
            for at in range(1, len(said))
            for name in ("please", "reason")
            if (size := words.match(name, said, at)) > 1
            for step in range(size)
        }
        for at, (before, one) in enumerate(itertools.pairwise(said), 1):
            object_of = one in _OBJECTS and before not in _BEFORE_SUBJECT and at > 1
            if at not in fixed and (object_of or (before == "ya" and one in _CLITICS and at not in reasons)):
                return f"{before} {one}"
            told = not words.done.get(one, frozenset()).isdisjoint(self._call.effects)
            does = one.endswith("ing") and any(verb.meanings & self._call.effects for verb in words.verb(one))
            if not ends if words.holds("done", one) else told or does or one == said[0]:
                return one
        return ""

    def _drafted(self) -> str:
        """Return words that ask for a message that is not sent yet: write me an email, a draft."""
        if self._call.effects.isdisjoint(_LEAVING) or not self._ask.verb.language:  # a model's reading has no verb
            return ""
        ask = self._ask
        verb = ask.labels.index(Label.VERB)
        mine = ask.verb.joined.startswith("me") or any(one.text == "me" for one in ask.tokens[verb + 1 : verb + 2])
        if mine and not ask.verb.meanings.isdisjoint({"compose", "write"}):
            return ask.form
        if ask.verb.meanings.isdisjoint(_SENDING) and not ask.verb.meanings.isdisjoint({"compose", "draft", "make"}):
            return ask.form
        words = (*ask.tokens[:verb], *ask.of(Label.OBJECT, Label.ARTICLE, Label.FILLER))
        return next((one.text for one in words if one.text in _DRAFTING), "")

    def _is_other_part(self, argument: Argument) -> bool:
        """Return True if the ask gives an argument by name, in quotation marks, and the argument has another value."""
        names = set(names_of(argument.name)) if isinstance(argument.value, str) else set()
        for first, second in itertools.pairwise(one for one in self._ask.tokens if one.kind is not Kind.MARK):
            if second.kind is Kind.QUOTE and first.kind is Kind.WORD and first.stem in names:
                return not any(is_written_so(second.raw, str(one)) for one in plain_values(argument.value))
        return False

    # ---- values --------------------------------------------------------------

    def _crosses(self, argument: Argument) -> bool:
        """Return True if quantities of list items are mixed up: 3 of one and 5 of another."""
        pairs = [
            (str(name), Decimal(str(number)).normalize())
            for one in (argument.value if isinstance(argument.value, list) else ())
            if isinstance(one, dict)
            for name in one.values()
            if isinstance(name, str)
            for number in one.values()
            if isinstance(number, int | float) and not isinstance(number, bool)
        ]
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            return True
        tokens = self._ask.tokens
        numbers = [at for at, one in enumerate(tokens) if readings(one.text)]
        for name, number in pairs:
            places = [at for at, one in enumerate(tokens) if is_named(one, name)]
            near = [at for at in numbers if at < places[0]] if places else []
            if len(pairs) > 1 and near and number not in readings(tokens[near[-1]].text):
                return True
        return False

    def _accounts(self, argument: Argument) -> bool:
        values = list(plain_values(argument.value))
        if self._crosses(argument):
            return False
        if argument.shared and self._is_same(argument):
            return True
        if not all(self._accounts_for(one, argument) for one in values):
            return False
        if argument.items and (argument.control or argument.name.endswith("id")):
            self._item = self._item or argument.items[0][1]
        return True

    def _is_same(self, argument: Argument) -> bool:
        """Return True if the ask wants what one listed thing has: with the same participants as the kick-off."""
        tokens, words = self._ask.tokens, self._ask.lexicon
        compared = comparison(tokens)
        if compared is None or {one.stem for one in tokens[compared[0] : compared[1]]}.isdisjoint(
            names_of(argument.name)
        ):
            return False
        begins = compared[1] + 1
        size = len(list(itertools.takewhile(lambda one: one is Label.SOURCE, self._ask.labels[begins:])))
        thing = [one for one in tokens[begins : begins + size] if one.kind is not Kind.MARK]
        times = read_times(thing)
        said = [
            one
            for at, one in enumerate(thing)
            if at not in times.places and not words.holds("stop", one.text) and one.stem not in self._call.nouns
        ]

        def fits(item: Item) -> bool:
            timely = not times.features or same_day(times.features, item.times, self._call.day)
            return timely and bool(said) and all(in_item(one, item) for one in said)

        if not any(fits(item) and not any(map(fits, others)) for item, others in argument.shared):
            return False
        self._used.update(range(compared[0], begins + size))
        return True

    def _accounts_for(self, value: Any, argument: Argument) -> bool:
        if isinstance(value, bool):
            return argument.name in _MODE_FLAGS or not value
        if isinstance(value, int | float):
            if argument.role == "amount" and self._is_key(value):
                return self._numbers(value)
            return self._numbers(value) or self._held(value) or (value == 1 and argument.role != "amount")
        text = str(value)
        if not text.strip():
            return True
        inside = argument.role == "content" and not argument.control
        if not inside and any(one != " " and (one.isspace() or not one.isprintable()) for one in text):
            return False
        return (
            self._names(text, inside=inside)
            or self._grants(text, argument)
            or self._currency(text)
            or (not inside and argument.role not in {"principal", "url"} and self._held(text))
            or (bool(self._items) and self._is_found(argument, text) and self._is_described(text, argument))
        )

    def _is_found(self, argument: Argument, text: str) -> bool:
        """Return True if a value is found by a description alone: an address, or a file of a folder that was listed."""
        return argument.role in {"principal", "url"} or (argument.control and "/" in text and not is_disguised(text))

    def _is_described(self, text: str, argument: Argument) -> bool:
        return any(value == text and item in self._items for value, item, _ in argument.items)

    def _is_key(self, value: float) -> bool:
        """Return True if a number only identifies one of the intended objects."""
        norm = format(Decimal(str(value)).normalize(), "f")
        return any(norm in one.keys for one in (*self._items, *((self._item,) if self._item is not None else ())))

    def _held(self, value: Any) -> bool:
        return any(one.holds(value) for one in (*self._items, *((self._item,) if self._item is not None else ())))

    def _numbers(self, value: float) -> bool:
        wanted = Decimal(str(value)).normalize()
        found = False
        for at, token in enumerate(self._ask.tokens):
            if self._ask.labels[at] in _NO_GOAL or token.kind is Kind.QUOTE:
                continue
            if wanted in amounts_at(self._ask.tokens, at, self._ask.verb.meanings) and not self._is_difference(at):
                self._used.add(at)
                found = True
        return found

    def _is_difference(self, place: int) -> bool:
        """Return True if a number is a difference and not a new value: 5 pounds off, raise it by 2."""
        if self._ask.verb.meanings.isdisjoint(_CHANGING):
            return False
        texts = [one.text for one in self._ask.tokens]
        behind = [one for one in texts[place + 1 : place + 4] if one not in CURRENCIES and one not in _SIGNS]
        before = texts[place - 1] if place else ""
        by = before == "by" or (before == "en" and not self._ask.verb.meanings.isdisjoint({"raise", "lower"}))
        return by or behind[:1] in _LESS

    def _grants(self, text: str, argument: Argument) -> bool:
        """Return True if a choice denotes by its letters the access asked for: rw for read and write access."""
        letters = all(map(_ACCESS_LETTERS.issuperset, argument.choices))
        if not letters or not text or text not in argument.choices:
            return False
        tokens = self._ask.tokens
        rights = [at for at, one in enumerate(tokens) if one.stem in _RIGHTS and self._ask.labels[at] not in _NO_GOAL]
        near = {at for right in rights for at in range(max(right - _BESIDE, 0), min(right + _BESIDE + 1, len(tokens)))}
        said = {at: _ACCESS[tokens[at].text] for at in near if tokens[at].text in _ACCESS}
        if not said or {*text} != {*"".join(said.values())}:
            return False
        self._used.update(said)
        self._used.update(rights)
        return True

    def _currency(self, text: str) -> bool:
        wanted = text.lower()
        if len(wanted) != _CODE or not wanted.isalpha():
            return False
        said = [(at, one.text) for at, one in enumerate(self._ask.tokens) if one.text in CURRENCIES]
        if said:
            self._used.update(at for at, _ in said)
            return all(wanted in CURRENCIES[one].split() for _, one in said)
        return self._held(text)

    def _names(self, text: str, *, inside: bool = False) -> bool:
        """Return True if the ask has a value at a place where it can be a goal, and mark its words as used.

        Mere content may be ``inside`` the ask's content, too.
        """
        if is_disguised(text):
            return False
        ask, plain = self._ask, plain_name(text)
        if plain in _ORDINALS or self._ask.lexicon.holds("universal", plain):
            return False
        marked = bool(_MARKING & {*text})
        for at, token in enumerate(ask.tokens):
            open_to = inside or ask.labels[at] not in _NO_GOAL
            if open_to and (marked or is_named(token, text)) and self._is_whole(at, at, text):
                self._used.add(at)
                return True
        return self._spells(text) or self._points_to(text)

    def _points_to(self, text: str) -> bool:
        """Return True if the ask refers to a value named before it: put it there, in that file."""
        ask = self._ask
        if any(one.kind is Kind.LITERAL and ("@" in one.text) == ("@" in text) for one in ask.of(Label.OBJECT)):
            return False  # a named value needs no reference
        named = {one.text: one for one in (*ask.before, *ask.files) if is_file_name(one.text)}
        if ask.there and len(named) == 1 and all(is_named(one, text) for one in named.values()):
            return True
        if not ask.refers:
            return False
        if ask.topic is not None and is_named(ask.topic, text):
            return True
        for at, one in enumerate(ask.before[1:], 1):
            if is_named(one, text) and ask.before[at - 1].text in _PLACING:
                return True
        for kind in (Kind.LITERAL, Kind.NUMBER):
            literals = {one.text: one for one in ask.before if one.kind is kind}
            if len(literals) == 1 and all(is_named(one, text) for one in literals.values()):
                return True
        return False

    def _spells(self, text: str) -> bool:
        """Return True if the words of a value occur consecutively in the ask, in its spelling."""
        ask = self._ask
        wanted = [one.text for one in tokenize(text) if one.kind is not Kind.MARK]
        inside = len(wanted) > _PAIR
        places = [
            at
            for at, one in enumerate(ask.tokens)
            if one.kind is not Kind.MARK
            and (ask.labels[at] not in _NO_GOAL or (inside and ask.labels[at] is Label.CONTENT))
        ]
        if len(wanted) < _PAIR:
            return False
        for first in range(len(places) - len(wanted) + 1):
            some = places[first : first + len(wanted)]
            if [ask.tokens[at].text for at in some] == wanted and self._is_whole(some[0], some[-1], text):
                self._used.update(some)
                return True
        return False

    def _is_whole(self, first: int, last: int, text: str) -> bool:
        """Return True if tokens are complete words: /etc/a.txt and *.txt are neither a.txt nor txt."""
        said, start, stop = self._request.text, self._ask.tokens[first].start, self._ask.tokens[last].stop
        begin, end = start, stop
        while begin and said[begin - 1] in _MARKING | {"."}:
            begin -= 1
        while end < len(said) and said[end] in _MARKING:
            end += 1
        if (begin, end) == (start, stop) and not _MARKING & {*text} and ".." not in text:
            return True
        if self._ask.tokens[first].kind is Kind.QUOTE and (begin, end) == (start, stop):
            return written(self._ask.tokens[first].raw.strip()) == written(text.strip())
        return written(said[begin:end]) == written(text.strip())

    def _describes(self, argument: Argument) -> bool:
        """Return True if the ask describes exactly the listed objects whose ids an argument has."""
        texts = {value for value, _, _ in argument.items}
        return bool(texts) and all(
            self._names(text)
            or any(self._singles_out(text, item, others) for value, item, others in argument.items if value == text)
            for text in sorted(texts)
        )

    def _singles_out(self, text: str, item: Item, others: Sequence[Item]) -> bool:
        """Return True if the ask distinguishes a listed object from the others, by more than an apparent id."""
        name = self._named_before()
        if (
            name is not None
            and item.holds(name.raw)
            and [one for one in (item, *others) if in_item(name, one)] == [item]
        ):
            self._item = self._item or item
            self._items.append(item)
            return True
        if item.made:
            return False
        own = fold(text)
        tokens = [
            (at, one)
            for at, one in enumerate(self._ask.tokens)
            if self._tells(at, one) and one.text.removesuffix("'s") != own
        ]
        before = [one for one in self._ask.before if one.kind is not Kind.MARK] if self._ask.refers else []
        before = [
            one for one in before if not self._ask.lexicon.holds("stop", one.text) and one.stem not in self._call.nouns
        ]
        said = self._ask.times.features

        def score(one: Item) -> tuple[int, int]:
            """Return how many words the item's short fields have, and how many all of it has."""
            named = replace(one, says=lambda _: False)
            hits = [
                sum(in_item(token, of) for token in (*(each for _, each in tokens), *before)) for of in (named, one)
            ]
            return hits[0], hits[1] + (bool(said) and same_day(said, one.times, self._call.day))

        mine = score(item)
        order = self._ordinal(item) or (item.picked and not any(one.picked for one in others))
        # Of two that mention a check-up, the one that is called so is meant.
        if not (order or mine[1]) or not (order or all(_is_less(score(one), mine) for one in others)):
            return False
        self._used |= {at for at, token in tokens if in_item(token, item)}
        if said and same_day(said, item.times, self._call.day):
            self._used |= set(self._ask.times.places)
        self._item = self._item or item
        self._items.append(item)
        return True

    def _named_before(self) -> Token | None:
        """Return the only file name of earlier asks, if this one says just "the file"; None for none, or two.

        An action on a named object may be stated of the object: read a.txt and add a line to the file.
        """
        ask = self._ask
        pairs = zip(itertools.pairwise(ask.tokens), ask.labels, strict=False)
        definite = any(
            first.text in _DEFINITE and second.stem in self._call.nouns and label not in _NO_GOAL
            for (first, second), label in pairs
        )
        if not definite or any(_is_name_of_file(one) for one in ask.tokens):
            return None
        earlier = list(itertools.takewhile(lambda one: one.tokens[-1] is not ask.tokens[-1], self._request.asks))
        names = {one.raw: one for other in earlier for one in other.tokens if _is_name_of_file(one)}
        return names.popitem()[1] if len(names) == 1 and all(one.fault is None for one in earlier) else None

    def _tells(self, place: int, token: Token) -> bool:
        return (
            place not in self._used
            and self._ask.labels[place] in {Label.OBJECT, Label.QUOTE, Label.ARTICLE, Label.CONTENT}
            and token.kind is not Kind.MARK
            and not self._ask.lexicon.holds("stop", token.text)
            and token.stem not in self._call.nouns
        )

    def _ordinal(self, item: Item) -> bool:
        for at, token in enumerate(self._ask.tokens):
            wanted = _ORDINALS.get(token.text)
            if wanted is not None and item.place == (wanted if wanted >= 0 else item.count + wanted):
                self._used.add(at)
                return True
        return False

    def _says_word(self, text: str) -> bool:
        """Return True if a one-word content is one of the ask's words, ignoring its ending."""
        said = [*self._ask.tokens, *self._ask.before]
        if any(one.isdigit() for one in text):
            return False
        word = fold(text.strip())
        return any(_is_form_of(one.text, word) or (one.kind is Kind.QUOTE and word in one.text.split()) for one in said)

    # ---- mode, time and content ------------------------------------------------

    def _mode(self) -> Fault | None:
        meanings = self._ask.verb.meanings
        flag = next((one for one in self._call.arguments if one.name in _MODE_FLAGS), None)
        if flag is None:
            return None
        if self._ask.previous is not None:
            meanings = meanings | (self._ask.previous.verb.meanings & {"edit", "clear"})
        texts = [one.value for one in self._call.arguments if one.role == "content" and isinstance(one.value, str)]
        more = self._asks_for_more()
        if not flag.value:
            emptied = all(not one.strip() for one in texts)
            if (
                emptied
                and self._ask.form not in {"clear", "empty", "wipe", "blank", "erase"}
                and "clear" not in meanings
            ):
                return Fault("mode", "empty")
            if emptied:
                return None
            adds = meanings & _APPENDING and not meanings & {"write", "compose", "put"}
            if (adds or (more and not meanings & {"create", "make"})) and not self._edits():
                return Fault("mode", "append")
            if self._call.exists and not meanings & {"replace", "edit", "clear", "change", "update"}:
                return Fault("mode", "replace")
        elif "replace" in meanings or not (more or meanings & (_APPENDING | {"put", "record", "write", "create"})):
            return Fault("mode", "add")
        return None

    def _asks_for_more(self) -> bool:
        """Return True if the text is one of several: one more line, three more options."""
        texts = [one.text for one in self._ask.tokens]
        return any(one in _MORE and not _LINES.isdisjoint(texts[at + 1 : at + 3]) for at, one in enumerate(texts))

    def _edits(self) -> bool:
        return self._call.read and bool(self._ask.verb.meanings & _KEEPING)

    def _time(self, dates: Sequence[Argument], repeats: Sequence[Argument]) -> Fault | None:
        said = self._ask.times.features | self._kept_day() | self._kept_hour() | self._said_before()
        unread = unread_time([one for at, one in enumerate(self._ask.tokens) if at not in self._ask.times.places])
        if unread:
            return Fault("time", unread)
        spoken = self._spoken_of(dates)
        if spoken:
            return Fault("time", spoken)
        call: set[Feature] = set()
        start = next((moment for one in dates if not _is_end(one) and (moment := _moment(one.value)) is not None), None)
        lasts = [one for one in said if one[0] == "after"]
        for one in dates:
            moment = _moment(one.value)
            if _is_end(one) and start is not None and moment is not None and _hours(said) < _PAIR:
                if not _lasts(moment - start, lasts):
                    return Fault("time", one.name)
                said = said - frozenset(lasts)
                continue
            found = times_of(str(one.value)).features
            if not found:
                return Fault("time", one.name)
            call |= found
        for one in repeats:
            every = times_of(str(one.value)).features
            if not every:
                return Fault("time", one.name)
            call |= every
        frozen = frozenset(call)
        if any(one[0] == "every" for one in said) != any(one[0] == "every" for one in frozen):
            return Fault("time", "repeat")
        if not same_time(said, frozen, self._call.day) and not self._is_by_day(said, frozen):
            return Fault("time", dates[0].name)
        self._used |= set(self._ask.times.places)
        return None

    def _is_by_day(self, said: frozenset[Feature], call: frozenset[Feature]) -> bool:
        """Return True if only a day was said for a reminder, and the call has that day, in the morning."""
        if "remind" not in self._call.effects or {one[0] for one in said} & {"hour", "part", "after"}:
            return False
        tokens, places = self._ask.tokens, self._ask.times.places
        if any(
            one.kind is Kind.NUMBER and at not in places and {at - 1, at + 1} & places for at, one in enumerate(tokens)
        ):
            return False  # it may be the hour: sunday 9
        rest = frozenset(one for one in call if one[0] != "hour" or one[1] not in _MORNING or one[2])
        return rest != call and same_time(said, rest, self._call.day)

    def _kept_day(self) -> frozenset[Feature]:
        """Return the day of what is moved, if it is unique and only an hour is said: move it to 13:00."""
        said = {one[0] for one in self._ask.times.features}
        days = frozenset(one for item in self._items for one in item.times if one[0] == "iso")
        moves = not self._ask.verb.meanings.isdisjoint(_MOVING)
        return days if moves and len(days) == 1 and said and said <= {"hour", "part"} else frozenset()

    def _kept_hour(self) -> frozenset[Feature]:
        """Return the hour of what is moved, if it is unique and only a day is said: move it to Friday, same time."""
        said = {one[0] for one in self._ask.times.features}
        hours = frozenset(one for item in self._items for one in item.times if one[0] == "hour")
        starts = frozenset(sorted(hours, key=str)[:1])
        moves = not self._ask.verb.meanings.isdisjoint(_MOVING)
        return (
            starts
            if moves and len(hours) == 1 and said and said <= {"day", "weekday", "iso", "date", "month"}
            else frozenset()
        )

    def _said_before(self) -> frozenset[Feature]:
        """Return the frequency given before the ask: every 8 hours, remind me of it."""
        ask = self._ask
        if not ask.refers or any(one[0] == "every" for one in ask.times.features):
            return frozenset()
        return frozenset(one for one in read_times(ask.before).features if one[0] == "every")

    def _spoken_of(self, dates: Sequence[Argument]) -> str:
        """Return words on time beyond day and hour, if the call does not have them: last, until, pm."""
        ask = self._ask
        texts = [one.text for one in ask.tokens]
        written_so = [str(one.value).lower() for one in dates]
        said, called = _TURNED & set(texts), _TURNED & {word for one in written_so for word in one.split()}
        if called - said:
            return min(called - said)
        ends = any(_is_end(one) for one in self._call.arguments)
        bounds = [one for at, one in enumerate(texts[:-1]) if one in _UNTIL and at + 1 in ask.times.places]
        if bounds and not ends:
            return bounds[0]
        late = ("part", "evening") in ask.times.features
        early = any(
            one[0] == "hour" and int(str(one[1])) < _NOON and one[2:]
            for text in written_so
            for one in times_of(text).features
        )
        if late and early and any(_CLOCK.fullmatch(one.split()[-1]) for one in written_so if one.strip()):
            return "pm"
        if "remind" in self._call.effects:
            return self._reminds_other()
        return ""

    def _reminds_other(self) -> str:
        """Return the other person to remind, or the question; empty if the user is to be reminded of a thing."""
        ask = self._ask
        verb = ask.labels.index(Label.VERB)
        behind = [one for one in ask.tokens[verb + 1 :] if one.kind is not Kind.MARK]
        if ask.verb.joined.startswith("le"):
            return ask.form
        if ask.form == "remind" and behind and behind[0].text not in {"me", "us", "myself"}:
            return behind[0].text
        asked = [one.text for one in behind[:3] if one.text in _ASKING]
        return asked[0] if asked and ask.form in _REMINDING else ""

    def _contents(self, texts: Sequence[Argument]) -> Fault | None:
        values = [str(value) for one in texts for value in plain_values(one.value)]
        if not any(one.strip() for one in values):
            return None
        if "remind" in self._call.effects and (time := self._other_time(values)):
            return Fault("content", time)
        result = fidelity(
            self._ask,
            self._used,
            values,
            self._request,
            self._call.texts,
            edits=self._edits(),
            makes=self._makes(),
            nouns=self._call.nouns | {stem for one in self._call.arguments for stem in names_of(one.name)},
        )
        self._answered |= result.used
        return result.fault

    def _other_time(self, values: Sequence[str]) -> str:
        """Return a day or an hour of a reminder's text that was not said; read on another day, tomorrow is wrong."""
        words = [inner for one in self._request.tokens for inner in tokenize(one.raw)]
        said = {one.text for one in words}
        hours = [one for one in read_times(words).features if one[0] == "hour"]
        for one in (token for value in values for token in tokenize(value) if token.text not in said):
            for feature in times_of(one.raw).features:
                if feature[0] == "day" or (feature[0] == "hour" and not any(same_hour(of, feature) for of in hours)):
                    return one.raw
        return ""

    def _misquotes(self, argument: Argument) -> bool:
        """Return True if a text is one of the quotations with different case, accents or punctuation."""
        values = {_letters(str(one)): str(one) for one in plain_values(argument.value)}
        found = [(one.raw, values.get(_letters(one.raw))) for one in self._ask.tokens if one.kind is Kind.QUOTE]
        return any(value is not None and not is_written_so(quote, value) for quote, value in found)

    def _holds_more(self, argument: Argument) -> bool:
        """Return True if a text has words of the ask that are outside the dictated text."""
        ask = self._ask
        if ask.verbatim:
            return False
        quoted = {one.text for one in ask.tokens if one.kind is Kind.QUOTE}
        said = f" {' '.join(one.text for one in ask.tokens)} "
        texts = [str(one) for one in plain_values(argument.value) if fold(str(one).strip()) not in quoted]
        found = [said_beside(tokenize(one), ask.lexicon) for one in texts]
        return any(one and f" {one} " in said for one in found)

    def _makes(self) -> bool:
        """Return True if the tool takes a generated content, as a file or a message does; not a memory or reminder."""
        return not self._call.effects & {"remember", "remind"}

    def _leftover(self, *, has_content: bool, has_dates: bool) -> Fault | None:  # noqa: C901 - one case for each
        """Return the first word of the ask that nothing in the call corresponds to."""
        ask, words = self._ask, self._ask.lexicon
        names = {stem for one in self._call.arguments for name in _names_in(one) for stem in names_of(name)}
        verb = ask.labels.index(Label.VERB)
        last = next((one for one in reversed(ask.tokens) if one.kind is not Kind.MARK), None)
        if last is None or (last.text in _AFTERWARDS and not has_dates):
            return Fault("leftover", "" if last is None else last.raw)
        if "undo" in self._call.effects and (more := [one.raw for one in ask.tokens if one.text in _MORE_THAN_ONE]):
            return Fault("leftover", more[0])
        for at, (token, label) in enumerate(zip(ask.tokens, ask.labels, strict=True)):
            if at in self._used or at in self._answered or token.kind in {Kind.MARK, Kind.BREAK}:
                continue
            if label is Label.TIME and not has_dates and (not has_content or at < verb) and token.text not in _AT_ONCE:
                return Fault("leftover", token.raw)
            if label in _LEFT or token.stem in self._call.nouns or token.stem in names:
                continue
            if token.text in (_UNDONE if "undo" in self._call.effects else _SAYING if label is Label.CONTENT else ()):
                continue
            if label in {Label.CONTENT, Label.QUOTE, Label.SOURCE} and has_content:
                continue
            if token.kind is Kind.WORD and (words.holds("stop", token.text) or token.text in _JOINTS):
                continue
            if token.text in CURRENCIES and any(one.role == "amount" for one in self._call.arguments):
                continue
            if self._is_of_item(token) or self._is_of_name(at):
                continue
            if token.kind in {Kind.LITERAL, Kind.NUMBER, Kind.WORD} and self._is_joined(at):
                continue
            if value_of(token.text) is not None and token.kind is Kind.WORD and _quota(ask) != 1:
                continue
            return Fault("leftover", token.raw)
        return None

    def _is_of_name(self, place: int) -> bool:
        """Return True if a word before a name is part of the name: the queue file, queue.txt."""
        ask = self._ask
        before = ask.tokens[place + 1 : place + 2]
        if not before or before[0].stem not in self._call.nouns:
            return False
        used = (ask.tokens[at] for at in self._used)
        return any(
            one.kind is Kind.LITERAL
            and is_file_name(one.text)
            and ask.tokens[place].text in _NAME_PARTS.split(one.text)
            for one in used
        )

    def _is_of_item(self, token: Token) -> bool:
        """Return True if a word names or picks a listed object that the call is about."""
        if any(in_item(token, one) or (one.picked and token.text in _SUPERLATIVES) for one in self._items):
            return True
        return self._item is not None and in_item(token, self._item)

    def _is_joined(self, place: int) -> bool:
        """Return True if a literal is in one list with a literal of the call."""
        ask = self._ask
        for step in (-1, 1):
            at, joints = place + step, 0
            while 0 <= at < len(ask.tokens) and (
                ask.tokens[at].text in _JOINTS or ask.labels[at] in {Label.ARTICLE, Label.GOAL}
            ):
                joints += ask.tokens[at].text in _JOINTS
                at += step
            if (
                joints
                and 0 <= at < len(ask.tokens)
                and at in self._used
                and _are_alike(ask.tokens[at], ask.tokens[place])
            ):
                return True
        return False


def _is_less(other: tuple[int, int], mine: tuple[int, int]) -> bool:
    """Return True if another item fits worse: fewer words in all, or as many of which fewer are in its name."""
    return other[1] < mine[1] or (other[1] == mine[1] and other[0] < mine[0])


def _names_in(argument: Argument) -> Iterator[str]:
    """Return the name of an argument, and the field names of the objects in it."""
    yield argument.name
    for one in argument.value if isinstance(argument.value, list) else ():
        yield from one if isinstance(one, dict) else ()


def _is_name_of_file(token: Token) -> bool:
    return token.kind in {Kind.QUOTE, Kind.LITERAL} and is_file_name(token.text)


def _letters(text: str) -> str:
    return "".join(one for one in fold(text) if one.isalnum())


def _is_form_of(said: str, word: str) -> bool:
    """Return True if words differ at most in their ending: broken, break; but not production-eu, production."""
    said = said.removesuffix("'s").partition(".")[0]
    return said == word or (said[:STEM] == word[:STEM] and said.isalpha() and word.isalpha())


def _are_alike(first: Token, second: Token) -> bool:
    """Return True if two tokens may be in one list: Clara and Hugo, but not Clara and a ham."""
    named = first.raw[:1].isupper() == second.raw[:1].isupper()
    return first.kind is second.kind and (named or first.kind is not Kind.WORD)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _WORD and value.strip().isalnum()


def _is_end(argument: Argument) -> bool:
    return "end" in argument.name.split("_") or argument.name in {"until", "to", "finish"}


def _moment(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value)).replace(tzinfo=None)
    except ValueError:
        return None


def _hours(said: frozenset[Feature]) -> int:
    return sum(one[0] == "hour" for one in said)


def _lasts(length: timedelta, said: Sequence[Feature]) -> bool:
    """Return True if a duration is as stated, or at most what people take for granted."""
    minutes = int(length.total_seconds() // 60)
    if said:
        return any(minutes == int(str(one[1])) * _MINUTES.get(str(one[2]), 0) for one in said)
    return 0 < minutes <= _GRANTED or minutes == _MINUTES["d"]


def _says(argument: Argument) -> bool:
    return any(str(one).strip() for one in plain_values(argument.value))


def _is_repeat(argument: Argument) -> bool:
    return (
        isinstance(argument.value, str) and bool(argument.value) and argument.name in {"repeat", "recurrence", "every"}
    )
