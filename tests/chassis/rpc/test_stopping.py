"""What a service logs when it stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.agents import wait_until


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_is_told_to_stop_says_so_in_its_log(tmp_path: Path, number: signal.Signals):
    ready = tmp_path / "ready.json"
    env = {**os.environ, "MEMORY_DATA_DIR": str(tmp_path / "data"), "MEMORY_PORT": "0", "MEMORY_READY_FILE": str(ready)}
    process = subprocess.Popen(
        [sys.executable, "-m", "phylactery_memory"], env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_until(ready.exists, "the ready file")
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    (line,) = [one for one in map(json.loads, said.splitlines()) if one["event"] == "stopping"]
    assert line["signal"] == number.name
