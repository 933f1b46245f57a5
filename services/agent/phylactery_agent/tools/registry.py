"""The registry of tool specifications. It holds no function that could run one.

Beside each specification stands where it comes from, and who says that it must not be used now: the catalog's check,
a missing setting, an MCP server. A tool is offered while nobody says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal, get_args

from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.specs import BUILTIN_SPECS

TOOL_REGISTRY: dict[str, ToolSpec] = {}

DisabledReason = Literal[
    "NOT_CONFIGURED", "NOT_PINNED", "DESCRIPTION_CHANGED", "SCHEMA_DIFFERS", "NOT_IN_CATALOG", "SERVER_UNAVAILABLE"
]
"""Why a tool is switched off; where several hold, the first of these is told."""

BUILTIN: Final = "builtin"
TOOL_DISABLED: Final = "TOOL_DISABLED"
"""The code of a call that is refused because its tool is switched off."""

_sources: dict[str, str] = {}
_objections: dict[str, dict[str, DisabledReason]] = {}
"""By tool, who objects and why."""


class ToolRegistrationError(Exception):
    """Two tools share a name, or a plug-in module is not one."""


def register(spec: ToolSpec, source: str = BUILTIN) -> None:
    """Add one tool; the same one again changes nothing. source is "builtin", "plugin:MODULE" or "mcp:SERVER".

    Raises:
        ToolRegistrationError: another tool has that name.
    """
    known = TOOL_REGISTRY.setdefault(spec.name, spec)
    if known is not spec:
        raise ToolRegistrationError(f"two tools are called {spec.name}")
    _sources.setdefault(spec.name, source)


def unregister(names: Iterable[str]) -> None:
    """Take tools away again, with all that is said about them."""
    for name in names:
        for kept in (TOOL_REGISTRY, _sources, _objections):
            kept.pop(name, None)


def source_of(name: str) -> str:
    """Return where a tool comes from."""
    return _sources.get(name, BUILTIN)


def offered_tools(allowed: Collection[str] = ()) -> Sequence[ToolSpec]:
    """Return the tools that may be proposed now, in order of registration; an empty ``allowed`` narrows nothing."""
    return [
        spec for name, spec in TOOL_REGISTRY.items() if not _objections.get(name) and (not allowed or name in allowed)
    ]


def object_to(name: str, by: str, reason: DisabledReason) -> None:
    """Switch a tool off until whoever says so takes it back; ``by`` is who: catalog, settings, server."""
    _objections.setdefault(name, {})[by] = reason


def withdraw(name: str, by: str) -> None:
    """Take an objection back; without one nothing changes."""
    _objections.get(name, {}).pop(by, None)


def disabled_reason(name: str) -> DisabledReason | None:
    """Return why a tool is switched off, None where it is offered."""
    said = set(_objections.get(name, {}).values())
    return next((reason for reason in get_args(DisabledReason) if reason in said), None)


def refused_reason(name: str) -> DisabledReason | None:
    """Return why a call of a tool is refused, None where it is not.

    A server that is away is no such reason: it may be back in a moment, and whoever calls it waits that long.
    """
    reason = disabled_reason(name)
    return None if reason == "SERVER_UNAVAILABLE" else reason


def ensure_tools_registered(plugins: Sequence[str] = ()) -> None:
    """Register the built-in tools, then those of each plug-in module by its importable name.

    Raises:
        ToolRegistrationError: a module offers no SPECS, or a name is taken.
        ModuleNotFoundError: there is no such module.
    """
    for spec in BUILTIN_SPECS:
        register(spec)
    for name in plugins:
        specs = getattr(importlib.import_module(name), "SPECS", None)
        if not isinstance(specs, tuple):
            raise ToolRegistrationError(f"the plug-in {name} has no tuple SPECS")
        for spec in specs:
            register(spec, f"plugin:{name}")
