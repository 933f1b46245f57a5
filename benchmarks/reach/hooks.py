"""A hook of a coding agent: the whole process, what of it Python itself takes, and the same over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from phylactery_hooks.bundles import write_bundle
from phylactery_hooks.settings import PATH, TOKEN_FILE, HelperSettings, save
from phylactery_hooks.shell.judge import judge
from phylactery_hooks.workspace import Workspace

from benchmarks.measure import Sample, sample
from benchmarks.pinned import riskgate

_CALLS, _ROUNDS = 60, 100
_GOAL_MS = 80.0
_SERVE = "from phylactery_hooks.cli import app; app()"
_START = "from phylactery_hooks.hook import main; main()"
_COMMANDS = ("git status", "ls -la src", "rg -n foo src", "cat README.md | head -20", "git diff HEAD~1 -- src/app.py")


async def rows() -> AsyncIterator[Mapping[str, Any]]:
    """Yield what a proposed command and an empty Python process take, and what the judge takes for a command."""
    with tempfile.TemporaryDirectory() as name:
        folder, work = _folders(Path(name))
        with riskgate(bundle=Path(name, "bundle")) as server:
            save(folder, HelperSettings(target=server.target, idle_seconds=5.0))
            floor = await sample(lambda _: _process([sys.executable, "-P", "-c", "pass"], b""), calls=_CALLS, warmup=5)
            await _proposed(folder, work, -100)  # it starts the helper
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            whole = await sample(lambda number: _proposed(folder, work, number), calls=_CALLS, warmup=0)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            posted = await _posted(folder, work)
    yield {
        "name": "reach_hook_http_p50_ms",
        "value": posted.percentile_ms(50),
        "unit": "ms",
        "p95_ms": posted.percentile_ms(95),
        "goal_ms": _GOAL_MS,
    }
    yield {
        "name": "reach_hook_process_p50_ms",
        "value": whole.percentile_ms(50),
        "unit": "ms",
        "p95_ms": whole.percentile_ms(95),
        "python_alone_p50_ms": floor.percentile_ms(50),
        "cpu_ms": (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000 / _CALLS,
        "goal_ms": _GOAL_MS,
    }
    workspace = Workspace(str(Path.cwd()))
    began = time.process_time()
    for _ in range(_ROUNDS):
        for command in _COMMANDS:
            judge(command, workspace)
    taken = (time.process_time() - began) * 1e6 / (_ROUNDS * len(_COMMANDS))
    yield {"name": "reach_hook_judge_us", "value": taken, "unit": "us of CPU"}


def _folders(base: Path) -> tuple[Path, Path]:
    """Make the helper's folder, a workspace and the bundle; return the first two."""
    folder, work = base / "hooks", base / "work"
    folder.mkdir(mode=0o700)
    (work / "src").mkdir(parents=True)
    write_bundle(base / "bundle")
    return folder, work


async def _posted(folder: Path, work: Path) -> Sample:
    """Return what a proposed command takes that is posted to `riskgate hook serve`, each over a new connection."""
    words = [sys.executable, "-P", "-c", _SERVE, "serve", "--listen", "127.0.0.1:0", "--dir", str(folder)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, env=dict(os.environ))
    try:
        if process.stdout is None:
            raise RuntimeError("the server has no output")
        said = (await process.stdout.readline()).decode()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", said)
        if found is None:
            raise RuntimeError(f"it does not serve: {said!r}")
        token = (folder / TOKEN_FILE).read_text().strip()
        return await sample(lambda number: _post(int(found[1]), token, work, number), calls=_CALLS, warmup=5)
    finally:
        process.terminate()
        await process.wait()


async def _post(port: int, token: str, work: Path, number: int) -> None:
    body = json.dumps(_proposal(work, f"posted-{number}")).encode()
    head = (
        f"POST {PATH}claude-code HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + body)
    out = await reader.read()
    writer.close()
    if b'"allow"' not in out:
        raise RuntimeError(f"the command was not allowed: {out!r}")


async def _proposed(folder: Path, work: Path, number: int) -> None:
    words = [sys.executable, "-P", "-c", _START, "claude-code", "PreToolUse", "--dir", str(folder)]
    out = await _process(words, json.dumps(_proposal(work, f"call-{number}")).encode())
    if b'"allow"' not in out:
        raise RuntimeError(f"the command was not allowed: {out!r}")


def _proposal(work: Path, call: str) -> dict[str, Any]:
    return {
        "session_id": "bench",
        "cwd": str(work),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "ls -la src"},
        "tool_use_id": call,
    }


async def _process(words: list[str], payload: bytes) -> bytes:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, env=dict(os.environ))
    out, _ = await process.communicate(payload)
    return out
