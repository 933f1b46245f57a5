"""Our distributions as wheels, and clean environments with a single one of them installed."""

from __future__ import annotations

import email
import filecmp
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from sysconfig import get_path

import pytest

ROOT = Path(__file__).resolve().parents[3]
UV = Path(sys.executable).parent / "uv"
_START_SECONDS = 180.0
_UNREACHABLE = (
    "failed to fetch",
    "error sending request",
    "dns error",
    "connection refused",
    "network is unreachable",
    "operation timed out",
    "no route to host",
)


def uv(*arguments: str | Path, folder: Path = ROOT) -> None:
    """Run uv. Skip the test if the package registry is unreachable; raise AssertionError otherwise."""
    done = subprocess.run([UV, *arguments], cwd=folder, capture_output=True, text=True, check=False, env=_clean())
    skip_if_unreachable(done.stderr if done.returncode else "")
    assert done.returncode == 0, done.stderr


def skip_if_unreachable(errors: str) -> None:
    """Skip the test if a program's errors say that the package registry is unreachable."""
    if any(sign in errors.lower() for sign in _UNREACHABLE):
        pytest.skip(f"the package registry cannot be reached: {errors.strip().splitlines()[-1]}")


def build_wheels(folder: Path) -> dict[str, Path]:
    """Build every distribution as for a release and return the wheels by name."""
    done = subprocess.run(
        ["make", "--silent", "wheels", f"OUT={folder}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env=_clean(),
    )
    assert done.returncode == 0, done.stderr
    return {wheel_metadata(path)["Name"]: path for path in sorted(folder.glob("*.whl"))}


def files_in(wheel: Path) -> set[str]:
    """Return the paths in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def ours_needed(name: str, wheels: Mapping[str, Path]) -> set[str]:
    """Return a distribution and our distributions it depends on, directly or indirectly."""
    found, todo = set(), [name]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            names = {re.split(r"[^a-z0-9-]", needed)[0] for needed in declared(one, wheels)}
            todo += [other for other in wheels if other in names]
    return found


def declared(name: str, wheels: Mapping[str, Path]) -> list[str]:
    """Return a wheel's declared requirements."""
    return [str(needed) for needed in wheel_metadata(wheels[name]).get_all("Requires-Dist", [])]


@dataclass(frozen=True)
class Alone:
    """An environment with one distribution and its dependencies."""

    folder: Path
    elsewhere: Path
    """The working folder of programs, so that nothing of the checkout is on their path."""

    def program(self, name: str) -> Path:
        """Return the path of an installed program."""
        return self.folder / "bin" / name

    def run(self, *command: str | Path) -> str:
        """Run an installed program and return its output. Raise AssertionError unless it exits with 0."""
        done = subprocess.run(
            [self.program(str(command[0])), *command[1:]],
            cwd=self.elsewhere,
            env=_clean(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def has(self, module: str) -> bool:
        """Return True if a module can be imported in the environment."""
        return self.run("python", "-c", f"import importlib.util as u; print(u.find_spec({module!r}))") != "None\n"

    @contextmanager
    def serving(self, service: str, **variables: str | Path | int) -> Iterator[str]:
        """Run a service during the block and yield its address."""
        prefix, data = service.upper(), self.elsewhere / f"{service}-data"
        ready = data / "ready.json"
        ready.unlink(missing_ok=True)
        settings = {"DATA_DIR": data, "PORT": 0, "READY_FILE": ready, **variables}
        env = _clean() | {f"{prefix}_{name}": str(value) for name, value in settings.items()}
        with (self.elsewhere / f"{service}.log").open("w+b") as log:
            process = subprocess.Popen(
                [self.program("python"), "-m", f"phylactery_{service}"],
                cwd=self.elsewhere,
                env=env,
                stdout=log,
                stderr=log,
            )
            try:
                limit = time.monotonic() + _START_SECONDS
                while not ready.exists():
                    assert process.poll() is None, Path(log.name).read_text()
                    assert time.monotonic() < limit, Path(log.name).read_text()
                    time.sleep(0.05)
                yield f"127.0.0.1:{json.loads(ready.read_text())['port']}"
            finally:
                process.terminate()
                assert process.wait(60) == 0, "it did not end cleanly at SIGTERM"


def install(name: str, wheels: Mapping[str, Path], folder: Path) -> Path:
    """Create a clean environment with a distribution and those of ours it depends on, and nothing else."""
    alone = Alone(folder, folder)
    uv("venv", "--quiet", "--python", sys.executable, alone.folder)
    ours = [wheels[one] for one in sorted(ours_needed(name, wheels))]
    pins = "constraints-google-adk.txt" if name == "phylactery-google-adk" else "constraints.txt"
    uv("pip", "install", "--quiet", "--python", alone.program("python"), "--constraint", pins, *ours)
    lend_bytecode(alone.folder)
    return alone.folder


def lend_bytecode(environment: Path) -> None:
    """Give a new environment what this one has compiled of the very same files, which takes it seconds of every start.

    A file that differs, or that was never imported here, is compiled there as ever.
    """
    own, there = (Path(get_path("purelib", vars={"base": str(base)})) for base in (sys.prefix, environment))
    for source in there.rglob("*.py"):
        same = own / source.relative_to(there)
        compiled = Path(cache_from_source(str(same)))
        if compiled.exists() and same.exists() and filecmp.cmp(source, same, shallow=False):
            read, lent = compiled.read_bytes(), Path(cache_from_source(str(source)))
            if read[4:8] == bytes(4):  # bytecode that is checked by its source's time and size
                lent.parent.mkdir(exist_ok=True)
                time_of = int(source.stat().st_mtime) & 0xFFFF_FFFF
                lent.write_bytes(read[:8] + time_of.to_bytes(4, "little") + read[12:])


def _clean() -> dict[str, str]:
    """Return this environment without variables that expose the checkout or the running environment."""
    foreign = ("PYTHON", "VIRTUAL_ENV", "AGENT_", "MEMORY_", "RISKGATE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def wheel_metadata(wheel: Path) -> email.message.Message:
    """Return a wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))
