"""The facts of a task about one call: the request, the origin of its values, and signals in its contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from phylactery_understanding.calls.proposal import Level, Understanding

from phylactery_riskgate.domain.facts.amounts import as_said
from phylactery_riskgate.domain.facts.argument_types import one_form
from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.languages import MONTHS, PEOPLE, WEEKDAYS
from phylactery_riskgate.domain.intent.model import (
    FOREIGN,
    LISTED,
    NAMED,
    NOBODY,
    POINTED,
    UNSHOWN,
    Evidence,
    FormRun,
    Heard,
    TaskFacts,
)
from phylactery_riskgate.domain.intent.origin.literals import number
from phylactery_riskgate.domain.intent.origin.origins import (
    BY_ASK,
    FIELD_OF,
    IDLE,
    OTHER_TEXT,
    TEXT_OF,
    UNSEEN,
    Argument,
    Found,
    origin,
)
from phylactery_riskgate.domain.intent.origin.prints import prints
from phylactery_riskgate.domain.intent.origin.signals import content_signals
from phylactery_riskgate.domain.intent.origin.unseen import unseen_signals
from phylactery_riskgate.domain.intent.phrases import nouns, picks, stem
from phylactery_riskgate.domain.intent.reading import MAX_VALUE
from phylactery_riskgate.domain.intent.understood import (
    NO_USES,
    Uses,
    confirmed,
    is_from_user,
    is_in_text,
    understood,
)
from phylactery_riskgate.domain.intent.words import is_value
from phylactery_riskgate.domain.model import BoundCall, CatalogTool, Json, Role
from phylactery_riskgate.domain.pointers import pointer

MAX_LEAVES: Final = 500
"""The number of values of one argument that are examined; an argument with more is foreign."""
_TOO_MANY: Final = "more values than are looked at"
MAX_DISTINCT: Final = 100
"""The number of different values of one call that are examined, those of its control arguments first."""

_SMALL_SIZE: Final = 30_000
"""The size of a task, in values and prints, whose facts take milliseconds to compute. The largest takes a second."""
_SMALL_UNREAD: Final = 500
"""The size of what was not read ahead that is read for a call in about the time a thread switch takes."""
_FEW_RESULTS: Final = 100

_TELLING: Final = 4
"""The minimum number of letters of a word that can be a name."""
_SHORT_MESSAGES: Final = 16_000
"""The number of characters of messages, once they are read, that a call is compared with in milliseconds."""
_REACHED: Final = frozenset({"principal", "url"})
"""Roles of the recipient or target of a call."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: str
    value: Any
    limited: bool
    default: bool


@dataclass(frozen=True, slots=True)
class IndexReader:
    """A source of call facts, computed from what RiskGate was shown of a task."""

    index: TaskIndex
    uses: Callable[[BoundCall], Uses] | None = None
    """Returns the uses of the asks so far; None if there are none."""
    retracted_by: Callable[[CatalogTool, BoundCall, str], str] | None = None
    """Returns the task whose words retracted a call or the ask it uses; empty if there is none."""
    form_run: FormRun | None = None
    """The form that submits the call."""

    def __call__(self, tool: CatalogTool, bound: BoundCall) -> TaskFacts:
        """Return the facts of a call."""
        facts = task_facts(self.index, tool, bound, NO_USES if self.uses is None else self.uses(bound))
        facts = replace(facts, form_run=self.form_run)
        by = "" if self.retracted_by is None else self.retracted_by(tool, bound, facts.ask)
        return facts if not by else replace(without_ask(facts), refused=True, retracted=by)

    @property
    def work(self) -> int:
        """Return 0 if that takes milliseconds, otherwise the size of what is read: it should not block others."""
        index, said = self.index, self.index.characters
        small = index.size <= _SMALL_SIZE and index.unread <= _SMALL_UNREAD and said <= _SHORT_MESSAGES
        small = small and len(index.results) <= _FEW_RESULTS
        return 0 if small else index.size + said


