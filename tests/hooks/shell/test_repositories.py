"""What Git and ripgrep show of a repository depends on files in it: its index, its ignore files, those below it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from phylactery_hooks.shell.judge import judge
from phylactery_hooks.workspace import Workspace


def git(folder: Path, *words: str) -> None:
    """Run Git in a folder."""
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=folder, check=True, timeout=60)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one plain file in its index and a secret that is not."""
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("x\n")
    git(root, "init", "-q")
    git(root, "add", "src")
    (root / ".env").write_text("KEY=x\n")
    return root


def effect(root: Path, command: str) -> str:
    """Return what the judge takes a command for."""
    return judge(command, Workspace(str(root))).effect.name


@pytest.mark.parametrize("command", ["git add .", "git add -A", "git add -N .", "git add -A && git diff --cached"])
def test_a_secret_that_nothing_ignores_is_not_added_unasked(repository: Path, command: str):
    assert effect(repository, command) == "SECRET"
    (repository / ".gitignore").write_text(".env\n")
    assert effect(repository, command) == "WRITE"


SHOWN = ["git diff", "git diff --cached", "git show HEAD", "git log -p", "git grep KEY"]


@pytest.mark.parametrize("command", SHOWN)
@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_a_secret_in_the_index_is_not_shown_unasked(repository: Path, command: str, version: str):
    assert effect(repository, command) == "READ"
    git(repository, "add", "-f", *(["-N"] if version == "3" else []), ".env")
    git(repository, "update-index", "--index-version", version)
    assert effect(repository, command) == "SECRET"
    assert effect(repository, "git log --oneline") == "READ"
    assert effect(repository, "git status") == "READ"


def test_git_is_not_run_over_a_repository_of_its_own_below(repository: Path):
    nested = repository / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    git(nested, "commit", "-q", "--allow-empty", "-m", "x")
    assert effect(repository, "git add nested") == "UNKNOWN"
    assert effect(repository, "git add -A") == "UNKNOWN"
    assert effect(repository, "cd nested && git status") == "UNKNOWN"
    assert effect(repository, "git status") == "READ"
    git(repository, "add", "nested")
    assert effect(repository, "git status") == "UNKNOWN"


@pytest.mark.parametrize("name", [".ignore", ".rgignore", ".gitignore", "src/.gitignore"])
def test_a_search_that_an_ignore_file_widens_may_meet_a_secret(repository: Path, name: str):
    assert effect(repository, "rg KEY") == "READ"
    (repository / name).write_text("# more\n!.gitkeep\n!src/app.py\n")
    assert effect(repository, "rg KEY") == "READ"
    (repository / name).write_text("!.env\n")
    assert effect(repository, "rg KEY") == "SECRET"


def test_a_pattern_never_stands_in_the_place_of_what_git_searches(repository: Path):
    (repository / "-Oecho").write_text("x\n")
    assert effect(repository, "git grep *") == "UNKNOWN"
    assert effect(repository, "git grep -n ?*") == "UNKNOWN"


def test_a_command_of_thousands_of_parts_is_judged(repository: Path):
    assert effect(repository, " && ".join(["ls"] * 4_000)) != "READ"


@pytest.fixture
def worktree(repository: Path, tmp_path: Path) -> Path:
    """A linked worktree of the repository, whose ``.git`` is a file."""
    git(repository, "commit", "-q", "-m", "x")
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"))
    return tmp_path / "linked"


def test_a_linked_worktree_is_judged_like_a_plain_repository(worktree: Path):
    for command in ("git status", "git log -p", "git diff", "git grep x", "git ls-files | xargs wc -l"):
        assert effect(worktree, command) == "READ", command
    (worktree / ".env").write_text("KEY=x\n")
    assert effect(worktree, "git add .") == "SECRET"
    (worktree / ".gitignore").write_text(".env\n")
    assert effect(worktree, "git add .") == "WRITE"
    git(worktree, "add", "-f", ".env")
    for command in SHOWN:
        assert effect(worktree, command) == "SECRET", command
    assert effect(worktree, "git status") == "READ"


def test_the_index_of_a_linked_worktree_tells_what_git_keeps(worktree: Path):
    (worktree / "dist").mkdir()
    (worktree / "dist" / "out.js").write_text("x\n")
    assert effect(worktree, "rm -rf dist") == "UNKNOWN", "somebody may keep something there"
    (worktree / ".gitignore").write_text("dist/\n")
    assert effect(worktree, "rm -rf dist") == "DELETE"
    assert effect(worktree, "rm -rf src") == "DESTROY"
    git(worktree, "add", "-f", "dist")
    assert effect(worktree, "rm -rf dist") == "DESTROY"
    assert effect(worktree, "python src/app.py") == "RUN"


@pytest.mark.parametrize("text", ["", "gitdir: ../nothing\n", "gitdir: ../work/.git\n", "gitdir: .\n", "x" * 100])
def test_a_file_in_place_of_git_that_git_did_not_make_is_no_repository(worktree: Path, text: str):
    (worktree / ".git").write_text(text)
    assert effect(worktree, "git status") == "UNKNOWN"
    assert effect(worktree, "git diff") == "UNKNOWN"


def test_a_worktree_that_leads_back_elsewhere_is_no_repository(worktree: Path, repository: Path):
    linked = repository / ".git" / "worktrees" / "linked"
    (linked / "gitdir").write_text(f"{repository}/.git\n")
    assert effect(worktree, "git status") == "UNKNOWN"


def test_a_worktree_inside_its_repository_is_no_part_of_it(repository: Path):
    git(repository, "commit", "-q", "-m", "x")
    git(repository, "worktree", "add", "-q", str(repository / "inner"))
    assert effect(repository, "cd inner && git status") == "UNKNOWN"
    assert effect(repository / "inner", "git status") == "READ"
