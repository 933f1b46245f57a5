"""Matching of a call with the asks of the user's newest messages: task data in the grammar's terms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from unicodedata import category

from phylactery_understanding.calls.content.model import Source
from phylactery_understanding.calls.proposal import (
    CURRENCIES,
    ENDING,
    Argument,
    Call,
    Found,
    Item,
    Level,
    Listing,
    Understanding,
    plain_values,
)
from phylactery_understanding.calls.understanding import GENERIC, TELLING, hears, same_effect, understand
from phylactery_understanding.interpretation.matching import understand_interpreted
from phylactery_understanding.language.lexicon import lexicon
from phylactery_understanding.language.text import STEM, fold, tokenize, written
from phylactery_understanding.replies.behind import Behind
from phylactery_understanding.replies.retraction import forbids
from phylactery_understanding.requests.model import Fault, Request
from phylactery_understanding.requests.parser import parse

from phylactery_riskgate.domain.facts.amounts import as_said
from phylactery_riskgate.domain.intent import folding, spelling
from phylactery_riskgate.domain.intent.hearing import ANYTHING, meanings_of, request_number
from phylactery_riskgate.domain.intent.index import LOOK, Result, TaskIndex
from phylactery_riskgate.domain.intent.languages import SMALL
from phylactery_riskgate.domain.intent.listing import is_key
from phylactery_riskgate.domain.intent.model import CONFIRMED
from phylactery_riskgate.domain.intent.origin.literals import number
from phylactery_riskgate.domain.intent.origin.naming import Value, telling
from phylactery_riskgate.domain.intent.origin.prints import prints, token_prints
from phylactery_riskgate.domain.intent.reading import argument_values
from phylactery_riskgate.domain.intent.said import Message
from phylactery_riskgate.domain.model import Asks, BoundCall, CatalogTool

Roles = Callable[[str], str]
_MOST_ITEMS: Final = 200
"""The field that the result of a look at a file has if the file exists."""
_PERSONS: Final = frozenset({"principal", "url"})
_MOST_VALUES: Final = 20
_TWO_WORDS: Final = 2
"""The number of prints that two equal words have: one for the word, one for both."""
_PAIR: Final = 2
USED_UP: Final = "used-up"
"""The fault of an ask that would yield the call but was carried out already."""


class Uses(NamedTuple):
    """The number of effects each ask has had, by its name, and the asks that had this very call."""

    counts: Mapping[str, int] = MappingProxyType({})
    done: Collection[str] = ()

    def of(self, names: Sequence[str]) -> tuple[dict[int, int], list[int]]:
        """Return the uses of some asks, by their positions."""
        if not self.counts and not self.done:
            return {}, []
        counts = {place: self.counts[name] for place, name in enumerate(names) if name in self.counts}
        return counts, [place for place, name in enumerate(names) if name in self.done]


NO_USES: Final = Uses()


class _Kind(NamedTuple):
    effects: frozenset[str]
    phrases: tuple[tuple[str, frozenset[str]], ...]
    nouns: frozenset[str]


def understood(
    index: TaskIndex, tool: CatalogTool, bound: BoundCall, role: Roles, uses: Uses = NO_USES
) -> Understanding:
    """Return how far the newest of a task's messages asks for a call.

    A message that is only a clear yes confirms the message before it, and nothing else: it yields no more than that
    message did. Pasted text does not ask for anything, and with text that may be pasted in the message, nothing is
    asked for clearly. A yes beside what others wrote may be a yes to that. What a result shows to be done is not asked
    for once more.
    """
    known = _understood(index, tool, bound, role, uses)
    if known.level is Level.CLEAR and known.ask and _was_done(index, tool, bound, known):
        return replace(known, level=Level.HALF, fault=Fault(USED_UP, ""))
    return known


def _was_done(index: TaskIndex, tool: CatalogTool, bound: BoundCall, known: Understanding) -> bool:
    """Return True if the results since the message that asks show as many effects on this target as it asks for.

    Redeem counts what an ask yields. What a person approved is not counted there, as it may be of no ask; with it the
    ask has had its effect, too. Of a set no number is known: there only the very same call is one too many.
    """
    asking = index.asking
    if asking is None or tool.effect == "read":
        return False
    controls = {one.removeprefix("/") for one in tool.controls} if known.quota else set()
    given = {name: value for name, value in bound.arguments.items() if value is not None}
    wanted = argument_values({name: given[name] for name in controls & given.keys()} or given)
    if not wanted:
        return False
    seen = sum(
        result.made and result.tool == tool.name and set(wanted).issubset(result.arguments)
        for place, result in enumerate(index.results)
        if not index.is_shown_before(place, asking.place)
    )
    call = Call(tool.name, *_kind(tool.name, tool.asks), ())
    alike = sum(same_effect(ask, call) for ask in asking.request.asks)
    return seen >= (known.quota or 1) + max(0, alike - 1)


def _understood(index: TaskIndex, tool: CatalogTool, bound: BoundCall, role: Roles, uses: Uses) -> Understanding:
    asking = index.asking
    if asking is None:
        return Understanding(Level.NONE)
    if asking.denies:
        return Understanding(Level.REFUSED)
    place, newest, amendment = asking.place, asking.request, asking.amendment
    to_others = any(index.pasting[place + 1 :])
    call = _call(index, tool, bound, role, place)
    names = [ask_id(index.tasks[place], number) for number in range(max(1, len(newest.asks)))]  # a form is one ask
    known = understand([*asking.earlier, newest], call, *uses.of(names))
    known = _limited(known, newest, asking.settled.behind if amendment is None else (), call)
    known = _in_its_currency(known, newest, tool)
    if (asking.doubted or to_others) and known.level is Level.CLEAR:
        known = replace(known, level=Level.HALF, fault=Fault("pasted", ""), quota=1)
    if known.level is Level.CLEAR and amendment is not None and amendment.corrects:
        # An effect that was carried out is not repeated in another form unless requested: 40 were paid, and then "no,
        # 50".
        done = any(task_of(name) in index.tasks[:place] for name in uses.counts)
        known = replace(known, level=Level.HALF, fault=Fault(USED_UP, known.ask)) if done else known
    known = _named(known, names)
    if known.level is Level.CLEAR:
        return replace(known, by=CONFIRMED) if place + 1 < len(index.messages) else known
    if asking.settled.ends or (known.fault is not None and known.fault.kind == USED_UP):
        return known  # no model reads out of a message what its end takes back or changes
    known = _interpreted(index, place, call, known, uses)
    if known.level is not Level.CLEAR and place + 2 == len(index.messages) and index.said[-1].says_to_do:
        return _interpreted(index, place + 1, call, known, uses)  # should I delete it? – yes, do it
    return known


def _limited(known: Understanding, newest: Request, behind: Sequence[Behind], call: Call) -> Understanding:
    """Return the understanding limited by the words behind its ask, in the same message."""
    ask = newest.asks[known.index] if 0 <= known.index < len(newest.asks) else None
    begins = ask.tokens[0].start if ask is not None and ask.tokens else -1
    # change it to bye: such an ask is itself what leaves the one before it unclear
    amends = ask is not None and ask.refers
    words = [one for one in behind if one.place > begins or (amends and one.place == begins)]
    if not words or known.level not in {Level.CLEAR, Level.HALF}:
        return known
    values = {written(str(value).strip()) for one in call.arguments for value in plain_values(one.value)}
    if any(
        one.everything
        or not one.targets.isdisjoint(values)
        or any(
            forbids(part, call.effects, call.nouns) and (not part.targets or not part.targets.isdisjoint(values))
            for part in one.forbidden
        )
        for one in words
    ):
        return replace(known, level=Level.REFUSED, fault=Fault("retraction", ""))
    doubted = known.level is Level.CLEAR and any(one.doubts or not one.doubted.isdisjoint(values) for one in words)
    return replace(known, level=Level.HALF, fault=Fault("trailing", ""), quota=1) if doubted else known


def _in_its_currency(known: Understanding, newest: Request, tool: CatalogTool) -> Understanding:
    """Return the understanding limited by another currency in the words than the call's: 20 dollars of a euro tool.

    Nobody has to say the currency of a tool that has one alone.
    """
    if known.level is not Level.CLEAR or not tool.amount_currency:
        return known
    ours = tool.amount_currency.lower()
    asks = newest.asks if known.index < 0 else newest.asks[known.index : known.index + 1]
    said = (one for ask in asks for one in ask.tokens)
    other = next((one.raw for one in said if ours not in _currencies_of(one.text, ours)), "")
    return replace(known, level=Level.HALF, fault=Fault("value", other), quota=1) if other else known


def _currencies_of(word: str, unsaid: str) -> Sequence[str]:
    """Return the currencies that a word or sign may name; ``unsaid`` for a word that names none."""
    if word in CURRENCIES:
        return CURRENCIES[word].split()
    return () if any(category(one) == "Sc" for one in word) else (unsaid,)


def ask_id(task_id: str, place: int) -> str:
    """Return the name of an ask: the task whose words contain it, and its number among them."""
    return f"{task_id}/{place + 1}"


def _named(found: Understanding, names: Sequence[str]) -> Understanding:
    """Return the understanding with the name of the ask that yields the call, even if that is used up."""
    yields = found.level is Level.CLEAR or (found.fault is not None and found.fault.kind == USED_UP)
    return replace(found, ask=names[found.index] if yields and found.index >= 0 else "")


def _interpreted(index: TaskIndex, newest: int, call: Call, known: Understanding, uses: Uses) -> Understanding:
    """Return the understanding extended by a model's interpretation of the newest message.

    The interpretation cannot override a refusal, and what a yes confirms stays as well understood as it was.
    """
    for quoted in index.quoted(newest) if known.level is not Level.REFUSED else ():
        back = quoted.back
        if back and any(task_of(name) in index.tasks[newest - back : newest] for name in uses.done):
            continue  # this very call was made already, for the quoted words
        kind = f"m{back}." if back else "m"
        names = [f"{index.tasks[newest]}/{kind}{number + 1}" for number in range(len(quoted.asks))]
        found = _named(understand_interpreted(quoted.asks, quoted.request, call, *uses.of(names)), names)
        known = max(known, found, key=lambda one: one.level)
    return known


def is_heard(tool: CatalogTool, text: str) -> bool:
    """Return True if a text contains a phrase of a tool, or a verb for the effect its name expresses."""
    return _hears(tool, parse(text))


def _hears(tool: CatalogTool, request: Request) -> bool:
    kind = _kind(tool.name, tool.asks)
    return hears(request, Call(tool.name, *kind, ()))


def is_in_text(index: TaskIndex, tool: CatalogTool) -> bool:
    """Return True if a text that was read or passed on asks for a tool: by its name, or by what it does."""
    if not index.results:
        return False
    asking, phrases = _asking(tool.name, tool.asks), _strange_phrases(tool.name, tool.asks)
    wanted = [[print_ for word in phrase for print_ in prints([word])] for phrase in phrases]
    named = prints(folding.tokens(folding.fold(tool.name)))
    return any(
        not asking.isdisjoint(result.requests)
        or any(next(result.items_with(one), None) is not None for one in (named, *wanted))
        or any(words.issuperset(phrase) for phrase in phrases for words in result.titles)
        for result in index.results
    )


def is_from_user(index: TaskIndex, tool: CatalogTool) -> bool:
    """Return True if any of the user's messages asks for a tool, or leaves it to a text what is done."""
    return index.delegates or any(_says(tool, message) for message in index.said)


