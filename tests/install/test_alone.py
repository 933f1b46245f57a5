"""Each distribution installs alone from its wheel into a clean environment, and works there."""

from __future__ import annotations

import configparser
import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, event_pb2
from phylactery.memory.v1 import output_pb2, output_pb2_grpc
from phylactery.riskgate.v1 import access_pb2, riskgate_pb2, riskgate_pb2_grpc, types_pb2
from phylactery_chassis.rpc.healthcheck import serving

from tests.support.packages.installing import (
    ROOT,
    Alone,
    files_in,
    ours_needed,
    skip_if_unreachable,
)

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.xdist_group("install"), pytest.mark.timeout(600)]

SOURCES = {
    "phylactery-protos": ROOT / "protos" / "gen",
    "phylactery-chassis": ROOT / "services" / "chassis",
    "phylactery-understanding": ROOT / "services" / "understanding",
    "phylactery-forms": ROOT / "services" / "forms",
    "phylactery-riskgate": ROOT / "services" / "riskgate",
    "phylactery-memory": ROOT / "services" / "memory",
    "phylactery-agent": ROOT / "services" / "agent",
    "phylactery-client": ROOT / "clients" / "python",
    "phylactery-gateway": ROOT / "services" / "gateway",
    "phylactery-cli": ROOT / "clients" / "cli",
    "phylactery-langchain": ROOT / "clients" / "langchain",
    "phylactery-pydantic-ai": ROOT / "clients" / "pydantic-ai",
    "phylactery-openai-agents": ROOT / "clients" / "openai-agents",
    "phylactery-agent-framework": ROOT / "clients" / "agent-framework",
    "phylactery-google-adk": ROOT / "clients" / "google-adk",
    "phylactery-mcp-proxy": ROOT / "clients" / "mcp-proxy",
    "phylactery-hooks": ROOT / "clients" / "hooks",
}
ADAPTERS = {
    "phylactery-langchain",
    "phylactery-pydantic-ai",
    "phylactery-openai-agents",
    "phylactery-agent-framework",
    "phylactery-google-adk",
}
NEEDS = {
    "phylactery-protos": set(),
    "phylactery-chassis": set(),
    "phylactery-understanding": set(),
    "phylactery-forms": {"phylactery-understanding"},
    "phylactery-riskgate": {"phylactery-protos", "phylactery-chassis", "phylactery-understanding"},
    "phylactery-memory": {"phylactery-protos", "phylactery-chassis"},
    "phylactery-agent": {"phylactery-protos", "phylactery-chassis", "phylactery-understanding", "phylactery-forms"},
    "phylactery-client": {"phylactery-protos"},
    "phylactery-langchain": {"phylactery-client", "phylactery-protos"},
    "phylactery-pydantic-ai": {"phylactery-client", "phylactery-protos"},
    "phylactery-openai-agents": {"phylactery-client", "phylactery-protos"},
    "phylactery-agent-framework": {"phylactery-client", "phylactery-protos"},
    "phylactery-google-adk": {"phylactery-client", "phylactery-protos"},
    "phylactery-mcp-proxy": {"phylactery-client", "phylactery-protos"},
    "phylactery-hooks": {"phylactery-client", "phylactery-protos"},
    "phylactery-gateway": {
        "phylactery-protos",
        "phylactery-chassis",
        "phylactery-understanding",
        "phylactery-client",
    },
}
GRAPH = ("langgraph", "langchain_core")
IMPORT_EVERYTHING = """
import importlib, json, pathlib, sys
root = pathlib.Path(importlib.import_module(sys.argv[1]).__file__).parent
names = sorted(".".join(p.relative_to(root.parent).with_suffix("").parts) for p in root.rglob("*.py")
               if p.name != "__main__.py" and "migrations" not in p.parts)
for name in names:
    importlib.import_module(name.removesuffix(".__init__"))
print(json.dumps(names))
"""


