"""docs/mcp.md, executed from top to bottom unchanged, except for the ports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from phylactery.agent.v1 import tool_pb2
from phylactery_agent.tools.mcp.config import ServerConfig, ToolConfig

from tests.support.processes.shells import forking_commands
from tests.support.processes.stack import lasting_ports

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.+?)```", PAGE, re.DOTALL)


def test_the_page_leads_from_a_servers_command_to_an_approved_call(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    ports = lasting_ports()
    script = "set -euo pipefail\n" + "\n".join(BLOCKS).replace("127.0.0.1:50051", f"127.0.0.1:{ports['agent']}")
    script += "\nkill %1; wait\n"
    path = forking_commands(tmp_path / "commands")
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, **{f"{name.upper()}_PORT": str(port) for name, port in ports.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        said, errors = process.communicate(timeout=280)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, f"{said[-2_000:]}\n{errors[-2_000:]}"
    assert "NEW mcp_shelf_add_book" in said or "NUEVA mcp_shelf_add_book" in said
    assert "“Dune” stands on the shelf." in said
    listed = [json.loads(line) for line in said.splitlines() if line.startswith("{") and '"mcp:shelf"' in line]
    assert {tool["name"] for tool in listed} == {"mcp_shelf_add_book", "mcp_shelf_list_books"}
    assert all(tool["enabled"] and tool["checked"] for tool in listed), listed
    asked = (tmp_path / "try" / "asked.txt").read_text()
    assert "4111" in asked.splitlines()[-1], asked
    assert (tmp_path / "try" / "shelf.txt").read_text() == "Dune\n4111 1111 1111 1111\n"


def test_the_page_names_every_key_of_a_server_and_of_a_tool_and_every_word_of_why_one_is_off() -> None:
    table = PAGE[PAGE.index("## Configuration of a server") :]
    for key in (*ServerConfig.model_fields, *ToolConfig.model_fields):
        assert f"`{key}`" in table, key
    words = {name.removeprefix("DISABLED_REASON_") for name, _ in tool_pb2.DisabledReason.items()} - {"UNSPECIFIED"}
    assert set(re.findall(r"(?m)^\| `([A-Z_]+)` \|", PAGE)) == words
