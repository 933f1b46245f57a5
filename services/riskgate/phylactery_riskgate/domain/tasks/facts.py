"""The facts of a task about one call: what was asked, where its values come from, and what its contents give away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phylactery_riskgate.domain.model import BoundCall, CatalogTool, Role
from phylactery_riskgate.domain.pointers import pointer
from phylactery_riskgate.domain.tasks.asking import asked, delegated
from phylactery_riskgate.domain.tasks.index import TaskIndex
from phylactery_riskgate.domain.tasks.model import LISTED, NAMED, UNSHOWN, Evidence, TaskFacts
from phylactery_riskgate.domain.tasks.origins import Found, origin

_MAX_LEAVES = 500


def task_facts(index: TaskIndex | None, tool: CatalogTool, bound: BoundCall) -> TaskFacts:
    """Works out the facts of a call; nothing of the call but its arguments is looked at."""
    if index is None:
        return UNSHOWN
    ask = asked(index.words, tool)
    evidence = tuple(sorted(_evidence(index, tool, bound), key=lambda one: (-one.origin, one.path)))
    control = [one for one in evidence if _covered(one.path, tool.controls)]
    weighed = control or evidence
    return TaskFacts(
        shown=True,
        intent=ask.level,
        intent_words=ask.words,
        delegated=delegated(index.words),
        arguments=evidence,
        worst=max((one.origin for one in weighed), default=LISTED),
        signals=0,
        signal_reasons=(),
    )


def _evidence(index: TaskIndex, tool: CatalogTool, bound: BoundCall) -> Iterator[Evidence]:
    for name, value in bound.arguments.items():
        path = pointer((name,))
        leaves = list(_leaves(value, path))
        if not leaves:
            continue
        found = max((origin(index, role_of(tool, place), leaf) for place, leaf in leaves), default=_NOTHING)
        yield Evidence(path, found[0], found[1])


_NOTHING: Found = (NAMED, "nothing")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    waiting: list[tuple[str, Any]] = [(path, value)]
    count = 0
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend((place + pointer((str(key),)), inside) for key, inside in one.items())
        elif isinstance(one, list):
            waiting.extend((place, inside) for inside in one)
        elif one is not None:
            count += 1
            yield place, one
            if count >= _MAX_LEAVES:
                return


def _covered(path: str, by: tuple[str, ...]) -> bool:
    return any(path == one or path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in by)


def role_of(tool: CatalogTool, path: str) -> Role:
    """Answers an argument's role: that of the longest pointer that covers it."""
    covering = [one for one in tool.roles if path == one or path.startswith(f"{one}/")]
    if covering:
        return tool.roles[max(covering, key=len)]
    return "object" if _covered(path, tool.controls) else "content"
