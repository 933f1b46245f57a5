"""Who starts the services hears of files of releases up to 0.2 that the agent gives to nobody."""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from phylactery_cli import main
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.supervisor import Stack
from phylactery_cli.terminal import plain_console

from tests.support.processes.stack import FREE_PORTS, ForkedStack


@pytest.fixture
def signals() -> Iterator[None]:
    """Put back what a command that ends its process leaves ignored: programs of later tests would inherit it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.slow
@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("left", [True, False])
def test_who_starts_the_services_is_told_of_files_that_are_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    stack = Stack(tmp_path / "data", FREE_PORTS)
    if left:
        stack.former_sandbox.mkdir(parents=True)
        (stack.former_sandbox / "plan.txt").write_text("of somebody")
    out = io.StringIO()
    monkeypatch.setattr(main, "DEFAULT_PORTS", FREE_PORTS)
    monkeypatch.setattr(Stack, "_begin", ForkedStack._begin)
    with main._serving(stack.data_dir, plain_console(file=out), Texts("en")):
        assert (stack.sandbox / "welcome.txt").exists()
        assert not (stack.sandbox / "plan.txt").exists()
    assert ("workspaces give local local" in out.getvalue()) is left
