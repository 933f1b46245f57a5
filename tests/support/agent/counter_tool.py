"""A tool plug-in for tests: count has an effect that cannot be looked up; flaky fails a configured number of times."""

from __future__ import annotations

import asyncio

from phylactery_agent.tools.contract import (
    Contract,
    Example,
    Implementation,
    Invocation,
    Pattern,
    ToolFailedError,
    ToolSpec,
    arguments_of,
)
from pydantic import BaseModel, ConfigDict

counted: list[str] = []
behaviour = {"flaky_failures": 0, "count_raises": 0}


class LabelArguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    label: str


def _spec(name: str, contract: Contract) -> ToolSpec:
    return ToolSpec(
        name=name,
        descriptions={"es": f"{name} <etiqueta>", "en": f"{name} <label>"},
        schema={
            "type": "object",
            "properties": {"label": {"type": "string"}},
            "required": ["label"],
            "additionalProperties": False,
        },
        args_model=LabelArguments,
        contract=contract,
        verbs=(name,),
        patterns=(Pattern("en", name + r"\s+(?P<label>\S+)"),),
        examples=(Example("en", f"{name} one", {"label": "one"}),),
        labels={"es": "", "en": ""},
    )


async def _count(invocation: Invocation) -> str:
    args = arguments_of(invocation, LabelArguments)
    counted.append(args.label)
    if behaviour["count_raises"]:
        raise ConnectionError("the answer got lost")
    return f"counted {args.label}"


async def _flaky(invocation: Invocation) -> str:
    args = arguments_of(invocation, LabelArguments)
    counted.append(args.label)
    if behaviour["flaky_failures"] > 0:
        behaviour["flaky_failures"] -= 1
        raise ToolFailedError("BUSY", "try later")
    return f"flaky {args.label}"


async def _wait(_invocation: Invocation) -> str:
    await asyncio.Event().wait()
    return "never"


SPECS = (
    _spec("count", Contract(risk="low", effect="irreversible", idempotency="unsafe", timeout_seconds=5)),
    _spec("flaky", Contract(risk="low", effect="read", idempotency="read_only", timeout_seconds=5)),
    _spec("wait", Contract(risk="low", effect="read", idempotency="read_only", timeout_seconds=5)),
)
IMPLEMENTATIONS = {
    "count": Implementation(run=_count),
    "flaky": Implementation(run=_flaky),
    "wait": Implementation(run=_wait),
}
