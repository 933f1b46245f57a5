"""A Google ADK plugin that puts RiskGate in front of the tools of an application."""

from phylactery_google_adk.plugin import RiskGatePlugin

__all__ = ["RiskGatePlugin"]
