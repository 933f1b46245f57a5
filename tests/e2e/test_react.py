"""The react graph over three real processes: killed with SIGKILL, on both stores, and called with grpcurl alone."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from phylactery.agent.v1 import event_pb2
from phylactery_agent.graph.core.registry import SPECS
from phylactery_agent.graph.core.spec import mermaid
from phylactery_chassis.util.ids import new_id
from phylactery_cli.supervisor import Stack

from tests.support.processes import commands
from tests.support.processes.shared import Tenant
from tests.support.processes.stack import FREE_PORTS, Person, await_death, crash_at, lines, relaunch, yes
from tests.support.servers.model_server import calls, model_server, says
from tests.support.servers.postgres import create_database

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("e2e-react")]

DONE, SUSPENDED = event_pb2.RUN_STATUS_DONE, event_pb2.RUN_STATUS_SUSPENDED
ASK = 'append "one line" to log.txt'
PAGE = Path(__file__).resolve().parents[2] / "docs" / "graphs.md"
REACT = {"AGENT_GRAPH": "react"}
GRPCURL = shutil.which("grpcurl", path=f"{os.environ['PATH']}{os.pathsep}{Path.home() / 'go' / 'bin'}")


def over_postgres(url: str) -> dict[str, dict[str, str]]:
    """Return what tells each service its migrated database."""
    env = {name: {f"{name.upper()}_DATABASE_URL": create_database(url, new_id(name))} for name in FREE_PORTS}
    for name, variables in env.items():
        done = commands.run(f"phylactery_{name}", "migrate", environment={**os.environ, **variables})
        assert done.returncode == 0, done.stderr
    return env


@pytest.fixture(params=["sqlite", "postgresql"])
def tenant(request: pytest.FixtureRequest, new_tenant: Callable[..., Tenant]) -> Tenant:
    def stores() -> dict[str, dict[str, str]]:
        env = over_postgres(request.getfixturevalue("postgres_url")) if request.param == "postgresql" else {}
        return {**env, "agent": {**env.get("agent", {}), **REACT}}

    return new_tenant(f"react over {request.param}", stores)


@pytest.mark.parametrize("point", ["agent.1#2", "agent.3b"])
def test_killed_before_the_approval_the_same_request_asks_again_and_the_effect_happens_once(tenant: Tenant, point: str):
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        ana.say_and_lose(ASK, "ask-request-1")
        await_death(stack, "agent")
        relaunch(stack, "agent")
        asked = ana.say(ASK, request_id="ask-request-1")
        assert (asked.run.status, asked.run.graph, tenant.lines()) == (SUSPENDED, "react", [])
        assert ana.say(yes(asked)).run.status == DONE
        assert tenant.lines() == ["one line"]


@pytest.mark.parametrize("point", ["agent.6", "agent.7#2", "agent.8#2", "agent.9#2", "agent.10#2"])
def test_killed_around_the_effect_the_run_goes_on_by_itself_and_the_effect_happens_once(tenant: Tenant, point: str):
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        asked = ana.say(ASK)
        ana.say_and_lose(yes(asked), "yes-request-1")
        await_death(stack, "agent")
        assert len(tenant.lines()) <= 1
        relaunch(stack, "agent")
        thread = ana.await_status(DONE)
        assert tenant.lines() == ["one line"]
        run = ana.run(thread.last_run.id)
        assert [(call.tool, call.state) for call in run.tool_calls] == [
            ("echo", "finished"),
            ("write_file", "finished"),
        ]
        sequences = [event.sequence for event in ana.events(yes(asked), request_id="yes-request-1")]
        assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
        assert tenant.lines() == ["one line"]


def test_killed_after_a_models_call_the_model_is_not_asked_for_it_again(make_stack: Callable[..., Stack]):
    with model_server() as server:
        server.script(calls(("write_file", {"path": "log.txt", "content": "one line", "append": True})))
        server.otherwise = lambda _asked: says("Hecho.")
        model = {"PHYLACTERY_MODEL_BASE_URL": server.url, "PHYLACTERY_MODEL": "test-model"}
        stack = make_stack(agent={**REACT, **model})
        crash_at(stack, "agent", "agent.9")
        stack.start()
        with Person(stack, "ana") as ana:
            asked = ana.say("añade one line a log.txt")
            assert asked.run.status == SUSPENDED
            ana.say_and_lose(yes(asked), "yes-request-1")
            await_death(stack, "agent")
            relaunch(stack, "agent")
            ana.await_status(DONE)
            done = ana.say(yes(asked), request_id="yes-request-1")
            assert done.reply.text == "Hecho."
            assert lines(stack) == ["one line"]
            assert len(server.asked) == 2


@pytest.mark.skipif(GRPCURL is None, reason="grpcurl is not installed")
def test_the_pages_grpcurl_lines_list_draw_and_talk_to_react(make_stack: Callable[..., Stack]):
    stack = make_stack()
    stack.start()

    def ask(command: str) -> Any:
        whole = shlex.split(command.replace("127.0.0.1:50051", stack.target("agent")))
        done = subprocess.run([str(GRPCURL), *whole[1:]], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    listed, drawn, said = (ask(command) for command in re.findall(r"^grpcurl .+$", PAGE.read_text(), re.MULTILINE))
    assert {graph["name"] for graph in listed["graphs"]} == set(SPECS)
    assert drawn["mermaid"] == mermaid(SPECS["react"])
    assert {"source": "Tools", "target": "Interpreter"} in drawn["edges"]
    assert said["run"]["graph"] == "react"
    assert said["reply"]["text"] == "hi"
