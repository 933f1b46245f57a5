"""An application of Google ADK under RiskGatePlugin, in an environment of its own.

google-adk 2.13 takes neither the OpenTelemetry nor the websockets that the other distributions are tested with.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.support.adapters.hosts import Host, Proposal, Turn
from tests.support.packages.installing import ROOT, skip_if_unreachable

ENVIRONMENT = ROOT / ".venv-google-adk"
_ANSWER_SECONDS = 120.0


def environment() -> Path:
    """Return the environment's Python, made at first. Skip the test if the package registry is unreachable."""
    with (ROOT / ".venv-google-adk.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of the processes of a test run makes it
        done = subprocess.run(
            ["make", "--silent", f"{ENVIRONMENT.name}/.installed"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    skip_if_unreachable(done.stderr if done.returncode else "")
    assert done.returncode == 0, done.stderr
    return ENVIRONMENT / "bin" / "python"


class GoogleADKHost(Host):
    """An application in another process, whose session is kept here."""

    guard: dict[str, Any] = {}  # noqa: RUF012 - never changed in place
    inner: Sequence[Proposal] = ()
    """What the agent that is a tool proposes, if there is one."""
    answer: dict[str, Any]
    _process: asyncio.subprocess.Process | None = None

    async def start(self, words: str, proposals: Sequence[Proposal]) -> Turn:
        python = await asyncio.to_thread(environment)
        self._process = await asyncio.create_subprocess_exec(
            python,
            "-m",
            "tests.support.adapters.google_adk_process",
            cwd=ROOT,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=16 * 1024 * 1024,
        )
        self._given = {
            "target": self.target,
            "connection": self.connection,
            "guard": self.guard,
            "content": self.tools.content,
            "proposals": [vars(one) for one in proposals],
            "inner": [vars(one) for one in self.inner],
        }
        return await self._turn(words=words, state=None)

    async def resume(self, turn: Turn, edited: dict[str, Any] | None = None, *, yes: bool = True) -> Turn:
        state = json.loads(turn.state)
        for call in _calls(state) if edited is not None else ():
            call["args"] = edited
        return await self._turn(words=None, state=state, yes=yes)

    async def close(self) -> None:
        process = self._process
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            await asyncio.wait_for(process.wait(), _ANSWER_SECONDS)

    async def _turn(self, **given: Any) -> Turn:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(self._given | {"session": self.thread_id} | given).encode() + b"\n")
        await process.stdin.drain()
        line = await asyncio.wait_for(process.stdout.readline(), _ANSWER_SECONDS)
        assert line, f"the process ended with {await process.wait()}"
        self.answer = json.loads(line)
        self.tools.written[:] = self.answer["written"]
        return Turn(tuple(self.answer["waiting"]), tuple(self.answer["seen"]), json.dumps(self.answer["state"]))


def _calls(value: Any) -> Iterator[dict[str, Any]]:
    """Return every place where a session has the call that waits."""
    if isinstance(value, dict):
        if value.get("name") == "write_file" and "args" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _calls(one)
