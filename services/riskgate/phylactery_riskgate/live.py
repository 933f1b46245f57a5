"""The bundle that decides right now.

A request takes the engine once and keeps it to its end, so that no request sees half of one bundle and half of another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from phylactery_chassis.errors import FailedPrecondition, Unavailable

from phylactery_riskgate.domain.engine import DecisionEngine
from phylactery_riskgate.shadow import Shadow


class LiveBundle:
    """Holds the engine of the live bundle; replacing it is one assignment, which no request can see half of."""

    def __init__(self, engine: DecisionEngine | None, shadow: Shadow | None = None) -> None:
        """Takes the engine, None where one is still to be found, and what decides beside it."""
        self._engine = engine
        self.shadow = shadow or Shadow()
        self._refused: tuple[int, str] | None = None
        self._refresh: Callable[[], Awaitable[None]] | None = None

    @property
    def engine(self) -> DecisionEngine:
        """The engine of this moment: take it once for each request. Raises Unavailable BUNDLE_NOT_LOADED."""
        if self._refused is not None:
            raise Unavailable("BUNDLE_NOT_LOADED", self.problem, metadata={"revision": str(self._refused[0])})
        return self.held

    @property
    def held(self) -> DecisionEngine:
        """The last engine that decided, also while none may."""
        assert self._engine is not None, "whoever starts RiskGate finds a bundle or gives up"
        return self._engine

    @property
    def problem(self) -> str:
        """Says why nothing is decided now; empty where it is."""
        if self._refused is None:
            return ""
        return f"bundle revision {self._refused[0]} is active and this process cannot use it: {self._refused[1]}"

    def replace(self, engine: DecisionEngine) -> None:
        """Lets another bundle decide from the next request on."""
        self._engine, self._refused = engine, None

    def suspend(self, revision: int, why: str) -> None:
        """Lets nothing be decided: the bundle that should decide is another one, which cannot be loaded."""
        self._refused = (revision, why)

    def follow(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Takes what looks for a later bundle, for requests that demand one."""
        self._refresh = refresh

    async def at_least(self, revision: int) -> DecisionEngine:
        """Answers the engine where its bundle has this revision or a later one, after a look for a later bundle.

        Raises FailedPrecondition BUNDLE_TOO_OLD, and Unavailable BUNDLE_NOT_LOADED.
        """
        if revision > self.engine.bundle.revision and self._refresh is not None:
            await self._refresh()
        engine = self.engine
        demand(revision, engine.bundle.revision)
        return engine


def demand(need: int, have: int) -> None:
    """Raises FailedPrecondition BUNDLE_TOO_OLD where a revision is below what a caller demands."""
    if have < need:
        raise FailedPrecondition(
            "BUNDLE_TOO_OLD",
            f"the call demands a decision of bundle revision {need} or later, and here it is {have}; "
            "activate that bundle, or ask again with a tool_call_id of its own where it was decided before",
            metadata={"have": str(have), "need": str(need)},
        )
