"""Request models of PolicyService."""

from __future__ import annotations

from typing import Annotated

from phylactery_chassis.rpc.validation import EdgeModel, OptionalSha256
from pydantic import Field

from phylactery_riskgate.decisions.replay import MAX_DECISIONS
from phylactery_riskgate.domain.bundle.files import MAX_FILES

_MAX_US = 253_402_300_800 * 1_000_000
"""The end of the year 9999, where protobuf timestamps end."""


class FileInput(EdgeModel):
    """One file; its name and content are checked as part of the bundle, with findings."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    content: bytes


Files = Annotated[list[FileInput], Field(min_length=1, max_length=MAX_FILES)]


class _BundleInput(EdgeModel):
    files: Files

    @property
    def parts(self) -> list[tuple[str, bytes]]:
        """Return names and contents."""
        return [(file.name, file.content) for file in self.files]


class ShowInput(EdgeModel):
    """Which bundle's files to show; empty for the live one."""

    hash: OptionalSha256 = ""


class CatalogInput(EdgeModel):
    """The bundle whose tools the caller already has; empty for none."""

    known_hash: OptionalSha256 = ""


class ValidateInput(_BundleInput):
    """A bundle to check."""


class ActivateInput(_BundleInput):
    """A bundle to activate, or the end of the shadow: only that may be without files."""

    files: Annotated[list[FileInput], Field(max_length=MAX_FILES)]
    shadow: bool = False
    skip_cases: bool = False


class RollbackInput(EdgeModel):
    """Which bundle to go back to; empty for the one before the active one."""

    hash: OptionalSha256 = ""


class HistoryInput(EdgeModel):
    """How much of the history to return."""

    limit: int = Field(0, ge=0, le=500)


class ReplayInput(_BundleInput):
    """A bundle to replay decisions with, from a time on; 0 for all."""

    since_us: int = Field(0, ge=0, lt=_MAX_US)
    limit: int = Field(0, ge=0, le=MAX_DECISIONS)