def confirmed(index: TaskIndex, tool: CatalogTool) -> tuple[str, ...]:
    """Return the words of the earlier messages that ask for a tool, if the newest begins with a yes."""
    if len(index.said) < _PAIR or not index.said[-1].begins_with_yes:
        return ()
    saying = (message for message in index.said[:-1] if _says(tool, message))
    return tuple(raw for message in saying for raw in message.sure_request.raws)


def _says(tool: CatalogTool, message: Message) -> bool:
    """Return True if the user's own part of a message names what a tool does, be it only to ask about it."""
    if not _asking(tool.name, tool.asks).isdisjoint(message.numbers):
        return True
    if any(phrase[0] in message.tokens for phrase in _strange_phrases(tool.name, tool.asks) if phrase):
        return True
    return _hears(tool, message.sure_request)


@lru_cache(maxsize=1_024)
def _asking(name: str, asks: Asks) -> frozenset[int]:
    """Return the numbers by which a text asks for a tool. A vague verb does so with a word for its object only."""
    kind = _kind(name, asks)
    own = kind.effects - GENERIC - TELLING - {"read"}
    meant = {one for effect in kind.effects for one in lexicon().yields(effect)}
    phrases = ((one, beside) for form, beside in kind.phrases for one in meanings_of(form))
    alone = (ANYTHING, *map(request_number, own))
    about = (request_number(one, noun) for one in meant for noun in kind.nouns)
    return frozenset((*alone, *about, *(request_number(one, noun) for one, beside in phrases for noun in beside)))


