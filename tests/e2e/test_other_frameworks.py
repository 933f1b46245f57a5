"""The loop of docs/other-frameworks.md, executed unchanged against a real RiskGate, except for the port."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from phylactery_cli.supervisor import Stack, running

from tests.support.processes.stack import FREE_PORTS, ForkedStack

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "other-frameworks.md").read_text(encoding="utf-8")


def run_page(stack: Stack, program: str) -> str:
    program = program.replace("127.0.0.1:50052", stack.target("riskgate"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_runs_what_was_asked_for_and_blocks_what_the_file_asked_for(tmp_path: Path):
    (program,) = re.findall(r"^```python\n(.+?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (promised,) = re.findall(r"^```text\n(.+?)^```", PAGE, re.DOTALL | re.MULTILINE)
    with running(ForkedStack(tmp_path / "data", FREE_PORTS)) as stack:
        said = run_page(stack, program)
        lines, wanted = said.splitlines(), promised.splitlines()
        assert lines[:2] == wanted[:2]
        assert lines[2].startswith(wanted[2].removesuffix("…"))
        assert "nobody pointed to" in lines[2]
        named = "guard.task(words, thread_id=thread_id, request_id="
        assert named in program
        asks = program.replace(named, "guard.without_words(thread_id, request_id=")
        assert "write_file log.txt -> write_file waits" in run_page(stack, asks), "without its task a write asks"
