"""The grpcurl commands of docs/grpcurl.md, executed unchanged except for the ports."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from phylactery_cli.supervisor import DEFAULT_PORTS, Stack, running

from tests.support.processes.stack import FREE_PORTS, ForkedStack

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = re.findall(r"^grpcurl .+$", (ROOT / "docs" / "grpcurl.md").read_text(encoding="utf-8"), re.MULTILINE)
GRPCURL = shutil.which("grpcurl", path=f"{os.environ['PATH']}{os.pathsep}{Path.home() / 'go' / 'bin'}")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("grpcurl"),
    pytest.mark.skipif(GRPCURL is None, reason="grpcurl is not installed"),
]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(ForkedStack(tmp_path_factory.mktemp("grpcurl") / "data", FREE_PORTS)) as made:
        made.sandbox.mkdir(parents=True, exist_ok=True)
        (made.sandbox / "welcome.txt").write_text("Welcome to Phylactery.")
        yield made


def run(stack: Stack, command: str) -> str:
    for name, port in DEFAULT_PORTS.items():
        command = command.replace(f"127.0.0.1:{port}", stack.target(name))
    done = subprocess.run([GRPCURL, *shlex.split(command)[1:]], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_shows_list_describe_and_health_of_each_service_one_evaluate_and_one_send_message():
    for port in DEFAULT_PORTS.values():
        of_service = [command for command in COMMANDS if f":{port}" in command]
        assert any(command.endswith(" list") for command in of_service)
        assert any(" describe " in command for command in of_service)
        assert any("Health/Check" in command for command in of_service)
    assert sum("RiskGateService/Evaluate" in command for command in COMMANDS) == 1
    assert sum("ChatService/SendMessage" in command for command in COMMANDS) == 1


@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_a_line_of_the_page_works_as_pasted(stack: Stack, command: str):
    said = run(stack, command)
    if command.endswith(" list"):
        assert "phylactery." in said
        assert "grpc.health.v1.Health" in said
    elif " describe " in command:
        assert "rpc " in said
        assert "//" in said or "service" in said
    elif "Health/Check" in command:
        assert json.loads(said) == {"status": "SERVING"}
    elif "GetGraph" in command:
        assert json.loads(said)["mermaid"].startswith("flowchart TD")
    elif "ListTools" in command:
        assert "read_file" in {tool["name"] for tool in json.loads(said)["tools"]}
    elif "Evaluate" in command:
        assert json.loads(said)["decision"] == "DECISION_AUTH_REQUIRED"
    elif "ListThreads" in command:
        assert json.loads(said)["threads"][0]["id"] == "t1"
    else:
        answer = json.loads(said)
        assert answer["run"]["status"] == "RUN_STATUS_DONE"
        assert "Welcome to Phylactery." in answer["reply"]["text"]
