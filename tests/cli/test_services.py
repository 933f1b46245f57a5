"""The command as a person uses it, against the real services."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from phylactery_cli.supervisor import RESTARTS, Fate, Keeper, Stack, StackError, running
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder

from tests.support.processes import commands
from tests.support.processes.commands import Finished
from tests.support.processes.stack import FREE_PORTS, ForkedStack, Person, lasting_ports, lines
from tests.support.processes.terminals import Terminal
from tests.support.riskgate.asking_bundle import asks_first

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli"), pytest.mark.timeout(300)]
PORTS = {f"{name.upper()}_PORT": "0" for name in FREE_PORTS}


def test_the_demo_plays_its_ten_steps_and_ends_in_one_json_object():
    done = commands.run_with_services("demo")
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert {**result, "spans": 0} == {"demo": "ok", "steps": 10, "spans": 0, "services": 3}
    assert result["spans"] > 100
    assert done.stdout.count("✓ as promised") == 10


def test_the_demo_does_not_overwrite_a_folder(tmp_path: Path):
    done = commands.run_with_services("demo", "--keep", str(tmp_path))
    assert done.returncode == 1
    assert f"{tmp_path} exists already" in done.stdout


CARD = "paid with 4111 1111 1111 1111"
"""What is asked about though it was clearly asked for: it holds the number of a card."""


def files_in(folder: Path) -> Path:
    return Stack(folder / "data", FREE_PORTS).sandbox


def pids_of(folder: Path) -> list[int]:
    return [json.loads(path.read_text())["pid"] for path in folder.glob("*/ready.json")]


def started_over(folder: Path) -> list[int]:
    """Return the processes of services over a data folder, also those that do not serve yet: who writes to its logs."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "fd" / "2").readlink().parent == folder / "logs":
                found.append(int(process.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("leave", ["/quit", "\x03", "\x04"], ids=["quit", "ctrl-c", "ctrl-d"])
def test_run_opens_a_chat_asks_before_it_writes_and_stops_all_three(tmp_path: Path, leave: str):
    words = ("run", "--details", "--data-dir", str(tmp_path / "data"), "--language", "en")
    terminal = Terminal(*words, env=PORTS, installed=leave == "/quit")
    terminal.expect("model    none: static mode")
    terminal.expect("one person uses this, so you are asked")
    terminal.expect("you ›")
    pids = pids_of(tmp_path / "data")
    assert len(pids) == 3
    if leave == "/quit":
        terminal.type("read welcome.txt")
        terminal.expect("Welcome to Phylactery")
        terminal.expect("you ›")
        terminal.type('write "from a terminal" to asked.txt')
        terminal.expect("ALLOW.+clearly asked for.+Saved")
        terminal.expect("you ›")
        assert (files_in(tmp_path) / "asked.txt").read_text() == "from a terminal"
        terminal.type(f'write "{CARD}" to card.txt')
        terminal.expect("May I do this")
        terminal.expect("you ›")
        assert not (files_in(tmp_path) / "card.txt").exists()
        terminal.type("/approve")
        terminal.expect("Saved")
        terminal.expect("you ›")
        assert (files_in(tmp_path) / "card.txt").read_text() == CARD
        terminal.type("/undo")
        terminal.expect("undo_write.+ALLOW.+I removed “card.txt”")
        terminal.expect("you ›")
        assert not (files_in(tmp_path) / "card.txt").exists()
        terminal.type("/trace")
        terminal.expect("3 services")
        terminal.type("/help")
        assert len(terminal.expect("Say what you want.+/help trace").splitlines()) == 6
        terminal.type("/help approvals")
        terminal.expect("/approve 2 and /reject 2")
    if leave == "\x03":
        os.write(terminal.fd, b"\x03")
        terminal.expect("Ctrl-C again to leave.+you ›")
    terminal.type(leave)
    assert terminal.exit_code() == 0
    assert not any(alive(pid) for pid in pids)


def test_what_was_left_waiting_waits_when_the_chat_is_opened_again(tmp_path: Path):
    arguments = ("run", "--data-dir", str(tmp_path / "data"), "--language", "en")
    first = Terminal(*arguments, env=PORTS)
    first.expect("you ›")
    first.type(f'append "{CARD}" to later.txt')
    first.expect("May I do this")
    first.type("/quit")
    assert first.exit_code() == 0
    second = Terminal(*arguments, env=PORTS)
    second.expect("May I do this")
    second.expect("you ›")
    second.type("/approve")
    second.expect("Saved|Added|appended")
    second.type("/quit")
    assert second.exit_code() == 0
    assert (files_in(tmp_path) / "later.txt").read_text().splitlines() == [CARD]


def test_a_terminated_run_leaves_no_service_behind(tmp_path: Path):
    terminal = Terminal("up", "--data-dir", str(tmp_path / "data"), env=PORTS, installed=True)
    terminal.expect("agent +127")
    pids = pids_of(tmp_path / "data")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.exit_code() == 0
    assert not any(alive(pid) for pid in pids)


def test_ctrl_c_again_and_again_leaves_no_service_behind(tmp_path: Path):
    terminal = Terminal("up", "--data-dir", str(tmp_path / "data"), env=PORTS, installed=True)
    terminal.expect("agent +127")
    pids = pids_of(tmp_path / "data")
    os.write(terminal.fd, b"\x03" * 3)
    terminal.expect("Stopped|Detenido")
    assert terminal.exit_code() == 0
    assert not any(alive(pid) for pid in pids)


def test_ctrl_c_while_the_services_start_is_no_fault_and_leaves_none_behind(tmp_path: Path):
    terminal = Terminal("up", "--data-dir", str(tmp_path / "data"), env=PORTS, installed=True)
    while not (tmp_path / "data" / "logs" / "riskgate.log").exists():
        assert alive(terminal.pid)
        time.sleep(0.01)
    os.write(terminal.fd, b"\x03")
    terminal.expect("Stopped|Detenido")
    assert terminal.exit_code() == 0
    assert "Traceback" not in terminal.seen
    assert started_over(tmp_path / "data") == []


class Interrupted(ForkedStack):
    """A stack that is told to end within a launch, before anybody knows the new process."""

    def _begin(self, *launched: Any) -> subprocess.Popen[bytes]:
        self.begun = super()._begin(*launched)
        os.kill(os.getpid(), signal.SIGTERM)
        return self.begun


def test_an_end_in_the_middle_of_a_launch_leaves_no_process_behind(tmp_path: Path):
    stack = Interrupted(tmp_path / "data", FREE_PORTS)
    with pytest.raises(KeyboardInterrupt), running(stack):
        raise AssertionError("it was told to end")
    assert stack.begun.poll() is not None


@pytest.fixture
def lasting() -> dict[str, str]:
    """Variables that name ports for services that come back."""
    return {f"{name.upper()}_PORT": str(port) for name, port in lasting_ports().items()}


def kill(folder: Path, service: str) -> int:
    """Kill a service and return which process that was."""
    pid = json.loads((folder / service / "ready.json").read_text())["pid"]
    os.kill(pid, signal.SIGKILL)
    return pid


def test_a_chat_starts_a_service_that_dies_again_and_what_was_said_meanwhile_is_answered(
    tmp_path: Path, lasting: dict[str, str]
):
    folder = tmp_path / "data"
    terminal = Terminal("run", "--details", "--data-dir", str(folder), "--language", "en", env=lasting)
    terminal.expect("you ›")
    terminal.type("hello")
    terminal.expect("answered.+you ›")
    first = kill(folder, "agent")
    terminal.expect("agent stopped by itself; starting it again in 0.5 s. Its log: [^\n]+")
    terminal.type('append "one" to log.txt')
    terminal.expect("Kept .1.; it is sent as soon as possible")
    terminal.type('append "two" to log.txt')
    terminal.expect("Kept .2.")
    seen = terminal.expect("agent is running again.*answered.*answered.*you ›")
    assert "does not answer" not in seen
    assert lines(Stack(folder, FREE_PORTS), "log.txt", "local") == ["one", "two"]
    assert first not in pids_of(folder)
    kill(folder, "riskgate")
    terminal.expect("riskgate stopped by itself.*riskgate is running again.*you ›")
    pids = pids_of(folder)
    terminal.type("/quit")
    assert terminal.exit_code() == 0
    assert started_over(folder) == []
    assert not any(alive(pid) for pid in pids)


def test_up_starts_a_service_that_dies_again_and_says_so(tmp_path: Path, lasting: dict[str, str]):
    terminal = Terminal("up", "--data-dir", str(tmp_path / "data"), "--language", "es", env=lasting)
    terminal.expect("agent +127")
    before = pids_of(tmp_path / "data")
    kill(tmp_path / "data", "memory")
    terminal.expect("memory se ha detenido por sí solo; vuelve a arrancar en 0.5 s.*memory funciona de nuevo")
    assert len(set(pids_of(tmp_path / "data")) - set(before)) == 1
    os.write(terminal.fd, b"\x03")
    assert terminal.exit_code() == 0
    assert started_over(tmp_path / "data") == []


async def test_a_service_that_keeps_dying_is_given_up_after_a_few_pauses_that_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("phylactery_cli.supervisor._FIRST_PAUSE_SECONDS", 0.01)
    stack = ForkedStack(tmp_path / "data", lasting_ports())
    fates: list[Fate] = []

    async def tell(fate: Fate) -> None:
        fates.append(fate)

    with running(stack):
        stack.extra_env = {"memory": {"MEMORY_OUTPUT_STORE": "nonsense", "MEMORY_IDENTITY_MODE": "nonsense"}}
        stack.kill("memory")
        async with asyncio.timeout(120):
            await Keeper(stack, tell).run()
        assert [fate.service for fate in fates] == ["memory"] * (RESTARTS + 1)
        assert [fate.kind for fate in fates] == ["died"] * RESTARTS + ["given_up"]
        assert [fate.seconds for fate in fates[:-1]] == [0.01 * 2**number for number in range(RESTARTS)]
        assert not stack.ended("agent")


def test_a_data_folder_that_cannot_be_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StackError, match=r"file cannot be the data folder .*; name another"):
        Stack(tmp_path / "file", FREE_PORTS).start()


def test_a_start_that_fails_is_told_by_what_this_start_said(tmp_path: Path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "riskgate.log").write_text("said long ago\n")
    stack = ForkedStack(tmp_path, FREE_PORTS, extra_env={"riskgate": {"RISKGATE_PORT": "many"}})
    with pytest.raises(StackError, match="RISKGATE_PORT") as refused:
        stack.start()
    assert "said long ago" not in str(refused.value)


def test_a_second_agent_on_the_same_folder_is_refused_and_the_first_goes_on(tmp_path: Path):
    with running(ForkedStack(tmp_path / "data", FREE_PORTS)) as stack:
        second = ForkedStack(tmp_path / "data", FREE_PORTS)
        second.processes = dict(stack.processes)
        second.launch("agent")
        with pytest.raises(StackError, match="agent did not start"):
            second.wait_healthy("agent")
        with Person(stack, "ana") as ana:
            assert ana.say("hola").reply.text


@pytest.mark.parametrize(("language", "said"), [("en", "already running"), ("es", "ya están en marcha")])
def test_a_second_start_over_a_folder_in_use_says_so_and_disturbs_nothing(tmp_path: Path, language: str, said: str):
    with running(ForkedStack(tmp_path, FREE_PORTS)) as first:
        ready = (tmp_path / "riskgate" / "ready.json").read_text()
        second = commands.run_phylactery("up", "--data-dir", str(tmp_path), "--language", language)
        assert (second.returncode, said in second.stdout) == (1, True), second.stdout
        assert (first.target("riskgate") in second.stdout, len(second.stdout.splitlines())) == (True, 1), second.stdout
        assert (tmp_path / "riskgate" / "ready.json").read_text() == ready
        assert first.died() is None


def test_why_a_service_ended_is_told_without_the_rest_of_its_log(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        stack = ForkedStack(tmp_path, {**FREE_PORTS, "riskgate": taken.getsockname()[1]})
        with pytest.raises(StackError, match="cannot listen") as refused:
            stack.start()
    told = [line for line in str(refused.value).splitlines() if line.startswith("  ")]
    assert [line.split(":")[0] for line in told] == ["  riskgate"]


def test_the_readmes_python_talks_to_the_agent_as_it_stands(tmp_path: Path):
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.+?)^```", readme, re.DOTALL | re.MULTILINE)
    with running(ForkedStack(tmp_path / "data", FREE_PORTS)) as stack:
        stack.sandbox.mkdir(parents=True, exist_ok=True)
        (stack.sandbox / "welcome.txt").write_text("Welcome to Phylactery.")
        program = program.replace("127.0.0.1:50051", stack.target("agent"))
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("DONE ")
    assert "Welcome to Phylactery." in done.stdout


def test_approvals_are_listed_shown_approved_and_rejected_at_riskgate(tmp_path: Path):
    asking = {"riskgate": {"RISKGATE_BUNDLE": str(asks_first(tmp_path / "bundle"))}}
    with running(ForkedStack(tmp_path / "data", FREE_PORTS, extra_env=asking)) as stack:

        def command(*arguments: str) -> Finished:
            return commands.run_phylactery("approvals", *arguments, "--target", stack.target("riskgate"))

        with Person(stack, "local", thread="approvals-1") as one, Person(stack, "local", thread="approvals-2") as two:
            assert "Nothing is waiting." in command("list").stdout
            first = one.say('append "by command" to command.txt').pending_approval
            second = two.say('append "not this" to command.txt').pending_approval
            listed = [json.loads(row) for row in command("list", "--json").stdout.splitlines()]
            assert {row["id"] for row in listed} == {first.approval_id, second.approval_id}
            assert first.code not in command("list", "--json").stdout
            assert first.approval_id in command("list").stdout.split()
            assert "command.txt" in command("show", first.approval_id).stdout
            assert "APPROVED" in command("approve", first.approval_id, "--yes").stdout
            assert "REJECTED" in command("reject", second.approval_id, "--reason", "no").stdout
            shown = command("show", second.approval_id, "--language", "es").stdout
            for spanish in ("estado", "RECHAZADA", "solicitante", "herramienta"):
                assert spanish in shown
            listed_in_spanish = command("list", "--state", "ALL", "--language", "es").stdout
            assert ("aprobación" in listed_in_spanish, "RECHAZADA" in listed_in_spanish) == (True, True)
            assert "No hay nada en espera." in command("list", "--language", "es").stdout
            late_in_spanish = command("approve", second.approval_id, "--yes", "--language", "es")
            assert f"{second.approval_id} ya está RECHAZADA" in late_in_spanish.stderr
            late = command("approve", second.approval_id, "--yes")
            assert (late.returncode, "already REJECTED" in late.stderr) == (1, True)
            again = command("reject", first.approval_id)
            assert again.returncode == 1
            assert "APPROVAL_NOT_PENDING" in again.stderr
            unknown = command("show", "ap_unknown")
            assert (unknown.returncode, "NOT_FOUND" in unknown.stderr) == (1, True)
            from phylactery.agent.v1 import event_pb2

            one.await_status(event_pb2.RUN_STATUS_DONE)
            two.await_status(event_pb2.RUN_STATUS_DONE)
            assert lines(stack, "command.txt", "local") == ["by command"]


def test_a_stack_says_that_one_person_is_asked_only_where_such_a_bundle_decides(tmp_path: Path):
    own = Path(shutil.copytree(default_bundle_folder(), tmp_path / "own"))
    settings = (own / "riskgate.yaml").read_text()
    (own / "riskgate.yaml").write_text(re.sub(r"(?m)^revision: \d+", "revision: 1000", settings))
    chosen = {"riskgate": {"RISKGATE_BUNDLE": str(own)}}
    with running(ForkedStack(tmp_path / "alone", FREE_PORTS)) as stack:
        assert stack.single_user()
    with running(ForkedStack(tmp_path / "data", FREE_PORTS, extra_env=chosen)) as stack:
        assert not stack.single_user()
    with running(ForkedStack(tmp_path / "data", FREE_PORTS)) as stack:  # their own bundle is newer and goes on deciding
        assert not stack.single_user()


def test_a_card_of_several_calls_is_answered_in_words_or_one_by_one(tmp_path: Path):
    asking = {"RISKGATE_BUNDLE": str(asks_first(tmp_path / "bundle"))}
    terminal = Terminal(
        "run", "--details", "--data-dir", str(tmp_path / "data"), "--language", "en", env=PORTS | asking
    )
    terminal.expect("you ›")
    terminal.type('append "one" to a.txt and append "two" to b.txt')
    terminal.expect("May I do these 2 things.+1\\..+a\\.txt.+2\\..+b\\.txt.+yes or /approve: all 2")
    terminal.expect("you ›")
    terminal.type("yes, but make it three")
    terminal.expect("2 actions are waiting for your yes or no")
    terminal.expect("you ›")
    assert not (files_in(tmp_path) / "a.txt").exists()
    terminal.type("/approve")
    terminal.expect("Saved .+a\\.txt.+Saved .+b\\.txt.+answered")
    terminal.expect("you ›")
    assert [(files_in(tmp_path) / name).read_text().split() for name in ("a.txt", "b.txt")] == [["one"], ["two"]]
    terminal.type('append "one" to c.txt and append "two" to d.txt')
    terminal.expect("May I do these 2 things")
    terminal.expect("you ›")
    terminal.type("/reject 2")
    terminal.expect("no to this: .+May I do this.+c\\.txt")
    terminal.expect("you ›")
    terminal.type("/approve 3")
    terminal.expect("I asked about 1")
    terminal.expect("you ›")
    terminal.type("dale")
    terminal.expect("Saved")
    terminal.expect("you ›")
    assert (files_in(tmp_path) / "c.txt").exists()
    assert not (files_in(tmp_path) / "d.txt").exists()
    terminal.type("/quit")
    assert terminal.exit_code() == 0
