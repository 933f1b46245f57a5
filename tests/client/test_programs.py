"""The programs of examples/python, run as a reader would, against the real services."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from phylactery_cli.supervisor import Stack, running
from phylactery_client import PhylacteryClient

from tests.support.processes.stack import FREE_PORTS, ForkedStack, Person

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "python"
RISKGATE = Path(sys.executable).with_name("riskgate")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("client_programs")]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    people = {"agent": {"AGENT_HANDOFF": "on"}}
    with running(ForkedStack(tmp_path_factory.mktemp("programs") / "data", FREE_PORTS, extra_env=people)) as made:
        yield made


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, FOLDER / program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_every_program_is_run_here_and_listed_in_the_readme():
    names = {path.name for path in FOLDER.glob("*.py")}
    here = Path(__file__).read_text(encoding="utf-8")
    listed = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert names
    assert [name for name in names if f'"{name}"' not in here or f"python/{name})" not in listed] == []


def test_sending_and_streaming_prints_the_answers_and_the_events(stack: Stack):
    done = run("send_and_stream.py", stack.target("agent"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("DONE: ")
    assert "hello" in done.stdout.splitlines()[0]
    assert all(word in done.stdout for word in ("run_started", "tool_result", "run_finished", "once more"))


def journal(stack: Stack) -> Path:
    return stack.sandbox / "journal.txt"


def test_the_card_is_shown_and_a_yes_and_a_no_are_counted(stack: Stack):
    yes = run("approve.py", "yes", stack.target("agent"))
    assert yes.returncode == 0, yes.stderr
    assert "SUSPENDED: AWAITING_APPROVAL" in yes.stdout
    assert "write_file, risk medium" in yes.stdout
    assert yes.stdout.splitlines()[-1].startswith("DONE: ")
    assert journal(stack).read_text(encoding="utf-8").startswith("paid with")
    journal(stack).unlink()
    no = run("approve.py", "no", stack.target("agent"))
    assert no.returncode == 0, no.stderr
    assert "SUSPENDED: AWAITING_APPROVAL" in no.stdout
    assert not journal(stack).exists()


def assert_only_what_the_user_asked_for_was_done(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    read, written, blocked = done.stdout.splitlines()
    assert read.startswith("All agreed.")
    assert written == "12 characters written"
    assert blocked.startswith("write_file is blocked")


def test_an_agent_of_the_openai_sdk_does_what_the_user_asked_and_not_what_the_file_said(stack: Stack):
    assert_only_what_the_user_asked_for_was_done(run("openai_agents.py", stack.target("riskgate")))


def test_an_agent_of_the_agent_framework_does_what_the_user_asked_and_not_what_the_file_said(stack: Stack):
    assert_only_what_the_user_asked_for_was_done(run("microsoft_agent.py", stack.target("riskgate")))


def test_a_graph_of_ones_own_runs_its_call_and_the_receipt_is_verified_offline(stack: Stack, tmp_path: Path):
    kept = tmp_path / "receipt.json"
    done = run("custom_graph.py", kept, stack.target("riskgate"))
    assert (done.returncode, done.stdout) == (0, "wrote notes.txt\n"), done.stderr
    keys = tmp_path / "keys.json"
    export = [RISKGATE, "keys", "export", "--data-dir", stack.data_dir / "riskgate"]
    keys.write_text(subprocess.run(export, capture_output=True, text=True, check=True).stdout, encoding="utf-8")
    verified = run("verify_receipt.py", keys, kept)
    assert (verified.returncode, verified.stdout.startswith("verified: write_file for local")) == (0, True)
    forged = json.loads(kept.read_text(encoding="utf-8"))
    forged["arguments"] = forged["arguments"].replace("hello", "HELLO")
    kept.write_text(json.dumps(forged), encoding="utf-8")
    refused = run("verify_receipt.py", keys, kept)
    assert (refused.returncode, refused.stdout.startswith("NOT VERIFIED (args_hash)")) == (1, True)


@dataclass
class Desk:
    """A help desk of somebody else's, over HTTP on loopback."""

    entries: dict[str, dict[str, str]] = field(default_factory=dict)
    replies: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def answers(self, ticket: str, text: str, *, close: bool = False) -> None:
        self.replies.append({"id": len(self.replies) + 1, "ticket": ticket, "text": text, "close": close})

    def await_entry(self, kind: str) -> dict[str, str]:
        end = time.monotonic() + 60
        while not (found := [entry for entry in self.entries.values() if entry["kind"] == kind]):
            assert time.monotonic() < end, f"no {kind} among {self.entries}"
            time.sleep(0.05)
        return found[0]


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            entry = json.loads(self.rfile.read(int(self.headers["content-length"])))
            made.entries[entry["id"]] = entry
            self._answer(b"")

        def do_GET(self) -> None:
            after = int(self.path.rpartition("=")[2])
            self._answer(json.dumps([reply for reply in made.replies if reply["id"] > after]).encode())

        def _answer(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def bridge(stack: Stack, desk: Desk, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, FOLDER / "bridge_desk.py", desk.url, folder / "state.json", stack.target("agent")]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_conversation_is_bridged_to_another_desk_and_back_across_a_kill(stack: Stack, desk: Desk, tmp_path: Path):
    with Person(stack, "local", thread="bridged") as person:
        person.say("I want to talk to a person")
        with bridge(stack, desk, tmp_path):
            opened = desk.await_entry("OPENED")
            assert "I want to talk to a person" in opened["text"]
            person.say("my order is 77")
            assert desk.await_entry("MESSAGE")["text"] == "my order is 77"
        desk.answers(opened["ticket"], "I see it, one moment")
        (tmp_path / "state.json").write_text(json.dumps({"entry": 0}))  # killed before it noted anything
        with bridge(stack, desk, tmp_path):
            desk.answers(opened["ticket"], "sent again", close=True)
            desk.await_entry("RELEASED")
            desk.answers(opened["ticket"], "one more thing")
            assert "one more thing" in desk.await_entry("NOT_DELIVERED")["text"]
        said = [message.text for message in transcript(stack, "bridged") if "[Support" in message.text]
    assert [text.rpartition("] ")[2] for text in said] == ["I see it, one moment", "sent again"]
    assert [entry["kind"] for entry in desk.entries.values()].count("OPENED") == 1


def transcript(stack: Stack, thread: str) -> list[Any]:
    async def read() -> list[Any]:
        async with PhylacteryClient(stack.target("agent")) as agent:
            return list(reversed((await agent.list_messages(thread)).messages))

    return asyncio.run(read())
