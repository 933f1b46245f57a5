"""What policies are told of a task: what the user asked for, where arguments come from, what content looks like.

    @id("big.ask-peer")
    @title("An amount the user did not write needs somebody else")
    forbid (principal, action == Action::"transfer", resource)
    when { context.task.shown && context.origin.by has amount && context.origin.by.amount > 0 }
    unless { context.approved.contains(Class::"peer") };

A call without a task is told as one that nobody asked for and whose arguments come from nowhere, and ``task.shown`` is
false. What the numbers mean is in ADR 20. ``content.from_text`` says that what the call only says, or a part of it that
is long enough, stands in what a tool answered, whether the user pointed there or not, and not in their own words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.facts.types import FactType, Field, Kind, RecordOf, Scalar
from phylactery_riskgate.domain.intent.model import CONFIRMED, FROM_TEXT, INTERPRETER, NOBODY, RULES, UNSHOWN, TaskFacts
from phylactery_riskgate.domain.model import BoundCall, CatalogTool

TaskReader = Callable[[CatalogTool, BoundCall], TaskFacts]
"""Answers the facts of a bound call: computed from what a task was shown, or as they were recorded."""

TASK_FAMILIES = ("task", "intent", "refused", "understood_by", "origin", "signals", "content")
"""What the context holds of a task, in the order in which it is shown."""

MAX_INTENT, MAX_ORIGIN, MAX_SIGNALS = 2, 3, 2

LOST = replace(
    UNSHOWN,
    shown=True,
    intent=0,
    worst=MAX_ORIGIN,
    signals=MAX_SIGNALS,
    refused=True,
    foreign=True,
    signal_reasons=(FROM_TEXT,),
)
"""What counts where a call named a task and its facts are not kept any more: the worst there is."""

UNREADABLE = replace(LOST, signal_reasons=(FROM_TEXT, "what the task tells could not be worked out"))
"""What counts where the facts cannot be worked out."""

_BOOL = Scalar(Kind.BOOL)
_CONTENT_TYPE = RecordOf({"from_text": Field(_BOOL, required=True)})
_TASK_TYPE = RecordOf({"shown": Field(_BOOL, required=True)})


def _up_to(high: int) -> Scalar:
    return Scalar(Kind.LONG, low=Decimal(0), high=Decimal(high))


_ORIGIN = _up_to(MAX_ORIGIN)


def task_types(tool: CatalogTool) -> dict[str, FactType]:
    """Type every family of the context that a task tells something for."""
    return {
        "task": _TASK_TYPE,
        "intent": _up_to(MAX_INTENT),
        "refused": _BOOL,
        "understood_by": Scalar(Kind.STRING, values=frozenset({RULES, INTERPRETER, CONFIRMED, NOBODY})),
        "origin": _origin_type(tool),
        "signals": _up_to(MAX_SIGNALS),
        "content": _CONTENT_TYPE,
    }


def _origin_type(tool: CatalogTool) -> RecordOf:
    """Type the worst origin, ``by`` that of each top-level argument with a control argument in it, if present.

    ``url`` is the worst of the arguments whose role is url, control arguments or not, and 0 where none is present.
    """
    properties = tool.schema.get("properties", {})
    needed = tool.schema.get("required", ())
    by = {
        name: Field(_ORIGIN, required=name in needed or "default" in properties.get(name, {}))
        for name in control_names(tool)
    }
    worst = Field(_ORIGIN, required=True)
    return RecordOf(
        {"worst": worst, "foreign": Field(_BOOL, required=True), "url": worst, "by": Field(RecordOf(by), required=True)}
    )


def control_names(tool: CatalogTool) -> tuple[str, ...]:
    """Name the top-level arguments that are control arguments or hold one, each once."""
    return tuple(dict.fromkeys(pointers.parse(text)[0] for text in tool.controls))


def url_names(tool: CatalogTool) -> tuple[str, ...]:
    """Name the top-level arguments that are an address or hold one, each once."""
    return tuple(dict.fromkeys(pointers.parse(text)[0] for text, role in tool.roles.items() if role == "url"))


def task_values(facts: TaskFacts, origins: Mapping[str, int], url: int) -> dict[str, Any]:
    """Return the value of every family that a task tells something for; ``origins`` are those by argument."""
    return {
        "task": {"shown": facts.shown},
        "intent": facts.intent,
        "refused": facts.refused,
        "understood_by": facts.understood_by,
        "origin": {"worst": facts.worst, "foreign": facts.foreign, "url": url, "by": origins},
        "signals": facts.signals,
        "content": {"from_text": facts.from_text},
    }


def origins_by_name(tool: CatalogTool, bound: BoundCall, facts: TaskFacts) -> dict[str, int]:
    """Return the worst origin in each argument that holds a control argument; what has no evidence is from nowhere."""
    return _origins(control_names(tool), bound, facts)


def url_origin(tool: CatalogTool, bound: BoundCall, facts: TaskFacts) -> int:
    """Return the worst origin in the arguments that hold an address, 0 where there is none."""
    names = url_names(tool)
    return max(_origins(names, bound, facts).values(), default=0) if names else 0


def _origins(names: Collection[str], bound: BoundCall, facts: TaskFacts) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in facts.arguments:
        name = pointers.parse(one.path)[0]
        found[name] = max(found.get(name, 0), one.origin)
    return {name: found.get(name, MAX_ORIGIN) for name in names if name in bound.arguments}


def known(facts: TaskFacts) -> TaskReader:
    """Return what reads these facts, whatever the call."""
    return lambda _tool, _bound: facts
