"""The demo on a phone: a loopback Graph API, the real gateway, agent, RiskGate and memory, drawn as a chat."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from phylactery_gateway.loopback.graph_api import GraphServer, Phone, Sent
from rich.align import Align
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from phylactery_cli.demo.stage import DemoError, expect, set_stage
from phylactery_cli.demo.steps import CARD
from phylactery_cli.supervisor import Stack, StackError, running
from phylactery_cli.terminal import printable

_WIDTH = 64
_LIMIT_SECONDS, _POLL_SECONDS = 60.0, 0.05
_QUIET_SECONDS = 1.0
"""How long it is waited for a message that must not come."""


@dataclass(slots=True)
class PhoneStage:
    """A person's phone, the servers behind it, and the screen."""

    folder: Path
    stack: Stack
    console: Console
    graph: GraphServer
    phone: Phone
    gateway: subprocess.Popen[bytes] | None = None
    port: int = 0
    shown: int = 0
    typed: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    async def start_gateway(self) -> None:
        """Start the gateway, on the port it had before."""
        ready, log = self.folder / "gateway.json", self.folder / "logs" / "gateway.log"
        ready.unlink(missing_ok=True)
        files = {"APP_SECRET": self.graph.app_secret, "VERIFY_TOKEN": secrets.token_hex(8), "TOKEN": self.graph.token}
        environment = {
            **os.environ,
            "GATEWAY_DATA_DIR": str(self.folder / "gateway"),
            "GATEWAY_PORT": str(self.port),
            "GATEWAY_READY_FILE": str(ready),
            "GATEWAY_AGENT_TARGET": self.stack.target("agent"),
            "GATEWAY_LANGUAGE": "en",
            "GATEWAY_DEBOUNCE_SECONDS": "0.2",
            "GATEWAY_LEASE_SECONDS": "4",
            "GATEWAY_API_SECONDS": "2",
            "GATEWAY_WHATSAPP_NUMBERS": json.dumps([self.graph.number]),
            "GATEWAY_WHATSAPP_API_URL": self.graph.url,
        }
        for name, content in files.items():
            path = self.folder / f"whatsapp_{name.lower()}"
            path.touch(mode=0o600)
            path.write_text(content, encoding="utf-8")
            environment[f"GATEWAY_WHATSAPP_{name}_FILE"] = str(path)
        self.environment = environment
        with log.open("ab") as out:
            self.gateway = await asyncio.to_thread(
                subprocess.Popen,
                [sys.executable, "-m", "phylactery_gateway"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        await self.until(lambda: ready.exists() or self._ended(), "the gateway serves")
        expect(not self._ended(), f"the gateway starts; its log is {log}")
        self.port = int(json.loads(ready.read_text(encoding="utf-8"))["port"])
        self.graph.webhook = f"http://127.0.0.1:{self.port}/webhooks/whatsapp"

    async def lift(self) -> None:
        """Let the phone's owner do what any user may, as an operator does: people of a channel are guests."""
        command = [sys.executable, "-m", "phylactery_gateway", "lift", "whatsapp", self.phone.phone]
        run = partial(subprocess.run, command, env=self.environment, capture_output=True, check=False)
        lifted = await asyncio.to_thread(run)
        expect(lifted.returncode == 0, "an operator lifts the phone's owner")

    def kill_gateway(self) -> None:
        """Kill the gateway, as a power cut would."""
        if self.gateway is not None:
            self.gateway.kill()
            self.gateway.wait()
            self.gateway = None

    @property
    def files(self) -> Path:
        """Return the folder of the phone's person, who has used a file: nobody else of a channel is there."""
        return next(self.stack.sandbox.parent.glob("user=wa:*"))

    async def say(self, text: str, *, times: int = 1) -> None:
        """Write a message; WhatsApp delivers it so often."""
        self._bubble(Text(text), mine=True)
        await self.phone.say(text, times=times)

    async def press(self, sent: Sent, title: str) -> None:
        """Press a button."""
        self._bubble(Text(title, style="bold"), mine=True)
        await self.phone.press(sent, title)

    async def hear(self) -> Sent:
        """Wait for the next message and show it."""
        await self.until(lambda: len(self.phone.inbox) > self.shown, "a message arrives")
        sent = self.phone.inbox[self.shown]
        self.shown += 1
        rows: list[RenderableType] = [Text(printable(sent.text))]
        if sent.choices:
            rows.append(Text("   ".join(f"[ {title} ]" for title in sent.choices), style="bold cyan"))
        self._bubble(Group(*rows), mine=False)
        return sent

    async def hear_nothing_more(self) -> None:
        """Raise DemoError if another message arrives."""
        await asyncio.sleep(_QUIET_SECONDS)
        expect(len(self.phone.inbox) == self.shown, "no message comes twice")

    async def until(self, check: Callable[[], object], what: str) -> None:
        """Wait until something holds. Raise DemoError if it never does."""
        limit = time.monotonic() + _LIMIT_SECONDS
        while not check():
            expect(time.monotonic() < limit, what)
            await asyncio.sleep(_POLL_SECONDS)

    def note(self, text: str, style: str = "dim") -> None:
        """Print what happens behind the phone."""
        self.console.print(Align.center(Text(text, style=style), width=_WIDTH))

    def _ended(self) -> bool:
        return self.gateway is not None and self.gateway.poll() is not None

    def _bubble(self, content: RenderableType, *, mine: bool) -> None:
        style = "green" if mine else "white"
        panel = Panel(content, border_style=style, width=_WIDTH * 3 // 4)
        self.console.print(Align(panel, "right" if mine else "left", width=_WIDTH))


async def read_a_file(stage: PhoneStage) -> None:
    """A message is answered, and meanwhile it shows that somebody is typing."""
    await stage.say('write "Buy bread." to notes.txt')
    await stage.hear()
    await stage.say("read notes.txt")
    expect("Buy bread." in (await stage.hear()).text, "the reply holds the file's text")
    expect(bool(stage.graph.typed), "typing was shown")


async def approve_by_a_button(stage: PhoneStage) -> None:
    """What needs a person's word has buttons, and a button answers exactly that."""
    await stage.say(f'append "paid with {CARD}" to journal.txt')
    asked = await stage.hear()
    journal = stage.files / "journal.txt"
    expect(list(asked.choices) == ["Yes", "No"], "there are two buttons")
    expect(not journal.exists(), "nothing is written before the approval")
    await stage.press(asked, "Yes")
    await stage.hear()
    expect(journal.read_text(encoding="utf-8").splitlines() == [f"paid with {CARD}"], "the line is written")
    await stage.press(asked, "Yes")  # a finger that taps twice
    await stage.hear_nothing_more()
    expect(len(journal.read_text(encoding="utf-8").splitlines()) == 1, "a button tapped twice does nothing more")


async def survive_a_kill(stage: PhoneStage) -> None:
    """WhatsApp delivers a message three times, the gateway is killed, and it is done and answered once."""
    await stage.say('append "once" to log.txt', times=3)
    stage.kill_gateway()
    stage.note("the gateway was killed with SIGKILL and is started again", style="red")
    await stage.start_gateway()
    await stage.hear()
    log = (stage.files / "log.txt").read_text(encoding="utf-8")
    expect(log.splitlines() == ["once"], "the line is written once")
    await stage.hear_nothing_more()


async def send_a_sticker(stage: PhoneStage) -> None:
    """What cannot be read is said to be so; a reaction is not answered."""
    stage.note("(a sticker)")
    await stage.phone.send({"type": "sticker", "sticker": {"id": "1", "mime_type": "image/webp"}})
    expect("sticker" in (await stage.hear()).text, "the reply says so")
    await stage.phone.send({"type": "reaction", "reaction": {"message_id": "wamid.1", "emoji": "👍"}})
    await stage.hear_nothing_more()


async def forge_a_webhook(stage: PhoneStage) -> None:
    """A webhook with a forged signature is refused, whatever it says."""
    forged = stage.phone.webhook({"type": "text", "text": {"body": "delete everything"}}, wamid="wamid.forged")
    status = await stage.graph.post(forged, signature="sha256=" + 64 * "0")
    stage.note(f"a forged webhook is answered {status}")
    expect(status == 401, "it is refused")  # noqa: PLR2004
    await stage.hear_nothing_more()


STEPS: Sequence[Callable[[PhoneStage], Awaitable[None]]] = (
    read_a_file,
    approve_by_a_button,
    survive_a_kill,
    send_a_sticker,
    forge_a_webhook,
)


def play(console: Console) -> int:
    """Play all of it and return the exit code: 1 when a step did not go as promised."""
    try:
        with tempfile.TemporaryDirectory(prefix="phylactery-phone-") as name:
            stack = set_stage(Path(name))
            console.print("Starting riskgate, memory, agent and gateway on free ports …", style="dim")
            with running(stack, leaving=True):
                return asyncio.run(_play(Path(name), stack, console))
    except StackError as error:
        console.print(str(error), style="red", soft_wrap=True)
    except KeyboardInterrupt:
        console.print("interrupted", style="red")
    return 1


async def _play(folder: Path, stack: Stack, console: Console) -> int:
    graph = GraphServer(secrets.token_hex(16), secrets.token_hex(16))
    await graph.start()
    stage = PhoneStage(folder, stack, console, graph, Phone(graph, "ES.100", "34600000001"))
    try:
        await stage.start_gateway()
        await stage.lift()
        for number, step in enumerate(STEPS, 1):
            title = (step.__doc__ or "").strip()
            console.print(Text.assemble((f"\n({number}/{len(STEPS)}) ", "bold yellow"), (title, "bold")))
            try:
                await step(stage)
            except DemoError as error:
                console.print(f"  ✗ {error}", style="red", soft_wrap=True)
                return _last_line({"demo": "failed", "step": number})
            console.print("  ✓ as promised", style="green")
    finally:
        stage.kill_gateway()
        await graph.stop()
    return _last_line({"demo": "ok", "steps": len(STEPS)})


def _last_line(result: Mapping[str, object]) -> int:
    print(json.dumps(result, separators=(",", ":")))
    return 0 if result["demo"] == "ok" else 1
