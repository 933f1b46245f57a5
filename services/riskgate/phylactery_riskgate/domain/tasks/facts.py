"""The facts of a task about one call: what was asked, where its values come from, and what its contents give away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from phylactery_riskgate.domain.argument_types import one_form
from phylactery_riskgate.domain.model import BoundCall, CatalogTool, Json, Role
from phylactery_riskgate.domain.pointers import pointer
from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.asking import Asked, asked, nouns, picks
from phylactery_riskgate.domain.tasks.delegating import delegated
from phylactery_riskgate.domain.tasks.index import TaskIndex
from phylactery_riskgate.domain.tasks.literals import number
from phylactery_riskgate.domain.tasks.model import FOREIGN, LISTED, NAMED, POINTED, UNSHOWN, Evidence, TaskFacts
from phylactery_riskgate.domain.tasks.origins import BY_NOBODY, Argument, Found, origin
from phylactery_riskgate.domain.tasks.reading import MAX_VALUE
from phylactery_riskgate.domain.tasks.signals import content_signals
from phylactery_riskgate.domain.tasks.spelled import is_another

MAX_LEAVES: Final = 500
"""Values of one argument that are looked at; one of more is foreign."""
MAX_DISTINCT: Final = 100
"""Different values of one call that are looked at, those of its control arguments first."""

_SMALL_SIZE: Final = 30_000
"""Values and prints of a task whose facts are told in milliseconds. Of the largest task the first take a second."""


_REACHED: Final = frozenset({"principal", "url"})
"""Roles of whom, or what, a call reaches."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: str
    value: Any
    limited: bool
    default: bool


@dataclass(frozen=True, slots=True)
class IndexReader:
    """Tells the facts of calls from what a task was shown."""

    index: TaskIndex

    def __call__(self, tool: CatalogTool, bound: BoundCall) -> TaskFacts:
        """Answers the facts of a call."""
        return task_facts(self.index, tool, bound)

    @property
    def large(self) -> bool:
        """Says whether that may take so long that others should not wait for it."""
        return self.index.size > _SMALL_SIZE


def task_facts(index: TaskIndex | None, tool: CatalogTool, bound: BoundCall) -> TaskFacts:
    """Works out the facts of a call; nothing of the call but its arguments is looked at."""
    if index is None:
        return UNSHOWN
    leaves = {
        name: list(_leaves(value, pointer((name,)), _property(tool.schema, name)))
        for name, value in bound.arguments.items()
    }
    controls = [leaf for name in leaves if is_covered(pointer((name,)), tool.controls) for leaf in leaves[name]]
    targets = [_atoms(leaf.value) for leaf in controls]
    # Where a call reaches somebody it goes there, and what it takes along is only read.
    reached = [_atoms(leaf.value) for leaf in controls if role_of(tool, leaf.path) in _REACHED]
    found = list(_evidence(index, tool, leaves))
    named = any(
        one.origin == NAMED and one.place not in BY_NOBODY and is_covered(one.path, tool.controls) for one in found
    )
    goals = reached if any(role_of(tool, one) in _REACHED for one in tool.controls) else None
    ask = asked(index.words, tool, targets, named=named, goals=goals)
    evidence = _weighed(index, ask, found)
    control = [one for one in evidence if is_covered(one.path, tool.controls)]
    told = list(dict.fromkeys(content_signals(index, _contents(tool, leaves), _reached(tool, evidence))))
    if any(len(of_one) >= MAX_LEAVES for of_one in leaves.values()):
        told.append((1, "more values than are looked at"))
    return TaskFacts(
        shown=True,
        intent=ask.level,
        intent_words=ask.words,
        delegated=delegated(index.words),
        arguments=evidence,
        worst=max((one.origin for one in control or evidence), default=LISTED),
        signals=max((level for level, _ in told), default=0),
        signal_reasons=tuple(reason for _, reason in told),
    )


def _weighed(index: TaskIndex, ask: Asked, evidence: list[Evidence]) -> tuple[Evidence, ...]:
    """Sorts the evidence, the worst first; a call with nothing of what was spelled out for it takes no text's word."""
    unnamed = all(one.origin > NAMED or one.place in BY_NOBODY for one in evidence)
    if unnamed and any(one.origin == POINTED for one in evidence) and is_another(index, ask):
        evidence = [
            replace(one, origin=FOREIGN, place=f"{one.place}, and nothing of what the user spelled out")
            if one.origin == POINTED
            else one
            for one in evidence
        ]
    return tuple(sorted(evidence, key=lambda one: (-one.origin, one.path)))


def _reached(tool: CatalogTool, evidence: Sequence[Evidence]) -> int:
    """Answers the origin of whom a call reaches."""
    return max((one.origin for one in evidence if role_of(tool, one.path) in _REACHED), default=NAMED)


def _atoms(value: Any) -> list[str]:
    return folding.atoms_of(folding.fold(value)) if isinstance(value, str) else []


def _evidence(index: TaskIndex, tool: CatalogTool, leaves: dict[str, list[_Leaf]]) -> Iterator[Evidence]:
    by_order, called = picks(index.words, tool), nouns(tool)
    written = frozenset(_norm(leaf.value) for of_one in leaves.values() for leaf in of_one)
    known: dict[tuple[Any, ...], Found] = {}
    for name, of_one in sorted(leaves.items(), key=lambda one: not is_covered(pointer((one[0],)), tool.controls)):
        if not of_one:
            continue
        found: Found = (NAMED, "")
        for leaf in of_one:
            role = role_of(tool, leaf.path)
            key = (role, name, type(leaf.value), leaf.value, leaf.limited, leaf.default)
            if key not in known:
                if len(known) >= MAX_DISTINCT:
                    found = (FOREIGN, "more values than are looked at")
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
                    ),
                )
            found = max(found, known[key])
        if len(of_one) >= MAX_LEAVES:
            found = FOREIGN, "more values than are looked at"
        yield Evidence(pointer((name,)), found[0], found[1])


def _norm(value: Any) -> str:
    if not isinstance(value, str):
        return number(value)
    return " ".join(folding.tokens(folding.fold(value))) if len(value) <= MAX_VALUE else ""


def _contents(tool: CatalogTool, leaves: dict[str, list[_Leaf]]) -> Iterator[str]:
    for of_one in leaves.values():
        for leaf in of_one:
            if isinstance(leaf.value, str) and role_of(tool, leaf.path) == "content":
                yield leaf.value


def _leaves(value: Any, path: str, schema: Json) -> Iterator[_Leaf]:
    """Answers the plain values of an argument; those of a list stand at the list's own path."""
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
    """Says whether a pointer leads to, below or above one of some."""
    return any(path == one or path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in by)


def role_of(tool: CatalogTool, path: str) -> Role:
    """Answers an argument's role: that of the longest pointer that covers it."""
    covering = [one for one in tool.roles if path == one or path.startswith(f"{one}/")]
    if covering:
        return tool.roles[max(covering, key=len)]
    return "object" if is_covered(path, tool.controls) else "content"
