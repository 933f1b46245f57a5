"""ToolService: the agent's tools, including those currently switched off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from google.protobuf.duration_pb2 import Duration
from phylactery.agent.v1 import tool_pb2, tool_pb2_grpc
from phylactery_chassis.auth.identity import Principal, Role, current_principal
from phylactery_chassis.rpc.validation import EdgeModel, from_message
from phylactery_chassis.util.timestamps import to_timestamp
from pydantic import StringConstraints

from phylactery_agent.api.mapping import Context
from phylactery_agent.tools.catalog_sync import CatalogCheck
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import DisabledReason, ToolRegistry


class ToolsRequest(EdgeModel):
    """ListTools; an empty source means all."""

    enabled_only: bool
    source: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{0,200}$")]


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

    def __init__(self, check: CatalogCheck, tools: ToolRegistry) -> None:
        self._check, self._tools = check, tools

    def list(self, principal: Principal, request: ToolsRequest) -> ShownTools:
        """Return the tools. Raise PermissionDenied ROLE_REQUIRED."""
        principal.require(Role.CALLER)
        shown = (self._shown(self._tools[name]) for name in sorted(self._tools))
        tools = [
            tool
            for tool in shown
            if (tool.disabled is None or not request.enabled_only) and request.source in ("", tool.source)
        ]
        return ShownTools(tools, self._check.revision, self._check.checked_us)

    def _shown(self, spec: ToolSpec) -> ShownTool:
        return ShownTool(
            spec,
            self._tools.source_of(spec.name),
            self._check.version_of(spec.name),
            self._tools.disabled_reason(spec.name),
            self._check.checked(spec.name),
        )


class ToolServicer(tool_pb2_grpc.ToolServiceServicer):
    """phylactery.agent.v1.ToolService."""

    def __init__(self, edge: ToolEdge) -> None:
        self._edge = edge

    async def ListTools(self, request: tool_pb2.ListToolsRequest, _context: Context) -> tool_pb2.ListToolsResponse:
        """Return the tools and their states."""
        return tools_message(self._edge.list(current_principal(), from_message(ToolsRequest, request)))


def tools_message(shown: ShownTools) -> tool_pb2.ListToolsResponse:
    """Return a list of tools in wire form."""
    response = tool_pb2.ListToolsResponse(
        tools=[tool_message(tool) for tool in shown.tools], catalog_revision=shown.revision
    )
    if shown.checked_us:
        response.check_time.CopyFrom(to_timestamp(shown.checked_us))
    return response


def tool_message(shown: ShownTool) -> tool_pb2.Tool:
    """Return a tool in wire form."""
    contract = shown.spec.contract
    timeout = Duration()
    timeout.FromMilliseconds(round(contract.timeout_seconds * 1_000))
    return tool_pb2.Tool(
        name=shown.spec.name,
        description=shown.spec.descriptions["en"],
        description_es=shown.spec.descriptions["es"],
        schema_hash=shown.spec.schema_hash,
        version=shown.version,
        risk=tool_pb2.ToolRisk.Value(f"TOOL_RISK_{contract.risk.upper()}"),
        effect=tool_pb2.ToolEffect.Value(f"TOOL_EFFECT_{contract.effect.upper()}"),
        idempotency=tool_pb2.ToolIdempotency.Value(f"TOOL_IDEMPOTENCY_{contract.idempotency.upper()}"),
        timeout=timeout,
        retries=contract.retries,
        control_arguments=contract.controls,
        source=shown.source,
        enabled=shown.disabled is None,
        disabled_reason=tool_pb2.DisabledReason.Value(f"DISABLED_REASON_{shown.disabled or 'UNSPECIFIED'}"),
        checked=shown.checked,
    )
