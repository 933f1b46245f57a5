"""RiskGate's catalog is authoritative: tools it does not know, or knows differently, are disabled by name."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from phylactery.agent.v1 import tool_pb2, tool_pb2_grpc
from phylactery.riskgate.v1 import policy_pb2, policy_pb2_grpc
from phylactery_client import PhylacteryClient
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, load_bundle

from tests.support.agent.system import DONE, Person, System, open_system
from tests.support.riskgate.bundle_cache import default_bundle

COUNTER = "tests.support.agent.counter_tool"
OFF = tool_pb2.DisabledReason


def changed_bundle(folder: Path, revision: int, *, without: str = "", other: str = "") -> Path:
    """Write the default bundle without a tool, or with another schema of one."""
    shutil.copytree(default_bundle_folder(), folder)
    shutil.rmtree(folder / "tests")
    entries = yaml.safe_load((folder / "tools.yaml").read_text())
    entries["tools"] = [tool for tool in entries["tools"] if tool["name"] != without]
    for tool in entries["tools"]:
        if tool["name"] == other:
            tool["schema"]["properties"]["loud"] = {"type": "boolean", "default": False}
    (folder / "tools.yaml").write_text(yaml.safe_dump(entries, allow_unicode=True))
    settings = folder / "riskgate.yaml"
    settings.write_text(re.sub(r"(?m)^revision: \d+$", f"revision: {revision}", settings.read_text(), count=1))
    assert load_bundle(folder).revision == revision
    return folder


async def tools(system: System, *, enabled_only: bool = False) -> dict[str, tool_pb2.Tool]:
    stub = tool_pb2_grpc.ToolServiceStub(system.agent_channel)
    request = tool_pb2.ListToolsRequest(enabled_only=enabled_only)
    answer = await stub.ListTools(request, metadata=system.person().metadata, timeout=60)
    return {tool.name: tool for tool in answer.tools}


def parts(folder: Path) -> list[policy_pb2.BundleFile]:
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    return [policy_pb2.BundleFile(name=one.relative_to(folder).as_posix(), content=one.read_bytes()) for one in names]


async def activate(system: System, folder: Path) -> None:
    await policy_pb2_grpc.PolicyServiceStub(system.riskgate_channel).ActivateBundle(
        policy_pb2.ActivateBundleRequest(files=parts(folder)), timeout=60
    )


async def until_off(system: System, name: str, reason: str | None) -> None:
    """Wait until the check has found out; the test's own time limit is the bound."""
    while system.agent.tools.disabled_reason(name) != reason:  # noqa: ASYNC110 - the check asks again in its own time
        await asyncio.sleep(0.02)


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[System]:
    """The three services; the agent looks at the catalog all the time."""
    async with open_system(tmp_path, catalog_poll_seconds=0.05) as opened:
        yield opened


@pytest.fixture
def ana(quick: System) -> Person:
    return quick.person("ana")


async def test_every_tool_is_listed_with_its_contract_and_riskgates_version(quick: System) -> None:
    listed = await tools(quick)
    shipped = default_bundle().tools
    assert list(listed) == sorted(quick.agent.tools)
    for name, spec in quick.agent.tools.items():
        tool, contract = listed[name], spec.contract
        assert tool.schema_hash == spec.schema_hash
        assert (tool.description, tool.description_es) == (spec.descriptions["en"], spec.descriptions["es"])
        assert tool_pb2.ToolRisk.Name(tool.risk) == f"TOOL_RISK_{contract.risk.upper()}"
        assert tool_pb2.ToolEffect.Name(tool.effect) == f"TOOL_EFFECT_{contract.effect.upper()}"
        assert tool_pb2.ToolIdempotency.Name(tool.idempotency) == f"TOOL_IDEMPOTENCY_{contract.idempotency.upper()}"
        assert tool.timeout.ToTimedelta().total_seconds() == contract.timeout_seconds
        assert (tool.retries, tuple(tool.control_arguments)) == (contract.retries, contract.controls)
        assert tool.checked
        if name in shipped:
            assert (tool.version, tool.source) == (shipped[name].version, "builtin")
            assert tool.enabled == (tool.disabled_reason != OFF.DISABLED_REASON_NOT_CONFIGURED)
    assert listed["echo"].enabled
    assert listed["send_email"].disabled_reason == OFF.DISABLED_REASON_NOT_CONFIGURED


