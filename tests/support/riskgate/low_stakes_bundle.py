"""The default bundle changed for tests of what low stakes alone allow: no word allows a write, except an undo."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder

_BY_WORDS = re.compile(r'@id\("(?:write\.asked|memory\.remember)"\)\n.*?\n\};\n', re.DOTALL)
_LOW_STAKES = """
@id("tests.undo")
@title("An undo that was clearly asked for")
permit (principal, action == Action::"undo_write", resource)
when { context.task.shown && context.intent == 2 && context.origin.worst == 0 };

@id("tests.low-stakes")
@title("What can be taken back")
@allows("low_stakes")
permit (principal, action in Action::"effect:write", resource)
when { context.stakes == "low" && context.task.shown && action != Action::"undo_write"%s };
"""


def runs_low_stakes(folder: Path, unless: str = "") -> Path:
    """Write the bundle into a folder unless it exists, and return the folder; ``unless`` are further conditions."""
    if not folder.exists():
        shutil.copytree(default_bundle_folder(), folder, ignore=shutil.ignore_patterns("tests"))
        for file in (folder / "policies").glob("*.cedar"):
            file.write_text(_BY_WORDS.sub("", file.read_text(encoding="utf-8")), encoding="utf-8")
        (folder / "policies" / "low_stakes.cedar").write_text(_LOW_STAKES % unless, encoding="utf-8")
    return folder
