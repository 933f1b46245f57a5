"""Which tests a change concerns."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.changed import changed_files, concerned, day_ago
from tests.support.packages.inputs import changed_inputs

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize(
    ("file", "text", "matters"),
    [
        ("services/one/pyproject.toml", "[project]\nname = 'other'\n", True),
        ("Makefile", "all:\n", True),
        ("deploy/riskgate/compose.yml", "services:\n", True),
        ("tests/install/test_new.py", "", True),
        ("services/one/one/main.py", "import json\n\ndef work():\n    import yaml\n", True),
        ("services/one/one/new.py", "from yaml import safe_load\n", True),
        ("services/one/one/data.yaml", "new: 1\n", True),
        ("services/one/one/main.py", "import json\nimport os, grpc.aio\n", False),
        ("services/one/one/new.py", "from . import main\nfrom grpc import aio\n", False),
        ("services/one/one/kept.json", "2", False),
        ("README.md", "new", False),
        ("tests/one/test_one.py", "import yaml\n", False),
    ],
)
def test_an_installation_is_tried_where_what_it_depends_on_has_changed(tmp_path: Path, file, text, matters):
    old = {
        "services/one/pyproject.toml": "[project]\nname = 'one'\n",
        "services/one/one/main.py": "import json\n",
        "services/one/one/other.py": "import grpc\n",
        "services/one/one/kept.json": "1",
        "README.md": "old",
    }
    git(tmp_path, "init", "-q")
    for name, content in old.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "old")
    assert changed_inputs("HEAD", tmp_path) == []
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert changed_inputs("HEAD", tmp_path) == ([file] if matters else [])
    if file in old:
        return
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "new")
    (tmp_path / file).unlink()
    assert bool(changed_inputs("HEAD", tmp_path)) is (matters and file != "services/one/one/new.py")
