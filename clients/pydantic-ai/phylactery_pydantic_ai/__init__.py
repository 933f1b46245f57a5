"""A Pydantic AI capability that puts RiskGate in front of an agent's tools."""

from phylactery_pydantic_ai.capability import RiskGate

__all__ = ["RiskGate"]
