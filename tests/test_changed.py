"""Which tests a change concerns."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.changed import changed_files, concerned, day_ago


def git(folder: Path, *words: str, date: str = "") -> str:
    who = ["-c", "user.name=ana", "-c", "user.email=ana@acme.es", "-c", "commit.gpgsign=false"]
    env = {
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "HOME": str(folder),
        "GIT_COMMITTER_DATE": date,
        "GIT_AUTHOR_DATE": date,
    }
    env = {name: value for name, value in env.items() if value}
    return subprocess.run(["git", *who, *words], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("file", "among", "not_among"),
    [
        (
            "services/riskgate/phylactery_riskgate/app.py",
            {"tests/riskgate", "tests/agent", "tests/e2e"},
            {"tests/forms"},
        ),
        ("services/gateway/phylactery_gateway/i18n/en.ftl", {"tests/gateway"}, {"tests/riskgate", "tests/agent"}),
        ("services/forms/phylactery_forms/values/dates.py", {"tests/forms", "tests/agent"}, {"tests/riskgate"}),
        (
            "clients/python/phylactery_client/chat.py",
            {"tests/client", "tests/guard", "tests/adapters"},
            {"tests/forms"},
        ),
        ("tests/support/servers/s3.py", {"tests/memory"}, {"tests/agent", "tests/riskgate"}),
        ("tests/riskgate/conftest.py", {"tests/riskgate"}, {"tests/agent"}),
        (
            "protos/phylactery/agent/v1/chat.proto",
            {"tests/protos", "tests/agent", "tests/docs"},
            {"tests/understanding"},
        ),
        ("docs/forms.md", {"tests/docs"}, {"tests/agent"}),
        ("tests/test_groups.py", {"tests/test_groups.py"}, {"tests/agent"}),
        ("AGENTS.md", {"tests/docs"}, {"tests/agent"}),
        ("tests/README.md", {"tests/docs"}, {"tests/README.md"}),
    ],
)
def test_a_file_concerns_the_tests_that_can_see_it(file: str, among: set[str], not_among: set[str]):
    found = set(concerned([file]))
    assert among <= found
    assert not found & not_among


@pytest.mark.parametrize(
    "file",
    [
        "tests/conftest.py",
        "tests/support/databases/schema.py",
        "services/chassis/phylactery_chassis/rpc/server.py",
        "pyproject.toml",
    ],
)
def test_what_every_test_uses_concerns_all(file: str):
    assert concerned([file, "docs/forms.md"]) == ["tests"]


def test_nothing_changed_concerns_nothing():
    assert concerned([]) == []


def test_what_is_committed_changed_deleted_and_new_differs(tmp_path: Path):
    git(tmp_path, "init", "-q")
    for name in ("kept.py", "deleted.py", "changed.py"):
        (tmp_path / name).write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "old", date="2026-01-01T00:00:00Z")
    old = day_ago(tmp_path)
    (tmp_path / "committed.py").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "new")
    (tmp_path / "changed.py").write_text("two\n")
    (tmp_path / "deleted.py").unlink()
    (tmp_path / "new one.py").write_text("one\n")
    assert day_ago(tmp_path) == old == git(tmp_path, "rev-parse", "HEAD^").strip()
    assert changed_files(old, tmp_path) == ["changed.py", "committed.py", "deleted.py", "new one.py"]