@pytest.mark.slow
async def test_a_tool_the_catalog_lost_is_switched_off_and_comes_back_with_it(
    quick: System, ana: Person, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert (await ana.say("repite hola")).reply.text == "hola"
    await activate(quick, changed_bundle(tmp_path / "without", 102, without="echo"))
    await until_off(quick, "echo", "NOT_IN_CATALOG")
    listed = (await tools(quick))["echo"]
    assert (listed.enabled, listed.disabled_reason, listed.version) == (False, OFF.DISABLED_REASON_NOT_IN_CATALOG, "")
    assert "echo" not in await tools(quick, enabled_only=True)
    assert "echo" not in {spec.name for spec in quick.agent.tools.offered()}
    refused = await ana.say("repite hola")
    assert refused.reply.text == (
        "Aquí no puedo repetir un texto. (Para quien administra el servicio: el catálogo de RiskGate no tiene esta"
        " herramienta.)"
    )
    assert "repetir un texto" not in (await ana.say("ayuda")).reply.text
    await activate(quick, changed_bundle(tmp_path / "with", 103))
    await until_off(quick, "echo", None)
    assert (await ana.say("repite hola")).reply.text == "hola"


async def test_a_tool_with_another_schema_is_switched_off_by_name_and_the_others_stay(
    quick: System, ana: Person, tmp_path: Path
) -> None:
    await activate(quick, changed_bundle(tmp_path / "other", 102, other="echo"))
    await until_off(quick, "echo", "SCHEMA_DIFFERS")
    listed = await tools(quick)
    off = {name: OFF.Name(tool.disabled_reason) for name, tool in listed.items() if not tool.enabled}
    assert off.get("echo") == "DISABLED_REASON_SCHEMA_DIFFERS"
    assert listed["read_file"].enabled
    (quick.sandbox / "a.txt").write_text("still read")
    assert "still read" in (await ana.say("lee a.txt")).reply.text


@pytest.mark.slow
async def test_a_call_that_was_planned_before_its_tool_was_switched_off_is_refused_before_it_is_asked_about(
    tmp_path: Path,
) -> None:
    async with open_system(tmp_path, asks=True, catalog_poll_seconds=0.05) as system:
        ana = system.person("ana")
        waiting = await ana.say('escribe "hola" en b.txt y luego repite adiós')
        approval = waiting.pending_approval
        await activate(system, changed_bundle(tmp_path / "without", 109, without="echo"))
        await until_off(system, "echo", "NOT_IN_CATALOG")
        done = await ana.say(f"APROBAR {approval.approval_id} {approval.code}")
        assert (system.sandbox / "b.txt").read_text() == "hola"
        run = await ana.run(done.run.id)
        done = [call.tool for call in run.tool_calls if call.status == "success"]
        assert done == ["write_file"], "echo ran though it is switched off"


async def test_a_plugins_tools_are_listed_with_their_module_and_off_where_no_catalog_holds_them(
    tmp_path: Path,
) -> None:
    async with open_system(tmp_path, tool_modules=[COUNTER]) as system:
        listed = await tools(system)
        assert listed["count"].source == f"plugin:{COUNTER}"
        assert listed["count"].disabled_reason == OFF.DISABLED_REASON_NOT_IN_CATALOG


@pytest.mark.slow
async def test_without_riskgate_tools_stay_on_and_unchecked_until_it_is_there(tmp_path: Path) -> None:
    system = System(tmp_path)
    try:
        await system.start_riskgate()
        await system.start_memory()
        await system.stop("riskgate")
        await system.start_agent(catalog_poll_seconds=0.05, tool_modules=[COUNTER])
        listed = await tools(system)
        assert not any(tool.checked or tool.version for tool in listed.values())
        unset = OFF.DISABLED_REASON_NOT_CONFIGURED
        assert all(tool.enabled or tool.disabled_reason == unset for tool in listed.values())
        async with PhylacteryClient(system.target("agent")) as client:
            found = await client.list_tools()
        assert (found.catalog_revision, found.check_time) == (0, None)
        await system.come_back("riskgate")
        await until_off(system, "count", "NOT_IN_CATALOG")
        async with PhylacteryClient(system.target("agent")) as client:
            found = await client.list_tools(enabled_only=True)
        assert found.catalog_revision == default_bundle().revision
        assert found.check_time is not None
        assert all(tool.checked for tool in found.tools)
        assert (await system.person().say("repite hola")).run.status == DONE
        await system.stop("riskgate")
        assert system.agent.tools.disabled_reason("count") == "NOT_IN_CATALOG", (
            "what was said stays while RiskGate is away"
        )
    finally:
        await system.close()
