"""Tool calls of hosts, and the tool of the catalog that each becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from phylactery_hooks.translation import translate
from phylactery_hooks.workspace import Workspace

BEGIN, END = "*** Begin Patch\n*** Add File: a.txt\n+x\n", "\n*** End Patch"
CALLS: list[tuple[str, str, dict[str, Any], str]] = [
    ("codex", "apply_patch", {"command": f"{BEGIN}*** Add File: b.txt\n+x{END}"}, "file_write"),
    ("codex", "apply_patch", {"command": f"{BEGIN} *** Add File: .codex/config.toml\n+x{END}"}, "file_settings"),
    ("codex", "apply_patch", {"command": f"{BEGIN}\t*** Add File:  .codex/config.toml \n+x{END}"}, "file_settings"),
    ("codex", "apply_patch", {"command": f"{BEGIN}\r\n *** Add File: .codex/x\r\n+x{END}"}, "file_settings"),
    ("codex", "apply_patch", {"command": f"{BEGIN}\u2003*** Add File: .codex/x\n+x{END}"}, "file_settings"),
    ("codex", "apply_patch", {"command": f"{BEGIN} *** Add File: /home/u/.bashrc\n+x{END}"}, "file_outside"),
    ("codex", "apply_patch", {"command": f"{BEGIN} *** Delete File: src/app.py{END}"}, "file_unknown"),
    ("codex", "apply_patch", {"command": f"{BEGIN}{END}", "input": f"{BEGIN}{END}"}, "file_unknown"),
    ("gemini", "read_file", {"file_path": "README.md"}, "file_read"),
    ("gemini", "read_file", {"absolute_path": "README.md"}, "file_read"),
    ("gemini", "read_file", {"file_path": "README.md", "absolute_path": "/home/u/.ssh/id_rsa"}, "file_unknown"),
    ("gemini", "read_file", {"file_path": "README.md", "path": "/home/u/.ssh/id_rsa"}, "file_unknown"),
    ("gemini", "search_file_content", {"pattern": "KEY", "path": "a.txt", "dir_path": "/root"}, "file_unknown"),
    ("gemini", "run_shell_command", {"command": "cat README.md", "dir_path": "src"}, "shell_read"),
    ("gemini", "run_shell_command", {"command": "cat a", "dir_path": ".", "directory": "/root"}, "shell_unknown"),
    ("claude-code", "Skill", {"skill": "release"}, "file_unknown"),
    ("claude-code", "ExitPlanMode", {"plan": "x"}, "agent_step"),
    ("claude-code", "Write", {"file_path": "venv/lib/phylactery_hooks/hook.py", "content": "x"}, "file_settings"),
    ("claude-code", "Read", {"file_path": "venv/lib/phylactery_hooks/hook.py"}, "file_read"),
    ("claude-code", "Grep", {"pattern": "KEY", "glob": "*.py", "output_mode": "content"}, "file_read"),
    ("claude-code", "Grep", {"pattern": "KEY", "glob": "*.env", "output_mode": "content"}, "file_secret"),
]


@pytest.mark.parametrize(("host", "tool", "given", "expected"), CALLS)
def test_a_call_becomes_the_tool_of_what_it_does(
    workspace: Workspace, host: str, tool: str, given: dict[str, Any], expected: str
):
    assert translate(host, tool, given, workspace).tool == expected


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Bash", {"command": "ls"}, "shell_outside"),
        ("Read", {"file_path": "notes.txt"}, "file_outside"),
        ("Write", {"file_path": ".config/git/config"}, "file_outside"),
        ("Write", {"file_path": ".claude/settings.json"}, "file_settings"),
    ],
)
@pytest.mark.parametrize("around", [False, True])
def test_a_home_is_no_workspace(  # noqa: PLR0917 - a table and a place
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, given: dict[str, Any], expected: str, around: bool
):
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    wide = Workspace(str(tmp_path if around else home))
    assert translate("claude-code", tool, given, wide).tool == expected
