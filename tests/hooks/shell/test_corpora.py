"""Honest commands get what a reasonable person wants of them, and hostile ones that look alike are never allowed."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from phylactery_hooks.shell.judge import judge
from phylactery_hooks.workspace import Workspace

from tests.hooks.shell import honest, hostile

ASKED = {"OUTSIDE", "UNKNOWN", "NETWORK", "SECRET"}
BLOCKED = {"SETTINGS", "DESTROY"}
FILES = {
    "src/app.py": "import os\n\n\ndef main():\n    return os.name\n",
    "src/util.py": "x = 1\n",
    "src/app.js": "",
    "src/app.ts": "",
    "tests/test_app.py": "",
    "scripts/test.sh": "",
    "README.md": "# x\n",
    "data.csv": "a,b,1\n",
    "package.json": '{"scripts": {"test": "x"}}\n',
    "tsconfig.json": "{}\n",
    "pyproject.toml": "",
    "setup.py": "",
    "Cargo.toml": "",
    "Makefile": "",
    ".env.example": "",
    ".gitignore": ".env\ndist/\nbuild/\nnode_modules/\ntarget/\n__pycache__/\n.pytest_cache/\n.mypy_cache\n",
}
BESIDE = {
    ".env": "KEY=x\n",
    "dist/bundle.js": "x\n",
    "build/out.o": "",
    "target/debug/x": "",
    "src/__pycache__/app.pyc": "",
    ".pytest_cache/x": "",
    ".mypy_cache/x": "",
    ".ruff_cache/x": "",
    "src/app.py.bak": "",
    "scratch/one.txt": "",
    "out/result.txt": "",
    **{f"node_modules/.bin/{name}": "" for name in ("tsc", "eslint", "jest", "prettier", "vitest")},
}
"""Files that Git does not keep."""


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A repository with Python, Node and Rust in it, its dependencies and its build."""
    base = tmp_path_factory.mktemp("project")
    root = base / "work"
    _write(root, FILES)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(git, cwd=root, check=True, timeout=60)
    _write(root, BESIDE)
    (base / "elsewhere").mkdir()
    (base / "elsewhere" / "file").write_text("private\n")
    (root / "outside-dir").symlink_to(base / "elsewhere")
    (root / "dist" / "link").symlink_to(base / "elsewhere")
    return Workspace(str(root))


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def wanted() -> list[tuple[str, str]]:
    """Return every honest command with what is wanted of it."""
    effects = ("READ", "WRITE", "RUN", "DELETE", "ASKED")
    short = [(line, effect) for effect in effects for line in getattr(honest, effect).split("\n") if line]
    return short + honest.LONG


def shares(effects: Sequence[str]) -> dict[str, float]:
    """Return which share of commands is allowed, asked about and blocked in a request for all that they do."""
    found = Counter("blocked" if one in BLOCKED else "asked" if one in ASKED else "allowed" for one in effects)
    return {name: found[name] / len(effects) for name in ("allowed", "asked", "blocked")}


def test_every_honest_command_gets_what_a_person_wants(project: Workspace):
    verdicts = [(command, effect, judge(command, project)) for command, effect in wanted()]
    assert [one for one in verdicts if one[2].effect.name not in (ASKED if one[1] == "ASKED" else {one[1]})] == []


def test_most_honest_commands_are_allowed_where_the_words_ask_for_them(project: Workspace):
    commands = wanted()
    found = shares([judge(command, project).effect.name for command, _ in commands])
    assert len(commands) >= 150
    assert found["allowed"] >= 0.8
    assert found["blocked"] == 0


def test_no_hostile_command_is_allowed(project: Workspace):
    commands = [one for one in hostile.NEVER.split("\n") if one] + hostile.LONG
    assert len(commands) >= 800
    verdicts = [(command, judge(command, project)) for command in commands]
    assert [one for one in verdicts if one[1].effect.name not in ASKED | BLOCKED] == []
