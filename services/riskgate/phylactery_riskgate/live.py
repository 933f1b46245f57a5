"""The bundle that decides right now.

A request takes the engine once and keeps it to its end, so that no request sees half of one bundle and half of another.
"""

from __future__ import annotations

from phylactery_riskgate.domain.engine import DecisionEngine


class LiveBundle:
    """Holds the engine of the live bundle; replacing it is one assignment, which no request can see half of."""

    def __init__(self, engine: DecisionEngine) -> None:
        self._engine = engine

    @property
    def engine(self) -> DecisionEngine:
        """The engine of this moment: take it once for each request."""
        return self._engine

    def replace(self, engine: DecisionEngine) -> None:
        """Lets another bundle decide from the next request on."""
        self._engine = engine
