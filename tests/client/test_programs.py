"""The programs of examples/python, run as a reader would, against the real services."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from phylactery_cli.supervisor import Stack, running

from tests.support.processes.stack import FREE_PORTS, ForkedStack

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "python"
RISKGATE = Path(sys.executable).with_name("riskgate")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("client_programs")]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(ForkedStack(tmp_path_factory.mktemp("programs") / "data", FREE_PORTS)) as made:
        yield made


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, FOLDER / program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_every_program_is_run_here_and_listed_in_the_readme():
    names = {path.name for path in FOLDER.glob("*.py")}
    here = Path(__file__).read_text(encoding="utf-8")
    listed = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert names
    assert [name for name in names if f'run("{name}"' not in here or f"python/{name})" not in listed] == []


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
