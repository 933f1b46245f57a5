"""The file tools over a test's folders."""

from __future__ import annotations

from pathlib import Path

from phylactery_agent.tools.builtin import builtin_implementations
from phylactery_agent.tools.builtin.files import FileTools
from phylactery_agent.tools.builtin.journal import EffectJournal
from phylactery_agent.tools.builtin.sandbox import Sandbox
from phylactery_agent.tools.builtin.versions import VersionLimits, VersionStore
from phylactery_agent.tools.builtin.workspaces import Workspaces
from phylactery_agent.tools.contract import Implementation
from phylactery_agent.tools.named_folders import SharedFolder

MAX_FILE_BYTES = 1_000
LIMITS = VersionLimits(per_file=20, bytes_per_user=64 * 1024)


def file_tools_in(folder: Path, limits: VersionLimits = LIMITS) -> FileTools:
    """Return file tools whose sandbox, journal and versions are below one folder."""
    return FileTools(
        Sandbox(folder / "sandbox", MAX_FILE_BYTES),
        EffectJournal(folder / "journal"),
        VersionStore(folder / "versions", limits),
    )


def shared_folder(folder: Path, tenant: str = "acme", name: str = "box", *, writable: bool = False) -> SharedFolder:
    """Return a new folder that the people of a tenant share."""
    path = folder / "shared-with-all" / name
    path.mkdir(parents=True)
    return SharedFolder(tenant=tenant, name=name, path=path, writable=writable)


def file_tools(sandbox: Path, journal: Path) -> dict[str, Implementation]:
    """Return the built-in tools by name."""
    versions = VersionStore(journal / "versions", LIMITS)
    return dict(builtin_implementations(Workspaces(sandbox, MAX_FILE_BYTES), EffectJournal(journal), versions))
