"""A call through the MCP proxy over the bare server, each a process over standard streams, and a durable RiskGate."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from mcp import Client, StdioServerParameters
from phylactery_mcp_proxy.canary import READS
from phylactery_mcp_proxy.settings import ServerTarget
from phylactery_mcp_proxy.state.catalog import draft, write_offered
from phylactery_mcp_proxy.state.folder import StateFolder
from phylactery_mcp_proxy.state.pins import Pins, save_pins, tool_name
from phylactery_mcp_proxy.upstream.session import connected, list_tools
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder

from benchmarks.measure import Sample, sample
from benchmarks.pinned import Server, apart, riskgate

_CALLS: Final = 300
_GOAL_MS: Final = 10.0
_NAME: Final = "canary"


async def rows() -> AsyncIterator[Mapping[str, Any]]:
    """Yield what the proxy adds to a call, in both eras of the protocol."""
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", "phylactery_mcp_proxy.canary", str(folder / "effects")]
        state = StateFolder(folder / "state")
        bundle = await _known(ServerTarget(_NAME, tuple(command), env=("PYTHONPATH",), start_seconds=60), state, folder)
        with apart() as cores, riskgate(cores=cores, bundle=bundle) as server:
            bare, _ = await _measured(command, READS, "auto")
            options = ["--name", _NAME, "--state", str(state.path), "--target", server.target, "--env", "PYTHONPATH"]
            proxied = [sys.executable, "-m", "phylactery_mcp_proxy", *options, "--start-seconds", "60", "--", *command]
            for era, mode in (("2026", "auto"), ("2025", "legacy")):
                guarded, cpu_us = await _measured(proxied, tool_name(_NAME, READS), mode)
                yield {**_row(era, guarded, bare), "proxy_and_server_cpu_us": cpu_us}


async def _known(target: ServerTarget, state: StateFolder, folder: Path) -> Path:
    """Pin the server's tools and return a bundle that knows them."""
    async with connected(target, lambda: None) as (session, _):
        listed = await list_tools(session)
    save_pins(state, Pins(target.identity, listed))
    write_offered(state, target.name, listed)
    drafted = await draft(state)
    if drafted is None:
        raise RuntimeError("the catalog was not drafted")
    bundle = folder / "bundle"
    shutil.copytree(default_bundle_folder(), bundle)
    with (bundle / "tools.yaml").open("a", encoding="utf-8") as file:
        file.write(drafted.read_text(encoding="utf-8").partition("\ntools:\n")[2])
    return bundle


async def _measured(command: list[str], tool: str, mode: str) -> tuple[Sample, float]:
    """Return the latencies of a tool's calls, and the microseconds of processor time of one, with all children."""
    before = set(_children())
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(server, mode=mode, cache=None) as client:
        (pid,) = set(_children()) - before

        async def call(_: int) -> object:
            result = await client.call_tool(tool, {})
            if result.is_error:
                raise RuntimeError(f"the call did not run: {result.content}")
            return result

        await sample(call, calls=0)
        process = Server("", pid)
        began = process.cpu_seconds()
        measured = await sample(call, calls=_CALLS, warmup=0)
        return measured, (process.cpu_seconds() - began) / _CALLS * 1e6


def _children() -> list[int]:
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


def _row(era: str, guarded: Sample, bare: Sample) -> Mapping[str, Any]:
    over = {percent: guarded.percentile_ms(percent) - bare.percentile_ms(percent) for percent in (50, 95)}
    beside = {"p95_ms": over[95], "bare_p50_ms": bare.percentile_ms(50), "goal_ms": _GOAL_MS}
    return {"name": f"reach_proxy_{era}_over_bare_p50_ms", "value": over[50], "unit": "ms", **beside}
