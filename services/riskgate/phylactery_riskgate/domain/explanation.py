"""Why a call is decided as it is: the engine decides as always, and everything it asks is noted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.authorizer import Answer, Question, Subject
from phylactery_riskgate.domain.bundle import Bundle
from phylactery_riskgate.domain.counterfactuals import FactChange, changes
from phylactery_riskgate.domain.engine import DecisionEngine, Prepared, Ruling
from phylactery_riskgate.domain.evidence import TASK_FAMILIES
from phylactery_riskgate.domain.model import ArgumentView, Caller, CallSite, CatalogTool, Json, Verdict
from phylactery_riskgate.domain.policies import Policy
from phylactery_riskgate.domain.tasks.model import TaskFacts
from phylactery_riskgate.domain.view import call_view
from phylactery_riskgate.domain.visible import make_visible

SENSITIVE = "«sensitive»"
_MAX_VALUE = 300
_MAX_FACTS = 500
_ALL_ARGUMENTS = frozenset({"usage", "targets"})
"""Families in which one value may be made of any argument: with a sensitive one, none of their values is shown."""
_SOURCES = {
    "args": "the arguments, bound to the tool's schema",
    "derived": "worked out of the arguments",
    "nulls": "the arguments that are null",
    "usage": "counted by RiskGate",
    "targets": "the addresses the arguments lead to",
    "inspection": "found in the arguments by inspection",
    "pathway": "how the message is served",
    **dict.fromkeys(TASK_FAMILIES, "what RiskGate was shown of the task"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One question: the classes shown as satisfied, whether nobody has approved that much, and Cedar's answer."""

    approved: tuple[str, ...]
    imagined: bool
    allowed: bool
    failed: bool
    policies: tuple[Policy, ...]


@dataclass(frozen=True, slots=True)
class ShownFact:
    """One thing the policies were shown: its place, its value as JSON that is safe to print, and where it is from."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict and everything that led to it; ``changes`` are the single facts that would have made it another."""

    verdict: Verdict
    steps: tuple[Step, ...]
    facts: tuple[ShownFact, ...]
    arguments: tuple[ArgumentView, ...]
    changes: tuple[FactChange, ...] = ()


class _Tracing(DecisionEngine):
    """An engine over the same bundle that notes what it asks; one for each call."""

    def __init__(self, engine: DecisionEngine) -> None:
        self.__dict__.update(engine.__dict__)  # everything is prepared already, and nothing of it changes
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
            # the engine knows without asking that this is no Allow, and a reader wants to see it; the ruling stays
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
    """Decides through ask, under an engine that notes what it does, and answers the verdict with all of it.

    ask is asked once more for every fact of the task that could have been another: it must ask the same each time.
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
    assert subject is not None, "a bound call was asked about for somebody"
    entry = bundle.users.get((subject.tenant, subject.subject))
    known = "entities.json" if entry else "the bundle, for users it does not name"
    of_level = "the caller's own credential" if tracing.direct else known
    yield _fact("principal", subject.subject, "the call")
    yield _fact("principal.tenant", subject.tenant, "the caller's credential")
    yield _fact("principal.level", subject.level, of_level)
    yield _fact("principal.groups", list(subject.groups), f"{of_level} and entities.json" if entry else of_level)
    yield _fact("resource.tenant", subject.thread_tenant, "the thread")


def _ask_facts(facts: TaskFacts) -> Iterator[ShownFact]:
    """Says which ask a call uses, and how many effects of it were left; policies are not shown it."""
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
    """Finds every value that is no record; extension values and entities are their text."""
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
