"""Which single fact of a task would have changed a decision: each is tried at its other values, the nearest first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.engine import DecisionEngine, Prepared
from phylactery_riskgate.domain.evidence import (
    MAX_INTENT,
    MAX_ORIGIN,
    MAX_SIGNALS,
    TaskReader,
    control_names,
    origins_by_name,
    url_names,
    url_origin,
)
from phylactery_riskgate.domain.model import BoundCall, CatalogTool, Decision, Verdict
from phylactery_riskgate.domain.tasks.model import FROM_TEXT, Evidence, TaskFacts

_MAX_NAMES = 20


@dataclass(frozen=True, slots=True)
class FactChange:
    """One fact: its name as policies know it, what it was, the nearest value that decides otherwise, and to what."""

    fact: str
    was: int
    would_be: int
    decision: Decision


class _Imagining(DecisionEngine):
    """An engine over the same bundle to which every task tells the same, whatever it knows."""

    def __init__(self, engine: DecisionEngine, facts: TaskFacts) -> None:
        self.__dict__.update(engine.__dict__)  # everything is prepared already, and nothing of it changes
        self._facts = facts

    def _told(self, _prepared: Prepared, _bound: BoundCall, _task: TaskReader | None) -> TaskFacts:
        return self._facts


def changes(
    engine: DecisionEngine, verdict: Verdict, tool: CatalogTool, ask: Callable[[DecisionEngine], Verdict]
) -> tuple[FactChange, ...]:
    """Answers the facts that would each have changed a decision by itself, in the order in which they are shown.

    Without a task there is none: everything else counts as it is because of that.
    """
    if not verdict.task.shown or verdict.bound is None:
        return ()
    found: list[FactChange] = []
    for name, was, others in _facts(verdict.task, verdict.bound, tool):
        for value, facts in others:
            decision = ask(_Imagining(engine, facts)).decision
            if decision is not verdict.decision:
                found.append(FactChange(name, was, value, decision))
                break
    return tuple(found)


_Others = Iterator[tuple[int, TaskFacts]]


def _facts(facts: TaskFacts, bound: BoundCall, tool: CatalogTool) -> Iterator[tuple[str, int, _Others]]:
    """Answers every fact with its other values, and all facts as they are with it."""
    yield "intent", facts.intent, ((n, replace(facts, intent=n)) for n in _nearest(facts.intent, MAX_INTENT, up=True))
    refused, foreign = int(facts.refused), int(facts.foreign)
    yield "refused", refused, ((n, replace(facts, refused=bool(n))) for n in _nearest(refused, 1))
    yield "origin.foreign", foreign, ((n, replace(facts, foreign=bool(n))) for n in _nearest(foreign, 1))
    yield "origin.worst", facts.worst, ((n, replace(facts, worst=n)) for n in _nearest(facts.worst, MAX_ORIGIN))
    origins = origins_by_name(tool, bound, facts)
    for name in control_names(tool)[:_MAX_NAMES]:
        if name in origins:
            yield f"origin.by.{name}", origins[name], _with_origins(facts, (name,), origins[name])
    urls = tuple(name for name in url_names(tool) if name in bound.arguments)
    if urls:
        was = url_origin(tool, bound, facts)
        yield "origin.url", was, _with_origins(facts, urls, was)
    yield "signals", facts.signals, ((n, replace(facts, signals=n)) for n in _nearest(facts.signals, MAX_SIGNALS))

    was_text = int(facts.from_text)
    yield "content.from_text", was_text, ((n, _from_text(facts, told=bool(n))) for n in _nearest(was_text, 1))


def _from_text(facts: TaskFacts, *, told: bool) -> TaskFacts:
    others = tuple(one for one in facts.signal_reasons if one != FROM_TEXT)
    return replace(facts, signal_reasons=(*others, FROM_TEXT) if told else others)


def _with_origins(facts: TaskFacts, names: Collection[str], was: int) -> _Others:
    others = tuple(one for one in facts.arguments if pointers.parse(one.path)[0] not in names)
    for value in _nearest(was, MAX_ORIGIN):
        found = (Evidence(pointers.pointer((name,)), value, "") for name in names)
        yield value, replace(facts, arguments=(*others, *found))


def _nearest(was: int, high: int, *, up: bool = False) -> list[int]:
    """Answers the other values up to a limit, the nearest first, and of two as near the one that opens more."""
    others = [value for value in range(high + 1) if value != was]
    return sorted(others, key=lambda value: (abs(value - was), (value < was) is up))
