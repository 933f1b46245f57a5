"""While an answer is written, the person can stop it, sees progress, and can type ahead."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from phylactery.agent.v1 import event_pb2
from phylactery_cli.supervisor import Stack, running

from tests.support.processes import commands
from tests.support.processes.stack import ForkedStack, Person, lasting_ports, relaunch
from tests.support.processes.terminals import COMMAND, Terminal
from tests.support.servers.model_server import ModelServer, hangs, model_server

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli"), pytest.mark.timeout(300)]
CANCELLED = event_pb2.RUN_STATUS_CANCELLED
QUESTION = "please compare the two plans for the garden and tell me which is nicer"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with running(ForkedStack(tmp_path / "data", lasting_ports())) as started:
        yield started


@pytest.fixture
def modelled(tmp_path: Path, model: ModelServer) -> Iterator[Stack]:
    named = {"PHYLACTERY_MODEL_BASE_URL": model.url, "PHYLACTERY_MODEL": "test-model", "AGENT_INTERPRETER": "off"}
    with running(ForkedStack(tmp_path / "data", lasting_ports(), extra_env={"agent": named})) as started:
        yield started


def chat(stack: Stack, *options: str) -> Terminal:
    terminal = Terminal("chat", "--target", stack.target("agent"), *(options or ("--language", "en")), env={})
    terminal.expect("(you|tú) ›")
    return terminal


def piped(stack: Stack, typed: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [COMMAND, "chat", "--target", stack.target("agent"), "--language", "en", *options]
    return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("key", [b"\x03", b"\x1b"], ids=["ctrl-c", "escape"])
def test_a_key_stops_the_answer_and_its_run_and_nothing_else(modelled: Stack, model: ModelServer, key: bytes) -> None:
    model.otherwise = lambda _asked: hangs()
    terminal = chat(modelled)
    terminal.type(QUESTION)
    terminal.expect("working … [1-9] s · Esc stops")
    os.write(terminal.fd, key)
    terminal.expect("you ›", 30)
    with Person(modelled, "local", thread="main") as person:
        assert person.await_status(CANCELLED).last_run.reason == "CANCELLED"
    assert modelled.died() is None
    terminal.type("/help keys")
    terminal.expect("twice leaves.+you ›")
    terminal.type("/quit")
    assert terminal.exit_code() == 0


def test_what_is_typed_while_an_answer_is_written_is_said_after_it(modelled: Stack, model: ModelServer) -> None:
    model.otherwise = lambda _asked: hangs()
    terminal = chat(modelled)
    terminal.type(QUESTION)
    terminal.expect("working …")
    terminal.type("/help language")
    os.write(terminal.fd, b"\x03")
    terminal.expect("I answer in the language of the conversation.+you ›", 30)
    terminal.type("/quit")
    assert terminal.exit_code() == 0


def test_the_language_that_was_chosen_reaches_every_message(stack: Stack) -> None:
    terminal = chat(stack, "--language", "es")
    terminal.type("hello")
    terminal.expect("Hola.+tú ›")
    terminal.type("/quit")
    assert terminal.exit_code() == 0
    environment = {"PHYLACTERY_TARGET": stack.target("agent"), "PHYLACTERY_LANGUAGE": "en"}
    by_variable = Terminal("chat", "--thread", "other", env=environment)
    by_variable.expect("you ›")
    by_variable.type("hola")
    by_variable.expect("Hello.+you ›")
    by_variable.type("/quit")
    assert by_variable.exit_code() == 0


def test_a_chat_that_is_opened_again_shows_the_question_and_its_answer(stack: Stack) -> None:
    with Person(stack, "local", thread="main") as person:
        person.say("hello")
    terminal = Terminal("chat", "--target", stack.target("agent"), "--language", "en", env={})
    shown = terminal.expect("you › .*hello.*agent › .*Hello.*you ›")
    assert shown.count("Hello") == 1
    terminal.type("/quit")
    assert terminal.exit_code() == 0


def test_what_was_typed_while_the_agent_was_away_is_sent_in_its_order_or_given_up(stack: Stack) -> None:
    terminal = chat(stack)
    stack.kill("agent")
    terminal.type("echo given up")
    terminal.expect("does not answer.+Kept .1.+you ›")
    terminal.type("/drop")
    terminal.expect("Discarded: 1.+you ›")
    for number, text in enumerate(("echo first", "echo second"), 1):
        terminal.type(text)
        terminal.expect(f"Kept .{number}..+you ›")
    relaunch(stack, "agent")
    seen = terminal.expect("agent[^\\n]* › [^\\n]*first.+agent[^\\n]* › [^\\n]*second.+you ›")
    assert "given up" not in seen
    terminal.type("/quit")
    assert terminal.exit_code() == 0


def test_a_piped_chat_fails_where_a_call_or_a_run_does(stack: Stack) -> None:
    good = piped(stack, "echo hi\n")
    assert (good.returncode, "hi" in good.stdout, good.stderr) == (0, True, "")
    for_machines = piped(stack, "echo hi\n", "--output", "json", "--thread", "json")
    assert for_machines.returncode == 0
    assert '"run_finished"' in for_machines.stdout.splitlines()[-1]
    refused = piped(stack, "echo hi\necho never\n", "--thread", "not a thread")
    assert (refused.returncode, "never" in refused.stdout) == (1, False)
    assert "That did not work" in refused.stderr
    stack.kill("agent")
    away = piped(stack, "echo hi\necho never\n")
    assert (away.returncode, away.stderr.count("does not answer")) == (1, 1)


def test_a_piped_chat_whose_run_fails_says_so_with_its_exit_code(stack: Stack) -> None:
    stack.kill("riskgate")
    said = piped(stack, "echo hi\n", "--thread", "gateless")
    assert said.returncode == 1
    assert "RiskGate" in said.stdout + said.stderr


def test_the_options_hold_before_and_after_a_command_and_by_variable(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Person(stack, "local", thread="t1") as person:
        person.say("hello")
    target = stack.target("agent")
    asked = [
        ("--target", target, "--output", "json", "threads", "list"),
        ("threads", "--target", target, "--output", "json", "list"),
        ("threads", "list", "--target", target, "--json"),
    ]
    said = [commands.run_phylactery(*words) for words in asked]
    monkeypatch.setenv("PHYLACTERY_TARGET", target)
    monkeypatch.setenv("PHYLACTERY_OUTPUT", "json")
    said.append(commands.run_phylactery("threads", "list"))
    assert {(one.returncode, one.stdout) for one in said} == {(0, said[0].stdout)}
    assert '"id": "t1"' in said[0].stdout
    assert commands.run_phylactery("threads", "list", "--output", "text").stdout.split()[0] == "conversation"
    monkeypatch.setenv("PHYLACTERY_OUTPUT", "xml")
    wrong = commands.run_phylactery("threads", "list")
    assert (wrong.returncode, "PHYLACTERY_OUTPUT is 'xml'" in wrong.stderr) == (2, True)
