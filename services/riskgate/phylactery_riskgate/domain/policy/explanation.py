"""Explanations of decisions: the engine decides as usual, and everything it evaluates is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.intent.model import CUT_SHORT, FROM_TEXT, MASKED, Evidence, TaskFacts
from phylactery_riskgate.domain.model import (
    ArgumentView,
    BoundCall,
    Caller,
    CallSite,
    CatalogTool,
    Decision,
    Json,
    Verdict,
)
from phylactery_riskgate.domain.policy.authorizer import Answer, Question, Subject
from phylactery_riskgate.domain.policy.engine import DecisionEngine, Prepared, Ruling
from phylactery_riskgate.domain.policy.evidence import (
    MAX_INTENT,
    MAX_ORIGIN,
    MAX_SIGNALS,
    TASK_FAMILIES,
    TaskReader,
    control_names,
    origins_by_name,
    url_names,
    url_origin,
)
from phylactery_riskgate.domain.policy.policies import Policy
from phylactery_riskgate.domain.views.view import call_view
from phylactery_riskgate.domain.views.visible import make_visible

_MAX_NAMES = 20


@dataclass(frozen=True, slots=True)
class FactChange:
    """One decisive fact: its policy name, its value, the nearest value that changes the decision, and that decision."""

    fact: str
    was: int
    would_be: int
    decision: Decision


class _Imagining(DecisionEngine):
    """An engine over the same bundle in which the task facts are fixed."""

    def __init__(self, engine: DecisionEngine, facts: TaskFacts) -> None:
        self.__dict__.update(engine.__dict__)  # everything is prepared already and never changes
        self._facts = facts

    def _told(self, _prepared: Prepared, _bound: BoundCall, _task: TaskReader | None) -> TaskFacts:
        return self._facts


def changes(
    engine: DecisionEngine, verdict: Verdict, tool: CatalogTool, ask: Callable[[DecisionEngine], Verdict]
) -> tuple[FactChange, ...]:
    """Return the facts that alone would have changed a decision, in display order.

    Without a task there are none: all other facts depend on it.
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
    """Yield every fact with its alternative values, and all facts as they are with it."""
    yield "intent", facts.intent, ((n, replace(facts, intent=n)) for n in _nearest(facts.intent, MAX_INTENT, up=True))
    for name, heard in facts.heard._asdict().items():
        yield f"heard.{name}", int(heard), _with_heard(facts, name)
    refused, foreign = int(facts.refused), int(facts.foreign)
    yield "refused", refused, ((n, replace(facts, refused=bool(n))) for n in _nearest(refused, 1))
    yield "origin.foreign", foreign, ((n, replace(facts, foreign=bool(n))) for n in _nearest(foreign, 1))
    pointed, own, read = int(facts.pointed), int(facts.own), int(facts.read)
    yield "origin.pointed", pointed, ((n, replace(facts, pointed=bool(n))) for n in _nearest(pointed, 1))
    yield "origin.own", own, ((n, replace(facts, own=bool(n))) for n in _nearest(own, 1))
    yield "task.read", read, ((n, replace(facts, read=bool(n))) for n in _nearest(read, 1))
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

    for name, reason in (("from_text", FROM_TEXT), ("masked", MASKED), ("cut_short", CUT_SHORT)):
        was = int(reason in facts.signal_reasons)
        yield f"content.{name}", was, ((n, _with_reason(facts, reason, told=bool(n))) for n in _nearest(was, 1))


def _with_heard(facts: TaskFacts, name: str) -> _Others:
    for value in _nearest(int(getattr(facts.heard, name)), 1):
        yield value, replace(facts, heard=facts.heard._replace(**{name: bool(value)}))


def _with_reason(facts: TaskFacts, reason: str, *, told: bool) -> TaskFacts:
    others = tuple(one for one in facts.signal_reasons if one != reason)
    return replace(facts, signal_reasons=(*others, reason) if told else others)


def _with_origins(facts: TaskFacts, names: Collection[str], was: int) -> _Others:
    others = tuple(one for one in facts.arguments if pointers.parse(one.path)[0] not in names)
    for value in _nearest(was, MAX_ORIGIN):
        found = (Evidence(pointers.pointer((name,)), value, "") for name in names)
        yield value, replace(facts, arguments=(*others, *found))


def _nearest(was: int, high: int, *, up: bool = False) -> list[int]:
    """Return the alternative values up to a limit, nearest first, and of two equally near the more permissive first."""
    others = [value for value in range(high + 1) if value != was]
    return sorted(others, key=lambda value: (abs(value - was), (value < was) is up))


