"""The services over PostgreSQL: an approved write, and an agent killed after the effect."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from phylactery.agent.v1 import event_pb2
from phylactery_cli.supervisor import Stack

from tests.support.processes import commands
from tests.support.processes.stack import FREE_PORTS, Person, await_death, crash_at, lines, relaunch, yes
from tests.support.servers.postgres import create_database

pytestmark = pytest.mark.slow


def test_over_postgresql_an_agent_killed_after_the_effect_goes_on_and_the_effect_happens_once(
    postgres_url: str, tmp_path: Path, make_stack: Callable[..., Stack]
):
    env = {name: {f"{name.upper()}_DATABASE_URL": create_database(postgres_url, f"e2e_{name}")} for name in FREE_PORTS}
    for name, variables in env.items():
        module = f"phylactery_{name}"
        whole = {**os.environ, **variables, f"{name.upper()}_DATA_DIR": str(tmp_path / "data" / name)}
        refused = commands.run(module, environment=whole)
        assert refused.returncode == 2
        assert f"has no tables yet; run: python -m {module} migrate" in refused.stderr
        for _ in range(2):
            assert commands.run(module, "migrate", environment=whole).returncode == 0
    stack = make_stack(**env)
    crash_at(stack, "agent", "agent.9")
    stack.start()
    with Person(stack, "ana") as ana:
        asked = ana.say('append "one line" to log.txt')
        ana.say_and_lose(yes(asked), "yes-request-1")
        await_death(stack, "agent")
        assert lines(stack) == ["one line"]
        relaunch(stack, "agent")
        ana.await_status(event_pb2.RUN_STATUS_DONE)
        assert lines(stack) == ["one line"]
        assert not (stack.data_dir / "agent" / "agent.db").exists()
