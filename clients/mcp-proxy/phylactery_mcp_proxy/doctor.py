"""`riskgate doctor mcp`: proves with a canary server that a proxy lists, blocks, allows, and holds without RiskGate.

It starts a RiskGate of its own over an empty folder and removes everything afterwards. What it needs beyond typer is
imported when it runs, because `riskgate` loads this module at every start.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from mcp import Client

FAILED, UNUSABLE = 1, 2
"""Exit codes: a proof failed; the proofs could not be carried out."""
_START_SECONDS: Final = 120.0
_NAME: Final = "canary"
_PATIENT: Final = ("--start-seconds", "60", "--env", "PYTHONPATH")

app = typer.Typer(no_args_is_help=True, help="Prove that a guard holds.")


@app.callback()
def doctor() -> None:
    """Prove that a guard holds."""


class _NotProvenError(Exception):
    """A proof that cannot be carried out; the message says why."""


@dataclass(slots=True)
class _Proofs:
    """What was tried, and whether it came out as it must."""

    failed: int = 0
    seen: list[str] = field(default_factory=list)

    def tell(self, holds: bool, what: str) -> None:
        self.failed += not holds
        self.seen.append(what)
        typer.echo(f"{'ok  ' if holds else 'FAIL'}  {what}")


@app.command("mcp")
def doctor_mcp() -> None:
    """Prove it: the real proxy between a real client and a canary server, with a real RiskGate and without one.

    Exit code 0: everything holds. 1: something does not. 2: the proofs could not be carried out.
    """
    if importlib.util.find_spec("phylactery_riskgate") is None:
        typer.echo("riskgate doctor: RiskGate is not installed here, and the proofs need one", err=True)
        raise typer.Exit(UNUSABLE)
    proofs = _Proofs()
    try:
        with tempfile.TemporaryDirectory(prefix="riskgate-doctor-") as folder:
            asyncio.run(_prove(Path(folder), proofs))
    except Exception as error:  # noqa: BLE001 - any failure of the processes is told in one sentence
        why = error if isinstance(error, _NotProvenError) else f"the proxy cannot be used ({type(error).__name__})"
        typer.echo(f"riskgate doctor: {why}", err=True)
        raise typer.Exit(UNUSABLE) from None
    typer.echo(f"{len(proofs.seen) - proofs.failed} of {len(proofs.seen)} hold")
    if proofs.failed:
        raise typer.Exit(FAILED)


async def _prove(folder: Path, proofs: _Proofs) -> None:
    from phylactery_mcp_proxy.canary import READS, UNKNOWN, WRITES
    from phylactery_mcp_proxy.state.pins import tool_name

    effects, state = folder / "effects", folder / "state"
    reads, writes, unknown = (tool_name(_NAME, one) for one in (READS, WRITES, UNKNOWN))
    async with _client(effects, folder / "unpinned", target="127.0.0.1:1") as client:
        tools, told = await _tools(client), await _told(client, reads, {})
    proofs.tell(not tools, "tools that nobody reviewed are not listed")
    proofs.tell("blocked" in told and not _ran(effects), f"and do not run: {told}")
    await asyncio.to_thread(_pin, state, effects)
    bundle = await asyncio.to_thread(_bundle, folder, state, {reads, writes})
    with _riskgate(folder, bundle) as (target, stop):
        async with _client(effects, state, target) as client:
            tools = await _tools(client)
            proofs.tell(tools == sorted((reads, writes, unknown)), f"reviewed tools are listed: {', '.join(tools)}")
            told = await _told(client, unknown, {})
            proofs.tell(not _ran(effects), f"a tool that the catalog does not know is blocked: {told}")
            told = await _told(client, writes, {"text": "la"})
            proofs.tell("ap_" in told and not _ran(effects), f"a write waits for a person: {told}")
            told = await _told(client, reads, {})
            proofs.tell(_ran(effects) == [READS], f"a read runs, once: {told}")
            await asyncio.to_thread(stop)
            told = await _told(client, reads, {})
            proofs.tell(_ran(effects) == [READS], f"without RiskGate nothing runs: {told}")


@asynccontextmanager
async def _client(effects: Path, state: Path, target: str) -> AsyncIterator[Client]:
    """Yield a client of the real proxy before the canary, each a process."""
    from mcp import Client, StdioServerParameters

    options = ("--name", _NAME, "--state", str(state), "--target", target, *_PATIENT)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "phylactery_mcp_proxy", "run", *options, "--", *_canary(effects)],
        env=_environment(),
    )
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(_START_SECONDS):
            client = await stack.enter_async_context(Client(server, read_timeout_seconds=_START_SECONDS))
        yield client


async def _tools(client: Client) -> list[str]:
    return sorted(one.name for one in (await client.list_tools()).tools)


async def _told(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """Return what a model reads after a call."""
    result = await client.call_tool(tool, arguments)
    return " ".join(getattr(block, "text", "") for block in result.content)


def _ran(effects: Path) -> list[str]:
    return effects.read_text(encoding="utf-8").split() if effects.exists() else []


def _canary(effects: Path) -> tuple[str, ...]:
    return (sys.executable, "-m", "phylactery_mcp_proxy.canary", str(effects))


def _environment() -> dict[str, str]:
    """Return the environment of the processes: ours without settings that name another RiskGate or bundle."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("RISKGATE_", "XDG_STATE_HOME"))}