SENSITIVE = "«sensitive»"
_MAX_VALUE = 300
_MAX_FACTS = 500
_ALL_ARGUMENTS = frozenset({"usage", "targets"})
"""Families in which a value may derive from any argument: with a sensitive one, none of their values is shown."""
_SOURCES = {
    "args": "the arguments, bound to the tool's schema",
    "derived": "worked out of the arguments",
    "nulls": "the arguments that are null",
    "usage": "counted by RiskGate",
    "targets": "the addresses the arguments lead to",
    "submission": "the form's run that submits it, and the templates of forms in the catalog",
    "inspection": "found in the arguments by inspection",
    "pathway": "how the message is served",
    "stakes": "what the tool's entry says it can do, and the names in the arguments",
    **dict.fromkeys(TASK_FAMILIES, "what RiskGate was shown of the task"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One evaluation: the classes presented as satisfied, whether that is hypothetical, and Cedar's answer."""

    approved: tuple[str, ...]
    imagined: bool
    allowed: bool
    failed: bool
    policies: tuple[Policy, ...]


@dataclass(frozen=True, slots=True)
class ShownFact:
    """One fact shown to the policies: its place, its value as JSON that is safe to print, and its origin."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict and everything that led to it; ``changes`` are the single facts that would have changed it."""

    verdict: Verdict
    steps: tuple[Step, ...]
    facts: tuple[ShownFact, ...]
    arguments: tuple[ArgumentView, ...]
    changes: tuple[FactChange, ...] = ()


class _Tracing(DecisionEngine):
    """An engine over the same bundle that records its evaluations; one instance per call."""

    def __init__(self, engine: DecisionEngine) -> None:
        self.__dict__.update(engine.__dict__)  # everything is prepared already and never changes
        self.steps: list[Step] = []
        self.context: Json = {}
        self.subject: Subject | None = None
        self.direct = True
        self.satisfied: tuple[str, ...] = ()

    def _subject(self, caller: Caller, site: CallSite) -> Subject:
        self.subject, self.direct = super()._subject(caller, site), caller.direct
        return self.subject

    def _ask(self, prepared: Prepared, question: Question, context: Json, satisfied: tuple[str, ...]) -> Ruling:
        self.context, self.satisfied = context, satisfied
        ruling = super()._ask(prepared, question, context, satisfied)
        if all(step.imagined for step in self.steps):
            # the engine knows this is not Allow without evaluating, but a reader wants to see it; the ruling is
            # unchanged
            with suppress(ValueError):
                self._ask_once(prepared, question, context, satisfied)
                self.steps.insert(0, self.steps.pop())
        return ruling

    def _ask_once(self, prepared: Prepared, question: Question, context: Json, satisfied: tuple[str, ...]) -> Answer:
        answer = super()._ask_once(prepared, question, context, satisfied)
        policies = tuple(prepared.policies.policies[one] for one in answer.policy_ids)
        imagined = satisfied != self.satisfied
        self.steps.append(Step(satisfied, imagined, answer.allowed, not answer.clean, policies))
        return answer


def explain(engine: DecisionEngine, ask: Callable[[DecisionEngine], Verdict]) -> Explanation:
    """Decide through ask, under a recording engine, and return the verdict with the record.

    ask is called again for every task fact that could have been different: it must build the same request each time.
    """
    tracing = _Tracing(engine)
    verdict = ask(tracing)
    tool = None if verdict.bound is None else engine.bundle.tools[verdict.bound.tool]
    if verdict.bound is None or tool is None:
        return Explanation(verdict, (), (), ())
    facts = [
        *_subject_facts(tracing, engine.bundle),
        *_ask_facts(verdict.task),
        *_context_facts(tracing.context, tool),
    ]
    arguments = call_view(verdict.bound, tool, task=verdict.task).arguments
    return Explanation(
        verdict, tuple(tracing.steps), tuple(facts[:_MAX_FACTS]), arguments, changes(engine, verdict, tool, ask)
    )


def _subject_facts(tracing: _Tracing, bundle: Bundle) -> Iterator[ShownFact]:
    subject = tracing.subject
    assert subject is not None, "a bound call has a subject"
    entry = bundle.users.get((subject.tenant, subject.subject))
    known = "entities.json" if entry else "the bundle, for users it does not name"
    of_level = "the caller's own credential" if tracing.direct else known
    yield _fact("principal", subject.subject, "the call")
    yield _fact("principal.tenant", subject.tenant, "the caller's credential")
    yield _fact("principal.level", subject.level, of_level)
    yield _fact("principal.groups", list(subject.groups), f"{of_level} and entities.json" if entry else of_level)
    yield _fact("resource.tenant", subject.thread_tenant, "the thread")


def _ask_facts(facts: TaskFacts) -> Iterator[ShownFact]:
    """Return the form that submits a call, the ask it uses and its remaining effects; these are not policy inputs."""
    if facts.form_run is not None:
        yield _fact("form_run", f"{facts.form_run.form} {facts.form_run.version}", "the agent that serves the form")
    if facts.ask:
        yield _fact("ask", facts.ask, "the user's words")
        yield _fact("ask.used", facts.used, "calls that were redeemed by it")
        yield _fact("ask.left", facts.left, "the user's words and what was redeemed; null is as many as its set holds")
    if facts.retracted:
        yield _fact("retracted", facts.retracted, "the later task whose words took the call back")


def _context_facts(context: Json, tool: CatalogTool) -> Iterator[ShownFact]:
    sensitive = tuple(pointers.parse(text) for text in tool.sensitive)
    for family in sorted(context):
        source = _SOURCES.get(family, "worked out by RiskGate")
        for place, value in _leaves(context[family], ()):
            hidden = (family in _ALL_ARGUMENTS and bool(sensitive)) or any(
                place[: len(one)] == one or one[: len(place)] == place for one in sensitive
            )
            name = ".".join(("context", family, *place))
            yield (
                ShownFact(make_visible(name, _MAX_VALUE).text, SENSITIVE, source)
                if hidden
                else _fact(name, value, source)
            )


def _leaves(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every value that is not a record; extension values and entities as their text."""
    if not isinstance(value, dict):
        yield place, [_plain(item) for item in value] if isinstance(value, list) else value
    elif "__extn" in value or "__entity" in value:
        yield place, _plain(value)
    else:
        for name in sorted(value):
            yield from _leaves(value[name], (*place, name))


def _plain(value: Any) -> Any:
    if isinstance(value, dict) and "__extn" in value:
        return value["__extn"]["arg"]
    if isinstance(value, dict) and "__entity" in value:
        return value["__entity"]["id"]
    return value


def _fact(name: str, value: Any, source: str) -> ShownFact:
    text = make_visible(json.dumps(value, ensure_ascii=False), _MAX_VALUE).text
    return ShownFact(make_visible(name, _MAX_VALUE).text, text, source)
