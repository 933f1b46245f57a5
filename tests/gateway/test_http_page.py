"""The curl lines of the pages, executed as they are except for the port, against real services."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from phylactery_gateway.rpc.services import known_services

from tests.support.agent.system import open_system
from tests.support.gateway.rpc import LIMIT_SECONDS, Door, open_door

ROOT = Path(__file__).resolve().parents[2]
CURL = shutil.which("curl")
pytestmark = pytest.mark.skipif(CURL is None, reason="curl is not installed")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def commands(name: str) -> list[str]:
    return re.findall(r"^(?:\$ )?(curl .+)$", page(name), re.MULTILINE)


async def said(door: Door, command: str) -> str:
    assert CURL is not None
    words = shlex.split(command.replace("http://127.0.0.1:8080", door.url))[1:]
    process = await asyncio.create_subprocess_exec(CURL, *words, stdout=asyncio.subprocess.PIPE)
    printed, _ = await asyncio.wait_for(process.communicate(), LIMIT_SECONDS)
    assert process.returncode == 0
    return printed.decode()


def services_of(name: str) -> dict[str, str]:
    """Return the setting as the page has it."""
    found = re.search(r"GATEWAY_RPC_SERVICES='(.+?)'", page(name), re.DOTALL)
    assert found is not None
    services: dict[str, str] = json.loads(found[1])
    return services


@pytest.mark.slow
async def test_the_lines_of_the_http_page_call_fail_stream_and_describe(tmp_path: Path):
    ports = {"127.0.0.1:50051": "agent", "127.0.0.1:50052": "riskgate", "127.0.0.1:50053": "memory"}
    named = services_of("http.md")
    assert named.keys() <= known_services().keys()
    async with open_system(tmp_path) as system:
        services = {service: system.target(ports[target]) for service, target in named.items()}
        async with open_door(tmp_path, services) as door:
            sent, thread, failed, streamed, described = [await said(door, one) for one in commands("http.md")]
    assert json.loads(sent)["reply"]["text"] == "hi"
    assert json.loads(thread)["thread"]["id"] == "t1"
    shown: Any = json.loads(failed)
    for detail in shown["details"]:
        detail["value"] = "…"
    (promised,) = re.findall(r"^```json\n(.+?)^```", page("http.md"), re.DOTALL | re.MULTILINE)
    assert shown == json.loads(promised)
    assert streamed.startswith("id: ")
    assert streamed.endswith("event: end\ndata: {}\n\n")
    assert json.loads(described)["openapi"] == "3.1.0"


async def test_the_line_of_the_authzen_page_is_decided(tmp_path: Path):
    bundle = ROOT / "examples" / "authzen" / "bundle"
    async with open_system(tmp_path, bundle=bundle) as system:
        services = {"phylactery.riskgate.v1.RiskGateService": system.target("riskgate")}
        async with open_door(tmp_path, services) as door:
            (answer,) = [json.loads(await said(door, one)) for one in commands("authzen.md")]
    assert (answer["decision"], answer["context"]["reason"]) == (True, "POLICY_PERMIT")
