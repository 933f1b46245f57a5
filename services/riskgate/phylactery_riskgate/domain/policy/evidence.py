"""Task facts as policy inputs: the user's request, the origin of arguments, and signals in the contents.

    @id("big.ask-peer")
    @title("An amount the user did not write needs somebody else")
    forbid (principal, action == Action::"transfer", resource)
    when { context.task.shown && context.origin.by has amount && context.origin.by.amount > 0 }
    unless { context.approved.contains(Class::"peer") };

A call without a task is presented as one that was not requested and whose arguments have no known origin, and
``task.shown`` is false. ADR 20 defines the numbers. ``content.from_text`` says that some content of the call, or a long
enough part of it, occurs in a tool's output, whether or not the user pointed there, and not in the user's words.
``content.masked`` says that any argument holds a mask of a value that was masked in this task, ``content.cut_short``
that the call would replace what the model was shown only in part, or holds the mark of what was left out.
``heard`` says who asks for a call of this kind, whatever its arguments: the user (``by_user``), a text that was read or
passed on (``in_text``), or an earlier message that the newest, which begins with a yes, confirms (``confirmed``).
``origin.pointed`` says that ``origin.foreign`` is so only because the newest message does not ask for the call,
``origin.own`` that some control argument has a value of the user's, ``task.read`` that anything was read in the task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.facts.types import FactType, Field, Kind, RecordOf, Scalar
from phylactery_riskgate.domain.intent.model import (
    CONFIRMED,
    CUT_SHORT,
    FROM_TEXT,
    INTERPRETER,
    MASKED,
    NOBODY,
    RULES,
    UNSHOWN,
    Heard,
    TaskFacts,
)
from phylactery_riskgate.domain.model import BoundCall, CatalogTool

TaskReader = Callable[[CatalogTool, BoundCall], TaskFacts]
"""A function that returns the facts of a bound call, computed or as recorded."""

TASK_FAMILIES = ("task", "intent", "heard", "refused", "understood_by", "origin", "signals", "content")
"""The context attributes from the task, in display order."""

MAX_INTENT, MAX_ORIGIN, MAX_SIGNALS = 2, 3, 2

LOST = replace(
    UNSHOWN,
    shown=True,
    intent=0,
    worst=MAX_ORIGIN,
    signals=MAX_SIGNALS,
    refused=True,
    foreign=True,
    heard=Heard(in_text=True),
    signal_reasons=(FROM_TEXT, MASKED, CUT_SHORT),
)
"""The facts if a call named a task whose facts are no longer stored: the worst possible ones."""

UNREADABLE = replace(LOST, signal_reasons=(*LOST.signal_reasons, "what the task tells could not be worked out"))
"""The facts if they cannot be computed."""

_BOOL = Scalar(Kind.BOOL)
_CONTENT_TYPE = RecordOf({name: Field(_BOOL, required=True) for name in ("from_text", "masked", "cut_short")})
_TASK_TYPE = RecordOf({name: Field(_BOOL, required=True) for name in ("shown", "read")})
_HEARD_TYPE = RecordOf({name: Field(_BOOL, required=True) for name in Heard._fields})


def _up_to(high: int) -> Scalar:
    return Scalar(Kind.LONG, low=Decimal(0), high=Decimal(high))


_ORIGIN = _up_to(MAX_ORIGIN)


def task_types(tool: CatalogTool) -> dict[str, FactType]:
    """Return the type of each fact family that a task supplies."""
    return {
        "task": _TASK_TYPE,
        "intent": _up_to(MAX_INTENT),
        "heard": _HEARD_TYPE,
        "refused": _BOOL,
        "understood_by": Scalar(Kind.STRING, values=frozenset({RULES, INTERPRETER, CONFIRMED, NOBODY})),
        "origin": _origin_type(tool),
        "signals": _up_to(MAX_SIGNALS),
        "content": _CONTENT_TYPE,
    }


def _origin_type(tool: CatalogTool) -> RecordOf:
    """Return the type of the origins: the worst one, and ``by`` each top-level argument that has a control."""
    properties = tool.schema.get("properties", {})
    needed = tool.schema.get("required", ())
    by = {
        name: Field(_ORIGIN, required=name in needed or "default" in properties.get(name, {}))
        for name in control_names(tool)
    }
    worst, flag = Field(_ORIGIN, required=True), Field(_BOOL, required=True)
    fields = {"worst": worst, "foreign": flag, "pointed": flag, "own": flag, "url": worst}
    return RecordOf({**fields, "by": Field(RecordOf(by), required=True)})


def control_names(tool: CatalogTool) -> tuple[str, ...]:
    """Return the top-level arguments that are or contain a control argument, without duplicates."""
    return tuple(dict.fromkeys(pointers.parse(text)[0] for text in tool.controls))


def url_names(tool: CatalogTool) -> tuple[str, ...]:
    """Return the top-level arguments that are or contain an address, without duplicates."""
    return tuple(dict.fromkeys(pointers.parse(text)[0] for text, role in tool.roles.items() if role == "url"))


def task_values(facts: TaskFacts, origins: Mapping[str, int], url: int) -> dict[str, Any]:
    """Return the value of each fact family that a task supplies; ``origins`` are those by argument."""
    return {
        "task": {"shown": facts.shown, "read": facts.read},
        "intent": facts.intent,
        "heard": facts.heard._asdict(),
        "refused": facts.refused,
        "understood_by": facts.understood_by,
        "origin": {
            "worst": facts.worst,
            "foreign": facts.foreign,
            "pointed": facts.pointed,
            "own": facts.own,
            "url": url,
            "by": origins,
        },
        "signals": facts.signals,
        "content": {"from_text": facts.from_text, "masked": facts.masked, "cut_short": facts.cut_short},
    }


def origins_by_name(tool: CatalogTool, bound: BoundCall, facts: TaskFacts) -> dict[str, int]:
    """Return the worst origin in each argument with a control argument; without evidence it is the unknown origin."""
    return _origins(control_names(tool), bound, facts)


def url_origin(tool: CatalogTool, bound: BoundCall, facts: TaskFacts) -> int:
    """Return the worst origin in the arguments with an address, 0 if there is none."""
    names = url_names(tool)
    return max(_origins(names, bound, facts).values(), default=0) if names else 0


def _origins(names: Collection[str], bound: BoundCall, facts: TaskFacts) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in facts.arguments:
        name = pointers.parse(one.path)[0]
        found[name] = max(found.get(name, 0), one.origin)
    return {name: found.get(name, MAX_ORIGIN) for name in names if name in bound.arguments}


def known(facts: TaskFacts) -> TaskReader:
    """Return a source of these facts, for any call."""
    return lambda _tool, _bound: facts
