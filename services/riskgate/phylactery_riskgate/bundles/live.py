"""The bundle that decides right now.

A request takes the engine once and keeps it to its end, so that no request sees half of one bundle and half of another.
What is known of the active bundle has an age: who decides with older news than the limit asks for it first, so that a
process whose following stands still (stopped, starved) does not go on by a bundle that was replaced.
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
    """Holds the engine of the live bundle; replacing it is one assignment, which no request can see half of."""

    def __init__(self, engine: DecisionEngine | None, shadow: Shadow | None = None) -> None:
        """Take the engine, None where one is still to be found, and what decides beside it."""
        self._engine = engine
        self.shadow = shadow or Shadow()
        self._refused: tuple[int, str] | None = None
        self._refresh: Callable[[], Awaitable[None]] | None = None
        self._within_seconds, self._looked_at = 0.0, 0.0
        self._looking = asyncio.Lock()

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
        """Say why nothing is decided now; empty where it is."""
        if self._refused is None:
            return ""
        return f"bundle revision {self._refused[0]} is active and this process cannot use it: {self._refused[1]}"

    def replace(self, engine: DecisionEngine) -> None:
        """Let another bundle decide from the next request on."""
        self._engine, self._refused = engine, None

    def suspend(self, revision: int, why: str) -> None:
        """Let nothing be decided: the bundle that should decide is another one, which cannot be loaded."""
        self._refused = (revision, why)

    def follow(self, refresh: Callable[[], Awaitable[None]], within_seconds: float) -> None:
        """Take what looks for a later bundle, and how old its last look may be when something is decided."""
        self._refresh, self._within_seconds = refresh, within_seconds

    def looked(self, at: float) -> None:
        """Note that the database was asked for the active bundle, at a time of the monotonic clock."""
        self._looked_at = max(at, self._looked_at)

    async def at_least(self, revision: int) -> DecisionEngine:
        """Return the engine where its bundle has this revision or a later one, after a look for a later bundle.

        It looks, too, where the last look is older than the limit. Raise FailedPrecondition BUNDLE_TOO_OLD,
        Unavailable BUNDLE_NOT_LOADED, and Unavailable STORE_UNAVAILABLE where it had to look and could not.
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
        """Look once for all who wait for it."""
        async with self._looking:
            if self._old:
                await refresh()


def demand(need: int, have: int) -> None:
    """Raise FailedPrecondition BUNDLE_TOO_OLD where a revision is below what a caller demands."""
    if have < need:
        raise FailedPrecondition(
            "BUNDLE_TOO_OLD",
            f"the call demands a decision of bundle revision {need} or later, and here it is {have}; "
            "activate that bundle, or ask again with a tool_call_id of its own where it was decided before",
            metadata={"have": str(have), "need": str(need)},
        )


@dataclass(frozen=True, slots=True)
class CatalogView:
    """The tools of the bundle that decides, by name; None where the caller has them from before."""

    revision: int
    hash: str
    tools: Sequence[CatalogTool] | None


async def list_catalog(live: LiveBundle, known_hash: str) -> CatalogView:
    """Return the catalog, without tools where it is the bundle of known_hash.

    It is no older than what calls are decided by. Raise Unavailable BUNDLE_NOT_LOADED, STORE_UNAVAILABLE.
    """
    bundle = (await live.at_least(0)).bundle
    tools = None if bundle.hash == known_hash else sorted(bundle.tools.values(), key=lambda tool: tool.name)
    return CatalogView(bundle.revision, bundle.hash, tools)
