"""What is typed at a terminal before a card is drawn answers none, and lines that come together are one paste."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_services import PORTS, files_in
from tests.support.processes.terminals import Terminal
from tests.support.riskgate.asking_bundle import asks_first

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli"), pytest.mark.timeout(200)]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    asking = {"RISKGATE_BUNDLE": str(asks_first(tmp_path / "bundle"))}
    opened = Terminal("run", "--data-dir", str(tmp_path / "data"), "--language", "en", env=PORTS | asking)
    opened.expect("you ›")
    yield opened
    opened.type("/quit")
    opened.exit_code()


def test_lines_that_come_together_are_one_paste_and_answer_no_card(terminal: Terminal, tmp_path: Path) -> None:
    for text in ('append "one" to a.txt\ryes\r', 'añade "dos" a b.txt\rsí\r', 'append "x" to c.txt\r/approve\r'):
        os.write(terminal.fd, text.encode())
        terminal.expect("you ›")
    terminal.type("what time is it?")
    terminal.expect("It is")
    terminal.expect("you ›")
    assert [path.name for path in files_in(tmp_path).iterdir()] == ["welcome.txt"]


def test_what_is_typed_while_the_agent_works_answers_no_card_that_it_draws(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type('append "one" to a.txt')
    terminal.expect("append")
    os.write(terminal.fd, b"yes\r/approve\r")
    terminal.expect("That was typed before I asked")
    terminal.expect("you ›")
    assert not (files_in(tmp_path) / "a.txt").exists()
    terminal.type("/approve")
    terminal.expect("Saved")
    assert (files_in(tmp_path) / "a.txt").read_text().split() == ["one"]