def evaluate(target: str) -> riskgate_pb2.EvaluateResponse:
    call = types_pb2.ToolCall(tool="echo", tool_call_id="c1", arguments_json='{"text":"hola"}')
    with grpc.insecure_channel(target) as channel:
        return riskgate_pb2_grpc.RiskGateServiceStub(channel).Evaluate(
            riskgate_pb2.EvaluateRequest(call=call, thread_id="t1", run_id="r1"), timeout=30
        )


def test_there_is_a_wheel_for_every_distribution_and_it_declares_what_of_ours_it_needs(wheels: dict[str, Path]):
    assert wheels.keys() == {*SOURCES, "phylactery-runtime"}
    assert {name: ours_needed(name, wheels) - {name} for name in NEEDS} == NEEDS
    beside = {"phylactery-mcp-proxy", "phylactery-hooks"}
    assert ours_needed("phylactery-cli", wheels) == SOURCES.keys() - ADAPTERS - beside
    assert ours_needed("phylactery-runtime", wheels) == wheels.keys() - ADAPTERS


@pytest.mark.parametrize("name", SOURCES)
def test_a_wheel_carries_every_file_of_its_package(wheels: dict[str, Path], name: str):
    package = "phylactery" if name == "phylactery-protos" else name.replace("-", "_")
    folder = SOURCES[name] / package
    expected = {
        str(path.relative_to(SOURCES[name]))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected - files_in(wheels[name]) == set()
    assert f"{package}/py.typed" in expected


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("phylactery-riskgate", "default_bundle/riskgate.yaml"),
        ("phylactery-riskgate", "default_bundle/tools.yaml"),
        ("phylactery-riskgate", "default_bundle/policies/default.cedar"),
        ("phylactery-riskgate", "migrations/versions/0001_records.py"),
        ("phylactery-memory", "migrations/versions/0001_outputs_and_window.py"),
        ("phylactery-agent", "migrations/versions/0001_first.py"),
        ("phylactery-chassis", "db/migrations/env.py"),
        ("phylactery-cli", "welcome.txt"),
    ],
)
def test_a_wheel_carries_what_its_program_reads(wheels: dict[str, Path], name: str, file: str):
    assert f"{name.replace('-', '_')}/{file}" in files_in(wheels[name])


def test_no_wheel_carries_another_distribution_or_a_test(wheels: dict[str, Path]):
    for name, path in wheels.items():
        package = "phylactery" if name == "phylactery-protos" else name.replace("-", "_")
        tops = {file.split("/")[0] for file in files_in(path)}
        expected = set() if name == "phylactery-runtime" else {package}
        assert {top for top in tops if not top.endswith(".dist-info")} == expected, name


def test_riskgate_alone_serves_and_knows_nothing_of_langgraph(alone: Callable[[str], Alone]):
    riskgate = alone("phylactery-riskgate")
    assert "audit" in riskgate.run("riskgate", "--help")
    for module in (*GRAPH, "phylactery_agent", "phylactery_memory", "phylactery_client", "phylactery_cli"):
        assert not riskgate.has(module), module
    assert riskgate.has("phylactery_riskgate")
    with riskgate.serving("riskgate") as target:
        assert serving(target)
        answer = evaluate(target)
        assert answer.decision == types_pb2.DECISION_ALLOW
        assert answer.permit
    export = riskgate.elsewhere / "audit.jsonl"
    data = riskgate.elsewhere / "riskgate-data"
    riskgate.run("riskgate", "audit", "export", "--data-dir", data, "--out", export)
    keys = riskgate.elsewhere / "keys.json"
    keys.write_text(riskgate.run("riskgate", "keys", "export", "--data-dir", data))
    assert "complete and unaltered" in riskgate.run("riskgate", "audit", "verify", export, "--key", keys)


