"""Random bytes are drawn ahead: a process that was forked from this one must never draw the same."""

from __future__ import annotations

import subprocess
import sys

_FORK = """
import os
from phylactery_chassis.ids import random_bytes
random_bytes(16)
reader, writer = os.pipe()
child = os.fork()
drawn = random_bytes(32)
if child == 0:
    os.write(writer, drawn)
    os._exit(0)
os.waitpid(child, 0)
assert len(drawn) == 32 and os.read(reader, 32) != drawn, "both drew the same"
"""


def test_a_forked_process_draws_bytes_of_its_own():
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
