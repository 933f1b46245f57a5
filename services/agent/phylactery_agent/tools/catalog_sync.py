"""Comparison of the agent's tools with RiskGate's authoritative catalog; tools unknown to it are switched off.

It runs at start and again whenever another bundle becomes active. While RiskGate is unavailable no tool is switched off
or on: each call carries the hash of its schema, and RiskGate compares it then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from phylactery_chassis.auth.levels import GUEST
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock

from phylactery_agent.ports import CatalogEntry, CatalogView, GateRefusedError, GateUnavailableError, ToolCatalog
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import DisabledReason, ToolRegistry

_BY = "catalog"
_FIRST_SECONDS = 3.0
_log = get_logger("catalog")


class CatalogCheck:
    """The state of the agent's tools in RiskGate's catalog."""

    def __init__(self, catalog: ToolCatalog, clock: Clock, tools: ToolRegistry, *, poll_seconds: float) -> None:
        """Set the pause between two checks; with 0, check at the start only, until RiskGate has answered once."""
        self._catalog, self._clock, self._tools, self._poll_seconds = catalog, clock, tools, poll_seconds
        self._view: CatalogView | None = None
        self._said: dict[str, DisabledReason | None] = {}
        self._away = False
        self.checked_us = 0
        """When RiskGate answered last, 0 where it never did."""

    @property
    def revision(self) -> int:
        """Return the revision of the bundle the tools were compared with, 0 if RiskGate was never reached."""
        return self._view.revision if self._view is not None else 0

    def version_of(self, name: str) -> str:
        """Return RiskGate's version of a tool, empty if RiskGate does not know it or has not been asked yet."""
        entry = self._entries.get(name)
        return "" if entry is None else entry.version

    def checked(self, name: str) -> bool:
        """Return True if a tool was compared with the catalog."""
        return name in self._said

    @property
    def _entries(self) -> Mapping[str, CatalogEntry]:
        return self._view.tools if self._view is not None else {}

    async def look(self) -> bool:
        """Query RiskGate once and apply its answer; return False, changing nothing, if it does not answer."""
        try:
            found = await self._catalog.catalog(self._view.bundle_hash if self._view is not None else "")
        except (GateUnavailableError, GateRefusedError) as error:
            if not self._away:
                _log.warning("the catalog was not read; RiskGate compares schemas at each call", why=str(error))
            self._away = True
            return False
        self._away = False
        self._view = found or self._view
        self.checked_us = self._clock.now_us()
        self._apply()
        return True

    async def first_look(self) -> None:
        """Check once before serving; if RiskGate is unavailable, retry in the background."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_SECONDS):
                await self.look()

    async def run(self) -> None:
        """Check repeatedly, forever; without a pause configured, until RiskGate has answered once."""
        while self._poll_seconds or not self.checked_us:
            await asyncio.sleep(self._poll_seconds or 1.0)
            await self.look()

    def _apply(self) -> None:
        """Switch tools off and on; also for an unchanged catalog, since tools may have been added."""
        self._tools.guest_tools = frozenset(name for name, entry in self._entries.items() if entry.level == GUEST)
        for name, spec in self._tools.items():
            verdict = self._verdict(spec)
            if verdict is None:
                self._tools.withdraw(name, _BY)
            else:
                self._tools.object_to(name, _BY, verdict)
            if name not in self._said or self._said[name] != verdict:
                self._tell(name, verdict)
            self._said[name] = verdict

    def _verdict(self, spec: ToolSpec) -> DisabledReason | None:
        entry = self._entries.get(spec.name)
        if entry is None:
            return "NOT_IN_CATALOG"
        return None if entry.schema_hash == spec.schema_hash else "SCHEMA_DIFFERS"

    def _tell(self, name: str, verdict: DisabledReason | None) -> None:
        if verdict is not None:
            _log.warning("a tool is switched off", tool=name, reason=verdict, revision=self.revision)
        elif name in self._said:
            _log.info("a tool is switched on again", tool=name, revision=self.revision)