def _pin(state: Path, effects: Path) -> None:
    options = ("--yes", "--name", _NAME, "--state", str(state), *_PATIENT)
    _run([sys.executable, "-m", "phylactery_mcp_proxy", "pin", *options, "--", *_canary(effects)])


def _run(command: list[str]) -> str:
    done = subprocess.run(  # noqa: S603 - our own commands
        command, capture_output=True, text=True, env=_environment(), timeout=_START_SECONDS, check=False
    )
    if done.returncode:
        raise _NotProvenError(f"`{' '.join(command[2:5])} …` failed: {done.stderr.strip()[-300:]}")
    return done.stdout


def _bundle(folder: Path, state: Path, known: set[str]) -> Path:
    """Return RiskGate's own bundle with these tools, drafted as an operator does."""
    found = importlib.util.find_spec("phylactery_riskgate")
    assert found is not None
    assert found.submodule_search_locations
    bundle, wanted = folder / "bundle", folder / "known.json"
    shutil.copytree(Path(found.submodule_search_locations[0]) / "default_bundle", bundle)
    offered = json.loads((state / "offered.json").read_text(encoding="utf-8"))["tools"]
    wanted.write_text(json.dumps([one for one in offered if one["name"] in known]), encoding="utf-8")
    drafted = _run([sys.executable, "-m", "phylactery_riskgate.cli", "catalog", "draft", str(wanted)])
    with (bundle / "tools.yaml").open("a", encoding="utf-8") as file:
        file.write(drafted.partition("\ntools:\n")[2])
    return bundle


@contextlib.contextmanager
def _riskgate(folder: Path, bundle: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Serve a RiskGate with this bundle; yield where, and how to stop it."""
    ready, log = folder / "ready.json", folder / "riskgate.log"
    env = {**_environment(), "RISKGATE_READY_FILE": str(ready)}
    command = ["-m", "phylactery_riskgate.cli", "serve", "--data-dir", str(folder / "data"), "--port", "0"]
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, *command, "--bundle", str(bundle)], env=env, stdout=out, stderr=out
        )

    def stop() -> None:
        process.send_signal(signal.SIGTERM)
        process.wait(_START_SECONDS)

    try:
        ends = time.monotonic() + _START_SECONDS
        while not (ready.exists() and (told := ready.read_text(encoding="utf-8"))):
            if process.poll() is not None or time.monotonic() >= ends:
                raise _NotProvenError(f"RiskGate does not start: {log.read_text(encoding='utf-8')[-300:].strip()}")
            time.sleep(0.05)
        yield f"127.0.0.1:{json.loads(told)['port']}", stop
    finally:
        process.kill()
        process.wait(_START_SECONDS)
