"""What the demo plays on: a bundle of its own, real files, and three real services on free ports."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from phylactery_client import MemoryClient, PhylacteryClient, RiskGateClient
from phylactery_client.results import PendingApproval, Turn
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder
from rich.console import Console
from rich.text import Text

from phylactery_cli.commands.models import STATIC
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.render.render import EventPrinter
from phylactery_cli.supervisor import Stack

_REPORT_LINES = 400
_FREE_PORTS = {"agent": 0, "riskgate": 0, "memory": 0}


class DemoError(AssertionError):
    """Something did not happen as the demo promises."""


def expect(holds: bool, what: str) -> None:
    """Raise DemoError unless it holds."""
    if not holds:
        raise DemoError(what)


def set_stage(folder: Path) -> Stack:
    """Write the files and the bundle, and return the stack, not started yet."""
    bundle = folder / "bundle"
    shutil.copytree(default_bundle_folder(), bundle)
    shutil.copy(Path(__file__).parent / "no_scripts.cedar", bundle / "policies")
    stack = Stack(folder, _FREE_PORTS, extra_env={"riskgate": {"RISKGATE_BUNDLE": str(bundle)}, "agent": STATIC})
    sandbox = stack.sandbox
    sandbox.mkdir(parents=True)
    (sandbox / "notes.txt").write_text("Buy bread. Call Ana.\n", encoding="utf-8")
    report = "".join(f"line {number:04d}: nothing to report at this station\n" for number in range(_REPORT_LINES))
    (sandbox / "report.txt").write_text(report, encoding="utf-8")
    return stack


@dataclass(slots=True)
class Stage:
    """The demo's folder, its services, and a person's side of the conversation."""

    folder: Path
    stack: Stack
    console: Console
    thread_id: str = "demo"
    last_run_id: str = ""
    answered: PendingApproval | None = None
    """The approval of the write that survived the kill, for who comes with it again."""
    decided: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """RiskGate's decisions of the last turn, each with its reasons."""

    @property
    def sandbox(self) -> Path:
        """Return the folder with the real files."""
        return self.stack.sandbox

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[PhylacteryClient]:
        """Open a client of the agent where it listens now."""
        async with PhylacteryClient(self.stack.target("agent")) as client:
            yield client

    @asynccontextmanager
    async def riskgate(self) -> AsyncIterator[RiskGateClient]:
        """Open a client of RiskGate."""
        async with RiskGateClient(self.stack.target("riskgate")) as client:
            yield client

    @asynccontextmanager
    async def memory(self) -> AsyncIterator[MemoryClient]:
        """Open a client of memory."""
        async with MemoryClient(self.stack.target("memory")) as client:
            yield client

    async def say(self, text: str) -> Turn:
        """Say something, print every event of the turn, and return the turn."""
        self.console.print(Text.assemble(("you › ", "bold"), text))
        request_id = f"demo-{asyncio.get_running_loop().time():.6f}"
        printer = EventPrinter(self.console, Texts("en"))
        self.decided.clear()
        async with self.agent() as client:
            async for event in client.stream_message(text, thread_id=self.thread_id, request_id=request_id):
                printer.show(event.raw)
                if event.kind == "risk_decision":
                    self.decided.append((event.detail.decision, tuple(event.detail.reasons)))
            turn = await client.send_message(text, thread_id=self.thread_id, request_id=request_id)
        self.last_run_id = turn.run.id
        return turn

    def riskgate_command(self, *arguments: str) -> tuple[int, str]:
        """Run the riskgate command as a person would, and return its exit code and what it printed."""
        command = Path(sys.executable).with_name("riskgate")
        self.console.print(Text.assemble(("$ ", "bold"), f"riskgate {' '.join(arguments)}"))
        done = subprocess.run(  # noqa: S603 - our own command
            [str(command), *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )
        for line in (done.stdout + done.stderr).strip().splitlines():
            self.console.print(f"  {line}")
        return done.returncode, done.stdout