def task_facts(index: TaskIndex | None, tool: CatalogTool, bound: BoundCall, uses: Uses = NO_USES) -> TaskFacts:
    """Compute the facts of a call; only its arguments are examined."""
    if index is None:
        return UNSHOWN
    leaves = {
        name: list(_leaves(value, pointer((name,)), _property(tool.schema, name)))
        for name, value in as_said(tool, bound.arguments).items()
    }
    told_of = dict(_evidence(index, tool, leaves))
    evidence = tuple(sorted(told_of, key=lambda one: (-one.origin, one.path)))
    known = understood(index, tool, bound, lambda path: role_of(tool, path), uses)
    if known.level is Level.CLEAR:
        evidence = tuple(
            one if one.origin == NAMED or one.place == _TOO_MANY else replace(one, origin=NAMED, place=BY_ASK)
            for one in evidence
        )
    if tool.effect == "read" and known.fault is not None and known.fault.kind == "value":
        evidence = _mentioned(tool, evidence)
    control = [one for one in evidence if is_covered(one.path, tool.controls)]
    told = list(
        dict.fromkeys(content_signals(index, _contents(tool, leaves), _reached(tool, evidence), _files(tool, leaves)))
    )
    asked = known.level is Level.CLEAR
    told += unseen_signals(index, tool, bound, _replaced(tool, leaves), list(_contents(tool, leaves)), asked=asked)
    if any(len(of_one) >= MAX_LEAVES for of_one in leaves.values()):
        told.append((1, _TOO_MANY))
    found = [one for of in control or evidence for one in told_of.get(of, ((of.origin, of.place),))]
    yes = confirmed(index, tool)
    foreign = _is_from_others(index, found, evidence, known)
    half = replace(known, level=Level.HALF, words=yes or known.words)
    return TaskFacts(
        shown=True,
        intent=max(int(known.level), 0),
        intent_words=known.words,
        arguments=evidence,
        worst=max((one.origin for one in control or evidence), default=LISTED),
        signals=max((level for level, _ in told), default=0),
        signal_reasons=tuple(reason for _, reason in told),
        refused=known.level is Level.REFUSED,
        foreign=foreign,
        understood_by=known.by if known.level is Level.CLEAR else NOBODY,
        missing=(known.fault.kind, known.fault.words) if known.fault else ("", ""),
        ask=known.ask,
        quota=known.quota,
        used=uses.counts.get(known.ask, 0),
        authorship=index.authorship,
        heard=Heard(
            by_user=known.level in {Level.HALF, Level.CLEAR} or is_from_user(index, tool),
            in_text=is_in_text(index, tool),
            confirmed=bool(yes),
        ),
        pointed=foreign and known.level is Level.NONE and not _is_from_others(index, found, evidence, half),
        own=any(level == NAMED and place not in IDLE for level, place in found),
        read=bool(index.results),
    )


def uses_ask(facts: TaskFacts, tool: CatalogTool) -> bool:
    """Return True if a call that these facts allow has an effect that uses up its ask."""
    return bool(facts.ask) and facts.understood_by != NOBODY and tool.effect != "read"


def without_ask(facts: TaskFacts) -> TaskFacts:
    """Return the facts as if no ask yielded the call: values that only the ask named have no known origin."""
    arguments = tuple(replace(one, origin=FOREIGN) if one.place == BY_ASK else one for one in facts.arguments)
    worst = FOREIGN if arguments != facts.arguments else facts.worst
    return replace(facts, intent=0, understood_by=NOBODY, arguments=arguments, worst=worst)


