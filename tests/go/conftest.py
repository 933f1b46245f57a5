"""The Go client's toolchain and modules, and the real services its tests talk to."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from phylactery_chassis.auth.identity import token_hash
from phylactery_cli.supervisor import Stack, running

from tests.support.processes.stack import ForkedStack, await_death, crash_at, lasting_ports, relaunch
from tests.support.riskgate.people import PEOPLE
from tests.support.riskgate.serving import ServedRiskGate

CLIENT = Path(__file__).resolve().parents[2] / "clients" / "go"
_DOWNLOAD_SECONDS = 300

Go = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def go() -> Go:
    """Run go in the client's folder, or in another one; skipped where there is no Go, or no module proxy."""
    program = shutil.which("go")
    if program is None:
        pytest.skip("no go on this machine")

    def run(*arguments: str | Path, folder: Path = CLIENT, **env: str) -> subprocess.CompletedProcess[str]:
        # -buildvcs: a checkout may belong to somebody else, whose repository git does not read
        environment = os.environ | {"GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"} | env
        return subprocess.run(
            [program, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    try:
        got = subprocess.run(
            [program, "mod", "download"],
            cwd=CLIENT,
            capture_output=True,
            text=True,
            check=False,
            timeout=_DOWNLOAD_SECONDS,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the module proxy of Go does not answer within {_DOWNLOAD_SECONDS} s")
    if got.returncode:
        assert "checksum mismatch" not in got.stderr, got.stderr
        pytest.skip(f"the Go client's modules cannot be had: {got.stderr.strip().splitlines()[-1:]}")
    return run


class Services:
    """The stack, a RiskGate with tokens, and an address where Go tests ask for a crash or a start of the agent."""

    def __init__(self, stack: Stack, guarded: ServedRiskGate) -> None:
        self.stack, self._guarded = stack, guarded
        self._server = HTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        """End the control address."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def environment(self) -> Mapping[str, str]:
        """What the Go tests read."""
        settings = {
            "AGENT": self.stack.target("agent"),
            "RISKGATE": self.stack.target("riskgate"),
            "MEMORY": self.stack.target("memory"),
            "GUARDED": self._guarded.target,
            "FILES": str(self.stack.sandbox),
            "CONTROL": f"http://127.0.0.1:{self._server.server_port}",
        }
        return {f"PHYLACTERY_TEST_{name}": value for name, value in settings.items()}

    def order(self, order: str) -> None:
        """Do what a test asks for."""
        match order.strip("/").split("/"):
            case ["kill"]:
                self.stack.kill("agent")
            case ["stop"]:
                process = self.stack.processes["agent"].process
                process.terminate()
                process.wait(60)
            case ["start"]:
                relaunch(self.stack, "agent")
            case ["crash", point]:
                self.stack.kill("agent")
                crash_at(self.stack, "agent", point)
                self.stack.launch("agent", port=self.stack.processes["agent"].port)
                self.stack.wait_healthy("agent")
            case ["revive"]:
                await_death(self.stack, "agent")
                relaunch(self.stack, "agent")
            case _:
                raise AssertionError(f"order '{order}' is unknown")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        services = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the name that http.server asks for
                try:
                    services.order(self.path)
                except Exception as error:  # noqa: BLE001 - the Go test fails with it
                    self.send_response(500)
                    self.end_headers()
                    self.wfile.write(f"{type(error).__name__}: {error}".encode())
                else:
                    self.send_response(200)
                    self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Handler


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    folder = tmp_path_factory.mktemp("go")
    tokens = folder / "tokens.yaml"
    entries = [{"hash": token_hash(f"token-of-{name}"), "subject": name, **PEOPLE[name]} for name in ("ana", "agent")]
    tokens.write_text(yaml.safe_dump({"tokens": entries}))
    guarded = ServedRiskGate(folder / "guarded", identity_mode="tokens", tokens_file=str(tokens))
    with guarded, running(ForkedStack(folder / "data", lasting_ports())) as stack:
        stack.sandbox.mkdir(parents=True, exist_ok=True)
        (stack.sandbox / "welcome.txt").write_text("Welcome to Phylactery.\n", encoding="utf-8")
        made = Services(stack, guarded)
        yield made
        made.close()
