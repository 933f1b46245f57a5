"""`make demo-whatsapp` keeps its promises."""

from __future__ import annotations

import json

import pytest

from tests.support.processes import commands


@pytest.mark.slow
def test_the_demo_on_a_phone_plays_to_its_end() -> None:
    done = commands.run_with_services("demo", "--whatsapp")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.strip().splitlines()[-1]) == {"demo": "ok", "steps": 5}