def test_riskgate_alone_serves_another_bundle_and_makes_keys_and_tokens(alone: Callable[[str], Alone]):
    riskgate = alone("phylactery-riskgate")
    bundle = ROOT / "examples" / "authzen" / "bundle"
    assert "9 of 9 cases passed" in riskgate.run("riskgate", "policy", "test", bundle)
    tokens = riskgate.elsewhere / "tokens.yaml"
    add = ("tokens", "add", "--subject", "pep", "--tenant", "local", "--role", "delegate", "--file", tokens)
    token = riskgate.run("riskgate", *add).strip()
    assert token.startswith("phy_")
    kid = json.loads(riskgate.run("riskgate", "keys", "create", "--data-dir", riskgate.elsewhere / "k", "--json"))
    assert kid["changed"]
    asked = access_pb2.EvaluateAccessRequest(
        subject=access_pb2.AccessSubject(type="user", id="anybody"),
        action=access_pb2.AccessAction(name="can_read_todos"),
        resource=access_pb2.AccessResource(type="todo", id="one"),
    )
    with (
        riskgate.serving("riskgate", BUNDLE=bundle, IDENTITY_MODE="tokens", TOKENS_FILE=tokens) as target,
        grpc.insecure_channel(target) as channel,
    ):
        stub = riskgate_pb2_grpc.RiskGateServiceStub(channel)
        assert stub.EvaluateAccess(asked, metadata=(("authorization", f"Bearer {token}"),), timeout=30).decision


def test_riskgates_own_bundle_passes_its_own_cases_where_it_is_installed(alone: Callable[[str], Alone]):
    riskgate = alone("phylactery-riskgate")
    where = riskgate.run(
        "python",
        "-c",
        "from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder as f; print(f())",
    ).strip()
    assert str(riskgate.folder) in where
    assert "cases passed" in riskgate.run("riskgate", "policy", "test", where)


def test_memory_alone_stores_an_output_and_reads_it_back_after_a_restart(alone: Callable[[str], Alone]):
    memory = alone("phylactery-memory")
    for module in (*GRAPH, "phylactery_agent", "phylactery_riskgate", "cedarpy"):
        assert not memory.has(module), module
    text = "línea\n" * 4_000
    spec = output_pb2.OutputSpec(thread_id="t1", run_id="r1", tool_call_id="c1", tool_name="read_file")
    with memory.serving("memory") as target, grpc.insecure_channel(target) as channel:
        assert serving(target)
        parts = [output_pb2.StoreOutputRequest(spec=spec), output_pb2.StoreOutputRequest(chunk=text.encode())]
        stored = output_pb2_grpc.OutputServiceStub(channel).StoreOutput(iter(parts), timeout=30)
        assert stored.output.size_chars == len(text)
    with memory.serving("memory") as target, grpc.insecure_channel(target) as channel:
        request = output_pb2.ReadOutputRequest(pointer=stored.output.pointer, offset=6, limit=6)
        assert output_pb2_grpc.OutputServiceStub(channel).ReadOutput(request, timeout=30).text == "línea\n"


def test_the_agent_alone_serves_and_says_when_the_others_are_away(alone: Callable[[str], Alone]):
    agent = alone("phylactery-agent")
    for module in ("phylactery_riskgate", "phylactery_memory", "phylactery_client", "cedarpy"):
        assert not agent.has(module), module
    with agent.serving("agent", RISKGATE_TARGET="127.0.0.1:9", MEMORY_TARGET="127.0.0.1:9") as target:
        assert serving(target)
        with grpc.insecure_channel(target) as channel:
            request = chat_pb2.SendMessageRequest(request_id="request-1", thread_id="t1", text='repite "hola"')
            stub = chat_pb2_grpc.ChatServiceStub(channel)
            with pytest.raises(grpc.RpcError, match="RiskGate does not answer"):  # nothing is taken in uninspected
                stub.SendMessage(request, timeout=60)
            greeting = chat_pb2.SendMessageRequest(request_id="request-2", thread_id="t1", text="hola")
            answer = stub.SendMessage(greeting, timeout=60)
        assert answer.run.status == event_pb2.RUN_STATUS_DONE  # a turn goes on without memory
        assert answer.reply.text


