"""The security team's page, docs/riskgate.md, executed from top to bottom unchanged except for the port."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.ports import lasting_port
from tests.support.processes.shells import forking_commands

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "riskgate.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.+?)```", PAGE, re.DOTALL)
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}{os.pathsep}{Path.home() / 'go' / 'bin'}"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("grpcurl", path=PATH) is None, reason="grpcurl is not installed"),
]


@pytest.mark.slow
@pytest.mark.timeout(330)
def test_the_page_leads_from_nothing_to_a_verified_log(tmp_path: Path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    port = lasting_port()
    script = "set -euo pipefail\n" + "\n".join(BLOCKS).replace("127.0.0.1:50052", f"127.0.0.1:{port}")
    script += "\nkill %1; wait\n"
    path = forking_commands(tmp_path / "commands")
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{path}{os.pathsep}{PATH}", "RISKGATE_PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, errors = process.communicate(timeout=300)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, f"{said[-2_000:]}\n{errors[-2_000:]}"

    def read(name: str) -> dict:
        return json.loads((tmp_path / "try" / f"{name}.json").read_text())

    assert read("blocked")["decision"] == "DECISION_BLOCKED"
    assert read("asked")["decision"] == "DECISION_AUTH_REQUIRED"
    assert read("yes")["approval"]["state"] == "APPROVAL_STATE_APPROVED"
    assert read("allowed")["decision"] == "DECISION_ALLOW"
    assert read("receipt")["receipt"].count(".") == 2
    assert read("stricter")["decision"] == "DECISION_BLOCKED"
    for told in (
        "not twice",
        "a case says what",
        "if approved by self + peer: allow",
        "complete and unaltered",
        "consistent with the given head",
        "NOT VERIFIED",
        "found",
        "cut off",
        "RETIRING",
    ):
        assert told in said, told


def test_the_page_runs_every_block_but_the_installation():
    assert len(re.findall(r"```", PAGE)) // 2 == len(BLOCKS) + 1
    assert "```shell" in PAGE