def task_of(ask: str) -> str:
    """Return the task whose words contain an ask, or an empty string."""
    return ask.rpartition("/")[0]


def kind_of(tool: CatalogTool) -> tuple[frozenset[str], frozenset[str]]:
    """Return the effects of a tool, and the stems of their objects."""
    kind = _kind(tool.name, tool.asks)
    return kind.effects, kind.nouns


def _call(index: TaskIndex, tool: CatalogTool, bound: BoundCall, role: Roles, message: int) -> Call:
    kind = _kind(tool.name, tool.asks)
    schema = tool.schema.get("properties", {})
    arguments = tuple(
        Argument(
            name=name,
            value=value,
            role=role(f"/{name}"),
            control=any(one.removeprefix("/") == name for one in tool.controls),
            items=_items(index, value, message, person=role(f"/{name}") in _PERSONS),
            default=_is_default(schema.get(name), value),
            shared=_shared(index, name, value),
            file=f"/{name}" in tool.paths and tool.effect != "read",
            choices=tuple(map(str, schema.get(name, {}).get("enum", ()))) if isinstance(schema.get(name), dict) else (),
        )
        for name, value in as_said(tool, bound.arguments).items()
        if value is not None
    )
    target = next((one.value for one in arguments if f"/{one.name}" in tool.paths and isinstance(one.value, str)), "")
    return Call(
        tool=tool.name,
        effects=kind.effects,
        phrases=kind.phrases,
        nouns=kind.nouns,
        arguments=arguments,
        reads=tool.effect == "read",
        exists=bool(target) and _exists(index, target),
        read=bool(target) and _was_read(index, target),
        keeps=bool(target) and _keeps(index, target, arguments),
        texts=_texts(index),
        day=index.day,
    )


