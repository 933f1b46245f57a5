"""RiskGate in front of the tools of an agent of the OpenAI Agents SDK."""

from phylactery_openai_agents.gate import RiskGate
from phylactery_openai_agents.request import Request

__all__ = ["Request", "RiskGate"]