def _mentioned(tool: CatalogTool, evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Give addresses at best the origin of a text the user pointed to: the request only mentions them."""
    return tuple(
        replace(one, origin=max(one.origin, POINTED), place="an address that is only mentioned")
        if role_of(tool, one.path) == "url"
        else one
        for one in evidence
    )


def _is_from_others(
    index: TaskIndex, control: Sequence[Found], evidence: Sequence[Evidence], known: Understanding
) -> bool:
    """Return True if a control argument is foreign, or a text states what the user does not."""
    return known.level is not Level.CLEAR and (_is_foreign(index, control, known) or _is_dictated(evidence, known))


def _is_foreign(index: TaskIndex, control: Sequence[Found], known: Understanding) -> bool:
    """Return True if a control argument is foreign: from a text the user did not point to, or from any without an ask.

    Pointing to a text only to have it read does not request anything it contains. With a request, a text that contains
    the name the user gave, as a contact list does, may hold the intended value.
    """
    if all(level < POINTED for level, _ in control):
        return False
    unasked = known.level is Level.NONE
    least = POINTED if unasked or _spells_out(index, known.words) else FOREIGN
    foreign = [place for level, place in control if level >= least and not _is_data(place)]
    if unasked or not all(place.startswith(OTHER_TEXT) for place in foreign):
        return bool(foreign)
    return bool(foreign) and not _is_called(index, known.words)


def _is_dictated(evidence: Sequence[Evidence], known: Understanding) -> bool:
    """Return True if a text states several arguments, the user none, and they asked for no such effect either."""
    told = [one for one in evidence if one.place.startswith((TEXT_OF, OTHER_TEXT))]
    stated = [one for one in evidence if one.place not in IDLE]
    return known.level is Level.NONE and len(told) > 1 and len(told) == len(stated)


def _is_data(place: str) -> bool:
    """Return True if no text names a value: it is in none, or a tool returned it as all of a field."""
    return place in UNSEEN or place.startswith(FIELD_OF)


def _spells_out(index: TaskIndex, said: Sequence[str]) -> bool:
    """Return True if the ask names its own target: then a text that was read does not name another."""
    return any(is_value(word) and word not in index.read_with for word in map(folding.fold, said))


def _is_called(index: TaskIndex, said: Sequence[str]) -> bool:
    """Return True if a name in the ask occurs in a text that was read."""
    names = [folding.fold(one) for one in said[1:] if one.isalpha() and one[0].isupper() and len(one) >= _TELLING]
    return any(
        result.all_prints.issuperset(prints([one]))
        for result in index.results
        for one in names
        if one not in MONTHS and one not in WEEKDAYS
    )


def _reached(tool: CatalogTool, evidence: Sequence[Evidence]) -> int:
    """Return the origin of the call's recipient or target."""
    return max((one.origin for one in evidence if role_of(tool, one.path) in _REACHED), default=NAMED)


def _evidence(
    index: TaskIndex, tool: CatalogTool, leaves: dict[str, list[_Leaf]]
) -> Iterator[tuple[Evidence, tuple[Found, ...]]]:
    """Yield the evidence for each argument, and that of its values one by one."""
    by_order, called, nobody = picks(index.words, tool), nouns(tool), speaks_of_nobody(index)
    written = frozenset(_norm(leaf.value) for of_one in leaves.values() for leaf in of_one)
    known: dict[tuple[Any, ...], Found] = {}
    for name, of_one in sorted(leaves.items(), key=lambda one: not is_covered(pointer((one[0],)), tool.controls)):
        if not of_one:
            continue
        found: Found = (NAMED, "")
        each: set[Found] = set()
        for leaf in of_one:
            role = role_of(tool, leaf.path)
            key = (role, name, type(leaf.value), leaf.value, leaf.limited, leaf.default)
            if key not in known:
                if len(known) >= MAX_DISTINCT:
                    found = (FOREIGN, _TOO_MANY)
                    break
                known[key] = origin(
                    index,
                    Argument(
                        role=role,
                        name=name,
                        value=leaf.value,
                        beside=written,
                        picks=by_order,
                        nouns=called,
                        limited=leaf.limited,
                        default=leaf.default,
                        unspoken=nobody and _is_optional(tool, name) and not _is_said(index, name),
                    ),
                )
            found = max(found, known[key])
            each.add(known[key])
        if len(of_one) >= MAX_LEAVES:
            found = FOREIGN, _TOO_MANY
        yield Evidence(pointer((name,)), found[0], found[1]), tuple(sorted({*each, found}))


def _is_optional(tool: CatalogTool, name: str) -> bool:
    """Return True if the schema says that an argument is optional; without a list of required ones it does not."""
    return name in tool.schema.get("properties", {}) and name not in tool.schema.get("required", (name,))


def _is_said(index: TaskIndex, name: str) -> bool:
    """Return True if the user mentioned an argument by its name: cc, participants."""
    return any(stem(one) in index.stems for one in folding.atoms_of(folding.fold(name)))


def _norm(value: Any) -> str:
    if not isinstance(value, str):
        return number(value)
    return " ".join(folding.tokens(folding.fold(value))) if len(value) <= MAX_VALUE else ""


def _contents(tool: CatalogTool, leaves: dict[str, list[_Leaf]]) -> Iterator[str]:
    for of_one in leaves.values():
        for leaf in of_one:
            if isinstance(leaf.value, str) and role_of(tool, leaf.path) == "content":
                yield leaf.value


def _files(tool: CatalogTool, leaves: dict[str, list[_Leaf]]) -> list[str]:
    """Return the normal forms of the paths of a call."""
    return [_norm(leaf.value) for of_one in leaves.values() for leaf in of_one if leaf.path in tool.paths]


def _replaced(tool: CatalogTool, leaves: dict[str, list[_Leaf]]) -> list[str]:
    """Return the paths and objects that a content of the call is written to; without a content there are none."""
    texts = [leaf for of_one in leaves.values() for leaf in of_one if isinstance(leaf.value, str)]
    places = [leaf for leaf in texts if leaf.path in tool.paths or role_of(tool, leaf.path) == "object"]
    return [leaf.value for leaf in places] if len(places) < len(texts) else []


def _leaves(value: Any, path: str, schema: Json) -> Iterator[_Leaf]:
    """Yield the scalar values of an argument; those of a list have the list's own path."""
    waiting: list[tuple[str, Any, Json]] = [(path, value, schema)]
    count = 0
    while waiting and count < MAX_LEAVES:
        place, one, form = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(
                (place + pointer((key,)), inside, _property(form, key)) for key, inside in reversed(one.items())
            )
        elif isinstance(one, list):
            waiting.extend((place, inside, _items(form)) for inside in reversed(one))
        elif one is not None:
            count += 1
            default = "default" in form and form["default"] == one and type(form["default"]) is type(one)
            yield _Leaf(place, one, "enum" in form or "const" in form, default)


def _property(schema: Any, name: str) -> Json:
    form, _, _ = one_form(schema)
    found = form.get("properties", {}).get(name)
    return dict(one_form(found)[0]) if isinstance(found, dict) else {}


def _items(schema: Json) -> Json:
    found = schema.get("items")
    return dict(one_form(found)[0]) if isinstance(found, dict) else {}


def is_covered(path: str, by: tuple[str, ...]) -> bool:
    """Return True if a pointer leads to, below or above one of the given pointers."""
    return any(path == one or path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in by)


def role_of(tool: CatalogTool, path: str) -> Role:
    """Return an argument's role: that of the longest pointer that covers it."""
    if path in tool.roles:
        return tool.roles[path]
    covering = [one for one in tool.roles if path.startswith(f"{one}/")]
    if covering:
        return tool.roles[max(covering, key=len)]
    return "object" if is_covered(path, tool.controls) else "content"


def speaks_of_nobody(index: TaskIndex) -> bool:
    """Return True if no word is a name, an address, or a word for people: with, invite, everyone."""
    words = index.words
    if words.has_address or not PEOPLE.isdisjoint(words.atom_places):
        return False
    return not any(message.has_name for message in index.said)
