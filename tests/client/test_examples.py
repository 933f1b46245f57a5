"""Every Python example of the README and of docs is typed as strictly as the client itself."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"^```python\n(.+?)^```", re.DOTALL | re.MULTILINE)


def examples(folder: Path) -> list[Path]:
    """Write each example to a file of its own, named after its page."""
    written = []
    for page in PAGES:
        for number, program in enumerate(EXAMPLE.findall(page.read_text(encoding="utf-8")), 1):
            written.append(folder / f"{page.stem.replace('-', '_')}_{number}.py")
            written[-1].write_text(program, encoding="utf-8")
    return written


def mypy(folder: Path, *files: Path) -> str:
    """Return what mypy finds with no configuration but --strict, as a reader who installed the client runs it."""
    options = ("--strict", "--config-file=", f"--cache-dir={CACHE}")
    command = [sys.executable, "-m", "mypy", *options, *map(str, files)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


CACHE = ROOT / ".mypy_cache" / "examples"
"""What mypy found in the client, which takes it most of a minute; it looks again at what has changed since."""


@pytest.mark.slow
@pytest.mark.xdist_group("examples")
def test_the_examples_pass_mypy_strict(tmp_path: Path) -> None:
    files = examples(tmp_path)
    assert {file.name for file in files} >= {"README_1.py", "chat_1.py", "receipts_1.py"}
    assert mypy(tmp_path, *files) == f"Success: no issues found in {len(files)} source files\n"


@pytest.mark.slow
@pytest.mark.xdist_group("examples")
def test_an_example_that_does_not_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "from phylactery_client import PhylacteryClient\n\n\n"
        "async def main(agent: PhylacteryClient) -> int:\n"
        "    return await agent.get_thread('t1')\n"
    )
    assert "Incompatible return value type" in mypy(tmp_path, tmp_path / "wrong.py")
