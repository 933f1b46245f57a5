"""Registry of tool specifications. It holds no function that could run a tool.

Each specification is stored with its source and with the objections to its use: by the catalog check, a missing
setting, or an MCP server. A tool is offered while there are no objections.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal, get_args

from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.specs import BUILTIN_SPECS

# Kept for the process, which runs one agent: the rules, the nodes of a graph and the texts that read it are functions
# without an owner that could hold a registry. Only Executor, CatalogCheck and McpServers change it, by what is below.
TOOL_REGISTRY: dict[str, ToolSpec] = {}

DisabledReason = Literal[
    "NOT_CONFIGURED", "NOT_PINNED", "DESCRIPTION_CHANGED", "SCHEMA_DIFFERS", "NOT_IN_CATALOG", "SERVER_UNAVAILABLE"
]
"""Why a tool is switched off; if several reasons apply, the first of these is reported."""

BUILTIN: Final = "builtin"
TOOL_DISABLED: Final = "TOOL_DISABLED"
"""The code of a call refused because its tool is switched off."""

_sources: dict[str, str] = {}
_objections: dict[str, dict[str, DisabledReason]] = {}
"""Objections by tool and objector."""


class ToolRegistrationError(Exception):
    """Error for two tools with the same name, or a plug-in module that is not one."""


def register(spec: ToolSpec, source: str = BUILTIN) -> None:
    """Add one tool; idempotent. source is "builtin", "plugin:MODULE" or "mcp:SERVER".

    Raises:
        ToolRegistrationError: Another tool has that name.
    """
    known = TOOL_REGISTRY.setdefault(spec.name, spec)
    if known is not spec:
        raise ToolRegistrationError(f"two tools are called {spec.name}")
    _sources.setdefault(spec.name, source)


def unregister(names: Iterable[str]) -> None:
    """Remove tools together with their objections."""
    for name in names:
        for kept in (TOOL_REGISTRY, _sources, _objections):
            kept.pop(name, None)


def source_of(name: str) -> str:
    """Return a tool's source."""
    return _sources.get(name, BUILTIN)


def offered_tools(allowed: Collection[str] = ()) -> Sequence[ToolSpec]:
    """Return the tools that may be proposed now, in order of registration; an empty ``allowed`` does not restrict."""
    return [
        spec for name, spec in TOOL_REGISTRY.items() if not _objections.get(name) and (not allowed or name in allowed)
    ]


def object_to(name: str, by: str, reason: DisabledReason) -> None:
    """Switch a tool off until the objector withdraws; ``by`` is the objector: catalog, settings, server."""
    _objections.setdefault(name, {})[by] = reason


def withdraw(name: str, by: str) -> None:
    """Withdraw an objection; do nothing if there is none."""
    _objections.get(name, {}).pop(by, None)


def disabled_reason(name: str) -> DisabledReason | None:
    """Return why a tool is switched off, or None if it is offered."""
    said = set(_objections.get(name, {}).values())
    return next((reason for reason in get_args(DisabledReason) if reason in said), None)


def refused_reason(name: str) -> DisabledReason | None:
    """Return why a call of a tool is refused, or None if it is not.

    An unavailable server is not such a reason: it may return soon, and the call waits that long.
    """
    reason = disabled_reason(name)
    return None if reason == "SERVER_UNAVAILABLE" else reason


def ensure_tools_registered(plugins: Sequence[str] = ()) -> None:
    """Register the built-in tools, then those of each plug-in module by its importable name.

    Raises:
        ToolRegistrationError: A module offers no SPECS, or a name is already in use.
        ModuleNotFoundError: A module does not exist.
    """
    for spec in BUILTIN_SPECS:
        register(spec)
    for name in plugins:
        specs = getattr(importlib.import_module(name), "SPECS", None)
        if not isinstance(specs, tuple):
            raise ToolRegistrationError(f"the plug-in {name} has no tuple SPECS")
        for spec in specs:
            register(spec, f"plugin:{name}")
