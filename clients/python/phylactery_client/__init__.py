"""The Python client of Phylactery: PhylacteryClient (the agent), RiskGateClient, MemoryClient."""

from phylactery_client.channel import ServiceClient, new_request_id
from phylactery_client.chat import PhylacteryClient
from phylactery_client.errors import FieldViolation, PhylacteryError
from phylactery_client.memory import MemoryClient, NewMessage
from phylactery_client.riskgate import RiskGateClient, ToolCall

__all__ = [
    "FieldViolation",
    "MemoryClient",
    "NewMessage",
    "PhylacteryClient",
    "PhylacteryError",
    "RiskGateClient",
    "ServiceClient",
    "ToolCall",
    "new_request_id",
]
