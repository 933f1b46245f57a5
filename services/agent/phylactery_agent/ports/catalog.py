"""RiskGate's catalog as the agent holds its own tools against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One tool of the catalog: its version, as in receipts, and the hash of its schema."""

    version: str
    schema_hash: str


@dataclass(frozen=True, slots=True)
class CatalogView:
    """The catalog of the bundle that decides, by the tools' names."""

    revision: int
    bundle_hash: str
    tools: Mapping[str, CatalogEntry]


class ToolCatalog(Protocol):
    """Where the catalog comes from."""

    async def catalog(self, known_hash: str) -> CatalogView | None:
        """Answers the catalog, None while the bundle of known_hash decides.

        Raises GateUnavailableError, GateRefusedError.
        """
        ...
