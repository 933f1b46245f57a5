"""The facts about a call that policies may use.

``FAMILIES`` is the one place to add a fact: a name and, per tool, a type and a way to get its value. The Cedar schema,
the context of a request and the explanation are generated from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from phylactery_riskgate.domain.catalog.stakes import LEVELS
from phylactery_riskgate.domain.catalog.submissions import Submitted
from phylactery_riskgate.domain.facts import derived
from phylactery_riskgate.domain.facts.argument_types import record_type
from phylactery_riskgate.domain.facts.inspected import inspection_type, inspection_value
from phylactery_riskgate.domain.facts.targets import TARGETS_TYPE, targets_value
from phylactery_riskgate.domain.facts.types import (
    EntityOf,
    FactType,
    Field,
    Kind,
    Mentions,
    RecordOf,
    Scalar,
    SetOf,
    Writer,
    writer,
)
from phylactery_riskgate.domain.intent.model import TaskFacts
from phylactery_riskgate.domain.model import BoundCall, CatalogTool, Json
from phylactery_riskgate.domain.pointers import pointer
from phylactery_riskgate.domain.policy.evidence import (
    TASK_FAMILIES,
    origins_by_name,
    task_types,
    task_values,
    url_origin,
)
from phylactery_riskgate.domain.policy.policies import APPROVED, CLASS
from phylactery_riskgate.domain.policy.usage import usage_type


@dataclass(frozen=True, slots=True)
class Fact:
    """One attribute of the context for one tool.

    ``value`` takes the call and the parts that policies look at; it may omit the rest, and raises NotRepresentableError
    if it cannot represent one of these parts. It is None if the caller supplies the value.
    """

    type: FactType
    value: Callable[[BoundCall, Mentions], Any] | None


def _arguments(tool: CatalogTool) -> Fact:
    """Return the bound arguments, typed by the tool's schema."""
    return Fact(record_type(tool.schema), lambda bound, _mentions: bound.arguments)


def _derived(tool: CatalogTool) -> Fact:
    """Return the facts derived from the arguments."""
    plan = derived.plan(tool)
    return Fact(plan.type, lambda bound, mentions: plan.value(bound.arguments, mentions, ("derived",)))


def _nulls(_tool: CatalogTool) -> Fact:
    """Return the JSON Pointers of the arguments that are or were null, which ``has`` does not report."""
    kind = SetOf(Scalar(Kind.STRING))
    return Fact(kind, lambda bound, _mentions: sorted({*null_pointers(bound.arguments), *bound.nulls}))


def _usage(tool: CatalogTool) -> Fact:
    """Return the usage counted by the tool's budgets; supplied by the caller."""
    return Fact(usage_type(tool.budgets), None)


def _targets(tool: CatalogTool) -> Fact:
    """Return the targets that the call reaches out to."""
    return Fact(TARGETS_TYPE, lambda bound, _mentions: targets_value(tool, bound))


def _submission(_tool: CatalogTool) -> Fact:
    """Return whether the call is what a form submits, and whether that takes somebody else's approval.

    Supplied by the caller, who knows which form's run submits it.
    """
    return Fact(RecordOf({name: Field(Scalar(Kind.BOOL), required=True) for name in Submitted._fields}), None)


def _pathway(_tool: CatalogTool) -> Fact:
    """Return the pathway of the message that the call serves; supplied by the caller."""
    return Fact(EntityOf(PATHWAY), None)


def _stakes(_tool: CatalogTool) -> Fact:
    """Return how much the call can do; supplied by the engine, which answers it, too.

    A tool without stakes of its own has the value "high": a policy that reads them never sees less than they may be.
    """
    return Fact(Scalar(Kind.STRING, values=frozenset(LEVELS)), None)


def _inspection(tool: CatalogTool) -> Fact:
    """Return the inspection findings in the arguments."""
    return Fact(inspection_type(tool), lambda bound, mentions: inspection_value(tool, bound, mentions))


