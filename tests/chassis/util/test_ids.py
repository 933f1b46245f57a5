"""Random bytes are buffered: a forked process must never return the same ones."""

from __future__ import annotations

import re
import subprocess
import sys

from phylactery_chassis.util.ids import new_id

_FORK = """
import os
from phylactery_chassis.util.ids import random_bytes
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


def test_ids_say_what_they_are_and_use_every_letter_at_every_place():
    ids = [new_id("ap") for _ in range(2_000)]
    assert all(re.fullmatch("ap_[a-z2-7]{26}", one) for one in ids)
    assert len(set(ids)) == len(ids)
    # of 2,000 letters drawn alike, one of 32 is missing with a chance of 3e-28
    assert {len(set(place)) for place in zip(*(one[3:] for one in ids), strict=True)} == {32}


def test_a_forked_process_draws_bytes_of_its_own():
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
