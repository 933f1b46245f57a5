"""A plug-in that declares tools without implementing them."""

from __future__ import annotations

from phylactery_agent.tools.contract import ToolSpec

SPECS: tuple[ToolSpec, ...] = ()