def _of_task(name: str) -> Callable[[CatalogTool], Fact]:
    """Return the function for a fact from the task (domain/policy/evidence.py), supplied by the caller."""
    return lambda tool: Fact(task_types(tool)[name], None)


PATHWAY = "Pathway"

FAMILIES: dict[str, Callable[[CatalogTool], Fact]] = {
    "args": _arguments,
    "derived": _derived,
    "nulls": _nulls,
    "usage": _usage,
    "targets": _targets,
    "submission": _submission,
    "pathway": _pathway,
    "stakes": _stakes,
    "inspection": _inspection,
    **{name: _of_task(name) for name in TASK_FAMILIES},
}

NO_TOOL = CatalogTool(
    name="riskgate:none",
    version="",
    risk="low",
    effect="read",
    level="",
    controls=(),
    sensitive=(),
    paths=(),
    schema={"type": "object"},
    schema_hash="",
    timeout_seconds=0,
    idempotency="read_only",
    description="",
    description_es="",
)
"""The tool of the sentinel action: without arguments, and with a name that a catalog cannot contain."""

_APPROVED_FIELD = Field(SetOf(EntityOf(CLASS)), required=True)


def context_type(tool: CatalogTool) -> RecordOf:
    """Return the type of ``context`` for calls of a tool."""
    fields = {name: Field(fact(tool).type, required=True) for name, fact in FAMILIES.items()}
    return RecordOf({**fields, APPROVED: _APPROVED_FIELD})


class ContextBuilder:
    """A builder for the context of one tool's calls, limited to the facts that the policies of its slice look at."""

    def __init__(self, tool: CatalogTool, mentions: Mentions) -> None:
        looked_at = [(name, fact(tool), mentions.part(name)) for name, fact in FAMILIES.items()]
        self._facts: list[tuple[str, Callable[[BoundCall, Mentions], Any] | None, Mentions, Writer]] = [
            (name, fact.value, part, writer(fact.type, part, (name,)))
            for name, fact, part in looked_at
            if part is not None
        ]
        self.asks_approved = mentions.part(APPROVED) is not None
        self._tool = tool
        self._asks_task = any(mentions.part(name) is not None for name in TASK_FAMILIES)
        origin = mentions.part("origin")
        self._asks_origins = origin is not None and origin.part("by") is not None

    def build(self, bound: BoundCall, task: TaskFacts, handed_in: Mapping[str, Any]) -> Json:
        """Build the context without ``approved``.

        ``handed_in`` has the value of each family that is neither computed nor supplied by ``task``.

        Raises:
            NotRepresentableError: a value that some policy looks at cannot be represented exactly.
        """
        if self._asks_task:
            origins = origins_by_name(self._tool, bound, task) if self._asks_origins else {}
            url = url_origin(self._tool, bound, task)
            handed_in = {**handed_in, **task_values(task, origins, url)}
        return {
            name: write(handed_in[name] if value is None else value(bound, part))
            for name, value, part, write in self._facts
        }


def approved_value(classes: tuple[str, ...]) -> list[Any]:
    """Return ``context.approved`` in Cedar's JSON."""
    return [{"__entity": {"type": CLASS, "id": name}} for name in classes]


def null_pointers(value: Any, place: tuple[str, ...] = ()) -> list[str]:
    """Return the nulls in an object and its nested objects, as JSON Pointers."""
    if value is None:
        return [pointer(place)]
    if not isinstance(value, dict):
        return []
    return [found for name, item in value.items() for found in null_pointers(item, (*place, name))]


def without_values(context: Any) -> Any:
    """Return the shape of a context: names are kept, values are replaced by their type, sets by their size."""
    kind = type(context)
    if kind is dict:
        if "__extn" in context:
            return context["__extn"]["fn"]
        if "__entity" in context:
            return context["__entity"]["type"]
        return {name: _KINDS.get(type(value)) or without_values(value) for name, value in context.items()}
    return f"set of {len(context)}" if kind is list else _KINDS[kind]


_KINDS: Mapping[type, str] = {str: "string", bool: "boolean", int: "long"}
