"""People's workspaces: the one place that says which files a person's tools reach.

A person is a user of a tenant. Everything that touches files asks here by both: tools, file previews, the facts that
RiskGate is shown, files that are sent and fetched, undo and erasure.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from phylactery_agent.tools.builtin.sandbox import Sandbox
from phylactery_agent.tools.contract import ToolFailedError
from phylactery_agent.tools.named_folders import (
    SharedFolder,
    make_person_folder,
    people_below,
    person_folder,
    remove_person_folder,
)


class Workspaces:
    """The workspaces below one root, and the folders shared with whole tenants."""

    def __init__(self, root: Path, max_file_bytes: int, shared: Sequence[SharedFolder] = ()) -> None:
        """Create the root if it is missing. Raise OSError."""
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root, self.max_file_bytes = root, max_file_bytes
        self.shared = tuple(shared)

    def of(self, tenant: str, user_id: str) -> Sandbox:
        """Return a person's workspace, created if it was missing. Raise ToolFailedError IO_ERROR."""
        try:
            folder = make_person_folder(self.root, tenant, user_id)
        except OSError as error:
            raise ToolFailedError("IO_ERROR", "the folder of the person's files cannot be used") from error
        return Sandbox(folder, self.max_file_bytes, {one.name: one for one in self.shared if one.tenant == tenant})

    def folder_of(self, tenant: str, user_id: str) -> Path:
        """Return a person's own folder, which may not exist yet."""
        return person_folder(self.root, tenant, user_id)

    def people(self) -> Sequence[tuple[str, str]]:
        """Return tenant and user of every person with a workspace."""
        return list(people_below(self.root))

    def forget(self, tenant: str, user_id: str) -> int:
        """Remove a person's workspace durably and return how many files were in it. Raise OSError."""
        count = sum(len(files) for _, _, files in os.walk(self.folder_of(tenant, user_id)))
        remove_person_folder(self.root, tenant, user_id)
        return count
