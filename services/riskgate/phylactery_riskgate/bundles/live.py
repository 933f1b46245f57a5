"""The live bundle, which decides now.

A request fetches the engine once and keeps it to its end, so that no request sees parts of two bundles. Knowledge of
the active bundle has an age: a decision with older knowledge than the limit refreshes it first, so that a process whose
follower stalled (stopped, starved) does not continue with a replaced bundle.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from phylactery_chassis.errors import FailedPrecondition, Unavailable

from phylactery_riskgate.bundles.shadow import Shadow
from phylactery_riskgate.domain.model import CatalogTool
from phylactery_riskgate.domain.policy.engine import DecisionEngine


class LiveBundle:
    """Holder of the live bundle's engine; replacing it is one atomic assignment."""

    def __init__(self, engine: DecisionEngine | None, shadow: Shadow | None = None) -> None:
        """Start with an engine, or None if it is still to be found, and the shadow."""
        self._engine = engine
        self.shadow = shadow or Shadow()
        self._refused: tuple[int, str] | None = None
        self._refresh: Callable[[], Awaitable[None]] | None = None
        self._within_seconds, self._looked_at = 0.0, 0.0
        self._looking = asyncio.Lock()

    @property
    def engine(self) -> DecisionEngine:
        """Return the current engine: fetch it once per request. Raise Unavailable BUNDLE_NOT_LOADED."""
        if self._refused is not None:
            raise Unavailable("BUNDLE_NOT_LOADED", self.problem, metadata={"revision": str(self._refused[0])})
        return self.held

    @property
    def held(self) -> DecisionEngine:
        """Return the last engine in use, even while decisions are suspended."""
        assert self._engine is not None, "RiskGate does not start without a bundle"
        return self._engine

    @property
    def problem(self) -> str:
        """Return why nothing can be decided now, or an empty string."""
        if self._refused is None:
            return ""
        return f"bundle revision {self._refused[0]} is active and this process cannot use it: {self._refused[1]}"

    def replace(self, engine: DecisionEngine) -> None:
        """Use another bundle; takes effect for new requests."""
        self._engine, self._refused = engine, None

    def suspend(self, revision: int, why: str) -> None:
        """Suspend all decisions: the active bundle is a different one, which cannot be loaded."""
        self._refused = (revision, why)

    def follow(self, refresh: Callable[[], Awaitable[None]], within_seconds: float) -> None:
        """Set the function that refreshes the active bundle, and the maximum age of a refresh for a decision."""
        self._refresh, self._within_seconds = refresh, within_seconds

    def looked(self, at: float) -> None:
        """Record when the active bundle was last read from the database, by the monotonic clock."""
        self._looked_at = max(at, self._looked_at)

    async def at_least(self, revision: int) -> DecisionEngine:
        """Return the engine if its bundle has at least this revision, after a refresh if necessary.

        It also refreshes if the last refresh is older than the limit. Raise FailedPrecondition BUNDLE_TOO_OLD,
        Unavailable BUNDLE_NOT_LOADED, and Unavailable STORE_UNAVAILABLE if a refresh was necessary and failed.
        """
        if self._refresh is not None:
            if revision > self.engine.bundle.revision:
                await self._refresh()
            elif self._old:
                await self._look(self._refresh)
        engine = self.engine
        demand(revision, engine.bundle.revision)
        return engine

    @property
    def _old(self) -> bool:
        return time.monotonic() - self._looked_at > self._within_seconds

    async def _look(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Refresh once for all waiting requests."""
        async with self._looking:
            if self._old:
                await refresh()


def demand(need: int, have: int) -> None:
    """Raise FailedPrecondition BUNDLE_TOO_OLD if a revision is below what a caller demands."""
    if have < need:
        raise FailedPrecondition(
            "BUNDLE_TOO_OLD",
            f"the call requires bundle revision {need} or later, but the revision here is {have}; activate that "
            f"bundle, or use a new tool_call_id if the call was decided before",
            metadata={"have": str(have), "need": str(need)},
        )


@dataclass(frozen=True, slots=True)
class CatalogView:
    """The tools of the live bundle, sorted by name; None if the caller has them already."""

    revision: int
    hash: str
    tools: Sequence[CatalogTool] | None


async def list_catalog(live: LiveBundle, known_hash: str) -> CatalogView:
    """Return the catalog, without tools if known_hash is its bundle.

    It is as current as the bundle used for calls. Raise Unavailable BUNDLE_NOT_LOADED, STORE_UNAVAILABLE.
    """
    bundle = (await live.at_least(0)).bundle
    tools = None if bundle.hash == known_hash else sorted(bundle.tools.values(), key=lambda tool: tool.name)
    return CatalogView(bundle.revision, bundle.hash, tools)
