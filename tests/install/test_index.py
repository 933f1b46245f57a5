"""No installation requests one of our package names from an index, where a stranger could have registered it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.packages.index import PackageIndex, normalized, serving_index
from tests.support.packages.installing import ROOT, declared, ours_needed

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.xdist_group("install"), pytest.mark.timeout(600)]

FOLDERS = {
    "phylactery-protos": "protos",
    "phylactery-chassis": "services/chassis",
    "phylactery-understanding": "services/understanding",
    "phylactery-forms": "services/forms",
    "phylactery-riskgate": "services/riskgate",
    "phylactery-memory": "services/memory",
    "phylactery-agent": "services/agent",
    "phylactery-client": "clients/python",
    "phylactery-hooks": "clients/hooks",
    "phylactery-gateway": "services/gateway",
    "phylactery-cli": "clients/cli",
    "phylactery-langchain": "clients/langchain",
    "phylactery-pydantic-ai": "clients/pydantic-ai",
    "phylactery-openai-agents": "clients/openai-agents",
    "phylactery-agent-framework": "clients/agent-framework",
    "phylactery-google-adk": "clients/google-adk",
    "phylactery-mcp-proxy": "clients/mcp-proxy",
    "phylactery-runtime": "clients/runtime",
}
PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--ignore-installed", "--no-compile")
UV = (str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--no-build-isolation", "--no-cache")
slow = pytest.mark.slow


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    with serving_index(ROOT / "constraints.txt", ROOT / "constraints-google-adk.txt") as serving:
        yield serving


def install(
    installer: tuple[str, ...], index: PackageIndex, into: Path, *what: str | Path, folder: Path = ROOT
) -> None:
    """Install into a folder with this index alone, whatever this machine's configuration says of others."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    options = ("--index-url", index.url, "--target", into)
    done = subprocess.run(
        [*installer, *options, *what],
        cwd=folder,
        env=env | {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def installed(into: Path) -> set[str]:
    """Return which of our distributions a folder holds."""
    names = {normalized(path.name.split("-")[0]) for path in into.glob("*.dist-info")}
    return {name for name in names if name.startswith("phylactery")}


@pytest.mark.parametrize(
    ("installer", "name"),
    [
        (PIP, "phylactery-client"),
        *(pytest.param(PIP, name, marks=slow) for name in FOLDERS if name != "phylactery-client"),
        *(pytest.param(UV, name, marks=slow) for name in ("phylactery-client", "phylactery-cli")),
    ],
    ids=lambda value: value if isinstance(value, str) else Path(value[0]).name,
)
def test_a_folder_of_the_checkout_alone_installs_without_asking_an_index_for_our_names(
    index: PackageIndex, tmp_path: Path, installer: tuple[str, ...], name: str
):
    install(installer, index, tmp_path / "into", f"./{FOLDERS[name]}")
    assert [asked for asked in index.asked if asked.startswith("phylactery")] == []
    assert name == "phylactery-understanding" or index.asked
    assert name in installed(tmp_path / "into")
    without_contracts = ("phylactery-chassis", "phylactery-understanding", "phylactery-forms")
    assert name in without_contracts or "phylactery-protos" in installed(tmp_path / "into")


@slow
def test_the_command_of_the_manual_names_every_folder_and_installs_them(index: PackageIndex, tmp_path: Path):
    page = (ROOT / "docs" / "riskgate.md").read_text(encoding="utf-8")
    (folders,) = re.findall(r"^pip install (.+)$", page, re.MULTILINE)
    install(PIP, index, tmp_path / "into", *folders.split())
    assert "phylactery-riskgate" in installed(tmp_path / "into")
    assert [asked for asked in index.asked if asked.startswith("phylactery")] == []


@slow
def test_a_release_names_exact_versions_and_installs_from_its_own_wheels(
    index: PackageIndex, wheels: dict[str, Path], tmp_path: Path
):
    assert wheels.keys() == FOLDERS.keys()
    for name in wheels:
        for needed in declared(name, wheels):
            if needed.startswith("phylactery"):
                assert re.fullmatch(r"phylactery-[a-z-]+==\d+\.\d+\.\d+", needed), needed
    needed = ours_needed("phylactery-client", wheels)
    install(PIP, index, tmp_path / "into", *(wheels[name] for name in needed))
    assert installed(tmp_path / "into") == needed == {"phylactery-client", "phylactery-protos"}
    assert [asked for asked in index.asked if asked.startswith("phylactery")] == []


def test_an_index_that_is_asked_for_a_name_of_ours_says_so(index: PackageIndex, tmp_path: Path):
    """What the tests above look for is seen where it happens."""
    with pytest.raises(AssertionError, match="phylactery-protos"):
        install(PIP, index, tmp_path / "into", "phylactery-protos")
    assert "phylactery-protos" in index.asked
