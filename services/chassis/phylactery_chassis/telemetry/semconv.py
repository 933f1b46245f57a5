"""Names of spans and attributes.

The rpc.* names are OpenTelemetry's RPC conventions. The GenAI names are still in development in a separate repository,
so they are defined only here.
"""

from __future__ import annotations

from typing import Final

RPC_SYSTEM: Final = "rpc.system.name"
RPC_METHOD: Final = "rpc.method"
RPC_STATUS: Final = "rpc.response.status_code"
ERROR_TYPE: Final = "error.type"
RPC_SERVER_DURATION: Final = "rpc.server.call.duration"

INVOKE_AGENT: Final = "invoke_agent"
PLAN: Final = "plan"
EXECUTE_TOOL: Final = "execute_tool"
CHAT: Final = "chat"

GEN_AI_OPERATION: Final = "gen_ai.operation.name"
GEN_AI_AGENT: Final = "gen_ai.agent.name"
GEN_AI_CONVERSATION: Final = "gen_ai.conversation.id"
GEN_AI_TOOL: Final = "gen_ai.tool.name"
GEN_AI_TOOL_TYPE: Final = "gen_ai.tool.type"
GEN_AI_TOOL_CALL: Final = "gen_ai.tool.call.id"
GEN_AI_PROVIDER: Final = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - tokens of a model
GEN_AI_DURATION: Final = "gen_ai.client.operation.duration"
GEN_AI_TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105
OTHER: Final = "_OTHER"
"""Placeholder for a value outside a known list: such a value may be anything, and may reveal anything."""
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

RUN_ID: Final = "phylactery.run.id"
ATTEMPT: Final = "phylactery.attempt"
NODE: Final = "phylactery.node"
DECISION: Final = "phylactery.decision"
FINISH_REASON: Final = "phylactery.finish_reason"
RUN_STATUS: Final = "phylactery.run.status"
TOOL_CALL_STATE: Final = "phylactery.tool_call.state"
OUTBOX_KIND: Final = "phylactery.outbox.kind"
ESCALATION_POLICY: Final = "phylactery.escalation.policy"
ESCALATION_STATE: Final = "phylactery.escalation.state"
CHANNEL: Final = "phylactery.channel"
GATEWAY_ACTION: Final = "phylactery.gateway.action"
GATEWAY_REPEATED: Final = "phylactery.gateway.repeated"
GATEWAY_TURN_STATE: Final = "phylactery.gateway.turn_state"

AGENT_TURNS: Final = "agent.turns"
AGENT_RUN_DURATION: Final = "agent.run.duration"
AGENT_QUEUE_DEPTH: Final = "agent.queue.depth"
AGENT_APPROVALS_WAITING: Final = "agent.approvals.waiting"
AGENT_EFFECTS_IN_DOUBT: Final = "agent.effects.in_doubt"
AGENT_OUTBOX_DEPTH: Final = "agent.outbox.depth"
AGENT_LEASE_LOSSES: Final = "agent.lease.losses"
AGENT_TURN_RETRIES: Final = "agent.turn.retries"
AGENT_RUN_RETRIES: Final = "agent.run.retries"
AGENT_TOOL_CALLS: Final = "agent.tool_calls"
AGENT_ESCALATIONS: Final = "agent.escalations"
AGENT_ESCALATIONS_OPEN: Final = "agent.escalations.open"
AGENT_ESCALATION_CLAIM_TIME: Final = "agent.escalation.time_to_claim"
SLA_ROUTE_DECISION_MS: Final = "sla.route_decision_ms"
SLA_TYPING_START_MS: Final = "sla.typing_start_ms"
SLA_END_TO_END_MS: Final = "sla.end_to_end_ms"
SLA_VIOLATIONS: Final = "sla.slo_violation_count"
SLA_ERROR_RATE: Final = "sla.error_rate"

PATHWAY: Final = "phylactery.pathway"
MEMORY_LAYER: Final = "phylactery.memory.layer"
MEMORY_READ_MS: Final = "memory.read_ms"
MEMORY_WRITE_COUNT: Final = "memory.write_count"
MEMORY_HIT_RATIO: Final = "memory.hit_ratio"
MEMORY_PROFILE_HIT_RATIO: Final = "memory.profile_hit_ratio"
