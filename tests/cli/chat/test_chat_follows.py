"""An open chat shows events of its thread above the prompt, each once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from phylactery_cli.supervisor import Stack, running

from tests.support.processes import commands
from tests.support.processes.stack import ForkedStack, await_death, crash_at, lasting_ports, lines, relaunch
from tests.support.processes.terminals import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli"), pytest.mark.timeout(300)]
CARD = "paid with 4111 1111 1111 1111"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with running(ForkedStack(tmp_path / "data", lasting_ports())) as started:
        yield started


def chat(stack: Stack) -> Terminal:
    terminal = Terminal("chat", "--details", "--target", stack.target("agent"), "--language", "en", env={})
    terminal.expect("you ›")
    return terminal


def left(terminal: Terminal) -> str:
    """Leave the chat; return what was shown meanwhile."""
    terminal.type("/quit")
    assert terminal.exit_code() == 0
    return terminal.seen


def test_ctrl_c_takes_back_what_was_typed_and_leaves_where_nothing_was(stack: Stack) -> None:
    terminal = chat(stack)
    os.write(terminal.fd, b"echo not this")
    terminal.expect("not this")
    os.write(terminal.fd, b"\x03")
    terminal.expect("you ›")
    terminal.type("echo but this")
    shown = terminal.expect(r".+agent[^\n]* › [^\n]*but this.+answered.+you ›")
    assert "but this — running" in shown
    assert "not this — running" not in shown
    os.write(terminal.fd, b"\x03")
    terminal.expect("Ctrl-C again to leave.+you ›")
    os.write(terminal.fd, b"\x03")
    assert terminal.exit_code() == 0


def test_an_approval_given_elsewhere_is_shown_above_what_is_being_typed(stack: Stack) -> None:
    terminal = chat(stack)
    terminal.type(f'write "{CARD}" to card.txt')
    approval_id = terminal.expect(r"or type: APPROVE ap_[a-z2-7]+").split()[-1]
    terminal.expect("waiting for a person.s approval")
    terminal.expect("you ›")
    os.write(terminal.fd, b"/he")
    terminal.expect("/he")
    given = commands.run_phylactery("approvals", "approve", approval_id, "--yes", "--target", stack.target("riskgate"))
    assert given.returncode == 0, given.stderr
    shown = terminal.expect(r"agent[^\n]* › [^\n]*Saved.+answered.+you › [^\n]*/he")
    assert shown.count("Saved") == 1
    assert lines(stack, "card.txt", "local") == [CARD]
    terminal.type("lp")
    terminal.expect("Say what you want")
    terminal.expect("you ›")
    terminal.type("/approve")
    terminal.expect("Nothing is waiting for an answer")
    terminal.expect("you ›")
    assert "Saved" not in left(terminal)


def test_what_was_asked_of_an_agent_that_died_is_answered_once_it_is_back(stack: Stack) -> None:
    terminal = chat(stack)
    terminal.type("hello")
    terminal.expect("answered")
    terminal.expect("you ›")
    stack.kill("agent")
    crash_at(stack, "agent", "agent.9")
    stack.launch("agent")
    stack.wait_healthy("agent")
    terminal.type('write "from before" to before.txt')
    terminal.expect("The agent does not answer")
    await_death(stack, "agent")
    terminal.expect("you ›")
    relaunch(stack, "agent")
    assert terminal.expect(r"Saved.+answered.+you ›").count("Saved") == 1
    assert lines(stack, "before.txt", "local") == ["from before"]
    assert "Saved" not in left(terminal)
    again = Terminal("chat", "--details", "--target", stack.target("agent"), "--language", "en", env={})
    assert again.expect(r"Saved.+you ›").count("Saved") == 1
    left(again)
