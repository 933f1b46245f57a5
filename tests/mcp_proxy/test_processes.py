"""The proxy as a process: over standard streams, ended by its client or a signal, and killed in mid-call."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from typer.testing import CliRunner

from tests.support.proxies import Place, lives, texts, until
from tests.support.riskgate.serving import ServedRiskGate

YES = types.ElicitResult(action="accept", content={"allow": True})
ENDS = 120.0


@contextmanager
def started(place: Place, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a proxy whose client is the test itself."""
    server = place.process(*more)
    process = subprocess.Popen([server.command, *server.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait(ENDS)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()


def say(process: subprocess.Popen[bytes], method: str, params: dict[str, Any], number: int | None = None) -> None:
    assert process.stdin is not None
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[bytes], number: int) -> dict[str, Any]:
    """Return the answer to a request, whatever is said before it."""
    assert process.stdout is not None
    while line := process.stdout.readline():
        message: dict[str, Any] = json.loads(line)
        if message.get("id") == number and "method" not in message:
            return message
    raise AssertionError("the proxy has ended")


def initialise(process: subprocess.Popen[bytes]) -> None:
    info = {"name": "test", "version": "1"}
    say(process, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}, 1)
    assert answer(process, 1)["result"]["serverInfo"]["name"] == "riskgate-test"
    say(process, "notifications/initialized", {})


def call(process: subprocess.Popen[bytes], tool: str, number: int) -> None:
    say(process, "tools/call", {"name": tool, "arguments": {}}, number)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_starts_it_calls_tools_and_answers_forms(make_place: Callable[..., Place], mode: str):
    place = await make_place().pin()

    async def yes(_: Any, _params: types.ElicitRequestParams) -> types.ElicitResult:
        return YES

    server = place.process("--subject", "ana", "--forms")
    async with Client(server, mode=mode, elicitation_callback=yes) as client:
        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        assert texts(await client.call_tool("mcp_test_look", {})) == "looked"
        assert texts(await client.call_tool("mcp_test_note", {"text": "milk"})).startswith("noted milk")
    assert place.effects == ["look", "milk"]
    await until(lambda: not lives(place.server_pid))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stdin", "SIGINT", "SIGTERM", "SIGKILL"])
async def test_when_it_ends_the_server_ends(make_place: Callable[..., Place], how: str):
    place = await make_place("test", *(["stays"] if how == "stdin" else [])).pin()
    with started(place) as process:
        await asyncio.to_thread(initialise, process)
        await until((place.work / "pid").exists)
        if how == "stdin":
            assert process.stdin is not None
            process.stdin.close()
        else:
            process.send_signal(getattr(signal, how))
        code = await asyncio.to_thread(process.wait, ENDS)
        assert code == (-signal.SIGKILL if how == "SIGKILL" else 0)
    await until(lambda: not lives(place.server_pid))


@pytest.mark.slow
async def test_a_signal_while_the_client_speaks_ends_it_without_a_failure(make_place: Callable[..., Place]):
    place = await make_place().pin()
    with started(place) as process:
        await asyncio.to_thread(initialise, process)
        assert process.stdin is not None
        spoken = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode() + b"\n"
        process.stdin.write(spoken * 800)  # as much as a pipe takes without being read
        process.stdin.flush()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, ENDS) == 0


@pytest.mark.slow
async def test_killed_in_mid_call_the_effect_is_in_doubt_and_runs_once(make_place: Callable[..., Place]):
    place = await make_place().pin()
    place.set("hold")
    with started(place) as process:
        await asyncio.to_thread(initialise, process)
        call(process, "mcp_test_look", 2)
        await until(lambda: place.effects == ["look"])
        process.kill()
        await asyncio.to_thread(process.wait, ENDS)
    await until(lambda: not lives(place.server_pid))
    assert place.outcomes() == [""], "redeemed, and nobody has told what came of it"
    place.clear("hold")
    async with place.client() as client:
        await until(lambda: place.outcomes() == ["IN_DOUBT"])
        assert place.effects == ["look"], "a new proxy repeats nothing by itself"
        assert texts(await client.call_tool("mcp_test_look", {})) == "looked"
    assert place.outcomes() == ["IN_DOUBT", "SUCCEEDED"]
    assert [path.name for path in place.state.path.glob("running-*")] == []


