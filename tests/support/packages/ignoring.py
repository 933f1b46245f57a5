"""The repository's .gitignore rules."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.packages.images import ROOT


def keeps_out(path: str, folder: Path) -> bool:
    """Return True if .gitignore excludes a path, checked in an empty repository created in a folder.

    The tree under test may not be in a repository: unpacked from an archive, or copied by another account.
    """
    subprocess.run(["git", "init", "-q", folder], check=True)
    shutil.copy(ROOT / ".gitignore", folder)
    return subprocess.run(["git", "-C", folder, "check-ignore", "-q", path], check=False).returncode == 0
