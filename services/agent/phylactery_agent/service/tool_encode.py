"""Tools to protobuf."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from phylactery.agent.v1 import tool_pb2
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_agent.service.tools import ShownTool, ShownTools


def tools_message(shown: ShownTools) -> tool_pb2.ListToolsResponse:
    """Answers a list of tools as it is sent."""
    response = tool_pb2.ListToolsResponse(
        tools=[tool_message(tool) for tool in shown.tools], catalog_revision=shown.revision
    )
    if shown.checked_us:
        response.check_time.CopyFrom(to_timestamp(shown.checked_us))
    return response


def tool_message(shown: ShownTool) -> tool_pb2.Tool:
    """Answers a tool as it is sent."""
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