@pytest.mark.slow
async def test_what_a_killed_proxy_left_is_reported_once_riskgate_is_back(own_gate: ServedRiskGate, make_place: Any):
    place = await make_place(gate=own_gate).pin()
    place.set("hold")
    with started(place) as process:
        await asyncio.to_thread(initialise, process)
        call(process, "mcp_test_look", 2)
        await until(lambda: place.effects == ["look"])
        process.kill()
        await asyncio.to_thread(process.wait, ENDS)
    own_gate.stop()
    async with place.client() as client:
        assert "RiskGate is unavailable" in texts(await client.call_tool("mcp_test_look", {}))
        assert len(list(place.state.path.glob("running-*"))) == 2, "its own, and the one that was left"
    own_gate.start()
    async with place.client():
        await until(lambda: place.outcomes() == ["IN_DOUBT"])
    assert place.effects == ["look"]


@pytest.mark.slow
async def test_two_proxies_of_one_server_report_nothing_of_each_other(make_place: Callable[..., Place]):
    place = await make_place().pin()
    place.set("hold")
    with started(place) as process:
        await asyncio.to_thread(initialise, process)
        call(process, "mcp_test_look", 2)
        await until(lambda: place.effects == ["look"])
        async with place.client() as client:
            other = asyncio.create_task(client.call_tool("mcp_test_look", {}))
            await until(lambda: place.effects == ["look", "look"])
            place.clear("hold")
            assert texts(await other) == "looked"
        said = await asyncio.to_thread(answer, process, 2)
    assert said["result"]["content"][0]["text"] == "looked"
    assert place.outcomes() == ["SUCCEEDED", "SUCCEEDED"]


@pytest.mark.slow
async def test_lines_that_are_no_messages_or_too_long_end_nothing_else(make_place: Callable[..., Place]):
    place = await make_place().pin()
    with started(place) as process:
        assert process.stdin is not None
        process.stdin.write(b"hello\n\n{}\n[1]\n\xff\xfe\n")
        await asyncio.to_thread(initialise, process)
        call(process, "mcp_test_look", 2)
        said = await asyncio.to_thread(answer, process, 2)
        assert said["result"]["content"][0]["text"] == "looked"
        with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012 - it is read until the limit
            for _ in range(2_000):
                process.stdin.write(b"x" * 65_536)
                process.stdin.flush()
        assert await asyncio.to_thread(process.wait, ENDS) == 0
    assert place.effects == ["look"]


@pytest.mark.slow
def test_the_doctor_proves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from phylactery_riskgate.cli import app

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    done = CliRunner().invoke(app, ["doctor", "mcp"])
    assert done.exit_code == 0, done.output
    assert "7 of 7 hold" in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_riskgates_command_offers_the_proxy_where_it_is_installed_and_runs_without_it():
    program = (
        "import sys\n"
        "if sys.argv[1] == 'without':\n"
        "    sys.modules['phylactery_mcp_proxy'] = None\n"
        "from typer.testing import CliRunner\n"
        "from phylactery_riskgate.cli import app\n"
        "print('mcp-proxy' in CliRunner().invoke(app, ['--help']).output)\n"
        "print([name for name in sys.modules if name == 'mcp' or name.startswith('mcp.')])\n"
    )
    told = []
    for how in ("with", "without"):
        done = subprocess.run(
            [sys.executable, "-c", program, how], capture_output=True, text=True, check=False, timeout=ENDS
        )
        assert done.returncode == 0, done.stderr
        told.append(done.stdout.split("\n")[:2])
    assert told == [["True", "[]"], ["False", "[]"]], "and it loads no SDK to say so"
