"""The default bundle changed for approval tests: every write needs an approval, however clearly it was requested.

Only writes to the user's own memory need none.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder

_ASK_FIRST = """
@id("tests.ask-first")
@title("Every write is asked about first")
@title_es("Antes de escribir siempre se pregunta")
forbid (principal, action in Action::"effect:write", resource)
when { action != Action::"remember" }
unless { context.approved.contains(Class::"self") };
"""


def asks_first(folder: Path) -> Path:
    """Write the bundle into a folder unless it exists, and return the folder."""
    if not folder.exists():
        shutil.copytree(default_bundle_folder(), folder, ignore=shutil.ignore_patterns("tests"))
        (folder / "policies" / "ask_first.cedar").write_text(_ASK_FIRST, encoding="utf-8")
    return folder
