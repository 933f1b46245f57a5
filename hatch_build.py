"""What a distribution needs of this repository's others: their folder in a checkout, their exact version in a release.

A name alone would be asked of an index, where a stranger could have published a package under it. A wheel that names
folders is for the machine that built it; an index refuses it. ``make wheels`` builds those for others.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELEASE = "PHYLACTERY_RELEASE"
"""The variable that says that a release is built."""


class CustomMetadataHook(MetadataHookInterface):
    """Sets ``dependencies``: the distributions of the folders in ``ours``, and those in its table."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dependencies of the distribution that is built."""
        ours = [self._needed(Path(self.root, folder).resolve()) for folder in self.config["ours"]]
        metadata["dependencies"] = [*ours, *self.config["dependencies"]]

    def _needed(self, folder: Path) -> str:
        with (folder / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file)["project"]
        if os.environ.get(RELEASE):
            return f"{project['name']}=={project['version']}"
        return f"{project['name']} @ {folder.as_uri()}"
