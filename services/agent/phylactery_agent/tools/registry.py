"""The registry of tool specifications. It holds no function that could run one."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.specs import BUILTIN_SPECS

TOOL_REGISTRY: dict[str, ToolSpec] = {}


class ToolRegistrationError(Exception):
    """Two tools share a name, or a plug-in module is not one."""


def register(spec: ToolSpec) -> None:
    """Adds one tool; the same one again changes nothing.

    Raises:
        ToolRegistrationError: another tool has that name.
    """
    known = TOOL_REGISTRY.setdefault(spec.name, spec)
    if known is not spec:
        raise ToolRegistrationError(f"two tools are called {spec.name}")


def ensure_tools_registered(plugins: Sequence[str] = ()) -> None:
    """Registers the built-in tools, then those of each plug-in module by its importable name.

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
            register(spec)
