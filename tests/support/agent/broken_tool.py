"""A plug-in that declares tools and brings no functions."""

from __future__ import annotations

from phylactery_agent.tools.contract import ToolSpec

SPECS: tuple[ToolSpec, ...] = ()
