"""Tool edge: the agent's tools, including those currently switched off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phylactery_chassis.auth.identity import Principal, Role

from phylactery_agent.api.requests import ToolsRequest
from phylactery_agent.tools.catalog_sync import CatalogCheck
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import TOOL_REGISTRY, DisabledReason, disabled_reason, source_of


@dataclass(frozen=True, slots=True)
class ShownTool:
    """A tool and its state; ``disabled`` is None if it is offered."""

    spec: ToolSpec
    source: str
    version: str
    disabled: DisabledReason | None
    checked: bool


@dataclass(frozen=True, slots=True)
class ShownTools:
    """Every tool by name, and the catalog they were compared with.

    Revision and time are 0 before the first comparison.
    """

    tools: Sequence[ShownTool]
    revision: int
    checked_us: int


class ToolEdge:
    """The implementation of ToolService, without gRPC."""

    def __init__(self, check: CatalogCheck) -> None:
        self._check = check

    def list(self, principal: Principal, request: ToolsRequest) -> ShownTools:
        """Return the tools. Raise PermissionDenied ROLE_REQUIRED."""
        principal.require(Role.CALLER)
        shown = (self._shown(TOOL_REGISTRY[name]) for name in sorted(TOOL_REGISTRY))
        tools = [
            tool
            for tool in shown
            if (tool.disabled is None or not request.enabled_only) and request.source in ("", tool.source)
        ]
        return ShownTools(tools, self._check.revision, self._check.checked_us)

    def _shown(self, spec: ToolSpec) -> ShownTool:
        return ShownTool(
            spec,
            source_of(spec.name),
            self._check.version_of(spec.name),
            disabled_reason(spec.name),
            self._check.checked(spec.name),
        )
