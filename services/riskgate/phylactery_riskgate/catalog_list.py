"""What agents may know of the catalog: which tools the live bundle holds, and the hash of each one's schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phylactery_riskgate.domain.model import CatalogTool
from phylactery_riskgate.live import LiveBundle


@dataclass(frozen=True, slots=True)
class CatalogView:
    """The tools of the bundle that decides, by name; None where the caller has them from before."""

    revision: int
    hash: str
    tools: Sequence[CatalogTool] | None


async def list_catalog(live: LiveBundle, known_hash: str) -> CatalogView:
    """Answers the catalog, without tools where it is the bundle of known_hash.

    It is no older than what calls are decided by. Raises Unavailable BUNDLE_NOT_LOADED, STORE_UNAVAILABLE.
    """
    bundle = (await live.at_least(0)).bundle
    tools = None if bundle.hash == known_hash else sorted(bundle.tools.values(), key=lambda tool: tool.name)
    return CatalogView(bundle.revision, bundle.hash, tools)
