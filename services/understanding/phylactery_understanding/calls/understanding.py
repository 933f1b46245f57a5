"""Comparison of a proposed call with what was asked for.

A call is understood when an ask yields it: the same effect, every argument from its own place in the ask, and no word
of the ask left over. Both directions count: an argument that was not mentioned and a word that no argument corresponds
to are each a reason to ask the person.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from phylactery_understanding.calls.comparison import Comparison
from phylactery_understanding.calls.content.description import stated
from phylactery_understanding.calls.forms import asks, fault_of, is_readable, read_form
from phylactery_understanding.calls.leftover import quota
from phylactery_understanding.calls.proposal import (
    ENDING,
    NOTHING,
    Call,
    Level,
    Understanding,
    ends_reminders,
    is_named,
)
from phylactery_understanding.language.lexicon import Lexicon
from phylactery_understanding.language.text import STOPS, Kind, Token, is_file_name
from phylactery_understanding.language.times import read_times
from phylactery_understanding.language.vocabulary import word_set
from phylactery_understanding.requests.model import ARTIFACTS, Ask, Fault, Label, Request
from phylactery_understanding.requests.operators import told_why
from phylactery_understanding.requests.parser import parse
from phylactery_understanding.requests.verbs import OF

RECURRING: Final = frozenset({"remind", "remember", "notify", "tell", "wake", "order", "book", "subscribe"})
_NEAR: Final = 3
_DATIVE: Final = word_set("forbidden_fillers")
_FOR_NOW: Final = word_set("for_now")
GENERIC: Final = frozenset(
    """
    create add make put update change set delete remove edit move open give read record pass
    """.split()
)
"""Meanings of verbs that are vague: their object must determine the effect."""
_READING: Final = frozenset({"read"})
TELLING: Final = frozenset({"tell", "ask", "notify", "reply", "greet", "report", "message", "announce"})
"""Meanings of verbs of speech: sending an amount does not say anything with it."""
_OF_OTHERS: Final = ("source", "goal", "report")
"""Classes of the words that begin the head of a text, as whose it is: from the newsletter, según Ana."""
_WHOSE: Final = ("source", "report")
_KEPT: Final = frozenset({"remember", "remind"})
_KEEPING: Final = frozenset({"remember", "remind", "record", "learn", "notify", "wake", "schedule", "book"})
_COMPOSING: Final = frozenset({"compose", "make", "create", "draft", "write"})
_MINE: Final = word_set("for_me")
_REWORDING: Final = word_set("rewording")
_LEADS: Final = ("please", "greet", "polite")


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
        for one in (ask, ask.joined):
            if one is None or best.level is Level.CLEAR or (one is not ask and not _adds_to(ask, call)):
                continue
            if best.level is Level.HALF and (one.fault is not None or _whole_fault(newest, call) is not None):
                continue  # a faulty ask yields no more than half
            found = _by(newest, one, call)
            if found.level > best.level:
                found = used_up(replace(found, index=place), used, done)
                best = max(best, found, key=lambda one: one.level)
    if best.level is not Level.CLEAR:
        best = max(best, used_up(_filled_in(newest, call), used, done), key=lambda one: one.level)
    if best.level is not Level.CLEAR and ends_reminders(call) and (ended := _ended(newest)) is not None:
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
    pointing = copy(newest)  # with what is kept of its words
    pointing.asks = asks
    return pointing


def _ended(request: Request) -> Request | None:
    """Return the request of a person who no longer needs a reminder: I don't need the 5pm one any more."""
    said = [one for one in request.tokens if one.kind is not Kind.BREAK]
    texts, words = [one.text for one in said], request.lexicon
    at = 0
    while at < len(said) and not words.match("unneeded", texts, at):
        size = words.longest(("please", "greet"), texts, at)
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
    return any(same_effect(ask, call) for ask in request.asks) or any(
        form in request.forms and (not beside or not beside.isdisjoint(request.stems)) for form, beside in call.phrases
    )


def _forbids(request: Request, call: Call) -> bool:
    """Return True if a message forbids exactly what a call does: don't send it, no lo borres."""
    words = request.lexicon
    for behind in request.negations:
        for at, form in enumerate(request.texts[behind : behind + _NEAR], behind):
            if form in _DATIVE or words.holds("polite", form):
                continue
            verbs = words.verb(form)
            # Wanting a recurring thing no more is asking for its end: don't remind me of it.
            ends = RECURRING if call.effects & ENDING else frozenset[str]()
            if any(verb.meanings & (call.effects - ends) for verb in verbs):
                if at in told_why(words, request.texts):
                    break
                return not any(one.fault is None and same_effect(one, call) for one in request.asks)
            break
    return False


def _adds_to(ask: Ask, call: Call) -> bool:
    """Return True if an ask about the one before it is a part of the same call: open an issue and assign it to Priya.

    Of a text, another effect's words are none: write that it is new, then post it.
    """
    values = [str(one.value) for one in call.arguments if isinstance(one.value, str) and one.role != "content"]
    return same_effect(ask, call) or any(is_named(one, value) for one in ask.tokens for value in values)


