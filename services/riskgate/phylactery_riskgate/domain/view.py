"""What an approver sees of a bound call."""

from __future__ import annotations

from phylactery_riskgate.domain.model import ArgumentView, BoundCall, CatalogTool


def argument_views(bound: BoundCall, tool: CatalogTool) -> tuple[ArgumentView, ...]:
    """Shows every bound argument, control arguments first, with nothing in it that could deceive a reader."""
    raise NotImplementedError(bound, tool)
