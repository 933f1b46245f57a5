"""Workspaces on disk, a RiskGate with the bundle for coding agents, and sessions of hosts."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from phylactery_hooks.bundles import write_bundle
from phylactery_hooks.workspace import Workspace

from tests.support.hooks.host import Coder, prepared
from tests.support.riskgate.serving import ServedRiskGate


@pytest.fixture(scope="session")
def tmp_path_factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.TempPathFactory]:
    """Make folders outside /dev, below which nothing is a workspace; those of other tests are (tests/conftest.py)."""
    own = copy.copy(tmp_path_factory)
    with tempfile.TemporaryDirectory(prefix="phylactery-hooks-", dir="/tmp", ignore_cleanup_errors=True) as base:
        own._basetemp = Path(base).resolve()
        yield own


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a secret, links that leave it, and names that are options."""
    base = tmp_path_factory.mktemp("judged")
    root, outside = base / "work", base / "elsewhere"
    for one in (
        root / "src",
        root / ".git" / "objects",
        root / ".git" / "refs",
        root / ".claude",
        root / ".private",
        root / "deep" / "er",
    ):
        one.mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_text("private")
    for name in ("README.md", "a.txt", "b.txt", "data.csv", "data.json", "src/app.py", "setup.py", "with space.txt"):
        (root / name).write_text("text\n")
    for name in (".env", ".private/gate", ".git/HEAD", ".git/config", "--pre=x"):
        (root / name).write_text("secret\n")
    (root / ".gitignore").write_text(".env\n")
    for name in ("nested/.git/config", "common/commondir", "common/HEAD", "folders/one/a.txt", "folders/two/a.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("[core]\n")
    (root / "bare" / "objects").mkdir(parents=True)
    (root / "bare" / "HEAD").symlink_to("refs/heads/main")
    (root / "outside-link").symlink_to(outside / "file")
    (root / "outside-dir").symlink_to(outside)
    (root / "env-link").symlink_to(root / ".env")
    (root / "claude-link").symlink_to(root / ".claude")
    (root / "link-inside").symlink_to(root / "deep" / "er")
    return root


@pytest.fixture(scope="session")
def workspace(folder: Path) -> Workspace:
    """The same as the judge's workspace; the gate's token is a file in it, and the hook's code a folder."""
    return Workspace(str(folder), kept=[str(folder / ".private/gate")], guarded=[str(folder / "venv")])


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedRiskGate]:
    """A RiskGate with the bundle for coding agents that no test changes or stops."""
    folder = tmp_path_factory.mktemp("gate")
    write_bundle(folder / "bundle")
    with ServedRiskGate(folder, bundle=folder / "bundle") as served:
        yield served


@pytest.fixture
def own_gate(tmp_path: Path) -> Iterator[ServedRiskGate]:
    """A RiskGate that a test stops and starts."""
    write_bundle(tmp_path / "gate" / "bundle")
    with ServedRiskGate(tmp_path / "gate", bundle=tmp_path / "gate" / "bundle") as served:
        yield served


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A workspace of a test's own."""
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / ".git" / "objects").mkdir(parents=True)
    for name in ("README.md", "src/app.py", ".env"):
        (root / name).write_text("text\n")
    return root


@pytest.fixture(scope="session")
def hooks(gate: ServedRiskGate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a helper that no test ends."""
    folder = prepared(tmp_path_factory.mktemp("helper") / "hooks", gate.target)
    starting = Coder(folder, folder)
    assert starting.shell("pwd").code in {0, 2}
    yield folder
    starting.end_helper()


@pytest.fixture
def coder(code: Path, hooks: Path, tmp_path: Path) -> Coder:
    """A session over the shared helper."""
    return Coder(code, hooks, session_id=f"s-{tmp_path.name}")


@pytest.fixture
def coder_of(tmp_path: Path, code: Path) -> Iterator[Callable[..., Coder]]:
    """Make sessions over a helper of a test's own, and end it."""
    made: list[Coder] = []

    def make(target: str, *, settings: dict[str, Any] | None = None, **options: Any) -> Coder:
        folder = prepared(tmp_path / "hooks", target, **(settings or {}))
        options.setdefault("session_id", f"s-{tmp_path.name}-{len(made)}")
        made.append(Coder(code, folder, **options))
        return made[-1]

    yield make
    for one in made:
        one.end_helper()
