"""The agent's tools as a list for others: MCP's form, and beside it what RiskGate's catalog asks about a tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from phylactery_agent.ports import Language
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.phrases import phrases_of

MAX_PHRASES: Final = 200
"""Of one tool and language, as many as a catalog takes."""


def exported(specs: Iterable[ToolSpec]) -> dict[str, Any]:
    """Answers a list of tools; "catalog" of each holds its contract and how people ask for it."""
    return {"tools": [_tool(spec) for spec in specs]}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    contract = spec.contract
    return {
        "name": spec.name,
        "description": spec.descriptions["en"],
        "inputSchema": _plain(spec.schema),
        **({} if spec.output_schema is None else {"outputSchema": _plain(spec.output_schema)}),
        "annotations": {
            "readOnlyHint": contract.effect == "read",
            "destructiveHint": contract.effect == "irreversible",
        },
        "catalog": {
            "description_es": spec.descriptions["es"],
            "risk": contract.risk,
            "effect": contract.effect,
            "controls": list(contract.controls),
            "timeout_seconds": contract.timeout_seconds,
            "idempotency": contract.idempotency,
            "asks": {
                "phrases": {"en": _phrases(spec, "en"), "es": _phrases(spec, "es")},
                "examples": {"en": _examples(spec, "en"), "es": _examples(spec, "es")},
            },
        },
    }


def _phrases(spec: ToolSpec, language: Language) -> list[str]:
    patterns = (pattern.expression for pattern in spec.patterns if pattern.language == language)
    return list(dict.fromkeys(phrase for expression in patterns for phrase in phrases_of(expression)))[:MAX_PHRASES]


def _examples(spec: ToolSpec, language: Language) -> list[str]:
    return [example.text for example in spec.examples if example.language == language]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
