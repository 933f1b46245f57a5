"""The checked-in generated code matches the contracts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_fresh_generation_equals_the_checked_in_code(tmp_path: Path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(
        [sys.executable, str(ROOT / "protos" / "generate.py"), str(tmp_path)],
        check=True,
        env={**os.environ, "PATH": path},
        capture_output=True,
    )
    fresh, checked_in = content(tmp_path), content(ROOT / "protos" / "gen")
    assert fresh.keys() == checked_in.keys()
    assert [name for name in fresh if fresh[name] != checked_in[name]] == [], "run: make protos"
