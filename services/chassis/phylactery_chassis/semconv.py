"""Names of spans and attributes.

The rpc.* names are OpenTelemetry's RPC conventions. The GenAI names are still in development in a repository of their
own, so they stand here alone.
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
GEN_AI_TOOL_CALL: Final = "gen_ai.tool.call.id"
GEN_AI_PROVIDER: Final = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
GEN_AI_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

RUN_ID: Final = "phylactery.run.id"
ATTEMPT: Final = "phylactery.attempt"
NODE: Final = "phylactery.node"
DECISION: Final = "phylactery.decision"

PATHWAY: Final = "phylactery.pathway"
MEMORY_LAYER: Final = "phylactery.memory.layer"
MEMORY_READ_MS: Final = "memory.read_ms"
MEMORY_WRITE_COUNT: Final = "memory.write_count"
MEMORY_HIT_RATIO: Final = "memory.hit_ratio"
MEMORY_PROFILE_HIT_RATIO: Final = "memory.profile_hit_ratio"