def _is_default(schema: Any, value: Any) -> bool:
    return (
        isinstance(schema, dict) and "default" in schema and schema["default"] == value and not isinstance(value, bool)
    )


def _items(index: TaskIndex, value: Any, message: int, *, person: bool) -> tuple[Found, ...]:
    """Return the listed items that have the texts of a value in a naming field, as of the message that asks.

    For a recipient, only the item's own field counts: a participant of a meeting that the user named is not the person
    they named.
    """
    if isinstance(value, list):
        return tuple(one for inner in value[:_MOST_VALUES] for one in _items(index, inner, message, person=person))
    if isinstance(value, dict):
        return tuple(one for inner in value.values() for one in _items(index, inner, message, person=person))
    if not isinstance(value, str | int) or isinstance(value, bool):
        return ()
    norm = number(value) if isinstance(value, int) else " ".join(folding.tokens(folding.fold(value)))
    form = spelling.spelled(str(value))
    holding = (
        (place, one)
        for place, result in enumerate(index.results)
        if not result.is_pasted
        for one in result.by_norm.get(norm, ())
        if not (result.made and (person or one.kind[0] != "s"))
        and (is_key(one.field) or (one.kind[0] in "sno" and not person))
        and (isinstance(value, int) or spelling.same(one.written or one.norm, form))
    )
    found = _found(index, message, str(value), holding)
    return tuple(islice(found, _MOST_ITEMS)) or tuple(islice(_in_folder(index, message, value), _MOST_ITEMS))


