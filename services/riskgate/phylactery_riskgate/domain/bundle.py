"""A policy bundle: a folder that holds everything RiskGate decides by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from phylactery_riskgate.domain.model import ApprovalClass, CatalogTool


class BundleError(Exception):
    """A bundle that cannot be used; says the file, the line (0 where there is none) and why."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}" if line else f"{file}: {message}")
        self.file = file
        self.line = line
        self.message = message


@dataclass(frozen=True, slots=True)
class Bundle:
    """A loaded, checked bundle."""

    revision: int
    hash: str
    tools: Mapping[str, CatalogTool]
    classes: tuple[ApprovalClass, ...]
    approval_ttl_seconds: int
    max_pending_per_thread: int
    max_pending_per_user: int


def load_bundle(folder: Path) -> Bundle:
    """Loads and checks the bundle in a folder.

    Raises:
        BundleError: the folder is no valid bundle.
    """
    raise NotImplementedError(folder)