def _told(request: Request, call: Call) -> bool:
    """Return True if the user explicitly stated what is to be remembered."""
    if request.fault is not None or any(one.fault is not None for one in request.asks) or not request.statements:
        return False
    values = [str(one.value) for one in call.arguments if isinstance(one.value, str) and not one.default]
    said = []
    for clause in request.statements:
        texts, words, at = [one.text for one in clause], request.lexicon, 0
        while at < len(texts) and (size := words.longest(_LEADS, texts, at)):
            at += size
        meant = {meaning for one in texts[at:] for verb in words.verb(one) for meaning in verb.meanings}
        if "forget" in meant or ("remember" in meant and any(words.holds("negation", one) for one in texts[at:])):
            return False  # forget that; you need not remember it
        if at < len(texts) and texts[at] in _REWORDING:
            return False
        if _is_announced(clause[at:], words) or (at < len(texts) and words.match("idiom", texts, at)):
            return False
        said.extend(clause[at:])
    return stated(values, said, request.lexicon)


def _is_announced(said: Sequence[Token], words: Lexicon) -> bool:
    """Return True if somebody else's text is announced that asks to remember: from the mail: remember that …."""
    keeps = next(
        (at for at, one in enumerate(said) if any("remember" in of.meanings for of in words.verb(one.text))), 0
    )
    head, behind = [one.text for one in said[:keeps]], [one for one in said[keeps + 1 :] if one.kind not in STOPS]
    of_others = ":" in head or ("," in head and words.holds_any(_OF_OTHERS, head[0]))
    return of_others and bool(behind)  # my birthday is in May, remember it


def _is_of_others(ask: Ask) -> bool:
    """Return True if what is before an ask with a text says whose text it is: from the newsletter, remember that …."""
    texts, words, at = [one.text for one in ask.before], ask.lexicon, 0
    while at < len(texts) and (size := words.longest(_LEADS, texts, at)):
        at += size
    named = at < len(texts) and (words.longest(_WHOSE, texts, at) or texts[at] in OF)
    return bool(named) and any(ask.of(Label.CONTENT, Label.QUOTE)) and not read_times(ask.before).features


def _is_for_reader(ask: Ask, call: Call) -> bool:
    """Return True if an ask is for words that the requester gets now, and the call keeps them or reminds of them.

    Give me ideas for tomorrow, prepare a menu for Friday: what names a memory, a reminder or a note asks to keep it.
    """
    if call.effects.isdisjoint(_KEPT) or not ask.verb.meanings.isdisjoint(_KEEPING) or _hears(ask, call):
        return False
    if not call.nouns.isdisjoint(ask.stems):
        return False
    verb = ask.labels.index(Label.VERB)
    mine = ask.verb.joined in _MINE or any(one.text in _MINE for one in ask.tokens[verb + 1 : verb + 2])
    made = not ask.verb.meanings.isdisjoint(_COMPOSING) and "put" not in ask.verb.meanings
    return mine or (made and any(one.text in ARTIFACTS for one in ask.tokens))


def _by(request: Request, ask: Ask, call: Call) -> Understanding:
    if not same_effect(ask, call) or _is_for_reader(ask, call):
        return NOTHING
    said = tuple(one.raw for one in ask.tokens[:12])
    whole = _whole_fault(request, call)
    others = "remember" in call.effects and _is_of_others(ask) and Fault("report", ask.before[0].raw)
    fault = ask.fault or whole or others or Comparison(request, ask, call).fault()
    if fault is None:
        return Understanding(Level.CLEAR, ask.form, said, None, quota(ask))
    level = Level.HALF if _is_about(ask, call) else Level.NONE
    return Understanding(level, ask.form, said, fault, 1)


def _whole_fault(request: Request, call: Call) -> Fault | None:
    """Return the fault of a message for a call: what takes it all back asks for an undo (oops, undo that)."""
    fault = request.fault
    return None if fault is not None and fault.kind == "retraction" and "undo" in call.effects else fault


def same_effect(ask: Ask, call: Call) -> bool:
    """Return True if the verb of an ask may mean a call's effect."""
    if _hears(ask, call):
        return True
    pays = any(one.role == "amount" and one.control for one in call.arguments)
    meanings = ask.verb.meanings - TELLING if pays else ask.verb.meanings
    return any(not meanings.isdisjoint(ask.lexicon.yields(effect)) for effect in call.effects)


def _hears(ask: Ask, call: Call) -> bool:
    """Return True if an ask has a verb of the tool's phrases, with a word that accompanies it there."""
    return any(not beside or not beside.isdisjoint(ask.stems) for beside in call.spoken.get(ask.form, ()))


def _is_about(ask: Ask, call: Call) -> bool:
    """Return True if an ask is for the tool's purpose, and not for another meaning of an ambiguous verb."""
    if ask.fault is not None and ask.fault.kind == "question":
        return False
    if ask.verb.meanings == _READING:
        return call.reads
    if not ask.verb.meanings & GENERIC or ask.verb.meanings & call.effects - GENERIC:
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
