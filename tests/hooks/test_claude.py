"""The real Claude Code with a scripted model: PHYLACTERY_CLAUDE names its executable."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from phylactery_hooks.install import install, settings_path

from tests.support.hooks.host import Coder, prepared
from tests.support.hooks.http import ServedHooks
from tests.support.hooks.scripted import ScriptedModel
from tests.support.riskgate.serving import ServedRiskGate

CLAUDE = os.environ.get("PHYLACTERY_CLAUDE", "")
LIMIT_SECONDS = 180
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CLAUDE, reason="PHYLACTERY_CLAUDE names no Claude Code")]

Turn = Callable[..., tuple[ScriptedModel, subprocess.CompletedProcess[str]]]


@pytest.fixture
def turn(tmp_path: Path, code: Path) -> Turn:
    """Play a turn in print mode: the user's words, and the calls that the model makes."""

    def play(
        folder: Path, words: str, calls: list[tuple[str, dict[str, Any]]], *options: str, url: str = "", token: str = ""
    ) -> Any:
        home = tmp_path / "home"
        path = settings_path("claude-code", home)
        install("claude-code", path, folder, url=url)
        with ScriptedModel(calls) as model:
            kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
            env = (
                kept
                | {
                    "HOME": str(home),
                    "ANTHROPIC_BASE_URL": model.url,
                    "ANTHROPIC_API_KEY": "none",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "DISABLE_AUTOUPDATER": "1",
                    "IS_SANDBOX": "1",
                }
                | ({"PHYLACTERY_HOOKS_TOKEN": token} if token else {})
            )
            words_ = [CLAUDE, "-p", words, "--setting-sources", "user", "--model", "scripted", *options]
            done = subprocess.run(
                words_, env=env, cwd=code, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        return model, done

    return play


def test_claude_code_runs_what_is_permitted_alone(gate: ServedRiskGate, coder_of: Any, code: Path, turn: Turn):
    coder: Coder = coder_of(gate.target)
    calls = [
        ("Bash", {"command": "ls", "description": "list"}),
        ("Bash", {"command": "echo hello > src/made.txt"}),
        ("Bash", {"command": "rm -r src"}),
        ("Bash", {"command": "cat .env"}),
        ("Write", {"file_path": str(code / "src" / "new.py"), "content": "x = 1\n"}),
        ("Write", {"file_path": str(code / ".claude" / "settings.json"), "content": "{}"}),
    ]
    model, done = turn(coder.folder, "Fix the failing test", calls, "--dangerously-skip-permissions")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [failed for failed, _ in model.results] == [False, False, True, True, False, True], model.results
    assert "README.md" in model.results[0][1]
    assert "text" not in model.results[3][1].split("RiskGate")[0]
    assert (code / "src" / "made.txt").read_text() == "hello\n"
    assert (code / "src" / "new.py").read_text() == "x = 1\n"
    assert not (code / ".claude").exists()


def test_claude_code_runs_nothing_while_riskgate_is_away(tmp_path: Path, coder_of: Any, code: Path, turn: Turn):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coder: Coder = coder_of(f"127.0.0.1:{free.getsockname()[1]}")
        calls = [("Bash", {"command": "touch src/made.txt"})]
        turn(coder.folder, "Fix the failing test", calls, "--dangerously-skip-permissions")
    assert not (code / "src" / "made.txt").exists()


def test_claude_code_runs_nothing_without_a_helper(tmp_path: Path, code: Path, turn: Turn):
    folder = prepared(tmp_path / "hooks", "127.0.0.1:1")
    folder.chmod(0o755)
    calls = [("Bash", {"command": "touch src/made.txt"})]
    turn(folder, "Fix the failing test", calls, "--dangerously-skip-permissions")
    assert not (code / "src" / "made.txt").exists()


@pytest.fixture
def served(gate: ServedRiskGate, tmp_path: Path) -> Iterator[ServedHooks]:
    """Hooks over HTTP."""
    with ServedHooks(prepared(tmp_path / "http" / "hooks", gate.target)) as found:
        yield found


def test_claude_code_posts_and_runs_what_is_permitted_alone(served: ServedHooks, code: Path, turn: Turn):
    calls = [
        ("Bash", {"command": "ls", "description": "list"}),
        ("Bash", {"command": "echo hello > src/made.txt"}),
        ("Bash", {"command": "rm -r src"}),
        ("Bash", {"command": "cat .env"}),
    ]
    options = {"url": served.url, "token": served.token}
    model, done = turn(served.folder, "Fix the failing test", calls, "--dangerously-skip-permissions", **options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [failed for failed, _ in model.results] == [False, False, True, True], model.results
    assert (code / "src" / "made.txt").read_text() == "hello\n"
    sessions = json.loads((served.folder / "state.json").read_text())["sessions"]
    assert not any(one["running"] for one in sessions.values()), "every call was reported"


@pytest.mark.parametrize("token", ["", "unknown"])
def test_claude_code_runs_nothing_without_a_known_token(served: ServedHooks, code: Path, turn: Turn, token: str):
    calls = [("Bash", {"command": "touch src/made.txt"})]
    turn(served.folder, "Fix it", calls, "--dangerously-skip-permissions", url=served.url, token=token)
    assert not (code / "src" / "made.txt").exists()


def test_claude_code_runs_nothing_while_the_server_is_away(served: ServedHooks, code: Path, turn: Turn):
    served.stop()
    calls = [("Bash", {"command": "touch src/made.txt"})]
    turn(served.folder, "Fix it", calls, "--dangerously-skip-permissions", url=served.url, token="x" * 43)
    assert not (code / "src" / "made.txt").exists()
