"""`make demo-whatsapp` keeps its promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_demo_on_a_phone_plays_to_its_end() -> None:
    command = Path(sys.executable).with_name("phylactery")
    done = subprocess.run([command, "demo", "--whatsapp"], capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.strip().splitlines()[-1]) == {"demo": "ok", "steps": 5}
