"""Specifications of MCP tools: name, contract from the configuration, and descriptions without hidden characters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import RootModel

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.ports import Language
from phylactery_agent.rules.expressions import expression
from phylactery_agent.tools.contract import Contract, Effect, Example, Pattern, Risk, ToolSpec
from phylactery_agent.tools.mcp.config import McpConfig, McpConfigError, McpIdempotency, ServerConfig, ToolConfig
from phylactery_agent.tools.mcp.pins import Pin, Pins

T = TypeVar("T")
MAX_NAME: Final = 64
"""Models' limit on the length of a tool's name; RiskGate accepts more."""
MAX_DESCRIPTION: Final = 1_000
_FIT: Final = re.compile(r"[A-Za-z0-9_-]+")
_RISKS: Final[tuple[Risk, ...]] = ("low", "medium", "high", "critical")
_EFFECTS: Final[tuple[Effect, ...]] = ("read", "write", "irreversible")


class McpArguments(RootModel[dict[str, Any]]):
    """The arguments of an MCP tool: RiskGate has validated them against the schema whose hash is in the call."""


def tool_name(server: str, tool: str) -> str:
    """Return the local name of a server's tool: mcp_SERVER_TOOL, with a hash if the tool's name does not fit.

    A server's name contains no underscore, so the tools of two servers cannot share a name.
    """
    plain = f"mcp_{server}_{tool}"
    if _FIT.fullmatch(tool) and len(plain) <= MAX_NAME:
        return plain
    mark = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    fit = "".join(char if _FIT.fullmatch(char) else "_" for char in tool)
    return f"mcp_{server}_{fit[: MAX_NAME - len(server) - 18]}_{mark}"


def spec_of(server: str, config: ServerConfig, pin: Pin) -> ToolSpec:
    """Return the specification of a pinned tool.

    Raises:
        McpConfigError: Its configuration does not fit it.
    """
    own = str(pin.definition["name"])
    known, name = config.of(own), tool_name(server, own)
    patterns = _patterns(server, own, known, pin.schema)
    return ToolSpec(
        name=name,
        descriptions=_descriptions(name, known, pin.definition),
        schema=dict(pin.schema),
        args_model=McpArguments,
        contract=contract_of(config, known, pin.definition),
        verbs=tuple(known.verbs),
        patterns=patterns,
        examples=tuple(
            Example(language, example.text, example.args)
            for language, examples in known.examples.items()
            for example in examples
        ),
        output_schema=pin.definition.get("outputSchema"),
        labels={language: label.format(name=name) for language, label in in_each_language("mcp_result").items()},
    )


def pinned_specs(config: McpConfig, pins: Pins, only: str = "") -> list[ToolSpec]:
    """Return the specification of every used pinned tool, of one server or of all.

    Raises:
        McpConfigError: The server is not configured, or a tool's configuration does not fit it.
    """
    if only and only not in config.servers:
        raise McpConfigError(f"there is no server {only!r}; there are {', '.join(config.servers) or 'none'}")
    return [
        spec_of(name, server, pin)
        for name, server in config.servers.items()
        if only in ("", name)
        for tool, pin in pins.of(name).items()
        if server.takes(tool)
    ]


def contract_of(config: ServerConfig, known: ToolConfig, definition: Mapping[str, Any]) -> Contract:
    """Return the configured contract, made stricter if the server itself describes the tool as riskier."""
    risk, effect = known.risk or config.risk, known.effect or config.effect
    idempotency = known.idempotency or config.idempotency
    said = definition.get("annotations")
    hints = said if isinstance(said, Mapping) else {}
    if hints.get("destructiveHint") is True and hints.get("readOnlyHint") is not True:
        risk, effect = _worse(_RISKS, risk, "high"), "irreversible"
    elif hints.get("readOnlyHint") is False:
        effect = _worse(_EFFECTS, effect, "write")
    if effect != "read":
        idempotency = _repeatable(idempotency, hints)
    return Contract(
        risk=risk,
        effect=effect,
        idempotency=idempotency,
        timeout_seconds=known.timeout_seconds or config.timeout_seconds,
        retries=known.retries,
        controls=tuple(known.controls),
        answers="json" if definition.get("outputSchema") is not None else "text",
    )


def _repeatable(idempotency: McpIdempotency, hints: Mapping[str, Any]) -> McpIdempotency:
    """Return how a tool that changes something may be repeated: not at all if its server forbids it."""
    if idempotency == "read_only" or hints.get("idempotentHint") is False:
        return "unsafe"
    return idempotency


def _worse(order: tuple[T, ...], one: T, other: T) -> T:
    return max(one, other, key=order.index)


def visible(text: str, limit: int = MAX_DESCRIPTION) -> str:
    """Return a text on one line without invisible characters: direction marks, joiners, tags, controls."""
    plain = "".join(char if char.isprintable() else " " for char in text[: 4 * limit])
    return " ".join(plain.split())[:limit].strip()


def _descriptions(name: str, known: ToolConfig, definition: Mapping[str, Any]) -> dict[Language, str]:
    said = definition.get("description")
    own = visible(said if isinstance(said, str) else "") or f"{name}."
    return {"es": known.description.get("es", own), "en": known.description.get("en", own)}


def _patterns(server: str, own: str, known: ToolConfig, schema: Mapping[str, Any]) -> tuple[Pattern, ...]:
    properties = schema.get("properties")
    arguments = set(properties) if isinstance(properties, Mapping) else set()
    found = [Pattern(language, text) for language, texts in known.patterns.items() for text in texts]
    for pattern in (*known.verbs, *(one.expression for one in found)):
        try:
            expression(pattern)
        except Exception:  # noqa: BLE001 - the binding's own error has no public name
            raise McpConfigError(f"servers.{server}.tools.{own}: {pattern!r:.100} is not an RE2 expression") from None
        strangers = set(re.findall(r"\(\?P<(\w+)>", pattern)) - arguments
        if strangers:
            raise McpConfigError(f"servers.{server}.tools.{own}: it has no argument {min(strangers)!r}")
    return tuple(found)
