"""Registry of tool specifications. It holds no function that could run a tool.

Each specification is stored with its source and with the objections to its use: by the catalog check, a missing
setting, or an MCP server. A tool is offered while there are no objections.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, get_args

from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.specs import BUILTIN_SPECS

DisabledReason = Literal[
    "NOT_FOR_GUESTS",
    "NOT_CONFIGURED",
    "NOT_PINNED",
    "DESCRIPTION_CHANGED",
    "SCHEMA_DIFFERS",
    "NOT_IN_CATALOG",
    "SERVER_UNAVAILABLE",
]
"""Why a tool is switched off; if several reasons apply, the first of these is reported."""

NOT_FOR_GUESTS: Final = "NOT_FOR_GUESTS"
"""The objection to every tool of other levels, in what a guest is offered."""
BUILTIN: Final = "builtin"
TOOL_DISABLED: Final = "TOOL_DISABLED"
"""The code of a call refused because its tool is switched off."""


class ToolRegistrationError(Exception):
    """Error for two tools with the same name, or a plug-in module that is not one."""


class ToolRegistry(Mapping[str, ToolSpec]):
    """The tools of one agent by name, in order of registration. Only Executor, CatalogCheck and McpServers change it.

    It may be read in another thread than the one that changes it.
    """

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        """Register the built-in tools, then those of each plug-in module by its importable name.

        Raises:
            ToolRegistrationError: A module offers no SPECS, or a name is already in use.
            ModuleNotFoundError: A module does not exist.
        """
        self.plugins = tuple(plugins)
        self._specs: dict[str, ToolSpec] = {}
        self._sources: dict[str, str] = {}
        self._objections: dict[str, dict[str, DisabledReason]] = {}
        """Objections by tool and objector."""
        self._in_form = False
        self.guest_tools: frozenset[str] = frozenset()
        """The tools of level guest in RiskGate's catalog; none until it was read."""
        for spec in BUILTIN_SPECS:
            self.register(spec)
        for name in self.plugins:
            specs = getattr(importlib.import_module(name), "SPECS", None)
            if not isinstance(specs, tuple):
                raise ToolRegistrationError(f"the plug-in {name} has no tuple SPECS")
            for spec in specs:
                self.register(spec, f"plugin:{name}")

    def __getitem__(self, name: str) -> ToolSpec:
        """Return a tool. Raise KeyError if there is none of that name."""
        return self._specs[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names as they are now: tools may be added or removed meanwhile."""
        return iter(tuple(self._specs))

    def __len__(self) -> int:
        """Return the number of tools."""
        return len(self._specs)

    def register(self, spec: ToolSpec, source: str = BUILTIN) -> None:
        """Add one tool; idempotent. source is "builtin", "plugin:MODULE" or "mcp:SERVER".

        Raises:
            ToolRegistrationError: Another tool has that name.
        """
        known = self._specs.setdefault(spec.name, spec)
        if known is not spec:
            raise ToolRegistrationError(f"two tools are called {spec.name}")
        self._sources.setdefault(spec.name, source)

    def unregister(self, names: Iterable[str]) -> None:
        """Remove tools together with their objections."""
        for name in names:
            for kept in (self._specs, self._sources, self._objections):
                kept.pop(name, None)

    def source_of(self, name: str) -> str:
        """Return a tool's source."""
        return self._sources.get(name, BUILTIN)

    def offered(self, allowed: Collection[str] = ()) -> Sequence[ToolSpec]:
        """Return the tools that may be proposed now; an empty ``allowed`` does not restrict.

        What only a form calls is not among them.
        """
        return [
            spec
            for spec in tuple(self._specs.values())
            if not spec.forms_only and not self._objections.get(spec.name) and (not allowed or spec.name in allowed)
        ]

    def for_guests(self, *, in_form: bool) -> ToolRegistry:
        """Return the registry as a guest finds it: what is not for guests is switched off. RiskGate decides anyway.

        A form may submit by a tool that guests cannot ask for, and RiskGate knows which; ``in_form`` says that one is
        served. It shares everything with this one, for the length of a turn.
        """
        view = copy.copy(self)
        view._in_form = in_form  # noqa: SLF001 - one of us
        view._objections = {  # noqa: SLF001 - one of us
            name: self._objections.setdefault(name, {})
            if name in self.guest_tools
            else {**self._objections.get(name, {}), "guest": NOT_FOR_GUESTS}
            for name in self
        }
        return view

    def disabled(self) -> Sequence[ToolSpec]:
        """Return the tools that are switched off."""
        return [spec for spec in tuple(self._specs.values()) if self._objections.get(spec.name)]

    def object_to(self, name: str, by: str, reason: DisabledReason) -> None:
        """Switch a tool off until the objector withdraws; ``by`` is the objector: catalog, settings, server."""
        self._objections.setdefault(name, {})[by] = reason

    def withdraw(self, name: str, by: str) -> None:
        """Withdraw an objection; do nothing if there is none."""
        self._objections.get(name, {}).pop(by, None)

    def disabled_reason(self, name: str) -> DisabledReason | None:
        """Return why a tool is switched off, or None if it is offered."""
        said = set(self._objections.get(name, {}).values())
        return next((reason for reason in get_args(DisabledReason) if reason in said), None)

    def refused_reason(self, name: str) -> DisabledReason | None:
        """Return why a call of a tool is refused, or None if it is not.

        An unavailable server is not such a reason: it may return soon, and the call waits that long. Nor is a guest
        while a form is served.
        """
        said = set(self._objections.get(name, {}).values()) - ({NOT_FOR_GUESTS} if self._in_form else set())
        reason = next((reason for reason in get_args(DisabledReason) if reason in said), None)
        return None if reason == "SERVER_UNAVAILABLE" else reason