def _found(index: TaskIndex, message: int, text: str, holding: Iterable[tuple[int, Value]]) -> Iterator[Found]:
    for place, value in holding:
        listing = index.results[place].listing
        item = listing.at(value.item)
        if item is not None:
            yield Found(text, item, listing, index.beside(place), index.is_shown_before(place, message))


def _in_folder(index: TaskIndex, message: int, value: str | int) -> Iterator[Found]:
    """Return the files of a listed folder, where a path is one of them: the folder's path and the name."""
    folder, _, name = str(value).rpartition("/")
    norms = [" ".join(folding.tokens(folding.fold(one))) for one in (folder, name)]
    form = spelling.spelled(name)
    plain = bool(folder and name) and {"", ".", ".."}.isdisjoint(str(value).split("/"))
    return _found(
        index,
        message,
        str(value),
        (
            (place, one)
            for place, result in (enumerate(index.results) if plain else ())
            if not result.made and not result.is_pasted and norms[0] in result.arguments
            for one in result.by_norm.get(norms[1], ())
            if spelling.same(one.written or one.norm, form)
        ),
    )


def _shared(index: TaskIndex, name: str, value: Any) -> tuple[tuple[Item, Listing], ...]:
    """Return the listed items whose field of a name has exactly the texts of a list, each with its listing."""
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        return ()
    wanted = frozenset(" ".join(folding.tokens(folding.fold(one))) for one in value)
    found = (
        (result.listing.at(number), result.listing)
        for result in index.results
        if not result.made and not result.is_pasted
        for number in result.lists.get((name, wanted), ())
    )
    return tuple((item, listing) for item, listing in found if item is not None and all(map(item.holds, value)))


def _exists(index: TaskIndex, path: str) -> bool:
    """Return True if a result showed that a file exists: a listing, a read, or a look that returned its size."""
    norm = " ".join(folding.tokens(folding.fold(path)))
    return _was_read(index, path) or any(
        norm in result.by_norm or (norm in result.arguments and result.shows_file()) for result in index.results
    )


def _was_read(index: TaskIndex, path: str) -> bool:
    return next(_readings(index, path), None) is not None


def _readings(index: TaskIndex, path: str) -> Iterator[Result]:
    """Yield the results of reading a file, the newest first."""
    for result in reversed(index.results):
        if not result.made and result.tool != LOOK and result.is_of(path):
            yield result


def _keeps(index: TaskIndex, path: str, arguments: Sequence[Argument]) -> bool:
    """Return True if the contents of a call have all words of a file as it was last read, with text in one place more.

    Such a place parts two words that followed each other.
    """
    reading = next(_readings(index, path), None)
    if reading is None or reading.cut:
        return False
    words = folding.tokens(folding.fold("\n".join(_written_texts(arguments))))
    held = reading.all_prints
    missing = len(held - token_prints(words, len(words))[0])
    return missing <= (1 if len(held) > _TWO_WORDS else 0)


def _written_texts(arguments: Sequence[Argument]) -> Iterator[str]:
    return (str(value) for one in arguments if one.role == "content" for value in plain_values(one.value))


def _texts(index: TaskIndex) -> Source:
    pointed = [(result, place) for place, result in enumerate(index.results) if index.pointed[place] or result.meant]

    def holds(word: str) -> bool:
        tokens = folding.tokens(folding.fold(word))
        wanted = prints(tokens[:1])
        norm = " ".join(tokens)
        return any(
            (index.pointed[place] and result.all_prints.issuperset(wanted))
            or norm in result.by_norm
            or (bool(result.meant) and result.meant_prints.issuperset(wanted))
            for result, place in pointed
        )

    def named(name: str) -> bool:
        norm = " ".join(folding.tokens(folding.fold(name)))
        return any(norm in result.arguments for result, _ in pointed)

    return Source(holds=holds, named=named, some=bool(pointed))


