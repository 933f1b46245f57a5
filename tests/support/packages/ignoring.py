"""Says what the repository's rules keep out of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.support.packages.images import ROOT


def keeps_out(path: str, folder: Path) -> bool:
    """Return whether .gitignore keeps a path out, asked in an empty repository made in a folder.

    The tree under test may lie in no repository: unpacked from an archive, or copied by another account.
    """
    subprocess.run(["git", "init", "-q", folder], check=True)
    shutil.copy(ROOT / ".gitignore", folder)
    return subprocess.run(["git", "-C", folder, "check-ignore", "-q", path], check=False).returncode == 0
