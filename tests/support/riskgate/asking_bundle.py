"""A bundle for tests of approvals: the default one, in which every write is asked about, however clearly it was asked
for. Only the user's own memory keeps what it is told, as ever."""

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
    """Write the bundle into a folder, where it is not there already, and return the folder."""
    if not folder.exists():
        shutil.copytree(default_bundle_folder(), folder, ignore=shutil.ignore_patterns("tests"))
        (folder / "policies" / "ask_first.cedar").write_text(_ASK_FIRST, encoding="utf-8")
    return folder