@lru_cache(maxsize=1_024)
def _kind(name: str, asks: Asks) -> _Kind:
    """Return the effect and the object of a tool, by its name and the phrases of its catalog entry."""
    parts = _parts(name)
    phrases = [_words(one) for one in (*asks.phrases_en, *asks.phrases_es)]
    nouns = {one for phrase in phrases for one in phrase[1:] if one != "*"} | set(parts[1:])
    meanings = _meanings()
    # A name like mv says nothing: then the verbs by which the catalog says people ask for it do.
    effects = {one for one in parts if one in meanings} or _meanings_of([parts[0]])
    effects = effects or _meanings_of(phrase[0] for phrase in phrases if phrase)
    if effects.isdisjoint(ENDING):  # remind me of it, send a mail: no words for what cancels or deletes one
        for noun in (*nouns, *parts):
            effects.update(_MEANT.get(noun, ()))
    heard = {
        (phrase[0], frozenset(one[:STEM] for one in telling(phrase[1:]) if one not in SMALL))
        for phrase in phrases
        if phrase
    }
    return _Kind(
        frozenset(effects),
        tuple(sorted(heard, key=str)),
        frozenset(one[:STEM] for one in telling(nouns | _like(nouns | set(parts)))),
    )


@lru_cache(maxsize=1_024)
def _strange_phrases(name: str, asks: Asks) -> tuple[tuple[str, ...], ...]:
    """Return the words that tell something of a tool's phrases and name, where the lexicon does not have the verb."""
    phrases = [_parts(name), *map(_words, (*asks.phrases_en, *asks.phrases_es))]
    strange = (one for one in phrases if len(one) > 1 and not meanings_of(one[0]))
    return tuple(dict.fromkeys(tuple(word for word in one if word != "*" and word not in SMALL) for one in strange))


def _meanings_of(words: Iterable[str]) -> set[str]:
    return {meaning for word in words for verb in lexicon().verb(word) for meaning in verb.meanings}


@lru_cache(maxsize=1)
def _meanings() -> frozenset[str]:
    words = lexicon()
    return frozenset(words.effects) | {one for some in words.verbs.values() for verb in some for one in verb.meanings}


_MEANT: Final = {
    "reminder": ("remind",),
    "alarm": ("remind",),
    "status": ("set",),
    "mail": ("send",),
    "email": ("send",),
}
_ALIKE: Final = tuple(
    frozenset(group.split())
    for group in (
        "email mail correo mails correos emails e-mail",
        "message mensaje dm md privado interno direct directo note mensajito msg",
        "event meeting appointment reunion evento cita call llamada calendar calendario agenda session sesion",
        "issue ticket bug incidencia tique tarea error task",
        "order pedido compra orden orders",
        "invoice bill factura recibo boleta",
        "reminder alarm alert recordatorio aviso alarma avisito temporizador timer notification",
        "file archivo fichero document documento txt nota note",
        "channel canal room sala",
        "status estado",
        "price precio cost costo coste tarifa",
        "address direccion domicilio",
        "service servicio",
        "config setting configuration configuracion ajuste variable flag key clave",
        "pull request pr mr merge prs",
        "transfer transferencia bizum money dinero plata pasta",
        "refund reembolso devolucion money dinero",
        "replicas replica instances instancias pods",
        "version release versión",
        "repo repository repositorio",
        "comment comentario reply respuesta",
        "memory memoria",
        "page pagina web url site sitio link",
        "account cuenta",
        "production prod produccion staging dev",
    )
)


def _like(nouns: Iterable[str]) -> set[str]:
    wanted = set(nouns)
    return {one for group in _ALIKE if not group.isdisjoint(wanted) for one in group}


def _parts(name: str) -> list[str]:
    split = "".join(f"_{one}" if one.isupper() else one for one in name)
    return [one for one in fold(split).replace(".", "_").replace("-", "_").split("_") if one]


def _words(phrase: str) -> list[str]:
    return [token.text for token in tokenize(phrase)]
