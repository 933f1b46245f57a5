"""LangChain middleware that puts RiskGate in front of an agent's tools."""

from phylactery_langchain.middleware import RiskGateMiddleware
from phylactery_langchain.request import GuardedState

__all__ = ["GuardedState", "RiskGateMiddleware"]
