"""Microsoft Agent Framework middleware that puts RiskGate in front of an agent's tools."""

from phylactery_agent_framework.gate import RiskGate

__all__ = ["RiskGate"]
