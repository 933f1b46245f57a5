"""The TypeScript client as its users build it: a copy with its libraries from the registry, for Node."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "clients" / "typescript"
INSTALL_SECONDS = 300
_PROGRAM_SECONDS = 600
_LEAST_NODE = 20
_NOT_OURS = shutil.ignore_patterns("node_modules", "dist", "build")
_UNREACHABLE = re.compile(r"E(AI_AGAIN|CONN\w+|HOSTUNREACH|NETUNREACH|NOTFOUND|TIMEDOUT|IDLETIMEOUT|40[134]|5\d\d)\b")
"""How npm says that the registry does not answer, or does not have what is asked of it."""


def installed(folder: Path) -> Path:
    """Return a built copy of the client with its libraries. Skip the test where they cannot be had."""
    _require_node()
    shutil.copytree(SOURCE, folder, ignore=_NOT_OURS)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not have the client's libraries within {INSTALL_SECONDS} seconds")
    if done.returncode != 0 and _UNREACHABLE.search(done.stderr):
        pytest.skip("npm cannot reach its registry for the client's libraries")
    assert done.returncode == 0, done.stderr
    for project in (".", "test", "examples"):
        run(folder, "node_modules/.bin/tsc", "--project", project)
    return folder


def run(folder: Path, *command: str) -> str:
    """Return what a program prints. Raise AssertionError with it if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_PROGRAM_SECONDS,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


async def run_tests(folder: Path, file: str, **env: str) -> None:
    """Run a file of the client's tests. Raise AssertionError with what it prints if one fails or none ran."""
    node, path = shutil.which("node"), {"PATH": str(Path(shutil.which("node") or "").parent)}
    process = await asyncio.create_subprocess_exec(
        node or "node",
        "--test",
        "--test-reporter=tap",
        f"build/test/{file}",
        cwd=folder,
        env={**path, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_PROGRAM_SECONDS):
            said = (await process.communicate())[0].decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said
    assert re.search(r"^# pass [1-9]", said, re.MULTILINE), said
    assert "# skipped 0" in said, said


def _require_node() -> None:
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        pytest.skip("there is no Node with npm here")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").partition(".")[0]) < _LEAST_NODE:
        pytest.skip(f"Node is older than {_LEAST_NODE}: {version.strip()}")