def test_the_client_alone_needs_no_chassis_and_talks_to_a_real_service(alone: Callable[[str], Alone]):
    client = alone("phylactery-client")
    for module in (*GRAPH, "phylactery_chassis", "phylactery_agent", "sqlalchemy", "alembic", "structlog", "pydantic"):
        assert not client.has(module), module
    script = """
import asyncio, sys
from phylactery_client import RiskGateClient, ToolCall
async def main():
    async with RiskGateClient(sys.argv[1]) as gate:
        call = ToolCall.of("echo", {"text": "hola"}, tool_call_id="c1")
        print((await gate.evaluate(call, thread_id="t1", run_id="r1")).decision)
asyncio.run(main())
"""
    gate = alone("phylactery-riskgate")
    with gate.serving("riskgate") as target:
        assert "ALLOW" in client.run("python", "-c", script, target)


def test_the_command_installs_with_everything_it_starts(alone: Callable[[str], Alone]):
    command = alone("phylactery-cli")
    helped = command.run("phylactery", "--help")
    assert all(word in helped for word in ("run", "chat", "demo", "approvals", "tokens"))
    tokens = command.elsewhere / "tokens.yaml"
    add = ("tokens", "add", "--subject", "ana", "--tenant", "acme", "--role", "caller", "--file", tokens)
    assert command.run("phylactery", *add).startswith("phy_")


def test_the_runtime_puts_both_commands_on_the_path(wheels: dict[str, Path]):
    (entries,) = (name for name in files_in(wheels["phylactery-runtime"]) if name.endswith("/entry_points.txt"))
    with zipfile.ZipFile(wheels["phylactery-runtime"]) as archive:
        scripts = configparser.ConfigParser()
        scripts.read_string(archive.read(entries).decode())
    assert dict(scripts["console_scripts"]) == {
        "phylactery": "phylactery_cli.main:main",
        "riskgate": "phylactery_riskgate.cli:main",
    }


@pytest.mark.parametrize(
    "name",
    # an adapter's framework is large
    [
        pytest.param(name, marks=pytest.mark.nightly if name in ADAPTERS else ())
        for name in SOURCES
        if name != "phylactery-cli"
    ],
)
def test_every_module_imports_with_the_declared_dependencies_alone(alone: Callable[[str], Alone], name: str):
    environment = alone(name)
    package = "phylactery" if name == "phylactery-protos" else name.replace("-", "_")
    imported = json.loads(environment.run("python", "-c", IMPORT_EVERYTHING, package))
    assert len(imported) > 5 or name in ADAPTERS
    if name not in {"phylactery-agent", "phylactery-langchain"}:
        assert not any(environment.has(module) for module in GRAPH)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_release_lists_its_components_and_nothing_of_the_machine_that_built_it(tmp_path: Path):
    done = subprocess.run(
        ["make", "--silent", "sbom", f"OUT={tmp_path}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    skip_if_unreachable(done.stderr if done.returncode else "")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "phylactery-runtime.cdx.json").read_text()
    listed = json.loads(text)
    assert (listed["bomFormat"], listed["metadata"]["component"]["name"]) == ("CycloneDX", "phylactery-runtime")
    components = {one["name"]: one for one in listed["components"]}
    assert components.keys() >= (SOURCES.keys() - ADAPTERS) | {"grpcio", "langgraph", "cedarpy"}
    assert all(one["version"] for one in components.values())
    for name in SOURCES.keys() - ADAPTERS:
        (wheel,) = tmp_path.glob(f"{name.replace('-', '_')}-*.whl")
        assert "purl" not in components[name], "a package index has other packages by our names"
        assert [one["url"] for one in components[name]["externalReferences"]] == [f"./{wheel.name}"]
    assert str(tmp_path) not in text
    assert "file:" not in text
