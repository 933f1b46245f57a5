"""A test MCP server set up as a person would: configured, pinned with the command, added to a bundle."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from phylactery_cli.main import app
from phylactery_riskgate.cli import app as riskgate
from phylactery_riskgate.domain.bundle.bundle import load_bundle
from typer.testing import CliRunner

from tests.support.processes.forks import Forked
from tests.support.processes.ports import lasting_port
from tests.support.processes.shells import write_forking
from tests.support.riskgate.asking_bundle import asks_first

ROOT = Path(__file__).resolve().parents[3]
LIMIT_SECONDS = 150.0
INTERPRETER = (sys.executable, "-m", "tests.support.servers.mcp_server")
"""The server as a process of its own, for tests of what is started and ended."""
_FORKING = "from tests.support.servers.mcp_server import main; main()"

KNOWN: dict[str, Any] = {
    "note": {
        "risk": "medium",
        "controls": [],
        "patterns": {"en": [r"keep\s+the\s+note\s+(?P<text>\S.*)"], "es": [r"anota\s+aparte\s+(?P<text>\S.*)"]},
        "examples": {
            "en": [{"text": "keep the note buy milk", "args": {"text": "buy milk"}}],
            "es": [{"text": "anota aparte comprar leche", "args": {"text": "comprar leche"}}],
        },
        "verbs": [r"keep\s+the", r"anota\s+aparte"],
    },
    "look": {
        "risk": "low",
        "effect": "read",
        "idempotency": "read_only",
        "retries": 1,
        "patterns": {"en": [r"look\s+at\s+the\s+notes"]},
    },
    **{
        name: {"risk": "low", "effect": "read", "idempotency": "read_only", "patterns": {"en": [rf"run\s+{name}"]}}
        for name in ("facts", "show", "fail", "ask", "environment", "huge")
    },
}

_PREPARED: dict[str, tuple[str, dict[Path, str]]] = {}
"""Pins, and files of a bundle, by what is configured of the tools."""


def forking_server(folder: Path) -> tuple[str]:
    """Return the command of a server that is a fork, which begins with a fiftieth of the work, written to a folder."""
    return (str(write_forking(folder / "server", _FORKING)),)


def processes_of(folder: Path) -> list[str]:
    """Return the processes that were started for a folder and still run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            called, state = (process / "cmdline").read_text(), (process / "stat").read_text().rpartition(")")[2]
        except (OSError, UnicodeDecodeError):
            continue
        if str(folder) in called and state.split()[0] != "Z":
            found.append(called.replace("\0", " "))
    return found


@dataclass
class McpPlace:
    """A test server: its folder, its configuration, its pins, and the bundle with its tools."""

    folder: Path
    kind: str = "stdio"
    options: dict[str, Any] = field(default_factory=dict)
    known: dict[str, Any] = field(default_factory=lambda: KNOWN)
    faults: tuple[str, ...] = ()
    port: int = field(default_factory=lasting_port)
    program: tuple[str, ...] = ()
    """What is started: by default a small program that has the server forked."""
    _served: Forked | None = None

    def __post_init__(self) -> None:
        self.work = self.folder / "work"
        self.work.mkdir(parents=True)
        self.pins = self.folder / "pins.json"
        self.program = self.program or forking_server(self.folder)
        self.configure()

    @property
    def config(self) -> Path:
        return self.folder / "mcp.yaml"

    def configure(self) -> None:
        """Write the configuration."""
        where: dict[str, Any] = {"url": f"http://127.0.0.1:{self.port}/mcp"}
        if self.kind == "stdio":
            command = [*self.program, "stdio", str(self.work), *self.faults]
            where = {"command": command, "env": ["PYTHONPATH"], "cwd": str(ROOT)}
        server = {**where, "timeout_seconds": 60, "start_seconds": 60, "tools": self.known, **self.options}
        self.config.write_text(yaml.safe_dump({"servers": {"test": server}}))

    def serve(self) -> None:
        """Start the server if it is reached by URL, and wait until it listens."""
        self._served = Forked("-c", [_FORKING, "http", self.work, self.port, *self.faults], folder=ROOT)
        import socket

        end = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the MCP server does not listen")

    def stop(self) -> None:
        """Stop the server reached by URL."""
        if self._served is not None:
            os.killpg(self._served.pid, signal.SIGKILL)
            self._served.wait()
            self._served = None

    def pin(self, *more: str) -> Any:
        """Run `phylactery tools pin`."""
        files = ["--servers", str(self.config), "--pins", str(self.pins), "--language", "en"]
        return CliRunner().invoke(app, ["tools", "pin", *files, *(more or ("--yes",))])

    def pinned(self) -> McpPlace:
        """Pin every tool in its current form."""
        done = self.pin()
        assert done.exit_code == 0, done.output
        return self

    def prepared(self, folder: Path) -> Path:
        """Pin every tool and write a bundle as `bundle` does, for which a server is started once per process.

        The tools of a server that was just made are the same whatever calls of them will do.
        """
        key = json.dumps(self.known, sort_keys=True)
        if key not in _PREPARED:
            self.pinned().bundle(folder)
            files = {path.relative_to(folder): path.read_text() for path in folder.rglob("*") if path.is_file()}
            _PREPARED[key] = self.pins.read_text(), files
            return folder
        pins, files = _PREPARED[key]
        self.pins.write_text(pins)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return folder

    def bundle(self, folder: Path) -> Path:
        """Write a bundle with the pinned tools (by export and draft) where every write needs an approval."""
        asks_first(folder)
        files = ["--servers", str(self.config), "--pins", str(self.pins)]
        exported = CliRunner().invoke(app, ["tools", "export", "--only", "test", *files])
        assert exported.exit_code == 0, exported.output
        drafted = CliRunner().invoke(riskgate, ["catalog", "draft", "-", "--from-agent"], input=exported.stdout)
        assert drafted.exit_code == 0, drafted.output
        entries = yaml.safe_load((folder / "tools.yaml").read_text())
        entries["tools"] += yaml.safe_load(drafted.stdout)["tools"]
        (folder / "tools.yaml").write_text(yaml.safe_dump(entries, allow_unicode=True))
        load_bundle(folder)
        return folder

    def agent_options(self) -> dict[str, Any]:
        """Return the agent settings for this server."""
        return {"mcp_servers": str(self.config), "mcp_pins": self.pins, "catalog_poll_seconds": 0.1}

    def agent_env(self) -> dict[str, str]:
        """Return them as environment variables."""
        return {
            "AGENT_MCP_SERVERS": str(self.config),
            "AGENT_MCP_PINS": str(self.pins),
            "AGENT_CATALOG_POLL_SECONDS": "0.1",
        }

    @property
    def effects(self) -> list[str]:
        """Return the server's effects, one per line."""
        path = self.work / "effects"
        return path.read_text().splitlines() if path.exists() else []

    def set(self, name: str) -> None:
        """Enable a fault of the server."""
        (self.work / name).write_text("")

    def clear(self, name: str) -> None:
        """Disable the fault."""
        (self.work / name).unlink(missing_ok=True)

    @property
    def pid(self) -> int:
        """Return the server's process id."""
        return int((self.work / "pid").read_text())

    def definitions(self) -> dict[str, Any]:
        """Return the content of the pin file."""
        return json.loads(self.pins.read_text())
