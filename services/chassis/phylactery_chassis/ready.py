"""The file that says a service serves: where, and as which process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_ready(path: Path, content: dict[str, Any]) -> None:
    """Writes the file whole or not at all, so that a reader never sees half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content))
    part.replace(path)
